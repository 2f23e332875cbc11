"""Files of source: which are, what is in them by hash, and whether they are still as they were seen."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

CODE = (
    ".py", ".pyx", ".pxd", ".pyi", ".sh", ".bash", ".zsh", ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp",
    ".rs", ".go", ".java", ".js", ".ts", ".jl", ".lua", ".r", ".R", ".m", ".pl", ".rb", ".ipynb",
)  # fmt: skip
CONFIG = (".yaml", ".yml", ".toml", ".json", ".jsonnet", ".cfg", ".ini", ".gin", ".conf")
RESULTS = (".json", ".ipynb")  # what runs write, and what people look at results with
BINDINGS = ".muster.json"  # of a document's numbers: ours, and no part of what runs
LARGEST = 1 << 20
MOST_FILES = 500
MOST_BYTES = 32 << 20
DEEPEST = 3
# folders in which tools put what they made; none of it is the source of a run
NO_SOURCE = (
    ".muster", ".git", "__pycache__", ".venv", "venv", "site-packages", "node_modules", ".ipynb_checkpoints", "wandb",
    "mlruns", "lightning_logs", "multirun", ".hydra", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".eggs",
)  # fmt: skip
_SECRET_NAMES = ("secret", "credential", "passw", "token", "apikey", "api_key", "kaggle.json", "service_account")


def is_code(path: str) -> bool:
    return path.endswith(CODE)


def is_source(path: str) -> bool:
    if path.endswith(BINDINGS):
        return False
    return path.endswith((*CODE, *CONFIG)) and not any(part in NO_SOURCE for part in path.split("/")[:-1])


def may_be_kept(path: str) -> bool:
    """A config that sounds like a credential is named and hashed; what is in it stays where it is."""
    name = os.path.basename(path).lower()  # noqa: PTH119
    return is_code(path) or not any(word in name for word in _SECRET_NAMES)


def shown(path: str) -> str:
    """As text that can be written down, whatever bytes are in the name."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def hashed(folder: str, paths: Iterable[str]) -> tuple[dict[str, str], int]:
    """sha256 of each by its path, code first; and how many were left out, because they are too many or too large."""
    found: dict[str, str] = {}
    left_out = total = 0
    for path in sorted(paths, key=lambda each: (not is_code(each), each)):
        data = content(folder, path)
        if data is None:
            continue
        if len(data) > LARGEST or len(found) >= MOST_FILES or total + len(data) > MOST_BYTES:
            left_out += 1
            continue
        total += len(data)
        found[path] = hashlib.sha256(data).hexdigest()
    return found, left_out


def content(folder: str, path: str) -> bytes | None:
    """Of a file; of a link where it points to. One byte more than the largest: it is too large. None: it is neither."""
    where = Path(folder, path)
    try:
        mode = where.lstat().st_mode
        if stat.S_ISLNK(mode):
            return b"link to " + os.fsencode(os.readlink(where))  # noqa: PTH115
        if not stat.S_ISREG(mode):
            return None
        descriptor = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None


def beside(script: str) -> Iterator[str]:
    """The source in its folder, and in the packages below it: absolute paths, itself included."""
    yield from _packages(os.path.dirname(script), DEEPEST)  # noqa: PTH120


def _packages(folder: str, deepest: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if entry.name in NO_SOURCE:
            continue
        if entry.is_dir(follow_symlinks=False):
            if deepest and os.path.exists(os.path.join(entry.path, "__init__.py")):  # noqa: PTH110, PTH118
                yield from _packages(entry.path, deepest - 1)
        elif is_source(entry.name):
            yield entry.path


def signature(folder: str, paths: Sequence[str]) -> str:
    """Of sizes and times, by which a change is noticed without reading anything."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            found = os.stat(os.path.join(folder, path), follow_symlinks=False)  # noqa: PTH116, PTH118
            digest.update(b"%d %d %d;" % (found.st_mtime_ns, found.st_size, found.st_ino))
        except (OSError, ValueError):
            digest.update(b"none;")
    return digest.hexdigest()
