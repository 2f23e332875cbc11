"""`python -m muster.wiring.begin muster.wiring.controller ROOT`: how 0.1 begins a controller."""

import sys

from muster.bootstrap.begin_process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
