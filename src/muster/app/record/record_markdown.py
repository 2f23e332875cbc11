"""The written record, as Markdown: what anybody needs to understand a campaign without having been there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.app.facts.record_facts import (
    AbsentCells,
    CodeUse,
    JobScope,
    Observation,
    ProposedFix,
    RecordFacts,
    SeedTally,
)
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.escape_markup import escape_sentence
from muster.text.number_format import format_file_size
from muster.text.sentences import format_inline_code, format_moment, shorten_quote, strip_full_stop

MOST_PATHS = 4  # of logs, for one observation
MOST_SOURCE_FILES = 6  # of source, for one state of the code


def record_markdown(facts: RecordFacts) -> str:
    say = load_catalogue("record", facts.language)
    sections = (
        ("scope", _scope_section),
        ("changes", _changes_section),
        ("seen", _observations_section),
        ("status", _status_section),
        ("missing", _missing_section),
        ("means", _meaning_section),
        ("fix", _fix_section),
        ("evidence", _record_evidence_section),
    )
    lines = [f"# {say('title', campaign=escape_sentence(facts.campaign))}", "", _record_lead(facts, say)]
    for name, write in sections:
        lines += ["", f"## {say(f'section.{name}')}", "", *write(facts, say)]
    return "\n".join(lines) + "\n"


def _record_lead(facts: RecordFacts, say: Catalogue) -> str:
    running = _count_running_cells(facts)
    now = say("now.running", n=running) if running else say("now.nothing")
    at = (
        f"{format_moment(facts.at)} ({facts.at[-6:]})"
        if re.search(r"[+-]\d\d:\d\d$", facts.at)
        else format_moment(facts.at)
    )
    return say("lead", at=at, done=facts.done, declared=facts.declared, now=now, version=facts.version)


def _count_running_cells(facts: RecordFacts) -> int:
    return sum(facts.counts.get(state, 0) for state in ("RUNNING", "QUIET", "STALLED"))


# -- scope


def _scope_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    yield "- " + say("scope.folder", campaign=facts.campaign, folder=facts.folder)
    axes = [
        say("scope.axis", name=escape_sentence(name), values=say.list([escape_sentence(each) for each in values]))
        for name, values in facts.axes
    ]
    if axes:
        yield "- " + say("scope.matrix", axes=" × ".join(axes))
        yield from (f"  - {_axis_value_line(*each, say)}" for each in facts.values)
    yield "- " + say("scope.slots", slots=facts.slots)
    if facts.env:
        yield "- " + say("scope.env_all", env=_environment_text(facts.env, say))
    if facts.price:
        price, currency, per, budget = facts.price
        capped = say("scope.budget", budget=f"{budget:g}", currency=currency) if budget is not None else ""
        yield "- " + say(f"scope.price_{per}", price=f"{price:g}", currency=currency, budget=capped)
    if facts.hold:
        at, who, why = facts.hold
        yield "- " + say("scope.hold", at=format_moment(at), who=escape_sentence(who), why=escape_sentence(why))
    for job in facts.jobs:
        yield from _job_scope_lines(job, facts, say)


def _job_scope_lines(job: JobScope, facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    cells = say.count("cell", job.cells)
    product = " × ".join(f"{name} ({count})" for name, count in job.axes)
    key = "scope.once" if not job.axes else "scope.excluded" if job.excluded else "scope.product"
    steps = say("scope.steps", n=f"{job.steps:,}") if job.steps else ""
    shown = say(key, product=product, cells=cells, n=job.excluded)
    yield "- " + say("scope.job", job=job.name, cells=shown, steps=steps)
    yield "  - " + say("scope.command", command=format_inline_code(job.command))
    if job.within:
        yield "  - " + say("scope.within", within=format_inline_code(job.within))
    if job.cwd != facts.folder:
        yield "  - " + say("scope.cwd", cwd=job.cwd)
    if job.env:
        yield "  - " + say("scope.env", env=_environment_text(job.env, say))
    if job.needs:
        yield "  - " + say("scope.needs", needs=say.list(job.needs))
    yield "  - " + say("scope.proof" if job.proof else "scope.no_proof")


def _axis_value_line(axis: str, value: str, args: str, note: str, proxy: str, say: Catalogue) -> str:
    adds = say("scope.adds", args=format_inline_code(args)) if args else ""
    stands = say("scope.stands", proxy=escape_sentence(proxy)) if proxy else ""
    told = say("scope.semicolon").join(filter(None, [adds, stands, escape_sentence(note)]))
    return say("scope.value", axis=axis, value=escape_sentence(value), told=told)


def _environment_text(declared: Sequence[tuple[str, str | None]], say: Catalogue) -> str:
    shown = [
        format_inline_code(f"{name}={value}") if value is not None else say("scope.secret", name=name)
        for name, value in declared
    ]
    return say.list_all(shown)


# -- changes


def _changes_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    for text in facts.texts:
        first = text is facts.texts[0]
        key = "change.first" if first else "change.text"
        yield "- " + say(key, at=format_moment(text.at), who=escape_sentence(text.who), file=text.file)
        if text.lines:
            yield from ("  ```diff", *(f"  {shorten_quote(line)}" for line in text.lines), "  ```")
        if text.more:
            yield "  " + say.count("more_line", text.more)
    for each in facts.filters:
        count = say.count("cell", len(each.left_out))
        yield "- " + say(
            "change.filter",
            at=format_moment(each.at),
            who=escape_sentence(each.who),
            only=each.only,
            count=count,
            cells=say.cells(each.left_out),
        )
    decided = [say.count(f"person.{kind}", n) for kind, n in facts.people.items()]
    yield "- " + (say("change.people", list=say.list(decided)) if decided else say("change.none"))
    for cwd in dict.fromkeys(each.cwd for each in facts.code):
        states = [each for each in facts.code if each.cwd == cwd]
        key = "change.one_code" if len(states) == 1 else "change.code"
        yield "- " + say(key, cwd=cwd, states=say("semicolon").join(_code_use_text(each, say) for each in states))
    if facts.files:
        files = sum(count for count, _ in facts.files.values())
        kinds = [f"{say(f'kind.{kind}')} {count:,}" for kind, (count, _) in facts.files.items()]
        total = format_file_size(sum(amount for _, amount in facts.files.values()))
        yield "- " + say("change.files", files=say.count("file", files), size=total, kinds=say.list(kinds))


def _code_use_text(each: CodeUse, say: Catalogue) -> str:
    attempts = say.count("attempt", each.attempts)
    if each.state == "unknown":
        return say("change.unknown", why=each.why or say("change.unreadable"), attempts=attempts)
    if not each.commit:
        known = say("change.hashed", files=_source_file_names(each, say)) if each.files else say("change.untold")
        return say(f"change.{each.state or 'no_repository'}", attempts=attempts, known=known)
    kept = say("change.kept", file=each.diff or each.kept) if each.diff or each.kept else ""
    named = say("change.named", files=_source_file_names(each, say)) if each.files else ""
    dirty = say("change.dirty", dirty=each.dirty, kept=kept) + named if each.dirty else say("change.clean")
    return say("change.commit", commit=each.commit[:12], dirty=dirty, attempts=attempts)


def _source_file_names(each: CodeUse, say: Catalogue) -> str:
    return say.list([format_inline_code(name) for name in each.files], most=MOST_SOURCE_FILES)


# -- observations


def _observations_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    if not facts.seen:
        yield "- " + say("seen.none")
    middle = len(facts.seen) // 2 if facts.unseen else -1
    for number, each in enumerate(facts.seen):
        if number == middle:
            yield "- " + say("seen.unseen", n=facts.unseen)
        yield f"- {_observation_time(each)}{say('colon')}{_observation_text(each, say)}"
        if each.evidence:
            yield "  - " + say(
                "seen.evidence",
                text=say("semicolon").join(format_inline_code(shorten_quote(text)) for text in each.evidence),
            )
        yield from ("  - " + say("seen.line", text=format_inline_code(shorten_quote(text))) for text in each.lines)
        yield from ("  - " + say("seen.path", path=path) for path in each.paths[:MOST_PATHS])
    if facts.quiet:
        yield "- " + say("seen.quiet", times=say.count("time", facts.quiet))


def _observation_text(each: Observation, say: Catalogue) -> str:
    cells = say.cells(each.cells)
    parts = {
        name: shorten_quote(text) if name == "only" else escape_sentence(shorten_quote(text))
        for name, text in each.parts.items()
    }
    key = f"seen.{each.kind}"
    if each.kind == "routine":
        started, done = say.count("attempt", each.count), say.count("attempt", each.done)
        how = "both" if each.count and each.done else "started" if each.count else "done"
        return say(key, what=say(f"seen.routine_{how}", started=started, done=done, n=each.done), cells=cells)
    if each.kind == "refused":
        cells = f" {cells}" if cells else ""
    if each.count > 1 and say.has(f"{key.removesuffix('_unstarted')}_many"):
        key = f"{key.removesuffix('_unstarted')}_many"
    if "left" in parts:
        parts["left"] = say.count("cell", int(parts["left"]))
    if parts.get("took"):
        parts["took"] = format_record_span(float(parts["took"]), say)
    if "confidence" in parts:
        parts["sure"] = _confidence_text(each.parts.get("cause", ""), each.parts["confidence"], say)
    attempts, runs = say.count("attempt", each.count), say.count("run", each.count)
    return say(key, cells=cells, attempts=attempts, runs=runs, **parts)


def format_record_span(seconds: float, say: Catalogue) -> str:
    return say("span.none") if seconds < 1 else say.span(seconds)


def _confidence_text(cause: str, confidence: str, say: Catalogue) -> str:
    """How sure it is; where the language is not that of the record, what the cause means too."""
    kind = f"cause.{cause.partition('(')[0]}"
    sure = say(f"sure.{confidence}") if say.has(f"sure.{confidence}") else confidence
    return say("sure.both", kind=say(kind), sure=sure) if say.has(kind) else sure


def _observation_time(each: Observation) -> str:
    began, ended = format_moment(each.at), format_moment(each.until) if each.until else ""
    if not ended or ended == began:
        return began
    return f"{began} – {ended[11:] if ended[:10] == began[:10] else ended}"


# -- status


def _status_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    counts = say.list([f"{count} {state}" for state, count in facts.counts.items() if count])
    yield "- " + say("status.counts", declared=say.count("cell", facts.declared), counts=counts)
    key = "alive" if facts.alive else facts.intent if facts.intent in ("held", "down") else "rest"
    yield "- " + say(f"status.{key}")
    yield "- " + say("status.done")
    for job in facts.jobs:
        rows = [row for row in facts.tallies if row.job == job.name]
        if len(rows) == 1 and not rows[0].name:
            yield f"  - `{job.name}`{say('colon')}{_tally_text(rows[0], say)}"
            continue
        yield f"  - `{job.name}`"
        yield from (f"    - {_tally_text(row, say)}" for row in rows)


def _tally_text(row: SeedTally, say: Catalogue) -> str:
    parts = {
        "name": escape_sentence(row.name),
        "axis": row.axis,
        "values": say.list(row.done),
        "k": len(row.done),
        "n": row.declared,
    }
    if not row.axis or (not row.name and not row.done):
        return say("status.single", **parts)
    if not row.name:
        return say("status.row_plain", **parts)
    return say("status.row" if row.done else "status.row_none", **parts)


# -- missing


def _missing_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    if not facts.absent:
        yield "- " + say("missing.none")
    for each in facts.absent:
        yield "- " + say("missing.row", cells=say.all_cells(each.cells), why=_absence_reason_text(each, say))
        yield from ("  - " + say("seen.path", path=path) for path in each.paths[:MOST_PATHS])


def _absence_reason_text(each: AbsentCells, say: Catalogue) -> str:
    parts = {name: escape_sentence(shorten_quote(strip_full_stop(text))) for name, text in each.parts.items()}
    parts["state"] = each.state
    if "at" in parts:
        parts["at"] = format_moment(each.parts["at"])
    if "only" in parts:
        parts["only"] = each.parts["only"]
    if "confidence" in parts:
        parts["sure"] = _confidence_text(each.parts.get("cause", ""), each.parts["confidence"], say)
    needs = each.parts["needs"].split(",") if "needs" in each.parts else []
    if needs:
        parts["needs"] = say.all_cells(needs)
    one = "one" if len(each.cells) == 1 else "many"
    return say(f"why.{each.why}", them=say(f"them.{one}"), **parts)


# -- what it means


def _meaning_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    if facts.done == facts.declared:
        yield "- " + say("means.complete", n=facts.declared)
    else:
        yield "- " + say("means.incomplete", k=facts.done, n=facts.declared, missing=facts.missing)
        given_up = facts.counts.get("GIVEN_UP", 0)
        if given_up == facts.missing:
            yield "- " + say("means.settled")
        elif facts.hold and not _count_running_cells(facts):
            yield "- " + say("means.held")
        elif _campaign_goes_on(facts):
            yield "- " + say("means.going")
        else:
            yield "- " + say("means.idle")
    blocked = sum(len(each.cells) for each in facts.absent if each.why == "blocked")
    if blocked:
        yield "- " + say("means.blocked", cells=say.count("cell", blocked))
    if facts.adopted:
        yield "- " + say("means.adopted", n=facts.adopted)
    if facts.outdated:
        yield "- " + say.count("outdated", facts.outdated)
    if any(sum(each.cwd == other.cwd for other in facts.code) > 1 for each in facts.code):
        yield "- " + say("means.codes")


def _campaign_goes_on(facts: RecordFacts) -> bool:
    return facts.intent == "running" and (facts.alive or _count_running_cells(facts) > 0)


def _fix_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    if not facts.fixes:
        yield "- " + say("fix.wait" if _campaign_goes_on(facts) and facts.missing else "fix.none")
        return
    for fix in facts.fixes:
        parts = {name: text if name == "same" else escape_sentence(text) for name, text in fix.parts.items()}
        count = say.count("cell", len(fix.cells))
        what = say(f"fix.{fix.why}", cells=say.all_cells(fix.cells), count=count, n=len(fix.cells), **parts)
        yield f"- {format_inline_code(fix.command)}"
        yield f"  - {what}"
        if fix.cells and fix.why != "accept":
            yield f"  - {_fix_effort_text(fix, facts, say)}"
    given_up = facts.counts.get("GIVEN_UP", 0)
    yield "- " + (
        say("fix.then_but", n=facts.declared - given_up, given_up=given_up)
        if given_up
        else say("fix.then", n=facts.declared)
    )


def _fix_effort_text(fix: ProposedFix, facts: RecordFacts, say: Catalogue) -> str:
    if fix.hours is None or fix.wall_hours is None:
        return say("fix.unknown")
    money = say("fix.money", money=f"{fix.money:.2f}", currency=facts.currency) if fix.money is not None else ""
    key = "fix.hours" if fix.wall_hours < fix.hours else "fix.hours_one"
    return say(
        key,
        hours=format_record_span(fix.hours * 3600, say),
        wall=format_record_span(fix.wall_hours * 3600, say),
        money=money,
    )


def _record_evidence_section(facts: RecordFacts, say: Catalogue) -> Iterator[str]:
    for place in facts.places:
        yield (
            "- "
            f"{say(f'place.{place.what}', of=format_inline_code(place.of) if place.of else '')}{say('colon')}"
            f"{format_inline_code(place.path)}"
        )
    if facts.more_places:
        yield "- " + say("place.more", n=facts.more_places)
