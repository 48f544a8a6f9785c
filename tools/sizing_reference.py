"""The part of docs/tuning.md that shows the sizing model's constants and its errors."""

from collections.abc import Iterator

from spark_jobs.sizing.coefficients import Calibration, calibration
from spark_jobs.sizing.report import number_text


def sizing() -> Iterator[str]:
    """The data file of this release as tables."""
    yield from sizing_lines(calibration())


def sizing_lines(known: Calibration) -> Iterator[str]:
    """Where the constants are from, the errors on what was held out, the constants."""
    if known.measured is None:
        yield "No runs were measured for the model yet, so that its error is not known."
    else:
        run = known.measured
        yield f"Measured {run.at} at commit {run.commit}, {run.machine}."
    yield ""
    if known.held_out:
        yield "| held out | figure | predicted | measured | error |"
        yield "|---|---|---|---|---|"
        for h in known.held_out:
            values = f"{number_text(h.predicted)} | {number_text(h.measured)} {h.unit}"
            yield f"| {h.point} | {h.figure} | {values} | {h.error:+.0%} |"
        yield ""
    yield "| constant | value | rests on |"
    yield "|---|---|---|"
    for name, source in known.rests_on.items():
        yield f"| `{name}` | {number_text(getattr(known.coefficients, name))} | {source} |"
