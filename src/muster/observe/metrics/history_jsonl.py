"""A JSON object per line, all keys. msgspec decodes a block at once into a type made for the keys seen so far."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

from muster.observe.metrics.chain import Batch, Gathered
from muster.observe.metrics.lines import LinesPart, counter_in
from muster.observe.metrics.numbers import decode, leaves
from muster.observe.metrics.row_type import RowType
from muster.ports.metrics import Column

# msgspec refuses bare NaN and Infinity. Behind a quote and a colon they can be nothing else, and numbers stand for them
_STAND_INS = {b"NaN": b"1.7170717071707170e+307", b"Infinity": b"1.7270727072707270e+307",
              b"-Infinity": b"-1.7270727072707270e+307"}  # fmt: skip
_MEANT = {float(stand_in): float(meant) for meant, stand_in in _STAND_INS.items()}
_OPENS, _CLOSES, _NEWLINE = b"{}\n"
_MOST_TYPES = 64  # a file whose keys change all the time is read row by row
_rows = msgspec.json.Decoder(dict[str, Any]).decode_lines
_row = msgspec.json.Decoder(dict[str, Any]).decode


class JsonlPart(LinesPart):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._type = RowType()
        self._types = 0

    def restart(self) -> None:
        super().restart()
        self._type, self._types = RowType(), 0

    def take(self, text: bytes) -> Batch | None:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").rstrip(b"\r")
        count = _whole_objects(text)
        batch = self._at_once(text, count) if count else None
        if batch is None and count:
            plain = _with_stand_ins(text)
            if plain is not None:
                batch = self._at_once(plain, count, bare=True) or self._learned(plain, count)
        return batch or self._slowly(text)

    def take_unended(self, text: bytes) -> Batch | None:
        """An object that ends is whole, newline or not."""
        if text.rstrip().endswith(b"}") and isinstance(decode(text), dict):
            return self._slowly(text)
        return None

    def _at_once(self, text: bytes, count: int, *, bare: bool = False) -> Batch | None:
        """None where a key is new, or of another type than before. `bare`: there may be stand-ins in the text."""
        if self._type.empty or self._types > _MOST_TYPES:
            return None
        try:
            rows = self._type.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return (self._columns(rows, bare=bare), count) if len(rows) == count else None

    def _columns(self, rows: list[Any], *, bare: bool) -> dict[str, Column]:
        import numpy as np

        matrix = self._type.matrix(rows)
        missing = np.isnan(matrix)
        rest = {key: np.array(values, np.float64) for key, values in self._type.rest(rows).items()}
        found = {key: (matrix[:, at], missing[:, at]) for at, key in enumerate(self._type.numbers)}
        for key, values in rest.items():
            found[key] = _filled(found[key], values) if key in found else (values, np.isnan(values))
        if bare:
            found = {key: (_meant(values), lacks) for key, (values, lacks) in found.items()}
        steps = self._steps(found, len(rows))
        whole, columns = array("d", steps.tobytes()), {}
        for key, (values, lacks) in found.items():
            if not lacks.any():
                columns[key] = (whole, array("d", values.tobytes()))
            elif not lacks.all():
                columns[key] = (array("d", steps[~lacks].tobytes()), array("d", values[~lacks].tobytes()))
        return columns

    def _steps(self, found: dict[str, Any], count: int) -> Any:
        import numpy as np

        if self.steps.key is None:
            self.steps.key = _first_counter(found, count)
        values, lacks = found.get(self.steps.key or "", (None, np.ones(count, bool)))
        if values is None or lacks.any():
            told = [None] * count if values is None else values.tolist()
            return np.array([self.steps.next(None if no else step) for step, no in zip(told, lacks, strict=True)])
        self.steps.all(values)
        return values

    def _learned(self, text: bytes, count: int) -> Batch | None:
        """With a type that knows all keys of these rows; None where they are no rows."""
        if self._types > _MOST_TYPES:
            return None
        try:
            rows = _rows(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if len(rows) != count:
            return None
        self._types = self._types + 1 if self._type.learn(rows) else _MOST_TYPES + 1
        return self._at_once(text, count, bare=True)

    def _slowly(self, text: bytes) -> Batch | None:
        gathered = Gathered()
        for line in text.split(b"\n"):
            piece = line.rpartition(b"\0")[2].strip()  # a power cut leaves NULs where the end of a line was
            if not piece:
                continue
            row = decode(piece, _row)
            if isinstance(row, dict):
                self.steps.row(list(leaves(row)), gathered)
            else:
                self.unfit += 1
        return gathered.columns, gathered.count


def _first_counter(found: dict[str, Any], count: int) -> str | None:
    """That of the first row that has one."""
    counters = {key: lacks for key, (_, lacks) in found.items() if counter_in([key])}
    for row in range(count if counters else 0):
        if there := [key for key, lacks in counters.items() if not lacks[row]]:
            return counter_in(there)
    return None


def _filled(known: Any, more: Any) -> Any:
    """`a.b` may be a key and lie within `a`."""
    import numpy as np

    values = np.where(known[1], more, known[0])
    return values, known[1] & np.isnan(more)


def _whole_objects(text: bytes) -> int:
    """How many lines there are, where each of them begins and ends as an object does; else 0.

    `}`, newline, `{` can't stand within an object: so as many objects as lines means one object in each line.
    """
    import numpy as np

    if not (text.startswith(b"{") and text.endswith(b"}")):
        return 0
    letters = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(letters == _NEWLINE)
    whole = (letters[newlines - 1] == _CLOSES).all() and (letters[newlines + 1] == _OPENS).all()
    return len(newlines) + 1 if whole else 0


def _with_stand_ins(text: bytes) -> bytes | None:
    """With numbers that stand for NaN and the like; None: it can't be told what is one."""
    for bare, stand_in in _STAND_INS.items():
        if bare.lstrip(b"-") not in text:
            continue
        if stand_in in text:
            return None
        for before in (b'": ', b'":'):
            if b"\\" in text and b"\\" + before + bare in text:  # a quote within a text
                return None
            text = text.replace(before + bare, before + stand_in)
    return text


def _meant(values: Any) -> Any:
    for stand_in, meant in _MEANT.items():
        values = values if not (same := values == stand_in).any() else _put(values, same, meant)
    return values


def _put(values: Any, places: Any, value: float) -> Any:
    values = values.copy()
    values[places] = value
    return values
