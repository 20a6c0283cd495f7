"""What people decided about a saved audit: from its records, where there are any."""

from __future__ import annotations

from pathlib import Path

from ..core import Audit, require
from ..core.judgement import Judgement

RECORDS = "records.sqlite"  # in the folder of an audit, as `people` names it


def judgement_of(audit: Audit, folder: str | Path, database: str | None = None) -> Judgement:
    """What people decided about the slices of a saved audit; nothing where there are no records of it.

    Parameters
    ----------
    audit : Audit
        As it was found.
    folder : path
        Where it is saved.
    database : str, optional
        Where the records are. Default: the file in the folder.
    """
    if database is None and not (Path(folder) / RECORDS).is_file():
        return Judgement()
    require("sqlalchemy", "app")
    from ..people.judgement import read_judgement
    from ..people.records import Records

    names = {slice_.id: slice_.name for slice_ in audit.slices}
    with Records(database or folder, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        return read_judgement(records)
