"""`muster up --at-boot`: what is installed is shown first, works as it is written, and can be taken back."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from muster.hosts.local.guard_keeper import living_guard_pid
from support.camp import Camp, alive, until

ONE = """\
muster: 1
campaign: one
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: "/bin/sh -c ':'"}
"""
CRONTAB = """\
#!/bin/sh
# as cron has it: -l prints or says that there is none, - reads the new one
case "$1" in
-l) cat "$FAKE/crontab" 2>/dev/null || { echo "no crontab for me" >&2; exit 1; };;
-) cat > "$FAKE/crontab"; echo written >> "$FAKE/writes";;
*) exit 2;;
esac
"""
SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> "$FAKE/systemctl"
[ "$2" != show-environment ] || [ -e "$FAKE/user-manager" ]
"""
OTHERS = "MAILTO=me\n# mine\n17 4 * * 1-5 /usr/bin/true \\% # muster\n"
FIELD = r"(\*(/\d+)?|\d+)"
LINE = re.compile(rf"(?P<when>@reboot|{FIELD}( {FIELD}){{4}}) (?P<command>(?:[^%\\]|\\.)+)")


@pytest.fixture
def machine(camp: Camp, tmp_path: Path) -> Camp:
    """With a crontab and a systemctl that only write down what they are told."""
    fake, programs = tmp_path / "fake", tmp_path / "bin"
    fake.mkdir()
    programs.mkdir()
    for name, text in (("crontab", CRONTAB), ("systemctl", SYSTEMCTL), ("loginctl", "#!/bin/sh\necho Linger=no\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    camp.environment |= {
        "FAKE": str(fake),
        "PATH": f"{programs}{os.pathsep}{camp.environment['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    camp.write(ONE)
    return camp


def fake(camp: Camp, name: str) -> str:
    path = Path(camp.environment["FAKE"]) / name
    return path.read_text() if path.exists() else ""


def lines(camp: Camp) -> list[re.Match[str]]:
    """Those of Muster; every one is as crontab(5) has them, with no percent sign that would end its command."""
    own = [line for line in fake(camp, "crontab").splitlines() if "guard.py" in line]
    found = [LINE.fullmatch(line) for line in own]
    assert all(found), own
    return [each for each in found if each]


def test_it_is_shown_and_needs_a_yes(machine: Camp) -> None:
    shown = machine("up", "--at-boot", "--detach", code=2)
    assert "this has the machine look after the campaign (crontab):" in shown.stderr
    assert "@reboot PATH=" in shown.stderr
    assert "say --yes" in shown.stderr
    assert not fake(machine, "crontab")
    assert not (machine.root / ".muster").exists(), "nothing was started"
    assert "did not ask for" in machine("up", "--yes", code=2).stderr


def test_crontab_is_written_once_and_taken_back(machine: Camp) -> None:
    (Path(machine.environment["FAKE"]) / "crontab").write_text(OTHERS)
    assert machine("up", "--at-boot", "--yes", code=0).stderr.count("@reboot") == 1
    assert fake(machine, "crontab").startswith(OTHERS)
    assert [each["when"] for each in lines(machine)] == ["@reboot", "*/5 * * * *"]
    assert "looks after it already" in machine("up", "--at-boot", code=0).stderr
    assert fake(machine, "writes").count("written") == 1
    machine.environment["MUSTER_HOME"] += "2"  # another home: the lines are replaced
    machine("up", "--at-boot", "--yes", code=0)
    assert len(lines(machine)) == 2
    assert "taken back (crontab)" in machine("up", "--no-at-boot", code=0).stdout
    assert fake(machine, "crontab") == OTHERS
    assert "nothing to take back" in machine("up", "--no-at-boot", code=0).stdout


def test_unreadable_crontab_is_not_written_over(machine: Camp, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "crontab"
    script.write_text('#!/bin/sh\n[ "$1" = - ] && echo written >> "$FAKE/writes"\necho "not allowed" >&2; exit 1\n')
    refused = machine("up", "--at-boot", "--yes", code=1)
    assert "your crontab can't be read" in refused.stderr
    assert not fake(machine, "writes")


def test_line_of_the_crontab_brings_a_dead_campaign_back(machine: Camp, tmp_path: Path) -> None:
    """Controller and guard are killed at once, and no run lives: only the machine is left to look."""
    odd = tmp_path / '50% of $it\'s "odd"'
    machine.root.rename(odd)
    machine.root = odd
    gate = "/bin/sh -c 'echo started; read word < gate-0'"
    machine.write(ONE.replace("\"/bin/sh -c ':'\"", json.dumps(gate)).replace("[0]", "[0, 1]"))
    machine.gates(0)
    machine("up", "--at-boot", "--yes", "--detach", code=0)
    machine.started("train/0")
    watcher = until(lambda: living_guard_pid(odd / ".muster"), "a guard")
    both = [watcher, machine.controller()]
    run, shim = machine.pids()[:2]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (*both, shim, run):
            os.kill(pid, number)
    until(lambda: not any(alive(pid) for pid in (*both, shim, run)), "nobody is left")
    epochs = len(machine.decisions("epoch"))
    for each in lines(machine):
        command = each["command"].replace("\\%", "%")  # as cron does
        bare = {"HOME": str(tmp_path), "SHELL": "/bin/sh", "FAKE": machine.environment["FAKE"]}
        machine._background.append(subprocess.Popen(["/bin/sh", "-c", command], cwd="/", env=bare))
    until(lambda: len(machine.decisions("epoch")) > epochs, "another controller")
    assert machine.decisions("epoch")[-1]["reason"] == "revived by the guard"
    machine.started("train/0", 2)  # and goes on with it


# -- systemd


def unit(camp: Camp, ending: str) -> dict[str, Any]:
    (path,) = Path(camp.environment["XDG_CONFIG_HOME"], "systemd", "user").glob(f"muster-*{ending}")
    entries = [line.partition("=") for line in path.read_text().splitlines() if "=" in line]
    return {"name": path.name, **{key: value for key, _, value in entries}}


def test_user_unit(machine: Camp) -> None:
    (Path(machine.environment["FAKE"]) / "user-manager").touch()
    shown = machine("up", "--at-boot", "--yes", code=0)
    assert "(systemd):" in shown.stderr
    assert "loginctl enable-linger" in shown.stderr
    service, timer = unit(machine, ".service"), unit(machine, ".timer")
    assert service["KillMode"] == "process", "runs must outlive the unit"
    words = shlex.split(service["ExecStart"])
    assert words[1:3] == ["-I", "-S"]
    assert words[-1] == str(machine.root / ".muster")
    assert (timer["OnStartupSec"], timer["OnUnitInactiveSec"]) == ("30s", "5min")
    told = fake(machine, "systemctl").splitlines()
    assert told[1:] == ["--user daemon-reload", f"--user enable --now {timer['name']}"]
    assert "looks after it already" in machine("up", "--at-boot", code=0).stderr
    assert not fake(machine, "crontab")
    assert "taken back (systemd)" in machine("up", "--no-at-boot", code=0).stdout
    assert f"--user disable --now {timer['name']}" in fake(machine, "systemctl")
    assert not list(Path(machine.environment["XDG_CONFIG_HOME"]).rglob("muster-*"))
