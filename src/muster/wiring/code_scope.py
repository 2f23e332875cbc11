"""What a campaign says about code: where its runs write, which is none, and the scripts that its commands name."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from muster.domain.campaign import Campaign, Job
from muster.domain.cell import all_cells
from muster.domain.template import render
from muster.observe.code import Scope
from muster.observe.source_files import is_code
from muster.plan.commands import Place, command, values

_WORDS = re.compile(r"[^\s\"';|&()<>]+")


class Scopes:
    """Of one campaign: by working folder, found when it is asked for."""

    def __init__(self, campaign: Campaign, root: str) -> None:
        self.campaign, self.root = campaign, root
        self._outputs: list[str] | None = None
        self._words: dict[str, set[str]] = {}

    def __call__(self, cwd: str) -> Scope:
        if self._outputs is None:
            self._outputs = self._read()
        scripts = tuple(sorted(set(_scripts(cwd, self._words.get(cwd, set())))))
        outputs = [each for each in self._outputs if not any(_holds(each, script) for script in scripts)]
        return Scope(tuple(outputs), scripts)

    def _read(self) -> list[str]:
        outputs: dict[str, None] = {}
        for cell in all_cells(self.campaign):
            job = self.campaign.job(cell.job)
            cwd = job.cwd or self.root
            place = Place(n=0, out="*", slots=("*",), outputs=dict.fromkeys(job.needs, "*"))
            filled = {
                **values(job, cell, place),
                "attempt": "*",
                "gpu": "*",
                "device": "*",
                "port": "*",
                "last.checkpoint": "",
            }
            named = {name: text if text == "*" else glob.escape(text) for name, text in filled.items()}
            for template in _templates(job):
                outputs[str(Path(glob.escape(cwd)) / render(template, named))] = None
            self._words.setdefault(cwd, set()).update(_candidates(command(job, filled)))
        return list(outputs)


def _templates(job: Job) -> Iterator[str]:
    """Places where its runs write; `{out}` is Muster's own."""
    if job.output != "{out}":
        yield job.output
    for each in (*(result.path for result in job.results if result.kind != "stdout"), *job.proof.files):
        if each.startswith("/"):
            yield each


def _candidates(words: list[str]) -> Iterator[str]:
    parts = [part for word in words for part in _WORDS.findall(word)]
    for before, part in zip(["", *parts], parts, strict=False):
        if before == "-m":
            yield f"{part.replace('.', '/')}.py"
            yield f"{part.replace('.', '/')}/__main__.py"
        elif is_code(part):
            yield part.rpartition("=")[2]


def _scripts(cwd: str, words: set[str]) -> Iterator[str]:
    for word in words:
        path = os.path.normpath(os.path.join(cwd, word))  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            yield path


def _holds(output: str, script: str) -> bool:
    """A pattern as wide as this says nothing about where runs write."""
    return fnmatch.fnmatch(script, output) or fnmatch.fnmatch(script, f"{output}/*")
