"""`python -m bench regular|temporal` is `rejoin bench`."""

import sys

from spark_jobs.cli import main

main(["bench", *sys.argv[1:]])
