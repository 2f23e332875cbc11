"""What programs say before they die: steps, bars, warnings, words that mean nothing. All by a seed."""

import random
import sys

WARNINGS = (
    "UserWarning: The given NumPy array is not writable, and PyTorch does not support non-writable tensors.",
    "DeprecationWarning: `np.bool8` is a deprecated alias for `np.bool_`.",
    "RuntimeWarning: invalid value encountered in log",
    "WARNING:root:replay buffer is empty, skipping 3 updates",
    "W0215 10:11:12.000000 140 torch/distributed/run.py:766] Setting OMP_NUM_THREADS environment variable to 1",
    "2026-02-15 10:11:12.123456: I tensorflow/core/platform/cpu_feature_guard.cc:182] This binary is optimized",
    "wandb: Currently logged in as: ana. Use `wandb login --relogin` to force relogin",
)
HARMLESS_NUMBERS = (
    "replaced 3 NaN entries of column age by its median",
    "nan_count=0 inf_count=0",
    "eval: 0 of 512 episodes had a nan reward",
    "config: check_nan=True clip_inf=False",
    "grad norm finite, no NaN found",
)


def say(text: str, err: bool = False) -> None:
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def steps(r: random.Random, most: int = 40, err: bool = False) -> None:
    step, loss = r.randrange(1000), r.uniform(1, 5)
    for _ in range(r.randrange(1, most)):
        step, loss = step + r.randrange(1, 20), loss * r.uniform(0.9, 1.05)
        say(f"step {step} loss {loss:.4f}", err)


def bars(r: random.Random) -> None:
    """As tqdm draws them: over one line of stderr, and no newline at the end."""
    total = r.randrange(50, 500)
    at = 0
    while at < total * r.uniform(0.3, 0.9):
        at = min(total, at + r.randrange(1, 20))
        full = at * 10 // total
        bar = "█" * full + " " * (10 - full)
        sys.stderr.write(f"\rTraining: {100 * at // total:3d}%|{bar}| {at}/{total} [00:12<00:34, 12.34it/s, loss=0.7]")
    sys.stderr.write("\n" if r.random() < 0.5 else "")
    sys.stderr.flush()


def noise(r: random.Random) -> None:
    for _ in range(r.randrange(4)):
        what = r.randrange(4)
        if what == 0:
            steps(r, err=r.random() < 0.4)
        elif what == 1:
            bars(r)
            say("", err=True)
        elif what == 2:
            say(r.choice(WARNINGS), err=True)
        else:
            say(r.choice(HARMLESS_NUMBERS), err=r.random() < 0.5)
