"""Trains the school: `python train.py --artifacts OUT` is 60 iterations with the reference's gate. See README.md."""

import os
import sys


def main() -> int:
    # numpy reads these when it is loaded; sums come out the same on any number of cores, so that a resume can't be told
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from trainer import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
