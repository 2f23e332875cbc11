"""The source code that a cell runs: the commit, what was changed since, and source that git does not know, by hash;
and whether these files are still as they were seen.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from muster.readers.git import Git, GitTrouble, is_within_repository, is_working_tree_of

CODE_ENDINGS = (
    ".py",
    ".pyx",
    ".pxd",
    ".pyi",
    ".sh",
    ".bash",
    ".zsh",
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hpp",
    ".rs",
    ".go",
    ".java",
    ".js",
    ".ts",
    ".jl",
    ".lua",
    ".r",
    ".R",
    ".m",
    ".pl",
    ".rb",
    ".ipynb",
)
CONFIG_ENDINGS = (".yaml", ".yml", ".toml", ".json", ".jsonnet", ".cfg", ".ini", ".gin", ".conf")
RESULT_ENDINGS = (".json", ".ipynb")  # what runs write, and what people look at results with
BINDINGS_ENDING = ".muster.json"  # of a document's numbers: ours, and no part of what runs
LARGEST_SOURCE_FILE = 1 << 20
MOST_SOURCE_FILES = 500
MOST_SOURCE_BYTES = 32 << 20
DEEPEST_PACKAGE = 3
# folders in which tools put what they made; none of it is the source of a run
NO_SOURCE_FOLDERS = (
    ".muster",
    ".git",
    "__pycache__",
    ".venv",
    "venv",
    "site-packages",
    "node_modules",
    ".ipynb_checkpoints",
    "wandb",
    "mlruns",
    "lightning_logs",
    "multirun",
    ".hydra",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".eggs",
)
_SECRET_NAMES = ("secret", "credential", "passw", "token", "apikey", "api_key", "kaggle.json", "service_account")


def is_code_file(path: str) -> bool:
    return path.endswith(CODE_ENDINGS)


def is_source_file(path: str) -> bool:
    if path.endswith(BINDINGS_ENDING):
        return False
    return path.endswith((*CODE_ENDINGS, *CONFIG_ENDINGS)) and not any(
        part in NO_SOURCE_FOLDERS for part in path.split("/")[:-1]
    )


def may_keep_content(path: str) -> bool:
    """A config that sounds like a credential is named and hashed; what is in it stays where it is."""
    name = os.path.basename(path).lower()  # noqa: PTH119
    return is_code_file(path) or not any(word in name for word in _SECRET_NAMES)


def writable_path_text(path: str) -> str:
    """As text that can be written down, whatever bytes are in the name."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def hash_source_files(folder: str, paths: Iterable[str]) -> tuple[dict[str, str], int]:
    """sha256 of each by its path, code first; and how many were left out, because they are too many or too large."""
    found: dict[str, str] = {}
    left_out = total = 0
    for path in sorted(paths, key=lambda each: (not is_code_file(each), each)):
        data = read_source_file(folder, path)
        if data is None:
            continue
        if len(data) > LARGEST_SOURCE_FILE or len(found) >= MOST_SOURCE_FILES or total + len(data) > MOST_SOURCE_BYTES:
            left_out += 1
            continue
        total += len(data)
        found[path] = hashlib.sha256(data).hexdigest()
    return found, left_out


def read_source_file(folder: str, path: str) -> bytes | None:
    """Of a file; of a link where it points to. One byte more than the largest: it is too large. None: it is neither."""
    where = Path(folder, path)
    try:
        mode = where.lstat().st_mode
        if stat.S_ISLNK(mode):
            return b"link to " + os.fsencode(os.readlink(where))  # noqa: PTH115
        if not stat.S_ISREG(mode):
            return None
        descriptor = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(LARGEST_SOURCE_FILE + 1)
    except (OSError, ValueError):
        return None


def source_beside_script(script: str) -> Iterator[str]:
    """The source in its folder, and in the packages below it: absolute paths, itself included."""
    yield from _source_in_packages(os.path.dirname(script), DEEPEST_PACKAGE)  # noqa: PTH120


def _source_in_packages(folder: str, deepest: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if entry.name in NO_SOURCE_FOLDERS:
            continue
        if entry.is_dir(follow_symlinks=False):
            if deepest and os.path.exists(os.path.join(entry.path, "__init__.py")):  # noqa: PTH110, PTH118
                yield from _source_in_packages(entry.path, deepest - 1)
        elif is_source_file(entry.name):
            yield entry.path


def signature_of_files(folder: str, paths: Sequence[str]) -> str:
    """Of sizes and times, by which a change is noticed without reading anything."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            found = os.stat(os.path.join(folder, path), follow_symlinks=False)  # noqa: PTH116, PTH118
            digest.update(b"%d %d %d;" % (found.st_mtime_ns, found.st_size, found.st_ino))
        except (OSError, ValueError):
            digest.update(b"none;")
    return digest.hexdigest()


NOT_CODE = (
    ":(exclude,top)**/campaign.yaml",
    ":(exclude,top)campaign.yaml",
    ":(exclude,top)**/reports/**",
    ":(exclude,top)**/dev_v*.md",
    ":(exclude,top)dev_v*.md",
    ":(exclude,top)**/dev_v*_files/**",
    ":(exclude,top)dev_v*_files/**",
    ":(exclude,top)**/*.muster.json",
    ":(exclude,top)*.muster.json",
)
_IGNORED_PATTERNS = (
    "campaign.yaml",
    "reports/",
    "dev_v*.md",
    "dev_v*_files/",
    ".muster/",
    "*.muster.json",
)  # the same of files git does not know
DIFF_COMMAND = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
_PART = ("--", ":/", *NOT_CODE)
MOST_WATCHED = 20_000
MOST_NAMED = 500


@dataclass(frozen=True, slots=True)
class CodeScope:
    """What a campaign says about the code in one folder."""

    outputs: tuple[str, ...] = ()  # absolute, perhaps globs: what lies there was written by runs
    scripts: tuple[str, ...] = ()  # absolute: files of source that commands name


ANY_CODE = CodeScope()


@dataclass(frozen=True, slots=True)
class CodeState:
    """The code in a folder, and by what a change of it is noticed."""

    code: Mapping[str, Any]  # for attempt.json
    top: str = ""  # the folder that all paths are relative to
    diff: str = ""
    untracked: tuple[str, ...] = ()  # source that git does not know
    watched: tuple[str, ...] = ()
    signature: str = ""

    def holds(self) -> bool:
        return bool(self.signature) and signature_of_files(self.top, self.watched) == self.signature


@dataclass(frozen=True, slots=True)
class _ListedFiles:
    tracked: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)


def read_code_state(
    cwd: str, scope: CodeScope = ANY_CODE, before: CodeState | None = None, *, anew: bool = True
) -> CodeState:
    """Muster's own files are not code: writing a note must not change what a cell is.

    `before`: as it was seen last. JSON that git does not know and that was not there then was written by a run, as far
    as anyone can tell, and is no part of the code. `anew` false: nor is any other file that was not there.
    """
    if not is_within_repository(cwd):
        return _code_state_without_git(cwd, scope)
    try:
        return _code_state_with_git(cwd, scope, before if before and before.signature else None, anew)
    except GitTrouble as trouble:
        if "not a git repository" in trouble.said:
            return _code_state_without_git(cwd, scope)
        waited = {"waited_s": trouble.waited_s} if trouble.waited_s else {}
        return CodeState({"state": "unknown", "why": trouble.said, **waited})


def _code_state_with_git(cwd: str, scope: CodeScope, before: CodeState | None, anew: bool) -> CodeState:
    top, git_dir, common, commit = _repository_places(cwd)
    if not is_working_tree_of(top, git_dir) or not Path(os.path.realpath(cwd)).is_relative_to(os.path.realpath(top)):
        raise GitTrouble(f"its repository, {git_dir}, names a working tree elsewhere: {top}")
    git = Git(top).without_filters()
    listed = _list_repository_files(git, top, scope)
    untracked = _untracked_source(listed, top, scope, before, anew)
    watched = _watched_files(listed, untracked, git_dir, common)
    as_it_was = signature_of_files(top, watched)  # before anything is read: what changes meanwhile is read again
    if not commit:
        source = [*filter(is_source_file, listed.tracked), *untracked]
        return CodeState(_code_record("no_commit", top, [], source), top, "", tuple(untracked), watched, as_it_was)
    diff = git(*DIFF_COMMAND, "HEAD", *_PART).decode("utf-8", "replace")
    changed = _split_null_names(git(*DIFF_COMMAND, "--name-only", "-z", "HEAD", *_PART)) if diff else []
    code = _code_record("known", top, changed, untracked, diff, commit)
    return CodeState(code, top, diff, tuple(untracked), watched, as_it_was)


def _repository_places(cwd: str) -> tuple[str, str, str, str]:
    """(top of the working tree, git's folder, that of all working trees, commit or nothing)."""
    words = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "HEAD")
    told = os.fsdecode(Git(cwd)(*words, fine=(0, 128))).rstrip("\n").split("\n")
    if len(told) != len(words) - 1:
        Git(cwd)(*words[:-1])
        raise GitTrouble("git does not tell where the repository is")
    top, git_dir, common, commit = told
    return top, git_dir, str(Path(cwd, common)), "" if commit == "HEAD" else commit


def _list_repository_files(git: Git, top: str, scope: CodeScope) -> _ListedFiles:
    """What git knows, and what it neither knows nor ignores; outputs are not even looked into."""
    excluded = [*_IGNORED_PATTERNS, *(f"/{glob}" for glob in _paths_below_top(top, scope.outputs))]
    descriptor = os.memfd_create("muster-excluded")
    try:
        os.write(descriptor, os.fsencode("\n".join(excluded)))
        given = f"--exclude-from=/proc/self/fd/{descriptor}"
        told = git("ls-files", "-z", "-t", "-c", "-o", "--exclude-standard", given, pass_fds=(descriptor,))
    finally:
        os.close(descriptor)
    listed = _ListedFiles()
    for entry in dict.fromkeys(_split_null_names(told)):
        tag, _, path = entry.partition(" ")
        if tag == "?" and not path.endswith("/"):  # a repository within this one
            listed.untracked.append(path)
        elif tag != "?":
            listed.tracked.append(path)
    return listed


def _paths_below_top(top: str, outputs: Sequence[str]) -> Iterator[str]:
    for output in outputs:
        path = os.path.relpath(os.path.realpath(output), top)
        if path not in (".", "..") and not path.startswith("../"):
            yield path


def _split_null_names(told: bytes) -> list[str]:
    return [os.fsdecode(each) for each in told.split(b"\0") if each]


def _untracked_source(
    listed: _ListedFiles, top: str, scope: CodeScope, before: CodeState | None, anew: bool
) -> list[str]:
    """Source that git does not know, and scripts that commands name, wherever they lie."""
    found = [path for path in listed.untracked if is_source_file(path)]
    if before is not None:
        known = set(before.untracked)
        found = [path for path in found if path in known or (anew and not path.endswith(RESULT_ENDINGS))]
    scripts = (_relative_to_top(top, script) for script in scope.scripts)
    tracked = set(listed.tracked)
    return list(dict.fromkeys([*found, *(path for path in scripts if path not in tracked)]))


def _relative_to_top(top: str, script: str) -> str:
    """Relative where it lies below."""
    where = Path(os.path.realpath(os.path.dirname(script)), os.path.basename(script))  # noqa: PTH119, PTH120
    return str(where.relative_to(top)) if where.is_relative_to(top) else str(where)


def _watched_files(listed: _ListedFiles, untracked: list[str], git_dir: str, common: str) -> tuple[str, ...]:
    head = [str(Path(git_dir, name)) for name in ("HEAD", "index")] + [str(Path(common, "packed-refs"))]
    try:
        ref = Path(git_dir, "HEAD").read_text("utf-8", "surrogateescape").strip().removeprefix("ref: ")
        head.append(str(Path(common, ref)))
    except (OSError, ValueError):
        pass
    tracked = [path for path in listed.tracked if not _is_muster_file(path)]
    if len(tracked) > MOST_WATCHED:
        tracked = [path for path in tracked if is_source_file(path)][:MOST_WATCHED]
    return (*head, *tracked, *untracked)


def _is_muster_file(path: str) -> bool:
    *folders, name = path.split("/")
    return name == "campaign.yaml" or "reports" in folders or fnmatch.fnmatch(name, "dev_v*.md")


def _code_state_without_git(cwd: str, scope: CodeScope) -> CodeState:
    """The scripts that commands name, and the source beside them."""
    outputs = [os.path.abspath(each) for each in scope.outputs]  # noqa: PTH100
    found = dict.fromkeys(path for script in scope.scripts for path in (script, *source_beside_script(script)))
    paths = [
        os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path
        for path in found
        if os.path.basename(path) != "campaign.yaml" and not _is_declared_output(path, outputs)  # noqa: PTH119
    ]
    as_it_was = signature_of_files(cwd, paths)
    return CodeState(_code_record("no_repository", cwd, [], paths), cwd, "", tuple(paths), tuple(paths), as_it_was)


def _is_declared_output(path: str, outputs: Collection[str]) -> bool:
    return any(fnmatch.fnmatch(path, output) or path.startswith(f"{output}/") for output in outputs)


def _code_record(
    state: str, top: str, changed: list[str], untracked: list[str], diff: str = "", commit: str | None = None
) -> dict[str, Any]:
    """`dirty`: of the diff and of the files that are in none, under which both are kept."""
    files, left_out = hash_source_files(top, [*filter(is_source_file, changed), *untracked])
    digest = hashlib.sha256(diff.encode())
    for path in sorted(untracked):
        digest.update(f"\0{path}\0{files.get(path, '')}".encode("utf-8", "surrogateescape"))
    return {
        "state": state,
        "commit": commit,
        "dirty": digest.hexdigest()[:12] if diff or untracked else None,
        "changed": [writable_path_text(path) for path in changed[:MOST_NAMED]],
        "untracked": [writable_path_text(path) for path in untracked[:MOST_NAMED]] if state != "no_repository" else [],
        "files": {writable_path_text(path): content for path, content in files.items()},
        **({"left_out": left_out} if left_out else {}),
    }


_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def is_commit_name(text: str) -> bool:
    """By its name; a record may say anything, and `--output=FILE` would be an option to git."""
    return _COMMIT.fullmatch(text) is not None


@cache
def blob_sha256(folder: str, commit: str, path: str) -> str | None:
    """None: the commit has no such file, or git does not know the commit here."""
    if not is_commit_name(commit):
        return None
    try:
        return hashlib.sha256(Git(folder)("cat-file", "blob", f"{commit}:{path}")).hexdigest()
    except GitTrouble:
        return None


@cache
def changed_sources_between(folder: str, one: str, other: str) -> tuple[str, ...]:
    """Files of source that differ between two commits; none where git does not know."""
    if not (is_commit_name(one) and is_commit_name(other)):
        return ()
    try:
        told = Git(folder)(*DIFF_COMMAND, "--name-only", "-z", one, other, "--", ":/", *NOT_CODE)
    except GitTrouble:
        return ()
    return tuple(path for each in told.split(b"\0") if is_source_file(path := os.fsdecode(each)))
