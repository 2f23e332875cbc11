"""YAML of runs, and no more of it than fits: a few lines of `<<: *a` can stand for gigabytes."""

from __future__ import annotations

from typing import Any

from muster.text.phrases import phrase

MOST_MERGED = 200_000  # entries of mappings, merged ones written out


def load_yaml(text: str) -> Any:
    """Raises ruamel.yaml's errors and others, and ValueError where it merges too much."""
    from ruamel.yaml import YAML  # slow to import
    from ruamel.yaml.constructor import SafeConstructor

    class Bounded(SafeConstructor):
        merged = 0

        def flatten_mapping(self, node: Any) -> Any:
            """For a mapping that is merged into another one, too, each time."""
            found = super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > MOST_MERGED:
                raise ValueError(phrase("files.too_many_yaml_entries", most=MOST_MERGED))
            return found

    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = Bounded
    return yaml.load(text)
