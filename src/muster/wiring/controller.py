"""`python -m muster.wiring.controller ROOT`: how a shim of 0.1 begins a controller."""

import sys

from muster.bootstrap.controller_process import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
