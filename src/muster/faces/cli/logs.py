"""muster logs. Logs are masked line by line on their way out, so that no secret is cut in two; all other bytes stay."""

from __future__ import annotations

import codecs
import io
import os
import sys
import time
from pathlib import Path
from typing import Annotated, BinaryIO, Protocol, TextIO

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.start_controller import observe_and_revive
from muster.app.overview.attempt_log import AttemptEndObserver, find_attempt_log
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json, print_notice, uncleaned_stream
from muster.files.known_secrets import secret_mask_function
from muster.model.attempt import Attempt
from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.terminal_text import TerminalFilter

LONGEST_MASKED_LINE = 1 << 20  # what goes on for longer is masked in pieces


class ByteSink(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...


class MaskedLog:
    """A line that has no end yet, such as a progress bar, is held back until it has not grown for one look."""

    def __init__(self, to: ByteSink) -> None:
        self.to = to
        self._rest = b""
        self._seen = -1  # length of the rest at the last flush

    def write(self, data: bytes, /) -> None:
        whole, end, self._rest = (self._rest + data).rpartition(b"\n")
        if end:
            self._put(whole + end)
        if len(self._rest) > LONGEST_MASKED_LINE:
            self._put_rest()

    def flush(self) -> None:
        if self._rest and len(self._rest) == self._seen:
            self._put_rest()
        self._seen = len(self._rest)
        self.to.flush()

    def close(self) -> None:
        self._put_rest()
        self.to.flush()

    def _put_rest(self) -> None:
        rest, self._rest = self._rest, b""
        self._put(rest)

    def _put(self, data: bytes) -> None:
        if data:
            self.to.write(mask_bytes(data))


def mask_bytes(data: bytes) -> bytes:
    """Bytes that are no text are kept."""
    text = data.decode("utf-8", "surrogateescape")
    told = secret_mask_function()(text)
    return data if told == text else told.encode("utf-8", "surrogateescape")


app = typer.Typer(add_completion=False)
LOG_POLL_S = 0.1
LOG_CHUNK = 1 << 16
TAIL_MEMORY = 64


@app.command("logs", epilog="Example:  muster logs train/v2_full/2 -f --err")
def logs_command(
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
        raise UsageError(phrase("cli.follow_and_json_exclude"), hint=phrase("cli.wait_json_waits"))
    desk = CampaignHandle.open(folder_of_context(ctx))
    state = observe_and_revive(desk, print_notice).state
    log = find_attempt_log(desk, state, cell, attempt, err=err)
    if as_json_:
        _print_log_json(log.attempt, log.path, raw=raw)
        return 0
    try:
        _copy_log(desk, log.attempt, log.path, follow=follow, raw=raw)
    except KeyboardInterrupt:
        pass
    return 0


def _print_log_json(attempt: Attempt, path: Path, *, raw: bool) -> None:
    whole = io.BytesIO()
    tail = FileTail(path, whole)
    tail.copy()
    tail.close()
    data = whole.getvalue()
    facts = {"cell": attempt.cell, "attempt": attempt.n, "path": str(path), "bytes": len(data)}
    told = data if raw else mask_bytes(data)
    print_json({**facts, "text": told.decode("utf-8", "replace")}, uncleaned_stream(sys.stdout) if raw else None)


def _copy_log(desk: CampaignHandle, attempt: Attempt, path: Path, *, follow: bool, raw: bool) -> None:
    stream = uncleaned_stream(sys.stdout) if raw else sys.stdout
    to: ByteSink = TerminalSink(stream) if sys.stdout.isatty() else sys.stdout.buffer
    told = None if raw else MaskedLog(to)
    tail = FileTail(path, told or to)
    ended = AttemptEndObserver(desk, attempt)
    try:
        while True:
            over = not follow or ended.has_ended()  # asked before the reading: what was written until then is printed
            tail.copy()
            if over:
                return
            time.sleep(LOG_POLL_S)
    finally:
        tail.close()
        if told:
            told.close()


class TerminalSink:
    """What a run printed is text on a screen and nothing else, however its codes are cut into pieces."""

    def __init__(self, to: TextIO) -> None:
        self.to = to
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.filter = TerminalFilter()

    def write(self, data: bytes, /) -> None:
        self.to.write(self.filter.feed(self.decoder.decode(data)))

    def flush(self) -> None:
        self.to.flush()


class FileTail:
    """Copies what is new in a file; one that was cut or replaced is read from its start."""

    def __init__(self, path: Path, to: ByteSink) -> None:
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
            self.last = (self.last + data)[-TAIL_MEMORY:]
        self.to.flush()

    def _next(self, file: BinaryIO) -> bytes:
        """Up to a chunk, never of a hole: `logs: {max: ...}` punches one where the middle of a log was."""
        fd, at = file.fileno(), file.tell()
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, begin, os.SEEK_HOLE)
        except OSError:  # nothing follows; or this is no plain file
            begin, end = at, at + LOG_CHUNK
        file.seek(begin)
        if begin > at:
            self.to.write(f"\n[muster: {phrase('cli.bytes_cut_out', bytes=begin - at)}]\n".encode())
        return file.read(min(LOG_CHUNK, end - begin))

    def _replaced(self, file: BinaryIO) -> bool:
        try:
            return self.path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False
