"""The code that runs: seen at `up`, kept in the campaign's folder, and seen again where a file of it changed."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from muster.domain.campaign import Campaign
from muster.domain.code import code_state
from muster.observe.code import Seen, see_code
from muster.observe.git import limit_s
from muster.observe.source_files import content, may_be_kept
from muster.ports.clock import Clock
from muster.ports.executor import NotYet
from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import read_plain
from muster.ports.write_files import make_private_folder, write_atomically
from muster.wiring.apart import apart
from muster.wiring.code_scope import Scopes

BOOK = "code.json"
DIFFS = "diffs"
FILES = "files"  # in it, by the hash of what is in them
LARGEST_DIFF = 1 << 20
SLOW_S = 2.0  # after this it is told that git is waited for
PATIENCE_S = 0.1  # of a start; one that needs more is tried again at the next look
EVERY = 20.0  # a look costs at most a 20th of the time
SOONEST_S = 0.02
Slow = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody is told."""


def say_slow(folder: str) -> str:
    return f"git is slow: waiting for it to say which code is in {folder} (at most {limit_s():g} s a question)"


# -- what is kept


def load_book(state: Path) -> dict[str, Seen]:
    """As the last `up` saw it, by working folder."""
    try:
        return msgspec.json.decode(read_plain(str(state / BOOK)), type=dict[str, Seen])
    except (OSError, *NO_JSON):
        return {}


def save_book(state: Path, book: Mapping[str, Seen]) -> None:
    told = {cwd: asdict(seen) | {"diff": ""} for cwd, seen in book.items()}
    write_atomically(state / BOOK, msgspec.json.encode(told))


def keep(state: Path, seen: Seen) -> dict[str, Any] | None:
    """What is in no commit, so that it can be had again: the diff by its name, and each file by its hash."""
    folder = state / DIFFS
    for path, digest in seen.code.get("files", {}).items():
        _keep_file(state, digest, seen.top, path)
    if not seen.diff:
        return None
    data = seen.diff.encode("utf-8", "replace")
    path = folder / f"{seen.code['dirty']}.diff"
    if not path.exists():
        make_private_folder(folder)
        write_atomically(path, data[:LARGEST_DIFF])
    return {"path": str(path), "bytes": len(data), "cut": len(data) > LARGEST_DIFF}


def _keep_file(state: Path, digest: str, top: str, path: str) -> None:
    target = state / DIFFS / FILES / digest
    if target.exists() or not may_be_kept(path):
        return
    data = content(top, path)
    if data is not None and hashlib.sha256(data).hexdigest() == digest:
        make_private_folder(target.parent, inside=state)
        write_atomically(target, data)


# -- for a command


class CodeReader:
    """The code of a campaign's working folders, each asked for once."""

    def __init__(self, campaign: Campaign, root: Path, slow: Slow = silent) -> None:
        self.state, self._slow = root / ".muster", slow
        self._scopes = Scopes(campaign, str(root))
        self._before = load_book(self.state)
        self.seen: dict[str, Seen] = {}

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        """For hashes: where git does not answer, nothing says that the code changed."""
        seen, before = self.see(cwd), self._before.get(cwd)
        return before.code if before and code_state(seen.code) == "unknown" else seen.code

    def see(self, cwd: str) -> Seen:
        if cwd not in self.seen:
            timer = threading.Timer(SLOW_S, self._slow, [cwd])
            timer.daemon = True
            timer.start()
            try:
                self.seen[cwd] = see_code(cwd, self._scopes(cwd), self._before.get(cwd))
            finally:
                timer.cancel()
        return self.seen[cwd]

    def save(self) -> None:
        """For the controllers to come. Where it can't be written, they ask git themselves."""
        with contextlib.suppress(OSError, ValueError):  # a name of a file may be no text
            for seen in self.seen.values():
                keep(self.state, seen)
            save_book(self.state, self.seen)


# -- for a controller


class _Known(NamedTuple):
    seen: Seen
    at: float
    cost_s: float
    book: int  # when `up` last saw it


class CodeWatch:
    """The code of a working folder, for each start. git is asked only where a file of it changed, and apart.

    Files that were not there when `up` was called are no part of it.
    """

    def __init__(self, campaign: Campaign, root: Path, clock: Clock) -> None:
        self.root, self.clock, self.state = root, clock, root / ".muster"
        self._scopes = Scopes(campaign, str(root))
        self._known: dict[str, _Known] = {}
        self._asked: dict[str, Future[_Known]] = {}

    def configure(self, campaign: Campaign) -> None:
        if campaign is not self._scopes.campaign:
            self._scopes = Scopes(campaign, str(self.root))

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        """Raises NotYet while git has not answered."""
        known = self._known.get(cwd)
        if known and self.clock.boot() - known.at < max(SOONEST_S, EVERY * known.cost_s):
            return known.seen.code
        if cwd not in self._asked:
            self._asked[cwd] = apart(lambda: self._look(cwd))
            wait([self._asked[cwd]], PATIENCE_S)
        if not self._asked[cwd].done():
            raise NotYet
        self._known[cwd] = self._asked.pop(cwd).result()
        return self._known[cwd].seen.code

    def _look(self, cwd: str) -> _Known:
        began, book = self.clock.boot(), self._book_at()
        known = self._known.get(cwd)
        as_known = known.seen if known and known.book == book and known.seen.signature else None
        before = as_known or load_book(self.state).get(cwd)
        seen = before if before and before.holds() else self._anew(cwd, before)
        now = self.clock.boot()
        return _Known(seen, now, now - began, book)

    def _anew(self, cwd: str, before: Seen | None) -> Seen:
        seen = see_code(cwd, self._scopes(cwd), before, anew=False)
        with contextlib.suppress(OSError):
            keep(self.state, seen)
        return seen

    def _book_at(self) -> int:
        try:
            return (self.state / BOOK).stat().st_mtime_ns
        except OSError:
            return 0
