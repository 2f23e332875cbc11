"""Programs, scripts, modules and folders that a campaign names and that are not there, also those for its finish.
Nothing is executed.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from muster.app.campaign.preflight.config_warnings import find_unknown_config_parts
from muster.app.campaign.preflight.launched_command import LaunchedTarget, find_launched_target
from muster.engine.plan.cell_command import (
    AttemptContext,
    build_run_environment,
    command_for_checking,
    context_for_checking,
)
from muster.files.safe_open import read_file_start
from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell, list_cells_of_job
from muster.model.errors import Mistake
from muster.text.command_template import find_shell_expansion, list_placeholders, split_shell_words
from muster.text.phrases import phrase
from muster.text.shell_words import split_commands


def find_unsupported_keys(campaign: Campaign) -> Iterator[Mistake]:
    if len(campaign.notice_commands) < len(campaign.notify):
        yield _unsupported_key_warning("notify", phrase("campaign.notify_knows_only_run"))


def _unsupported_key_warning(path: str, text: str) -> Mistake:
    return Mistake(text, path=path, level="warning")


MOST_LISTED_FILES = 2000  # files of a folder that are looked at for a name that is meant


def program_exists(program: str, cwd: str, path: str) -> bool:
    if "/" in program:
        file = Path(cwd) / program
        return file.is_file() and os.access(file, os.X_OK)
    return shutil.which(program, path=path) is not None


def is_not_executable(program: str, cwd: str) -> bool:
    """It is there, and nobody may execute it."""
    file = Path(cwd) / program
    return "/" in program and file.is_file() and not os.access(file, os.X_OK)


def suggest_similar_file(root: Path, name: str) -> str | None:
    """A file of nearly the same name beside it, or of the same name one folder down."""
    wanted = Path(name)
    near = get_close_matches(wanted.name, _list_entry_names((root / name).parent, files=True), 1)
    if near:
        return str(wanted.with_name(near[0]))
    folders = sorted(_list_entry_names(root, files=False))
    below = next((each for each in folders if (root / each / wanted.name).is_file()), None)
    return str(Path(below) / wanted.name) if below else None


def _list_entry_names(folder: Path, *, files: bool) -> list[str]:
    try:
        with os.scandir(folder) as listing:
            entries = [
                each
                for each, _ in zip(listing, range(MOST_LISTED_FILES), strict=False)
                if not each.name.startswith(".")
            ]
            return [each.name for each in entries if (each.is_file() if files else each.is_dir())]
    except (OSError, ValueError):  # ValueError: it has a NUL byte
        return []


def warn_of_missing_finish_inputs(campaign: Campaign, root: str, environ: Mapping[str, str]) -> Iterator[Mistake]:
    """Warnings: a text may still be written, a program still be installed."""
    for at, name in enumerate(campaign.documents):
        yield from _warn_of_missing_document(Path(root), name, f"report.documents.{at}")
    for at, line in enumerate(campaign.finish.run if campaign.finish else ()):
        yield from _warn_of_missing_finish_program(
            line, root, environ, f"finish.run.{at}", phrase("campaign.finish_step_would_fail")
        )
    for at, line in campaign.notice_commands.items():
        yield from _warn_of_missing_finish_program(
            line, root, environ, f"notify.{at}.run", phrase("campaign.nobody_would_be_told")
        )


def _warn_of_missing_document(root: Path, name: str, path: str) -> Iterator[Mistake]:
    file = root / name
    if file.is_dir():
        yield _finish_input_warning(
            phrase("campaign.report_is_folder", name=name), phrase("campaign.name_texts_one_by_one"), path
        )
    elif not os.path.lexists(file):  # one that can't be read is told by `docs`
        near = suggest_similar_file(root, name)
        hint = phrase("campaign.near_quoted", near=near) if near else phrase("campaign.looked_for_in_root", root=root)
        yield _finish_input_warning(phrase("campaign.report_document_missing", name=name), hint, path)


def _warn_of_missing_finish_program(
    line: str, root: str, environ: Mapping[str, str], path: str, what: str
) -> Iterator[Mistake]:
    try:
        words = split_shell_words(line)
    except ValueError:  # an open quote: told by who reads the file
        return
    if words and not program_exists(words[0], root, environ.get("PATH", os.defpath)):
        section = path.partition(".")[0]
        if is_not_executable(words[0], root):
            what = phrase("campaign.section_not_executable", section=section, words=words[0], what=what)
            yield _finish_input_warning(what, f"chmod +x {shlex.quote(words[0])}", path)
            return
        hint = phrase("campaign.installed_and_in_path", root=root)
        yield _finish_input_warning(
            phrase("campaign.section_command_not_found", section=section, words=words[0], what=what), hint, path
        )


def _finish_input_warning(text: str, hint: str, path: str) -> Mistake:
    return Mistake(text, hint=hint, path=path, level="warning")


LONGEST = 4096  # characters of a path: no file has a longer one
UNKNOWN_VALUE = "\ue000"  # stands for what only an attempt knows: {out}, {train.output}, {last.checkpoint}
_SHELL_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", ">", ">>", "<", "|&", ";;"})
_SHELL_BUILTINS = frozenset(
    {"cd", "source", ".", "export", "set", "unset", "ulimit", "umask", "eval", "exec", "trap", "alias"}
)

MissingTarget = tuple[str, str, bool]  # what is wrong, how to fix it, whether it surely fails


def find_missing_target(words: Sequence[str], cwd: str, path: str) -> MissingTarget | None:
    """`words`: as they are executed, without a shell. None: it is there, or can't be known from here."""
    first = (
        _find_missing_program(LaunchedTarget("program", words[0], 0), cwd, path)
        if UNKNOWN_VALUE not in words[0]
        else None
    )
    target = find_launched_target(words)
    if first or target is None or UNKNOWN_VALUE in target.name:
        return first
    if target.kind == "program":
        return _find_missing_program(target, cwd, path)
    return (
        _find_missing_module(target, Path(cwd)) if target.kind == "module" else _find_missing_script(target, Path(cwd))
    )


def find_missing_in_shell_text(text: str, cwd: str) -> MissingTarget | None:
    """The first script of a shell's text that is not there; what an earlier command may make is only doubted."""
    folder: Path | None = Path(cwd)
    before = folder
    for words in _split_shell_commands(text):
        if words[0] == "cd":
            before, folder = folder, _folder_after_cd(folder, words)
            continue
        target = find_launched_target(words)
        if target is None or target.kind != "script" or UNKNOWN_VALUE in target.name or len(target.name) > LONGEST:
            continue
        if before:
            target = replace(target, name=target.name.replace("$OLDPWD", str(before)))
        if find_shell_expansion(target.name):
            continue
        if folder is None and not target.name.startswith("/"):
            continue
        told = _find_missing_script(target, folder or Path("/"))
        if told:
            return told[0], told[1], False
    return None


def _folder_after_cd(folder: Path | None, words: Sequence[str]) -> Path | None:
    where = words[1] if len(words) == 2 else ""
    if not where or UNKNOWN_VALUE in where or find_shell_expansion(where) or where.startswith("-"):
        return None
    if folder is None and not where.startswith("/"):
        return None
    moved = Path(folder or "/", where)
    return moved if len(str(moved)) <= LONGEST else None


def _split_shell_commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a text, in order, less the assignments before each."""
    try:
        words = split_commands(text)
    except ValueError:  # an open quote: told by who reads the file
        return
    found_: list[str] = []
    for word in [*words, ";"]:
        if word in _SHELL_OPERATORS:
            if found_:
                yield found_
            found_ = []
        elif found_ or not word.partition("=")[0].isidentifier() or "=" not in word:
            found_.append(word)


def _find_missing_program(target: LaunchedTarget, cwd: str, path: str) -> MissingTarget | None:
    if target.own_path and "/" not in target.name:
        return None  # an environment's own: it is asked later
    if is_not_executable(target.name, cwd):
        return phrase("campaign.not_executable", name=target.name), f"chmod +x {shlex.quote(target.name)}", target.sure
    if program_exists(target.name, cwd, path):
        return None
    if target.name in _SHELL_BUILTINS:
        instead = phrase("campaign.shell_or_cwd") if target.name == "cd" else "`shell: true`"
        return phrase("campaign.part_of_shell", name=target.name), instead, target.sure
    hint = phrase("campaign.installed_and_active", cwd=cwd)
    return (
        phrase("campaign.command_not_found", name=target.name),
        _suggest_target(target, Path(cwd)) or hint,
        target.sure,
    )


def _find_missing_script(target: LaunchedTarget, cwd: Path) -> MissingTarget | None:
    file = cwd / target.name
    try:
        if file.is_file() or (file / "__main__.py").is_file():
            return None
        is_folder = file.is_dir()
        is_there = file.exists()
    except OSError:
        return None  # a folder that can't be looked into
    if is_there and not is_folder:
        return None  # a pipe, a device
    what = (
        phrase("campaign.folder_without_main", name=target.name)
        if is_folder
        else phrase("campaign.no_such_file", name=target.name)
    )
    looked = (
        phrase("campaign.fix_name") if target.name.startswith("/") else phrase("campaign.looked_for_in_cwd", cwd=cwd)
    )
    return what, _suggest_target(target, cwd) or looked, target.sure


def _suggest_target(target: LaunchedTarget, cwd: Path) -> str:
    part = find_shell_expansion(target.name)
    if part:
        return phrase("campaign.no_shell_replaces", part=part)
    near = suggest_similar_file(cwd, target.name) if "/" in target.name or target.kind == "script" else None
    return phrase("campaign.near_quoted", near=near) if near else ""


def _find_missing_module(target: LaunchedTarget, cwd: Path) -> MissingTarget | None:
    """Only a package of the run's own folder can be looked into; an installed one is its environment's affair."""
    first, *rest = target.name.split(".")
    if not all(part.isidentifier() for part in (first, *rest)) or not (cwd / first).is_dir():
        return None
    own = (cwd / first / "__init__.py").is_file()  # else an installed package of that name would count
    folder = cwd / first
    for at, part in enumerate(rest):
        last = at == len(rest) - 1
        if last and (folder / f"{part}.py").is_file():
            return None
        folder = folder / part
    if (folder / "__main__.py").is_file():
        return None
    if any(cwd.glob(f"{'/'.join((first, *rest))}.*so")):
        return None
    place = "/".join((first, *rest))
    near = suggest_similar_file(cwd, f"{place}.py")
    module = near.removesuffix(".py").replace("/", ".") if near else ""
    hint = (
        phrase("campaign.near_quoted", near=module)
        if module
        else phrase("campaign.looked_for_as_module", place=place, cwd=cwd)
    )
    return phrase("campaign.no_such_module", name=target.name), hint, own and target.sure


def find_preflight_mistakes(campaign: Campaign, root: str, environ: Mapping[str, str]) -> list[Mistake]:
    jobs = [mistake for job in campaign.jobs for mistake in _check_job_commands(campaign, job, root, environ)]
    return [
        *jobs,
        *find_unknown_config_parts(campaign, root),
        *_warn_of_missing_wandb_key(campaign, environ),
        *warn_of_missing_finish_inputs(campaign, root, environ),
    ]


def _warn_of_missing_wandb_key(campaign: Campaign, environ: Mapping[str, str]) -> Iterator[Mistake]:
    """A run that is to go online without a key asks for one, and nobody answers."""
    if campaign.wandb is None or campaign.wandb.mode != "online":
        return
    told = {**environ, **campaign.env}
    if not told.get("WANDB_API_KEY") and not _is_logged_in_to_wandb(told):
        hint = phrase("campaign.wandb_login_or_key")
        yield Mistake(phrase("campaign.wandb_key_missing"), hint=hint, path="wandb.mode", level="warning")


def _is_logged_in_to_wandb(environ: Mapping[str, str]) -> bool:
    file = Path(environ.get("NETRC") or Path(environ.get("HOME", "/nowhere")) / ".netrc")
    server = environ.get("WANDB_BASE_URL", "wandb").rpartition("/")[2].partition(":")[0]
    try:
        return server in read_file_start(file, 1 << 20).decode("utf-8", "replace")
    except OSError:
        return False


def _check_job_commands(campaign: Campaign, job: Job, root: str, environ: Mapping[str, str]) -> Iterator[Mistake]:
    cwd = job.cwd or root
    if not Path(cwd).is_dir():
        yield Mistake(
            phrase("campaign.job_folder_missing", job=job.name, folder=cwd),
            hint=phrase("campaign.fix_or_create_cwd"),
            path=f"jobs.{job.name}.cwd",
        )
        return
    said: set[str] = set()
    for key, cells in _cells_to_check(campaign, job):
        for cell in cells:
            told = _find_missing_of_cell(job, cell, key, cwd, _search_path_of_cell(campaign, job, cell, environ))
            if told and told[0] not in said:
                said.add(told[0])
                what = phrase("campaign.job_of_cell", job=job.name, told=told[0], cell=cell.id)
                level = "error" if told[2] else "warning"
                yield Mistake(what, hint=told[1], path=f"jobs.{job.name}.{key}", level=level)


def _cells_to_check(campaign: Campaign, job: Job) -> Iterator[tuple[str, Iterator[Cell]]]:
    """One cell is enough where the words up to what is run are the same for all."""
    for key, words in (("command", job.command), ("resume", job.resume)):
        if not words:
            continue
        template = [*job.within, *words]
        target = None if job.shell else find_launched_target(template)
        until = template if target is None else template[: target.at + 1]
        differ = any(True for word in until for _ in list_placeholders(word)) or any(
            "PATH" in value.env for axis in job.axes for value in campaign.axis(axis).values
        )
        yield key, list_cells_of_job(campaign, job) if differ else itertools.islice(list_cells_of_job(campaign, job), 1)


def _find_missing_of_cell(job: Job, cell: Cell, key: str, cwd: str, path: str) -> MissingTarget | None:
    later = UNKNOWN_VALUE if key == "resume" else ""
    context = replace(context_for_checking(job, UNKNOWN_VALUE), last_output=later, last_checkpoint=later)
    words = command_for_checking(job, cell, context)
    if not words:
        return None
    if job.shell:
        return find_missing_target(words[: len(job.within) + 1], cwd, path) or find_missing_in_shell_text(
            words[-1], cwd
        )
    return find_missing_target(words, cwd, path)


def _search_path_of_cell(campaign: Campaign, job: Job, cell: Cell, environ: Mapping[str, str]) -> str:
    added = build_run_environment(campaign, job, cell, AttemptContext(n=1, out=""), "")
    return added.get("PATH", environ.get("PATH", os.defpath))
