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
from muster.app.campaign.ask_environments import (
    OnAskingEnvironment,
    ask_environments,
    note_unasked_environments,
    which_pythons_to_ask,
)
from muster.app.campaign.campaign_code import CodeReader, keep_uncommitted_code
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, load_known_state
from muster.app.campaign.check_gates_and_loop import find_gate_mistakes, find_missing_tail_seeds, find_proposer_mistakes
from muster.app.campaign.load_campaign import (
    LoadedCampaign,
    find_closed_slots,
    find_unfinished_jobs,
    read_campaign_file,
)
from muster.app.campaign.preflight.check_report import CheckResult, MachineFacts, find_machine_mistakes
from muster.app.campaign.preflight.config_warnings import warn_of_long_periods
from muster.app.campaign.preflight.missing_programs import find_preflight_mistakes, find_unsupported_keys
from muster.app.campaign.preflight.python_environments import find_environment_mistakes
from muster.engine.ports.clock import Clock, SystemClock
from muster.engine.ports.services import installed_services
from muster.files.atomic_write import make_private_folder, write_atomically
from muster.files.campaign_ownership import find_foreign_owner, refuse_foreign_campaign
from muster.files.json_codec import plain_value
from muster.files.state_folder import refuse_bad_state_folder
from muster.model.calendar import format_iso_time
from muster.model.campaign import Campaign
from muster.model.errors import CampaignInvalid, Mistake, MusterError
from muster.readers.gate_traces import rows_of_past_runs
from muster.readers.source_code import CodeState, read_code_state
from muster.spec.lint_exact_test import warn_exact_test_cannot_veto
from muster.spec.read_yaml import locate_mistakes
from muster.text.phrases import phrase

PREFLIGHT_RECORD = "preflight.json"


def check_campaign(
    root: Path, *, quick: bool = False, ask: bool = False, asking: OnAskingEnvironment = lambda _: None
) -> CheckResult:
    """Every mistake there is; the record of this machine is saved only for a campaign without any.

    `ask` asks the campaign's own Pythons what they see, which executes them; `quick` asks none.
    """
    file = root / CAMPAIGN_FILE_NAME
    if (
        find_foreign_owner(root) is None
    ):  # of somebody else's state only the log is opened: SQLite would lay files beside it
        installed_services().storage.refuse_newer(root / ".muster")
    try:
        found = read_campaign_file(file)
    except CampaignInvalid as invalid:
        return CheckResult(str(file), invalid.mistakes, preflight=gather_machine_facts(root, None).record)
    code = CodeReader(found.campaign, root)
    machine = gather_machine_facts(root, found.campaign, code=code)
    noticed = _find_all_mistakes(root, found, machine)
    if not quick and not any(each.level == "error" for each in noticed):
        asked = ask_environments(found.campaign, root, machine.gpus, which_pythons_to_ask(root, ask=ask), asking)
        noticed += [
            one for each in asked if each.answer for one in find_environment_mistakes(each.environment, each.answer)
        ]
        noticed += note_unasked_environments(asked)
        machine = _with_record_entries(machine, environments=[each.record for each in asked])
    return _build_check_result(root, file, found, machine, noticed, code)


def _find_all_mistakes(root: Path, found: LoadedCampaign, machine: MachineFacts) -> list[Mistake]:
    campaign, state = found.campaign, load_known_state(root)
    return [
        *find_preflight_mistakes(campaign, str(root), os.environ),
        *find_unsupported_keys(campaign),
        *find_gate_mistakes(campaign, lambda name: rows_of_past_runs(campaign, state, name)),
        *find_missing_tail_seeds(campaign, str(root)),
        *find_proposer_mistakes(campaign.loop, found.bases, root),
        *find_machine_mistakes(campaign, machine, find_unfinished_jobs(campaign, state)),
        *warn_of_long_periods(campaign, str(root), state.declared if state else ()),
        *warn_exact_test_cannot_veto(campaign),
        *installed_services().machine.note_uncoordinated_users(),
        *find_closed_slots(),
    ]


def _build_check_result(
    root: Path, file: Path, found: LoadedCampaign, machine: MachineFacts, noticed: Sequence[Mistake], code: CodeReader
) -> CheckResult:
    placed = locate_mistakes(noticed, found.text)

    def of(level: str) -> tuple[Mistake, ...]:
        return tuple(each for each in placed if each.level == level)

    mistakes, failures, notes = of("error"), of("failure"), of("note")
    warnings = [*found.warnings, *of("warning")]
    said = {"failures": failures, "warnings": warnings, "notes": notes}
    machine = _with_record_entries(machine, **{name: [each.message for each in these] for name, these in said.items()})
    saved = None
    if not mistakes:
        saved, unsaved = _save_preflight_record(root, machine, code)
        warnings += [unsaved] if unsaved else []
    return CheckResult(str(file), mistakes, tuple(warnings), failures, notes, machine.record, saved)


def _with_record_entries(machine: MachineFacts, **more: Any) -> MachineFacts:
    return replace(machine, record={**machine.record, **more})


def gather_machine_facts(
    root: Path, campaign: Campaign | None, clock: Clock | None = None, code: CodeReader | None = None
) -> MachineFacts:
    local = installed_services().machine
    gpus = tuple({"index": g.index, "name": g.name, "busy": g.busy, "why": g.why} for g in local.gpus())
    disk = _disk_facts(root)
    folders = [str(root)] if campaign is None else sorted({job.cwd or str(root) for job in campaign.jobs})
    nvidia = local.nvidia_driver()
    record = {
        "at": format_iso_time((clock or SystemClock()).wall()),
        "muster": __version__,
        "gpus": list(gpus),
        "driver": nvidia["version"],
        "cuda": nvidia["cuda"],
        "disk": disk,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "platform": _platform_name(),
        "code": {folder: dict(_read_code_of_folder(folder, code).code) for folder in folders if Path(folder).is_dir()},
    }
    return MachineFacts(gpus, disk["free_bytes"] if disk else None, record)


def _read_code_of_folder(folder: str, code: CodeReader | None) -> CodeState:
    return code.see(folder) if code else read_code_state(folder)


def _platform_name() -> str:
    """As `platform.platform` has it, which runs `uname`, whichever comes first on PATH."""
    system = os.uname()
    return f"{system.sysname}-{system.release}-{system.machine}-with-{''.join(platform.libc_ver())}"


def _disk_facts(root: Path) -> dict[str, Any] | None:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return None
    return {"path": str(root), "free_bytes": usage.free, "total_bytes": usage.total}


def _save_preflight_record(root: Path, machine: MachineFacts, code: CodeReader) -> tuple[str | None, Mistake | None]:
    path = root / ".muster" / PREFLIGHT_RECORD
    try:
        refuse_foreign_campaign(root)
        refuse_bad_state_folder(root)
        make_private_folder(path.parent)
        for folder, seen in code.seen.items():
            machine.record["code"][folder]["diff"] = keep_uncommitted_code(path.parent, seen)
        write_atomically(
            path,
            (json.dumps(plain_value(machine.record), ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace"),
        )
    except (MusterError, OSError) as error:
        why = error.message if isinstance(error, MusterError) else error.strerror or str(error)
        hint = error.hint if isinstance(error, MusterError) else ""
        return None, Mistake(phrase("campaign.preflight_record_not_saved", reason=why), hint=hint, level="warning")
    return str(path), None
