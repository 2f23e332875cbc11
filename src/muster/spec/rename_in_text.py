"""Renames a value of an axis in the text of a campaign file: the characters of its name, wherever it is meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from muster.spec.yaml_tree import has_leading_zero, read_plain_scalar, yaml11_reading

_PREFIX = re.compile(r"(?:[&!]\S+\s+)*")  # of a value with an anchor or a tag
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*")


def rename_value_in_text(text: str, axis: str, old: str, new: str) -> str:
    """The text with the new name; the same text where the old one is not written. Whoever asks reads it again."""
    from ruamel.yaml import YAML

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    root = YAML(typ="safe", pure=True).compose(body)
    places: dict[tuple[int, int], str] = {}
    for node in _nodes_naming_value(root, axis, old):
        span, before = _span_of_value(node, body)
        tail = node.value.removeprefix(old)  # of a column: ood/score
        places[span] = _quote_like_before(new + tail, before, node)
    for (start, end), written in sorted(places.items(), reverse=True):
        body = body[:start] + written + body[end:]
    return mark + body


def _nodes_naming_value(root: Any, axis: str, old: str) -> Iterator[Any]:
    """Scalar nodes that name the value: itself, exclusions, and what the decision and the report say of it."""
    yield from _nodes_with_name(_node_at(root, "axes", axis), old)
    for _, job in _mapping_entries(_node_at(root, "jobs")):
        for point in _sequence_items(_node_at(job, "exclude")):
            yield from _nodes_with_name(_node_at(point, axis), old)
    if axis == "config":
        yield from _nodes_with_name(_node_at(root, "decision", "baseline"), old)
        yield from _nodes_with_name(_node_at(root, "decision", "factors"), old)
    if axis == "split":
        for part in ("primary", "limit"):
            yield from _nodes_with_name(_node_at(root, "decision", part, "split"), old)
        for column in _sequence_items(_node_at(root, "report", "columns")):
            if column.id == "scalar" and column.value.rpartition("/")[0] == old:
                yield column


def _nodes_with_name(node: Any, name: str) -> Iterator[Any]:
    """The scalar itself, items of a list, or keys of a mapping."""
    if node is None:
        return
    found = [node] if node.id == "scalar" else [key for key, _ in _mapping_entries(node)] or list(_sequence_items(node))
    yield from (each for each in found if each.id == "scalar" and each.value == name)


def _mapping_entries(node: Any) -> list[tuple[Any, Any]]:
    return list(node.value) if node is not None and node.id == "mapping" else []


def _sequence_items(node: Any) -> list[Any]:
    return list(node.value) if node is not None and node.id == "sequence" else []


def _node_at(node: Any, *keys: str) -> Any:
    for key in keys:
        node = next((value for name, value in _mapping_entries(node) if name.value == key), None)
    return node


def _span_of_value(node: Any, body: str) -> tuple[tuple[int, int], str]:
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    start += len(_PREFIX.match(body, start, end)[0])  # type: ignore[index]  # it fits nothing, too
    before = body[start:end].rstrip(" \t\r\n")
    return (start, start + len(before)), before


def _quote_like_before(value: str, before: str, node: Any) -> str:
    """As the old one was written, where that means the same."""
    if before[:1] == "'":
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    was_number = node.style is None and not isinstance(read_plain_scalar(node.value), str)
    is_number = not isinstance(read_plain_scalar(value), str)
    plain = is_number or bool(_PLAIN.fullmatch(value) and not yaml11_reading(value))
    if before[:1] != '"' and was_number == is_number and plain and not has_leading_zero(value):
        return value
    return json.dumps(value, ensure_ascii=False)
