"""The machine's power switch as the controller reaches it: whoever looks and whoever runs the command is apart."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from muster.acts.powering import Switch
from muster.acts.shutdown import Looked
from muster.wiring.apart import apart
from muster.wiring.own_python import own_command, own_environment
from muster.wiring.pace import second_look_s
from muster.wiring.shutting import environment_of, execute

LOOK_S = 1800.0  # to see whether all derived files are fresh may take long


def power_switch(root: Path) -> Switch:
    return Switch(
        look=lambda: apart(lambda: ask(root)),
        run=lambda command, state: apart(lambda: execute(command, root, environment_of(state))),
        pause_s=second_look_s(),
    )


def ask(root: Path) -> Looked:
    """What stands against it now, by a process of its own: a look is heavy, and drivers and files may hang."""
    argv = own_command("muster", "-C", str(root), "shutdown", "--dry-run", "--quick", "--json")
    done = subprocess.run(
        argv,
        env=own_environment(os.environ, root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LOOK_S,
        check=False,
    )
    if done.returncode not in (0, 3):
        said = done.stderr.decode("utf-8", "replace")[-500:]
        return Looked((f"it could not be looked at: `muster shutdown --dry-run` ended with {done.returncode}: {said}",))
    told = json.loads(done.stdout)
    found = Looked(tuple(map(str, told["reasons"])), tuple(map(str, told["others"])))
    if done.returncode and not found.reasons:
        return Looked(("it could not be looked at: it was refused without a reason",))
    return found
