"""The code at each start: git is asked where a file changed, never waited for in the loop, and outputs are no code."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.app.campaign import campaign_code
from muster.app.campaign.campaign_code import CodeReader, CodeScopes, CodeWatch
from muster.engine.ports.executor import OrderNotReady
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.readers.source_code import CodeState, read_code_state

JOB = Job("train", ("seed",), ("python", "t.py", "--seed", "{seed}"), output="runs/{seed}_*")


def campaign(job: Job = JOB) -> Campaign:
    return Campaign("c", (Axis("seed", (AxisValue("0", 0), AxisValue("1", 1))),), (job,))


class Boot:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def boot(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".muster").mkdir()
    (tmp_path / ".muster" / ".gitignore").write_text("*\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "t.py").write_text("1")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that git was asked about."""
    found: list[str] = []

    def see(cwd: str, *rest: object, **more: object) -> CodeState:
        found.append(cwd)
        return read_code_state(cwd, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(campaign_code, "read_code_state", see)
    return found


def test_what_up_saw_holds_until_a_file_changes(root: Path, asked: list[str]) -> None:
    reader, clock = CodeReader(campaign(), root), Boot()
    taken = reader(str(root))
    reader.save()
    watch = CodeWatch(campaign(), root, clock)  # type: ignore[arg-type]
    for _ in range(5):
        clock.now += 1.0
        assert watch(str(root)) == taken
    assert asked == [str(root)]
    (root / "t.py").write_text("22")
    clock.now += 1.0
    changed = answer(watch, str(root))
    assert changed["files"] != taken["files"]
    assert len(asked) == 2


def answer(watch: CodeWatch, cwd: str) -> dict[str, object]:
    """Asked until there is one, as the controller does at each look."""
    while True:
        try:
            return dict(watch(cwd))
        except OrderNotReady:
            threading.Event().wait(0.01)


def test_a_start_waits_for_git_and_the_loop_does_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def slow(cwd: str, *rest: object, **more: object) -> CodeState:
        answers.wait(30)
        return read_code_state(cwd, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(campaign_code, "read_code_state", slow)
    monkeypatch.setattr(campaign_code, "GIT_PATIENCE_S", 0.01)
    watch = CodeWatch(campaign(), root, Boot())  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(OrderNotReady):
            watch(str(root))
    answers.set()
    assert answer(watch, str(root))["state"] == "no_commit"


def test_a_git_that_does_not_answer_does_not_change_the_hashes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = CodeReader(campaign(), root)
    known = before(str(root))
    before.save()
    monkeypatch.setattr(campaign_code, "read_code_state", lambda *_: CodeState({"state": "unknown", "why": "x"}))
    reader = CodeReader(campaign(), root)
    assert reader(str(root)) == known
    assert reader.see(str(root)).code["state"] == "unknown"


@pytest.mark.parametrize(
    ("job", "scripts", "outputs"),
    [
        (JOB, ["t.py"], ["runs/0_*", "runs/1_*"]),
        (Job("train", ("seed",), ("python", "-m", "pkg.go", "{seed}")), ["pkg/go.py"], []),
        (Job("train", ("seed",), ("cd x && python 't.py' --seed {seed}",), shell=True), ["t.py"], []),
        (Job("train", ("seed",), ("python", "t.py"), output="r{attempt}"), ["t.py"], ["r*"]),
        (Job("train", ("seed",), ("python", "t.py"), output="*"), ["t.py"], []),  # it would be everything
    ],
)
def test_what_commands_name_and_where_they_write(root: Path, job: Job, scripts: list[str], outputs: list[str]) -> None:
    (root / "pkg").mkdir()
    (root / "pkg" / "go.py").touch()
    below: Callable[[list[str]], tuple[str, ...]] = lambda names: tuple(str(root / name) for name in names)  # noqa: E731
    scope = CodeScopes(campaign(job), str(root))(str(root))
    assert (scope.scripts, scope.outputs) == (below(scripts), below(outputs))
