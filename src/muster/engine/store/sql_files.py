"""SQL in named blocks, and the numbered migrations."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).with_name("sql")


def _split_named_queries(text: str) -> dict[str, str]:
    blocks = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        blocks[name.strip()] = body.strip()
    return blocks


QUERIES = _split_named_queries((_FOLDER / "queries.sql").read_text(encoding="utf-8"))


def list_migrations() -> list[tuple[int, str]]:
    """(number, script), in order."""
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    return [(int(file.name.split("_")[0]), file.read_text(encoding="utf-8")) for file in files]
