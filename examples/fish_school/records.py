"""The files that a run leaves. All rows are in the checkpoint too: a resumed run writes its past anew, anywhere."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

Row = dict[str, Any]
TRAIN, EVALS, GATE = "train.jsonl", "eval_history.jsonl", "gate_trace.jsonl"


class Records:
    """Rows of the files that grow, each appended as it comes."""

    def __init__(self, folder: Path, past: dict[str, list[Row]] | None = None) -> None:
        self.folder = folder
        self.rows: dict[str, list[Row]] = past or {TRAIN: [], EVALS: [], GATE: []}
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self.rows.items():  # what an attempt wrote after its last checkpoint goes
            whole(folder / name, "".join(line(row) for row in rows).encode())

    def add(self, name: str, row: Row) -> None:
        self.rows[name].append(row)
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(line(row))

    def json(self, name: str, value: Any) -> None:
        whole(self.folder / name, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())

    def stats(self) -> None:
        """The training's numbers as a dict of lists, as the reference keeps them."""
        rows = self.rows[TRAIN]
        lists = {key: [row[key] for row in rows] for key in rows[0]} if rows else {}
        whole(self.folder / "training_stats.pkl", pickle.dumps(lists, protocol=4))


def line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def whole(path: Path, data: bytes) -> None:
    """There with all its bytes or not at all, whenever the run is killed."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
