"""The shop's tables changed by plain SQL, PostgreSQL's own joins, and what the job made of them."""

import itertools
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from spark_jobs.demo.capture_topics import ADDRESSED, PROMPT, AvroReader
from tests.compose.project import Project
from tests.e2e.topics import read_all

Row: TypeAlias = tuple[tuple[str, object], ...]
HERE = Path(__file__).resolve().parent
_CLOSING = 900_000
_EQUAL_S = 120.0


class Shop:
    """The containers of the profile cdc, seen from outside."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._servers = f"127.0.0.1:{project.ports['BROKER']}"
        self._avro = AvroReader(f"http://127.0.0.1:{project.ports['REGISTRY']}/apis/ccompat/v7")
        self._closings = itertools.count(_CLOSING)

    def execute(self, sql: str, **variables: int) -> str:
        command = ["psql", "-h", "/var/run/postgresql", "-U", "postgres", "-d", "shop", "-qAt"]
        command += ["-v", "ON_ERROR_STOP=1"]
        for name, value in variables.items():
            command += ["-v", f"{name}={value}"]
        return self._project.exec("postgres", *_as_input(command, sql))

    def change(self, base: int) -> None:
        """Every kind of change, in numbers from `base` on."""
        self.execute((HERE / "changes.sql").read_text(encoding="utf-8"), base=base)

    def wait_equal(self) -> tuple[int, int]:
        """Until both topics are PostgreSQL's answers; their numbers of rows."""
        self._close()
        wanted = self.answers()
        found: list[dict[str, Counter[Row]]] = []

        def are_equal() -> bool:
            found[:] = [self.folded()]
            return found[0] == wanted

        try:
            self._project.wait(are_equal, _EQUAL_S, "cdc-driver", "has not the answers")
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{_told(found[0], wanted)}") from None
        return wanted[ADDRESSED].total(), wanted[PROMPT].total()

    def _close(self) -> None:
        """Two transactions that let time pass for what stands before them."""
        for _ in range(2):
            number = next(self._closings)
            self.execute(
                "BEGIN;"
                " INSERT INTO customers VALUES (:n, 'closing', 'closing');"
                " INSERT INTO purchases (purchase_id, customer_id, amount) VALUES (:n, :n, 0);"
                " COMMIT; SELECT pg_sleep(0.01);",
                n=number,
            )

    def answers(self) -> dict[str, Counter[Row]]:
        text = self.execute((HERE / "answers.sql").read_text(encoding="utf-8"))
        found = json.loads(text, parse_float=Decimal)
        return {topic: Counter(_row(**fields) for fields in rows) for topic, rows in found.items()}

    def folded(self) -> dict[str, Counter[Row]]:
        """The topic of retractions as a bag of rows, the topic of upserts by its keys."""
        addressed: Counter[Row] = Counter()
        for event in self._events(ADDRESSED):
            row = _addressed(event["before"] if event["op"] == "d" else event["after"])
            if event["op"] != "d":
                addressed[row] += 1
                continue
            assert addressed[row] > 0, f"taken back, but never sent: {row}"
            addressed[row] -= 1
        paid: dict[int, Row] = {}
        for message in read_all(self._servers, [PROMPT]):
            payment = self._avro.fields(message.key() or b"")["payment_id"]
            paid.pop(payment, None)
            if (value := message.value()) is not None:
                paid[payment] = _prompt(self._avro.fields(value))
        return {
            ADDRESSED: Counter({row: n for row, n in addressed.items() if n and _is_asked(row)}),
            PROMPT: Counter(paid.values()),
        }

    def _events(self, topic: str) -> list[dict[str, Any]]:
        values = [message.value() for message in read_all(self._servers, [topic])]
        return [self._avro.fields(value) for value in values if value is not None]


def _as_input(command: list[str], sql: str) -> list[str]:
    """psql takes variables and several statements from its input only."""
    return ["sh", "-c", 'sql=$1; shift; printf "%s" "$sql" | "$@"', "sh", sql, *command]


def _row(**fields: object) -> Row:
    return tuple(sorted((name, _plain(value)) for name, value in fields.items()))


def _plain(value: object) -> object:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_asked(row: Row) -> bool:
    number = dict(row)["purchase_id"]
    return isinstance(number, Decimal) and number < _CLOSING


def _addressed(fields: dict[str, Any]) -> Row:
    snapshot = fields["purchase_id"] < 1000
    changed_ms = None if snapshot else round(fields["changed_at"].timestamp() * 1_000)
    names = ("purchase_id", "amount", "customer_id", "name", "address")
    return _row(changed_ms=changed_ms, **{name: fields[name] for name in names})


def _prompt(fields: dict[str, Any]) -> Row:
    times = {
        f"{name}_ms": round(fields[f"{name}_at"].timestamp() * 1_000) for name in ("bought", "paid")
    }
    return _row(**times, **{name: fields[name] for name in ("payment_id", "purchase_id", "amount")})


def _told(found: dict[str, Counter[Row]], wanted: dict[str, Counter[Row]]) -> str:
    told = ""
    for topic in wanted:
        for what, rows in (
            ("missing", wanted[topic] - found[topic]),
            ("too many", found[topic] - wanted[topic]),
        ):
            told += "".join(f"{topic}: {what}: {dict(row)}\n" for row in itertools.islice(rows, 8))
    return told
