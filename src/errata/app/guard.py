"""The door of every app: it asks for a token, takes it, and lets nobody write through another site's page.

One layer of plain ASGI around the app. Reading and writing are refused for a foreign host name (a page elsewhere may
point its name at this address), writing for a foreign origin, and everything without a token where one is asked for
(`access.py`), but the form that takes it (`login_form.py`). Who has a token of their own writes in their own name
(`own_name.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, quote

from . import login_form, own_name
from .access import WRONG_SECONDS, Access, TooManyWrong, Visitor

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]
Refusal = tuple[int, str]

READS = ("GET", "HEAD")
COUNTS = ("/api/lasso",)  # posts that save nothing
LARGEST_BODY = 1 << 20
BODY_SECONDS = 30.0  # in which a body must have come
ASKS = "This server asks for its token: open the address that `errata serve` printed."
ASKS_PEOPLE = (
    "This server asks for your own token: open it in a browser, or send the header `Authorization: Bearer TOKEN`."
)
TOO_MANY = f"Too many wrong tokens came. None is looked at for {WRONG_SECONDS:.0f} seconds; try again after that."
ONLY_SHOWS = "This server only shows: it was started with --read-only, and saves nothing."
COOKIE = "errata-session"
PERSON_COOKIE = "errata-person"  # for the pages, which show it; it opens nothing
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


def too_large(most: int) -> Refusal:
    """Status and message for a body of more than `most` bytes."""
    return 413, f"At most {most:,} bytes are taken at once."


TOO_LARGE = too_large(LARGEST_BODY)
TOO_SLOW = (408, "The request did not arrive in time.")


class Guard:
    """An app that only those may ask whom `access` knows.

    Parameters
    ----------
    app : ASGI app
        What is asked.
    access : Access, optional
        Default: everybody on this machine, by its own names.
    """

    def __init__(self, app: Any, access: Access | None = None) -> None:
        self.app = app
        self.access = access or Access()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        visitor, refusal = self._admit(scope, headers)
        body = b""
        if refusal is None and scope["method"] not in READS:
            body, refusal = await _read_in_time(receive)
        if refusal is None and visitor is not None and visitor.person is not None and not self._is_form(scope):
            body, refusal = _in_own_name(scope, body, visitor.person)
        if refusal is not None:
            await self._refuse(scope, headers, send, refusal)
        elif self._is_form(scope):
            await self._take_form(scope, headers, body, send)
        elif visitor is not None and self.access.asks and scope["path"] == login_form.END:
            page, own = login_form.sign_out_page(visitor.person or "")
            await _send(send, 200, page, own)
        elif visitor is not None and self._shows_token(scope):
            self._close_sessions(headers)
            cookie = self._session_cookie(headers, visitor)
            await _redirect(send, login_form.local(scope["path"], _query(scope)), [cookie])
        else:
            cookies = self._person_cookie(scope, headers, visitor)
            await self.app(scope, _after(body, receive), _with_headers(send, cookies))

    def _admit(self, scope: Scope, headers: Headers) -> tuple[Visitor | None, Refusal | None]:
        """Who asks, and why it is refused, as far as the headers tell."""
        names = [value for name, value in scope["headers"] if name == b"host"]
        host = _name_of(headers.get("host", "")) if len(names) == 1 else ""
        if not host or (self.access.hosts is not None and host not in self.access.hosts):
            return None, (400, f"This server is not called {host[:80]!r}.")
        if self._is_form(scope):
            return None, _unwritten(headers, login_form.FORM, "Send the form.", login_form.LARGEST_FORM)
        try:
            visitor = self._visitor(scope, headers)
        except TooManyWrong:
            return None, (429, TOO_MANY)
        if visitor is None:
            asks = ASKS_PEOPLE if self.access.has_people else ASKS
            return None, (401, asks)
        return visitor, self._unwritable(scope, headers)

    def _unwritable(self, scope: Scope, headers: Headers) -> Refusal | None:
        if scope["method"] in READS:
            return None
        if self.access.read_only and scope["path"] not in COUNTS:
            return 403, ONLY_SHOWS
        return _unwritten(headers)

    def _visitor(self, scope: Scope, headers: Headers) -> Visitor | None:
        """Who asks: by a session, or by a token in a header or in the address."""
        if not self.access.asks:
            return Visitor()
        sessions = map(self.access.session_of, self._session_numbers(headers))
        session = next((visitor for visitor in sessions if visitor is not None), None)
        token = self._token_in_address(scope, headers)
        if session is not None and not token:
            return session
        token = token or headers.get("authorization", "").removeprefix("Bearer ")
        try:
            return self.access.visitor_of(token, _address(scope)) or session
        except TooManyWrong:
            if session is None:
                raise
            return session

    def _token_in_address(self, scope: Scope, headers: Headers) -> str:
        """Of people with names, a link of another site must not sign one in as another of them."""
        if self.access.has_people and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return ""
        return _parse_query(scope).get("token", [""])[0]

    def _session_numbers(self, headers: Headers) -> list[str]:
        return [value for name, value in _cookies(headers) if name == _cookie(COOKIE, headers)]

    def _is_form(self, scope: Scope) -> bool:
        """Somebody types a token, or signs out: what may be sent without one."""
        return self.access.asks and scope["method"] == "POST" and scope["path"] in (login_form.PATH, login_form.END)

    def _shows_token(self, scope: Scope) -> bool:
        """The token leaves the address bar, where it would be copied along with a link."""
        return self.access.asks and scope["method"] == "GET" and "token" in _parse_query(scope)

    async def _refuse(self, scope: Scope, headers: Headers, send: Send, refusal: Refusal) -> None:
        status, words = refusal
        if status in (401, 429) and login_form.is_asked(scope["method"], scope["path"], headers):
            wrong = "wrong" if "token" in _parse_query(scope) else ""
            problem = "many" if status == 429 else wrong
            await self._show_form(send, status, scope["path"], _query(scope), problem)
        else:
            await _answer(send, status, words)

    async def _show_form(self, send: Send, status: int, path: str, query: str, problem: str) -> None:
        body, own = login_form.page(path, query, problem, people=self.access.has_people)
        await _send(send, status, body, own)

    async def _take_form(self, scope: Scope, headers: Headers, body: bytes, send: Send) -> None:
        if scope["path"] == login_form.END:
            self._close_sessions(headers)
            await _redirect(send, "/", [self._ended(name, headers) for name in (COOKIE, PERSON_COOKIE)])
            return
        await self._enter(scope, headers, body, send)

    async def _enter(self, scope: Scope, headers: Headers, body: bytes, send: Send) -> None:
        token, path, query = login_form.read(body)
        try:
            visitor = self.access.visitor_of(token, _address(scope))
        except TooManyWrong:
            await self._show_form(send, 429, path, query, "many")
            return
        if visitor is None:
            await self._show_form(send, 401, path, query, "wrong")
            return
        self._close_sessions(headers)
        await _redirect(send, login_form.local(path, query), [self._session_cookie(headers, visitor)])

    def _close_sessions(self, headers: Headers) -> None:
        for number in self._session_numbers(headers):
            self.access.close_session(number)

    def _session_cookie(self, headers: Headers, visitor: Visitor) -> str:
        number = self.access.open_session(visitor)
        return f"{_cookie(COOKIE, headers)}={number}; Path=/; HttpOnly; SameSite=Strict{self._secure()}"

    def _person_cookie(self, scope: Scope, headers: Headers, visitor: Visitor | None) -> list[tuple[bytes, bytes]]:
        """A page shows who is signed in, and no other name that a cookie was left with."""
        if scope["method"] != "GET" or "text/html" not in headers.get("accept", ""):
            return []
        name = _cookie(PERSON_COOKIE, headers)
        before = next((value for key, value in _cookies(headers) if key == name), "")
        person = quote(visitor.person, safe="") if visitor is not None and visitor.person is not None else ""
        if person == before:
            return []
        if not person:
            return [(b"set-cookie", self._ended(PERSON_COOKIE, headers).encode())]
        return [(b"set-cookie", f"{name}={person}; Path=/; SameSite=Strict{self._secure()}".encode())]

    def _ended(self, name: str, headers: Headers) -> str:
        return f"{_cookie(name, headers)}=; Path=/; SameSite=Strict; Max-Age=0{self._secure()}"

    def _secure(self) -> str:
        return "; Secure" if self.access.secure else ""


def sign_out_address(access: Access | None) -> str:
    """Where one signs out; empty where nobody signs in."""
    return login_form.END if access is not None and access.asks else ""


def _in_own_name(scope: Scope, body: bytes, person: str) -> tuple[bytes, Refusal | None]:
    """The body as the app is given it, and why the request is refused."""
    refusal = own_name.refused(person, list(_parse_query(scope).get(own_name.FIELD, [])))
    if refusal is not None or scope["method"] in READS:
        return body, refusal
    return own_name.signed(person, body)


def _address(scope: Scope) -> str:
    """The machine that asks."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _query(scope: Scope) -> str:
    text: str = scope.get("query_string", b"").decode("latin-1")
    return text


def _parse_query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(_query(scope), keep_blank_values=True)


def _cookie(name: str, headers: Headers) -> str:
    """By port: browsers hand one server's cookies to every other of the same machine."""
    return f"{name}-{headers.get('host', '').rpartition(':')[2]}"


def _cookies(headers: Headers) -> list[tuple[str, str]]:
    """As sent; another server's odd ones must not hide ours."""
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return [(name, value) for name, _, value in pairs]


def _name_of(host: str) -> str:
    """The name in a Host header, without its port; empty where it is none."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", host.lower())
    return match[1].strip("[]") if match else ""


def _unwritten(
    headers: Headers, kind: str = "application/json", want: str = "Send JSON.", most: int = LARGEST_BODY
) -> Refusal | None:
    """Why this may not be written, as far as its headers tell."""
    if not _same_origin(headers):
        return 403, "A page of another site may not write here."
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        return 415, want
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15 or int(length) > most:
        return too_large(most)
    return None


def _same_origin(headers: Headers) -> bool:
    """Browsers always say where a write comes from; a program that is no browser says nothing."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return origin is None or origin.lower().partition("://")[2] == headers.get("host", "").lower()


async def _read_in_time(receive: Receive) -> tuple[bytes, Refusal | None]:
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


def _with_headers(send: Send, cookies: list[tuple[bytes, bytes]]) -> Send:
    async def give(message: Message) -> None:
        if message["type"] == "http.response.start":
            named = {name for name, _ in message["headers"]}
            ours = (pair for pair in HEADERS if pair[0] not in named)
            message["headers"] = [*message["headers"], *ours, *cookies]
        await send(message)

    return give


async def _answer(send: Send, status: int, words: str) -> None:
    own: login_form.Headers = ((b"content-type", b"application/json"),)
    if status == 429:
        own += ((b"retry-after", f"{WRONG_SECONDS:.0f}".encode()),)
    await _send(send, status, json.dumps({"detail": words}).encode(), own)


async def _send(send: Send, status: int, body: bytes, own: login_form.Headers) -> None:
    named = {name for name, _ in own}
    others = [pair for pair in HEADERS if pair[0] not in named]
    headers = [(b"content-length", str(len(body)).encode()), *own, *others]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, where: str, cookies: list[str]) -> None:
    headers = [(b"location", where.encode()), (b"cache-control", b"no-store")]
    headers += [(b"set-cookie", cookie.encode()) for cookie in cookies]
    await send({"type": "http.response.start", "status": 303, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": b""})
