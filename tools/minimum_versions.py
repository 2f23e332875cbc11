"""A constraints file of the oldest versions that pyproject.toml allows.

    python tools/minimum_versions.py [EXTRA...] > minimum.txt
    pip install -c minimum.txt -e '.[EXTRA,...]'

Without an extra only what is needed to run is listed. What these packages bring along is left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*(?P<version>[A-Za-z0-9.]+)")


def minimum_pins(extras: list[str]) -> list[str]:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    if unknown := [extra for extra in extras if extra not in optional]:
        raise SystemExit(f"no such extra in pyproject.toml: {', '.join(unknown)}")
    pins = {}
    for requirement in [*project["dependencies"], *(each for extra in extras for each in optional[extra])]:
        found = REQUIREMENT.match(requirement)
        if not found:
            raise SystemExit(f"{requirement!r} has no lower bound")
        pins[found["name"]] = f"{found['name']}=={found['version']}"
    return list(pins.values())


if __name__ == "__main__":
    print("\n".join(minimum_pins(sys.argv[1:])))
