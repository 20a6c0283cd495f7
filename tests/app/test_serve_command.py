"""`errata serve` and `errata people`, whole: what is printed opens it, what is refused says why."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from errata import workflow
from errata.app.access import MOST_WRONG_OF_ALL
from errata.core import Audit
from support.command import run
from support.servers import ServerProcess


@pytest.fixture(scope="module")
def folder(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workflow.save(audit, tmp_path_factory.mktemp("serve") / "audit")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine: no certificate is made")
    files = (tmp_path / "cert.pem", tmp_path / "key.pem")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = subprocess.run([*command, "-out", files[0], "-keyout", files[1], *subject], capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    return files


def test_a_token_is_asked_for_on_this_machine_too(folder: Path, tmp_path: Path) -> None:
    """Anybody on it, and every program of theirs, could write otherwise."""
    with ServerProcess(folder, "--host", "127.0.0.1", "--database", str(tmp_path / "r.sqlite")) as server:
        place, _, token = server.address.partition("?token=")
        assert len(token) == 22
        assert httpx.get(place).status_code == 401
        with httpx.Client(follow_redirects=True) as client:
            opened = client.get(server.address)
            assert opened.status_code == 200
            assert token not in str(opened.url)
            assert token not in str(dict(client.cookies)), "the cookie is not the token"
            assert client.get(place + "curate").status_code == 200


def test_the_token_of_a_file_is_not_printed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-a-file\n")
    words = ("--token-file", str(tmp_path / "token"), "--database", str(tmp_path / "r.sqlite"))
    with ServerProcess(folder, *words) as server:
        assert "token" not in server.address
        assert httpx.get(server.address).status_code == 401
        header = {"authorization": "Bearer a-token-of-a-file"}
        assert httpx.get(server.address, headers=header).status_code == 200
        arguments = Path(f"/proc/{server.process.pid}/cmdline")
        if arguments.exists():
            assert b"a-token-of-a-file" not in arguments.read_bytes()


def test_https_by_a_certificate_with_people(folder: Path, tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    code, token, _ = run("people", "add", tmp_path / "people.json", "Ada")
    assert code == 0
    words = ("--certificate", certificate[0], "--key", certificate[1], "--people", tmp_path / "people.json")
    with ServerProcess(folder, *map(str, words), "--database", str(tmp_path / "r.sqlite")) as server:
        assert server.address.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=certificate[0])
        header = {"authorization": f"Bearer {token.strip()}", "accept": "text/html"}
        got = httpx.get(server.address, headers=header, verify=trust)
        assert got.status_code == 200
        assert "errata-person-" in got.headers["set-cookie"]
        assert "; Secure" in got.headers["set-cookie"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(server.address.replace("https", "http"))


def test_a_proxy_names_itself_and_who_asks(folder: Path, tmp_path: Path) -> None:
    words = ("--address", "https://audits.example.org", "--database", str(tmp_path / "r.sqlite"), "--port", "0")
    with ServerProcess(folder, *words) as server:
        place, _, token = server.address.partition("/?token=")
        assert place == "https://audits.example.org"
        port = _port_of(server.process.pid)
        local = f"http://127.0.0.1:{port}"
        passed_on = {"host": "audits.example.org", "x-forwarded-proto": "https", "x-forwarded-for": "9.9.9.9"}
        got = httpx.get(f"{local}/?token={token}", headers=passed_on)
        assert got.status_code == 303
        assert got.headers["set-cookie"].endswith("; Secure")
        assert got.headers["location"] == "/"
        assert httpx.get(local, headers={"host": "evil.example"}).status_code == 400
        guesser = {**passed_on, "x-forwarded-for": "6.6.6.6"}
        statuses = [httpx.get(f"{local}/?token=guess-{i:04}", headers=guesser).status_code for i in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert httpx.get(f"{local}/?token={token}", headers=passed_on).status_code == 303, "another asks from elsewhere"


def test_a_forwarded_address_is_believed_of_the_proxy_alone(folder: Path, tmp_path: Path) -> None:
    """Without --address of nobody, and with it of 127.0.0.1: else each guess would come from another address."""
    public = ("--address", "https://audits.example.org")
    for number, (words, peer) in enumerate([((), "127.0.0.1"), (public, "127.0.0.2")]):
        database = str(tmp_path / f"{number}.sqlite")
        with ServerProcess(folder, "--token", "a-token-of-a-test", *words, "--database", database) as server:
            local = f"http://127.0.0.1:{_port_of(server.process.pid)}"
            statuses = _guess(local, peer, [f"9.9.9.{i}" for i in range(12)])
        assert statuses == [401] * 10 + [429] * 2, (words, peer)


def test_forged_addresses_of_a_proxy_have_a_limit_together(folder: Path, tmp_path: Path) -> None:
    """A process of the same machine is believed as the proxy is, and may name another address each time."""
    words = ("--address", "https://audits.example.org", "--token", "a-token-of-a-test")
    with ServerProcess(folder, *words, "--database", str(tmp_path / "r.sqlite")) as server:
        local = f"http://127.0.0.1:{_port_of(server.process.pid)}"
        statuses = _guess(local, "127.0.0.1", [f"9.9.9.{i}" for i in range(MOST_WRONG_OF_ALL + 2)])
    assert statuses == [401] * MOST_WRONG_OF_ALL + [429] * 2


def _guess(server: str, peer: str, forwarded: list[str]) -> list[int]:
    """The statuses of wrong tokens that are sent from `peer`, each as if passed on for another address."""
    with httpx.Client(transport=httpx.HTTPTransport(local_address=peer)) as client:
        return [
            client.get(f"{server}/?token=guess-{i:04}", headers={"x-forwarded-for": address}).status_code
            for i, address in enumerate(forwarded)
        ]


def test_localhost_is_both_of_its_addresses(folder: Path, tmp_path: Path) -> None:
    """Else somebody else of the machine could take the other one, and browsers would hand them the token."""
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    with ServerProcess(folder, "--host", "localhost", "--no-token", "--database", str(tmp_path / "r.sqlite")) as server:
        port = server.address.rpartition(":")[2]
        assert server.address == f"http://localhost:{port}"
        for address in ("127.0.0.1", "[::1]", "localhost"):
            assert httpx.get(f"http://{address}:{port}/static/base.css").status_code == 200
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = run("serve", folder, "--host", "localhost", "--no-token", "--port", port)
    assert (code, err.count("\n"), "is taken" in err) == (2, 1, True)


def _port_of(process: int) -> int:
    """The port that a process listens on."""
    inodes = {os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir() if path.is_symlink()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes)


def test_a_server_that_only_shows_writes_nothing_beside_the_audit(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "audit")
    before = sorted(path.name for path in (tmp_path / "audit").iterdir())
    with ServerProcess(tmp_path / "audit", "--read-only", "--no-token") as server:
        assert httpx.get(server.address).status_code == 200
        got = httpx.post(f"{server.address}/api/hypotheses", json={"text": "x", "person": "Ada"})
        assert got.status_code == 403
    assert sorted(path.name for path in (tmp_path / "audit").iterdir()) == before


REFUSED = {
    "short token": (["--token", "short"], "8 to 200"),
    "two ways": (["--token", "long-enough", "--no-token"], "--token and --no-token"),
    "people and a token": (["--token", "long-enough", "--people", "p.json"], "--token and --people"),
    "no token for others": (["--no-token", "--host", "0.0.0.0"], "this machine alone"),
    "no file": (["--token-file", "nope"], "cannot be read"),
    "a folder": (["--token-file", "."], "no small file"),
    "a pipe": (["--token-file", "pipe"], "no small file"),
    "an empty file": (["--token-file", "empty"], "8 to 200"),
    "no text": (["--token-file", "bytes"], "no text"),
    "no people": (["--people", "nope.json"], "people"),
    "people of nothing": (["--people", "empty"], "damaged"),
    "a key alone": (["--key", "empty"], "--certificate"),
    "no certificate": (["--certificate", "nope.pem"], "does not exist"),
    "an empty certificate": (["--certificate", "empty"], "cannot be used"),
    "an address with a path": (["--address", "https://a.example/errata"], "without a path"),
    "an address without a scheme": (["--address", "a.example"], "https://audits.example.org"),
    "an odd address": (["--address", "https://[::1"], "https://audits.example.org"),
    "an odd port": (["--address", "https://a:99999999"], "https://audits.example.org"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_serve_refuses(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    words, sentence = REFUSED[name]
    code, out, err = run("serve", "nowhere", "--port", "0", *words, folder=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert sorted(tmp_path.iterdir()) == before


def test_people_are_added_listed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    code, first, _ = run("people", "add", file, "Ada")
    assert (code, len(first.strip())) == (0, 22)
    assert run("people", "add", file, "Bob").code == 0
    assert run("people", "list", file).out == "Ada\nBob\n"
    code, _, err = run("people", "add", file, "Ada")
    assert (code, "already" in err) == (2, True)
    assert run("people", "remove", file, "Ada").code == 0
    assert run("people", "list", file).out == "Bob\n"
    code, _, err = run("people", "remove", file, "Ada")
    assert (code, "nobody called 'Ada'" in err) == (2, True)


def test_who_only_reads_records_makes_none(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "audit")
    before = sorted((tmp_path / "audit").rglob("*"))
    assert run("annotations", "log", tmp_path / "audit").out == ""
    assert run("annotations", "export", tmp_path / "audit", "-o", tmp_path / "answers.json").code == 0
    assert sorted((tmp_path / "audit").rglob("*")) == before


def test_the_log_is_printed(folder: Path, tmp_path: Path) -> None:
    from errata.people import Annotation
    from errata.workflow import load

    shutil.copytree(folder, tmp_path / "audit")
    from errata.cli.serve import records_of_audit

    with records_of_audit(load(tmp_path / "audit"), tmp_path / "audit", None) as records:
        for person in ("Ada", "Bob\x1b[2J"):
            records.annotate(Annotation(queue="s1", item="1", person=person, task="member", answer="in"))
    code, out, err = run("annotations", "log", tmp_path / "audit")
    assert (code, err) == (0, "")
    assert [line.split(" UTC  ")[1] for line in out.splitlines()] == [
        "Ada  answered s1, 1: member: in",
        r"Bob\x1b[2J  answered s1, 1: member: in",
    ]
    assert run("annotations", "log", tmp_path / "audit", "--person", "Ada", "--json").out.count("\n") == 1
