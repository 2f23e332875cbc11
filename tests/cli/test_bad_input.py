"""Everything a person can get wrong, and what they see. Never a traceback, and nothing is changed behind their back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.files.state_folder import file_system_type, refuse_bad_state_folder
from support.camp import PATIENCE_S, Camp, until

GOOD = """\
muster: 1
campaign: good
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [seed], command: "true {seed}"}
"""


@pytest.fixture(autouse=True)
def never_a_traceback(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at all that every command of a test prints."""
    real, said = subprocess.run, []

    def run(*args: Any, **more: Any) -> Any:
        done = real(*args, **more)
        said.append(f"{done.stdout}{done.stderr}")
        return done

    monkeypatch.setattr(subprocess, "run", run)
    yield
    assert not [text for text in said if "Traceback" in text or "something unexpected" in text]


def refused(camp: Camp, *words: str, commands: tuple[str, ...] = ("check", "up")) -> None:
    """Each command says it, exits 2 and leaves nothing behind; `check` and `up` say it as JSON too."""
    before = sorted(camp.root.iterdir())
    for command in commands:
        told = camp(command, code=2).stderr
        for word in words:
            assert word in told, (command, word, told)
        if command not in ("check", "up"):
            continue
        asked = camp(command, "--json", code=2)
        facts = json.loads(asked.stdout if command == "check" else asked.stderr)
        assert facts["mistakes"] if command == "check" else facts["error"]["code"] in ("invalid_campaign", "usage")
    assert sorted(camp.root.iterdir()) == before
    assert not (camp.root / ".muster").exists()


# -- the campaign file


def test_an_empty_file(camp: Camp) -> None:
    camp.write("")
    refused(camp, "campaign.yaml:1:1: error: the file is empty", "`muster init` writes a campaign to start from",
            commands=("check", "up", "plan", "adopt"))  # fmt: skip


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_not_yaml(camp: Camp) -> None:
    camp.write("campaign: [a, b\njobs: }")
    refused(camp, "campaign.yaml:2:", "error: this is not YAML:", "1 mistake; nothing was changed")


def test_not_even_text(camp: Camp) -> None:
    (camp.root / "campaign.yaml").write_bytes(b"muster: 1\ncampaign: \xff\xfe\n")
    refused(camp, "campaign.yaml:2:1: error: the file is not UTF-8 text", "fix: save it as UTF-8")


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_a_binary_file(camp: Camp) -> None:
    (camp.root / "campaign.yaml").write_bytes(bytes(range(128)) * 20)
    refused(camp, "campaign.yaml:1:1: error: a control character")


def test_wrong_types_all_at_once(camp: Camp) -> None:
    camp.write(
        GOOD.replace("cpus: 2", "cpus: many")
        .replace("seed: [0, 1]", "seed: 3")
        .replace("campaign: good", "campaign: []")
    )
    refused(
        camp,
        "campaign.yaml:2:11: error: campaign: expected text",
        "campaign.yaml:3:14: error:",
        "campaign.yaml:4:24: error: slots.cpus: expected a whole number, found text 'many'",
        "3 mistakes; nothing was changed",
    )


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_unknown_keys(camp: Camp) -> None:
    camp.write(GOOD.replace("slots:", "slot:").replace("command:", "comand:"))
    refused(
        camp,
        "campaign.yaml:4:1: error: unknown key 'slot'\n    fix: did you mean 'slots'?",
        "campaign.yaml:6:25: error: unknown key 'comand'",
        "did you mean 'command'?",
    )


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_duplicate_cells(camp: Camp) -> None:
    camp.write(GOOD.replace("[0, 1]", '[0, 1, "0"]'))
    refused(camp, "campaign.yaml:3:21: error: axis value '0' gives the same cell name twice, first on line 3")


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_a_missing_command(camp: Camp) -> None:
    camp.write(GOOD.replace(', command: "true {seed}"', ""))
    refused(camp, "campaign.yaml:6:3: error: 'command' is missing in jobs.train")


def test_a_command_that_is_not_there(camp: Camp) -> None:
    camp.write(GOOD.replace("true", "no-such-trainer"))
    refused(
        camp,
        "job train: the command 'no-such-trainer' was not found (cell train/0)",
        "is it installed, and is the right environment active?",
        commands=("check", "up"),
    )


def test_a_command_that_may_not_be_executed(camp: Camp) -> None:
    (camp.root / "train.sh").write_text("#!/bin/sh\n")
    camp.write(GOOD.replace("true", "./train.sh"))
    refused(camp, "job train: ./train.sh is not executable", "chmod +x ./train.sh", commands=("check", "up"))


def test_a_folder_that_is_not_there(camp: Camp) -> None:
    camp.write(GOOD.replace("command:", "cwd: elsewhere, command:"))
    refused(camp, f"job train: its folder {camp.root}/elsewhere does not exist", commands=("check", "up"))


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_a_placeholder_that_stands_for_nothing(camp: Camp) -> None:
    camp.write(GOOD.replace("{seed}", "{sed}"))
    refused(camp, "campaign.yaml:6:", "{sed}", "did you mean")


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_a_value_of_300_characters(camp: Camp) -> None:
    camp.write(GOOD.replace("[0, 1]", f"[{'x' * 300}]"))
    refused(
        camp, "error: an axis value of 300 bytes is too long, 200 fit", "give it a short name and put the long text"
    )


def test_a_campaign_file_that_is_a_folder(camp: Camp) -> None:
    (camp.root / "campaign.yaml").mkdir()
    for command in ("check", "plan", "up", "status", "adopt", "fsck"):
        told = camp(command, code=2).stderr
        assert "campaign.yaml" in told
    told = camp("init", "--force", code=2).stderr
    assert "campaign.yaml is a folder; nothing was changed" in told


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything; the read-only and mount tests cover root")
def test_a_campaign_file_that_may_not_be_read(camp: Camp) -> None:
    camp.write(GOOD)
    (camp.root / "campaign.yaml").chmod(0)
    for command in ("check", "plan", "up"):
        assert "you may not read or write this" in camp(command).stderr


def test_no_campaign_at_all(camp: Camp) -> None:
    for command in ("check", "plan", "up", "status", "adopt", "fsck"):
        told = camp(command, code=2).stderr
        assert "there is no campaign.yaml here or in a folder above" in told
        assert "write one with `muster init`, or use -C DIR" in told
    assert list(camp.root.iterdir()) == []


# -- the command line


def test_minus_c_with_something_that_is_no_folder(camp: Camp) -> None:
    camp.write(GOOD)
    for command in ("check", "plan", "up", "status", "init"):
        assert f"there is no folder {camp.root}/nowhere" in camp("-C", "nowhere", command, code=2).stderr
        told = camp("-C", "campaign.yaml", command, code=2).stderr
        assert "this is a file, no folder" in told
        assert f"where: {camp.root}/campaign.yaml" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stauts"], "did you mean `muster status`?"),
        (["chek"], "did you mean `muster check`?"),
        (["frobnicate"], "there is no command 'frobnicate'"),
        (["up", "--detatch"], "No such option: --detatch"),
        (["plan", "--jason"], "--json"),
        (["init", "a", "b"], "unexpected extra argument"),
        (["adopt", "--status-tsv"], "requires an argument"),
        (["-C"], "requires an argument"),
    ],
)
def test_a_command_or_option_that_does_not_exist(camp: Camp, words: list[str], message: str) -> None:
    camp.write(GOOD)
    told = camp(*words, code=2)
    assert message in told.stderr
    assert not (camp.root / ".muster").exists()


def test_unknown_words_as_json(camp: Camp) -> None:
    camp.write(GOOD)
    error = json.loads(camp("plan", "--json", "--detatch", code=2).stderr)["error"]
    assert (error["code"], "--detatch" in error["message"]) == ("usage", True)


@pytest.mark.parametrize(
    ("only", "message", "hint"),
    [
        ("sead=1", "--only sead=1: there is no axis 'sead'", "did you mean seed?"),
        ("colour=red", "--only colour=red: there is no axis 'colour'", "axes are seed, job"),
        ("seed=7", "--only seed=7: the axis seed has no value '7'", "values are 0, 1"),
        ("seed=0,17", "the axis seed has no value '17'", "did you mean 1?"),
        ("seed=", "the axis seed has no value ''", "values are 0, 1"),
        ("seed", "--only seed: there is no axis", "Write --only seed=2,3"),
        ("=1", "there is no axis ''", "axes are seed, job"),
    ],
)
def test_only_with_an_axis_or_value_that_does_not_exist(camp: Camp, only: str, message: str, hint: str) -> None:
    camp.write(GOOD)
    told = camp("up", "--only", only, code=2).stderr
    assert message in told
    assert hint in told
    assert not (camp.root / ".muster").exists()


def test_commands_before_the_first_up(camp: Camp) -> None:
    camp.write(GOOD)
    for words in (["status"], ["fsck"], ["wait"], ["down"], ["why", "train/0"], ["logs", "train/0"]):
        told = camp(*words, code=2)
        assert "this campaign has not been started" in told.stderr
    assert not (camp.root / ".muster").exists()


# -- names


ODD = ["with space", "a/b", "ünïcödé-实验", ".hidden", "100%", "quote'\"s", "$HOME;|&", "-dash", "*?[x]", "{{brace}}"]


@pytest.mark.slow  # tests/unit/spec is its sibling in CI
def test_odd_names_run_and_can_be_asked_for(camp: Camp) -> None:
    values = ", ".join(json.dumps(name, ensure_ascii=False) for name in ODD)
    camp.write(f"""\
muster: 1
campaign: "odd names: all of them"
axes: {{name: [{values}]}}
slots: {{gpus: 0, cpus: 4}}
jobs:
  say: {{axes: [name], command: "printf '%s' {{name}}"}}
""")
    camp("up", code=0)
    status = camp.json("status", code=0)
    assert [cell["axes"]["name"] for cell in status["cells"]] == ODD
    assert {cell["verdict"] for cell in status["cells"]} == {"DONE"}
    for cell, name in zip(status["cells"], ODD, strict=True):
        assert camp("logs", cell["cell"], code=0).stdout.rstrip("\n") == name
        why = camp.json("why", cell["cell"])
        assert (why["cell"], why["verdict"]) == (cell["cell"], "DONE")
    found = camp.json("fsck", code=0)
    assert (found["differences"], found["unplaced"], found["folderless"]) == ([], [], [])


# -- a file that is edited while it runs


def test_a_file_edited_while_it_runs(gated: Camp) -> None:
    """Done cells are kept with their old hash, changed and new ones are named, and what runs runs on."""
    text = (gated.root / "campaign.yaml").read_text()
    gated("up", "--detach", code=0)
    pid = gated.started("train/1")
    gated.open(0)
    until(lambda: gated.cells()["eval/0"] == "DONE", "eval/0")
    gated.write(text.replace("[0, 1]", "[0, 1, 2]").replace("echo evaluated", "echo evaluated anew"))
    gated.gates(2)
    told = gated("up", "--detach", code=0).stdout
    assert "2 new cells: train/2, eval/2" in told
    assert "1 cell whose definition changed: eval/1" in told
    assert "1 DONE cell whose definition changed (kept, with its old hash): eval/0" in told
    assert gated.started("train/1") == pid
    gated.open(1)
    gated.open(2)
    gated("wait", code=0)
    assert set(gated.cells().values()) == {"DONE"}
    assert gated("logs", "eval/0", code=0).stdout == "evaluated\n"
    assert gated("logs", "eval/1", code=0).stdout == "evaluated anew\n"
    starts = [decision["cell"] for decision in gated.decisions("start")]
    assert sorted(starts) == ["eval/0", "eval/1", "eval/2", "train/0", "train/1", "train/2"]


def test_a_file_that_is_broken_while_it_runs(gated: Camp) -> None:
    """The campaign goes on with the text that was taken in; only `up` is refused."""
    gated("up", "--detach", code=0)
    gated.started("train/0")
    gated.write("muster: 1\njobs: [")
    told = gated("up", "--detach", code=2)
    assert "nothing was changed" in told.stderr
    gated.open(0)
    gated.open(1)
    gated("wait", code=0)
    assert set(gated.cells().values()) == {"DONE"}


def test_an_axis_that_shrinks_and_grows(camp: Camp) -> None:
    camp.write(GOOD.replace("[0, 1]", "[0, 1, 2]"))
    camp("up", code=0)
    camp.write(GOOD)
    told = camp("up", code=0).stdout
    assert "1 cell that is no longer declared (its attempts are kept): train/2" in told
    assert camp.json("status", code=0)["declared"] == 2
    camp.write(GOOD.replace("[0, 1]", "[0, 1, 2, 3]"))
    told = camp("up", code=0).stdout
    assert "2 new cells: train/2, train/3" in told
    status = camp.json("status", code=0)
    assert (status["declared"], status["counts"]["DONE"]) == (4, 4)
    assert [decision["cell"] for decision in camp.decisions("start")] == ["train/0", "train/1", "train/2", "train/3"]


# -- places


MOUNTS = """\
22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw - nfs4 server:/home rw
31 30 0:31 / /home/me/local\\040disk rw - xfs /dev/sdb1 rw
32 22 0:32 / /mnt/ssh rw - fuse.sshfs me@host:/ rw
33 22 0:33 / /mnt/data rw - lustre mds:/data rw
34 22 0:34 / /homework rw - btrfs /dev/sdc1 rw
35 30 0:35 / /home rw - ext4 /dev/sdd1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/somewhere", "ext4"),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/mnt/data", "lustre"),
        ("/homework/x", "btrfs"),
        ("/home/me/local disk/x", "xfs"),
        ("/home/me", "ext4"),  # mounted over: the last one counts
    ],
)
def test_the_file_system_of_a_folder(path: str, kind: str) -> None:
    assert file_system_type(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("mounts", ["", "rubbish\n", "1 2 3\n", "22 1 0:20 / / rw shared:1 -\n"])
def test_a_mount_table_that_says_nothing(mounts: str) -> None:
    assert file_system_type(Path("/x"), mounts) == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre", "9p", "ceph", "beegfs"])
def test_a_network_file_system_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muster.model.errors import MusterError

    monkeypatch.setattr("muster.files.state_folder.file_system_type", lambda _path: kind)
    with pytest.raises(MusterError, match="network file system") as caught:
        refuse_bad_state_folder(tmp_path)
    assert "keep campaign.yaml on a local disk" in caught.value.hint


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", ""])
def test_a_local_file_system_is_fine(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.files.state_folder.file_system_type", lambda _path: kind)
    refuse_bad_state_folder(tmp_path)


# mounts and processes of its own: when the script ends, however it ends, the kernel ends all that it started
UNSHARE = ("unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc")


def mounts_work() -> bool:
    if os.getuid() != 0 or not shutil.which("unshare"):
        return False
    return subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


needs_mounts = pytest.mark.skipif(not mounts_work(), reason="needs root and namespaces (unshare -m -p)")


FILL = """
        def fill():
            with open(root / "filler", "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
"""


def within(camp: Camp, mount: str, script: str) -> dict[str, Any]:
    """Runs a script in namespaces of its own, in which something is mounted on the campaign's folder.

    `muster(...)` in it gives (code, stdout, stderr); what it puts into `said` comes back.
    """
    head = f"""
        import json, os, pathlib, subprocess, sys, time
        root, said = pathlib.Path({str(camp.root)!r}), {{}}
        text = (root / "campaign.yaml").read_text() if (root / "campaign.yaml").exists() else ""
        subprocess.run({mount!r}.split(), check=True)
        os.chdir(root)
        def muster(*words):
            done = subprocess.run([sys.executable, "-m", "muster", *words], capture_output=True, text=True, cwd=root)
            return done.returncode, done.stdout, done.stderr
        def until(true):
            end = time.monotonic() + {PATIENCE_S}
            while not (found := true()):
                assert time.monotonic() < end
                time.sleep(0.05)
            return found
    """
    body = textwrap.dedent(head) + textwrap.dedent(script) + "\nprint(json.dumps(said))\n"
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", body], env=camp.environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "Traceback" not in json.dumps(said)
    return said


@needs_mounts
@pytest.mark.slow  # its siblings here are in CI
@pytest.mark.root
def test_a_folder_that_can_only_be_read(camp: Camp) -> None:
    camp.write(GOOD)
    camp("up", code=0)
    until(lambda: camp.controller() is None)
    fresh = camp.root / "fresh"
    fresh.mkdir()
    (fresh / "campaign.yaml").write_text(GOOD)
    said = within(
        camp,
        f"mount --bind -o ro {camp.root} {camp.root}",
        """
        for name, words in {"up": ["up"], "up_fresh": ["-C", "fresh", "up"], "check": ["-C", "fresh", "check", "--json"],
                            "plan": ["-C", "fresh", "plan", "--json"], "init": ["-C", "fresh", "init", "--force"],
                            "status": ["status", "--json"], "plan_old": ["plan", "--json"], "fsck": ["fsck"],
                            "adopt": ["-C", "fresh", "adopt"], "adopt_dry": ["-C", "fresh", "adopt", "--dry-run"]}.items():
            said[name] = muster(*words)
        """,
    )
    for name in ("up", "up_fresh", "fsck", "adopt"):
        code, _, err = said[name]
        assert code == 1, (name, said[name])
        assert "the campaign's folder can't be written" in err, name
        assert "copy the campaign to a folder of yours" in err
    assert said["init"][0] == 1
    assert "Read-only file system" in said["init"][2]
    code, out, _ = said["check"]
    assert code == 0
    assert "the preflight record was not saved" in json.loads(out)["warnings"][0]["message"]
    assert said["plan"][0] == 0
    assert said["adopt_dry"][0] == 1
    assert "no job names an output folder" in said["adopt_dry"][1]
    # telling the truth needs no writing
    assert said["status"][0] == 0, said["status"]
    assert json.loads(said["status"][1])["counts"]["DONE"] == 2
    assert said["plan_old"][0] == 0, said["plan_old"]


@pytest.mark.skipif(os.getuid() == 0, reason="modes do not bind root; the mount tests cover root")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_folder_that_may_not_be_entered_or_written(camp: Camp, mode: int) -> None:
    place = camp.root / "place"
    place.mkdir()
    (place / "campaign.yaml").write_text(GOOD)
    place.chmod(mode)
    try:
        told = camp("-C", "place", "up")
        assert told.returncode in (1, 2)
        assert told.stderr
    finally:
        place.chmod(0o700)


@needs_mounts
@pytest.mark.root
def test_a_disk_that_is_full_while_claiming(camp: Camp) -> None:
    """Fault 29: nothing crashes, nothing is lost, the trouble is told, and with space it completes."""
    camp.write(GOOD.replace("[0, 1]", "[0, 1, 2, 3]").replace("true {seed}", "/bin/sh -c 'echo {seed} >> ../ran'"))
    camp.environment["MUSTER_POLL_S"] = "0.2"
    said = within(
        camp,
        f"mount -t tmpfs -o size=24m none {camp.root}",
        FILL
        + """
        text = text.replace("../ran", os.environ["MUSTER_HOME"] + "/ran")
        (root / "campaign.yaml").write_text(text.replace("[0, 1, 2, 3]", "[0, 1]"))
        said["first"] = muster("up")
        (root / "campaign.yaml").write_text(text)
        fill()
        said["full"] = muster("up", "--detach")
        said["status_full"] = muster("status", "--json")
        (root / "filler").unlink()
        said["again"] = muster("up")
        said["status"] = muster("status", "--json")
        said["fsck"] = muster("fsck", "--json")
        said["ran"] = pathlib.Path(os.environ["MUSTER_HOME"], "ran").read_text().split()
        """,
    )
    assert said["first"][0] == 0, said["first"]
    code, _, err = said["full"]
    assert code == 1, said["full"]
    assert "No space left" in err or "the disk is full" in err, said["full"]
    assert "free some space" in err, said["full"]
    assert said["status_full"][0] in (0, 3, 4), said["status_full"]
    assert json.loads(said["status_full"][1])["counts"]["DONE"] == 2
    assert said["again"][0] == 0, said["again"]
    status = json.loads(said["status"][1])
    assert (status["declared"], status["counts"]["DONE"]) == (4, 4)
    found = json.loads(said["fsck"][1])
    assert (found["old"], found["differences"], found["unplaced"]) == ("sound", [], [])
    assert sorted(said["ran"]) == ["0", "1", "2", "3"]


@needs_mounts
@pytest.mark.root
def test_a_disk_that_fills_while_a_controller_works(camp: Camp) -> None:
    """The ballast goes, and with its room how the run ended is written: nothing is lost and nothing runs twice."""
    camp.write(GOOD.replace("true {seed}", "/bin/sh -c 'read word < gate; echo {seed} >> RAN'"))
    said = within(
        camp,
        f"mount -t tmpfs -o size=24m none {camp.root}",
        FILL
        + """
        home = os.environ["MUSTER_HOME"]
        (root / "campaign.yaml").write_text(text.replace("RAN", home + "/ran").replace("cpus: 2", "cpus: 1"))
        os.mkfifo(root / "gate")
        said["up"] = muster("up", "--detach")
        def status():
            return json.loads(muster("status", "--json")[1])
        def go_on():
            fd = os.open(root / "gate", os.O_WRONLY)  # waits for the run
            os.write(fd, b"go\\n")
            os.close(fd)
        until(lambda: status()["counts"]["RUNNING"] == 1)
        said["ballast"] = [(root / ".muster" / "ballast").exists()]
        fill()
        said["hold"] = muster("hold", "--because", "the disk is full")
        go_on()
        until(lambda: status()["counts"]["DONE"] == 1)
        said["ballast"].append((root / ".muster" / "ballast").exists())
        (root / "filler").unlink()
        said["release"] = muster("release")
        said["attached"] = muster("up", "--detach")
        go_on()
        said["wait"] = muster("wait", "--timeout", "60s")
        said["status"] = status()
        said["ran"] = pathlib.Path(home, "ran").read_text().split()
        """,
    )
    assert said["up"][0] == 0, said["up"]
    assert said["ballast"] == [True, False], said
    assert sorted(said["ran"]) == ["0", "1"], said
    assert said["wait"][0] == 0, said["wait"]
    assert said["status"]["counts"]["DONE"] == 2
