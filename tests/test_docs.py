"""The docs say what the code does: nothing documented is missing, nothing that exists is undocumented."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.slicers import describe

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STUDIES = DOCS / "studies"  # records: commands and options there are those of their time
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def load_generator():
    sys.path.insert(0, str(DOCS))  # for the files beside it
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def inline(path: Path) -> list[str]:
    """The `code` within text."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


# ---- generated pages


@pytest.mark.parametrize("page", generate.PAGES)
def test_a_generated_page_is_as_the_code_has_it(page):
    pytest.importorskip("torch")  # rooms that need it are listed too
    committed = (generate.REFERENCE / page).read_text(encoding="utf-8")
    assert committed == generate.written(page), "run `python docs/generate.py`"


def commands() -> dict[tuple[str, ...], object]:
    return dict(generate.commands(generate.root_command()))


def test_every_command_and_option_is_documented():
    text = (generate.REFERENCE / "command-line.md").read_text(encoding="utf-8")
    for path, command in commands().items():
        assert f"\n## {' '.join(path)}\n" in text
        section = text.partition(f"\n## {' '.join(path)}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert not option.startswith("--") or option == "--help" or f"`{option}`" in section


def test_every_command_option_and_argument_has_words():
    silent = [
        f"{' '.join(path)} {parameter.name}"
        for path, command in commands().items()
        for parameter in command.params
        if not getattr(parameter, "help", None)
    ]
    assert silent == []
    assert [path for path, command in commands().items() if not command.help] == []


def options_of(entry) -> set[str]:
    """All that `--set METHOD.OPTION=VALUE` takes."""
    return (set(entry["options"]) - {"advanced"}) | {f"advanced.{key}" for key in entry["advanced"]}


def test_every_method_and_option_is_documented():
    text = (generate.REFERENCE / "methods.md").read_text(encoding="utf-8")
    for entry in describe():
        section = text.partition(f"\n## {entry['name']}\n")[2].partition("\n## ")[0]
        rows = {row.split("|")[1].strip(): row.split("|") for row in section.splitlines() if row.startswith("| `")}
        for option in options_of(entry):
            assert rows[f"`{option}`"][-2].strip(), f"{entry['name']}.{option} has no words in the docstring"


def test_every_method_has_a_page():
    pages = " ".join(path.read_text(encoding="utf-8") for path in (DOCS / "explanation/methods").glob("*.md"))
    for entry in describe():
        assert f"reference/methods.md#{entry['name']})" in pages or f"**{entry['name']}**" in pages, entry["name"]


def test_every_public_name_and_field_has_words():
    text = (generate.REFERENCE / "python.md").read_text(encoding="utf-8")
    for public in errata.__all__:
        section = text.partition(f"\n### errata.{public}\n")[2].partition("\n### ")[0]
        assert section, public
        for row in section.splitlines():
            if row.startswith("| `"):
                assert row.replace("\\|", "").split("|")[-2].strip(), f"{public}: {row}"


# ---- audit.json


def documented_keys() -> dict[str, set[str]]:
    """heading -> the keys in the table below it."""
    text = (generate.REFERENCE / "audit-json.md").read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {
        title: set(re.findall(r"^\| `([^`]+)`", body, flags=re.MULTILINE))
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.fixture(scope="module")
def written_audit() -> dict:
    """An audit by most methods with metadata and texts, as it is written."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, 900)
    embedding = rng.normal(0, 3, (6, 8))[kind] + rng.normal(size=(900, 8))
    labels = rng.integers(0, 2, 900)
    wrong = rng.random(900) < np.where(kind == 3, 0.6, 0.05)
    evaluation = errata.Evaluation(
        labels=labels,
        probs=np.where(wrong ^ (labels == 1), 0.8, 0.2) + rng.uniform(-0.1, 0.1, 900),
        representations={"embedding": embedding},
        sources={"embedding": errata.Source(from_model=False)},
        metadata={"kind": kind.astype(str)},
        media=errata.inputs.Texts([f"a text about kind {k}" for k in kind]),
    )
    texts = errata.Captions([f"kind {k}" for k in range(6)], rng.normal(size=(6, 8)), "embedding")
    methods = ["barlow", "confusion", "directions", "domino", "george", "gmm", "high-loss", "spotlight"]
    return errata.audit(evaluation, methods=methods, texts=texts).to_json()


def test_every_key_of_a_written_audit_is_documented(written_audit):
    keys = documented_keys()
    assert set(written_audit) == keys["audit.json"]
    assert set(written_audit["settings"]) == keys["settings"]
    assert set(written_audit["overall"]) == keys["overall"]
    for slice_ in written_audit["slices"]:
        assert set(slice_) == keys["slices"]
        assert set(slice_["rule"]) | set(slice_["rule"].get("of", {})) <= keys["rule"]
        for side in ("discover", "confirm"):
            assert slice_[side] is None or set(slice_[side]) == keys[side]
        for explanation in slice_["explanations"]:
            assert set(explanation) - {"kind"} <= keys[explanation["kind"]], explanation["kind"]
    for explanation in written_audit["explanations"]:
        assert set(explanation) - {"kind"} <= keys[explanation["kind"]], explanation["kind"]


def test_every_key_of_audit_json_has_words():
    text = (generate.REFERENCE / "audit-json.md").read_text(encoding="utf-8")
    empty = [row for row in text.splitlines() if row.startswith("| `") and not row.split("|")[-2].strip()]
    assert empty == []


# ---- what pages name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_a_page_exist(page):
    known = commands()
    for line in shell_lines(page):
        words = shlex.split(line, comments=True)[1:]
        path = ("errata",)
        while words and (*path, words[0]) in known:
            path = (*path, words.pop(0))
        if len(path) == 1 and words and not words[0].startswith("-"):
            pytest.fail(f"no command `errata {words[0]}`: {line}")
        options = {option for p in known[path].params for option in (*p.opts, *p.secondary_opts)} | {"--help"}
        for word in words:
            option = word.partition("=")[0]
            assert not option.startswith("--") or option in options or STUDIES in page.parents, line


@pytest.mark.parametrize("page", [page for page in PAGES if STUDIES not in page.parents], ids=name)
def test_options_of_methods_in_a_page_exist(page):
    options = {entry["name"]: options_of(entry) for entry in describe()}
    text = page.read_text(encoding="utf-8")
    for method, option in re.findall(r"--set ([a-z-]+)(?::\w+)?\.([\w.]+)=", text):
        assert method not in options or option in options[method], f"{method}.{option}"
    own = options.get(page.stem, set()) if page.parent.name == "methods" else set()
    for option in re.findall(r"`(advanced\.\w+)(?:=[^`]*)?`", text) if own else []:
        assert option in own, f"{page.stem}: {option}"
    for method, option in re.findall(r'"([a-z-]+)": \{"(\w+)":', text):
        assert method not in options or option in options[method], f"{method}.{option}"


def shell_lines(page: Path) -> Iterator[str]:
    """Lines of shell blocks, and `errata …` within text, that call a command."""
    joined = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    for line in [*joined.splitlines(), *inline(page)]:
        if re.match(r"errata [a-z-]", line) and "…" not in line and "|" not in line:
            yield line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_in_a_page_exist(page):
    for code in inline(page):
        for word in code.split():
            if re.fullmatch(r"(?:src|tests|benchmarks|examples|docs)/[\w./-]*[\w/]", word):
                assert "NAME" in word or (ROOT / word).exists(), word
            elif re.fullmatch(r"[a-z_]+/[\w/]+\.(?:py|js)", word):
                assert (ROOT / word).exists() or (ROOT / "src" / "errata" / word).exists(), word


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_in_a_page_exist(page):
    """`errata.explain.opponents`, in text or in code, and what code imports."""
    text = page.read_text(encoding="utf-8")
    for dotted in set(re.findall(r"(?<![\w./\"'-])errata(?:\.[A-Za-z_]\w*)+", text)):
        if not is_entry_point_or_key(dotted):
            resolve(dotted)
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "errata":
                for alias in node.names:
                    resolve(f"{node.module}.{alias.name}")


def is_entry_point_or_key(dotted: str) -> bool:
    groups = ("explanations", "parts", "pages", "plans", "commands")
    return dotted in (*(f"errata.{group}" for group in groups), "errata.plan")


def resolve(dotted: str) -> object:
    pytest.importorskip("torch")
    thing = errata
    path = "errata"
    for part in dotted.split(".")[1:]:
        path += f".{part}"
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(path)
    return thing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_calls_in_a_page_have_arguments_that_exist(page):
    for block in [*blocks(page, "python"), *filter(is_call, inline(page))]:
        tree = ast.parse(block)
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call):
                called = ast.unparse(call.func)
                called = imported.get(called, called)
                if re.fullmatch(r"errata(\.\w+)+", called):
                    thing = resolve(called)
                    keywords = {word.arg for word in call.keywords if word.arg}
                    assert passes_on(thing) or keywords <= parameters_of(thing), ast.unparse(call)


def is_call(code: str) -> bool:
    try:
        return code.startswith("errata.") and isinstance(ast.parse(code).body[0], ast.Expr)
    except SyntaxError:
        return False


def parameters_of(thing) -> set[str]:
    """Of a function or class; `collect` takes those of what it calls."""
    if thing is errata.collect:
        names = ("read", "from_table", "from_estimator", "from_predictor", "from_torch")
        sources = [getattr(errata.inputs, name) for name in names]
        return {parameter for source in sources for parameter in parameters_of(source)}
    return set(inspect.signature(thing).parameters)


def passes_on(thing) -> bool:
    kinds = {parameter.kind for parameter in inspect.signature(thing).parameters.values()}
    return inspect.Parameter.VAR_KEYWORD in kinds and thing is not errata.collect


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_links_of_a_page_outside_the_site_exist(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_design_has_the_arrows_of_the_test():
    from test_architecture import ARROWS

    table = (DOCS / "explanation/design.md").read_text(encoding="utf-8").partition("| room |")[2].partition("\n\n")[0]
    arrows = {}
    for row in table.splitlines()[2:]:
        rooms, may = (re.findall(r"`(\w+)`", part) for part in row.strip("|").split("|"))
        arrows |= {room: set(may) for room in rooms}
    assert arrows == {room: may for room, may in ARROWS.items() if (ROOT / "src" / "errata" / room).is_dir()}


def test_the_design_has_every_room():
    tree = (DOCS / "explanation/design.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "src" / "errata").iterdir()):
        if path.is_dir() and (path / "__init__.py").exists():
            assert f"\n  {path.name}/ " in tree, path.name


def test_the_changelog_has_this_version_first():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE)[0] == errata.__version__


OLD_WORDS = (
    "stand-ins?|pictures?|guess(?:es)?|exams?|foretells?|mend(?:s|ed)?|taught|begun|learnt|discover rows|confirm rows|"
    "cannot be had|gone on with|rows to settle|nobody said|as somebody|what silence means|stor(?:y|ies)|cures?|cured"
)


@pytest.mark.parametrize("page", [page for page in sorted(DOCS.rglob("*.md")) if page.name != "python.md"], ids=name)
def test_pages_have_one_word_for_an_idea(page):
    """CONTRIBUTING lists them; names in backticks may differ. Not yet python.md, docstrings of all rooms."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`|version 0\.1 call it a stand-in", "", text)
    assert re.findall(rf"\b(?:{OLD_WORDS})\b", text, flags=re.IGNORECASE) == []


# ---- examples run


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "tutorial.md"], ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """In their order, in one namespace, with the commands between them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "docs"}
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, name(page), "exec"), namespace)
        elif page.name == "tutorial.md":
            run_commands(block, monkeypatch)


def run_commands(block: str, monkeypatch) -> None:
    from errata.cli import main

    for line in block.splitlines():
        if line.startswith("errata "):
            monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
            with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 0, line


def test_examples_of_how_to_extend_run(monkeypatch):
    """As they stand, in one namespace; the slicer and the explanation in an audit and its report."""
    from errata import explain, report, slicers
    from errata.inputs import registry as formats

    namespace: dict[str, object] = {"np": np, "errata": errata}
    for block in blocks(DOCS / "how-to/extend.md", "python"):
        exec(compile(block, "extend.md", "exec"), namespace)
    monkeypatch.setitem(slicers.SLICERS, "nearest", namespace["Nearest"])
    monkeypatch.setitem(explain.EXPLANATIONS, "weekdays", namespace["Weekdays"])
    monkeypatch.setitem(formats.FORMATS, "json lines", namespace["FORMAT"])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    evaluation = errata.Evaluation(
        losses=np.exp(x[:, 0]) + rng.random(400),
        representations={"x": x},
        metadata={"weekday": np.where(x[:, 0] > 1, "Sunday", "Monday")},
    )
    audit = errata.audit(evaluation, methods=["nearest"])
    weekdays = [e for slice_ in audit.slices for e in slice_.explanations if e.kind == "weekdays"]
    assert weekdays
    assert weekdays[0].share > 0.5
    assert "weekdays" in report.to_html(audit)  # by its fields: templates of the part are not installed here


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_are_python(page):
    for block in blocks(page, "python"):
        ast.parse(block)
