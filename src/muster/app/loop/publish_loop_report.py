"""`muster loop report`: gathers, draws and writes `reports/loop/` with its stamp, which rests on every attempt that
the report names. matplotlib is imported only for the curve.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import muster
from muster.app.campaign.campaign_digests import count_decisions_by_people, digest_campaign_state
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.loop_progress import rounds_at_most
from muster.app.campaign.stamp import CellStamp, StampBasis, stamp_footer
from muster.app.campaign.stamp_files import REPORTS_FOLDER, DerivedFile, publish_derived_files
from muster.app.loop.loop_facts import (
    LoopFacts,
    LoopReportContext,
    LoopRun,
    LoopRunPlace,
    LoopVariant,
    RuleGains,
    gather_loop_facts,
)
from muster.app.loop.loop_report import loop_report_markdown
from muster.app.loop.propose_round import loop_settings_of_status, observe_loop_campaign, read_tried_variants
from muster.app.metrics.cell_history import attempt_that_counts, output_of_cell, stamp_loop_cells
from muster.files.state_folder import attempt_folder
from muster.model.errors import MusterError
from muster.readers.file_hashes import HashCache
from muster.readers.records.wandb_runs import logged_wandb_url
from muster.rules.metric_summary import metric_summary_as_json
from muster.rules.rank_variants import TriedVariant
from muster.text.describe_run import describe_resumed_log
from muster.text.phrases import english_text


def loop_summary_as_json(facts: LoopFacts, files: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "muster": 1,
        "campaign": facts.campaign,
        "as_of": facts.at,
        "version": facts.version,
        "job": facts.job,
        "rank": {"by": facts.by, "better": facts.better} if facts.by else None,
        "round": facts.round,
        "rounds": facts.most,
        "stopped": facts.stopped or None,
        "over": facts.over,
        "repeats": facts.repeats,
        "best": _best_variant_as_json(facts),
        "identical": facts.identical,
        "noise": facts.noise,
        "course": [asdict(each) for each in facts.course],
        "rules": [_rule_gains_as_json(each) for each in facts.rules],
        "variants": [_loop_variant_as_json(each, facts) for each in facts.variants],
        "trouble": [
            {"cell": run.cell, "verdict": run.verdict, "because": _cause_or_unread_reason(run)}
            for run in facts.runs
            if run.trouble
        ],
        "keys": list(facts.keys),
        "files": list(files),
    }


def _best_variant_as_json(facts: LoopFacts) -> dict[str, Any] | None:
    best, against = facts.best, facts.against
    if best is None:
        return None
    top = facts.top
    return {
        "variant": best.name,
        "round": best.variant.round,
        **_score_as_json(best),
        "of": sum(bool(each.values) for each in facts.variants),
        "against": asdict(against) if against else None,
        "highest_mean": top.name if top else None,
    }


def _score_as_json(of: LoopVariant) -> dict[str, Any]:
    return {"mean": of.mean if of.values else None, "sd": of.sd, "n": of.n, "values": list(of.values)}


def _rule_gains_as_json(each: RuleGains) -> dict[str, Any]:
    return {
        "rule": each.rule,
        "reason": each.reason,
        "made": each.made,
        "scored": len(each.gains),
        "better": each.better,
        "mean_gain": each.mean,
        "interval": each.interval,
        "gains": list(each.gains),
    }


def _loop_variant_as_json(of: LoopVariant, facts: LoopFacts) -> dict[str, Any]:
    return {
        **asdict(of.variant),
        "config": of.config,
        "source": of.variant.source or None,
        "score": _score_as_json(of) | {"because": (of.unscored or None) if facts.by else None},
        "gain": of.gain,
        "runs": [_loop_run_as_json(run, facts) for run in of.runs],
    }


def _loop_run_as_json(run: LoopRun, facts: LoopFacts) -> dict[str, Any]:
    return {
        "cell": run.cell,
        "verdict": run.verdict,
        "because": _cause_or_unread_reason(run),
        "history": describe_resumed_log(run.resumed) if run.resumed else None,
        "output": run.output or None,
        "wandb": run.url or None,
        "metrics": {
            key: metric_summary_as_json(each, facts.directions.get(key)) for key, each in run.summaries.items()
        },
    }


def _cause_or_unread_reason(run: LoopRun) -> str | None:
    unread = f"no readable history: {run.unread}" if run.unread and not run.summaries else ""
    return "; ".join(english_text(part) for part in (run.why, unread) if part) or None


def draw_lineage_picture(facts: LoopFacts) -> dict[str, bytes]:
    from muster.app.loop.lineage_pictures import lineage_as_svg

    return {"lineage.svg": lineage_as_svg(facts)}


def names_missing_in_curve(facts: LoopFacts) -> list[str]:
    """Names that the curve leaves out."""
    if not facts.course:
        return []
    from muster.app.facts.drawing.figure_style import with_bundled_fonts_only

    with with_bundled_fonts_only():
        from muster.app.loop.best_so_far_picture import undrawable_names
    return undrawable_names(facts)


def draw_best_so_far_curve(facts: LoopFacts) -> dict[str, bytes]:
    """Nothing where no variant has a score."""
    if not facts.course:
        return {}
    from muster.app.facts.drawing.figure_style import with_bundled_fonts_only

    with with_bundled_fonts_only():
        from muster.app.loop.best_so_far_picture import BEST_SO_FAR_NAME, best_so_far_files
    return {f"{BEST_SO_FAR_NAME}.{suffix}": data for suffix, data in best_so_far_files(facts).items()}


LOOP_REPORT_FOLDER = f"{REPORTS_FOLDER}/loop"
MADE, COMMAND = "loop", "muster loop report"


@dataclass(frozen=True, slots=True)
class WrittenLoopReport:
    facts: LoopFacts
    summary: dict[str, Any]
    files: tuple[str, ...]
    undrawn: str = ""  # why there is no curve


def write_loop_report(desk: CampaignHandle, status: Status, known: Sequence[TriedVariant] = ()) -> WrittenLoopReport:
    """`known`: variants whose runs have been read already, and are over."""
    settings = loop_settings_of_status(status)
    cells = stamp_loop_cells(desk, status, HashCache(desk.state))  # first: what is logged from here on makes it stale
    found = read_tried_variants(desk, status, known)
    asked = LoopReportContext(
        status.as_of,
        muster.__version__,
        str(desk.root),
        rounds_at_most(status.state),
        status.controller.alive,
        {
            cell.record.cell.id: _place_of_run(desk, cell)
            for cell in status.cells
            if cell.record.cell.job == settings.job
        },
    )
    return _publish_loop_files(desk, status, gather_loop_facts(status.state, found, settings, asked), cells)


def write_report_after_round(desk: CampaignHandle, before: Sequence[TriedVariant]) -> str:
    """The report of a round that was just taken in; why it could not be written. A round never fails for its report."""
    try:
        write_loop_report(desk, observe_loop_campaign(desk), before)
    except MusterError as error:
        return str(error)
    except Exception as error:  # whatever it is: the round goes on
        return f"{type(error).__name__}: {error}"
    return ""


def _place_of_run(desk: CampaignHandle, cell: CellStatus) -> LoopRunPlace:
    attempt = attempt_that_counts(cell.record)
    if attempt is None:
        return LoopRunPlace()
    url = logged_wandb_url(str(attempt_folder(desk.state, *attempt.place)))
    return LoopRunPlace(output_of_cell(desk.state, cell) or "", url)


def _publish_loop_files(
    desk: CampaignHandle, status: Status, facts: LoopFacts, cells: Mapping[str, CellStamp]
) -> WrittenLoopReport:
    pictures, undrawn, left_out = draw_lineage_picture(facts), "", list[str]()
    try:
        pictures |= draw_best_so_far_curve(facts)
        left_out = names_missing_in_curve(facts)
    except Exception as error:  # a text without its picture is better than none
        undrawn = f"{type(error).__name__}: {error}"
    files = [f"{LOOP_REPORT_FOLDER}/{name}" for name in ("summary.md", "summary.json", *pictures)]
    summary = loop_summary_as_json(facts, files)
    basis = _loop_stamp_basis(desk, status, facts, cells)
    text = loop_report_markdown(facts, list(pictures), undrawn, left_out)
    text += f"\n---\n{stamp_footer(basis, facts.version, files[0])}; {facts.at}\n"
    data = json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False)
    derived = [
        DerivedFile(files[0], text.encode("utf-8", "replace"), "text"),
        DerivedFile(files[1], f"{data}\n".encode("utf-8", "replace"), "text"),
        *(DerivedFile(f"{LOOP_REPORT_FOLDER}/{name}", data, "figure") for name, data in pictures.items()),
    ]
    kept = publish_derived_files(desk.root, MADE, COMMAND, status.as_of, muster.__version__, basis, derived)
    return WrittenLoopReport(facts, summary, kept.written, undrawn)


def _loop_stamp_basis(
    desk: CampaignHandle, status: Status, facts: LoopFacts, cells: Mapping[str, CellStamp]
) -> StampBasis:
    """Missing is what is not over: a run that died is told of, and no later report will have more of it.

    Of campaign.yaml that counts which was taken in, and `state` has its hash.
    """
    told = digest_campaign_state(status.state, count_decisions_by_people(desk.store.events()))
    missing = tuple(run.cell for run in facts.runs if not run.over)
    every = len(facts.runs)
    return StampBasis(facts.campaign, {}, cells, every - len(missing), every, missing, state=told)
