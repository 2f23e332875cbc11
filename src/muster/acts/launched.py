"""What a command runs in the end: launchers are taken off, and the script, module or program behind them is left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

Kind = Literal["script", "module", "program"]

_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)*)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_INTERPRETERS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "Rscript", "julia", "perl", "ruby", "node"})
_MODULES = {"accelerate.commands.launch": "accelerate-launch", "torch.distributed.run": "torchrun",
            "torch.distributed.launch": "torchrun"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """The word that names what is run, and how sure that is."""

    kind: Kind
    name: str
    at: int  # its place among the words
    sure: bool = True  # False: a launcher whose options are not all known, or that runs it on another machine
    own_path: bool = False  # an environment's own PATH is searched for a program


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How the words behind a launcher are read: options with a value, options without, words of its own."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] | None = None  # None: every other option stands alone
    words: int = 0  # before the command: the duration of `timeout`
    verb: str = ""  # `conda run`
    moves: frozenset[str] = frozenset()  # options that change the folder
    runs: Literal["program", "python"] = "program"  # a bare word behind it is a program, or a script for Python
    sure: bool = True
    own_path: bool = False
    modules: frozenset[str] = field(default_factory=frozenset)  # options that say that a module's name follows
    no_python: frozenset[str] = field(default_factory=frozenset)


def _named(*names: str) -> frozenset[str]:
    """Options in both spellings that argparse was given: --no_python, --no-python."""
    return frozenset({each for name in names for each in (name, name[:2] + name[2:].replace("_", "-"))})


# options that take no value; every other one takes the next word. Checked against the packages in tools/fixtures.
ACCELERATE_FLAGS = _named(
    "--cpu", "--debug", "--downcast_bf16", "--dynamo_use_dynamic", "--dynamo_use_fullgraph",
    "--dynamo_use_regional_compilation", "--enable_cpu_affinity", "--fp8_use_autocast_during_eval", "--help",
    "--module", "--multi_gpu", "--no_python", "--no_tpu_cluster", "--quiet", "--same_network", "--tpu",
    "--tpu_cluster", "--tpu_use_sudo", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm",
    "--use_parallelism_config", "-h", "-m", "-q",
)  # fmt: skip
TORCHRUN_FLAGS = _named(
    "--help", "--module", "--no_python", "--run_path", "--standalone", "--virtual_local_rank", "-h", "-m"
)
_ACCELERATE = _Launcher(
    flags=ACCELERATE_FLAGS, runs="python", modules=frozenset({"-m", "--module"}), no_python=_named("--no_python")
)
_CONDA = _Launcher(frozenset({"-n", "--name", "-p", "--prefix"}), verb="run", moves=frozenset({"--cwd"}), own_path=True)
_ELSEWHERE = _Launcher(flags=frozenset(), sure=False)  # many options; on other machines
_RUN = _Launcher(frozenset({"--python", "-p"}), flags=frozenset(), verb="run", own_path=True)
_LAUNCHERS: Mapping[str, _Launcher] = {
    "accelerate": replace(_ACCELERATE, verb="launch"),
    "accelerate-launch": _ACCELERATE,
    "torchrun": replace(_ACCELERATE, flags=TORCHRUN_FLAGS),
    "conda": _CONDA, "mamba": _CONDA, "micromamba": _CONDA,
    "uv": replace(_RUN, modules=frozenset({"-m", "--module"}), flags=frozenset({"--frozen", "--no-sync", "--locked"})),
    "poetry": _RUN, "pdm": _RUN, "pipenv": _RUN, "pixi": _RUN, "hatch": _RUN,
    "env": _Launcher(frozenset({"-u", "--unset"}), moves=frozenset({"-C", "--chdir", "-S", "--split-string"})),
    "nice": _Launcher(frozenset({"-n", "--adjustment"})),
    "ionice": _Launcher(frozenset({"-c", "--class", "-n", "--classdata"})),
    "stdbuf": _Launcher(frozenset({"-i", "-o", "-e", "--input", "--output", "--error"})),
    "timeout": _Launcher(frozenset({"-k", "--kill-after", "-s", "--signal"}), words=1),
    "time": _Launcher(frozenset({"-f", "-o", "--format", "--output"})),
    "taskset": _Launcher(words=1), "chrt": _Launcher(words=1),
    "nohup": _Launcher(), "setsid": _Launcher(), "exec": _Launcher(),
    "numactl": replace(_ELSEWHERE, sure=False), "xvfb-run": replace(_ELSEWHERE, sure=False),
    "srun": _ELSEWHERE, "mpirun": _ELSEWHERE, "mpiexec": _ELSEWHERE, "deepspeed": replace(_ELSEWHERE, runs="python"),
}  # fmt: skip


def launched(words: Sequence[str]) -> Target | None:
    """None: the words don't tell, or it runs where this machine's files are not seen."""
    at, sure, own_path = 0, True, False
    while at < len(words):
        name = PurePath(words[at]).name
        if _PYTHON.fullmatch(name):
            found = _of_python(words, at)
            if found is None or found.name not in _MODULES:
                return found and replace(found, sure=sure)
            at, name = found.at, _MODULES[found.name]
        if name in _INTERPRETERS:
            at += 1
            return Target("script", words[at], at, sure) if at < len(words) and words[at][:1] != "-" else None
        launcher = _LAUNCHERS.get(name)
        if launcher is None:
            return Target("program", words[at], at, sure, own_path)
        target = _behind(launcher, words, at)
        if target is None:
            return None
        at, exact, module = target
        sure, own_path = sure and launcher.sure and exact, own_path or launcher.own_path
        if module:
            return Target("module", words[at], at, sure)
        is_script = launcher.runs == "python" or (name == "uv" and words[at].endswith(".py"))
        if is_script and not _PYTHON.fullmatch(PurePath(words[at]).name):
            return Target("script", words[at], at, sure)
    return None


def _of_python(words: Sequence[str], at: int) -> Target | None:
    at += 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-m" and at + 1 < len(words):
            return Target("module", words[at + 1], at + 1)
        if word in ("-", "-c", "-m") or (not word.startswith("--") and word[-1:] in "cm"):
            return None
        at += 2 if word in _PYTHON_VALUES else 1
    return Target("script", words[at], at) if at < len(words) else None


def _behind(launcher: _Launcher, words: Sequence[str], at: int) -> tuple[int, bool, str] | None:
    """(place of what it runs, whether its options are all known, `module` where a module's name stands there)."""
    at += 1
    if launcher.verb:
        if list(words[at : at + 1]) != [launcher.verb]:
            return None
        at += 1
    exact, module, plain = True, "", False
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.fullmatch(words[at])):
        option, sign, _ = words[at].partition("=")
        if option in launcher.moves:
            return None
        if option == "--":
            at += 1
            break
        module = "module" if option in launcher.modules else module
        plain = plain or option in launcher.no_python
        takes = option in launcher.values
        if launcher.flags is not None and not takes and not sign and option not in launcher.flags:
            if launcher.runs == "python" and launcher.sure:
                takes = True
            else:
                exact = False
        at += 2 if takes and not sign else 1
    at += launcher.words
    if not exact:
        return _first_python(words, at)
    if at >= len(words) or plain:
        return None
    return at, True, module


def _first_python(words: Sequence[str], at: int) -> tuple[int, bool, str] | None:
    """Where options are not known, what follows them may be a value: only a Python or a script is taken at its word."""
    for place in range(at, len(words)):
        if _PYTHON.fullmatch(PurePath(words[place]).name):
            return place, False, ""
        if words[place].endswith(".py"):
            return None if words[place - 1].startswith("-") and "=" not in words[place - 1] else (place, False, "")
    return None
