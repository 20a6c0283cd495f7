"""The tables, and the migrations of older databases. Tables are logs: no line is ever changed or deleted."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from ..core import InputError
from .entries import LONGEST, UNDO

VERSION = 2

metadata = MetaData()
KEY = String(LONGEST["key"] + len(UNDO))


def _number() -> Column[int]:
    """A line's position in its log. SQLite counts by itself only in an INTEGER."""
    return Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _text(name: str, length: str = "", optional: bool = False) -> Column[str]:
    return Column(name, String(LONGEST[length or name]), nullable=optional)


def _signature() -> tuple[Column[str], Column[str], Column[str]]:
    """Who entered it and when, and the key by which a second post is recognised."""
    return (
        Column("key", KEY, nullable=False, unique=True),
        _text("person"),
        Column("at", String(32), nullable=False),
    )


def _slice(name: str = "slice", optional: bool = False) -> Column[str]:
    return Column(name, String(LONGEST["queue"]), ForeignKey("slices.id"), nullable=optional)


about = Table("errata", metadata, Column("name", String(20), primary_key=True), Column("value", Text, nullable=False))

annotation_log = Table(
    "annotations",
    metadata,
    _number(),
    *_signature(),
    _text("queue"),
    _text("item"),
    Column("task", String(20), nullable=False),
    Column("answer", Text, nullable=False),  # JSON
    Column("seconds", Double),
    Column("undoes", KEY, ForeignKey("annotations.key"), unique=True),
    Column("settles", Boolean, nullable=False, server_default=false()),
    Index("annotations_asked", "queue", "person"),
)

slices = Table(
    "slices",
    metadata,
    Column("id", String(LONGEST["queue"]), primary_key=True),
    Column("place", Integer, nullable=False, unique=True),
    Column("kind", String(10), nullable=False),  # found, drawn
    Column("name", Text, nullable=False),  # not a person's: as long as the audit has it
)

decisions = Table(
    "decisions",
    metadata,
    _number(),
    *_signature(),
    _slice(),
    Column("version", Integer, nullable=False),
    Column("decision", String(20), nullable=False),
    _text("name", optional=True),
    Column("note", Text, nullable=False),
    _slice("into", optional=True),
    UniqueConstraint("slice", "version"),  # of two who saw the same version, one comes first
)

edits = Table(
    "edits",
    metadata,
    _number(),
    *_signature(),
    _slice(),
    _text("item"),
    Column("inside", Boolean),
    Index("edits_of", "slice"),
)

drawn = Table(
    "drawn", metadata, _number(), *_signature(), _slice(), _text("name"), Column("items", Text, nullable=False)
)

hypotheses = Table(
    "guesses",  # the name that databases of earlier versions have
    metadata,
    _number(),
    *_signature(),
    _slice(optional=True),
    Column("kind", String(20), nullable=False),
    _text("text"),
    *(Column(name, BigInteger, nullable=False) for name in ("n", "errors", "rest_n", "rest_errors")),
    Index("guesses_of", "slice"),
)


def _settling(connection: Connection) -> None:
    """Version 2: an answer may end a disagreement."""
    connection.exec_driver_sql("ALTER TABLE annotations ADD COLUMN settles BOOLEAN DEFAULT false NOT NULL")


# Step k leads from version k + 1 to k + 2. A step is never changed once it was released.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_settling,)


def prepare(connection: Connection, location: str) -> None:
    """Create the tables where there are none, or migrate them to this version; all in the caller's transaction."""
    version = _version(connection, location)
    if version is None:
        _create(connection, location)
        return
    if version > VERSION:
        raise InputError(
            f"`{location}` was written by a newer Errata (its version is {version}, this one reads up to {VERSION}); "
            "install that one"
        )
    for step in MIGRATIONS[version - 1 :]:
        step(connection)
    if version < VERSION:
        connection.execute(update(about).where(about.c.name == "version").values(value=str(VERSION)))


LOGS = (annotation_log, decisions, edits, drawn, hypotheses)
NO_CHANGE = "a line of a log never changes"


def forbid_changes(connection: Connection) -> None:
    """Make the database itself refuse to change or delete a line of a log, whoever asks. Idempotent."""
    if connection.dialect.name == "sqlite":
        _forbid_in_sqlite(connection)
    elif connection.dialect.name == "postgresql":
        _forbid_in_postgres(connection)


def _forbid_in_sqlite(connection: Connection) -> None:
    known = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars())
    for table in LOGS:
        # REPLACE deletes a line without firing what is there for deletions.
        events = {"update": "UPDATE", "delete": "DELETE", "replace": "INSERT"}
        for name, event in events.items():
            trigger = f"errata_{table.name}_no_{name}"
            if trigger not in known:
                condition = f"WHEN {_is_taken(table)}" if event == "INSERT" else ""
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {trigger} BEFORE {event} ON {table.name} {condition} "
                    f"BEGIN SELECT RAISE(ABORT, '{NO_CHANGE}'); END"
                )


def _is_taken(table: Table) -> str:
    """SQL: a line has what the new one has, where no two may have the same."""
    single = [[column.name] for column in table.c if column.primary_key or column.unique]
    several = [list(rule.columns.keys()) for rule in table.constraints if isinstance(rule, UniqueConstraint)]
    same = [" AND ".join(f"{name} = NEW.{name}" for name in names) for names in (*single, *several)]
    return " OR ".join(f"EXISTS (SELECT 1 FROM {table.name} WHERE {condition})" for condition in same)


def _forbid_in_postgres(connection: Connection) -> None:
    """A role that does not own a table may give it no trigger; who does has to."""
    for table in LOGS:
        trigger = f"errata_{table.name}_no_change"
        state = connection.exec_driver_sql(
            "SELECT pg_has_role(relowner, 'USAGE'), EXISTS (SELECT 1 FROM pg_trigger "
            f"WHERE tgrelid = pg_class.oid AND tgname = '{trigger}' AND tgenabled <> 'D') "
            f"FROM pg_class WHERE oid = to_regclass('{table.name}')"
        ).one()
        owns, is_protected = state
        if owns and not is_protected:
            connection.exec_driver_sql(
                "CREATE OR REPLACE FUNCTION errata_no_change() RETURNS trigger LANGUAGE plpgsql "
                f"AS $$ BEGIN RAISE EXCEPTION '{NO_CHANGE}'; END $$"
            )
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger} ON {table.name}")
            connection.exec_driver_sql(
                f"CREATE TRIGGER {trigger} BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name} "
                "FOR EACH STATEMENT EXECUTE FUNCTION errata_no_change()"
            )


def _version(connection: Connection, location: str) -> int | None:
    if not inspect(connection).has_table(about.name):
        return None
    text = read_fact(connection, "version")
    if text is None or not text.isdecimal() or int(text) < 1:
        raise InputError(f"`{location}` has no valid version (it has {text!r}); it is damaged, or not Errata's")
    return int(text)


def _create(connection: Connection, location: str) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    if taken:
        raise InputError(
            f"`{location}` has a table `{taken[0]}` that is not Errata's; give Errata a database of its own"
        )
    metadata.create_all(connection)
    write_fact(connection, "version", str(VERSION))


def read_fact(connection: Connection, name: str) -> str | None:
    """A fact about the database itself."""
    try:
        return connection.execute(select(about.c.value).where(about.c.name == name)).scalar_one_or_none()
    except DBAPIError as error:
        raise InputError("the table `errata` is not Errata's; give it a database of its own") from error


def write_fact(connection: Connection, name: str, value: str) -> None:
    """Save a fact about the database itself."""
    connection.execute(insert(about).values(name=name, value=value))
