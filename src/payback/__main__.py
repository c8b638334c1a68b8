"""`python -m payback` is the command line."""

import sys

from payback.cli import main

if __name__ == "__main__":
    sys.exit(main())
