"""Which code runs, by real git: the commit, what was changed since, and source that git does not know."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from muster.model.attempt import classify_code_state, code_identity_key
from muster.readers.source_code import (
    LARGEST_SOURCE_FILE,
    CodeScope,
    is_source_file,
    may_keep_content,
    read_code_state,
    read_source_file,
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words],
        check=True, capture_output=True, text=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip
    return done.stdout.strip()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Only a README is committed."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "README.md").write_text("hello")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_what_is_committed_is_clean(repo: Path) -> None:
    code = read_code_state(str(repo)).code
    assert (code["state"], code["commit"]) == ("known", git(repo, "rev-parse", "HEAD"))
    assert (code["dirty"], code["changed"], code["untracked"], code["files"]) == (None, [], [], {})
    assert code_identity_key(code) == {
        "commit": code["commit"],
        "dirty": None,
        "readable": True,
    }  # as hashes always had it


def test_source_that_git_does_not_know_is_part_of_it(repo: Path) -> None:
    (repo / "t.py").write_text("print(1)")
    code = read_code_state(str(repo)).code
    assert (code["untracked"], code["files"]) == (["t.py"], {"t.py": sha("print(1)")})
    (repo / "t.py").write_text("print(2)")
    again = read_code_state(str(repo)).code
    assert code["dirty"]
    assert again["dirty"] != code["dirty"]


def test_changes_are_named_with_what_is_in_the_files_now(repo: Path) -> None:
    (repo / "train.py").write_text("a = 1")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "more")
    (repo / "train.py").write_text("a = 2")
    (repo / "README.md").write_text("other")
    seen = read_code_state(str(repo))
    assert seen.code["changed"] == ["README.md", "train.py"]
    assert seen.code["files"] == {"train.py": sha("a = 2")}
    assert seen.code["dirty"] == sha(seen.diff)[:12]  # the name that older attempts have for the same diff


def test_what_is_no_source_is_left_alone(repo: Path) -> None:
    for name in ("data.csv", "model.pt", ".env", "campaign.yaml", "reports/a.yaml", "wandb/run-1/config.yaml",
                 ".muster/x.py", "venv/lib/x.py", "ignored/x.py", "outputs/a/params.json"):  # fmt: skip
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("x")
    (repo / "large.py").write_text("#" * (LARGEST_SOURCE_FILE + 1))
    (repo / ".gitignore").write_text("ignored\n")
    code = read_code_state(str(repo), CodeScope(outputs=(str(repo / "outputs" / "*"),))).code
    assert (code["untracked"], code["files"], code["left_out"]) == (["large.py"], {}, 1)


def test_many_outputs_are_not_even_looked_into(repo: Path) -> None:
    outputs = repo / "outputs"
    for run in range(40):
        (outputs / f"a_{run}").mkdir(parents=True)
        for at in range(50):
            (outputs / f"a_{run}" / f"metrics{at}.json").write_text("{}")
    seen = read_code_state(str(repo), CodeScope(outputs=(str(outputs / "a_*"),)))
    assert (seen.code["dirty"], seen.code["files"]) == (None, {})
    assert not any("metrics" in path for path in seen.watched)


def test_no_commit_yet_and_no_repository_are_two_things(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("1")
    (tmp_path / "model.py").write_text("2")
    scope = CodeScope(scripts=(str(tmp_path / "t.py"),))
    bare = read_code_state(str(tmp_path), scope).code
    assert (bare["state"], bare["commit"]) == ("no_repository", None)
    assert bare["files"] == {"t.py": sha("1"), "model.py": sha("2")}
    git(tmp_path, "init", "-q")
    fresh = read_code_state(str(tmp_path), scope).code
    assert (fresh["state"], fresh["commit"]) == ("no_commit", None)
    assert fresh["files"] == {"t.py": sha("1"), "model.py": sha("2")}
    assert code_identity_key(bare) != {}


def test_packages_beside_a_script_count_and_its_outputs_do_not(tmp_path: Path) -> None:
    for name in (
        "net/__init__.py",
        "net/deep/__init__.py",
        "net/deep/x.py",
        "other/y.py",
        "runs/z.py",
        "campaign.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "t.py").write_text("")
    code = read_code_state(str(tmp_path), CodeScope((str(tmp_path / "runs"),), (str(tmp_path / "t.py"),))).code
    assert sorted(code["files"]) == ["net/__init__.py", "net/deep/__init__.py", "net/deep/x.py", "t.py"]


def test_a_script_that_git_ignores_or_that_lies_elsewhere_is_part_of_it(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitignore").write_text("*.py\n")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "ignore")
    for path in (repo / "t.py", tmp_path / "u.py"):
        path.write_text("1")
    code = read_code_state(str(repo), CodeScope(scripts=(str(repo / "t.py"), str(tmp_path / "u.py")))).code
    assert code["untracked"] == ["t.py", str(tmp_path / "u.py")]


@pytest.fixture
def slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that never answers, and leaves a child that holds its output."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nsleep 100\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_git_that_does_not_answer_is_not_no_repository(
    repo: Path, slow_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_GIT_S", "0.3")
    began = time.monotonic()
    code = read_code_state(str(repo)).code
    assert code == {"state": "unknown", "why": "git did not answer in 0.3 s", "waited_s": 0.3}
    assert time.monotonic() - began < 20


def test_no_git_at_all(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert read_code_state(str(repo)).code == {"state": "unknown", "why": "git is not installed"}


def test_a_broken_repository_is_told(repo: Path) -> None:
    (repo / ".git" / "config").write_text("[core\n")
    code = read_code_state(str(repo)).code
    assert code["state"] == "unknown"
    assert "bad config" in code["why"]


def test_nothing_of_the_repository_is_executed(repo: Path, tmp_path: Path) -> None:
    (repo / "a.txt").write_text("1")
    (repo / "b.bin").write_text("1")
    (repo / ".gitattributes").write_text("*.txt filter=evil diff=evil\n*.bin filter=worse\n")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "more")
    mark = tmp_path / "executed"
    evil = f"touch {mark}; cat"
    for name in ("filter.evil.clean", "filter.worse.process", "diff.evil.textconv", "diff.evil.command", "diff.external",
                 "core.fsmonitor", "core.pager"):  # fmt: skip
        git(repo, "config", name, evil)
    for hook in ("post-index-change", "fsmonitor-watchman"):
        (repo / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (repo / ".git" / "hooks" / hook).chmod(0o755)
    for name in ("a.txt", "b.bin"):
        (repo / name).write_text("2 and more")
    code = read_code_state(str(repo)).code
    assert code["changed"] == ["a.txt", "b.bin"]
    assert not mark.exists()


@pytest.mark.parametrize("name", ["a=b", "lfs", "evil"])
@pytest.mark.parametrize("inner", ["", "sub", "sub/sub"])
def test_no_filter_is_run_by_a_disguise_or_in_a_submodule(repo: Path, tmp_path: Path, name: str, inner: str) -> None:
    """The size stays: only then git reads a file through its filter to see whether it has changed."""
    folder = repo
    for part in filter(None, inner.split("/")):
        folder = folder / part
        folder.mkdir()
        git(folder, "init", "-q")
    (folder / "a.txt").write_text("1")
    (folder / ".gitattributes").write_text(f"*.txt filter={name}\n")
    for inside in (folder, *folder.parents):
        if inside.is_relative_to(repo):
            git(inside, "add", ".")
            git(inside, "commit", "-q", "-m", "more")
    mark = tmp_path / "executed"
    git(folder, "config", f"filter.{name}.clean", f"{'git-lfs clean -- %f; ' * (name == 'lfs')}touch {mark}; cat")
    git(folder, "config", f"filter.{name}.required", "true")
    (folder / "a.txt").write_text("2")
    os.utime(folder / "a.txt", (1, 1))
    code = read_code_state(str(repo)).code
    assert code["changed"] == [inner.partition("/")[0] or "a.txt"]
    assert not mark.exists()


def test_links_and_pipes_are_not_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    (repo / "x.py").symlink_to(tmp_path / "secret")
    os.mkfifo(repo / "y.py")
    code = read_code_state(str(repo)).code
    assert list(code["files"]) == ["x.py"]
    assert read_source_file(str(repo), "x.py") == b"link to " + os.fsencode(tmp_path / "secret")


def test_what_sounds_like_a_credential_is_not_kept() -> None:
    assert not may_keep_content("conf/credentials.json")
    assert not may_keep_content("my_tokens.yaml")
    assert may_keep_content("tokenizer.py")
    assert may_keep_content("conf/base.yaml")


def test_worktrees_submodules_and_bare_repositories(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree" / "t.py").write_text("1")
    assert read_code_state(str(tmp_path / "tree")).code["untracked"] == ["t.py"]
    assert read_code_state(str(repo)).code["untracked"] == []
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "inner")
    git(repo, "commit", "-q", "-m", "submodule")
    assert read_code_state(str(repo)).code["dirty"] is None
    (repo / "inner" / "README.md").write_text("changed")
    assert read_code_state(str(repo)).code["changed"] == ["inner"]
    assert read_code_state(str(repo / "inner")).code["changed"] == ["README.md"]
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert read_code_state(str(tmp_path / "bare.git")).code["state"] == "no_repository"
    (repo / "nested").mkdir()
    git(repo / "nested", "init", "-q")
    (repo / "nested" / "x.py").write_text("")
    assert read_code_state(str(repo)).code["untracked"] == []


def test_a_hook_of_git_does_not_change_what_is_asked(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert read_code_state(str(repo)).code["state"] == "known"


def test_a_change_is_noticed_without_git(repo: Path) -> None:
    (repo / "train.py").write_text("a = 1")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "more")
    (repo / "t.py").write_text("1")
    seen = read_code_state(str(repo))
    assert seen.holds()
    (repo / "result.json").write_text("{}")
    assert seen.holds()
    (repo / "train.py").write_text("a = 22")
    assert not seen.holds()
    seen = read_code_state(str(repo))
    (repo / "t.py").write_text("22")
    assert not seen.holds()
    seen = read_code_state(str(repo))
    git(repo, "commit", "-q", "-a", "-m", "even more")
    assert not seen.holds()


def test_what_came_after_up_is_no_part_of_it(repo: Path) -> None:
    (repo / "t.py").write_text("1")
    (repo / "params.json").write_text("{}")
    first = read_code_state(str(repo))
    for name in ("result.json", "new.py", "new.yaml"):
        (repo / name).write_text("x")
    assert read_code_state(str(repo), before=first, anew=False).code == first.code
    assert read_code_state(str(repo), before=first).code["untracked"] == ["new.py", "new.yaml", "params.json", "t.py"]


@pytest.mark.parametrize(
    ("code", "state"),
    [({}, "unrecorded"), ({"commit": "ab", "dirty": None, "readable": True}, "known"),
     ({"commit": "ab", "dirty": None, "readable": False}, "unknown"), ({"commit": "ab", "dirty": "cd"}, "known"),
     ({"state": "no_commit", "commit": None}, "no_commit")],
)  # fmt: skip
def test_older_records_are_understood(code: dict[str, object], state: str) -> None:
    assert classify_code_state(code) == state


def test_the_bindings_of_a_document_are_no_source() -> None:
    assert is_source_file("configs/a.json")
    assert not is_source_file("paper.md.muster.json"), "to bind a text must not change what a cell is"
