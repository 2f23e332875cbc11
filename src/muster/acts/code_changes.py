"""Which files of source differ between the code of two cells, by what was recorded of it and by git."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Code = Mapping[str, Any]  # `code` of attempt.json
Blob = Callable[[str, str], str | None]  # commit, path -> sha256 of the file in it; None: not there, or nobody knows
Between = Callable[[str, str], Iterable[str]]  # two commits -> files of source that differ between them
RESULTS = (".json", ".ipynb")  # written by runs as often as read by them; configs that commands name are told elsewhere


def changed_sources(codes: Mapping[str, Code], blob: Blob, between: Between) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of the cells of one job, those whose source is another than that of most: (cell, files that differ).

    A file that one of the two does not have is not counted: what uses it has changed, too.
    """
    known = {cell: code for cell, code in codes.items() if code.get("commit") or code.get("files")}
    if len({_identity(code) for code in known.values()}) < 2:
        return
    usual, _ = Counter(map(_identity, known.values())).most_common(1)[0]
    reference = next(code for code in known.values() if _identity(code) == usual)
    found: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for cell, code in known.items():
        name = _identity(code)
        if name not in found:
            found[name] = differing(reference, code, blob, between)
        if found[name]:
            yield cell, found[name]


def differing(a: Code, b: Code, blob: Blob, between: Between) -> tuple[str, ...]:
    if _is_vague(a) or _is_vague(b):
        return ()
    paths = {*a.get("files", ()), *b.get("files", ())}
    first, second = str(a.get("commit") or ""), str(b.get("commit") or "")
    if first and second and first != second:
        paths |= set(between(first, second))
    found = []
    for path in sorted(path for path in paths if not path.endswith(RESULTS)):
        one, other = _content(a, path, blob), _content(b, path, blob)
        if one and other and one != other:
            found.append(path)
    return tuple(found)


def _content(code: Code, path: str, blob: Blob) -> str | None:
    if path in code.get("files", ()):
        return str(code["files"][path])
    if path in code.get("changed", ()) or not code.get("commit"):
        return None
    return blob(str(code["commit"]), path)


def _is_vague(code: Code) -> bool:
    """An older record: it was changed, and in which files is not known."""
    return bool(code.get("dirty")) and "files" not in code


def _identity(code: Code) -> tuple[Any, ...]:
    return code.get("commit"), code.get("dirty"), tuple(sorted(code.get("files", {}).items()))
