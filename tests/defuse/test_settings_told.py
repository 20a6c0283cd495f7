"""Every setting is named where a person looks for it, with the default that it has."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: settings are read beside it")

from errata.defuse import DefuseSettings  # only once torch is known to be there
from errata.defuse.command import SETTINGS
from errata.defuse.settings import FROM_DATA, parse_setting

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-errors-beyond-the-data.md"


def test_the_help_names_every_setting_with_its_default():
    told = dict(re.findall(r"(\w+)=([\w.…,-]+?)(?=[.;]? |\.?$)", SETTINGS))
    assert set(told) == set(asdict(DefuseSettings()))
    for name, value in asdict(DefuseSettings()).items():
        if name in FROM_DATA:
            assert told[name] == "auto"
            assert parse_setting(name, "auto") is None
        elif name != "strengths":
            assert parse_setting(name, told[name]) == value, name


def test_the_page_names_every_setting():
    table = PAGE.read_text().partition("## Settings")[2].partition("## What it says")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(asdict(DefuseSettings()))


def test_the_page_of_labels_says_how_many_people_a_sample_needs():
    page = (PAGE.parent / "label-with-people.md").read_text()
    assert f"`--set quorum={DefuseSettings.as_published().quorum}` as in the paper" in page
    assert DefuseSettings().quorum == 1
    assert "one by default" in page
