"""`python -m bench regular|temporal`."""

import typer

from bench.cli import bench

typer.run(bench)
