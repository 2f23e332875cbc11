"""The code behind a campaign: which scripts its commands name, and whether a source file changed since `up` took it
in. What git does not track is kept in the campaign's folder.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from muster.engine.plan.cell_command import AttemptContext, build_command, cell_placeholder_values
from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import OrderNotReady
from muster.files.atomic_write import make_private_folder, write_atomically
from muster.files.json_codec import JSON_ERRORS, encode_json_bytes
from muster.files.safe_open import read_plain_file
from muster.model.attempt import classify_code_state
from muster.model.campaign import Campaign, Job
from muster.model.cell import list_campaign_cells
from muster.readers.background_reader import run_in_daemon_thread
from muster.readers.git import git_limit_s
from muster.readers.source_code import (
    CodeScope,
    CodeState,
    is_code_file,
    may_keep_content,
    read_code_state,
    read_source_file,
)
from muster.text.command_template import render_template
from muster.text.phrases import phrase

_PATH_WORDS = re.compile(r"[^\s\"';|&()<>]+")


class CodeScopes:
    """Of one campaign: by working folder, found when it is asked for."""

    def __init__(self, campaign: Campaign, root: str) -> None:
        self.campaign, self.root = campaign, root
        self._outputs: list[str] | None = None
        self._words: dict[str, set[str]] = {}

    def __call__(self, cwd: str) -> CodeScope:
        if self._outputs is None:
            self._outputs = self._read()
        scripts = tuple(sorted(set(_existing_scripts(cwd, self._words.get(cwd, set())))))
        outputs = [each for each in self._outputs if not any(_output_covers_script(each, script) for script in scripts)]
        return CodeScope(tuple(outputs), scripts)

    def _read(self) -> list[str]:
        outputs: dict[str, None] = {}
        for cell in list_campaign_cells(self.campaign):
            job = self.campaign.job(cell.job)
            cwd = job.cwd or self.root
            place = AttemptContext(n=0, out="*", slots=("*",), outputs=dict.fromkeys(job.needs, "*"))
            filled = {
                **cell_placeholder_values(job, cell, place),
                "attempt": "*",
                "gpu": "*",
                "device": "*",
                "port": "*",
                "last.checkpoint": "",
            }
            named = {name: text if text == "*" else glob.escape(text) for name, text in filled.items()}
            for template in _output_templates(job):
                outputs[str(Path(glob.escape(cwd)) / render_template(template, named))] = None
            self._words.setdefault(cwd, set()).update(_script_candidates(build_command(job, filled)))
        return list(outputs)


def _output_templates(job: Job) -> Iterator[str]:
    """Places where its runs write; `{out}` is Muster's own."""
    if job.output != "{out}":
        yield job.output
    for each in (*(result.path for result in job.results if result.kind != "stdout"), *job.proof.files):
        if each.startswith("/"):
            yield each


def _script_candidates(words: list[str]) -> Iterator[str]:
    parts = [part for word in words for part in _PATH_WORDS.findall(word)]
    for before, part in zip(["", *parts], parts, strict=False):
        if before == "-m":
            yield f"{part.replace('.', '/')}.py"
            yield f"{part.replace('.', '/')}/__main__.py"
        elif is_code_file(part):
            yield part.rpartition("=")[2]


def _existing_scripts(cwd: str, words: set[str]) -> Iterator[str]:
    for word in words:
        path = os.path.normpath(os.path.join(cwd, word))  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            yield path


def _output_covers_script(output: str, script: str) -> bool:
    """A pattern as wide as this says nothing about where runs write."""
    return fnmatch.fnmatch(script, output) or fnmatch.fnmatch(script, f"{output}/*")


CODE_BOOK = "code.json"
DIFFS_FOLDER = "diffs"
KEPT_FILES_FOLDER = "files"  # in it, by the hash of what is in them
LARGEST_DIFF = 1 << 20
SLOW_GIT_S = 2.0  # after this it is told that git is waited for
GIT_PATIENCE_S = 0.1  # of a start; one that needs more is tried again at the next look
LOOK_COST_FACTOR = 20.0  # a look costs at most a 20th of the time
SOONEST_LOOK_S = 0.02
SlowGitCallback = Callable[[str], None]


def ignore_slow_git(_: str) -> None:
    """Nobody is told."""


def describe_slow_git(folder: str) -> str:
    return phrase("campaign.git_is_slow", folder=folder, limit_s=git_limit_s())


# -- what is kept


def load_code_book(state: Path) -> dict[str, CodeState]:
    """As the last `up` saw it, by working folder."""
    try:
        return msgspec.json.decode(read_plain_file(str(state / CODE_BOOK)), type=dict[str, CodeState])
    except (OSError, *JSON_ERRORS):
        return {}


def save_code_book(state: Path, book: Mapping[str, CodeState]) -> None:
    told = {cwd: asdict(seen) | {"diff": ""} for cwd, seen in book.items()}
    write_atomically(state / CODE_BOOK, encode_json_bytes(told))


def keep_uncommitted_code(state: Path, seen: CodeState) -> dict[str, Any] | None:
    """What is in no commit, so that it can be had again: the diff by its name, and each file by its hash."""
    folder = state / DIFFS_FOLDER
    for path, digest in seen.code.get("files", {}).items():
        _keep_code_file(state, digest, seen.top, path)
    if not seen.diff:
        return None
    data = seen.diff.encode("utf-8", "replace")
    path = folder / f"{seen.code['dirty']}.diff"
    if not path.exists():
        make_private_folder(folder)
        write_atomically(path, data[:LARGEST_DIFF])
    return {"path": str(path), "bytes": len(data), "cut": len(data) > LARGEST_DIFF}


def _keep_code_file(state: Path, digest: str, top: str, path: str) -> None:
    target = state / DIFFS_FOLDER / KEPT_FILES_FOLDER / digest
    if target.exists() or not may_keep_content(path):
        return
    data = read_source_file(top, path)
    if data is not None and hashlib.sha256(data).hexdigest() == digest:
        make_private_folder(target.parent, inside=state)
        write_atomically(target, data)


# -- for a command


class CodeReader:
    """The code of a campaign's working folders, each asked for once."""

    def __init__(self, campaign: Campaign, root: Path, slow: SlowGitCallback = ignore_slow_git) -> None:
        self.state, self._slow = root / ".muster", slow
        self._scopes = CodeScopes(campaign, str(root))
        self._before = load_code_book(self.state)
        self.seen: dict[str, CodeState] = {}

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        """For hashes: where git does not answer, nothing says that the code changed."""
        seen, before = self.see(cwd), self._before.get(cwd)
        return before.code if before and classify_code_state(seen.code) == "unknown" else seen.code

    def see(self, cwd: str) -> CodeState:
        if cwd not in self.seen:
            timer = threading.Timer(SLOW_GIT_S, self._slow, [cwd])
            timer.daemon = True
            timer.start()
            try:
                self.seen[cwd] = read_code_state(cwd, self._scopes(cwd), self._before.get(cwd))
            finally:
                timer.cancel()
        return self.seen[cwd]

    def save(self) -> None:
        """For the controllers to come. Where it can't be written, they ask git themselves."""
        with contextlib.suppress(OSError, ValueError):  # a name of a file may be no text
            for seen in self.seen.values():
                keep_uncommitted_code(self.state, seen)
            save_code_book(self.state, self.seen)


# -- for a controller


class _KnownCode(NamedTuple):
    seen: CodeState
    at: float
    cost_s: float
    book: int  # when `up` last saw it


class CodeWatch:
    """The code of a working folder, for each start. git is asked only where a file of it changed, and apart.

    Files that were not there when `up` was called are no part of it.
    """

    def __init__(self, campaign: Campaign, root: Path, clock: Clock) -> None:
        self.root, self.clock, self.state = root, clock, root / ".muster"
        self._scopes = CodeScopes(campaign, str(root))
        self._known: dict[str, _KnownCode] = {}
        self._asked: dict[str, Future[_KnownCode]] = {}

    def configure(self, campaign: Campaign) -> None:
        if campaign is not self._scopes.campaign:
            self._scopes = CodeScopes(campaign, str(self.root))

    def __call__(self, cwd: str) -> Mapping[str, Any]:
        """Raises OrderNotReady while git has not answered."""
        known = self._known.get(cwd)
        if known and self.clock.boot() - known.at < max(SOONEST_LOOK_S, LOOK_COST_FACTOR * known.cost_s):
            return known.seen.code
        if cwd not in self._asked:
            self._asked[cwd] = run_in_daemon_thread(lambda: self._look(cwd))
            wait([self._asked[cwd]], GIT_PATIENCE_S)
        if not self._asked[cwd].done():
            raise OrderNotReady
        self._known[cwd] = self._asked.pop(cwd).result()
        return self._known[cwd].seen.code

    def _look(self, cwd: str) -> _KnownCode:
        began, book = self.clock.boot(), self._book_at()
        known = self._known.get(cwd)
        as_known = known.seen if known and known.book == book and known.seen.signature else None
        before = as_known or load_code_book(self.state).get(cwd)
        seen = before if before and before.holds() else self._anew(cwd, before)
        now = self.clock.boot()
        return _KnownCode(seen, now, now - began, book)

    def _anew(self, cwd: str, before: CodeState | None) -> CodeState:
        seen = read_code_state(cwd, self._scopes(cwd), before, anew=False)
        with contextlib.suppress(OSError):
            keep_uncommitted_code(self.state, seen)
        return seen

    def _book_at(self) -> int:
        try:
            return (self.state / CODE_BOOK).stat().st_mtime_ns
        except OSError:
            return 0
