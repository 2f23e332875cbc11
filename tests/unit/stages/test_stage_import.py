"""Any training script can import the room: it loads nothing but the standard library, and little of that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import muster

SOURCE = str(Path(muster.__file__).parent.parent)
# -I and -S: no site-packages, no environment, so that what is imported must come from the source or from Python itself
LOADED = """
import sys
sys.path.insert(0, {source!r})
before = set(sys.modules)
{statement}
print(*sorted(set(sys.modules) - before))
"""


def loaded_by(statement: str) -> list[str]:
    code = LOADED.format(source=SOURCE, statement=statement)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_room_loads_no_third_party_module() -> None:
    loaded = loaded_by("import muster.stages")
    strangers = {name for name in loaded if name.partition(".")[0] not in {*sys.stdlib_module_names, "muster"}}
    assert strangers == set()
    assert {name.split(".")[1] for name in loaded if name.startswith("muster.")} == {"stages"}


def test_the_room_loads_nothing_heavy() -> None:
    heavy = {"json", "dataclasses", "inspect", "asyncio", "unittest", "decimal", "random", "shlex", "csv", "difflib",
             "logging", "pathlib", "subprocess", "threading", "datetime", "statistics", "unicodedata"}  # fmt: skip
    assert heavy & set(loaded_by("import muster.stages")) == set()


def test_every_module_of_the_room_is_of_the_standard_library_alone() -> None:
    names = sorted(path.stem for path in (Path(SOURCE) / "muster" / "stages").glob("*.py") if path.stem != "__init__")
    loaded = loaded_by("\n".join(f"import muster.stages.{name}" for name in names))
    assert {f"muster.stages.{name}" for name in names} <= set(loaded)
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "muster"}


def test_a_script_decides_and_writes_its_trace_on_a_bare_interpreter() -> None:
    statement = (
        "from muster.stages import Gate, GateSettings\n"
        "gate = Gate(GateSettings.of({'success': [{'key': 'x', 'min': 1, 'window': 'median 1'}]}))\n"
        "assert gate.observe(1, {'x': 2.0}).state == 'advance'\n"
        "assert gate.observe(2, {'x': 2.0}).line()"
    )
    strangers = {
        name for name in loaded_by(statement) if name.partition(".")[0] not in {*sys.stdlib_module_names, "muster"}
    }
    assert strangers == set()
