"""The token typed into a form: what is shown, what is taken, and what is refused."""

from __future__ import annotations

import hashlib
import html
import logging
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import pytest

from errata.app.access import Access
from errata.app.guard import Guard
from errata.app.server import create_app
from errata.core import Audit
from errata.people.records import Records
from support.asking import ask

TOKEN = "a-token-of-some-length"
PAGE = {"accept": "text/html,application/xhtml+xml"}
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8421"}
HOSTILE = ("//elsewhere.example/x", "\\\\elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example/",
           "/a\r\nset-cookie: x=y", "javascript:alert(1)")  # fmt: skip


@pytest.fixture(scope="module")
def served(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    names = {found.id: found.name for found in audit.slices}
    with Records(tmp_path_factory.mktemp("door"), fingerprint="f", slices=names) as records:
        yield create_app(audit, records)


@pytest.fixture
def locked(served: Guard) -> Guard:
    """Of each test its own: wrong tokens are counted."""
    return Guard(served.app, Access(("127.0.0.1",), TOKEN))


def enter(app: Guard, token: str, next: str = "/", **headers: str) -> httpx.Response:
    body = urlencode({"token": token, "next": next})
    return ask(app, "POST", "/token", content=body, headers={**FORM, **headers})


def test_a_person_is_shown_the_form_and_a_program_a_sentence(locked: Guard, audit: Audit) -> None:
    got = ask(locked, "GET", "/slice/s1?theme=dark", headers=PAGE)
    assert got.status_code == 401
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    assert got.headers["cache-control"] == "no-store"
    assert '<form class="login" method="post" action="/token">' in got.text
    assert 'name="next" value="/slice/s1?theme=dark"' in got.text
    assert "That is not the token." not in got.text
    for told in (audit.slices[0].name, "1,000 rows", "400 rows", TOKEN):
        assert told not in got.text.partition("</style>")[2], "nothing of the audit is told"
    for path in ("/api/map", "/static/base.css", "/thumb/0"):
        assert "token" in ask(locked, "GET", path, headers=PAGE).json()["detail"]
    assert "token" in ask(locked, "GET", "/").json()["detail"]


def test_the_form_runs_its_own_style_and_no_script(locked: Guard) -> None:
    got = ask(locked, "GET", "/", headers=PAGE)
    policy = got.headers["content-security-policy"]
    style = re.search(r"<style>(.*)</style>", got.text, re.DOTALL)
    assert style is not None
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert got.headers["referrer-policy"] == "same-origin", "else a browser would hide the form's origin"
    assert got.headers["x-content-type-options"] == "nosniff"


def test_the_right_token_becomes_a_cookie_and_leads_on(locked: Guard) -> None:
    got = enter(locked, f" {TOKEN} ", "/slice/s1?theme=dark&token=old")
    assert (got.status_code, got.headers["location"]) == (303, "/slice/s1?theme=dark")
    cookie, _, attributes = got.headers["set-cookie"].partition(";")
    assert attributes == " Path=/; HttpOnly; SameSite=Strict"
    assert TOKEN not in cookie, "the cookie is not the token"
    assert ask(locked, "GET", "/slice/s1", headers={"cookie": cookie}).status_code == 200
    again = ask(locked, "GET", "/slice/s1", headers={"cookie": f"errata-session-8421={TOKEN}"})
    assert again.status_code == 401, "and the token is no cookie"


@pytest.mark.parametrize("said", ["", "wrong-one", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é" * 50, "x" * 5000])
def test_a_wrong_token_is_told_and_opens_nothing(locked: Guard, said: str) -> None:
    got = enter(locked, said, "/curate")
    assert got.status_code == 401
    assert "set-cookie" not in got.headers
    assert "<b>That is not the token.</b>" in got.text
    assert 'aria-invalid="true"' in got.text
    assert 'name="next" value="/curate"' in got.text, "the next try leads to the same page"
    assert not said or said not in got.text.partition("</style>")[2], "what was typed is not shown again"


def test_a_wrong_token_in_the_address_is_told_too(locked: Guard) -> None:
    got = ask(locked, "GET", "/curate?token=wrong-one&x=1", headers=PAGE)
    assert got.status_code == 401
    assert "That is not the token." in got.text
    assert 'value="/curate?x=1"' in got.text
    assert "wrong-one" not in got.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "application/json"}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-length": "9000"}, 413),
        ({"host": "elsewhere.example"}, 400),
    ],
)
def test_the_form_of_another_site_is_refused_even_with_the_token(
    locked: Guard, headers: dict[str, str], status: int
) -> None:
    got = enter(locked, TOKEN, **headers)
    assert got.status_code == status
    assert "set-cookie" not in got.headers


@pytest.mark.parametrize("next", HOSTILE)
def test_it_leads_to_this_server_alone(locked: Guard, next: str) -> None:
    got = enter(locked, TOKEN, next)
    assert got.status_code == 303
    where = got.headers["location"]
    assert where.startswith("/")
    assert not where.startswith(("//", "/\\"))
    assert "\r" not in where
    assert "\n" not in where
    shown = ask(locked, "GET", "/" + quote(next, safe="/"), headers=PAGE)
    assert shown.status_code == 401
    again = html.unescape(re.search(r'name="next" value="([^"]*)"', shown.text)[1])  # type: ignore[index]  # it is there
    assert again.startswith("/")
    assert not again.startswith("//")


def test_what_is_asked_for_is_escaped(locked: Guard) -> None:
    got = ask(locked, "GET", '/a"><script>alert(1)</script>?b="><i>', headers=PAGE)
    assert "<script" not in got.text
    assert "<i>" not in got.text


def test_who_signs_out_is_out_and_the_cookie_is_worth_nothing(locked: Guard) -> None:
    cookie = enter(locked, TOKEN).headers["set-cookie"].partition(";")[0]
    other = enter(locked, TOKEN).headers["set-cookie"].partition(";")[0]
    asked = ask(locked, "GET", "/sign-out", headers={**PAGE, "cookie": cookie})
    assert asked.status_code == 200
    assert asked.headers["cache-control"] == "no-store"
    assert '<form class="login" method="post" action="/sign-out">' in asked.text
    assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 200, "asking ends nothing"
    left = ask(locked, "POST", "/sign-out", content="", headers={**FORM, "cookie": cookie})
    assert (left.status_code, left.headers["location"]) == (303, "/")
    assert [line.partition(";")[0] for line in left.headers.get_list("set-cookie")] == [
        "errata-session-8421=",
        "errata-person-8421=",
    ]
    assert all("Max-Age=0" in line for line in left.headers.get_list("set-cookie"))
    assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 401
    assert ask(locked, "GET", "/curate", headers={"cookie": other}).status_code == 200, "another browser stays"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://elsewhere.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"host": "elsewhere.example"}, 400),
    ],
)
def test_no_other_site_signs_anybody_out(locked: Guard, headers: dict[str, str], status: int) -> None:
    cookie = enter(locked, TOKEN).headers["set-cookie"].partition(";")[0]
    got = ask(locked, "POST", "/sign-out", content="", headers={**FORM, "cookie": cookie, **headers})
    assert got.status_code == status
    assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 200


def test_pages_lead_out_where_one_signs_in(audit: Audit, tmp_path: Path) -> None:
    link = '<a class="leave" href="/sign-out">Sign out</a>'
    with Records(tmp_path, fingerprint="f") as records:
        locked = create_app(audit, records, access=Access(("127.0.0.1",), TOKEN))
        assert link in ask(locked, "GET", "/", headers={**PAGE, "authorization": f"Bearer {TOKEN}"}).text
        plain = create_app(audit, records)
        assert "Sign out" not in ask(plain, "GET", "/", headers=PAGE).text
        assert ask(plain, "GET", "/sign-out", headers=PAGE).status_code == 404


def test_nobody_is_led_out_by_signing_in(locked: Guard) -> None:
    assert enter(locked, TOKEN, "/sign-out").headers["location"] == "/"
    assert ask(locked, "GET", "/sign-out", headers=PAGE).status_code == 401


def test_a_second_sign_in_ends_the_first_session_of_the_browser(locked: Guard) -> None:
    cookie = enter(locked, TOKEN).headers["set-cookie"].partition(";")[0]
    again = ask(locked, "GET", f"/?token={TOKEN}", headers={**PAGE, "cookie": cookie})
    assert again.status_code == 303
    assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 401


def test_a_second_sign_in_by_the_form_ends_the_first_session_too(locked: Guard) -> None:
    cookie = enter(locked, TOKEN).headers["set-cookie"].partition(";")[0]
    assert enter(locked, TOKEN, cookie=cookie).status_code == 303
    assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 401


def test_signing_out_ends_every_session_that_the_browser_sends(locked: Guard) -> None:
    """Else the one that was left open would sign its owner in again."""
    cookies = [enter(locked, TOKEN).headers["set-cookie"].partition(";")[0] for _ in range(2)]
    ask(locked, "POST", "/sign-out", content="", headers={**FORM, "cookie": "; ".join(cookies)})
    for cookie in cookies:
        assert ask(locked, "GET", "/curate", headers={"cookie": cookie}).status_code == 401


def test_nothing_else_is_open_without_the_token(locked: Guard) -> None:
    assert ask(locked, "GET", "/token").status_code == 401
    assert ask(locked, "POST", "/token/x", content="token=x", headers=FORM).status_code == 401
    for method in ("PUT", "DELETE", "PATCH"):
        assert ask(locked, method, "/token", content=f"token={TOKEN}", headers=FORM).status_code == 401


def test_a_server_without_a_token_has_no_form(audit: Audit, tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="f") as records:
        got = enter(create_app(audit, records), TOKEN)
        assert got.status_code == 415
        assert "set-cookie" not in got.headers


def test_the_token_is_in_no_log(locked: Guard, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        enter(locked, TOKEN)
        enter(locked, "a-wrong-token-of-mine")
    assert TOKEN not in caplog.text
    assert "a-wrong-token-of-mine" not in caplog.text
