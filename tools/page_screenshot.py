"""The pictures of the live page that README.md shows, taken from a real `rejoin demo`.

`python -m tools.page_screenshot` renews docs/images/page-*.png in about two minutes; on a busy
machine it takes longer. It needs Chromium (Debian: apt-get install chromium).
"""

import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from spark_jobs.embedded.process import Child, free_ports, port_answers

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
MARGIN = 12
# width of the window, and the part of the page at which the picture ends
SHOTS = {"wide": (1000, ".panels"), "narrow": (390, ".charts")}
START_TIMEOUT_S = 180
# the rates and the history of the state need a while
SETTLE_S = 60
# on a machine that is busy with something else an epoch takes longer, and the picture is of that
CALM = re.compile(r"epoch \d+ took 0\.\d s")
CALM_TIMEOUT_S = 600


def main() -> int:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        sys.stderr.write("Chromium is not installed (Debian: apt-get install chromium)\n")
        return 2
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = start_demo(port, Path(folder) / "demo.log")
        try:
            wait_for_page(demo, port)
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            take_all(browser, f"http://127.0.0.1:{port}/")
            browser.close()
        finally:
            demo.stop(60)
    return 0


def start_demo(port: int, log: Path) -> Child:
    """A demo with broken records among its orders, so that the page has something to report."""
    command = [sys.executable, "-m", "spark_jobs.cli", "demo", "--corrupt"]
    return Child([*command, f"--sidecar-port={port}"], log)


def wait_for_page(demo: Child, port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not port_answers(port):
        if demo.exit_code is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the demo serves no page:\n{demo.log_tail()}")
        time.sleep(0.5)


def take_all(browser: Browser, address: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    page = browser.new_page(viewport={"width": 1000, "height": 2000})
    page.goto(address)
    wait_for_rows(page)
    page.wait_for_timeout(SETTLE_S * 1000)
    for name, (width, last) in SHOTS.items():
        page.set_viewport_size({"width": width, "height": 2000})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(2_000)
            expect(page.locator(".figures")).to_have_text(CALM, timeout=CALM_TIMEOUT_S * 1000)
            take(page, width, last, IMAGES / f"page-{name}-{scheme}.png")


def take(page: Page, width: int, last: str, path: Path) -> None:
    """The page from its top to the end of the element `last`."""
    box = page.locator(last).bounding_box()
    if box is None:
        raise RuntimeError(f"{last} is not on the page")
    height = box["y"] + box["height"] + MARGIN
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": width, "height": height})


def wait_for_rows(page: Page) -> None:
    """The first joined row takes Spark half a minute."""
    timeout_ms = START_TIMEOUT_S * 1000
    expect(page.locator("#badge")).to_have_text("ready", timeout=timeout_ms)
    written = page.locator("[data-node=sink] dd").nth(1)
    expect(written).to_contain_text("/s", timeout=timeout_ms)


if __name__ == "__main__":
    sys.exit(main())
