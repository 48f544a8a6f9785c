"""docs/python.md's code does what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("pyspark_functions")
def test_code_that_needs_no_session_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [b for b in _BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "spark = " not in b]
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102
    assert "['order_id', 'yen']" in capsys.readouterr().out
    assert names["result"].columns == ["amount"]
    assert "TemporalJoin" in names["result"].explain()
    assert "IntervalJoin" in names["shipped"].explain()
