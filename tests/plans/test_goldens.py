"""Plans of whole job files, as `rejoin explain` prints them: NAME.sql gives NAME.txt.

`refused_*.sql` give the errors that a person reads. `make golden` rewrites the texts.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.text.explain import explain_text

HERE = Path(__file__).parent
JOBS = sorted(HERE.glob("*.sql"))


@pytest.mark.parametrize("job", JOBS, ids=[j.stem for j in JOBS])
def test_plan(job: Path, golden: Callable[[Path, str], None]) -> None:
    text = job.read_text(encoding="utf-8")
    if job.stem.startswith("refused_"):
        with pytest.raises(SqlErrors) as refused:
            explain_text(text, job.name)
        found = refused.value.render()
    else:
        found = explain_text(text, job.name)
    golden(job.with_suffix(".txt"), found + "\n")


def test_no_golden_is_left_over() -> None:
    assert [t.name for t in HERE.glob("*.txt") if not t.with_suffix(".sql").exists()] == []
