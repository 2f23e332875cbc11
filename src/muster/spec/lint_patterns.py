"""Warns of regular expressions that may take for ever on some line of a run."""

from __future__ import annotations

from muster.domain.pattern_cost import may_explode
from muster.spec.lint import Lint
from muster.spec.model_job import Job

WHAT = "on some lines this pattern tries more ways than a machine can: it repeats what repeats, or skips at many places"
HINT = "write what may be skipped, [^,]* for .*, and (?:a+)b for (?:a+)+b; such a line is given up after a second"


def lint_patterns(lint: Lint, name: str, job: Job) -> None:
    for at, entry in enumerate(job.progress):
        if entry.stdout is not None and may_explode(entry.stdout):
            lint.warn(("jobs", name, "progress", at, "stdout"), WHAT, HINT)
    for key, result in job.results.items():
        if result.stdout is not None and may_explode(result.stdout):
            lint.warn(("jobs", name, "results", key, "stdout"), WHAT, HINT)
