"""`reports/loop/summary.json` and the object of `muster loop report --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from muster.report.loop_facts import LoopFacts, LoopRun, LoopVariant, RulePays
from muster.report.resumed import resumed_text
from muster.rounds.summary import facts as numbers


def summary_json(facts: LoopFacts, files: Sequence[str] = ()) -> dict[str, Any]:
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
        "best": _best(facts),
        "identical": facts.identical,
        "noise": facts.noise,
        "course": [asdict(each) for each in facts.course],
        "rules": [_rule(each) for each in facts.rules],
        "variants": [_variant(each, facts) for each in facts.variants],
        "trouble": [
            {"cell": run.cell, "verdict": run.verdict, "because": _because(run)} for run in facts.runs if run.trouble
        ],
        "keys": list(facts.keys),
        "files": list(files),
    }


def _best(facts: LoopFacts) -> dict[str, Any] | None:
    best, against = facts.best, facts.against
    if best is None:
        return None
    top = facts.top
    return {
        "variant": best.name,
        "round": best.variant.round,
        **_score(best),
        "of": sum(bool(each.values) for each in facts.variants),
        "against": asdict(against) if against else None,
        "highest_mean": top.name if top else None,
    }


def _score(of: LoopVariant) -> dict[str, Any]:
    return {"mean": of.mean if of.values else None, "sd": of.sd, "n": of.n, "values": list(of.values)}


def _rule(each: RulePays) -> dict[str, Any]:
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


def _variant(of: LoopVariant, facts: LoopFacts) -> dict[str, Any]:
    return {
        **asdict(of.variant),
        "config": of.config,
        "source": of.variant.source or None,
        "score": _score(of) | {"because": (of.unscored or None) if facts.by else None},
        "gain": of.gain,
        "runs": [_run(run, facts) for run in of.runs],
    }


def _run(run: LoopRun, facts: LoopFacts) -> dict[str, Any]:
    return {
        "cell": run.cell,
        "verdict": run.verdict,
        "because": _because(run),
        "history": resumed_text(run.resumed) if run.resumed else None,
        "output": run.output or None,
        "wandb": run.url or None,
        "metrics": {key: numbers(each, facts.directions.get(key)) for key, each in run.summaries.items()},
    }


def _because(run: LoopRun) -> str | None:
    unread = f"no readable history: {run.unread}" if run.unread and not run.summaries else ""
    return "; ".join(part for part in (run.why, unread) if part) or None
