"""muster logs"""

from __future__ import annotations

import codecs
import io
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, BinaryIO, TextIO

import typer

from muster.acts.clean import cleaned_words
from muster.cli.app import open_folder
from muster.cli.cells import declared, looked, one, withdrawn
from muster.cli.masked_log import MaskedLog, Sink, masked
from muster.cli.terminal import own_stream
from muster.cli.words import say_json
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.errors import MusterError, UsageError
from muster.domain.terminal_text import Filter
from muster.execute.paths import attempt_folder
from muster.judge.attempt import judge_attempt
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)
POLL_S = 0.1
CHUNK = 1 << 16
MEMORY = 64


@app.command("logs", epilog="Example:  muster logs train/v2_full/2 -f --err")
def logs(
    ctx: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A cell, or a glob that fits one.", show_default=False)],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the attempt has ended.")] = False,
    err: Annotated[bool, typer.Option("--err", help="stderr instead of stdout.")] = False,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", metavar="N", help="Not the newest attempt but this one.", show_default=False),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Byte for byte, with whatever secrets the run printed.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object with the text in it.")] = False,
) -> int:
    """The output of a cell's newest attempt, without secrets; on a terminal without its colours and other codes.

    Ctrl-C ends the following and nothing else.
    """
    if follow and as_json_:
        raise UsageError("-f and --json can't go together", hint="`muster wait --json` waits for the end")
    desk = Desk.open(open_folder(ctx))
    state = looked(desk).state
    record = state.cells[one(cell, declared(state), withdrawn(state))]
    wanted = _attempt(record, attempt)
    name = "stderr.log" if err else "stdout.log"
    path = attempt_folder(desk.state, *wanted.place) / name
    if wanted.adopted:
        where = wanted.outcome.output if wanted.outcome else None
        raise MusterError(
            f"attempt {wanted.n} of {record.cell.id} was adopted; Muster has no log of it", where=where or ""
        )
    if not path.exists() and (words := cleaned_words(desk.store.events(record.cell.id), wanted.n)):
        hint = f"`muster why {shlex.quote(record.cell.id)}` still tells how it ended"
        raise MusterError(
            f"the logs of attempt {wanted.n} of {record.cell.id} were {words}", where=str(path), hint=hint
        )
    if as_json_:
        _as_json(wanted, path, raw=raw)
        return 0
    try:
        _copy(desk, wanted, path, follow=follow, raw=raw)
    except KeyboardInterrupt:
        pass
    return 0


def _attempt(record: CellRecord, number: int | None) -> Attempt:
    if record.last is None:
        raise MusterError(
            f"{record.cell.id} has not run yet, so there is no log",
            hint=f"`muster why {shlex.quote(record.cell.id)}` says what it waits for",
        )
    if number is None:
        return record.last
    if not 1 <= number <= len(record.attempts):
        raise UsageError(
            f"{record.cell.id} has no attempt {number}", hint=f"it has attempts 1 to {len(record.attempts)}"
        )
    return record.attempts[number - 1]


def _as_json(attempt: Attempt, path: Path, *, raw: bool) -> None:
    whole = io.BytesIO()
    tail = Tail(path, whole)
    tail.copy()
    tail.close()
    data = whole.getvalue()
    facts = {"cell": attempt.cell, "attempt": attempt.n, "path": str(path), "bytes": len(data)}
    told = data if raw else masked(data)
    say_json({**facts, "text": told.decode("utf-8", "replace")}, own_stream(sys.stdout) if raw else None)


def _copy(desk: Desk, attempt: Attempt, path: Path, *, follow: bool, raw: bool) -> None:
    stream = own_stream(sys.stdout) if raw else sys.stdout
    to: Sink = ToTerminal(stream) if sys.stdout.isatty() else sys.stdout.buffer
    told = None if raw else MaskedLog(to)
    tail = Tail(path, told or to)
    ended = _Ended(desk, attempt)
    try:
        while True:
            over = not follow or ended()  # asked before the reading: what was written before the end is printed
            tail.copy()
            if over:
                return
            time.sleep(POLL_S)
    finally:
        tail.close()
        if told:
            told.close()


class ToTerminal:
    """What a run printed is text on a screen and nothing else, however its codes are cut into pieces."""

    def __init__(self, to: TextIO) -> None:
        self.to = to
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.filter = Filter()

    def write(self, data: bytes, /) -> None:
        self.to.write(self.filter.feed(self.decoder.decode(data)))

    def flush(self) -> None:
        self.to.flush()


class Tail:
    """Copies what is new in a file; one that was cut or replaced is read from its start."""

    def __init__(self, path: Path, to: Sink) -> None:
        self.path, self.to = path, to
        self.file: BinaryIO | None = None
        self.last = b""  # what was copied last: still there if the file has only grown

    def copy(self) -> None:
        if self.file is None or self._replaced(self.file):
            try:
                fresh = open(self.path, "rb", buffering=0)  # noqa: SIM115
            except FileNotFoundError:
                return
            if self.file:
                self._rest(self.file)
                self.file.close()
            self.file, self.last = fresh, b""
        if os.pread(self.file.fileno(), len(self.last), self.file.tell() - len(self.last)) != self.last:
            self.file.seek(0)
        self._rest(self.file)

    def close(self) -> None:
        if self.file:
            self.file.close()

    def _rest(self, file: BinaryIO) -> None:
        while data := self._next(file):
            self.to.write(data)
            self.last = (self.last + data)[-MEMORY:]
        self.to.flush()

    def _next(self, file: BinaryIO) -> bytes:
        """Up to a chunk, never of a hole: `logs: {max: ...}` punches one where the middle of a log was."""
        fd, at = file.fileno(), file.tell()
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, begin, os.SEEK_HOLE)
        except OSError:  # nothing follows; or this is no plain file
            begin, end = at, at + CHUNK
        file.seek(begin)
        if begin > at:
            self.to.write(f"\n[muster: {begin - at} bytes were cut out here]\n".encode())
        return file.read(min(CHUNK, end - begin))

    def _replaced(self, file: BinaryIO) -> bool:
        try:
            return self.path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False


class _Ended:
    """Whether an attempt has ended: recorded, or seen by our own eyes where nobody records."""

    def __init__(self, desk: Desk, attempt: Attempt) -> None:
        from muster.wiring.looking import Looking

        self.desk, self.attempt = desk, attempt
        self.looking = Looking.of_desk(desk)
        self.state = desk.load()
        self.looking.configure(self.state)

    def __call__(self) -> bool:
        cell, n = self.attempt.key
        if not self.desk.store.records([cell])[0].attempts[n - 1].open:
            return True
        seen = self.looking.probe.look([self.attempt])[self.attempt.key]
        job = self.state.job(self.state.cells[cell].cell.job)
        return judge_attempt(self.attempt, seen, job).final
