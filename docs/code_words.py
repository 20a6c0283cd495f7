"""What code says of itself: its docstrings, comments, types and signatures, as words and tables of a page."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import tokenize
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

NOTE = "<!-- Written by docs/generate.py; change the code, not this page. -->"


def paragraph(text: str) -> str:
    return " ".join(text.split())


def cell(text: str) -> str:
    return paragraph(text).replace("|", "\\|")


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(header)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return [*lines, ""]


def sections_of(text: str) -> dict[str, str]:
    """The numpydoc sections of a docstring: title -> what stands under its line of dashes."""
    parts = re.split(r"^(\S[^\n]*)\n-{3,}$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(inspect.cleandoc, parts[2::2]), strict=True))


def listed_words(text: str) -> dict[str, str]:
    """What the sections Parameters and Attributes say of each name."""
    words = {}
    sections = sections_of(text)
    for title in ("Parameters", "Attributes"):
        for entry in re.split(r"\n(?=\S)", sections.get(title, "")):
            head, _, body = entry.partition("\n")
            for name in head.partition(":")[0].split(","):
                words[name.strip("`* ")] = paragraph(body)
    return words


def words_of(text: str, names: Iterable[str]) -> dict[str, str]:
    """What a docstring says of each name, in a numpydoc section, or as `name: words`, also within a line."""
    listed = listed_words(text)
    if listed.keys() & set(names):
        return {name: listed[name] for name in names if name in listed}
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not known:
        return {}
    one = rf"`{{0,2}}(?:{known})`{{0,2}}(?: \([^)\n]*\))?"
    heads = list(
        re.finditer(rf"(?:^|(?<=[.;\n])) *(?:- )?({one}(?:(?:,\s+| and ){one})*) ?:\s", text, flags=re.MULTILINE)
    )
    words: dict[str, str] = {}
    for head, following in zip_longest(heads, heads[1:]):
        until = len(text) if following is None else following.start()
        body = re.split(r"\n\s*\n|\n\S[^\n]*\n-{3,}", text[head.end() : until])[0]
        for name in re.findall(rf"\b(?:{known})\b", re.sub(r"\([^)]*\)", "", head.group(1))):
            words.setdefault(name, paragraph(body).rstrip(";, "))
    return words


def prose_of(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


def first_sentence(documented: Any) -> str:
    text = paragraph(prose_of(documented).partition("\n\n")[0])
    return re.split(r"(?<=[.!?]) (?=[A-Z`\"])", text)[0]


def lead_of(text: str, words: Mapping[str, str]) -> str:
    """The paragraphs of a docstring before the first that lists parameters, sections or examples."""
    paragraphs = []
    for part in text.split("\n\n"):
        listed = any(re.match(rf"[`\- ]*{re.escape(name)}\b[^:\n]*: ", part.strip()) for name in words)
        if listed or re.match(r"[^\n]*\n-{3,}", part) or part.lstrip().startswith(">>>"):
            break
        paragraphs.append(paragraph(part))
    return "\n\n".join(paragraphs)


def examples_of(text: str) -> list[str]:
    """The `>>>` blocks of a docstring."""
    blocks: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith(">>>"):
            if not inside:
                blocks.append([])
            inside = True
        elif not line.strip():
            inside = False
        if inside:
            blocks[-1].append(line)
    return ["```pycon\n" + textwrap.dedent("\n".join(block)) + "\n```" for block in blocks]


def comments_of(cls: type) -> dict[str, str]:
    """What stands beside, above or below each field of a class in its source."""
    source = textwrap.dedent(inspect.getsource(cls))
    lines = source.splitlines()
    comments = {}
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ").strip()
    body = ast.parse(source).body[0].body
    words = {}
    for statement, following in zip_longest(body, body[1:]):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        parts = [comments[line] for line in range(statement.lineno, statement.end_lineno + 1) if line in comments]
        if not parts:
            line = statement.lineno - 1
            while line in comments and lines[line - 1].lstrip().startswith("#"):
                parts.insert(0, comments[line])
                line -= 1
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            parts.append(inspect.cleandoc(str(following.value.value)))
        if parts:
            words[statement.target.id] = paragraph(" ".join(parts))
    return words


def fields_of(cls: type) -> dict[str, tuple[str, str]]:
    """name -> (type, words) of every field of a dataclass, inherited ones too."""
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base):
            names = [field.name for field in dataclasses.fields(base)]
            comments |= comments_of(base) | words_of(prose_of(base), names)
    return {field.name: (type_name(field.type), comments.get(field.name, "")) for field in dataclasses.fields(cls)}


def type_name(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def signature(name: str, thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    text = str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text).replace("<factory>", "...")
    if len(name + text) <= 100:
        return name + text
    inner = [re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", str(p)).replace("<factory>", "...") for p in parameters]
    if any(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters):
        at = next(i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.KEYWORD_ONLY)
        inner.insert(at, "*")
    return f"{name}(\n    " + ",\n    ".join(inner) + ",\n)"
