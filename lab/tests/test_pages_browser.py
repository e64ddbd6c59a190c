"""The pages of studies and of the leaderboard in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import click, find, look, luminance, shown, wait
from rich.console import Console
from selenium.webdriver.support.ui import Select

from clickgym.runner.reports.film import film
from clickgym.runner.watch import Watching
from clickgym_lab.bench.leaderboard import leaderboard
from clickgym_lab.bench.protocol import VERSION_1
from clickgym_lab.studies.play import conclude, read_study

DOCS = Path(__file__).parents[2] / "docs"
STUDIES_SHIPPED, BOARD = DOCS.parent / "lab" / "results", DOCS / "leaderboard_1.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_of_a_study_fits_the_screen_and_loads_nothing(browser, scheme, width, tmp_path):
    conclude("ubm-table1", read_study("ubm-table1", STUDIES_SHIPPED), tmp_path, Console(quiet=True))
    look(browser, width, scheme)
    browser.get_log("browser")
    browser.get((tmp_path / "ubm-table1.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.querySelector('.figure img').naturalWidth") > 300
    assert browser.get_log("browser") == []  # its own policy would complain of what is fetched
    ink, paper = (
        luminance(browser.execute_script(f"return getComputedStyle(document.body).{name}"))
        for name in ("color", "backgroundColor")
    )
    assert (ink > paper) == (scheme == "dark")
    turned = browser.execute_script("return getComputedStyle(document.querySelector('.figure img')).filter") != "none"
    assert turned == (scheme == "dark")
    assert (
        len(shown(browser, ".statements .verdict")) == 3 * 10
    )  # statements, on random features and on those of real ratings and documents


def agents_shown(browser):
    return shown(browser, ".board tbody th")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (420, "light")])
def test_the_leaderboard_fits_the_screen_and_loads_nothing(browser, width, scheme):
    look(browser, width, scheme)
    browser.get_log("browser")
    browser.get(BOARD.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    assert len(agents_shown(browser)) == len(leaderboard(VERSION_1))


def test_the_leaderboard_is_filtered(browser):
    look(browser, 1400)
    browser.get(BOARD.as_uri())
    find(browser, "[name=name]").send_keys("cascade")
    assert set(agents_shown(browser)) == {place.agent for place in leaderboard(VERSION_1) if "cascade" in place.agent.lower()}
    click(browser, "[name=told]")
    assert set(agents_shown(browser)) == {
        place.agent for place in leaderboard(VERSION_1) if "cascade" in place.agent.lower() and not place.told
    }
    assert find(browser, "#shown").text.endswith(f"of {len(leaderboard(VERSION_1))} rows")
    browser.get(BOARD.as_uri())
    click(browser, "[name=many]")
    assert agents_shown(browser) == [place.agent for place in leaderboard(VERSION_1) if place.many]
    Select(find(browser, "[name=model]")).select_by_visible_text("PBM")
    assert agents_shown(browser) == [
        place.agent for place in leaderboard(VERSION_1) if place.many and "PBM" in place.click_models
    ]


def test_the_leaderboard_is_sorted_from_the_best_down_and_what_was_not_played_is_last(browser):
    look(browser, 1400)
    browser.get(BOARD.as_uri())
    for ability in ("change", "contextual"):
        number = [*VERSION_1.abilities].index(ability) + 4
        click(browser, f".board thead th:nth-child({number}) button")
        played = [place for place in leaderboard(VERSION_1) if ability in place.standing.abilities]
        best = max(played, key=lambda place: place.standing.abilities[ability].value)
        assert agents_shown(browser)[0] == best.agent
        assert set(agents_shown(browser)[: len(played)]) == {place.agent for place in played}


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (360, "dark")])
def test_the_animation_of_a_run_plays_and_follows_its_slider(browser, width, scheme, tmp_path):
    frames = Watching("PBMRank-v0", "CascadeTS", 1000).play()
    (tmp_path / "film.html").write_text(film(frames, "CascadeTS in PBMRank-v0", 0), encoding="utf-8")
    look(browser, width, scheme)
    browser.get_log("browser")
    browser.get((tmp_path / "film.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert find(browser, "#step").text == "session 1"
    click(browser, "#play")
    wait(browser, "return document.getElementById('step').textContent === 'session 3'")
    click(browser, "#play")
    assert find(browser, "#play").text == "Play"
    browser.execute_script(
        "const slider = document.getElementById('moment'); slider.value = slider.max; slider.dispatchEvent(new Event('input'));"
    )
    assert find(browser, "#step").text == "session 1,000"
    assert shown(browser, ".film .item") == [f"item {item}" for item in frames[-1].page.ranking]
    assert len(shown(browser, ".film li.clicked")) == sum(frames[-1].page.clicks)
    assert find(browser, "#total").text == f"{frames[-1].clicks:,}"
    assert browser.get_log("browser") == []
