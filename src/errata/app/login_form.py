"""The token, asked for by a form: it comes in the body of a post, and no address ever holds it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote, urlencode

from ..report import login_page

PATH = "/token"
END = "/sign-out"
FORM = "application/x-www-form-urlencoded"
LARGEST_FORM = 8192
DATA = ("/api/", "/static/", "/thumb/", "/sample/")  # asked for by programs, which read a sentence

Headers = tuple[tuple[bytes, bytes], ...]


def is_asked(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """A person asks for a page, and may be shown the form."""
    return method == "GET" and "text/html" in headers.get("accept", "") and not path.startswith(DATA)


def page(path: str, query: str, problem: str, *, people: bool = False) -> tuple[bytes, Headers]:
    """The form, and its headers.

    path, query: where it leads. problem: "wrong" after a wrong token, "many" after too many. people: everybody has a
    token of their own.
    """
    return _with_headers(login_page.page(PATH, local(path, query), problem, people))


def sign_out_page(name: str) -> tuple[bytes, Headers]:
    """The form that ends a session, and its headers; name: of who is signed in, empty where the token has none."""
    return _with_headers(login_page.sign_out_page(END, name))


def _with_headers(text: str) -> tuple[bytes, Headers]:
    return text.encode(), (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", login_page.policy().encode()),
        # Without a referrer a browser names no origin either, and a post without one is not known to be ours.
        (b"referrer-policy", b"same-origin"),
    )


def read(body: bytes) -> tuple[str, str, str]:
    """The token that was typed, and the path and query that were asked for before."""
    text = body[:LARGEST_FORM].decode("latin-1")  # a body in pieces may have said nothing of its length
    fields = {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
    path, _, query = fields.get("next", "/").partition("?")
    return fields.get("token", "").strip(), unquote(path), query


def local(path: str, query: str) -> str:
    """An address of this server, whatever was asked: no other host, no line's end, and no token."""
    rest = {name: values for name, values in parse_qs(query, keep_blank_values=True).items() if name != "token"}
    if path in (PATH, END):
        path = "/"  # or the form would lead to itself, or out again
    # //elsewhere and /\elsewhere would leave this server
    address = "/" + quote(path.lstrip("/\\"), safe="/")
    if rest:
        address += f"?{urlencode(rest, doseq=True)}"
    return address
