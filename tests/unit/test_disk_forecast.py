"""Whether the disk lasts until the campaign ends, and which logs grow without end."""

from __future__ import annotations

from itertools import pairwise

from muster.app.campaign.disk_use import (
    build_disk_outlook,
    disk_outlook_as_json,
    find_large_logs,
    format_disk_lines,
    large_logs_as_json,
)
from muster.engine.controller.watch_book import DISK_POLLS, DISK_SAMPLES, WatchBook
from muster.engine.judge.signal_history import SignalHistory, Thresholds
from muster.engine.ports.probe import WatchBookState
from muster.model.attempt_snapshot import RunReadings, TreeVitals

GB = 10**9


def steady(rate: float, count: int = 61, free: int = 100 * GB) -> list[tuple[float, int]]:
    return [(60.0 * at, int(free - rate * 60 * at)) for at in range(count)]


def test_a_disk_that_fills_before_the_end_is_told() -> None:
    view = build_disk_outlook(steady(10e6), ends_in_s=4 * 3600)
    assert view is not None
    assert view.free == 64 * GB
    assert 9.8e6 < view.rate <= 10e6
    assert view.too_small
    (line,) = format_disk_lines(view, (), cut=False)
    assert line.startswith("the disk will be full in about 1.8 h: 64.0 GB are left, and it lost 35.4 GB an hour")
    assert "the campaign needs about 4.0 h more" in line
    told = disk_outlook_as_json(view)
    assert told is not None
    assert (told["free"], told["too_small"]) == (64 * GB, True)


def test_a_disk_that_lasts_is_not() -> None:
    view = build_disk_outlook(steady(10e6), ends_in_s=3600)
    assert view is not None
    assert not view.too_small
    assert list(format_disk_lines(view, (), cut=False)) == []


def test_where_nothing_tells_the_end_half_a_day_is_looked_ahead() -> None:
    soon, late = build_disk_outlook(steady(10e6), None), build_disk_outlook(steady(1e6), None)
    assert soon is not None
    assert late is not None
    assert (soon.too_small, late.too_small) == (True, False)
    assert "when the campaign ends is not known" in next(format_disk_lines(soon, (), cut=False))


def test_what_is_no_trend() -> None:
    assert build_disk_outlook(steady(10e6)[:4], 1e9) is None, "too little is known"
    assert build_disk_outlook(steady(0.0), 1e9) is None
    assert build_disk_outlook(steady(-5e6), 1e9) is None, "it gets more"
    jump = [(at, free - (50 * GB if at > 1800 else 0)) for at, free in steady(0.0)]
    assert build_disk_outlook(jump, 1e9) is None, "one download, or another disk"
    bursts = [(60.0 * at, 100 * GB - (at // 20) * GB) for at in range(61)]  # a checkpoint every 20 minutes
    found = build_disk_outlook(bursts, 1e9)
    assert found is not None
    assert round(found.rate * 3600) == 2 * GB


def test_the_watch_takes_a_sample_a_minute_of_the_smallest_disk() -> None:
    class Nowhere:
        def load(self) -> WatchBookState:
            return WatchBookState()

        def save(self, remembered: WatchBookState) -> None: ...

    watches = WatchBook(Thresholds(), Nowhere())
    poll_s = watches.floors.poll_s
    for at in range(DISK_POLLS * (DISK_SAMPLES + 5)):
        boot = at * poll_s
        seen = [RunReadings(boot, vitals=TreeVitals(disk_free=free)) for free in (500 - at, 400)]
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
        name: SignalHistory(began=400.0, polled=1000.0, since=400.0, watched=400.0, vitals=TreeVitals(out_bytes=size))
        for name, (size, _) in runs.items()
    }
    found = find_large_logs(histories, 1000.0)
    assert large_logs_as_json(found) == [
        {"cell": "train/a", "attempt": 2, "bytes": 3 << 30, "bytes_per_s": round((3 << 30) / 600, 1)}
    ]
    (line,) = format_disk_lines(None, found, cut=False)
    assert line.startswith("train/a attempt 2 writes much: its logs have 3.2 GB, 5.4 MB a second")
    assert "logs: {max: 1G}" in line
    assert "they are cut" in next(format_disk_lines(None, found, cut=True))
