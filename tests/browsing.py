"""A real browser, and what the tests of our pages do with it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = """headless=new no-sandbox disable-gpu disable-quic no-first-run disable-dev-shm-usage
    disable-background-networking disable-component-update disable-sync"""


def started(profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser whose files are in a folder."""
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS.split(), f"user-data-dir={profile}", "window-size=1280,900"]:
        options.add_argument(f"--{flag}")
    options.add_experimental_option("prefs", {"download.default_directory": str(profile)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # both paths given: selenium looks for nothing
    browser = webdriver.Chrome(options, Service(driver))
    browser.downloads = profile
    yield browser
    browser.quit()


def look(browser, width, scheme="light", height=900):
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def wait(browser, script):
    WebDriverWait(browser, 20, 0.05).until(
        lambda driver: driver.execute_script(script), f"not within 20 s: {script}"
    )


def find(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector)


def click(page, selector):
    find(page, selector).click()


def shown(page, selector):
    """The texts of the elements that a reader sees."""
    return [
        " ".join(one.text.split())
        for one in page.find_elements(By.CSS_SELECTOR, selector)
        if one.is_displayed()
    ]


def luminance(colour):
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    return sum(
        w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for w, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True)
    )
