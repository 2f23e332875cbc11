"""Whether the disk lasts until the campaign ends, and which logs grow without end."""

from __future__ import annotations

from itertools import pairwise

from muster.acts.disk import disk_json, disk_lines, disk_view, large_logs, logs_json
from muster.controller.watches import DISK_POLLS, DISK_SAMPLES, Watches
from muster.domain.reading import Readings, Vitals
from muster.judge.floors import Floors
from muster.judge.history import History
from muster.ports.signals import Remembered

GB = 10**9


def steady(rate: float, count: int = 61, free: int = 100 * GB) -> list[tuple[float, int]]:
    return [(60.0 * at, int(free - rate * 60 * at)) for at in range(count)]


def test_a_disk_that_fills_before_the_end_is_told() -> None:
    view = disk_view(steady(10e6), ends_in_s=4 * 3600)
    assert view is not None
    assert view.free == 64 * GB
    assert 9.8e6 < view.rate <= 10e6
    assert view.too_small
    (line,) = disk_lines(view, (), cut=False)
    assert line.startswith("the disk will be full in about 1.8 h: 64.0 GB are left, and it lost 35.4 GB an hour")
    assert "the campaign needs about 4.0 h more" in line
    told = disk_json(view)
    assert told is not None
    assert (told["free"], told["too_small"]) == (64 * GB, True)


def test_a_disk_that_lasts_is_not() -> None:
    view = disk_view(steady(10e6), ends_in_s=3600)
    assert view is not None
    assert not view.too_small
    assert list(disk_lines(view, (), cut=False)) == []


def test_where_nothing_tells_the_end_half_a_day_is_looked_ahead() -> None:
    soon, late = disk_view(steady(10e6), None), disk_view(steady(1e6), None)
    assert soon is not None
    assert late is not None
    assert (soon.too_small, late.too_small) == (True, False)
    assert "when the campaign ends is not known" in next(disk_lines(soon, (), cut=False))


def test_what_is_no_trend() -> None:
    assert disk_view(steady(10e6)[:4], 1e9) is None, "too little is known"
    assert disk_view(steady(0.0), 1e9) is None
    assert disk_view(steady(-5e6), 1e9) is None, "it gets more"
    jump = [(at, free - (50 * GB if at > 1800 else 0)) for at, free in steady(0.0)]
    assert disk_view(jump, 1e9) is None, "one download, or another disk"
    bursts = [(60.0 * at, 100 * GB - (at // 20) * GB) for at in range(61)]  # a checkpoint every 20 minutes
    found = disk_view(bursts, 1e9)
    assert found is not None
    assert round(found.rate * 3600) == 2 * GB


def test_the_watch_takes_a_sample_a_minute_of_the_smallest_disk() -> None:
    class Nowhere:
        def load(self) -> Remembered:
            return Remembered()

        def save(self, remembered: Remembered) -> None: ...

    watches = Watches(Floors(), Nowhere())
    poll_s = watches.floors.poll_s
    for at in range(DISK_POLLS * (DISK_SAMPLES + 5)):
        boot = at * poll_s
        seen = [Readings(boot, vitals=Vitals(disk_free=free)) for free in (500 - at, 400)]
        watches._note_disk(seen)
    found = watches.remembered.disk
    assert len(found) == DISK_SAMPLES
    assert {round((after - before) / poll_s) for (before, _), (after, _) in pairwise(found)} == {DISK_POLLS}
    assert found[-1][1] < 400
    watches._note_disk([])
    assert watches.remembered.disk == found


def test_a_log_that_grows_without_end_is_told() -> None:
    runs = {"train/a@2": (3 << 30, 600.0), "train/b@1": (5 << 10, 600.0)}
    histories = {
        name: History(began=400.0, polled=1000.0, since=400.0, watched=400.0, vitals=Vitals(out_bytes=size))
        for name, (size, _) in runs.items()
    }
    found = large_logs(histories, 1000.0)
    assert logs_json(found) == [
        {"cell": "train/a", "attempt": 2, "bytes": 3 << 30, "bytes_per_s": round((3 << 30) / 600, 1)}
    ]
    (line,) = disk_lines(None, found, cut=False)
    assert line.startswith("train/a attempt 2 writes much: its logs have 3.2 GB, 5.4 MB a second")
    assert "logs: {max: 1G}" in line
    assert "they are cut" in next(disk_lines(None, found, cut=True))
