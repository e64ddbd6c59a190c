"""The page of `clickgym report --html` in a real browser: every control, the keyboard, a phone,
paper, and no network.
"""

import base64
import json
import time

import polars
import pytest
from browsing import click, find, look, luminance, shown, wait
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import clickgym
from clickgym.runner.reports.figures import COLOURS
from clickgym.runner.reports.page import to_html
from clickgym.runner.results import read_results
from clickgym.runner.summaries import average

HOSTILE = """mine:Agent:note=</script><img src=x onerror="window.hacked=1">&amp;<b>%{x}"""
ENVS, INSTANCES = ["PBMRank-v0", "CMRank-v0:reward=any_click"], ["yandex-9", "yandex-990"]
AGENTS = ["TopRank", "CascadeKLUCB", "Random", "Oracle"]
DRAWN = "return document.querySelectorAll('.chart .main-svg').length > 0"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two environments, two instances, an agent without regret, and one whose name is HTML."""
    folder = tmp_path_factory.mktemp("results") / "out"
    clickgym.sweep(ENVS, AGENTS, 2000, 3, out=folder, instances=INSTANCES)
    table, timings, config = read_results(folder)
    table, timings = (
        frame.with_columns(polars.col("agent").replace("Random", HOSTILE))
        for frame in (table, timings)
    )
    config["agents"][2] = HOSTILE
    (folder / "report.html").write_text(to_html(table, timings, config))
    return folder / "report.html", table, config


@pytest.fixture
def page(browser, results):
    """The page, loaded anew and drawn, on a wide light screen."""
    look(browser, width=1280, scheme="light")
    browser.get(results[0].as_uri())
    wait(browser, DRAWN)
    return browser


def press(page, *keys):
    ActionChains(page).send_keys(*keys).perform()


def drawn(page, env=0):
    """Lines by colour, the number of bands, and the axes of a panel, from what plotly holds."""
    found = page.execute_script(
        """const chart = document.querySelector(`figure[data-env="${arguments[0]}"] .chart`);
        return {data: chart.data, x: chart.layout.xaxis, y: chart.layout.yaxis};""",
        env,
    )
    lines = {trace["line"]["color"]: trace for trace in found["data"] if trace.get("customdata")}
    return lines, len(found["data"]) - len(lines), found["x"], found["y"]


def test_it_loads_without_errors_and_without_the_network(page):
    for log in ("browser", "performance"):
        page.get_log(log)  # forgets what was before: the browser's own start page
    page.refresh()
    wait(page, DRAWN)
    press(page, Keys.END)
    assert [entry for entry in page.get_log("browser") if entry["level"] != "INFO"] == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert len(urls) > 0
    assert {url.partition(":")[0] for url in urls} <= {"file", "data", "blob"}
    fetched = page.execute_script(
        "return fetch('https://example.org/').then(() => 'fetched', () => 'refused')"
    )
    assert fetched == "refused"
    page.get_log("browser")  # which says so


def test_the_curves_are_those_of_the_table(page, results):
    _, table, config = results
    for env, name in enumerate(ENVS):
        lines, bands, *_ = drawn(page, env)
        assert len(lines) == bands == 3  # the Oracle has no regret
        for colour, agent in zip(COLOURS, config["agents"][:3], strict=False):
            wanted = average(table.filter(env=name, agent=agent), ["step"]).filter(
                polars.col("regret") > 1e-3
            )
            assert lines[colour]["x"] == wanted["step"].to_list()
            assert lines[colour]["y"] == pytest.approx(wanted["regret"].to_list(), rel=1e-4)
    assert (
        shown(page, ".missing") == ["No regret, hence no place on a logarithmic axis: Oracle"] * 2
    )


def test_a_single_checkpoint_is_drawn_as_points(browser, tmp_path):
    clickgym.sweep(ENVS[:1], AGENTS[:2], 100, 2, out=tmp_path / "out", checkpoints=[100])
    (tmp_path / "report.html").write_text(to_html(*read_results(tmp_path / "out")))
    look(browser, width=1280)
    browser.get((tmp_path / "report.html").as_uri())
    wait(browser, DRAWN)
    lines, _, x, _ = drawn(browser)
    assert [line["mode"] for line in lines.values()] == ["markers"] * 2
    assert x["range"] == [1, 2]  # 10 to 100 sessions


def test_both_axes_change_and_a_linear_one_has_place_for_no_regret(page):
    assert [axis["type"] for axis in drawn(page)[2:]] == ["log", "log"]
    click(page, "[name=y][value=linear]")
    assert [axis["type"] for axis in drawn(page)[2:]] == ["log", "linear"]
    assert len(drawn(page)[0]) == 4
    assert shown(page, ".missing") == []
    click(page, "[name=x][value=linear]")
    assert [axis["type"] for axis in drawn(page)[2:]] == ["linear", "linear"]
    assert drawn(page)[2]["range"] == [0, 2000]
    click(page, "[name=y][value=log]")
    assert drawn(page)[3]["type"] == "log"


def test_bands_are_the_intervals_and_can_be_put_away(page, results):
    click(page, "[name=y][value=linear]")
    wanted = average(results[1].filter(env=ENVS[0], agent="TopRank"), ["step"])
    mean, half = wanted["regret"].to_numpy(), wanted["regret_ci95"].to_numpy()
    script = "return document.querySelector('.chart').data.find((trace) => trace.fillcolor?.startsWith(arguments[0])).y"
    band = page.execute_script(script, COLOURS[0])
    assert band == pytest.approx([*(mean + half), *(mean - half)[::-1]], rel=1e-3, abs=1e-3)
    click(page, "[name=band]")
    assert drawn(page)[1] == 0
    click(page, "[name=band]")
    assert drawn(page)[1] == 4


def test_environments_are_chosen_for_curves_and_tables(page):
    assert [text.split(" Save")[0] for text in shown(page, "figcaption")] == ENVS
    click(page, "[name=env][value='0']")
    assert [text.split(" Save")[0] for text in shown(page, "figcaption")] == ENVS[1:]
    assert shown(page, "h3") == [f"{ENVS[1]}, mean over 2 instances"]
    click(page, "[name=env][value='1']")
    assert shown(page, "#nothing") == ["No environment is chosen."]
    click(page, "[name=env][value='0']")
    assert shown(page, "h3") == [f"{ENVS[0]}, mean over 2 instances"]


def test_instances_are_chosen_for_curves_and_tables(page, results):
    Select(find(page, "#instance")).select_by_visible_text("yandex-990")
    assert shown(page, "h3") == [f"{env}, yandex-990" for env in ENVS]
    wanted = average(
        results[1].filter(env=ENVS[0], instance="yandex-990", agent="TopRank"), ["step"]
    )["regret"]
    assert drawn(page)[0][COLOURS[0]]["y"][-1] == pytest.approx(wanted[-1], rel=1e-4)


def test_agents_are_chosen_for_curves_and_tables(page):
    click(page, "[name=agent][value='0']")
    assert COLOURS[0] not in drawn(page)[0]
    assert len(drawn(page)[0]) == 2
    assert "TopRank" not in shown(page, ".final th[scope=row]")
    assert len(shown(page, ".final th[scope=row]")) == 2 * 3
    click(page, "[data-agents=none]")
    assert shown(page, "#nothing") == ["No agent is chosen."]
    assert shown(page, "figure") == []
    click(page, "[data-agents=all]")
    assert len(drawn(page)[0]) == 3
    assert len(shown(page, ".final th[scope=row]")) == 2 * 4


def test_text_is_readable_in_both_themes(page):
    style = "return getComputedStyle(document.querySelector(arguments[0]))"
    for theme in ("light", "dark"):
        click(page, f"[name=theme][value={theme}]")
        paper = luminance(page.execute_script(f"{style}.backgroundColor", "body"))
        assert (paper > 0.5) == (theme == "light")
        for selector in (
            "body",
            "h1",
            "header p",
            ".note",
            "legend",
            "thead th",
            "summary",
            "button",
        ):
            ink = luminance(page.execute_script(f"{style}.color", selector))
            assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5, (
                selector
            )  # WCAG 2, level AA


def test_the_theme_is_the_systems_until_one_is_chosen(page):
    def is_dark():
        return (
            luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
            < 0.5
        )

    assert not is_dark()
    look(page, 1280, "dark")
    wait(page, "return matchMedia('(prefers-color-scheme: dark)').matches")
    assert is_dark()
    click(page, "[name=theme][value=light]")
    assert not is_dark()


def test_black_curves_are_white_in_the_dark(page):
    script = "return data.agents.map((agent) => [agent.light, agent.dark])"
    page.execute_script("data.agents[0].light = '#000000'; data.agents[0].dark = '#FFFFFF'")
    assert page.execute_script(script)[0] == ["#000000", "#FFFFFF"]
    click(page, "[name=theme][value=dark]")
    assert "#FFFFFF" in drawn(page)[0]
    click(page, "[name=theme][value=light]")
    assert "#000000" in drawn(page)[0]


def test_tables_sort_both_ways(page):
    def column(number):
        return [
            cell.get_attribute("data-value") or cell.text
            for cell in page.find_elements(By.CSS_SELECTOR, cells(number))
        ]

    def cells(number):
        return f"[data-view='0-0'] .final tbody tr > :nth-child({number})"

    assert column(1) == ["1", "2", "3", "4"]
    for number, read in [(2, str.casefold), (5, float), (6, float)]:
        button = f"[data-view='0-0'] .final thead th:nth-child({number})"
        for direction in ("ascending", "descending"):
            click(page, f"{button} button")
            assert find(page, button).get_attribute("aria-sort") == direction
            keys = [read(text) for text in column(number)]
            assert keys == sorted(keys, reverse=direction == "descending")
    assert len(page.find_elements(By.CSS_SELECTOR, "[data-view='0-0'] .final [aria-sort]")) == 1


def test_everything_can_be_done_with_the_keyboard(page):
    def focused():
        return page.switch_to.active_element

    press(page, Keys.TAB)
    assert focused().text == "Skip to the tables"
    assert focused().is_displayed()
    press(page, Keys.ENTER)
    assert focused().get_attribute("id") == "tables"
    page.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    find(page, "h1").click()
    seen = set()
    for _ in range(40):
        press(page, Keys.TAB)
        element = focused()
        assert (
            page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", element)
            == "solid"
        )  # visible focus
        name, value = element.get_attribute("name"), element.get_attribute("value")
        if name in ("agent", "band") and name not in seen:
            press(page, Keys.SPACE)
            assert not element.is_selected()
            press(page, Keys.SPACE)
        elif name in ("x", "y", "theme"):
            press(page, Keys.ARROW_RIGHT)
            assert focused().get_attribute("value") != value
        elif name == "instance":
            press(page, "yandex-990")
        elif element.text.startswith("agent"):
            press(page, Keys.ENTER)
            assert element.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
        elif element.tag_name == "summary":
            press(page, Keys.ENTER)
            assert element.find_element(By.XPATH, "..").get_attribute("open") is not None
            seen.add("summary")
            break
        seen.add(name)
    assert {"agent", "env", "band", "instance", "x", "y", "theme", "summary"} <= seen
    assert shown(page, "h3") == [f"{env}, yandex-990" for env in ENVS]
    assert [axis["type"] for axis in drawn(page)[2:]] == ["linear", "linear"]


def test_every_control_and_chart_has_a_name(page):
    unnamed = page.execute_script(
        """return [...document.querySelectorAll("input, select, button, [role=img], [role=region]")].filter((one) => {
          const label = one.labels?.[0] ?? document.getElementById(one.getAttribute("aria-labelledby"));
          return !(one.ariaLabel || (label ?? one).textContent).trim();
        }).map((one) => one.outerHTML)"""
    )
    assert unnamed == []


def test_narrow_screens_do_not_scroll_sideways(page):
    page.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    for width in (768, 390, 320):
        look(page, width)
        wait(
            page,
            f"return [...document.querySelectorAll('.chart .main-svg')].every((one) => one.clientWidth <= {width})",
        )
        assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_name_of_html_stays_text(page):
    assert shown(page, ".agents label")[2] == HOSTILE
    assert shown(page, "[data-view='0-0'] .final th[scope=row]").count(HOSTILE) == 1
    chart = find(page, "figure[data-env='0'] .chart")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(page).move_to_element(chart).perform()
    wait(page, "return document.querySelectorAll('.hoverlayer text').length > 1")
    assert HOSTILE in "".join(
        one.get_attribute("textContent")
        for one in page.find_elements(By.CSS_SELECTOR, ".hoverlayer text")
    )
    assert page.execute_script("return [window.hacked ?? null, document.images.length]") == [
        None,
        0,
    ]


def test_it_prints_light_with_curves_tables_and_no_controls(page):
    click(page, "[name=theme][value=dark]")
    page.execute_script(
        """addEventListener("beforeprint", () => { window.printed = document.querySelector(".chart").layout.font.color; });"""
    )
    assert base64.b64decode(page.print_page()).startswith(b"%PDF")
    assert page.execute_script("return window.printed") == "#000"
    assert drawn(page)[3]["color"] != "#000"  # and the screen is as before
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert shown(page, "button:not(thead *)") == shown(page, "[name=theme]") == []
        assert len(shown(page, ".agents label")) == 4
        assert len(shown(page, ".final")) == 2
        assert find(page, "#instance").is_displayed()  # else nobody knows of which the curves are
        assert (
            page.execute_script("return getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_curves_can_be_saved_and_the_command_copied(page):
    click(page, ".save")
    deadline = time.monotonic() + 20
    while not (file := page.downloads / "regret.svg").exists():
        assert time.monotonic() < deadline, "no file within 20 s"
        time.sleep(0.05)
    assert file.read_text().startswith("<svg")
    click(page, "#copy")
    wait(page, "return document.getElementById('copied').textContent !== ''")
    assert find(page, "#command").text.startswith("clickgym run PBMRank-v0 ")


def test_the_tables_need_no_script(browser, results):
    look(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(results[0].as_uri())
        assert len(shown(browser, ".final")) == 2
        assert "need JavaScript" in shown(browser, "noscript p")[0]
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_each_instance_has_a_panel_where_that_is_asked_for(browser, results, tmp_path):
    look(browser, 1280)
    table, timings, config = results[1], read_results(results[0].parent)[1], results[2]
    timings = timings.with_columns(polars.col("agent").replace("Random", HOSTILE))
    (tmp_path / "page.html").write_text(
        to_html(table, timings, {**config, "per_instance": True}, log=False)
    )
    browser.get((tmp_path / "page.html").as_uri())
    wait(browser, "return document.querySelectorAll('.chart .main-svg').length >= 4")
    assert [title.split(" Save")[0] for title in shown(browser, "figcaption")] == [
        f"{e}, {i}" for e in ENVS for i in INSTANCES
    ]
    assert len(shown(browser, ".final")) == 4
    for number, instance in enumerate(INSTANCES):
        chart = browser.execute_script(
            f"""const chart = document.querySelector('figure[data-env="1"][data-instance="{number}"] .chart');
            return {{data: chart.data, x: chart.layout.xaxis.type, y: chart.layout.yaxis.type}};"""
        )
        wanted = average(table.filter(env=ENVS[1], instance=instance, agent="TopRank"), ["step"])[
            "regret"
        ]
        (line,) = (
            trace
            for trace in chart["data"]
            if trace.get("customdata") and trace["line"]["color"] == COLOURS[0]
        )
        assert line["y"] == pytest.approx(wanted.to_list(), rel=1e-4)
        assert (chart["x"], chart["y"]) == ("linear", "linear")
    click(browser, "[name=env][value='0']")
    assert len(shown(browser, ".final")) == 2
