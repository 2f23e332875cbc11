"""`muster up --at-boot`: the machine looks after a campaign when it starts, and every few minutes.

What it starts is a guard, which ends at once where there is one, or nothing to do. So a reboot is covered, and so are a
controller and a guard that were killed at once. A timer of the user's systemd, or two lines in the crontab.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from muster.engine.ports.machine import BootEntry, BootKeeper
from muster.files.atomic_write import PUBLIC_FILE, make_public_folder, write_atomically
from muster.hosts.local.guard_keeper import guard_command
from muster.model.errors import MusterError
from muster.text.phrases import phrase

LOOK_EVERY_MIN = 5
TOOL_TIMEOUT_S = 30.0
KEPT_VARIABLES = ("PATH", "MUSTER_HOME")  # of the environment: a machine that starts has little of its own


def build_boot_entry(root: Path) -> BootEntry:
    if any(not each.isprintable() for each in str(root)):
        raise MusterError(phrase("hosts.path_unfit_for_boot"), where=repr(root))
    environment = {
        name: value for name in KEPT_VARIABLES if (value := os.environ.get(name, "")) and value.isprintable()
    }
    if home := environment.get("MUSTER_HOME"):
        environment["MUSTER_HOME"] = str(Path(home).absolute())
    return BootEntry(root, guard_command(root / ".muster"), environment)


def find_boot_keeper() -> BootKeeper:
    if shutil.which("systemctl") and _run_tool(["systemctl", "--user", "show-environment"]).returncode == 0:
        return SystemdKeeper()
    if shutil.which("crontab"):
        return CrontabKeeper()
    raise MusterError(
        phrase("hosts.no_systemd_no_crontab"),
        where="PATH",
        hint=phrase("hosts.start_status_at_boot"),
    )


def all_boot_keepers() -> list[BootKeeper]:
    """Whoever may have been asked before."""
    found: list[BootKeeper] = [SystemdKeeper()]
    return [*found, CrontabKeeper()] if shutil.which("crontab") else found


class SystemdKeeper:
    kind: Literal["systemd", "crontab"] = "systemd"

    def shown(self, wanted: BootEntry) -> str:
        return "\n".join(f"{path}:\n{_indent_lines(text)}" for path, text in self._files(wanted).items())

    def installed(self, wanted: BootEntry) -> bool:
        return all(path.is_file() and path.read_text("utf-8") == text for path, text in self._files(wanted).items())

    def install(self, wanted: BootEntry) -> str:
        for path, text in self._files(wanted).items():
            make_public_folder(path.parent, parents=True)
            write_atomically(path, text, mode=PUBLIC_FILE)
        _run_tool_or_raise("systemctl", "--user", "daemon-reload")
        _run_tool_or_raise("systemctl", "--user", "enable", "--now", f"{wanted.name}.timer")
        if shutil.which("loginctl") and "Linger=no" in _run_tool(["loginctl", "show-user", "--property=Linger"]).stdout:
            return phrase("hosts.boot_entry_begins_at_login")
        return ""

    def remove(self, wanted: BootEntry) -> bool:
        files = [path for path in self._files(wanted) if path.exists()]
        if not files:
            return False
        if shutil.which("systemctl"):
            _run_tool(["systemctl", "--user", "disable", "--now", f"{wanted.name}.timer"])
        for path in files:
            path.unlink()
        if shutil.which("systemctl"):
            _run_tool(["systemctl", "--user", "daemon-reload"])
        return True

    def _files(self, wanted: BootEntry) -> dict[Path, str]:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        folder = Path(config) / "systemd" / "user"
        about = f"Description=Muster sees to the campaign in {_escape_percent(str(wanted.root))}"
        service = [
            "[Unit]",
            about,
            "",
            "[Service]",
            "Type=exec",
            "KillMode=process",  # its controller and runs outlive it
            *(f"Environment={_quote_unit_word(f'{name}={value}')}" for name, value in wanted.environment.items()),
            f"ExecStart={' '.join(_quote_unit_word(word, dollar=True) for word in wanted.command)}",
        ]
        timer = [
            "[Unit]",
            about,
            "",
            "[Timer]",
            "OnStartupSec=30s",
            f"OnUnitInactiveSec={LOOK_EVERY_MIN}min",
            "",
            "[Install]",
            "WantedBy=timers.target",
        ]
        named = {".service": service, ".timer": timer}
        return {folder / f"{wanted.name}{ending}": "\n".join(lines) + "\n" for ending, lines in named.items()}


class CrontabKeeper:
    kind: Literal["systemd", "crontab"] = "crontab"

    def shown(self, wanted: BootEntry) -> str:
        return phrase("hosts.boot_entry_in_crontab") + _indent_lines("".join(self._lines(wanted)))

    def installed(self, wanted: BootEntry) -> bool:
        return self._own(self._read(), wanted) == self._lines(wanted)

    def install(self, wanted: BootEntry) -> str:
        before = self._read()
        self._write([*self._others(before, wanted), *self._lines(wanted)])
        return ""

    def remove(self, wanted: BootEntry) -> bool:
        before = self._read()
        if not self._own(before, wanted):
            return False
        self._write(self._others(before, wanted))
        return True

    def _lines(self, wanted: BootEntry) -> list[str]:
        """A percent sign would end the command. sh takes the mark for a comment.

        cron drops the backslash before a percent sign, and knows no way to write both.
        """
        given = [f"{name}={shlex.quote(value)}" for name, value in wanted.environment.items()]
        words = " ".join([*given, shlex.join(wanted.command), ">/dev/null", "2>&1"])
        if "\\%" in words:
            raise MusterError(
                phrase("hosts.crontab_path_backslash"),
                where=str(wanted.root),
                hint=phrase("hosts.rename_folder_for_crontab"),
            )
        command = f"{words} # {wanted.name}".replace("%", "\\%")
        return [f"{when} {command}\n" for when in ("@reboot", f"*/{LOOK_EVERY_MIN} * * * *")]

    def _own(self, lines: Sequence[str], wanted: BootEntry) -> list[str]:
        return [line for line in lines if line.rstrip("\n").endswith(f"# {wanted.name}")]

    def _others(self, lines: Sequence[str], wanted: BootEntry) -> list[str]:
        own = set(self._own(lines, wanted))
        return [line if line.endswith("\n") else f"{line}\n" for line in lines if line not in own]

    def _read(self) -> list[str]:
        done = _run_tool(["crontab", "-l"])
        if done.returncode and "no crontab" not in done.stderr:  # else we would write over what we can't see
            raise MusterError(phrase("hosts.crontab_unreadable"), where="crontab -l", hint=done.stderr.strip())
        return done.stdout.splitlines(keepends=True) if done.returncode == 0 else []

    def _write(self, lines: Sequence[str]) -> None:
        _run_tool_or_raise("crontab", "-", given="".join(lines))


def _run_tool(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=TOOL_TIMEOUT_S,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _run_tool_or_raise(*command: str, given: str = "") -> None:
    done = _run_tool(list(command), given)
    if done.returncode:
        said = done.stderr.strip() or phrase("hosts.tool_exit_code", code=done.returncode)
        raise MusterError(
            phrase("hosts.tool_failed", command=shlex.join(command), reason=said),
            hint=phrase("hosts.campaign_unchanged"),
        )


def _indent_lines(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _escape_percent(text: str) -> str:
    return text.replace("%", "%%")


def _quote_unit_word(word: str, *, dollar: bool = False) -> str:
    """As units quote a word; only in a command a dollar stands for something."""
    text = _escape_percent(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text.replace("$", "$$") if dollar else text}"'
