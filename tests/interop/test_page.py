"""The page of a repository in a real browser: Chromium, driven as a person would use it."""

from __future__ import annotations

import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Bench
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE_S = 30.0
HOSTILE = '<img src=x onerror="document.title=1">.txt'


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x20\x80\x80" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    browser, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or chromedriver is None:
        pytest.skip("no browser here: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--window-size=1280,900", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"):
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


@dataclass
class Page:
    """A running repository and the page that shows it."""

    bench: Bench
    driver: webdriver.Chrome
    config: Path
    address: str = ""

    def put(self, name: str, *sources: Path) -> None:
        self.bench.trunkline("repo", "put", "-c", str(self.config), name, *map(str, sources))

    def file(self, name: str, content: bytes) -> Path:
        path = self.bench.folder / name
        path.write_bytes(content)
        return path

    def run(self) -> None:
        process = self.bench.start(
            str(self.bench.binary), "repo", "run", "--config", str(self.config), "--http", "127.0.0.1:0", log="repo.log"
        )
        log = self.bench.folder / "repo.log"
        self.bench.wait_for(lambda: b"page at" in log.read_bytes(), process)
        found = re.search(r"page at (\S+)", log.read_text())
        assert found is not None
        self.address = found.group(1)
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(self.bench.folder / "down")}
        )
        self.driver.get_log("browser")
        self.driver.get(self.address)

    def until(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.driver, PATIENCE_S, ignored_exceptions=[Exception]).until(lambda _: condition())

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def rows(self) -> list[str]:
        return [row.text for row in self.driver.find_elements(By.CSS_SELECTOR, "#list .name")]

    def click_row(self, name: str) -> None:
        self.until(lambda: name in self.rows())
        next(r for r in self.driver.find_elements(By.CSS_SELECTOR, "#list .name") if r.text == name).click()

    def complaints(self) -> list[str]:
        """What the browser complains about: broken scripts, refused resources."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def page(bench: Bench, driver: webdriver.Chrome) -> Page:
    config = bench.folder / "repo.toml"
    config.write_text('[repo]\ndirectory = "store"\n[[serve]]\nprefix = "/shown"\n')
    return Page(bench, driver, config)


def test_a_person_looks_around_and_saves_a_file(page: Page) -> None:
    content = os.urandom(20_000_000)
    page.put("/shown/big.bin", page.file("big.bin", content))
    page.put("/shown/texts/a.md", page.file("a.md", "# Grüße\nText".encode()))
    page.put("/shown/pictures/sky.png", page.file("sky.png", png(40, 30)))
    page.run()
    page.click_row("texts")
    page.click_row("a.md")
    page.until(lambda: "Grüße" in page.one("#preview pre").text)
    page.until(lambda: "Signed with the owner's key" in page.one("#signature").text)
    assert "/shown/texts/a.md" in page.one("#facts").text
    # Back to where it began, and by search to a picture.
    page.one("#crumbs a").click()
    page.until(lambda: sorted(page.rows()) == ["big.bin", "pictures", "texts"])
    page.one("#text").send_keys("SKY")
    page.until(lambda: [row.split("\n")[0] for row in page.rows()] == ["sky.png"])
    page.one("#list a").click()
    page.until(lambda: page.driver.execute_script("return document.querySelector('#preview img').naturalWidth") == 40)
    # A folder's address without its last slash, on the page and as a path.
    for address in ("#/shown/texts", "files/shown/texts"):
        page.driver.get(f"{page.address}{address}")
        page.until(lambda: page.rows() == ["a.md"])
        page.until(lambda: page.driver.current_url == f"{page.address}#/shown/texts/")
        page.driver.get("about:blank")
    # The page asks for a file of that name first; the browser tells of each 404.
    asked = "/api/file?name=%2Fshown%2Ftexts - "
    assert [complaint for complaint in page.complaints() if asked not in complaint] == []
    # The download, with its bar.
    page.driver.get(f"{page.address}#/shown/big.bin")
    page.until(lambda: page.one("#download").is_enabled() and page.one("#title").text == "big.bin")
    page.one("#download").click()
    page.until(lambda: "Done" in page.one("#downloads .how").text)
    assert float(page.one("#downloads progress").get_property("value")) == 1.0
    saved = page.bench.folder / "down" / "big.bin"
    page.until(lambda: saved.exists() and saved.read_bytes() == content)
    assert page.complaints() == []


def test_a_name_or_file_that_means_harm_does_none(page: Page) -> None:
    folder = page.bench.folder / "evil"
    folder.mkdir()
    (folder / HOSTILE).write_text("<script>document.title = 2</script>")
    (folder / "run.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>top.document.title = 3</script></svg>'
    )
    (folder / "page.html").write_text("<script>document.title = 4</script><h1>heading</h1>")
    page.put("/shown/evil", folder)
    page.run()
    page.click_row("evil")
    for name in (HOSTILE, "run.svg", "page.html"):
        page.click_row(name)
        page.until(lambda name=name: page.one("#title").text == name and page.one("#preview").text + name)
        page.until(lambda: page.driver.find_elements(By.CSS_SELECTOR, "#preview img, #preview pre"))
    page.until(lambda: "<h1>heading</h1>" in page.one("#preview pre").text)
    assert page.driver.title == "/shown/evil"
    assert page.driver.find_elements(By.CSS_SELECTOR, "#list img, #details h1 img, #preview script") == []
    # The files by themselves: nothing runs there either.
    for name in ("run.svg", "page.html"):
        page.driver.get(f"{page.address}files/shown/evil/{name}?show=1")
        assert page.driver.title not in {"2", "3", "4"}


def test_a_keyboard_is_enough(page: Page) -> None:
    for name in ("one.txt", "two.txt", "three.txt"):
        page.put(f"/shown/{name}", page.file(name, name.encode()))
    page.run()
    page.until(lambda: len(page.rows()) == 3)
    body = page.one("body")
    body.send_keys("/")
    assert page.driver.switch_to.active_element.get_attribute("id") == "text"
    page.driver.switch_to.active_element.send_keys("two")
    page.until(lambda: page.rows() == ["two.txt"])
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.until(lambda: page.one("#preview pre").text == "two.txt")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.one("#details").is_displayed())
    unnamed = page.driver.execute_script(
        "return [...document.querySelectorAll('button, input, a')].filter("
        "(e) => !e.textContent.trim() && !e.ariaLabel).map((e) => e.outerHTML)"
    )
    assert unnamed == []
    assert page.complaints() == []


def test_a_large_folder_fills_as_one_scrolls(page: Page) -> None:
    folder = page.bench.folder / "many"
    folder.mkdir()
    for n in range(1200):
        (folder / f"{n}.txt").touch()
    page.put("/shown", folder)
    page.run()
    page.until(lambda: page.rows())

    def scrolled() -> bool:
        page.driver.execute_script("scrollTo(0, document.body.scrollHeight)")
        return page.one("#status").text == "1,200 entries"

    page.until(scrolled)
    assert page.driver.execute_script("return document.querySelectorAll('#list li').length") == 1200


def test_what_the_disk_has_changed_is_told_and_not_saved(page: Page) -> None:
    content = os.urandom(20_000_000)
    page.put("/shown/a.bin", page.file("a.bin", content))
    stored = next(p for p in (page.bench.folder / "store/files").glob("*/*") if p.stat().st_size == len(content))
    with stored.open("r+b") as file:
        file.seek(15_000_000)
        file.write(b"\0" * 64)
    page.run()
    page.click_row("a.bin")
    page.until(lambda: page.one("#download").is_enabled())
    page.one("#download").click()
    page.until(lambda: "does not verify" in page.one("#downloads .how").text)
    assert not (page.bench.folder / "down" / "a.bin").exists()
