"""Asks a Python of somebody else's environment what it is: version, packages, and which devices its frameworks see."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from muster.engine.ports.machine import PythonAnswer
from muster.text.phrases import phrase

PYTHON_LIMIT_S = 120.0
KEPT_OUTPUT_BYTES = 16 << 10  # bytes of its output
PROBE_MARK = "MUSTER-PROBE "
# Python of any age reads it. A framework is announced before it is imported: one that crashes is known by name.
PROBE_CODE = """
import json, sys
sys.path = [place for place in sys.path if place]  # no module of the working folder stands for a real one
def say(key, value):
    sys.stdout.write("\\n%s%s\\n" % (MARK, json.dumps({key: value})))
    sys.stdout.flush()
def first(error):
    return ("%s: %s" % (type(error).__name__, error)).strip().splitlines()[0][:500]
say("python", {"version": sys.version.split()[0], "executable": sys.executable, "prefix": sys.prefix})
from importlib.util import find_spec
def lacks(name):
    try:
        return find_spec(name) is None
    except Exception:
        return False
say("lacking", [name for name in MODULES if lacks(name)])
try:
    from importlib.metadata import distributions
    names = sorted((str(each.metadata["Name"]), str(each.version)) for each in distributions())
    say("packages", dict(names))
except Exception as error:
    say("trouble", first(error))
def jax():
    import jax
    seen = jax.devices()
    gpus = [each for each in seen if each.platform in ("gpu", "cuda", "rocm")]
    return {"version": jax.__version__, "gpus": len(gpus), "devices": [str(each) for each in seen],
            "kinds": sorted(set(each.device_kind for each in gpus))}
def torch():
    import torch
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    kinds = [torch.cuda.get_device_name(index) for index in range(count)]
    return {"version": str(torch.__version__), "gpus": count, "devices": ["cuda:%d" % each for each in range(count)],
            "kinds": sorted(set(kinds)), "built_for": torch.version.cuda}
for name, ask in (("jax", jax), ("torch", torch)):
    try:
        there = find_spec(name) is not None
    except Exception:
        there = False
    if there:
        say("begins", name)
        try:
            say("framework", dict(ask(), name=name))
        except Exception as error:
            say("framework", {"name": name, "gpus": 0, "devices": [], "kinds": [], "trouble": first(error)})
"""


def ask_python(
    words: Sequence[str], cwd: str, env: Mapping[str, str], limit_s: float = PYTHON_LIMIT_S, modules: Sequence[str] = ()
) -> PythonAnswer:
    """In a process group of its own, which ends as a whole. JAX lays by most of a GPU: it is told not to.

    `modules`: names without dots, so that none is imported to be found.
    """
    packed = base64.b64encode(f"MARK = {PROBE_MARK!r}\nMODULES = {list(modules)!r}\n{PROBE_CODE}".encode()).decode()
    # one line without quotes inside: `conda run` can't carry more. No module of the working folder is imported
    begin = "import sys; sys.path[:] = filter(None, sys.path); import base64"
    command = [*words, "-c", f"{begin}; exec(base64.b64decode('{packed}').decode())"]
    gentle = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            started = subprocess.Popen(
                command,
                cwd=cwd,
                env={**env, **gentle},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return PythonAnswer(tuple(words), None, trouble=error.strerror or str(error))
        try:
            code: int | None = started.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if started.poll() is None:  # out of time, or we were interrupted
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGKILL)
                started.wait()
        heard = _parse_python_answer(tuple(words), code, _read_output_text(out), _output_tail(_read_output_text(err)))
        return replace(heard, lacking=tuple(name for name in modules if name in heard.lacking))


def _parse_python_answer(words: tuple[str, ...], code: int | None, out: str, err: str) -> PythonAnswer:
    said = [
        value
        for line in out.splitlines()
        if line.startswith(PROBE_MARK) and (value := _parse_answer_value(line[len(PROBE_MARK) :]))
    ]
    python = next((each["python"] for each in said if "python" in each), None)
    packages: dict[str, str] = next((each["packages"] for each in said if "packages" in each), {})
    lacking = tuple(name for each in said for name in each.get("lacking", ()))
    told = {each["framework"]["name"]: each["framework"] for each in said if "framework" in each}
    for name in (each["begins"] for each in said if "begins" in each):
        why = phrase("hosts.import_did_not_end")
        if code is not None:
            why = phrase("hosts.import_ended_python", code=code)
        told.setdefault(name, {"name": name, "gpus": 0, "devices": [], "kinds": [], "trouble": why})
    other = _output_tail("\n".join(line for line in out.splitlines() if line and not line.startswith(PROBE_MARK)))
    return PythonAnswer(words, code, code is None, "", python, packages, lacking, tuple(told.values()), other, err)


def _parse_answer_value(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_probe_answer(value) else None


def _is_probe_answer(said: Mapping[str, Any]) -> bool:
    """What the questions print; what else begins with the mark is the program's own, or hostile."""
    framework = said.get("framework", {"name": ""})
    return (
        isinstance(framework, dict)
        and isinstance(framework.get("name"), str)
        and isinstance(said.get("packages", {}), dict)
        and isinstance(said.get("begins", ""), str)
        and isinstance(said.get("lacking", []), list)
    )


def _read_output_text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(8 << 20).decode("utf-8", "replace")


def _output_tail(text: str) -> str:
    return text[-KEPT_OUTPUT_BYTES:]
