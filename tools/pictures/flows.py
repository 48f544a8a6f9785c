"""Pictures of what sends what to whom: the whole, an epoch and its ledger, the pod."""

from tools.pictures.drawing import Drawing


def overview() -> Drawing:
    d = Drawing(356, "Topics, driver, sidecar")
    d.words(16, 28, "Kafka topics", ink="soft")
    d.words(184, 28, "a driver on Spark", ink="soft")
    d.words(374, 28, "Kafka topics", ink="soft")
    d.box(16, 44, 126, 62, "orders", "JSON", accent="source")
    d.box(16, 136, 126, 62, "customers", "Debezium", accent="source")
    d.frame(178, 44, 160, 154, "rejoin run job.sql")
    d.box(192, 76, 132, 44, "join", accent="operator")
    d.box(192, 134, 132, 52, "state", "RocksDB", accent="operator")
    d.line((258, 120), (258, 134), ink="soft")
    d.arrow((142, 75), (160, 75), (160, 98), (192, 98), ink="source")
    d.line((142, 167), (160, 167), (160, 98), ink="source")
    d.box(374, 44, 130, 62, "results", "exactly once", accent="sink")
    d.box(374, 136, 130, 62, "dead-letter", "records", accent="sink")
    d.arrow((324, 98), (356, 98), (356, 75), (374, 75), ink="sink")
    d.arrow((356, 98), (356, 167), (374, 167), ink="sink")
    d.box(16, 264, 126, 74, "checkpoint", "offsets, state")
    d.box(192, 264, 132, 74, "sidecar", "live page,", "/metrics")
    d.box(374, 264, 130, 74, "Prometheus", "and Grafana")
    d.arrow((206, 198), (206, 226), (79, 226), (79, 264))
    d.words(89, 220, "each epoch", ink="soft")
    d.arrow((284, 198), (284, 264))
    d.words(293, 236, "status.json", ink="soft")
    d.arrow((374, 301), (324, 301))
    return d


def epoch() -> Drawing:
    d = Drawing(470, "Epoch 41 and its ledger")
    checkpoint, driver, kafka = 88, 236, 420
    for x, name in ((checkpoint, "checkpoint"), (driver, "driver"), (kafka, "Kafka")):
        d.words(x, 28, name, at="middle", kind="bold")
        d.line((x, 38), (x, 454))
    d.words(driver - 8, 66, "1", at="end", ink="operator", kind="bold")
    d.arrow((driver, 72), (checkpoint, 72), ink="operator")
    d.words(checkpoint + 12, 92, "epoch 41 reads", "offsets 100-179", ink="soft")
    d.box(driver - 66, 128, 132, 44, "2  read, join", accent="operator")
    _killed(d, driver, 194, "end", "says 41; the next", "driver writes epoch 41")
    d.words(driver + 8, 258, "3", ink="operator", kind="bold")
    d.arrow((driver, 264), (318, 264), ink="operator")
    d.frame(320, 206, 186, 116, "one transaction")
    d.box(330, 236, 166, 32, "results", accent="sink")
    d.box(330, 278, 166, 32, "ledger: next 42", accent="sink")
    _killed(d, driver, 346, "start", "says 42; the next driver", "skips epoch 41")
    d.words(driver - 8, 412, "4", at="end", ink="operator", kind="bold")
    d.arrow((driver, 418), (checkpoint, 418), ink="operator")
    d.words(checkpoint + 12, 438, "epoch 41 is done", ink="soft")
    return d


def pod() -> Drawing:
    d = Drawing(448, "The pod")
    d.frame(16, 16, 488, 292, "pod: StatefulSet, one replica")
    d.box(
        32, 52, 206, 92, "driver", "rejoin run job.sql", "local[N]: tasks inside", accent="operator"
    )
    d.box(282, 52, 206, 92, "sidecar", "live page, /metrics,", "/health, /admin", accent="operator")
    d.box(32, 222, 124, 68, "scratch", "RocksDB files")
    d.box(180, 222, 116, 68, "job.sql", "ConfigMap")
    d.box(328, 222, 160, 68, "status folder", "shared by both")
    d.arrow((90, 144), (90, 222))
    d.arrow((214, 222), (214, 144))
    d.arrow((238, 98), (260, 98), (260, 184), (356, 184), (356, 222))
    d.words(270, 178, "writes", ink="soft")
    d.arrow((440, 222), (440, 144))
    d.words(432, 178, "reads", ink="soft", at="end")
    d.box(32, 356, 150, 76, "checkpoint", "PVC: outlives", "the pod", accent="source")
    d.box(206, 356, 128, 76, "Kafka", "and schema", "registry", accent="sink")
    d.box(358, 356, 130, 76, "Prometheus", "scrapes", "port 9640")
    d.arrow((168, 144), (168, 356))
    d.arrow((270, 308), (270, 356))
    d.arrow((422, 356), (422, 308))
    return d


def _killed(d: Drawing, x: float, y: float, at: str, *lines: str) -> None:
    d.cross(x, y)
    side = -18 if at == "end" else 18
    d.words(x + side, y - 4, "killed here: the ledger", *lines, ink="bad", at=at, kind="halo")
