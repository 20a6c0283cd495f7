"""As an attacker: from another site, under another name, without the token, with bodies and paths that are none."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from errata import workflow
from errata.app.access import Access
from errata.app.guard import LARGEST_BODY, Guard
from errata.app.server import create_app
from errata.core import Audit, InputError
from errata.people.records import Records
from support.asking import ask
from support.servers import ServerProcess

TOKEN = "a-token-of-some-length"
JSON = {"content-type": "application/json"}
ANSWER = {"queue": "s1", "item": "row-1", "person": "Ada", "task": "class", "answer": 0}
PATHS = ("/", "/slice/s1", "/slice/none", "/nowhere", "/static/base.css", "/static/none", "/thumb/0", "/thumb/x",
         "/api/map", "/api/openapi.json", "/curate", "/annotate/s1?task=none")  # fmt: skip


@pytest.fixture(scope="module")
def records(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    names = {found.id: found.name for found in audit.slices}
    with Records(tmp_path_factory.mktemp("guard"), fingerprint="f", slices=names) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(audit: Audit, records: Records) -> Guard:
    return create_app(audit, records)


@pytest.fixture
def locked(app: Guard) -> Guard:
    """Of each test its own: wrong tokens are counted."""
    return Guard(app.app, Access(None, TOKEN))


def raw(app: Guard, method: str, path: bytes, headers: list[tuple[bytes, bytes]], query: bytes = b"") -> dict[str, Any]:
    """What no client would send."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path.decode("latin-1"), "raw_path": path, "query_string": query,
             "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 8421),
             "client": ("127.0.0.1", 1), "root_path": ""}  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]


def saved(records: Records) -> int:
    return len(records.log())


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8421", "127.0.0.1.evil.example", "localhost.", "", "[::1", "a@localhost", "x y"],
)
def test_a_foreign_name_is_refused_also_for_reading(app: Guard, host: str) -> None:
    """A page elsewhere may point its own name at this machine (DNS rebinding)."""
    got = ask(app, "GET", "/", headers={"host": host})
    assert got.status_code == 400
    assert got.json()["detail"].startswith("This server is not called")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:8421", "127.0.0.1:8421"])
def test_the_machines_own_names_are_known(app: Guard, host: str) -> None:
    assert ask(app, "GET", "/static/base.css", headers={"host": host}).status_code == 200


def test_two_names_at_once_are_none(app: Guard) -> None:
    both = [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]
    assert raw(app, "GET", b"/", both)["status"] == 400
    assert raw(app, "GET", b"/", both[::-1])["status"] == 400
    assert raw(app, "GET", b"/", [])["status"] == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8422"},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:8421.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_cannot_write(app: Guard, records: Records, headers: dict[str, str]) -> None:
    before = saved(records)
    got = ask(app, "POST", "/api/annotations", json=ANSWER, headers=headers)
    assert (got.status_code, got.json()["detail"]) == (403, "A page of another site may not write here.")
    assert saved(records) == before


def test_its_own_page_and_a_program_can_write(app: Guard, records: Records) -> None:
    before = saved(records)
    own = {"origin": "http://127.0.0.1:8421", "sec-fetch-site": "same-origin"}
    assert ask(app, "POST", "/api/annotations", json=ANSWER, headers=own).status_code == 200
    assert ask(app, "POST", "/api/annotations", json=ANSWER).status_code == 200
    assert saved(records) == before + 2


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonp"]
)
def test_only_json_is_taken(app: Guard, kind: str) -> None:
    """What a form of another site can send without asking first is refused by its kind alone."""
    got = ask(app, "POST", "/api/annotations", content=b"{}", headers={"content-type": kind})
    assert (got.status_code, got.json()) == (415, {"detail": "Send JSON."})


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_write_nothing(app: Guard, method: str) -> None:
    assert ask(app, method, "/api/annotations", json=ANSWER).status_code == 405


@pytest.mark.parametrize("length", ["1048577", "99999999999999999999999", "-1", "x"])
def test_a_body_that_says_it_is_too_large_is_not_read(app: Guard, length: str) -> None:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", length.encode())]
    assert raw(app, "POST", b"/api/annotations", headers)["status"] == 413


def test_a_body_in_pieces_ends_where_it_is_too_large(app: Guard, records: Records) -> None:
    before, given = saved(records), 0

    async def pieces() -> Any:
        nonlocal given
        yield b'{"note": "'
        for _ in range(64):
            given += 1
            yield b"x" * (LARGEST_BODY // 16)

    got = ask(app, "POST", "/api/annotations", content=pieces(), headers=JSON)
    assert (got.status_code, got.json()["detail"]) == (413, "At most 1,048,576 bytes are taken at once.")
    assert given < 20
    assert saved(records) == before


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"queue": 1}', b'{"queue": "s1", "x": 2}',
     b'{"queue":"s1","item":"\\ud800","person":"a","task":"class","answer":0}',
     b'{"queue":"s1","item":"row-1","person":"a","task":"class","answer":NaN}',
     b'{"queue":"s1","item":"row-1","person":"a","task":"class","answer":99}',
     b'{"queue":"s1","item":"no-row","person":"a","task":"class","answer":0}',
     b'{"queue":"s1","item":"row-1","person":"\\u0000","task":"class","answer":0}'],
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["/api/annotations", "/api/hypotheses", "/api/lasso", "/api/decisions", "/api/edits", "/api/drawn"]
)
def test_a_malformed_body_is_answered_with_one_sentence(app: Guard, records: Records, path: str, body: bytes) -> None:
    before = saved(records)
    got = ask(app, "POST", path, content=body, headers=JSON)
    assert got.status_code in (400, 404, 422), got.text
    assert isinstance(got.json()["detail"], str)
    assert len(got.json()["detail"]) < 500
    assert saved(records) == before


@pytest.mark.parametrize(
    "path",
    ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2f..%2fapp%2fguard.py", "/static//etc/passwd",
     "/static/%2fetc%2fpasswd", "/static/base.css%00.js", "/static/..\\guard.py", "/static/", "/thumb/../../etc/passwd",
     "/thumb/..%2f..%2fetc%2fpasswd", "/thumb/-1", "/thumb/1000", "/thumb/99999999999999999999", "/thumb/0x1",
     "/slice/..%2f..%2fetc%2fpasswd", "/slice/s1/row/..%2f..%2fetc%2fpasswd", "/slice/s1/row//etc/passwd",
     "/api/rows/..%2f..%2fetc%2fpasswd", "/api/queues/..%2fs1?person=a", "/records.sqlite", "/audit.json",
     "/evaluation/rows.parquet", "/docs", "/redoc", "/openapi.json"],
)  # fmt: skip
def test_nothing_beside_the_pages_is_served(app: Guard, path: str) -> None:
    headers = [(b"host", b"127.0.0.1")]
    got = ask(app, "GET", path)
    assert got.status_code in (404, 422), path
    assert "root:" not in got.text
    assert "LARGEST_BODY" not in got.text
    assert raw(app, "GET", path.partition("?")[0].encode(), headers)["status"] in (404, 422)


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(app: Guard, locked: Guard, path: str) -> None:
    refused = ask(app, "GET", path, headers={"host": "evil.example"})
    for got in (
        ask(app, "GET", path),
        refused,
        ask(locked, "GET", path),
        ask(app, "POST", path),
        ask(locked, "GET", f"{path.partition('?')[0]}?token={TOKEN}"),
    ):
        policy = got.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "no-referrer"
        assert got.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in got.headers


def test_a_failure_inside_has_headers_and_a_sentence_too(audit: Audit, records: Records) -> None:
    app = create_app(audit, records)
    app.app.state.broken = True

    @app.app.get("/api/broken")
    def broken() -> None:
        raise RuntimeError("secret of the house")

    got = ask(app, "GET", "/api/broken")
    assert got.status_code == 500
    assert "content-security-policy" in got.headers
    assert "secret" not in got.text
    assert "RuntimeError" in got.json()["detail"]


@pytest.mark.parametrize("said", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper()])
def test_without_the_token_nothing_is_read_or_written(locked: Guard, records: Records, said: str | None) -> None:
    before = saved(records)
    ways: list[dict[str, Any]] = [{}]
    if said is not None:
        ways = [
            {"params": {"token": said}},
            {"headers": {"authorization": f"Bearer {said}"}},
            {"headers": {"cookie": f"errata-session-8421={said}"}},
        ]
    for way in ways:
        assert ask(locked, "GET", "/", **way).status_code == 401
        assert ask(locked, "GET", "/thumb/0", **way).status_code == 401
        assert ask(locked, "POST", "/api/annotations", json=ANSWER, **way).status_code == 401
    assert "token" in ask(locked, "GET", "/").json()["detail"]
    assert saved(records) == before


def test_the_token_leaves_the_address_for_a_cookie(locked: Guard) -> None:
    got = ask(locked, "GET", f"/slice/s1?token={TOKEN}&theme=dark")
    assert (got.status_code, got.headers["location"]) == (303, "/slice/s1?theme=dark")
    cookie, _, attributes = got.headers["set-cookie"].partition(";")
    assert re.fullmatch(r"errata-session-8421=[\w-]{43}", cookie)
    assert attributes == " Path=/; HttpOnly; SameSite=Strict"
    assert got.headers["cache-control"] == "no-store"
    assert ask(locked, "GET", "/static/base.css", headers={"cookie": cookie}).status_code == 200
    assert ask(locked, "GET", "/static/base.css", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_odd_cookies_of_other_servers_do_not_hide_ours(locked: Guard) -> None:
    ours = ask(locked, "GET", f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    jar = f'a[b]={{"x": 1}}; =; errata-session-9={"z" * 9}; {ours}; é'
    assert (
        raw(locked, "GET", b"/static/base.css", [(b"host", b"127.0.0.1:8421"), (b"cookie", jar.encode())])["status"]
        == 200
    )


@pytest.mark.parametrize(
    "path",
    [
        b"//evil.example/x",
        b"/\\evil.example",
        b"///evil.example",
        b"/\\/evil.example",
        b"/a\r\nset-cookie: x=1",
        b"/\xc3\xa9",
    ],
)
def test_the_way_on_never_leads_elsewhere(locked: Guard, path: bytes) -> None:
    got = raw(locked, "GET", path, [(b"host", b"127.0.0.1:8421")], query=f"token={TOKEN}".encode())
    where = dict(got["headers"])[b"location"].decode()
    assert got["status"] == 303
    assert re.fullmatch(r"/(?![/\\])[!-~]*", where), where


def test_a_server_for_any_name_must_have_a_token(audit: Audit, records: Records) -> None:
    with pytest.raises(InputError, match="must ask for a token"):
        create_app(audit, records, access=Access(None))


@pytest.mark.parametrize(
    "token", ["", "short", "with space and more", "semi;colon;token", "line\r\nend-of-it", "ünïcödé-token"]
)
def test_a_token_that_is_none_is_refused(audit: Audit, records: Records, token: str) -> None:
    """An empty one would let everybody in."""
    with pytest.raises(InputError, match="a token has 8 to 200"):
        create_app(audit, records, access=Access(None, token))


def test_a_socket_of_another_kind_is_closed(app: Guard) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    asyncio.run(app({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_another_address_asks_for_a_token_and_answers_to_every_name(audit: Audit, tmp_path: Path) -> None:
    """`errata serve --host 0.0.0.0`, whole: what it prints opens it, and nothing else does."""
    workflow.save(audit, tmp_path / "audit")
    with ServerProcess(tmp_path / "audit", "--host", "0.0.0.0") as serving:
        found = re.fullmatch(rf"http://{re.escape(socket.gethostname())}:(\d+)/\?token=([\w-]{{22}})", serving.address)
        assert found, serving.address
        port, token = found.groups()
        for name in (f"127.0.0.1:{port}", f"somewhere.example:{port}"):
            headers = {"host": name}
            assert httpx.get(f"http://127.0.0.1:{port}/", headers=headers).status_code == 401
            got = httpx.get(f"http://127.0.0.1:{port}/?token={token}", headers=headers)
            assert got.status_code == 303
            cookie = got.headers["set-cookie"].partition(";")[0]
            opened = httpx.get(f"http://127.0.0.1:{port}/", headers={**headers, "cookie": cookie})
            assert opened.status_code == 200
            assert token not in opened.text
        with socket.create_connection(("127.0.0.1", int(port))) as line:  # what no client would send
            line.sendall(
                b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                + token.encode()
                + b"\r\nConnection: close\r\n\r\n"
            )
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert b" 404 " in answer.partition(b"\r\n")[0]
        assert b"root:" not in answer
