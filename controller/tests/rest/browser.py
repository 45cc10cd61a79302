"""The controller's page in a headless Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE_S = 60.0
ARGUMENTS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--lang=en",
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    browser, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or chromedriver is None:
        pytest.skip("no browser here: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ARGUMENTS:
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """The page of a served controller."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.resize(1280, 900)
        driver.get("about:blank")
        driver.get_log("browser")

    def open(self, url: str) -> None:
        self.driver.get(url)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def until(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.driver, PATIENCE_S, ignored_exceptions=[Exception]).until(lambda _: condition())

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, text: str) -> object:
        return self.driver.execute_script(text)

    def named(self, name: str) -> WebElement:
        """A link or switch of the drawing."""
        return self.one(f'#drawing [data-id="{name}"]')

    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def complaints(self) -> list[str]:
        """What the browser complains about: broken scripts, refused resources."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def page(driver: webdriver.Chrome) -> Page:
    return Page(driver)
