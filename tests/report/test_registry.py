"""A page and parts from an outside package, joined by entry points alone, in the saved report and in the app."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import iter_modules

import pytest

from errata.core import Audit, Slice, UnknownExplanation
from errata.report import PAGES, PARTS, pages, to_html
from errata.report.rendering import templates
from errata.report.static_files import file_text, script_text
from support.asking import PAGE, opened

PACKAGE = """
from errata.report import Page, Part, Script, Section

SCRIPT = Script("weather.js", ("weather:weather.js",))


def context(view, request):
    return {"title": "Weather", "words": f"{len(view.audit.slices)} slices, {request.get('wind', 'no')} wind"}


def describe(view, slice_):
    for explanation in slice_.explanations:
        if explanation.kind == "weather":
            return {"sky": "grey"}
    return None


PAGE = Page("weather", "page_weather.html", context, ("/weather",), nav="Weather", saved=lambda audit: [{}],
            scripts=(SCRIPT,), keys=(("w", "the weather"),), package="weather")
PART = Part("weather", Section("weather", "Weather report", 4.5), describe, "part_weather.html", package="weather")
"""
FILES = {
    "weather/__init__.py": PACKAGE,
    "weather/templates/page_weather.html": "{% extends frame %}{% block content %}<h1>{{ words }}</h1>{% endblock %}",
    "weather/templates/part_weather.html": "<p>The sky is {{ part.sky }}.</p>",
    "weather/static/weather.js": "// rain",
    "weather-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: weather\nVersion: 1\n",
    "weather-1.dist-info/entry_points.txt": (
        "[errata.pages]\nweather = weather:PAGE\n\n[errata.parts]\nweather = weather:PART\n"
    ),
}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that Errata knows nothing of."""
    for name, text in FILES.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("weather", None)
    templates.cache_clear()
    file_text.cache_clear()
    script_text.cache_clear()


@pytest.fixture
def audit(make_slice: Callable[..., Slice], make_audit: Callable[..., Audit]) -> Audit:
    rainy = make_slice(explanations=(UnknownExplanation("weather", {"sky": "grey"}),))
    return make_audit(rainy, make_slice(id="s2"))


@pytest.mark.usefixtures("outside")
def test_an_outside_page_is_in_the_saved_report(audit: Audit) -> None:
    html = to_html(audit)
    assert '<a href="#weather" data-key="W">Weather</a>' in html
    assert 'id="weather" data-title="Weather"' in html
    assert "<h1>2 slices, no wind</h1>" in html
    assert '<script type="module">// rain</script>' in html
    assert "<dd>the weather</dd>" in html


@pytest.mark.usefixtures("outside")
def test_an_outside_part_stands_on_the_page_of_its_slice(audit: Audit) -> None:
    html = to_html(audit)
    assert html.count("<p>The sky is grey.</p>") == 1  # the second slice has no such explanation
    assert html.index("slice/s1/words") < html.index("The sky is grey.") < html.index('id="slice/s2"')
    assert '<a href="#slice/s1/weather">Weather report</a>' in html
    assert "s2-weather" not in html


@pytest.mark.usefixtures("outside")
def test_an_outside_page_and_part_are_served(audit: Audit, tmp_path: Path) -> None:
    records, ask = opened(audit, tmp_path)
    with records:
        page = ask("GET", "/weather?wind=much", headers=PAGE)
        assert page.status_code == 200
        assert "<h1>2 slices, much wind</h1>" in page.text
        assert '<a href="/weather" data-key="W" aria-current="page">Weather</a>' in page.text
        assert 'src="/static/weather.js"' in page.text
        assert ask("GET", "/static/weather.js").text == "// rain"
        assert "<p>The sky is grey.</p>" in ask("GET", "/slice/s1", headers=PAGE).text
        assert '<a href="/weather" data-key="W">Weather</a>' in ask("GET", "/", headers=PAGE).text


def test_without_the_package_there_is_neither(audit: Audit, tmp_path: Path) -> None:
    assert "#weather" not in to_html(audit)
    records, ask = opened(audit, tmp_path)
    with records:
        assert ask("GET", "/weather").status_code == 404


def test_an_explanation_without_a_part_shows_its_fields(audit: Audit, make_audit: Callable[..., Audit]) -> None:
    html = to_html(audit)
    assert '<a href="#slice/s1/more">More explanations</a>' in html
    assert "<h3>weather</h3>" in html
    assert "<tr><td>sky</td><td>grey</td></tr>" in html
    whole = to_html(make_audit(explanations=(UnknownExplanation("tides", {"high": [1, 2]}),)))
    assert "<tr><td>high</td><td>[1, 2]</td></tr>" in whole


def test_names_and_kinds_are_the_keys() -> None:
    assert all(page.name == name for name, page in PAGES.items())
    assert all(part.kind == kind for kind, part in PARTS.items())


def test_every_page_is_registered_but_the_sub_pages() -> None:
    modules = [importlib.import_module(f"{pages.__name__}.{module.name}") for module in iter_modules(pages.__path__)]
    registered = [module for module in modules if hasattr(module, "PAGE")]
    assert {module.PAGE.name for module in registered} == set(PAGES)
    sub_pages = {module.__name__.rpartition(".")[2] for module in modules if module not in registered}
    assert sub_pages == {"drawn_slice", "questionnaire"}  # forms of `slice` and `annotate`, as `pages` says


def test_an_outside_page_replaces_none_of_ours(outside: None, tmp_path: Path, audit: Audit) -> None:
    points = tmp_path / "site" / "weather-1.dist-info" / "entry_points.txt"
    points.write_text("[errata.pages]\nmine = weather:OVERVIEW\n")
    (tmp_path / "site" / "weather" / "__init__.py").write_text(
        PACKAGE + '\nOVERVIEW = Page("overview", "x", context)\n'
    )
    assert "<h1>Two groups of inputs" in to_html(audit)
