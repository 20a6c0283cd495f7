"""The entry of Defuse among the folders that `errata serve` opens (`cli.serve.SITES`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .stages import is_run


class RunSite:
    """The folder of a run: its regions are labelled in the app, and the answers are its records."""

    def recognises(self, folder: Path) -> bool:
        """Whether `errata defuse` created the folder."""
        return is_run(folder)

    def open_records(self, folder: Path, database: str | None) -> Any:
        """The records of people's answers to the run."""
        from .votes import open_records

        return open_records(folder, database)

    def answer_check(self, folder: Path, records: Any) -> Any:
        """What is asked of an answer before it is saved."""
        from .server import answer_check

        return answer_check(folder, records)

    @contextmanager
    def open_app(self, folder: Path, database: str | None, others: list[Path], *, access: Any) -> Iterator[Any]:
        """The app of the run, until its records are closed. others: not used, since runs are not compared."""
        from .server import app_of_folder

        with self.open_records(folder, database) as records:
            yield app_of_folder(folder, records, access=access)
