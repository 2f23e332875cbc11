"""The summaries of all keys of one run, out of one or several sources; a second look costs what is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.resumed import Resumption
from muster.ports.metrics import Ended, MetricReader, Rows, Said
from muster.rounds.summary import Summarizer, Summary

MOST_KEYS = 20_000  # of one source: no run that people look at has as many


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run's metrics show."""

    sources: tuple[Said, ...]
    keys: Mapping[str, Summary]
    ended: Ended | None = None
    written: float | None = None  # wall time of the last value
    troubles: tuple[str, ...] = ()  # sources that can't be read
    others: tuple[str, ...] = ()  # keys that nobody asked for
    resumed: Resumption | None = None  # what counts of the attempts that wrote it, by the source that is trusted most


@dataclass(frozen=True, slots=True)
class Feed:
    """A reader, and what is put before its keys where two of its kind use the same ones."""

    reader: MetricReader
    prefix: str = ""


class Meter:
    """Where two sources hold the same key, the first one counts: they are in the order of trust."""

    def __init__(self, feeds: Sequence[Feed], wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._feeds = list(feeds)
        self._wanted = wanted
        self._keys: list[dict[str, Summarizer]] = [{} for _ in feeds]
        self._others: dict[str, None] = {}
        self._troubles: dict[int, str] = {}
        self._crowded: set[int] = set()  # sources with more keys than are kept

    def look(self) -> None:
        """Takes in what is new. A source that can't be read is told of, and the others are read."""
        for at, feed in enumerate(self._feeds):
            try:
                for rows in feed.reader.read():
                    self._take(at, rows)
                self._troubles.pop(at, None)
            except OSError as error:
                self._troubles[at] = f"{feed.reader.said.path} can't be read: {error.strerror or error}"

    def _take(self, at: int, rows: Rows) -> None:
        if rows.fresh:
            self._keys[at].clear()
            self._crowded.discard(at)
        for key, (steps, values) in rows.columns.items():
            name = self._feeds[at].prefix + key
            summarizer = self._keys[at].get(name)
            if summarizer is None:
                if not self._wanted(name):
                    if len(self._others) < MOST_KEYS:
                        self._others[name] = None
                    continue
                if len(self._keys[at]) >= MOST_KEYS:
                    self._crowded.add(at)
                    continue
                summarizer = self._keys[at][name] = Summarizer(name)
            summarizer.add_many(steps, values)

    def measured(self) -> Measured:
        keys: dict[str, Summary] = {}
        for held in self._keys:
            keys.update({key: each.summary() for key, each in held.items() if key not in keys})
        said = tuple(feed.reader.said for feed in self._feeds)
        ended = next((feed.reader.ended for feed in self._feeds if feed.reader.ended), None)
        times = [each.written for each, held in zip(said, self._keys, strict=True) if held and each.written is not None]
        crowded = (self._feeds[at].reader.said.path for at in sorted(self._crowded))
        more = (f"{path} has more than {MOST_KEYS} keys: those that came later are left out" for path in crowded)
        troubles = (*self._troubles.values(), *more)
        resumed = next((found for feed in self._feeds if (found := getattr(feed.reader, "resumption", None))), None)
        return Measured(said, keys, ended, max(times, default=None), troubles, tuple(self._others), resumed)
