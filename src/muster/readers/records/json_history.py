"""Histories in JSON: one object per line, all keys; and files that are written anew as a whole (HF's
`trainer_state.json`, the summary that W&B leaves at exit).

msgspec decodes a block of lines at once into a type made for the keys seen so far. Unknown keys and other types are
errors of msgspec, so that a late key is never dropped: the type is made anew then.
"""

# ruff: noqa: PTH119, PTH120
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import json
import os
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from muster.files.safe_open import read_file_start
from muster.readers.discovery.folder_walk import (
    OBJECT_LINE_NAMES,
    ROW_FILE_NAMES,
    TRAINER_CHECKPOINT,
    TRAINER_STATE_FILE,
    WANDB_EVENTS,
    WANDB_HISTORY,
    LogSource,
)
from muster.readers.records.growing_file import GrowingFile
from muster.readers.records.history_parts import ColumnBatch, HistoryChain, LineHistory
from muster.readers.records.metric_reader import MetricColumn, MetricRows, MetricSource, ReaderState, RecordedRunEnd
from muster.readers.records.record_kinds import LogFile, LogSearch, RecordKind
from muster.readers.records.row_steps import MEDIA_TYPE_KEY, decode_json_value, numeric_leaves, plain_number
from muster.readers.records.step_counter import GatheredColumns, StepCounter, rank_of_counter

NUMBER, OTHER = "number", "other"  # of a key; nested keys have a mapping of their own
_MOST_LEAVES = 400
_DEEPEST = 8
RowShape = dict[str, Any]


class RowType:
    def __init__(self) -> None:
        self.decode: Callable[[bytes], list[Any]] = lambda _: []
        self.numbers: list[str] = []  # keys that hold numbers only, joined by dots
        self.others: list[str] = []  # keys that hold something else now and then
        self._shape: RowShape = {}
        self._get_numbers: Callable[[Any], Any] = lambda _: ()
        self._get_others: Callable[[Any], Any] = lambda _: ()

    @property
    def empty(self) -> bool:
        return not self._shape

    def learn(self, rows: Sequence[dict[str, Any]]) -> bool:
        """False where no type can be made of them."""
        for row in rows:
            if not _merge_row_shape(self._shape, row, 0):
                return False
        paths = list(_attribute_paths(self._shape))
        if not paths or len(paths) > _MOST_LEAVES:
            return False
        try:
            self.decode = msgspec.json.Decoder(_make_row_struct(self._shape)).decode_lines
        except ValueError:  # a key with a quote or a control character in it
            return False
        self.numbers, self._get_numbers = _make_leaf_getter([each for each in paths if each[2] == NUMBER])
        self.others, self._get_others = _make_leaf_getter([each for each in paths if each[2] == OTHER])
        if all(kind == NUMBER for kind in self._shape.values()):
            self._get_numbers = msgspec.structs.astuple  # faster than asking for one after the other
        return True

    def matrix(self, rows: list[Any]) -> Any:
        """Rows x `numbers`, as numpy has it; NaN where a row lacks one: there are no other NaNs in what was decoded."""
        import numpy as np

        found = list(map(self._get_numbers, rows))
        try:
            flat = np.fromiter(chain.from_iterable(found), np.float64, len(rows) * len(self.numbers))
        except TypeError:
            return np.array(found, np.float64)  # None becomes NaN
        return flat.reshape(len(rows), len(self.numbers))

    def rest(self, rows: list[Any]) -> dict[str, list[float | None]]:
        """The numbers of the other keys; they may be objects now and then."""
        found: dict[str, list[float | None]] = {}
        if not self.others:
            return found
        for key, values in zip(self.others, zip(*map(self._get_others, rows), strict=True), strict=True):
            for at, value in enumerate(values):
                for name, number in numeric_leaves({key: value}) if value is not None else ():
                    found.setdefault(name, [None] * len(values))[at] = number
        return found


def _merge_row_shape(shape: RowShape, row: dict[str, Any], depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    for key, value in row.items():
        known = shape.get(key)
        nested = isinstance(value, dict) and value and MEDIA_TYPE_KEY not in value
        if nested and (known is None or isinstance(known, dict)):
            if not _merge_row_shape(shape.setdefault(key, {}), value, depth + 1):
                return False
        elif plain_number(value) is not None:
            shape[key] = NUMBER if known in (None, NUMBER) else OTHER
        elif value is None:
            shape[key] = known if known == NUMBER else OTHER
        else:
            shape[key] = OTHER
    return True


def _attribute_paths(shape: RowShape, key: str = "", path: str = "") -> Any:
    """(key, path of attributes, kind) of each leaf."""
    for number, (name, kind) in enumerate(shape.items()):
        if isinstance(kind, dict):
            yield from _attribute_paths(kind, f"{key}{name}.", f"{path}f{number}.")
        else:
            yield f"{key}{name}", f"{path}f{number}", kind


def _make_row_struct(shape: RowShape) -> Any:
    fields: list[tuple[str, Any, Any]] = []
    for number, kind in enumerate(shape.values()):
        if isinstance(kind, dict):
            inner = _make_row_struct(kind)
            fields.append((f"f{number}", inner, msgspec.field(default_factory=inner)))
        else:
            fields.append((f"f{number}", float | None if kind == NUMBER else Any, None))
    names = {f"f{number}": name for number, name in enumerate(shape)}
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _make_leaf_getter(leaves_: list[tuple[str, str, str]]) -> tuple[list[str], Callable[[Any], Any]]:
    if not leaves_:
        return [], lambda _: ()
    get = attrgetter(*(path for _, path, _ in leaves_))
    keys = [key for key, _, _ in leaves_]
    return keys, get if len(keys) > 1 else lambda row: (get(row),)


# msgspec refuses bare NaN and Infinity. Behind a quote and a colon they can be nothing else, and numbers stand for them
_STAND_INS = {
    b"NaN": b"1.7170717071707170e+307",
    b"Infinity": b"1.7270727072707270e+307",
    b"-Infinity": b"-1.7270727072707270e+307",
}
_STAND_IN_MEANINGS = {float(stand_in): float(meant) for meant, stand_in in _STAND_INS.items()}
_OPENS, _CLOSES, _NEWLINE = b"{}\n"
_MOST_TYPES = 64  # a file whose keys change all the time is read row by row
_decode_rows = msgspec.json.Decoder(dict[str, Any]).decode_lines
_decode_one_row = msgspec.json.Decoder(dict[str, Any]).decode


class JsonlHistory(LineHistory):
    fits = "JSON objects with numbers in them, one per line"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._type = RowType()
        self._types = 0

    def restart(self, *, knowing: bool = False) -> None:
        super().restart(knowing=knowing)
        self._type, self._types = RowType(), 0

    def take(self, text: bytes) -> ColumnBatch | None:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").rstrip(b"\r")
        count = _count_whole_objects(text)
        batch = self._at_once(text, count) if count else None
        if batch is None and count:
            plain = _insert_stand_ins(text)
            if plain is not None:
                batch = self._at_once(plain, count, bare=True) or self._learned(plain, count)
        return batch or self._slowly(text)

    def take_unended(self, text: bytes) -> ColumnBatch | None:
        """An object that ends is whole, newline or not."""
        if text.rstrip().endswith(b"}") and isinstance(decode_json_value(text), dict):
            return self._slowly(text)
        return None

    def _at_once(self, text: bytes, count: int, *, bare: bool = False) -> ColumnBatch | None:
        """None where a key is new, or of another type than before. `bare`: there may be stand-ins in the text."""
        if self._type.empty or self._types > _MOST_TYPES:
            return None
        try:
            rows = self._type.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return (self._columns(rows, bare=bare), count) if len(rows) == count else None

    def _columns(self, rows: list[Any], *, bare: bool) -> dict[str, MetricColumn]:
        import numpy as np

        matrix = self._type.matrix(rows)
        missing = np.isnan(matrix)
        rest = {key: np.array(values, np.float64) for key, values in self._type.rest(rows).items()}
        found = {key: (matrix[:, at], missing[:, at]) for at, key in enumerate(self._type.numbers)}
        for key, values in rest.items():
            found[key] = _fill_missing_values(found[key], values) if key in found else (values, np.isnan(values))
        if bare:
            found = {key: (_replace_stand_ins(values), lacks) for key, (values, lacks) in found.items()}
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

        counters: dict[str, Any] = {}
        for key, (values, lacks) in found.items():
            if rank_of_counter(key) is not None:
                none = lacks | np.isnan(values)
                told = zip(values.tolist(), none.tolist(), strict=True)
                counters[key] = [None if no else value for value, no in told] if none.any() else values
        return np.asarray(self.steps.steps(count, counters))

    def _learned(self, text: bytes, count: int) -> ColumnBatch | None:
        """With a type that knows all keys of these rows; None where they are no rows."""
        if self._types > _MOST_TYPES:
            return None
        try:
            rows = _decode_rows(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if len(rows) != count:
            return None
        self._types = self._types + 1 if self._type.learn(rows) else _MOST_TYPES + 1
        return self._at_once(text, count, bare=True)

    def _slowly(self, text: bytes) -> ColumnBatch | None:
        gathered = GatheredColumns()
        for line in text.split(b"\n"):
            piece = line.rpartition(b"\0")[2].strip()  # a power cut leaves NULs where the end of a line was
            if not piece:
                continue
            row = decode_json_value(piece, _decode_one_row)
            if isinstance(row, dict):
                self.steps.row(list(numeric_leaves(row)), gathered)
            else:
                self.unfit += 1
        return gathered.columns, gathered.count


def _fill_missing_values(known: Any, more: Any) -> Any:
    """`a.b` may be a key and lie within `a`."""
    import numpy as np

    values = np.where(known[1], more, known[0])
    return values, known[1] & np.isnan(more)


def _count_whole_objects(text: bytes) -> int:
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


def _insert_stand_ins(text: bytes) -> bytes | None:
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


def _replace_stand_ins(values: Any) -> Any:
    for stand_in, meant in _STAND_IN_MEANINGS.items():
        values = values if not (same := values == stand_in).any() else _copy_with_values(values, same, meant)
    return values


def _copy_with_values(values: Any, places: Any, value: float) -> Any:
    values = values.copy()
    values[places] = value
    return values


MOST_JSON_BYTES = 128 << 20
RowsOf = Callable[[Any], list[dict[str, Any]] | None]
_MOST_ARRAY_ROWS = 1_000_000
_STATE_HEAD_BYTES = 64 << 10
_WHOLE_NAMES = re.compile(r"(?:(?:all|train|eval|predict|test)_results|history|metrics)\.json\Z")


def rows_of_trainer_state(whole: Any) -> list[dict[str, Any]] | None:
    """The rows of `trainer_state.json`."""
    found = whole.get("log_history") if isinstance(whole, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else None


def row_of_last_values(whole: Any) -> list[dict[str, Any]] | None:
    """A file that holds the last values alone."""
    return [whole] if isinstance(whole, dict) else None


def rows_of_whole_json(whole: Any) -> list[dict[str, Any]] | None:
    """A list of rows; lists side by side, as the `history` of Keras; or one row."""
    if isinstance(whole, list):
        return [row for row in whole if isinstance(row, dict)] or None
    if not isinstance(whole, dict):
        return None
    lists = {key: values for key, values in whole.items() if isinstance(values, list) and values}
    if not lists or len({len(values) for values in lists.values()}) > 1:
        return [whole]
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _rows_of_evaluations(path: str) -> list[dict[str, Any]] | None:
    """`evaluations.npz` of Stable-Baselines3: a row for each evaluation, with the means of its episodes."""
    from muster.readers.checkpoints.arrays import UnreadableArrays, read_npz_arrays

    try:
        found = read_npz_arrays(path, lambda names: [each for each in names if each in _EVALUATION_ARRAYS])
    except UnreadableArrays:
        return None
    counts = found.get("timesteps")
    if counts is None or len(counts) > _MOST_ARRAY_ROWS or any(len(each) != len(counts) for each in found.values()):
        return None
    means = {name: each.reshape(len(each), -1).mean(axis=1).tolist() for name, each in found.items() if len(each)}
    return [dict(zip(means, row, strict=True)) for row in zip(*means.values(), strict=True)]


_EVALUATION_ARRAYS = ("timesteps", "results", "ep_lengths", "successes")


class WholeJsonHistory:
    """Read again when it has changed; rows that were handed out already are not handed out again."""

    ended: RecordedRunEnd | None = None

    def __init__(self, path: str, form: str, rows_of: RowsOf, note: str = "") -> None:
        self.path, self.format, self.note = path, form, note
        self._rows_of = rows_of
        self._growing = GrowingFile(path)
        self._seen: list[float] = []  # time and size of the file that was read last
        self._taken = 0
        self._last = ""  # the last row that was handed out
        self._trouble = ""
        self._steps = StepCounter()

    def read(self) -> Iterator[MetricRows]:
        with self._growing.opened():
            seen = [self._growing.written, float(self._growing.size)]
            if not self._growing.exists or seen == self._seen:
                return
            data = self._growing.at(0, min(self._growing.size, MOST_JSON_BYTES + 1))
        rows = self._rows_in(data) if len(data) <= MOST_JSON_BYTES else None
        self._trouble = "" if rows is not None else _why_json_is_unread(data)
        if rows is None:
            return  # half written: what was read before stands
        self._seen = seen
        yield from self._new(rows)

    def _rows_in(self, data: bytes) -> list[dict[str, Any]] | None:
        return self._rows_of(decode_json_value(data))

    def _new(self, rows: list[dict[str, Any]]) -> Iterator[MetricRows]:
        fresh = self._taken > len(rows) or (self._taken > 0 and _row_text(rows[self._taken - 1]) != self._last)
        if fresh:
            self._taken, self._steps = 0, StepCounter()
        if self._taken == len(rows) and not fresh:
            return
        gathered = self._gather(rows)
        if self._steps.misled:
            fresh, self._taken, self._steps = self._taken > 0, 0, StepCounter(self._steps.barred)
            gathered = self._gather(rows)
        self._taken, self._last = len(rows), _row_text(rows[-1]) if rows else ""
        yield MetricRows(gathered.columns, gathered.count, fresh)

    def _gather(self, rows: list[dict[str, Any]]) -> GatheredColumns:
        gathered = GatheredColumns()
        for row in rows[self._taken :]:
            self._steps.row(list(numeric_leaves(row)), gathered)
        return gathered

    def state(self) -> ReaderState:
        return {"seen": self._seen, "taken": self._taken, "last": self._last, "steps": self._steps.state()}

    def restore(self, state: ReaderState) -> None:
        self._seen, self._taken, self._last = list(state["seen"]), int(state["taken"]), state["last"]
        self._steps.restore(state["steps"])

    @property
    def said(self) -> MetricSource:
        skipped = tuple(filter(None, (self.note, self._trouble)))
        return MetricSource(self.path, self.format, skipped, self._growing.written or None, self._steps.name)


def _row_text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _why_json_is_unread(data: bytes) -> str:
    if len(data) > MOST_JSON_BYTES:
        return f"it has more than {MOST_JSON_BYTES >> 20} MiB"
    return "it is half written, or no JSON of its kind" if data.strip() else "it is empty"


class EvaluationHistory(WholeJsonHistory):
    """An npz file, which is written anew with each evaluation."""

    def _rows_in(self, data: bytes) -> list[dict[str, Any]] | None:  # noqa: ARG002 - it is opened as an archive
        return self._rows_of(self.path)


# -- kinds


def _accepts_jsonl(file: LogFile) -> str:
    """By its name, or by rows that count steps: a dataset is a JSONL file, too."""
    if file.name == TRAINER_STATE_FILE or (file.name in (WANDB_HISTORY, WANDB_EVENTS) and not file.named):
        return ""
    if file.ending in (".jsonl", ".ndjson"):
        known = file.named or file.name in ROW_FILE_NAMES
        return "a JSON object per line" if known or file.counts_in_objects(any) else ""
    maybe = OBJECT_LINE_NAMES.match(file.name) or (file.named and file.ending not in (".csv", ".tsv", ".wandb"))
    return "a JSON object per line" if maybe and file.counts_in_objects(all) else ""


def _find_jsonl(search: LogSearch) -> Iterator[LogSource]:
    for path in search.around.files:
        if not search.is_of_wandb(path) and (why := _accepts_jsonl(LogFile(path))):
            yield JSONL.source(path, search.run_of(path), why)


def _find_trainer_states(search: LogSearch) -> Iterator[LogSource]:
    """Each checkpoint has one; the newest holds all rows of the others."""
    of_run: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for path in search.around.files:
        if os.path.basename(path) != TRAINER_STATE_FILE:
            continue
        folder = os.path.dirname(path)
        step = TRAINER_CHECKPOINT.match(os.path.basename(folder))
        known = (float(step[1]), 0.0) if step else (_global_step(path), 1.0)  # of two the root's holds the end, too
        of_run[os.path.dirname(folder) if step else folder].append((*known, path))
    for run, states in of_run.items():
        *older, (_, _, newest) = sorted(states)
        if older:
            search.passed[run].append(f"{len(older)} older trainer_state.json: the newest holds their rows")
        why = f"the newest of {len(states)}" if older else "the state of HF's trainer"
        yield TRAINER_STATE.source(newest, run, why)


def _global_step(path: str) -> float:
    """How far a state of the trainer has come; where it does not say so near its beginning, as far as any."""
    try:
        found = re.search(rb'"global_step":\s*(\d{1,15})', read_file_start(path, _STATE_HEAD_BYTES))
    except OSError:
        found = None
    return float(found[1]) if found else float("inf")


def _accepts_whole_json(file: LogFile) -> str:
    known = _WHOLE_NAMES.match(file.name) or (file.named and file.ending == ".json")
    return "read as a whole" if known and not file.counts_in_objects(all) else ""


JSONL = RecordKind("jsonl", lambda path: HistoryChain.of_file(path, "jsonl", JsonlHistory), _accepts_jsonl, _find_jsonl)
TRAINER_STATE = RecordKind(
    "hf",
    lambda path: WholeJsonHistory(path, "trainer_state", rows_of_trainer_state),
    lambda file: "the state of HF's trainer" if file.name == TRAINER_STATE_FILE else "",
    _find_trainer_states,
)
WHOLE_JSON = RecordKind("json", lambda path: WholeJsonHistory(path, "json", rows_of_whole_json), _accepts_whole_json)
EVALUATIONS = RecordKind(
    "npz",
    lambda path: EvaluationHistory(path, "npz", _rows_of_evaluations),
    lambda file: "evaluations of SB3" if file.name == "evaluations.npz" else "",
)
