"""The demo, a template and a loop work the same under every usual umask, and for a user who is not root."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from second_user import UID, as_second_user, common_place

from muster.app.overview import demo
from muster.hosts.local.guard_keeper import living_guard_pid
from support.camp import alive, until

__all__ = ["common_place"]
EVERYBODY = [
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in [(0o002, False), (0o022, False), (0o077, False), (0o022, True)]
    ),
    (0o077, True),
]
FILES = {
    "train.py": """\
import json, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
time.sleep(1)  # the checkpoint is of the last tenth of the run
reg = json.load(open(given["--config"]))["ot"]["loss_config"]["reg"] if "--config" in given else 1
with open(given["--out"] + "/metrics.jsonl", "w") as log:
    for step in range(int(given["--steps"]) + 1):
        row = {"step": step, "ot": {"pi_sum": reg / 10}, "grad_norm": 1.0, "eval/success": reg / 3}
        log.write(json.dumps(row) + "\\n")
open(given["--out"] + "/checkpoint.pt", "w").write(" ".join(sys.argv))
""",
    "eval.py": """\
import json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
weights = sum(open(given["--checkpoint"], "rb").read()) % 97 / 97
json.dump({"score": weights, "cost": 20 + weights + len(sys.argv) / 10}, open(given["--out"] + "/result.json", "w"))
""",
    "configs/baseline.json": '{"ot": {"loss_config": {"reg": 0.2}, "window": 1, "lambda_ot": 1.0}, "optimizer": {"lr": 1.0}}',
    "configs/more/other.json": '{"ot": {"loss_config": {"reg": 0.9}, "window": 1, "lambda_ot": 1.0}, "optimizer": {"lr": 1.0}}',
}  # fmt: skip
SMALL = {
    "gpus: auto": "gpus: 0", "seed: [0, 1, 2, 3, 4]": "seed: [0, 1]", "steps: 120000": "steps: 10",
    "steps: 2000": "steps: 10", "command: python ": f"command: {sys.executable} ",
}  # fmt: skip


@dataclass
class Person:
    top: Path
    umask: int
    second: bool

    @property
    def root(self) -> Path:
        return self.top / "campaign"

    def __call__(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "muster", *args]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        environment |= {"HOME": str(self.top), "NO_COLOR": "1", "MUSTER_PACE": "0.02", "MUSTER_GRACE_S": "2"}
        environment |= {"MPLCONFIGDIR": str(self.top / "mpl")}
        done = subprocess.run(
            as_second_user(command) if self.second else command, cwd=cwd or self.root, env=environment,
            capture_output=True, text=True, timeout=400, check=False, umask=self.umask,
        )  # fmt: skip
        assert done.returncode == 0, (args, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done

    def own(self) -> None:
        for path in (self.top, *self.top.rglob("*")) if self.second else ():
            os.chown(path, UID, UID)

    def sees_its_own(self) -> None:
        """Whose all of it is, and its modes: the state is private, what is for people follows the umask."""
        found = {path: path.lstat() for path in self.top.rglob("*")}
        assert {facts.st_uid for facts in found.values()} == {UID if self.second else os.geteuid()}
        state = {path: facts for path, facts in found.items() if ".muster" in path.parts}
        assert state
        private = [path for path in state if path.parent.name == ".muster" or path.name == ".muster"]
        assert [path for path in private if stat.S_IMODE(found[path].st_mode) & 0o077] == []
        reports = [path for path in found if "reports" in path.parts and ".muster" not in path.parts and path.is_file()]
        assert reports
        assert {stat.S_IMODE(found[path].st_mode) for path in reports} == {0o666 & ~self.umask}


@pytest.fixture(params=EVERYBODY, ids=lambda each: f"{each[0]:03o}{' of another user' * each[1]}")
def person(common_place: Path, request: pytest.FixtureRequest) -> Iterator[Person]:
    made = Person(common_place / "person", *request.param)
    made.root.mkdir(parents=True)
    made.own()
    yield made
    states = list(made.top.rglob(".muster/controller.lock"))
    until(lambda: not any((pid := living_guard_pid(each.parent)) and alive(pid) for each in states), "nobody is left")


def begin(person: Person, template: str) -> None:
    person("init", template)
    file = person.root / "campaign.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~person.umask
    text = file.read_text()
    for old, new in SMALL.items():
        text = text.replace(old, new)
    file.write_text(text)
    for name, content in FILES.items():
        (person.root / name).parent.mkdir(parents=True, exist_ok=True)
        (person.root / name).write_text(content)
    person.own()


@pytest.mark.parametrize("template", ["sprint", "loop"])
def test_a_template(person: Person, template: str) -> None:
    begin(person, template)
    person(*({"sprint": ("up",), "loop": ("loop", "run")}[template]))
    status = json.loads(person("status", "--json").stdout)
    assert status["complete"]
    assert set(status["counts"]) - {name for name, count in status["counts"].items() if not count} == {"DONE"}
    person("report")
    person.sees_its_own()


@pytest.mark.parametrize("umask", [0o002, 0o077], ids="{:03o}".format)
def test_the_demo_is_laid_out_by_the_umask_and_not_by_the_package(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "configs").mkdir(parents=True)
    (package / "campaign.yaml").touch(0o444)
    (package / "configs").chmod(0o555)
    monkeypatch.setattr(demo, "find_demo_example", lambda: package)
    before = os.umask(umask)
    try:
        folder = demo.create_demo_folder(tmp_path / "demo")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((folder / name).stat().st_mode) for name in (".", "configs", "campaign.yaml")]
    assert modes == [0o777 & ~umask, 0o777 & ~umask, 0o666 & ~umask]


@pytest.mark.slow
def test_the_demo(person: Person) -> None:
    said = person("demo", "demo", cwd=person.root).stdout
    assert "FAULT 1" in said
    assert "FAULT 2" in said
    counts = json.loads(person("status", "--json", cwd=person.root / "demo").stdout)["counts"]
    assert counts["DONE"] == sum(counts.values())
    person.sees_its_own()
