"""No path of the machine that something was made on, no registry's host, and the glossary's words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from documents import DOCUMENTS, ROOT, name, prose

HOSTS = ["pypi" + ".org", "python" + "hosted", "npm" + "js"]  # in parts: this file is looked at too
PLACES = [r"(?<![\w.~-])/root/", r"/home/(?!me/)\w+/", r"/Users/\w+/", re.escape(f"{ROOT}/")]
SYNONYMS = {  # one word for one thing
    r"\btasks?\b": "cell or job",
    r"\btrials?\b": "attempt",
    r"\bexperiment run\b": "attempt",
    r"\brun ids?\b": "cell, or token of an attempt",
    r"\bworkers?\b": "slot, or shim",
    r"\bscheduler\b": "controller",
}


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git repository")
    found = {ROOT / file for file in listed.stdout.split("\0") if file} | set(DOCUMENTS)
    return sorted(path for path in found if path.is_file())


def test_no_path_or_host_of_a_build_machine() -> None:
    wrong = re.compile("|".join([*PLACES[: 5 if len(ROOT.parts) > 2 else 4], *map(re.escape, HOSTS)]))
    found = []
    for path in tracked():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{name(path)}:{number}: {line.strip()[:100]}" for number, line in enumerate(lines, 1) if wrong.search(line)
        ]
    assert [line for line in found if not line.startswith(name(Path(__file__)))] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_documents_use_the_words_of_the_glossary(path: Path) -> None:
    found = [
        f"{name(path)}:{number}: say {better}: {line.strip()[:80]}"
        for number, line in prose(path)
        for pattern, better in SYNONYMS.items()
        if re.search(pattern, re.sub(r"`[^`]*`", "", line), re.IGNORECASE)
    ]
    assert not found
