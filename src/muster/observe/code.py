"""Which code a cell runs: the commit, what was changed since, and source that git does not know."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.observe.git import Git, GitTrouble, is_working_tree_of, within_a_repository
from muster.observe.source_files import RESULTS, beside, hashed, is_source, shown, signature

NOT_CODE = (
    ":(exclude,top)**/campaign.yaml", ":(exclude,top)campaign.yaml", ":(exclude,top)**/reports/**",
    ":(exclude,top)**/dev_v*.md", ":(exclude,top)dev_v*.md", ":(exclude,top)**/dev_v*_files/**",
    ":(exclude,top)dev_v*_files/**", ":(exclude,top)**/*.muster.json", ":(exclude,top)*.muster.json",
)  # fmt: skip
_IGNORED = (
    "campaign.yaml",
    "reports/",
    "dev_v*.md",
    "dev_v*_files/",
    ".muster/",
    "*.muster.json",
)  # the same of files git does not know
DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short")
_PART = ("--", ":/", *NOT_CODE)
MOST_WATCHED = 20_000
MOST_NAMED = 500


@dataclass(frozen=True, slots=True)
class Scope:
    """What a campaign says about the code in one folder."""

    outputs: tuple[str, ...] = ()  # absolute, perhaps globs: what lies there was written by runs
    scripts: tuple[str, ...] = ()  # absolute: files of source that commands name


ANY = Scope()


@dataclass(frozen=True, slots=True)
class Seen:
    """The code in a folder, and by what a change of it is noticed."""

    code: Mapping[str, Any]  # for attempt.json
    top: str = ""  # the folder that all paths are relative to
    diff: str = ""
    untracked: tuple[str, ...] = ()  # source that git does not know
    watched: tuple[str, ...] = ()
    signature: str = ""

    def holds(self) -> bool:
        return bool(self.signature) and signature(self.top, self.watched) == self.signature


@dataclass(frozen=True, slots=True)
class _Listed:
    tracked: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)


def see_code(cwd: str, scope: Scope = ANY, before: Seen | None = None, *, anew: bool = True) -> Seen:
    """Muster's own files are not code: writing a note must not change what a cell is.

    `before`: as it was seen last. JSON that git does not know and that was not there then was written by a run, as far
    as anyone can tell, and is no part of the code. `anew` false: nor is any other file that was not there.
    """
    if not within_a_repository(cwd):
        return _without_git(cwd, scope)
    try:
        return _with_git(cwd, scope, before if before and before.signature else None, anew)
    except GitTrouble as trouble:
        if "not a git repository" in trouble.said:
            return _without_git(cwd, scope)
        waited = {"waited_s": trouble.waited_s} if trouble.waited_s else {}
        return Seen({"state": "unknown", "why": trouble.said, **waited})


def _with_git(cwd: str, scope: Scope, before: Seen | None, anew: bool) -> Seen:
    top, git_dir, common, commit = _places(cwd)
    if not is_working_tree_of(top, git_dir) or not Path(os.path.realpath(cwd)).is_relative_to(os.path.realpath(top)):
        raise GitTrouble(f"its repository, {git_dir}, names a working tree elsewhere: {top}")
    git = Git(top).without_filters()
    listed = _list(git, top, scope)
    untracked = _source_of(listed, top, scope, before, anew)
    watched = _watched(listed, untracked, git_dir, common)
    as_it_was = signature(top, watched)  # before anything is read: what changes meanwhile is read again
    if not commit:
        source = [*filter(is_source, listed.tracked), *untracked]
        return Seen(_record("no_commit", top, [], source), top, "", tuple(untracked), watched, as_it_was)
    diff = git(*DIFF, "HEAD", *_PART).decode("utf-8", "replace")
    changed = _names(git(*DIFF, "--name-only", "-z", "HEAD", *_PART)) if diff else []
    code = _record("known", top, changed, untracked, diff, commit)
    return Seen(code, top, diff, tuple(untracked), watched, as_it_was)


def _places(cwd: str) -> tuple[str, str, str, str]:
    """(top of the working tree, git's folder, that of all working trees, commit or nothing)."""
    words = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "HEAD")
    told = os.fsdecode(Git(cwd)(*words, fine=(0, 128))).rstrip("\n").split("\n")
    if len(told) != len(words) - 1:
        Git(cwd)(*words[:-1])
        raise GitTrouble("git does not tell where the repository is")
    top, git_dir, common, commit = told
    return top, git_dir, str(Path(cwd, common)), "" if commit == "HEAD" else commit


def _list(git: Git, top: str, scope: Scope) -> _Listed:
    """What git knows, and what it neither knows nor ignores; outputs are not even looked into."""
    excluded = [*_IGNORED, *(f"/{glob}" for glob in _below(top, scope.outputs))]
    descriptor = os.memfd_create("muster-excluded")
    try:
        os.write(descriptor, os.fsencode("\n".join(excluded)))
        given = f"--exclude-from=/proc/self/fd/{descriptor}"
        told = git("ls-files", "-z", "-t", "-c", "-o", "--exclude-standard", given, pass_fds=(descriptor,))
    finally:
        os.close(descriptor)
    listed = _Listed()
    for entry in dict.fromkeys(_names(told)):
        tag, _, path = entry.partition(" ")
        if tag == "?" and not path.endswith("/"):  # a repository within this one
            listed.untracked.append(path)
        elif tag != "?":
            listed.tracked.append(path)
    return listed


def _below(top: str, outputs: Sequence[str]) -> Iterator[str]:
    for output in outputs:
        path = os.path.relpath(os.path.realpath(output), top)
        if path not in (".", "..") and not path.startswith("../"):
            yield path


def _names(told: bytes) -> list[str]:
    return [os.fsdecode(each) for each in told.split(b"\0") if each]


def _source_of(listed: _Listed, top: str, scope: Scope, before: Seen | None, anew: bool) -> list[str]:
    """Source that git does not know, and scripts that commands name, wherever they lie."""
    found = [path for path in listed.untracked if is_source(path)]
    if before is not None:
        known = set(before.untracked)
        found = [path for path in found if path in known or (anew and not path.endswith(RESULTS))]
    scripts = (_path_from(top, script) for script in scope.scripts)
    tracked = set(listed.tracked)
    return list(dict.fromkeys([*found, *(path for path in scripts if path not in tracked)]))


def _path_from(top: str, script: str) -> str:
    """Relative where it lies below."""
    where = Path(os.path.realpath(os.path.dirname(script)), os.path.basename(script))  # noqa: PTH119, PTH120
    return str(where.relative_to(top)) if where.is_relative_to(top) else str(where)


def _watched(listed: _Listed, untracked: list[str], git_dir: str, common: str) -> tuple[str, ...]:
    head = [str(Path(git_dir, name)) for name in ("HEAD", "index")] + [str(Path(common, "packed-refs"))]
    try:
        ref = Path(git_dir, "HEAD").read_text("utf-8", "surrogateescape").strip().removeprefix("ref: ")
        head.append(str(Path(common, ref)))
    except (OSError, ValueError):
        pass
    tracked = [path for path in listed.tracked if not _is_ours(path)]
    if len(tracked) > MOST_WATCHED:
        tracked = [path for path in tracked if is_source(path)][:MOST_WATCHED]
    return (*head, *tracked, *untracked)


def _is_ours(path: str) -> bool:
    *folders, name = path.split("/")
    return name == "campaign.yaml" or "reports" in folders or fnmatch.fnmatch(name, "dev_v*.md")


def _without_git(cwd: str, scope: Scope) -> Seen:
    """The scripts that commands name, and the source beside them."""
    outputs = [os.path.abspath(each) for each in scope.outputs]  # noqa: PTH100
    found = dict.fromkeys(path for script in scope.scripts for path in (script, *beside(script)))
    paths = [
        os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path
        for path in found
        if os.path.basename(path) != "campaign.yaml" and not _is_output(path, outputs)  # noqa: PTH119
    ]
    as_it_was = signature(cwd, paths)
    return Seen(_record("no_repository", cwd, [], paths), cwd, "", tuple(paths), tuple(paths), as_it_was)


def _is_output(path: str, outputs: Collection[str]) -> bool:
    return any(fnmatch.fnmatch(path, output) or path.startswith(f"{output}/") for output in outputs)


def _record(
    state: str, top: str, changed: list[str], untracked: list[str], diff: str = "", commit: str | None = None
) -> dict[str, Any]:
    """`dirty`: of the diff and of the files that are in none, under which both are kept."""
    files, left_out = hashed(top, [*filter(is_source, changed), *untracked])
    digest = hashlib.sha256(diff.encode())
    for path in sorted(untracked):
        digest.update(f"\0{path}\0{files.get(path, '')}".encode("utf-8", "surrogateescape"))
    return {
        "state": state,
        "commit": commit,
        "dirty": digest.hexdigest()[:12] if diff or untracked else None,
        "changed": [shown(path) for path in changed[:MOST_NAMED]],
        "untracked": [shown(path) for path in untracked[:MOST_NAMED]] if state != "no_repository" else [],
        "files": {shown(path): content for path, content in files.items()},
        **({"left_out": left_out} if left_out else {}),
    }
