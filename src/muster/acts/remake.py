"""Which commands make derived files anew."""

from __future__ import annotations

from collections.abc import Iterable

from muster.report.stamp import Stamp

# of files whose stamp is gone
_BY_PATH = {"reports/cost.md": "muster cost --report", "reports/record.md": "muster record"}
GATES = "reports/gates/"  # then the cell


def remade_by(paths: Iterable[str], stamps: Iterable[Stamp]) -> tuple[str, ...]:
    """Each command once, in the order of the files."""
    known = {path: stamp.command for stamp in stamps for path in stamp.files}
    return tuple(dict.fromkeys(known.get(path) or _by_path(path) for path in paths))


def _by_path(path: str) -> str:
    if path.startswith(GATES):
        return f"muster gates draw {path.removeprefix(GATES).rpartition('/')[0]}"
    return "muster loop report" if path.startswith("reports/loop/") else _BY_PATH.get(path, "muster report")
