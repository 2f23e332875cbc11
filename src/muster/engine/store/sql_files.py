"""SQL in named blocks, the numbered migrations, and rows of the table `meta`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).with_name("sql")


def _split_named_queries(text: str) -> dict[str, str]:
    blocks = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        blocks[name.strip()] = body.strip()
    return blocks


QUERIES = _split_named_queries((_FOLDER / "queries.sql").read_text(encoding="utf-8"))


def read_meta(db: sqlite3.Connection, key: str, default: str = "") -> str:
    row = db.execute(QUERIES["get_meta"], (key,)).fetchone()
    return row[0] if row else default


def write_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute(QUERIES["set_meta"], (key, value))


def read_json_meta(db: sqlite3.Connection, key: str, empty: str = "{}") -> Any:
    return json.loads(read_meta(db, key, empty))


def write_json_meta(db: sqlite3.Connection, key: str, value: Any) -> None:
    write_meta(db, key, json.dumps(value, ensure_ascii=False))


def list_migrations() -> list[tuple[int, str]]:
    """(number, script), in order."""
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    return [(int(file.name.split("_")[0]), file.read_text(encoding="utf-8")) for file in files]
