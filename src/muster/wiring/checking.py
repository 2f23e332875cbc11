"""Checks a campaign before anything is spent: its file, its commands, this machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path
from typing import Any

from muster import __version__
from muster.acts.check import Check, Machine, advise, locate
from muster.acts.later import not_yet
from muster.acts.preflight import preflight
from muster.domain.campaign import Campaign
from muster.domain.errors import CampaignInvalid, Mistake, MusterError
from muster.execute.gpus import GpuWatch, find_gpus
from muster.observe.code import code_identity
from muster.ports.clock import Clock, SystemClock, iso
from muster.store.place import refuse_bad_place
from muster.wiring.desk import FILE
from muster.wiring.taking import read

RECORD = "preflight.json"


def check(root: Path) -> Check:
    """Every mistake there is; the record of this machine is saved only for a campaign without any."""
    file = root / FILE
    try:
        found = read(file)
    except CampaignInvalid as invalid:
        return Check(str(file), invalid.mistakes, preflight=survey_machine(root, None).record)
    machine = survey_machine(root, found.campaign)
    noticed = [*preflight(found.campaign, str(root), os.environ), *not_yet(found.campaign)]
    noticed.extend(advise(found.campaign, machine))
    mistakes = locate([each for each in noticed if each.level == "error"], found.text)
    warnings = [*found.warnings, *locate([each for each in noticed if each.level == "warning"], found.text)]
    saved, unsaved = (None, None) if mistakes else _save(root, machine)
    if unsaved:
        warnings.append(unsaved)
    return Check(str(file), mistakes, tuple(warnings), machine.record, saved)


def survey_machine(root: Path, campaign: Campaign | None, clock: Clock | None = None) -> Machine:
    gpus = tuple({"index": g.index, "name": g.name, "busy": g.busy, "why": g.why} for g in GpuWatch(find_gpus).gpus)
    disk = _disk(root)
    folders = [str(root)] if campaign is None else sorted({job.cwd or str(root) for job in campaign.jobs})
    record = {
        "at": iso((clock or SystemClock()).wall()),
        "muster": __version__,
        "gpus": list(gpus),
        "driver": _driver(),
        "disk": disk,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "code": {folder: dict(code_identity(folder)) for folder in folders if Path(folder).is_dir()},
    }
    return Machine(gpus, disk["free_bytes"] if disk else None, record)


def _disk(root: Path) -> dict[str, Any] | None:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return None
    return {"path": str(root), "free_bytes": usage.free, "total_bytes": usage.total}


def _driver() -> str | None:
    """The first line of the kernel module's own word; None without an NVIDIA driver."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().splitlines()[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return None


def _save(root: Path, machine: Machine) -> tuple[str | None, Mistake | None]:
    path = root / ".muster" / RECORD
    partial = path.with_name(f".{RECORD}.{os.getpid()}")
    try:
        refuse_bad_place(root)
        path.parent.mkdir(exist_ok=True)
        partial.write_text(json.dumps(machine.record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    except (MusterError, OSError) as error:
        why = error.message if isinstance(error, MusterError) else error.strerror or str(error)
        hint = error.hint if isinstance(error, MusterError) else ""
        return None, Mistake(f"the preflight record was not saved: {why}", hint=hint, level="warning")
    return str(path), None
