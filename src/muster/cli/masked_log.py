"""A log on its way to a reader, without secrets: line by line, so that none is cut in two. Other bytes stay."""

from __future__ import annotations

from typing import Protocol

from muster.ports.known_secrets import masking

LONGEST_LINE = 1 << 20  # what goes on for longer is masked in pieces


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> object: ...


class MaskedLog:
    """A line that has no end yet, such as a progress bar, is held back until it has not grown for one look."""

    def __init__(self, to: Sink) -> None:
        self.to = to
        self._rest = b""
        self._seen = -1  # length of the rest at the last flush

    def write(self, data: bytes, /) -> None:
        whole, end, self._rest = (self._rest + data).rpartition(b"\n")
        if end:
            self._put(whole + end)
        if len(self._rest) > LONGEST_LINE:
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
            self.to.write(masked(data))


def masked(data: bytes) -> bytes:
    """Bytes that are no text are kept."""
    text = data.decode("utf-8", "surrogateescape")
    told = masking()(text)
    return data if told == text else told.encode("utf-8", "surrogateescape")
