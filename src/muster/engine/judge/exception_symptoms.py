"""What an exception's own words say: device memory, disk space, numbers that are not finite; and how surely."""

from __future__ import annotations

import re
from typing import Literal

from muster.engine.judge.tracebacks import RaisedException

SymptomConfidence = Literal["proven", "probable", ""]

_DEVICE_MEMORY = re.compile(
    r"\b(?:CUDA|HIP|XPU|MPS backend) out of memory"
    r"|\b(?:CUDA|HIP)(?: runtime)? error(?: ?\(2\))? ?: out of memory"
    r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory"
    r"|cuda failed with error 2 out of memory"
    r"|RESOURCE_EXHAUSTED: .{0,40}Out of memory while trying to allocate"
    r"|OOM when allocating tensor.{0,400}device:GPU"
)
_PERHAPS_DEVICE_MEMORY = re.compile(
    r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: .{0,200}(?:GPU|\bdevice|\b[Hh][Bb][Mm]\b)"
    r"|Allocator \(GPU_\d+_bfc\) ran out of memory|Attempting to (?:allocate|reserve) .{0,80}HBM"
)
_NO_SPACE = re.compile(
    r"\[Errno (?:28|122)\]|errno ?= ?28\b|No space left on device|Disk quota exceeded|kind: StorageFull"
    r"|Not enough free space to write",
    re.IGNORECASE,
)
_WRITE_FAILED = re.compile(
    r"database or disk is full|PytorchStreamWriter failed writing|inline_container\.cc:\d+\] .{0,20}unexpected pos"
    r"|\d+ requested and \d+ written|file write failed|iostream error|short write|\bwrite failed",
    re.IGNORECASE,
)
_SHARED_MEMORY = re.compile(r"/dev/shm|</?torch_\d+|shared memory", re.IGNORECASE)
_SHARED_FILES = ("synchronize.py:", "shared_memory.py:", "heap.py:", "reductions.py:")  # of Python and torch

# Words for numbers; `nan_mask`, `/nan/`, `info` and `an infinite loop` are none of them.
_BAD = (
    r"(?<![\w./\\-])[`'\"(\[]?-?(?:nans?|infs?|non-?finite|non finite|not (?:a )?finite|not a number)"
    r"(?![\w\\-]|\.\w|/(?!(?:nan|inf)s?\b)\w)"
)
_SUBJECT = (
    r"(?:loss(?:es)?|grad(?:ient)?s?|grad[_ ]norm|norm|weights?|param(?:eter)?s?|logits?|activations?|outputs?|values?"
    r"|rewards?|returns?|advantages?|q-?values?|kl|elbo|objective|energy|metrics?|predictions?|tensors?|probabilit\w+"
    r"|cost)"
)
_FILLER = r"[\s`'\"(\[{]*(?:(?:now|currently|all|either|tensor|array|to|a|an|the|only|become)\b[\s`'\"(\[{]*){0,3}"
_IS = r"\b(?:is|are|was|were|be(?:came|comes?)|turned|went|got|contains?|has|have|found)\b"
_IS_BAD = re.compile(
    rf"\b\w*{_SUBJECT}\b[^.,;\n]{{0,60}}?(?:{_IS}{_FILLER}{_BAD}|[=:]{_FILLER}(?<![\w./\\-])nan\b"
    r"|\b(?:is|became) (?:infinite|infinity)\b)",
    re.IGNORECASE,
)
_BAD_THING = re.compile(
    rf"{_BAD}[`'\")]?(?:\s*(?:/|,|and/or|or|and)\s*[`'\"]?(?:nan|inf)s?[`'\")]?)?\s+(?:values? |entries |numbers? )?"
    r"(?:(?:was|were|is|are) )?(?:found |detected |encountered |occurred |seen |produced |present )?"
    r"(?:(?:in|for|from|at|of|inside) )?"
    r"(?:(?:the|a|an|model|model's|your|its|input|total|training|policy|value|critic) ){0,2}"
    rf"[`'\"]?[\w./]{{0,60}}{_SUBJECT}\b",
    re.IGNORECASE,
)
_GOT_BAD = re.compile(
    rf"\b(?:got|found|received|but (?:is|was|got|found)|encountered|detected)\b{_FILLER}(?:values? )?{_BAD}",
    re.IGNORECASE,
)
_BAD_ANYWHERE = re.compile(_BAD, re.IGNORECASE)
_HINTS = re.compile(r"nan|inf|finite|not a number", re.IGNORECASE)
_SURELY_BAD = re.compile(
    r"returned nan values in its|Detected nan and/or inf values in|found invalid values:[\s\S]{0,400}?\bnan\b",
    re.IGNORECASE,
)
_PERHAPS_BAD = re.compile(
    r"probability tensor contains either `?inf|to satisfy the constraint [\s\S]{0,200}found invalid values"
    r"|range of \[[^\]]{0,40}\] is not finite"
)
_RULE = re.compile(
    r"\b(?:must|should|cannot|can't|allow\w*|(?:un)?support\w*|invalid|requires?|checks?|config\w*|disabled|expected"
    r"|unknown|unexpected|option|argument|key|column|if|whether|no|without|not)\b(?! (?:a )?finite)",
    re.IGNORECASE,
)
_BAD_TYPE = re.compile(r"NaN|Nan(?=[A-Z]|$)|Non_?[Ff]inite")
_NEVER_NUMBERS = frozenset(
    {
        "KeyError",
        "ImportError",
        "ModuleNotFoundError",
        "FileNotFoundError",
        "TypeError",
        "AttributeError",
        "NameError",
        "SyntaxError",
        "IndentationError",
        "IndexError",
        "PermissionError",
        "NotImplementedError",
        "UnboundLocalError",
        "ValidationError",
        "JSONDecodeError",
        "MemoryError",
        "OutOfMemoryError",
        "KeyboardInterrupt",
        "OSError",
    }
)
_QUOTING = (_NEVER_NUMBERS - {"OSError", "MemoryError", "OutOfMemoryError"}) | {
    "ValueError",
    "AssertionError",
    "LookupError",
    "UnicodeDecodeError",
    "FileExistsError",
    "NotADirectoryError",
    "IsADirectoryError",
}
_OTHER_ERROR = re.compile(r"\[Errno (?!28\]|122\]|5\])\d+\]")
_GIVES_UP = re.compile(r"stop|abort|exit|diverg|terminat", re.IGNORECASE)
_CHECKS_NUMBERS = re.compile(r"isnan|isfinite|isinf|is_finite|(\bloss\b) == \1")
_LOST = re.compile(
    r"GPU is lost|fallen off the bus|uncorrectable ECC error|Unable to determine the device handle", re.IGNORECASE
)
_DEVICE_WORDS = re.compile(
    r"cuda|nvml|nccl|cudnn|cublas|gpu|device|xla|driver|INTERNAL: |Accelerator|DistBackend", re.IGNORECASE
)


def judge_device_memory(raised: RaisedException) -> SymptomConfidence:
    text = raised.told
    if raised.full.startswith(("torch.", "cupy.")) and raised.type == "OutOfMemoryError":
        return "proven"
    if _only_quotes_words(raised):
        return ""
    if _DEVICE_MEMORY.search(text):
        pinned = "pin_memory" in raised.code or "cudaHostAlloc" in text  # the host's memory, by the same words
        return "probable" if pinned else "proven"
    return "probable" if _PERHAPS_DEVICE_MEMORY.search(text) else ""


def mentions_device_memory(text: str) -> bool:
    return _DEVICE_MEMORY.search(text) is not None


def mentions_no_space(text: str) -> bool:
    return _NO_SPACE.search(text) is not None and "inotify" not in text


def _only_quotes_words(raised: RaisedException) -> bool:
    """These words are in it, but as a value that it complains about: a key, a cell of a table, a file's name."""
    return raised.type in _QUOTING or bool(_OTHER_ERROR.match(raised.message))


def judge_no_space(raised: RaisedException, disk_free: int | None) -> SymptomConfidence:
    text = raised.told
    if _only_quotes_words(raised):
        return ""
    if mentions_no_space(text):
        return "probable" if mentions_shared_memory(raised) else "proven"
    full = disk_free is not None and disk_free < 1 << 20
    if mentions_failed_write(raised):  # libraries that don't say why
        return "probable" if full or disk_free is None or "disk is full" in text else ""
    return "probable" if full and raised.type in ("OSError", "IOError", "BlockingIOError") else ""


def mentions_failed_write(raised: RaisedException) -> bool:
    return _WRITE_FAILED.search(raised.told) is not None


def mentions_shared_memory(raised: RaisedException) -> bool:
    return _SHARED_MEMORY.search(raised.told) is not None or raised.raised_at.startswith(_SHARED_FILES)


def judge_not_finite(raised: RaisedException, metric: str) -> SymptomConfidence:
    """`metric`: what was NaN or inf in the last row that the run logged, if anything."""
    if raised.type == "FloatingPointError":
        return "" if "underflow" in raised.message else "proven"
    if _BAD_TYPE.search(raised.type):
        return "proven"
    if raised.type in _NEVER_NUMBERS:
        return ""
    text = raised.message
    if _SURELY_BAD.search(text):
        return "proven"
    if _PERHAPS_BAD.search(text) or (not text and _CHECKS_NUMBERS.search(raised.code)):
        return "probable"
    if _states_bad_number(text):
        return "proven"
    if metric and ((not text and raised.type == "AssertionError") or _BAD_ANYWHERE.search(text)):
        return "probable"
    return ""


def _states_bad_number(text: str) -> bool:
    """The text says that a number is NaN, rather than what would be so if it were one."""
    for sentence in re.split(r"[;\n]|\.\s", text[:2000]):
        if not _HINTS.search(sentence):
            continue
        if _GOT_BAD.search(sentence):
            return True
        states = _IS_BAD.search(sentence) or _BAD_THING.search(sentence)
        if states and not _RULE.search(sentence[: states.end()]):
            return True
    return False


def mentions_bad_numbers(line: str) -> bool:
    """`Loss is nan, stopping training`, as a line of a log."""
    return len(line) < 300 and _GIVES_UP.search(line) is not None and _states_bad_number(line)


def mentions_lost_gpu(text: str) -> bool:
    return _LOST.search(text) is not None


def concerns_device(raised: RaisedException) -> bool:
    return raised.type in ("RuntimeError", "KeyboardInterrupt") or _DEVICE_WORDS.search(raised.told) is not None
