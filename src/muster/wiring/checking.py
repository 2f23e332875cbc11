"""Checks a campaign before anything is spent: its file, its commands, this machine, its own Python environments."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster import __version__
from muster.acts.check import Check, Machine, advise, locate
from muster.acts.environments import judge
from muster.acts.gate_check import gate_mistakes, missing_files
from muster.acts.later import not_yet
from muster.acts.looks import exact_test
from muster.acts.periods import period_warnings
from muster.acts.preflight import preflight
from muster.acts.proposer_check import proposer_mistakes
from muster.domain.campaign import Campaign
from muster.domain.errors import CampaignInvalid, Mistake, MusterError
from muster.execute.gpus import GpuWatch, find_gpus
from muster.observe.code import Seen, see_code
from muster.observe.driver import driver
from muster.ports.clock import Clock, SystemClock, iso
from muster.ports.write_files import make_private_folder, write_atomically
from muster.store.newer import refuse_newer_state
from muster.store.place import refuse_bad_place
from muster.wiring.asking import Asking, ask_environments, note_left_out, whom_to_ask
from muster.wiring.codes import CodeReader, keep
from muster.wiring.desk import FILE
from muster.wiring.fitting import jobs_to_do, known_state, no_slots
from muster.wiring.gate_rows import past_rows
from muster.wiring.other_homes import not_coordinated
from muster.wiring.owner import refuse_stranger, stranger
from muster.wiring.taking import Read, read

RECORD = "preflight.json"


def check(root: Path, *, quick: bool = False, ask: bool = False, asking: Asking = lambda _: None) -> Check:
    """Every mistake there is; the record of this machine is saved only for a campaign without any.

    `ask` asks the campaign's own Pythons what they see, which executes them; `quick` asks none.
    """
    file = root / FILE
    if stranger(root) is None:  # of somebody else's state only the log is opened: SQLite would lay files beside it
        refuse_newer_state(root / ".muster")
    try:
        found = read(file)
    except CampaignInvalid as invalid:
        return Check(str(file), invalid.mistakes, preflight=survey_machine(root, None).record)
    code = CodeReader(found.campaign, root)
    machine = survey_machine(root, found.campaign, code=code)
    noticed = _noticed(root, found, machine)
    if not quick and not any(each.level == "error" for each in noticed):
        asked = ask_environments(found.campaign, root, machine.gpus, whom_to_ask(root, ask=ask), asking)
        noticed += [one for each in asked if each.answer for one in judge(each.environment, each.answer)]
        noticed += note_left_out(asked)
        machine = _with(machine, environments=[each.record for each in asked])
    return _told(root, file, found, machine, noticed, code)


def _noticed(root: Path, found: Read, machine: Machine) -> list[Mistake]:
    campaign, state = found.campaign, known_state(root)
    return [
        *preflight(campaign, str(root), os.environ),
        *not_yet(campaign),
        *gate_mistakes(campaign, lambda name: past_rows(campaign, state, name)),
        *missing_files(campaign, str(root)),
        *proposer_mistakes(campaign.loop, found.bases, root),
        *advise(campaign, machine, jobs_to_do(campaign, state)),
        *period_warnings(campaign, str(root), state.declared if state else ()),
        *exact_test(campaign),
        *not_coordinated(),
        *no_slots(),
    ]


def _told(root: Path, file: Path, found: Read, machine: Machine, noticed: Sequence[Mistake], code: CodeReader) -> Check:
    placed = locate(noticed, found.text)

    def of(level: str) -> tuple[Mistake, ...]:
        return tuple(each for each in placed if each.level == level)

    mistakes, failures, notes = of("error"), of("failure"), of("note")
    warnings = [*found.warnings, *of("warning")]
    said = {"failures": failures, "warnings": warnings, "notes": notes}
    machine = _with(machine, **{name: [each.message for each in these] for name, these in said.items()})
    saved = None
    if not mistakes:
        saved, unsaved = _save(root, machine, code)
        warnings += [unsaved] if unsaved else []
    return Check(str(file), mistakes, tuple(warnings), failures, notes, machine.record, saved)


def _with(machine: Machine, **more: Any) -> Machine:
    return replace(machine, record={**machine.record, **more})


def survey_machine(
    root: Path, campaign: Campaign | None, clock: Clock | None = None, code: CodeReader | None = None
) -> Machine:
    gpus = tuple({"index": g.index, "name": g.name, "busy": g.busy, "why": g.why} for g in GpuWatch(find_gpus).gpus)
    disk = _disk(root)
    folders = [str(root)] if campaign is None else sorted({job.cwd or str(root) for job in campaign.jobs})
    nvidia = driver()
    record = {
        "at": iso((clock or SystemClock()).wall()),
        "muster": __version__,
        "gpus": list(gpus),
        "driver": nvidia["version"],
        "cuda": nvidia["cuda"],
        "disk": disk,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "platform": _platform(),
        "code": {folder: dict(_see(folder, code).code) for folder in folders if Path(folder).is_dir()},
    }
    return Machine(gpus, disk["free_bytes"] if disk else None, record)


def _see(folder: str, code: CodeReader | None) -> Seen:
    return code.see(folder) if code else see_code(folder)


def _platform() -> str:
    """As `platform.platform` has it, which runs `uname`, whichever comes first on PATH."""
    system = os.uname()
    return f"{system.sysname}-{system.release}-{system.machine}-with-{''.join(platform.libc_ver())}"


def _disk(root: Path) -> dict[str, Any] | None:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return None
    return {"path": str(root), "free_bytes": usage.free, "total_bytes": usage.total}


def _save(root: Path, machine: Machine, code: CodeReader) -> tuple[str | None, Mistake | None]:
    path = root / ".muster" / RECORD
    try:
        refuse_stranger(root)
        refuse_bad_place(root)
        make_private_folder(path.parent)
        for folder, seen in code.seen.items():
            machine.record["code"][folder]["diff"] = keep(path.parent, seen)
        write_atomically(
            path, (json.dumps(machine.record, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
        )
    except (MusterError, OSError) as error:
        why = error.message if isinstance(error, MusterError) else error.strerror or str(error)
        hint = error.hint if isinstance(error, MusterError) else ""
        return None, Mistake(f"the preflight record was not saved: {why}", hint=hint, level="warning")
    return str(path), None
