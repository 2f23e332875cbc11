"""What a job's command runs in the end: the script, module or program behind all launchers, and the Python
interpreter that runs it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal

from muster.files.safe_open import read_file_start
from muster.text.shell_words import split

_PYTHON_NAME = re.compile(r"(python|pypy)(\d+(\.\d+)*)?")
_ENV_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# what makes an environment: a `python` behind it is that environment's
ENVIRONMENT_TOOLS = frozenset({"conda", "mamba", "micromamba", "uv", "poetry", "pixi", "pipenv", "hatch"})
# what executes the words behind it and nothing else: to put `python -c` there starts no training
PYTHON_LAUNCHERS = ENVIRONMENT_TOOLS | {
    "env",
    "nice",
    "ionice",
    "taskset",
    "numactl",
    "xvfb-run",
    "stdbuf",
    "timeout",
    "chrt",
    "setsid",
    "nohup",
}
_SCRIPTS = (".py", ".sh", ".bash")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})

ReadShebang = Callable[[str], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Interpreter:
    words: tuple[str, ...]  # empty: the command names no Python
    certain: bool = True  # False: the environment's own `python`, while the command starts something else


def find_interpreter(
    within: Sequence[str], command: Sequence[str], *, shell: bool, shebang: ReadShebang
) -> Interpreter:
    """`command` as it is executed, less `within`; with a shell its last word is the text."""
    words = _first_simple_command(command[-1]) if shell and command else list(command)
    found = _words_up_to_python(words)
    if found:
        return Interpreter((*within, *found))
    if within:
        known = _program_base_name(within[0]) in ENVIRONMENT_TOOLS
        return Interpreter((*within, "python"), certain=False) if known else Interpreter(())
    script = shebang(words[0]) if words else None
    return Interpreter(tuple(script)) if script and _words_up_to_python(script) else Interpreter(())


def make_shebang_reader(cwd: str, path: str) -> ReadShebang:
    """Reads the first line of the script that a word names: `accelerate` and its like are scripts of some Python."""

    def read(word: str) -> list[str] | None:
        found = str(Path(cwd) / word) if "/" in word else shutil.which(word, path=path)
        try:
            first = read_file_start(found or "", 500).partition(b"\n")[0]
            return split(first[2:].decode("utf-8", "replace")) if first.startswith(b"#!") else None
        except (OSError, ValueError):  # an open quote, a name that no file can have: nothing is known of it
            return None

    return read


def _words_up_to_python(words: Sequence[str]) -> tuple[str, ...]:
    """Up to and with the Python that the words name, where nothing but launchers stands before it."""
    if not words:
        return ()
    if _is_python_name(words[0]):
        return (words[0],)
    if _program_base_name(words[0]) not in PYTHON_LAUNCHERS:
        return ()
    for at, word in enumerate(words[1:], 1):
        if _is_python_name(word):
            return tuple(words[: at + 1])
        if word.endswith(_SCRIPTS):  # `uv run train.py` runs it with the environment's own
            return (*words[:at], "python") if _program_base_name(words[0]) == "uv" and word.endswith(".py") else ()
        if _program_base_name(word) in _SHELLS:
            return ()
    return ()


def _first_simple_command(text: str) -> list[str]:
    """The first command of a shell text, less the assignments before it; nothing where it is more than words."""
    try:
        words = split(text, comments=True)
    except ValueError:
        return []
    first = next((at for at, word in enumerate(words) if not _ENV_ASSIGNMENT.fullmatch(word)), len(words))
    return words[first:]


def _is_python_name(word: str) -> bool:
    return _PYTHON_NAME.fullmatch(_program_base_name(word)) is not None


def _program_base_name(word: str) -> str:
    return PurePath(word).name


TargetKind = Literal["script", "module", "program"]

_PYTHON_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_INTERPRETERS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "Rscript", "julia", "perl", "ruby", "node"})
_MODULES = {
    "accelerate.commands.launch": "accelerate-launch",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
}


@dataclass(frozen=True, slots=True)
class LaunchedTarget:
    """The word that names what is run, and how sure that is."""

    kind: TargetKind
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


def _both_spellings(*names: str) -> frozenset[str]:
    """Options in both spellings that argparse was given: --no_python, --no-python."""
    return frozenset({each for name in names for each in (name, name[:2] + name[2:].replace("_", "-"))})


# options that take no value; every other one takes the next word. Checked against the packages in tools/fixtures.
ACCELERATE_FLAGS = _both_spellings(
    "--cpu",
    "--debug",
    "--downcast_bf16",
    "--dynamo_use_dynamic",
    "--dynamo_use_fullgraph",
    "--dynamo_use_regional_compilation",
    "--enable_cpu_affinity",
    "--fp8_use_autocast_during_eval",
    "--help",
    "--module",
    "--multi_gpu",
    "--no_python",
    "--no_tpu_cluster",
    "--quiet",
    "--same_network",
    "--tpu",
    "--tpu_cluster",
    "--tpu_use_sudo",
    "--use_deepspeed",
    "--use_fsdp",
    "--use_megatron_lm",
    "--use_parallelism_config",
    "-h",
    "-m",
    "-q",
)
TORCHRUN_FLAGS = _both_spellings(
    "--help", "--module", "--no_python", "--run_path", "--standalone", "--virtual_local_rank", "-h", "-m"
)
_ACCELERATE = _Launcher(
    flags=ACCELERATE_FLAGS,
    runs="python",
    modules=frozenset({"-m", "--module"}),
    no_python=_both_spellings("--no_python"),
)
_CONDA = _Launcher(frozenset({"-n", "--name", "-p", "--prefix"}), verb="run", moves=frozenset({"--cwd"}), own_path=True)
_ELSEWHERE = _Launcher(flags=frozenset(), sure=False)  # many options; on other machines
_RUN = _Launcher(frozenset({"--python", "-p"}), flags=frozenset(), verb="run", own_path=True)
_LAUNCHERS: Mapping[str, _Launcher] = {
    "accelerate": replace(_ACCELERATE, verb="launch"),
    "accelerate-launch": _ACCELERATE,
    "torchrun": replace(_ACCELERATE, flags=TORCHRUN_FLAGS),
    "conda": _CONDA,
    "mamba": _CONDA,
    "micromamba": _CONDA,
    "uv": replace(_RUN, modules=frozenset({"-m", "--module"}), flags=frozenset({"--frozen", "--no-sync", "--locked"})),
    "poetry": _RUN,
    "pdm": _RUN,
    "pipenv": _RUN,
    "pixi": _RUN,
    "hatch": _RUN,
    "env": _Launcher(frozenset({"-u", "--unset"}), moves=frozenset({"-C", "--chdir", "-S", "--split-string"})),
    "nice": _Launcher(frozenset({"-n", "--adjustment"})),
    "ionice": _Launcher(frozenset({"-c", "--class", "-n", "--classdata"})),
    "stdbuf": _Launcher(frozenset({"-i", "-o", "-e", "--input", "--output", "--error"})),
    "timeout": _Launcher(frozenset({"-k", "--kill-after", "-s", "--signal"}), words=1),
    "time": _Launcher(frozenset({"-f", "-o", "--format", "--output"})),
    "taskset": _Launcher(words=1),
    "chrt": _Launcher(words=1),
    "nohup": _Launcher(),
    "setsid": _Launcher(),
    "exec": _Launcher(),
    "numactl": replace(_ELSEWHERE, sure=False),
    "xvfb-run": replace(_ELSEWHERE, sure=False),
    "srun": _ELSEWHERE,
    "mpirun": _ELSEWHERE,
    "mpiexec": _ELSEWHERE,
    "deepspeed": replace(_ELSEWHERE, runs="python"),
}


def find_launched_target(words: Sequence[str]) -> LaunchedTarget | None:
    """None: the words don't tell, or it runs where this machine's files are not seen."""
    at, sure, own_path = 0, True, False
    while at < len(words):
        name = PurePath(words[at]).name
        if _PYTHON_NAME.fullmatch(name):
            found = _target_of_python(words, at)
            if found is None or found.name not in _MODULES:
                return found and replace(found, sure=sure)
            at, name = found.at, _MODULES[found.name]
        if name in _INTERPRETERS:
            at += 1
            return LaunchedTarget("script", words[at], at, sure) if at < len(words) and words[at][:1] != "-" else None
        launcher = _LAUNCHERS.get(name)
        if launcher is None:
            return LaunchedTarget("program", words[at], at, sure, own_path)
        target = _target_behind_launcher(launcher, words, at)
        if target is None:
            return None
        at, exact, module = target
        sure, own_path = sure and launcher.sure and exact, own_path or launcher.own_path
        if module:
            return LaunchedTarget("module", words[at], at, sure)
        is_script = launcher.runs == "python" or (name == "uv" and words[at].endswith(".py"))
        if is_script and not _is_python_name(words[at]):
            return LaunchedTarget("script", words[at], at, sure)
    return None


def _target_of_python(words: Sequence[str], at: int) -> LaunchedTarget | None:
    at += 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-m" and at + 1 < len(words):
            return LaunchedTarget("module", words[at + 1], at + 1)
        if word in ("-", "-c", "-m") or (not word.startswith("--") and word[-1:] in "cm"):
            return None
        at += 2 if word in _PYTHON_VALUES else 1
    return LaunchedTarget("script", words[at], at) if at < len(words) else None


def _target_behind_launcher(launcher: _Launcher, words: Sequence[str], at: int) -> tuple[int, bool, str] | None:
    """(place of what it runs, whether its options are all known, `module` where a module's name stands there)."""
    at += 1
    if launcher.verb:
        if list(words[at : at + 1]) != [launcher.verb]:
            return None
        at += 1
    exact, module, plain = True, "", False
    while at < len(words) and (words[at].startswith("-") or _ENV_ASSIGNMENT.fullmatch(words[at])):
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
        return _first_python_or_script(words, at)
    if at >= len(words) or plain:
        return None
    return at, True, module


def _first_python_or_script(words: Sequence[str], at: int) -> tuple[int, bool, str] | None:
    """Where options are not known, what follows them may be a value: only a Python or a script is taken at its word."""
    for place in range(at, len(words)):
        if _is_python_name(words[place]):
            return place, False, ""
        if words[place].endswith(".py"):
            return None if words[place - 1].startswith("-") and "=" not in words[place - 1] else (place, False, "")
    return None
