"""One writer: batches that are committed together, errors that stay alone, and nothing acknowledged that is lost."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import OperationalError

from errata.core import ErrataError
from errata.people.database import Unavailable, connect
from errata.people.entries import Annotation, Conflict, Decision
from errata.people.records import Records
from errata.people.writer import WriteJob, Writer

Open = Callable[..., Records]
ROUNDS = 10


def said(key: str, item: str = "7") -> Annotation:
    return Annotation(queue="s1", item=item, person="ada", task="class", answer=3, key=key)


@contextlib.contextmanager
def held(records: Records) -> Iterator[None]:
    """The writer is busy meanwhile, so that all that comes waits."""
    holding, free = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        holding.set()
        free.wait(60)

    thread = threading.Thread(target=records._writer.write, args=(hold,))
    thread.start()
    assert holding.wait(60)
    try:
        yield
    finally:
        free.set()
        thread.join(60)


def waiting(records: Records, count: int) -> None:
    for _ in range(6000):
        if records._writer._waiting.qsize() >= count:
            return
        time.sleep(0.01)
    raise AssertionError("they did not come")


def together(records: Records, jobs: list[Callable[[], Any]]) -> list[Future[Any]]:
    """All jobs wait for the writer at one moment."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        with held(records):
            futures = [pool.submit(job) for job in jobs]
            waiting(records, len(jobs))
        return futures


def test_what_waits_is_committed_together(records: Records) -> None:
    commits: list[object] = []
    event.listen(records._database.writing, "commit", commits.append)
    futures = together(records, [lambda i=i: records.annotate(said(str(i), str(i))) for i in range(40)])
    assert {future.result().key for future in futures} == {str(i) for i in range(40)}
    assert len(commits) == 2  # the holder's, and theirs
    assert len(records.answers()) == 40


def test_nobody_is_told_before_the_commit(records: Records) -> None:
    committing, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        committing.set()
        go_on.wait(60)

    event.listen(records._database.writing, "commit", slow)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(records.annotate, said("a"))
        assert committing.wait(60)
        time.sleep(0.1)
        early = future.done()
        go_on.set()
        assert future.result(60).key == "a"
    assert not early


def test_one_bad_job_does_not_take_the_others_along(records: Records) -> None:
    def breaks() -> None:
        def work(connection: Any) -> None:
            connection.execute(text("INSERT INTO slices VALUES ('half', 99, 'found', 'x')"))
            connection.execute(text("SELECT nonsense FROM nowhere"))

        records._writer.write(work)

    def fails() -> None:
        def work(connection: Any) -> None:
            connection.execute(text("INSERT INTO slices VALUES ('part', 98, 'found', 'x')"))
            raise ZeroDivisionError

        records._writer.write(work)

    stale = Decision(slice="s1", decision="accepted", person="ada")
    good: list[Callable[[], Any]] = [lambda i=i: records.annotate(said(str(i), str(i))) for i in range(20)]
    bad = [breaks, fails, lambda: records.decide(stale, version=5)]
    futures = together(records, [*good[:10], *bad, *good[10:]])
    errors = [type(error) for future in futures if (error := future.exception()) is not None]
    assert sorted(error.__name__ for error in errors) == ["Conflict", "Unavailable", "ZeroDivisionError"]
    assert {entry.key for entry in records.answers()} == {str(i) for i in range(20)}
    assert list(records.standings()) == ["s1", "s2", "s3"]  # of a bad job nothing is left


def test_the_same_key_from_many_threads_is_one_line(records: Records) -> None:
    futures = together(records, [lambda: records.annotate(said("same")) for _ in range(16)])
    assert sorted(future.result().repeated for future in futures) == [False] + [True] * 15
    assert len({future.result().number for future in futures}) == 1


def test_many_threads_read_and_write(records: Records, open_records: Open) -> None:
    """Two servers on one database, ten threads each."""
    homes = (records, open_records())

    def annotator(number: int) -> None:
        home = homes[number % 2]
        for i in range(15):
            home.annotate(said(f"{number}-{i}", f"{number}-{i}"))
            assert home.progress("s1", "ada").answered >= i + 1

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(annotator, range(20)))
    for home in homes:
        assert {entry.key for entry in home.answers()} == {f"{n}-{i}" for n in range(20) for i in range(15)}


def test_two_servers_cannot_both_decide(records: Records, open_records: Open) -> None:
    homes = (records, open_records())

    def tab(number: int) -> bool:
        mine = Decision(slice="s1", decision="accepted", person=f"p{number}")
        try:
            return homes[number % 2].decide(mine, version=0).version == 1
        except Conflict:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(tab, range(8))) == 1


def test_closing_writes_what_waits_and_then_refuses(records: Records, open_records: Open) -> None:
    with ThreadPoolExecutor(12) as pool:
        with held(records):
            futures = [pool.submit(records.annotate, said(str(i), str(i))) for i in range(10)]
            waiting(records, 10)
            closing = pool.submit(records.close)
            time.sleep(0.1)
            assert not closing.done()
        closing.result(60)
        assert [future.result(60).key for future in futures] == [str(i) for i in range(10)]
    with pytest.raises(ErrataError, match="these records are closed; open them again"):
        records.annotate(said("late"))
    records.close()  # a second time does nothing
    assert len(open_records().answers()) == 10


def test_a_locked_file_is_told_as_not_saved_and_comes_back(tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="f00d", patience=0.5) as records:
        other = sqlite3.connect(tmp_path / "records.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with ThreadPoolExecutor(40) as pool:
            futures = [pool.submit(records.annotate, said(str(i))) for i in range(40)]
            errors = [future.exception(60) for future in futures]
        assert time.monotonic() - start < 10  # not the patience of each, one after the other
        assert {type(error) for error in errors} == {Unavailable}
        assert any("not saved: " in str(error) and "database is locked" in str(error) for error in errors)
        assert records.answers() == ()  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        assert not records.annotate(said("0")).repeated


def test_a_server_that_was_killed_comes_back_with_all_it_acknowledged(server: Any) -> None:
    with Records(server.new_place(), fingerprint="f00d") as records:
        saved = [records.annotate(said(str(i))).key for i in range(20)]
        assert len(records.log()) == 20
        server.stop(signal.SIGQUIT)
        server.start()
        assert [entry.key for entry in records.log()] == saved
        saved.append(records.annotate(said("between")).key)
        server.stop(signal.SIGQUIT)
        try:
            with pytest.raises(Unavailable, match="not saved: "):
                records.annotate(said("lost"))
            with pytest.raises(Unavailable, match="cannot be read"):
                records.log()
        finally:  # others need it too
            server.start()
        records.annotate(said("back"))
        assert [entry.key for entry in records.log()] == [*saved, "back"]


def annotate_for_ever(place: str, number: int, acknowledged: Any) -> None:
    """Eight annotators; every key is told after it was acknowledged."""
    records = Records(place, fingerprint="f00d")
    door = threading.Lock()

    def annotator(person: int) -> None:
        for i in itertools.count():
            key = f"{number}-{person}-{i}"
            records.annotate(said(key, key))
            with door:
                acknowledged.send_bytes(key.encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(annotator, range(8)))


def burst(place: str, number: int, seconds: float) -> set[str]:
    """Keys that a process said were saved before it was killed in the midst of saving."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["errata.app"])  # it is long to import, and there are many to kill
    told, telling = processes.Pipe(duplex=False)
    child = processes.Process(target=annotate_for_ever, args=(place, number, telling), daemon=True)
    child.start()
    telling.close()
    keys = {told.recv_bytes().decode()}
    killer = threading.Timer(seconds, child.kill)
    killer.start()
    with contextlib.suppress(EOFError, OSError):  # a last word cut short
        while True:
            keys.add(told.recv_bytes().decode())
    child.join(60)
    killer.join()
    told.close()
    assert child.exitcode == -signal.SIGKILL
    return keys


def test_what_was_acknowledged_survives_kill_9(place: str, open_records: Open) -> None:
    open_records().close()
    rng = random.Random(0)
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        keys = burst(place, number, rng.uniform(0.05, 0.4))
        assert keys
        acknowledged |= keys
        records = open_records()
        assert acknowledged <= {entry.key for entry in records.log()}
        assert acknowledged <= {entry.item for entry in records.answers()}
        assert not records.annotate(said(f"after {number}")).repeated
        records.close()
    if "://" not in place:
        with sqlite3.connect(place) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def test_only_failures_in_a_row_end_the_waiting(tmp_path: Path) -> None:
    def away(_: Connection) -> None:
        raise OperationalError("INSERT", {}, Exception("gone"))

    def outcome(*works: Callable[[Connection], Any]) -> list[str]:
        jobs = [WriteJob(work) for work in works]
        writer._singly(jobs)
        return [str(job.done.exception() or job.done.result()) for job in jobs]

    database = connect(tmp_path / "records.sqlite")
    writer = Writer(database)
    lost, saved, lost_again, saved_again = outcome(away, lambda _: 1, away, lambda _: 2)
    assert (saved, saved_again) == ("1", "2")
    assert lost == lost_again
    assert "not saved" in lost
    assert "does not answer" in outcome(away, away, lambda _: 3)[2]
    writer.close()
    database.close()
