"""Sessions, wrong tokens, tokens of one's own, a server that only shows: each as one who would get around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from errata.app import access as access_module
from errata.app.access import MOST_WRONG, MOST_WRONG_OF_ALL, SESSION_SECONDS, WRONG_SECONDS, Access, TooManyWrong
from errata.app.guard import Guard
from errata.app.server import create_app
from errata.core import Audit, InputError
from errata.people import tokens
from errata.people.records import Records
from errata.people.tokens import PeopleFile
from support.asking import ask

TOKEN = "a-token-of-some-length"
PAGE = {"accept": "text/html"}


class Clock:
    """Seconds that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def records(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    names = {slice_.id: slice_.name for slice_ in audit.slices}
    with Records(tmp_path_factory.mktemp("access"), fingerprint="f", slices=names) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(audit: Audit, records: Records) -> Guard:
    return create_app(audit, records)


class People:
    """A file with Ada and Bob, and their tokens."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people.json"
        self.tokens = {name: tokens.add_person(self.path, name) for name in ("Ada", "Bob Ö.")}

    def header(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)


@pytest.fixture
def shared(served: Guard, people: People) -> Guard:
    return Guard(served.app, Access(people=PeopleFile(people.path)))


# --- sessions


def test_a_session_ends_when_it_is_not_used() -> None:
    clock = Clock()
    door = Access(token=TOKEN, clock=clock)
    visitor = door.visitor_of(TOKEN, "a")
    assert visitor is not None
    number = door.open_session(visitor)
    clock.now += SESSION_SECONDS - 1
    assert door.session_of(number) == visitor
    clock.now += SESSION_SECONDS - 1
    assert door.session_of(number) == visitor, "since it was last used"
    clock.now += SESSION_SECONDS + 1
    assert door.session_of(number) is None


def test_sessions_are_different_and_unknown_to_another_server() -> None:
    door = Access(token=TOKEN)
    visitor = door.visitor_of(TOKEN, "a")
    assert visitor is not None
    numbers = {door.open_session(visitor) for _ in range(100)}
    assert len(numbers) == 100
    other = Access(token=TOKEN)
    assert all(other.session_of(number) is None for number in numbers)


def test_sessions_are_limited_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "MOST_SESSIONS", 3)
    door = Access(token=TOKEN)
    visitor = door.visitor_of(TOKEN, "a")
    assert visitor is not None
    first, *others = [door.open_session(visitor) for _ in range(4)]
    assert door.session_of(first) is None
    assert all(door.session_of(number) is not None for number in others)


def test_the_cookie_of_https_goes_by_https_alone(served: Guard) -> None:
    door = Guard(served.app, Access(token=TOKEN, secure=True))
    got = ask(door, "GET", f"/?token={TOKEN}")
    assert got.headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")


def test_an_old_token_in_an_address_does_not_close_a_session(served: Guard) -> None:
    door = Guard(served.app, Access(token=TOKEN))
    cookie = ask(door, "GET", f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    got = ask(door, "GET", "/curate?token=of-yesterday", headers={"cookie": cookie})
    assert (got.status_code, got.headers["location"]) == (303, "/curate")


# --- wrong tokens


def test_after_some_wrong_tokens_even_the_right_one_waits(served: Guard) -> None:
    clock = Clock()
    door = Guard(served.app, Access(token=TOKEN, clock=clock))
    cookie = ask(door, "GET", f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    for i in range(MOST_WRONG):
        assert ask(door, "GET", f"/?token=guess-{i:05}").status_code == 401
    for right in ({"authorization": f"Bearer {TOKEN}"}, PAGE):
        got = ask(door, "GET", f"/?token={TOKEN}", headers=right)
        assert (got.status_code, got.headers.get("set-cookie")) == (429, None)
    plain = ask(door, "GET", "/api/accepted", headers={"authorization": f"Bearer {TOKEN}"})
    assert plain.headers["retry-after"] == "60"
    assert "Too many wrong tokens" in plain.json()["detail"]
    form = ask(
        door, "POST", "/token", content=f"token={TOKEN}", headers={"content-type": "application/x-www-form-urlencoded"}
    )
    assert form.status_code == 429
    assert "Too many wrong tokens came." in form.text
    assert ask(door, "GET", "/static/base.css", headers={"cookie": cookie}).status_code == 200, "who is in stays in"
    clock.now += WRONG_SECONDS + 1
    assert ask(door, "GET", f"/?token={TOKEN}").status_code == 303


def test_a_form_without_a_token_and_an_old_cookie_are_no_guesses(served: Guard) -> None:
    door = Guard(served.app, Access(token=TOKEN))
    for _ in range(3 * MOST_WRONG):
        assert ask(door, "GET", "/", headers={"cookie": "errata-session-8421=of-yesterday"}).status_code == 401
    assert ask(door, "GET", f"/?token={TOKEN}").status_code == 303


def test_one_address_does_not_shut_out_another_until_there_are_very_many() -> None:
    door = Access(token=TOKEN, clock=Clock())
    for i in range(MOST_WRONG):
        assert door.visitor_of(f"guess-{i:05}", "1.1.1.1") is None
    with pytest.raises(TooManyWrong):
        door.visitor_of(TOKEN, "1.1.1.1")
    assert door.visitor_of(TOKEN, "2.2.2.2") is not None
    for i in range(MOST_WRONG_OF_ALL - MOST_WRONG):
        door.visitor_of("another-guess", f"3.3.3.{i}")
    with pytest.raises(TooManyWrong):
        door.visitor_of(TOKEN, "2.2.2.2")


def test_guesses_of_many_addresses_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "MOST_ADDRESSES", 5)
    wrong = access_module.WrongTokens(Clock())
    for i in range(50):
        wrong.add(str(i))
    assert len(wrong._by_address) == 5


# --- people


def answer(person: str, key: str = "") -> dict[str, Any]:
    facts = {"queue": "s1", "item": "row-1", "person": person, "task": "class", "answer": 0}
    return {**facts, "key": key} if key else facts


def test_a_person_writes_in_their_own_name(shared: Guard, people: People) -> None:
    got = ask(shared, "POST", "/api/annotations", json=answer("Ada"), headers=people.header("Ada"))
    assert (got.status_code, got.json()["person"]) == (200, "Ada")
    got = ask(shared, "POST", "/api/annotations", json=answer("Bob Ö."), headers=people.header("Bob Ö."))
    assert (got.status_code, got.json()["person"]) == (200, "Bob Ö.")


IN_ANOTHERS_NAME: dict[str, tuple[str, Any]] = {
    "annotation": ("/api/annotations", answer("Ada")),
    "decision": ("/api/decisions", {"given": {"slice": "s1", "decision": "accepted", "person": "Ada"}, "seen": 0}),
    "edit": ("/api/edits", {"slice": "s1", "item": "row-1", "inside": True, "person": "Ada"}),
    "drawing": ("/api/drawn", {"loop": [[-9, -9], [-9, 9], [9, 9]], "name": "x", "person": "Ada"}),
    "hypothesis": ("/api/hypotheses", {"text": "age < 5", "person": "Ada"}),
    "undo": ("/api/annotations/k/undo", {"person": "Ada"}),
    "nobody": ("/api/hypotheses", {"text": "age < 5", "person": "somebody"}),
    "a list": ("/api/annotations", answer(["Bob Ö."])),  # type: ignore[arg-type]  # on purpose
    "another case": ("/api/annotations", answer("bob ö.")),
    "spaces": ("/api/annotations", answer(" Bob Ö.")),
}


@pytest.mark.parametrize("name", IN_ANOTHERS_NAME)
def test_nobody_writes_in_anothers_name(shared: Guard, people: People, records: Records, name: str) -> None:
    path, body = IN_ANOTHERS_NAME[name]
    before = (len(records.log()), records.standings())
    got = ask(shared, "POST", path, json=body, headers=people.header("Bob Ö."))
    assert got.status_code == 403, got.text
    assert "You are signed in as 'Bob Ö.'" in got.json()["detail"]
    assert (len(records.log()), records.standings()) == before


def test_a_name_twice_in_one_body_is_the_one_that_counts(shared: Guard, people: People, records: Records) -> None:
    text = json.dumps(answer("Ada")).replace('"person"', '"person": "Bob Ö.", "person"')
    headers = {**people.header("Bob Ö."), "content-type": "application/json"}
    assert ask(shared, "POST", "/api/annotations", content=text.encode(), headers=headers).status_code == 403


def test_nobody_undoes_anothers_answer(shared: Guard, people: People, records: Records) -> None:
    saved = ask(shared, "POST", "/api/annotations", json=answer("Ada", "ada-1"), headers=people.header("Ada")).json()
    for body in ({"person": "Ada"}, {"person": "Bob Ö."}, {}):
        got = ask(shared, "POST", f"/api/annotations/{saved['key']}/undo", json=body, headers=people.header("Bob Ö."))
        assert got.status_code in (403, 422)
    assert all(entry.undoes != saved["key"] for entry in records.log())
    got = ask(shared, "POST", f"/api/annotations/{saved['key']}/undo", json={}, headers=people.header("Ada"))
    assert got.status_code == 200, "without a name it is one's own"


def test_nobody_asks_in_anothers_name(shared: Guard, people: People) -> None:
    """Others' answers are shown after one's own: who asks as another would see them before."""
    for path in ("/api/queues/s1", "/api/answered"):
        assert ask(shared, "GET", f"{path}?person=Ada", headers=people.header("Bob Ö.")).status_code == 403
        assert (
            ask(shared, "GET", f"{path}?person=Ada&person=Bob%20%C3%96.", headers=people.header("Bob Ö.")).status_code
            == 403
        )
        assert ask(shared, "GET", f"{path}?person=Ada", headers=people.header("Ada")).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"", b"[" * 200_000, b"\xff", b'"Ada"'])
def test_what_is_no_json_is_refused(shared: Guard, people: People, body: bytes) -> None:
    headers = {**people.header("Ada"), "content-type": "application/json"}
    assert ask(shared, "POST", "/api/annotations", content=body, headers=headers).status_code == 422


def test_who_is_removed_is_out_at_once_and_who_is_added_is_in(shared: Guard, people: People) -> None:
    entered = ask(shared, "GET", f"/?token={people.tokens['Ada']}")
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert ask(shared, "GET", "/static/base.css", headers=cookie).status_code == 200
    tokens.remove_person(people.path, "Ada")
    assert ask(shared, "GET", "/static/base.css", headers=cookie).status_code == 401
    assert ask(shared, "GET", "/static/base.css", headers=people.header("Ada")).status_code == 401
    people.tokens["Ada"] = tokens.add_person(people.path, "Ada")
    assert ask(shared, "GET", "/static/base.css", headers=cookie).status_code == 401, "the session was of the old token"
    assert ask(shared, "GET", "/static/base.css", headers=people.header("Ada")).status_code == 200
    people.path.unlink()
    assert ask(shared, "GET", "/static/base.css", headers=people.header("Ada")).status_code == 401, (
        "nobody is known now"
    )


def test_the_page_is_told_who_is_signed_in_and_no_other_name(shared: Guard, served: Guard, people: People) -> None:
    got = ask(shared, "GET", "/", headers={**PAGE, **people.header("Bob Ö.")})
    cookie = got.headers["set-cookie"]
    assert cookie == "errata-person-8421=Bob%20%C3%96.; Path=/; SameSite=Strict"
    known = {"cookie": cookie.partition(";")[0]}
    assert "set-cookie" not in ask(shared, "GET", "/", headers={**PAGE, **known, **people.header("Bob Ö.")}).headers
    stale = ask(served, "GET", "/", headers={**PAGE, **known})
    assert stale.headers["set-cookie"] == "errata-person-8421=; Path=/; SameSite=Strict; Max-Age=0"


def writing_routes(app: Guard) -> list[str]:
    """Every address that takes a write, with something in the place of its parameters."""
    routes = [route for route in app.app.routes if "POST" in (getattr(route, "methods", None) or ())]
    return [re.sub(r"{[^}]*}", "k", route.path) for route in routes]


FOREIGN = [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
           {"sec-fetch-site": "same-site"}, {"content-type": "text/plain"}, {"host": "evil.example"}]  # fmt: skip


@pytest.mark.parametrize("foreign", FOREIGN)
def test_no_other_site_writes_anywhere(
    shared: Guard, people: People, records: Records, foreign: dict[str, str]
) -> None:
    paths = writing_routes(shared)
    assert len(paths) >= 7
    assert "/api/slices" in paths
    before = len(records.journal())
    for path in paths:
        headers = {**people.header("Ada"), "content-type": "application/json", **foreign}
        got = ask(shared, "POST", path, content=b'{"text": "age < 5"}', headers=headers)
        assert got.status_code in (400, 403, 415), (path, got.status_code)
    assert len(records.journal()) == before


def test_nobody_writes_anywhere_in_anothers_name(shared: Guard, people: People, records: Records) -> None:
    """Whatever the route, and wherever in the request the name is."""
    before = len(records.journal())
    for path in writing_routes(shared):
        for body in (
            {"person": "Ada"},
            {"given": {"person": "Ada"}},
            {"x": [{"y": {"person": "Ada"}}]},
            [{"person": "Ada"}],
            {"person": "Bob Ö.", "given": {"person": "Ada"}},
            {"given": {"person": "Bob Ö."}, "person": "Ada"},
            [{"person": "Bob Ö."}, {"person": "Ada"}],
        ):
            got = ask(shared, "POST", path, json=body, headers=people.header("Bob Ö."))
            assert got.status_code == 403, (path, body)
        got = ask(shared, "POST", f"{path}?person=Ada", json={"text": "age < 5"}, headers=people.header("Bob Ö."))
        assert got.status_code == 403, path
    assert len(records.journal()) == before


def test_a_forwarded_address_is_not_believed_without_a_proxy(shared: Guard) -> None:
    """Else every guess would come from somewhere else, and be looked at."""
    headers = [{"authorization": f"Bearer guess-number-{i}", "x-forwarded-for": f"9.9.9.{i}"} for i in range(12)]
    statuses = [ask(shared, "GET", "/", headers=sent).status_code for sent in headers]
    assert statuses == [401] * 10 + [429] * 2


def test_pages_are_not_kept_for_others(shared: Guard, people: People) -> None:
    for path in ("/", "/curate", "/log", "/rows"):
        got = ask(shared, "GET", path, headers={**PAGE, **people.header("Ada")})
        assert got.status_code == 200
        assert got.headers["cache-control"] in ("no-cache", "no-store")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_of_another_site_signs_nobody_in_as_another(shared: Guard, people: People, site: str) -> None:
    """Bob's link on a page that Ada reads would have her write in Bob's name."""
    address = f"/curate?token={people.tokens['Bob Ö.']}"
    got = ask(shared, "GET", address, headers={**PAGE, "sec-fetch-site": site})
    assert got.status_code == 401
    assert "errata-session" not in got.headers.get("set-cookie", "")
    assert ask(shared, "GET", address, headers={**PAGE, "sec-fetch-site": "none"}).status_code == 303


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_who_is_signed_in_stays_who_they_are_after_a_link_of_another_site(
    shared: Guard, people: People, site: str
) -> None:
    entered = ask(shared, "GET", f"/?token={people.tokens['Ada']}")
    cookie = entered.headers["set-cookie"].partition(";")[0]
    address = f"/curate?token={people.tokens['Bob Ö.']}"
    followed = ask(shared, "GET", address, headers={**PAGE, "sec-fetch-site": site, "cookie": cookie})
    assert followed.status_code == 303
    new_cookie = followed.headers["set-cookie"].partition(";")[0]
    page = ask(shared, "GET", "/curate", headers={**PAGE, "cookie": new_cookie})
    assert page.headers["set-cookie"].startswith("errata-person-8421=Ada;")


def test_a_link_anywhere_opens_a_server_with_one_token_for_all(served: Guard) -> None:
    """It signs one in as nobody else, and people paste the printed address into chats."""
    door = Guard(served.app, Access(token=TOKEN))
    got = ask(door, "GET", f"/curate?token={TOKEN}", headers={**PAGE, "sec-fetch-site": "cross-site"})
    assert (got.status_code, got.headers["location"]) == (303, "/curate")


def test_the_form_asks_for_ones_own_token(shared: Guard) -> None:
    got = ask(shared, "GET", "/", headers=PAGE)
    assert got.status_code == 401
    assert "Who are you?" in got.text
    assert "your own token" in ask(shared, "GET", "/").json()["detail"]


def test_the_file_holds_no_token_and_is_private(people: People) -> None:
    text = people.path.read_text()
    assert all(token not in text for token in people.tokens.values())
    assert people.path.stat().st_mode & 0o077 == 0
    facts = json.loads(text)
    assert facts["schema"] == "errata.people/1"
    assert all(re.fullmatch("[0-9a-f]{64}", person["sha256"]) for person in facts["people"].values())


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "errata.people/1"}', "[" * 100_000,
                                  '{"schema": "errata.people/1", "people": {}}',
                                  '{"schema": "errata.people/1", "people": {"Ada": {"sha256": "x"}}}'])  # fmt: skip
def test_a_file_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "people.json").write_text(text)
    with pytest.raises(InputError):
        PeopleFile(tmp_path / "people.json")


@pytest.mark.parametrize("name", ["", " ", " Ada", "a\nb", "\x1b[2J", "x" * 101])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        tokens.add_person(tmp_path / "people.json", name)
    assert list(tmp_path.iterdir()) == []


# --- only to look


def test_a_server_that_only_shows_saves_nothing(served: Guard, records: Records) -> None:
    door = Guard(served.app, Access(read_only=True))
    before = len(records.log())
    assert ask(door, "GET", "/curate").status_code == 200
    got = ask(door, "POST", "/api/annotations", json=answer("Ada"))
    assert (got.status_code, "only shows" in got.json()["detail"]) == (403, True)
    for method in ("PUT", "DELETE", "PATCH"):
        assert ask(door, method, "/api/annotations", json=answer("Ada")).status_code == 403
    assert len(records.log()) == before
