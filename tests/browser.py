"""A real browser without a screen, for the long tests of pages; they are skipped, visibly, where none is installed."""

from __future__ import annotations

import base64
import shutil

import pytest

try:
    from selenium import webdriver
    from selenium.webdriver import ActionChains
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ModuleNotFoundError:  # only `make test-long` installs it
    webdriver = ActionChains = Service = Select = WebDriverWait = None

__all__ = ["NEEDS_BROWSER", "Browser", "Select", "WebDriverWait"]

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
NEEDS_BROWSER = pytest.mark.long
_QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
)  # fmt: skip


class Browser:
    """Chromium, driven as a reader would."""

    def __init__(self, profile):
        if webdriver is None or CHROMIUM is None or DRIVER is None:
            pytest.skip("no browser: install chromium and chromium-driver (Debian), and selenium")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (*_QUIET, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})

    def open(self, path, *, width=1100, scheme="light"):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # or clicks would miss what still scrolls
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(path.as_uri())
        return self

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def hover(self, element, across, down):
        """Move the pointer to a place inside an element, given as shares of its width and height."""
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        size = element.size
        x, y = round((across - 0.5) * size["width"]), round((down - 0.5) * size["height"])
        ActionChains(self.driver).move_to_element_with_offset(element, x, y).perform()

    def messages(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def pdf(self):
        return base64.b64decode(
            self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        )

    def close(self):
        self.driver.quit()
