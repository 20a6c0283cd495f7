"""Who may ask: this machine, or who has the token; nobody through another site's page.

One layer of plain ASGI around the app. Reading and writing are refused for a foreign host name (a page elsewhere may
point its name at this address), writing for a foreign origin, and everything without the token where one is asked for,
but the form that takes it (`login_form.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from ..core import InputError
from . import login_form

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READS = ("GET", "HEAD")
LARGEST_BODY = 1 << 20
BODY_SECONDS = 30.0  # in which a body must have come
ASKS = "This server asks for its token: open the address that `errata serve` printed."
COOKIE = "errata-token"
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def too_large(most: int) -> tuple[int, str]:
    """Status and message for a body of more than `most` bytes."""
    return 413, f"At most {most:,} bytes are taken at once."


TOO_LARGE = too_large(LARGEST_BODY)
TOO_SLOW = (408, "The request did not arrive in time.")


class Guard:
    """hosts: names that a request may be addressed to; None, where the token alone says who may ask.
    token: asked of everybody, where it is given."""

    def __init__(self, app: Any, hosts: tuple[str, ...] | None = LOOPBACK, token: str | None = None):
        if hosts is None and token is None:
            raise InputError("a server that answers to any name must ask for a token; give one")
        self.app = app
        self.hosts = hosts
        self.token = None if token is None else checked(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        body = b""
        if refusal is None and scope["method"] not in READS:
            body, refusal = await _read_in_time(receive)
        if refusal is not None:
            await self._refuse(scope, headers, send, refusal)
        elif self._is_form(scope):
            await self._enter(headers, body, send)
        elif (cookie := self._new_cookie(scope, headers)) is not None:
            await _redirect(send, login_form.local(scope["path"], _query(scope)), cookie)
        else:
            await self.app(scope, _after(body, receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        names = [value for name, value in scope["headers"] if name == b"host"]
        host = _name_of(headers.get("host", "")) if len(names) == 1 else ""
        if not host or (self.hosts is not None and host not in self.hosts):
            return 400, f"This server is not called {host[:80]!r}."
        if self._is_form(scope):
            return _unwritten(headers, login_form.FORM, "Send the form.", login_form.LARGEST_FORM)
        if self.token is not None and not self._has_token(scope, headers):
            return 401, ASKS
        return None if scope["method"] in READS else _unwritten(headers)

    def _is_form(self, scope: Scope) -> bool:
        """Somebody types the token: the one thing that may be sent without it."""
        return self.token is not None and (scope["method"], scope["path"]) == ("POST", login_form.PATH)

    async def _refuse(self, scope: Scope, headers: dict[str, str], send: Send, refusal: tuple[int, str]) -> None:
        if refusal[0] == 401 and login_form.is_asked(scope["method"], scope["path"], headers):
            body, own = login_form.page(scope["path"], _query(scope), wrong="token" in _parse_query(scope))
            await _send(send, 401, body, own)
        else:
            await _answer(send, *refusal)

    async def _enter(self, headers: dict[str, str], body: bytes, send: Send) -> None:
        token, path, query = login_form.read(body)
        if self._is_token(token):
            await _redirect(send, login_form.local(path, query), self._cookie_of(headers))
        else:
            await _send(send, 401, *login_form.page(path, query, wrong=True))

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        tokens = [
            headers.get("authorization", "").removeprefix("Bearer "),
            *(value for name, value in _cookies(headers) if name == _cookie(headers)),
            _parse_query(scope).get("token", [""])[0],
        ]
        return any(map(self._is_token, tokens))

    def _is_token(self, text: str) -> bool:
        assert self.token is not None
        return hmac.compare_digest(text.encode(), self.token.encode())

    def _new_cookie(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """The token leaves the address bar, where it would be copied along with a link."""
        if self.token is None or scope["method"] != "GET" or "token" not in _parse_query(scope):
            return None
        return self._cookie_of(headers)

    def _cookie_of(self, headers: dict[str, str]) -> str:
        return f"{_cookie(headers)}={self.token}; Path=/; HttpOnly; SameSite=Strict"


def _query(scope: Scope) -> str:
    text: str = scope.get("query_string", b"").decode("latin-1")
    return text


def _parse_query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(_query(scope), keep_blank_values=True)


def _cookie(headers: dict[str, str]) -> str:
    """By port: browsers hand one server's cookies to every other of the same machine."""
    return f"{COOKIE}-{headers.get('host', '').rpartition(':')[2]}"


def _cookies(headers: dict[str, str]) -> list[tuple[str, str]]:
    """As sent; another server's odd ones must not hide ours."""
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return [(name, value) for name, _, value in pairs]


def checked(token: str) -> str:
    """One that a cookie and an address can carry, and that is no invitation."""
    if not re.fullmatch(r"[A-Za-z0-9_.~-]{8,200}", token):
        raise InputError(f"a token has 8 to 200 letters, digits or signs of `-_.~`; got {len(token)} characters")
    return token


def _name_of(host: str) -> str:
    """The name in a Host header, without its port; empty where it is none."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", host.lower())
    return match[1].strip("[]") if match else ""


def _unwritten(
    headers: dict[str, str], kind: str = "application/json", want: str = "Send JSON.", most: int = LARGEST_BODY
) -> tuple[int, str] | None:
    """Why this may not be written, as far as its headers tell."""
    if not _same_origin(headers):
        return 403, "A page of another site may not write here."
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        return 415, want
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15 or int(length) > most:
        return too_large(most)
    return None


def _same_origin(headers: dict[str, str]) -> bool:
    """Browsers always say where a write comes from; a program that is no browser says nothing."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return origin is None or origin.lower().partition("://")[2] == headers.get("host", "").lower()


async def _read_in_time(receive: Receive) -> tuple[bytes, tuple[int, str] | None]:
    """The body, or why it is not taken."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read_body(receive)
    except TimeoutError:
        return b"", TOO_SLOW
    if body is None:
        return b"", TOO_LARGE
    return body, None


async def _read_body(receive: Receive) -> bytes | None:
    """All of it; None where it is too long, whatever it said of its length."""
    parts = []
    length = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        more = message.get("more_body", False)
        if length > LARGEST_BODY:
            return None
    return b"".join(parts)


def _after(body: bytes, receive: Receive) -> Receive:
    """What was read already, and then whatever comes."""
    passed_on = False

    async def take() -> Message:
        nonlocal passed_on
        if passed_on:
            return await receive()
        passed_on = True
        return {"type": "http.request", "body": body, "more_body": False}

    return take


def _with_headers(send: Send) -> Send:
    async def give(message: Message) -> None:
        if message["type"] == "http.response.start":
            named = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in named)]
        await send(message)

    return give


async def _answer(send: Send, status: int, words: str) -> None:
    await _send(send, status, json.dumps({"detail": words}).encode(), ((b"content-type", b"application/json"),))


async def _send(send: Send, status: int, body: bytes, own: login_form.Headers) -> None:
    named = {name for name, _ in own}
    others = [pair for pair in HEADERS if pair[0] not in named]
    headers = [(b"content-length", str(len(body)).encode()), *own, *others]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, where: str, cookie: str) -> None:
    headers = [(b"location", where.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 303, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": b""})
