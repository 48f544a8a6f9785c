"""What is printed of the latencies that a consumer saw."""

import pytest

from bench.latency.__main__ import main
from bench.latency.run import Load, Moment, described_in_parts

# sent at 100.0, 100.5, ... 102.0, each taking as many ms as its place
FOUND = [(100.0 + place / 2, float(place)) for place in range(5)]
MOMENTS = [Moment(100.0, 7.0), Moment(101.0, 7.5), Moment(102.0, 9.0)]


def test_the_whole_alone() -> None:
    [line] = described_in_parts(FOUND, MOMENTS, Load(2, 0.0, 2.0))
    assert line == {
        "results": 4, "p50_ms": 2.0, "p90_ms": 3.0, "p99_ms": 3.0, "max_ms": 3.0, "cpu_s": 2.0,
    }  # fmt: skip


def test_parts_before_the_whole() -> None:
    first, second, whole = described_in_parts(FOUND, MOMENTS, Load(2, 0.0, 2.0, 1.0))
    assert (first["from_s"], first["results"], first["max_ms"], first["cpu_s"]) == (0, 2, 1.0, 0.5)
    assert (second["from_s"], second["results"], second["max_ms"]) == (1, 2, 3.0)
    assert whole["results"] == 4
    assert "from_s" not in whole


def test_a_part_without_results() -> None:
    lines = list(described_in_parts(FOUND[2:], MOMENTS, Load(2, 0.0, 2.0, 1.0)))
    assert lines[0] == {"from_s": 0, "results": 0, "cpu_s": 0.5}


@pytest.mark.parametrize("option", ["--every", "--seconds"])
def test_a_measurement_and_its_parts_need_a_length(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench.latency", option, "0"])
    with pytest.raises(SystemExit):
        main()
    assert f"{option}: has to be above 0" in capsys.readouterr().err
