"""The seam: calls.py and Kernel.scala have the same functions."""

import inspect
import re

from spark_jobs.kernel.build import SOURCES
from spark_jobs.kernel.calls import Kernel


def test_calls_mirror_the_kernel_function_for_function() -> None:
    scala = (SOURCES / "Kernel.scala").read_text(encoding="utf-8")
    there = re.findall(r"^  def (\w+)\(", scala, re.MULTILINE)
    here = [n for n, _ in inspect.getmembers(Kernel, inspect.isfunction) if not n.startswith("_")]
    assert sorted(re.sub(r"[A-Z]", lambda m: f"_{m[0].lower()}", name) for name in there) == here
