"""`python -m bench.sizing`."""

from bench.sizing.run import main

main()
