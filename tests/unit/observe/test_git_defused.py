"""git is asked in ways that run nothing of a repository: traps that exclude each other, each by real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from muster.readers.git import Git, GitTrouble, find_trusted_program, trusted_path
from muster.readers.source_code import blob_sha256, changed_sources_between, read_code_state


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words],
        check=True, capture_output=True, text=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Its file was changed, and keeps its size: only its content tells, read through its filter."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("*.txt filter=evil diff=evil\n*.bin filter=lfs\n")
    for name in ("a.txt", "b.bin"):
        (folder / name).write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    for name in ("a.txt", "b.bin"):
        (folder / name).write_text("2")
        os.utime(folder / name, (1, 1))
    return folder


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.fixture
def no_lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git and a shell, and no git-lfs: `git lfs` is then what an alias says."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "touch", "cat"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))


@pytest.mark.usefixtures("no_lfs")
def test_git_lfs_is_no_alias_of_the_repository(repo: Path, mark: Path) -> None:
    git(repo, "config", "filter.lfs.clean", "git lfs clean -- %f")
    git(repo, "config", "alias.lfs", f"!touch {mark}; cat")
    assert read_code_state(str(repo)).code["changed"] == ["a.txt", "b.bin"]
    assert not mark.exists()
    git(repo, "diff", "HEAD")
    assert mark.exists()  # the trap works


@pytest.mark.usefixtures("no_lfs")
def test_nor_for_a_filter_of_the_user(repo: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "gitconfig"
    own.write_text('[filter "lfs"]\n\tclean = git lfs clean -- %f\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    git(repo, "config", "alias.lfs", f"!touch {mark}; cat")
    assert read_code_state(str(repo)).code["changed"] == ["a.txt", "b.bin"]
    assert not mark.exists()


@pytest.mark.parametrize("trap", ["diff.external", "diff.evil.command", "diff.evil.textconv"])
def test_a_submodule_is_not_compared_by_programs_of_its_own(repo: Path, mark: Path, trap: str) -> None:
    """`diff.submodule = diff` has git run another git there, which knows no option of ours."""
    inner = repo / "sub"
    inner.mkdir()
    git(inner, "init", "-q")
    for text in ("1", "2"):
        (inner / "a.txt").write_text(text)
        (inner / ".gitattributes").write_text("*.txt diff=evil\n")
        git(inner, "add", ".")
        git(inner, "commit", "-q", "-m", "more")
        if text == "1":
            git(repo, "add", "sub")
            git(repo, "commit", "-q", "-m", "a submodule")
    git(inner, "config", trap, f"touch {mark}; cat")
    git(repo, "config", "diff.submodule", "diff")
    assert "sub" in read_code_state(str(repo)).code["changed"]
    assert not mark.exists()
    git(repo, "diff", "--no-ext-diff", "--no-textconv", "HEAD")
    assert mark.exists()  # the trap works, for all that our options say


@pytest.mark.parametrize("how", ["include.path", "includeIf.gitdir:**.path", "worktree"])
def test_filters_of_included_files_are_the_repository_s_own(repo: Path, mark: Path, how: str) -> None:
    text = f'[filter "evil"]\n\tclean = touch {mark}; cat\n'
    if how == "worktree":
        git(repo, "config", "extensions.worktreeConfig", "true")
        (repo / ".git" / "config.worktree").write_text(text)
    else:
        (repo / "more").write_text(text)
        git(repo, "config", how, "../more")
    assert read_code_state(str(repo)).code["changed"] == ["a.txt", "b.bin"]
    assert not mark.exists()
    git(repo, "diff", "HEAD")
    assert mark.exists()  # the trap works


def test_a_working_tree_elsewhere_is_not_read(repo: Path, tmp_path: Path) -> None:
    """All that is source there would be hashed and kept as this campaign's code."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "private.py").write_text("secret = 1")
    for there in (home, tmp_path):
        git(repo, "config", "core.worktree", str(there))
        code = read_code_state(str(repo)).code
        assert code["state"] == "unknown"
        assert "names a working tree elsewhere" in code["why"]
        assert "files" not in code


def test_a_bare_repository_among_the_files_is_none(repo: Path, mark: Path) -> None:
    """A clone brings it along, as files like any."""
    git(repo, "init", "-q", "--bare", "kit")
    (repo / "kit" / "HEAD").write_text("ref: refs/heads/main\n")
    git(repo / "kit", "config", "core.bare", "false")
    git(repo / "kit", "config", "core.worktree", str(repo))
    git(repo / "kit", "config", "core.fsmonitor", f"touch {mark}; true")
    code = read_code_state(str(repo / "kit")).code
    assert code["state"] == "unknown"
    assert "bare repository" in code["why"]
    assert not mark.exists()


@pytest.mark.parametrize("remote", ["ext::touch MARK", "TOP/repo", "ssh://host/there"])
def test_nothing_is_fetched(repo: Path, mark: Path, remote: str) -> None:
    """Objects that a partial clone lacks would come by whatever its settings say."""
    for name, text in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "protocol.allow": "always",
        "protocol.ext.allow": "always", "remote.origin.promisor": "true", "core.gitProxy": f"touch {mark}",
        "remote.origin.url": remote.replace("MARK", str(mark)).replace("TOP", str(mark.parent)), "remote.origin.uploadpack": f"touch {mark}; false",
        "core.sshCommand": f"touch {mark}; false", "core.askPass": f"touch {mark}", "core.alternateRefsCommand": f"touch {mark}",
        "credential.helper": f"!touch {mark}",
    }.items():  # fmt: skip
        git(repo, "config", name, text)
    blob = git(repo, "rev-parse", "HEAD:a.txt")
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert read_code_state(str(repo)).code["state"] == "unknown"
    assert not mark.exists()
    subprocess.run(["git", "-C", str(repo), "diff", "HEAD"], check=False, capture_output=True, stdin=subprocess.DEVNULL)
    assert mark.exists()  # the trap works


@pytest.mark.parametrize("path", ["", ".", "bin", ":REPO/bin", "REPO/bin:", "TOP/link"])
def test_a_git_of_the_repository_is_not_run(
    repo: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (repo / "bin").mkdir()
    (tmp_path / "link").symlink_to(repo / "bin")
    for folder in (repo, repo / "bin"):
        for name in ("git", "git-lfs", "uname"):
            (folder / name).write_text(f"#!/bin/sh\n: > {mark}\n")
            (folder / name).chmod(0o755)
    git(repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    entry = path.replace("REPO", str(repo)).replace("TOP", str(tmp_path))
    own = str(Path(shutil.which("git") or "").parent)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", f"{entry}:{own}")
    assert find_trusted_program("git", str(repo / "deep" / "er")) == f"{own}/git"
    read_code_state(str(repo))
    assert not mark.exists()
    monkeypatch.setenv("PATH", entry)
    why = read_code_state(str(repo)).code["why"]
    assert ("is not run there" if path else "git is not installed") in why
    assert not mark.exists()


def test_path_keeps_what_is_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that is a repository of dotfiles is no stranger's; a campaign's own environment is."""
    home = tmp_path / "home"
    camp = home / "work" / "camp"
    (camp / "jobs").mkdir(parents=True)
    (home / ".git").mkdir()
    (camp / "campaign.yaml").write_text("")
    monkeypatch.setenv("HOME", str(home))
    asked = f"{home}/bin:{camp}/.venv/bin::{home}/work/bin:relative:/usr/bin"
    assert trusted_path(str(camp / "jobs"), asked) == f"{home}/bin:{home}/work/bin:/usr/bin"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_what_belongs_to_another_user_is_left_to_git(repo: Path, mark: Path) -> None:
    git(repo, "config", "core.fsmonitor", f"touch {mark}")
    os.chown(repo, 64321, 64321)
    os.chown(repo / ".git", 64321, 64321)
    code = read_code_state(str(repo)).code
    assert (code["state"], "dubious ownership" in code["why"]) == ("unknown", True)
    assert not mark.exists()


def test_a_small_repository_does_not_unfold_into_memory(repo: Path) -> None:
    """Objects are packed: what is committed and deleted is a diff of any length."""
    (repo / "big.py").write_text(("a" * (1 << 20) + "\n") * 150)
    git(repo, "add", "big.py")
    git(repo, "commit", "-q", "-m", "more")
    (repo / "big.py").unlink()
    tracemalloc.start()
    code = read_code_state(str(repo)).code
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (code["state"], code["why"]) == ("unknown", "git tells more than 32 MiB")
    assert peak < 100 << 20


def test_a_record_s_commit_is_no_option(repo: Path, tmp_path: Path) -> None:
    """A state that came with the repository says what it likes."""
    commit, target = git(repo, "rev-parse", "HEAD"), tmp_path / "written"
    assert changed_sources_between(str(repo), f"--output={target}", commit) == ()
    assert changed_sources_between(str(repo), "--ext-diff", commit) == ()
    assert blob_sha256(str(repo), "--batch=", "a.txt") is None
    assert not target.exists()
    assert blob_sha256(str(repo), commit, "a.txt")


def test_git_that_is_missing_is_told(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitTrouble, match="git is not installed"):
        Git(str(repo))("status")
