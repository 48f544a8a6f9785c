"""`python -m bench` is `rejoin bench`."""

import sys

from spark_jobs.cli import main

main(["bench", *sys.argv[1:]])
