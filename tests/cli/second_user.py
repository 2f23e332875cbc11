"""Real processes of a second user, for tests that root runs. Elsewhere they are skipped, with the reason."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

import muster

UID = 64321  # nobody's


@pytest.fixture
def common_place() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are closed to others."""
    place = Path(mkdtemp(prefix="muster-two-users-", dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def in_a_fork(look: Callable[[], object], uid: int = UID) -> str:
    """What `look` returned as that user, or the error that it raised, in words."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.environ["HOME"] = "/nonexistent"
            told = f"{look()}"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writer, told.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        told = file.read().decode()
    os.waitpid(pid, 0)
    return told


def as_second_user(command: list[str]) -> list[str]:
    """The command line that runs it as that user. Where the interpreter lies in a closed folder, as root's home, a mount
    namespace of its own opens the way."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    if not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("there is no setpriv or no unshare")
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs", *command]
    needed = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), Path(muster.__file__).resolve().parents[1]]
    closed = sorted({place for path in needed for place in path.parents if not place.stat().st_mode & 0o001})
    lines = ["set -e", "mask=$(umask)", "umask 022"]  # the folders on the way are for everybody
    for place in closed[:1]:
        inside = [path for path in needed if path.is_relative_to(place)]
        lines.append("at=$(mktemp -d)")
        for number, path in enumerate(inside):
            lines.append(f'mkdir "$at/{number}"; mount --bind {shlex.quote(str(path))} "$at/{number}"')
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(place))}")
        for number, path in enumerate(inside):
            lines.append(f'mkdir -p {shlex.quote(str(path))}; mount --bind "$at/{number}" {shlex.quote(str(path))}')
            lines.append(f'umount "$at/{number}"')
        lines.append('rm -r "$at"')
    if not closed:
        return become
    lines.append(f"umask $mask; exec {shlex.join(become)}")
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"the interpreter lies in {closed[0]}, where others can't get, and no mount namespace can be made")
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines)]
