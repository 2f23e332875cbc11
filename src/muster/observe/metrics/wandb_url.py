"""Where W&B shows a run, if its log says so: at its beginning and again at its end."""

from __future__ import annotations

import os
import re

from muster.ports.regular_files import open_regular

ENDS = 64 << 10  # bytes of a log that are looked at, from either end
_ADDRESS = re.compile(rb"https?://[^\s<>\"'`|()\[\]\x00-\x20\x7f]+/runs/[A-Za-z0-9_.~%-]+")
LOGS = ("stderr.log", "stdout.log")


def logged_url(folder: str) -> str:
    """The last one that was printed; empty where none was, as by a run that is offline."""
    for name in LOGS:
        found = _in(f"{folder}/{name}")
        if found:
            return found
    return ""


def _in(path: str) -> str:
    try:
        with open_regular(path) as file:
            head = file.read(ENDS)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(len(head), size - ENDS))
            text = head + b"\n" + file.read(ENDS)
    except OSError:
        return ""
    return url_in(text)


def url_in(text: bytes) -> str:
    """Of a server of one's own, too: W&B says `View run ... at: ADDRESS`."""
    found = ""
    for line in text.splitlines():
        if b"wandb" in line or b"View run" in line:
            for each in _ADDRESS.findall(line):
                found = each.decode("utf-8", "replace").rstrip(".")
    return found
