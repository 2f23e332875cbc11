"""The step that a checkpoint holds: read from the file where it says so, else from its name. Nothing is executed.

When a file was saved tells little about how long its weights were trained: imports and compilation take time, too.
"""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH112, PTH116, PTH118, PTH119

from __future__ import annotations

import math
import os
import pickletools
import re
import warnings
import zipfile
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Literal

from muster.files.json_codec import load_bounded_json
from muster.files.safe_open import open_regular_file, read_regular_file
from muster.readers.checkpoints.arrays import PickleNotPlain
from muster.readers.checkpoints.file_formats import (
    DAMAGED_FILE_ERRORS,
    UnreadableMember,
    open_zip,
    open_zip_member,
    read_zip_member,
)
from muster.readers.checkpoints.plain_pickles import read_plain_pickle

_STEPS = ("step", "global_step", "num_timesteps", "total_steps", "train_step", "iteration", "steps")
_EPOCHS = ("epoch",)
_STATES = ("training_state/training_step.json", "trainer_state.json")  # LeRobot's and Hugging Face's
_MOST_BYTES = 64 << 20  # of a pickle that are looked through: the counters stand before the weights, or near them
_MOST_OPCODES = 200_000
_SMALL = 16 << 20
_TEXTS = frozenset(
    {"SHORT_BINUNICODE", "BINUNICODE", "UNICODE", "BINUNICODE8", "SHORT_BINSTRING", "BINSTRING", "STRING"}
)
_NUMBERS = frozenset({"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "BINFLOAT", "FLOAT"})
_LONGEST = 40
_MARK, _OPAQUE = object(), object()
_NAMED = (
    (re.compile(r"(?<![a-z])(?:global_?)?(?:time)?(?:steps?|iters?|iteration)[-_=]?(\d+)"), "step"),
    (re.compile(r"(\d+)[-_]?(?:k?steps?|iters?)(?![a-z])"), "step"),
    (re.compile(r"(?:checkpoint|ckpt)[-_](\d+)"), "step"),
    (re.compile(r"(\d{3,})"), "step"),
    (re.compile(r"(?<![a-z])epoch[-_=]?(\d+)"), "epoch"),
)
_WHOLE = (2, 3)  # of the patterns above, those that must be the whole name
_ENDINGS = re.compile(r"(?:\.(?:ckpt|pt|pth|zip|pkl|pickle|safetensors|npz|tar|h5|bin))+$")


@dataclass(frozen=True, slots=True)
class CheckpointStep:
    value: float
    unit: Literal["step", "epoch"] = "step"
    sure: bool = False  # the file itself says `step`: names and other counters may count something else

    def share(self, steps: float | None) -> float | None:
        """Of the steps that were wanted; None: not known, or counted in something else."""
        if steps is None or steps <= 0 or self.unit != "step" or self.value > OTHER_UNIT_FACTOR * steps:
            return None
        return min(1.0, self.value / steps)

    def is_late(self, steps: float | None, wanted: float) -> bool | None:
        """Whether it makes the checkpoint late enough; None: it does not decide, and the time does.

        Half of what was wanted is not the end, whatever the clock says; what lies between is as good as its time.
        """
        share = self.share(steps)
        if share is None or share >= wanted:
            return None if share is None else True
        return False if self.sure and share < wanted / 2 else None

    def __str__(self) -> str:
        return f"{self.unit} {self.value:.0f}"


OTHER_UNIT_FACTOR = 1.05  # beyond the target by more than that, a step is counted in another unit


def step_of_checkpoint(path: str) -> CheckpointStep | None:
    """Never raises."""
    try:
        found = _step_in_folder(path) if os.path.isdir(path) else _step_in_file(path)
    except (
        OSError,
        *DAMAGED_FILE_ERRORS,
        zipfile.BadZipFile,
        UnreadableMember,
        RecursionError,
        MemoryError,
        KeyError,
        RuntimeError,
    ):
        found = None
    return found or _step_in_file_name(path)


def _step_in_folder(path: str) -> CheckpointStep | None:
    for name in _STATES:
        state = os.path.join(path, name)
        if os.path.isfile(state) and os.stat(state).st_size <= _SMALL:  # noqa: PTH113
            return _step_in_mapping(load_bounded_json(read_regular_file(state, _SMALL)))
    return None


def _step_in_file(path: str) -> CheckpointStep | None:
    with open_regular_file(path) as file:
        head = file.read(4)
        file.seek(0)
        if head.startswith(b"PK"):
            return _step_in_zip(file)
        if head[:1] != b"\x80":
            return None
        found, odd = _step_in_pickle(file)
    return _step_by_full_read(path) if odd and found is None else found


def _step_in_zip(opened: BinaryIO) -> CheckpointStep | None:
    """torch.save keeps one pickle, Stable-Baselines3 its settings as JSON."""
    with open_zip(opened) as archive:
        for member in archive.infolist():
            if member.filename == "data" and member.file_size <= _SMALL:
                return _step_in_mapping(load_bounded_json(read_zip_member(archive, member, _SMALL)))
            if member.filename.split("/")[1:] == ["data.pkl"]:
                with open_zip_member(archive, member) as file:
                    return _step_in_pickle(file)[0]
    return None


def _step_in_mapping(found: Any) -> CheckpointStep | None:
    if not isinstance(found, dict):
        return None
    for unit, names in (("step", _STEPS), ("epoch", _EPOCHS)):
        for name in names:
            value = found.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
                return CheckpointStep(float(value), "step" if unit == "step" else "epoch", name == "step")
    return None


def _step_by_full_read(path: str) -> CheckpointStep | None:
    """A counter that is numpy's: it takes the whole pickle to read it."""
    if os.stat(path).st_size > _SMALL:
        return None
    try:
        found = read_plain_pickle(path)
    except PickleNotPlain:
        return None
    plain = (
        {name: _scalar_value(found[name]) for name in (*_STEPS, *_EPOCHS) if name in found}
        if type(found) is dict
        else {}
    )
    return _step_in_mapping(plain)


def _scalar_value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "size", 0) == 1 else value


class _LimitedFile:
    """The first bytes of a file: an array beyond them is not read into memory."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self.file, self.left = file, left

    def read(self, count: int = -1) -> bytes:
        if count < 0 or count > self.left:
            return b""
        self.left -= count
        return self.file.read(count)

    def readline(self) -> bytes:
        line = self.file.readline(min(self.left, 1 << 16))
        self.left -= len(line)
        return line


def _step_in_pickle(file: IO[bytes]) -> tuple[CheckpointStep | None, bool]:
    """The counter among the keys of the outermost dict; and whether there is one whose value is no plain number."""
    scan = _PickleScan()
    try:
        scan.run(file)
    except (*DAMAGED_FILE_ERRORS, IndexError):
        pass  # cut off, or beyond what is looked at: what was found before it counts
    found = scan.outermost()
    return _step_in_mapping(found), any(found.get(name) is _OPAQUE for name in (*_STEPS, *_EPOCHS))


class _PickleScan:
    """Follows the stack of a pickle. All that is no text, no number and no dict is a stone."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, file: IO[bytes]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that are none: no concern of a reader
            self._run(_LimitedFile(file, _MOST_BYTES))

    def _run(self, limited: Any) -> None:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(limited)):
            if count > _MOST_OPCODES or opcode.name == "STOP":
                return
            self._step(opcode, argument)
            if self._is_told(opcode.name):
                return

    def outermost(self) -> dict[str, Any]:
        """Its keys so far: those that are in it, and those that wait to be put in."""
        if not self.stack or type(self.stack[0]) is not dict:
            return {}
        rest = self.stack[2:] if len(self.stack) > 1 and self.stack[1] is _MARK else self.stack[1:]
        return {**self.stack[0], **_with_items({}, rest[: len(rest) // 2 * 2])}

    def _is_told(self, name: str) -> bool:
        """A step among the first keys: the weights behind it need not be looked at."""
        stack = self.stack
        top = len(stack) > 3 and len(stack) % 2 == 0 and stack[1] is _MARK and type(stack[0]) is dict
        return top and name in _NUMBERS and stack[-2] in _STEPS and all(each is not _MARK for each in stack[2:])

    def _step(self, opcode: Any, argument: Any) -> None:
        name, stack = opcode.name, self.stack
        if name == "MARK":
            stack.append(_MARK)
        elif name in _TEXTS or (name in _NUMBERS and not isinstance(argument, bool)):
            stack.append(argument if len(str(argument)) <= _LONGEST else _OPAQUE)
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            _with_items(stack[-1], items)
        elif name == "DICT":
            stack.append(_with_items({}, self._since_mark()))
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[int(argument)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo.get(int(argument), _OPAQUE))
        else:
            self._roll(opcode)

    def _roll(self, opcode: Any) -> None:
        """Any other opcode takes and leaves as many as pickletools says."""
        takes = [each for each in opcode.stack_before if each not in (pickletools.markobject, pickletools.stackslice)]
        if len(takes) < len(opcode.stack_before):
            self._since_mark()
        del self.stack[len(self.stack) - len(takes) :]
        self.stack += [_OPAQUE] * len(opcode.stack_after)

    def _since_mark(self) -> list[Any]:
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items


def _with_items(into: Any, items: list[Any]) -> Any:
    if type(into) is dict:
        into.update((key, value) for key, value in zip(items[::2], items[1::2], strict=False) if type(key) is str)
    return into


def _step_in_file_name(path: str) -> CheckpointStep | None:
    """`001500`, `rl_model_9000_steps.zip`, `epoch=3-step=1200.ckpt`, `epoch-10.pt`."""
    name = _ENDINGS.sub("", os.path.basename(path.rstrip("/")).lower())
    for at, (pattern, unit) in enumerate(_NAMED):
        match = pattern.fullmatch(name) if at in _WHOLE else pattern.search(name)
        if match:
            return CheckpointStep(float(match[1]), "step" if unit == "step" else "epoch")
    return None
