"""Pages of a regression and of losses alone: one mean, rows behind every link, and nothing asked that has no answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from errata import workflow
from errata.core import Audit, Evaluation
from errata.people.records import Records
from errata.report import to_html
from support.asking import PAGE, Ask, opened

N = 1200


def rows(kind: str) -> Evaluation:
    """Wines of which the model knows little where they are strong."""
    rng = np.random.default_rng(0)
    strength = rng.uniform(8, 14, N)
    labels = rng.normal(5, 1, N)
    predictions = labels + rng.normal(0, np.where(strength > 12.5, 3.0, 0.6))
    columns = {"strength": strength.round(2), "colour": rng.choice(["red", "white"], N)}
    if kind == "losses":
        return Evaluation(losses=(predictions - labels) ** 2, metadata=columns)
    return Evaluation(labels=labels, predictions=predictions, task="regression", metadata=columns)


@pytest.fixture(scope="module", params=["regression", "losses"])
def audit(request: pytest.FixtureRequest) -> Audit:
    result = workflow.audit(rows(request.param), methods=["rules"])
    assert result.confirmed
    return result


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path)
    with records:
        yield records, ask


@pytest.mark.parametrize("where", ["served", "saved"])
def test_the_mean_of_all_rows_is_one_number(both: tuple[Records, Ask], audit: Audit, where: str) -> None:
    page = both[1]("GET", "/", headers=PAGE).text if where == "served" else to_html(audit)
    losses = audit.evaluation.losses
    assert losses is not None
    mean = f"{losses[~audit.discover].mean():.3g}"
    assert mean != f"{losses.mean():.3g}", "the two must differ for this test to say something"
    assert f"The mean loss of all held-out rows is {mean}." in page
    assert f"mean of all held-out rows, {mean}<" in page
    assert "mean loss of all rows" not in page


def test_what_is_compared_has_its_own_name(both: tuple[Records, Ask], audit: Audit) -> None:
    outcome = audit.overall[0][1].outcome.capitalize()
    page = both[1]("GET", "/curate", headers=PAGE).text
    assert f">{outcome} vs the rest</th>" in page
    assert "Error vs" not in page


def test_nobody_is_asked_for_a_class_or_a_test_that_there_is_not(both: tuple[Records, Ask]) -> None:
    ask = both[1]
    assert "Does it belong to the slice?" in ask("GET", "/annotate/s1", headers=PAGE).text
    refused = ask("GET", "/annotate/s1?task=class", headers=PAGE)
    assert refused.status_code == 404
    assert "Task &#39;class&#39; does not exist; the tasks are member." in refused.text
    assert "Test a hypothesis of your own" not in ask("GET", "/", headers=PAGE).text
    assert "This audit counts losses, not errors." in ask("GET", "/hypothesis", headers=PAGE).text


def test_rows_to_sort_in_or_out_show_their_columns(both: tuple[Records, Ask], audit: Audit) -> None:
    got = both[1]("GET", "/api/queues/s1?person=Ada&task=member").json()
    for item in got["items"]:
        assert set(item) == {"id", "picture", "text", "row", "metadata"}, "neither label nor prediction nor loss"
        columns = {name: str(values[item["row"]]) for name, values in audit.evaluation.metadata.items()}
        assert dict(item["metadata"]) == columns


def test_members_of_a_saved_page_lead_to_rows_that_it_holds(audit: Audit) -> None:
    page = to_html(audit)
    held_out = [int((slice_.members & ~audit.discover).sum()) for slice_ in audit.slices]
    assert re.findall(r'data-key="v">See all (\d+) held-out member', page) == list(map(str, held_out))
    assert 'id="held-out-data"' in page
    assert 'id="rows-data"' in page
    assert "This saved page holds the columns of all 600 held-out rows. Counts are of all that match;" in page
    assert '<form class="hyp' not in page


def test_a_page_that_cannot_hold_its_rows_has_no_link_to_them(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    from errata.report import script_data

    monkeypatch.setattr(script_data, "MOST_BYTES", 100)
    page = to_html(audit)
    assert "This saved page holds no table of its rows" in page
    assert "See all" not in page
