"""The same changes, chosen by hypothesis: towards inputs that take longer and more memory, and shrunk where they fail."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from harness import Reader, Taken, measured, seeds_of
from mutate import hostile

LAST = "guided-last"  # the input that is being read, for the one that names it if it ends this process


def guided(reader: Reader, examples: int, seed: int) -> Iterator[Taken]:
    """What each input took. Ends with the smallest one that failed, if any did."""
    import hypothesis
    from hypothesis import HealthCheck, settings
    from hypothesis import strategies as st

    taken: list[Taken] = []
    failed: list[tuple[Taken, bytes]] = []

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:

        @hypothesis.seed(seed)
        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @hypothesis.given(rng=st.randoms(use_true_random=False))
        def read(rng: Random) -> None:
            data = hostile(seeds_of(reader), rng, reader.words, reader.codec)[: min(reader.most, 64 << 10)]
            Path(tempfile.gettempdir(), LAST).write_bytes(data)
            one = measured(reader, seed, Path(folder), data)
            taken.append(one)
            if one.failure:
                failed.append((one, data))
                raise AssertionError(one.failure)
            hypothesis.target(one.cpu_s, label="seconds")
            hypothesis.target(one.mb, label="megabytes")

        try:
            read()
        except AssertionError:
            pass
    yield from (one for one in taken if not one.failure)
    if failed:
        one, data = failed[-1]
        one.failure += f"; guided by hypothesis, {data[:300]!r}"
        yield one
