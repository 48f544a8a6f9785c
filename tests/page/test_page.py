"""The live page in headless Chromium over a sidecar whose driver a test plays."""

import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import ConsoleMessage, Locator, Page, expect, sync_playwright

from spark_jobs.commands import Command, answer, take
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child, free_ports, port_answers
from spark_jobs.job_record import write_job
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.graph import job_record
from spark_jobs.sql.bind.binder import bind
from spark_jobs.status import (
    BuildStatus,
    ErrorStatus,
    JobStatus,
    LatencyStatus,
    LoadStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SideStatus,
    SourceStatus,
    now,
    write_status,
)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shop.sql"
NAME = "enriched_orders"
SINK = "page-enriched-orders"
OPERATOR = "temporal-join"
TOKEN = "correct horse"  # noqa: S105
UPSERT_JOB = """\
CREATE TABLE orders (id INT, name STRING, card INT)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
  'properties.bootstrap.servers' = 'localhost:9092');
CREATE TABLE enriched_orders (id INT, name STRING, card INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'page-enriched-orders', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = 'localhost:9092');
INSERT INTO enriched_orders SELECT id, LAST_VALUE(name), MAX(card) FROM orders GROUP BY id;
"""
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


class Driver:
    """Writes what a driver would, once every half second; figures grow with each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results_come = True
        self.error: ErrorStatus | None = None
        self.third_speaks = False
        self.products_read = 423
        self.asked: list[Command] = []
        self._started = now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play)
        job = bind(EXAMPLE.read_text(encoding="utf-8"))
        write_job(folder, job_record(job, plan(job), "shop", {}))

    def __enter__(self) -> "Driver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _play(self) -> None:
        count = 0
        while not self._stop.wait(0.5):
            count += 1
            write_status(self.folder, self._status(count))
            for command in take(self.folder):
                self._answer(command)

    def _answer(self, command: Command) -> None:
        """As the driver does, of a state in which the hot key has more rows than are shown."""
        self.asked.append(command)
        assert command.state is not None
        is_empty = "404" in command.state.lookups[0].key
        row = {"id": 1, "name": "<b>Bob</b>", "card": 4111, "at": "2024-01-01T12:00:00.000Z"}
        kept = {"row": row, "copies": 2, "time": "2024-01-01T12:00:00.000"}
        left = {"side": "left", "rows": 44, "kept": [kept], "left_out": 42}
        none = {"rows": 0, "kept": [], "left_out": 0}
        sides = [none | {"side": "left"} if is_empty else left, none | {"side": "right"}]
        identity = {"query": NAME, "operator": OPERATOR, "kind": "J", "epoch": 3, "key": {"id": 1}}
        message = "no rows in 1 operator" if is_empty else "44 rows in 1 operator"
        answer(self.folder, command, message, state=[{**identity, "sides": sides}])

    def _status(self, count: int) -> JobStatus:
        at_ms = int(datetime.now(UTC).timestamp() * 1000)
        third = at_ms if self.third_speaks else None
        marks = [(0, at_ms), (1, at_ms), (2, third)]
        orders = tuple(
            PartitionStatus(
                partition=p, offset=count * 100, latest_offset=count * 100, watermark_ms=ms
            )
            for p, ms in marks
        )
        products = (PartitionStatus(partition=0, offset=9, latest_offset=9, watermark_ms=at_ms),)
        written = count * 100 if self.results_come else 0
        load = LoadStatus(read=self.products_read, total=1000)
        join = OperatorStatus(
            id=f"{NAME}/temporal-join",
            kind="temporal-join",
            sides=(SideStatus(side="left", rows=count), SideStatus(side="right", rows=60)),
            state_bytes=4096,
        )
        query = QueryStatus(
            name=NAME,
            sink=SINK,
            epoch=count,
            epochs_total=count,
            input_rows_total=count * 100,
            output_rows_total=written,
            latency=LatencyStatus(counts={"400": written}, sum_ms=written * 300),
            rejects={"json-malformed": 12},
            restarts_total=2,
            last_failure=ErrorStatus(code="X", message="gone"),
            sources=(
                SourceStatus(table="orders", topic="orders", partitions=orders),
                SourceStatus(
                    table="product_changelog", topic="products", partitions=products, load=load
                ),
            ),
            operators=(join,),
            watermark_ms=at_ms,
        )
        return JobStatus(
            job="shop",
            pid=1,
            started_at=self._started,
            updated_at=now(),
            state="failed" if self.error else "running",
            error=self.error,
            build=BuildStatus(version="1.2.3"),
            queries=(query,),
        )


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    return found


@contextmanager
def sidecar(driver: Driver, *options: str) -> Iterator[str]:
    """The address of a sidecar beside the driver."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "service.main", "--port", str(port), *options]
    child = Child([*command, "--status-dir", str(driver.folder)], driver.folder / "sidecar.log")
    try:
        while not port_answers(port):
            assert child.exit_code is None, child.log_tail()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        child.stop(5.0)


def is_problem(message: ConsoleMessage) -> bool:
    """The browser itself notes a refused request, which the page shows."""
    return message.type == "error" and not re.search("status of 40[14]", message.text)


@contextmanager
def browser_at(address: str, chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        opened = browser.new_page()
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda m: problems.append(m.text) if is_problem(m) else None)
        opened.set_default_timeout(30_000)
        opened.goto(address)
        yield opened
        assert problems == []
        browser.close()


@pytest.fixture(scope="module", autouse=True)
def silent_job(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A job without results; it is silent for a while when the last test opens its page."""
    with Driver(tmp_path_factory.mktemp("silent")) as playing:
        playing.results_come = False
        with sidecar(playing) as address:
            yield address


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    with Driver(tmp_path) as playing:
        yield playing


@pytest.fixture
def page(chromium: str, driver: Driver) -> Iterator[Page]:
    with sidecar(driver) as address, browser_at(address, chromium) as opened:
        yield opened


def test_figures_move(page: Page, driver: Driver) -> None:
    expect(page.locator("#badge")).to_have_text("ready")
    written = page.locator("[data-node=sink] dd").nth(1)
    expect(written).to_contain_text("/s")
    before = written.inner_text()
    expect(written).not_to_have_text(before)
    join = page.locator(".node.operator")
    expect(join.locator("h4")).to_have_text("temporal join, left")
    expect(join.locator("li").first).to_have_text("TemporalJoin(joinType=[left])")
    # arrows: orders and products into the join, the join into the sink
    assert page.locator(".edges path:not(.head)").count() == 3
    assert page.locator(".edges path.flows").count() >= 2
    expect(page.locator("[data-node=source-2]")).to_contain_text("42 %, rows wait for it")
    loading = page.get_by_role("progressbar", name="initial content of product_changelog")
    expect(loading).to_have_attribute("value", "423")
    driver.products_read = 1000
    expect(loading).to_have_count(0)


def test_charts_and_latency(page: Page) -> None:
    figures = page.locator(".figures")
    # the sidecar takes a sample every five seconds, and a line needs three
    expect(figures).to_contain_text("latency p50 325 ms, p99 399 ms", timeout=30_000)
    charts = page.locator(".charts .chart")
    expect(charts).to_have_count(4)
    latency = page.get_by_role("img", name="latency p99 now 399 ms; p50 now 325 ms")
    expect(latency.locator("path")).to_have_count(2)
    drawn = re.compile(r"^ *M [\d. ]+ L ")
    expect(latency.locator("path.line-0")).to_have_attribute("d", drawn, timeout=30_000)
    expect(page.locator(".silence")).to_be_hidden()


def test_the_partition_that_holds_back_is_named(page: Page, driver: Driver) -> None:
    held = page.locator(".held")
    expect(held).to_contain_text("Held back: partition 2 of topic orders")
    expect(held).to_contain_text("'scan.watermark.idle-timeout' = '30 s'")
    expect(page.locator(".node.holds h4")).to_have_text("orders")
    driver.third_speaks = True
    expect(held).not_to_contain_text("has sent no event time yet")


def test_dead_letters_and_errors_are_shown(page: Page, driver: Driver) -> None:
    expect(page.locator(".bad")).to_contain_text("json-malformed")
    driver.error = ErrorStatus(code="KAFKA_FAILED", message="no <b>broker</b>", hint="start it")
    expect(page.locator("#badge")).to_have_text("failed")
    expect(page.locator(".trouble")).to_contain_text("KAFKA_FAILED: no <b>broker</b>")
    expect(page.locator(".trouble")).to_contain_text("start it")
    expect(page.locator(".trouble")).to_contain_text("restarted 2 times, last after X: gone")


def test_keyboard_and_screen_reader(page: Page) -> None:
    expect(page.locator("#badge")).to_have_text("ready")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the queries"
    summary = page.locator("[data-node=source-1] summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-node=source-1] details")).to_have_attribute("open", "")
    page.locator(".advice summary").focus()
    page.keyboard.press("Enter")
    opened = page.locator(".advice .line").first
    expect(opened).to_contain_text("-- in WITH")
    figures = page.locator("[data-node=sink] dd").nth(1)
    expect(figures).not_to_have_text(figures.inner_text())
    assert opened.is_visible()  # the next figures have not closed it
    assert page.get_by_role("status").inner_text() == "ready"
    assert page.get_by_role("region", name=f"Query {NAME}").count() == 1


def test_narrow_and_dark(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    expect(page.locator("#badge")).to_have_text("ready")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(18, 22, 29)"
    # nothing is wider than the window
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_rows_show_what_was_taken_back(
    chromium: str, broker: Broker, driver: Driver, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(SINK, 1, 1)])[SINK].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    upsert = UPSERT_JOB.replace("localhost:9092", broker.bootstrap_servers)
    job = bind(upsert)
    write_job(tmp_path, job_record(job, plan(job), "shop", {}))
    for name in ("<b>Bob</b>", "Robert", None):
        value = None if name is None else json.dumps({"id": 1, "name": name, "card": 4111})
        producer.produce(SINK, value, json.dumps({"id": 1}))
    assert producer.flush(30) == 0
    (tmp_path / "token").write_text(TOKEN)
    options = ("--sample-rows", "5", "--mask-columns", "card", "--token-file")
    options = (*options, str(tmp_path / "token"))
    with sidecar(driver, *options) as address, browser_at(address, chromium) as page:
        rows = page.locator(".rows tbody tr")
        expect(rows).to_have_count(3)
        changes = page.locator(".rows td:nth-child(2)")
        expect(changes).to_have_text(["taken back", "corrected", "written"])
        expect(rows.nth(0).locator("del")).to_contain_text('"name": "Robert"')
        expect(rows.nth(1).locator("del")).to_contain_text("<b>Bob</b>")
        expect(page.locator(".rows")).not_to_contain_text("4111")
        look_at_the_state_behind(rows.nth(0).get_by_role("button", name="state"), page)
    assert [command.verb for command in driver.asked] == ["state-get"] * 2
    assert driver.asked[0].state is not None
    [lookup] = driver.asked[0].state.lookups
    assert (lookup.operator, lookup.key) == (f"{NAME}/aggregate", "[1]")


def look_at_the_state_behind(button: Locator, page: Page) -> None:
    """First with a wrong token, then with the right one, which the tab keeps to itself."""
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".what")).to_have_text("aggregate of groups: id = 1")
    outcome = dialog.get_by_role("status")
    for given, said in (("guess", "Wrong token."), (TOKEN, "44 rows in 1 operator.")):
        dialog.get_by_label("Admin token").fill(given)
        dialog.get_by_role("button", name="Show").click()
        expect(outcome).to_have_text(said)
    found = dialog.locator(".found")
    expect(found).to_contain_text("left: 44 rows")
    expect(found.locator("tbody td")).to_have_text(
        ["1", "<b>Bob</b>", "***", "2024-01-01 12:00:00Z", "2", "2024-01-01 12:00:00"]
    )
    expect(found).to_contain_text("42 more rows are not shown")
    expect(found).to_contain_text("right: no rows under this key")
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.evaluate("document.cookie") == ""
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.locator(".node.operator").get_by_role("button", name="state under a key").click()
    dialog.get_by_label("Join key").fill("404")
    page.keyboard.press("Enter")
    expect(outcome).to_have_text("No rows in 1 operator.")
    expect(found).to_contain_text("left: no rows under this key")


def test_no_state_without_a_token_file_or_a_driver(page: Page, driver: Driver) -> None:
    expect(page.locator("#badge")).to_have_text("ready")
    page.get_by_role("button", name="state under a key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Join key").fill("1")
    dialog.get_by_label("Admin token").fill(TOKEN)
    dialog.get_by_role("button", name="Show").click()
    outcome = dialog.get_by_role("status")
    expect(outcome).to_contain_text("Admin requests are off")
    driver.error = ErrorStatus(code="KAFKA_FAILED", message="gone")
    expect(page.locator("#badge")).to_have_text("failed")
    page.keyboard.press("Enter")
    expect(outcome).to_have_text("The driver does not run: the job is failed.")
    assert driver.asked == []


def test_why_nothing_comes(silent_job: str, chromium: str) -> None:
    with browser_at(silent_job, chromium) as page:
        panel = page.locator(".silence")
        expect(panel.locator("h3")).to_have_text(re.compile(r"No result for \d+ s"), timeout=60_000)
        expect(panel.locator("[data-code=input_idle]")).to_contain_text(
            "Table product_changelog has had no record for"
        )
        expect(panel.locator("[data-code=no_match]")).to_contain_text("rows were read")
