"""Which kind of folder `errata serve` and `errata annotations` take a folder for."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.cli import serve
from errata.core import ErrataError


def test_a_run_of_defuse_is_recognised_by_its_file(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "defuse.json").write_text("{}")
    recognised = [[site.recognises(folder) for site in serve.SITES] for folder in (run, tmp_path)]
    assert recognised == [[True, True], [False, True]]  # the first one that recognises a folder serves it


def test_a_folder_of_no_kind_is_refused_as_an_audit(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: there are no records")
    with pytest.raises(ErrataError, match="audit"):
        serve.export_annotations(tmp_path, tmp_path / "all.json")
    assert list(tmp_path.iterdir()) == []
