"""Below which folders the runs of a campaign write. Pure: texts of campaign.yaml, and what was recorded."""

from __future__ import annotations

import posixpath
import re

from muster.domain.campaign import Job
from muster.domain.state import CampaignState

_OPEN = re.compile(r"[{*?\[]")  # where a template or a glob begins


def output_folders(state: CampaignState, root: str) -> tuple[str, ...]:
    """Absolute; the part of each output that is the same for all cells, and every folder that was adopted."""
    jobs = (*state.campaign.jobs, *state.former_jobs)
    found = dict.fromkeys(_fixed_part(job, root) for job in jobs)
    for record in state.cells.values():
        for attempt in record.attempts:
            if attempt.adopted and attempt.outcome and attempt.outcome.output:
                found[attempt.outcome.output] = None
    return tuple(each for each in found if each not in ("/", ""))


def _fixed_part(job: Job, root: str) -> str:
    """`runs/*_{config}_{seed}` -> runs; `{out}` is a folder of the attempt."""
    opens = _OPEN.search(job.output)
    if "{out}" in job.output:
        return f"{root}/.muster/attempts"
    fixed = posixpath.dirname(job.output[: opens.start()]) if opens else job.output
    return posixpath.normpath(posixpath.join(job.cwd or root, fixed))
