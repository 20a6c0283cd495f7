"""One word for each idea, in all that a page, a terminal or a document says (the table of CONTRIBUTING)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "errata"
NOT = (
    "discover(?:y)? rows|confirm rows|beyond what its class|as the model.s confidence already tells|what silence means|"
    "near-duplicates?|folded|stand-ins?|the same, elsewhere|rows to settle|nobody said|as somebody|guess(?:es|ed)?|"
    "stor(?:y|ies)|mend(?:s|ed|ing)?|cures?|cured|gone on with|begun|foretells?|cannot be had|pictures?|exams?|lens|"
    "taught|learnt|fixable"
)
WORDS = re.compile(rf"\b(?:{NOT})\b", re.IGNORECASE)
# Of an older version's folder, or of code that a sentence quotes.
ALLOWED = ("audits of version 0.1 call it a stand-in",)


def read_texts(path: Path) -> Iterator[str]:
    """What a file says to a person: text between tags, or strings with more than one word."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        yield re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", text, flags=re.DOTALL)
        yield from re.findall(r'(?:title|aria-label|placeholder|alt)="([^"]*)"', text)
    elif path.suffix == ".js":
        code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
        strings = re.findall(r"\"([^\"\n]*)\"|`([^`]*)`", code)
        yield from (re.sub(r"\$\{.*?\}", " ", first or second) for first, second in strings)
    else:
        yield from _python_texts(ast.parse(text))


def _python_texts(tree: ast.Module) -> Iterator[str]:
    """Strings, without docstrings, which nobody sees on a page."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr):
            docstrings.add(id(node.body[0].value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def forbidden(text: str) -> list[str]:
    """Words of a text that have a plainer one; a single word is a key or a name of code, not a sentence."""
    for words in ALLOWED:
        text = text.replace(words, "")
    return WORDS.findall(text) if " " in text.strip() else []


FILES = [path for suffix in ("html", "js", "py") for path in sorted(SOURCE.rglob(f"*.{suffix}"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_is_said_is_said_in_plain_words(path: Path) -> None:
    assert [(word, text[:80]) for text in read_texts(path) for word in forbidden(text)] == []


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.html", "<p title='x'>3 near-duplicates {{ n }}</p>", "near-duplicates"),
        ("a.html", '<p aria-label="Rows to settle">x</p>', "Rows to settle"),
        ("a.js", "const words = `as somebody ${n}`;", "as somebody"),
        ("a.py", 'def f(n):\n    """A guess."""\n    return f"{n} guesses tested"\n', "guesses"),
    ],
)
def test_a_word_that_is_not_plain_is_found(tmp_path: Path, name: str, content: str, word: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert [found for text in read_texts(path) for found in forbidden(text)] == [word]


def test_keys_and_code_are_not_sentences(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('facts = {"folded": 1, "pictures": 2}\n')
    assert [found for text in read_texts(path) for found in forbidden(text)] == []
