"""docs/errors.md and the code name the same error codes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.errors import ConfigError, KafkaError, RejoinError, SqlError, SqlErrors

ROOT = Path(__file__).parents[3]
CODE = r"[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+"
# what takes a code as its first argument: the error classes and the functions that raise them
RAISERS = re.compile(r"\w*Error|store_failures|_?wrong|_?unsupported|fail|_?report|_error|__init__")


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _python_codes() -> Iterator[str]:
    for package in ("spark_jobs", "service", "bench"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if re.search(CODE, text) else ():
                match node:
                    case ast.Call(args=[ast.Constant(value=str() as code), *_]) if (
                        RAISERS.fullmatch(_called_name(node)) and re.fullmatch(CODE, code)
                    ):
                        yield code


def _kernel_codes() -> Iterator[str]:
    """Codes that the kernel's exceptions carry: `throw new RegistryException("CODE", ...)`."""
    kinds = "Ledger|DataLoss|Registry|Lookup|LookupRefused"
    thrown = re.compile(rf'(?:{kinds})Exception\(\s*"({CODE})"')
    for path in (ROOT / "spark_jobs" / "kernel").rglob("*.scala"):
        yield from thrown.findall(path.read_text(encoding="utf-8"))


def _documented_codes() -> list[str]:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return re.findall(rf"^\| `({CODE})` \|", text, re.MULTILINE)


def test_every_code_is_documented_once() -> None:
    documented = _documented_codes()
    assert len(documented) == len(set(documented))
    assert set(documented) == {*_python_codes(), *_kernel_codes()}


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (SqlError("SQL_SYNTAX", "wrong"), 2, False),
        (SqlErrors([]), 2, False),
        (ConfigError("JAVA_MISSING", "none"), 2, False),
        (KafkaError("KAFKA_FAILED", "no"), 3, True),
        (RejoinError("QUERY_FAILED", "no"), 4, False),
    ],
)
def test_exit_code_follows_the_domain(error: RejoinError, code: int, retryable: bool) -> None:
    assert error.exit_code == code
    assert error.retryable is retryable


def test_rendering_points_at_the_place() -> None:
    error = SqlError("UNKNOWN_COLUMN", "no column x", "did you mean 'y'?", line=2, column=9)
    error.locate("a\n\tSELECT x", "job.sql")
    assert error.render() == (
        "job.sql:2:9: UNKNOWN_COLUMN no column x\n"
        "  \tSELECT x\n"
        "  \t       ^\n"
        "  hint: did you mean 'y'?"
    )


def test_problems_are_rendered_in_the_order_of_the_text() -> None:
    late = SqlError("SQL_SYNTAX", "late", line=3, column=1)
    early = SqlError("SQL_SYNTAX", "early", line=1, column=1)
    errors = SqlErrors([late, early])
    assert errors.codes == ("SQL_SYNTAX", "SQL_SYNTAX")
    assert errors.render().index("early") < errors.render().index("late")
