"""The pages of studies and of the leaderboard in a real browser."""

import csv
import io
from base64 import b64decode
from pathlib import Path

import pytest
from browsing import click, find, look, luminance, shown
from rich.console import Console
from selenium.webdriver.support.ui import Select

from clickgym_lab.bench.boards import boards_tables
from clickgym_lab.studies.play import conclude, read_study

DOCS = Path(__file__).parents[2] / "docs"
STUDIES_SHIPPED, BOARD = DOCS.parent / "lab" / "results", DOCS / "leaderboard.html"


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


def lines_shown(browser):
    rows = "[...document.querySelectorAll('.board tbody tr')]"
    return browser.execute_script(f"return {rows}.filter((row) => row.offsetParent).map((row) => row.dataset.name)")


def lines():
    """The rows of all tables."""
    return [place for table in boards_tables() for place in table.places]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (360, "light")])
def test_the_leaderboard_fits_the_screen_and_loads_nothing(browser, width, scheme):
    look(browser, width, scheme)
    browser.get_log("browser")
    browser.get(BOARD.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    assert lines_shown(browser) == [place.agent for place in lines()]
    assert len(browser.find_elements("css selector", ".board thead")[0].find_elements("css selector", "th")) == 9
    wider = "return [...document.querySelectorAll('.boards')].map((board) => board.scrollWidth - board.clientWidth)"
    assert max(browser.execute_script(wider)) <= (0 if width > 1000 else 20)  # what is more can be scrolled to


def test_the_leaderboard_is_filtered(browser):
    look(browser, 1400)
    browser.get(BOARD.as_uri())
    find(browser, "[name=name]").send_keys("cascade")
    cascades = [place for place in lines() if "cascade" in place.agent.lower()]
    assert lines_shown(browser) == [place.agent for place in cascades]
    Select(find(browser, "[name=setting]")).select_by_visible_text("tuned")
    assert lines_shown(browser) == [place.agent for place in cascades if ", " in place.agent]
    assert find(browser, "#shown").text.endswith(f"of {len(lines())} rows")
    browser.get(BOARD.as_uri())
    Select(find(browser, "[name=model]")).select_by_visible_text("PBM")
    assert lines_shown(browser) == [place.agent for place in lines() if "PBM" in place.click_models]


def test_the_leaderboard_is_sorted_from_the_best_down_and_what_is_not_known_is_last(browser):
    look(browser, 1400)
    browser.get(BOARD.as_uri())
    tables = boards_tables()
    for number, table in enumerate(tables):
        click(browser.find_elements("css selector", ".board")[number], "thead th:nth-child(4) button")
        known = [place for place in table.places if place.standing.bad is not None]
        before = sum(len(each.places) for each in tables[:number])
        order = lines_shown(browser)[before : before + len(table.places)]
        assert set(order[: len(known)]) == {place.agent for place in known}
        if known:
            assert order[0] == max(known, key=lambda place: place.standing.bad.value).agent


def test_all_figures_of_a_board_can_be_downloaded(browser):
    browser.get(BOARD.as_uri())
    [address, *_] = [link.get_attribute("href") for link in browser.find_elements("css selector", "a[download]")]
    rows = list(csv.DictReader(io.StringIO(b64decode(address.partition(",")[2]).decode())))
    places = boards_tables()[0].places
    assert [row["agent"] for row in rows] == [place.agent for place in places]
    assert float(rows[0]["standard"]) == round(places[0].standing.abilities["standard"].value, 2)
