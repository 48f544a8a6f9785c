"""`python -m bench.sidecar`; its load runs in processes that read this file again."""

import sys

from bench.sidecar.run import main

if __name__ == "__main__":
    sys.exit(main())
