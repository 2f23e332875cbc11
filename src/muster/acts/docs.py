"""`muster docs`: binds the numbers of people's texts to results, updates those and nothing else, audits texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from muster.acts.docs_files import (
    Document,
    check_writable,
    load_sidecar,
    read_document,
    replace_document,
    save_sidecar,
)
from muster.acts.docs_told import Ambiguous, Audited, Bound, Changed, Fixed, Missed, Spot, Unsaid, Updated
from muster.domain.errors import MusterError, UsageError
from muster.report.documents.audit import audit as findings_of
from muster.report.documents.audit import of_binding, still_standing, unbound
from muster.report.documents.beside import beside
from muster.report.documents.bind import Decision, decide_all
from muster.report.documents.context import Context
from muster.report.documents.labels import unlabelled
from muster.report.documents.names import Vocabulary
from muster.report.documents.quantity import Book, Quantity
from muster.report.documents.sidecar import Binding, Lost, Sidecar, binding_of, digest, find_again, from_decision
from muster.report.documents.source import Source, kind_of
from muster.report.documents.update import Refused, Update, difference, prove
from muster.report.documents.update import update as updated_text

NAMED = 4
SEVERAL = "several configs are named near it, and only its value says whose it is"
HALF = "a number in brackets follows, perhaps its spread, which would stay as it is"
BRACKETED = re.compile(r"(?:\\,|[\s~*_$])*[(\[]\s*[-+±]?\d+\.\d")
OTHER_VALUE = "its place says which it is, but the result never had this value; --place binds it all the same"
Choose = Callable[[Ambiguous], int | None]  # the number of a candidate, or none of them


class Incomplete(MusterError):
    """Numbers of an incomplete matrix are written with their mark or not at all."""

    code = "incomplete"
    exit = 3


@dataclass(frozen=True, slots=True)
class Documents:
    """What a report did about the texts that the campaign names; paths as it names them."""

    updated: tuple[str, ...] = ()  # and those in which nothing had to change
    unbound: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # with the reason


# -- bind


def bind(
    path: Path,
    quantities: Sequence[Quantity],
    choose: Choose | None = None,
    *,
    by_place: bool = False,
    dry_run: bool = False,
) -> Bound:
    """Binds what is certain, asks `choose` about the rest, keeps earlier bindings that still stand.

    `by_place`: also a number whose place is certain and whose value its result never had. Without leave it stays
    unbound: it may be somebody else's number, cited beside ours, and would be overwritten.
    """
    document = read_document(path)
    context = _context(document, quantities)
    before = load_sidecar(document)
    standing, gone = _standing(context, before)
    decisions = decide_all(context, unbound(context, standing))
    decisions = [_asked(each, document.text, by_place=by_place) for each in decisions]
    new = [from_decision(document.text, each) for each in decisions if each.state == "bound"]
    ambiguous = []
    for each in _ambiguous(context, decisions):
        chosen = choose(each) if choose else None
        if chosen is None:
            ambiguous.append(each)
        else:
            target = each.decision.candidates[chosen]
            new.append(binding_of(document.text, each.decision.number, target, "chosen"))
    bindings = sorted([*standing, *_lined(context, new)], key=lambda binding: binding.start)
    sidecar = Sidecar(document.path.name, digest(document.text), tuple(bindings))
    written = bool(bindings or before) and not dry_run
    if written and sidecar != before:
        save_sidecar(document, sidecar)
    kept = {binding.start for binding in standing}
    return Bound(
        document.path,
        document.sidecar,
        tuple(_fixed(context, binding, old=binding.start in kept) for binding in bindings),
        tuple(ambiguous),
        tuple(Missed(_spot(context, each.number.start, each.number.end), each.why) for each in _missed(decisions)),
        tuple(Missed(Spot(each.binding.line, 0, each.binding.token), each.why) for each in gone),
        written,
    )


def _asked(decision: Decision, text: str, *, by_place: bool) -> Decision:
    """What is probably right and would do harm if it were not: somebody has to say that it is meant."""
    if decision.state != "bound" or decision.target is None:
        return decision
    why = _doubt(decision, text, by_place=by_place)
    if not why:
        return decision
    return replace(decision, state="ambiguous", target=None, why=why, candidates=(decision.target,))


def _doubt(decision: Decision, text: str, *, by_place: bool) -> str:
    if decision.by == "place" and not by_place:
        return OTHER_VALUE
    if decision.loose:
        return SEVERAL
    return HALF if not decision.number.pair and BRACKETED.match(text, decision.number.end) else ""


def _ambiguous(context: Context, decisions: Sequence[Decision]) -> Iterator[Ambiguous]:
    for each in decisions:
        if each.state == "ambiguous":
            number = each.number
            spot = _spot(context, number.start, number.end)
            names = tuple(_said(target.keys) for target in each.candidates)
            yield Ambiguous(spot, each.why, names, each, _line(context.source.text, number.start))


def _missed(decisions: Sequence[Decision]) -> list[Decision]:
    return [each for each in decisions if each.state == "untraced" and not each.number.plain_integer]


def _fixed(context: Context, binding: Binding, *, old: bool) -> Fixed:
    state = of_binding(binding, context.book.by_key, bound=True).state
    now = {"agrees": "now", "stale": "earlier"}.get(state, "")
    return Fixed(_spot(context, binding.start, binding.end), binding, now, old)


# -- update


def update(
    paths: Sequence[Path],
    quantities: Sequence[Quantity],
    partial: str | None,
    root: Path,
    now: datetime,
    *,
    allowed: bool = False,
    dry_run: bool = False,
) -> list[Updated]:
    """Writes the current values. All texts or none: what refuses one of them is told before any is changed."""
    prepared = [_prepare(read_document(path), quantities, partial, allowed=allowed, dry_run=dry_run) for path in paths]
    return [_carry_out(each, root, now, dry_run=dry_run) for each in prepared]


@dataclass(frozen=True, slots=True)
class _Prepared:
    document: Document
    context: Context
    before: Sidecar
    bindings: Sequence[Binding]
    update: Update
    data: bytes


def _prepare(
    document: Document, quantities: Sequence[Quantity], partial: str | None, *, allowed: bool, dry_run: bool
) -> _Prepared:
    context = _context(document, quantities)
    sidecar = load_sidecar(document)
    name = document.path.name
    if sidecar is None:
        raise UsageError(
            "nothing in it is bound yet", where=str(document.path), hint=f"`muster docs bind {name}` first"
        )
    bindings, gone = _standing(context, sidecar)
    if gone:
        hint = f"`muster docs bind {name}` looks for them anew"
        raise MusterError(_lost_words(gone), where=str(document.path), hint=hint, code="lost")
    mark = _mark(bindings, context.book, partial, allowed=allowed, where=str(document.path))
    try:
        done = updated_text(document.text, bindings, context.book.by_key, mark)
        data = done.text.encode(document.encoding)
        prove(document.data, data, done, document.text, document.encoding)
    except Refused as refused:
        hint = f"`muster docs bind {name}` once more, or wait for the result"
        raise MusterError(f"{refused}; nothing was changed", where=str(document.path), hint=hint) from None
    if done.changes and not dry_run:
        check_writable(document)
    return _Prepared(document, context, sidecar, bindings, done, data)


def _carry_out(prepared: _Prepared, root: Path, now: datetime, *, dry_run: bool) -> Updated:
    document, done = prepared.document, prepared.update
    kept = None
    sidecar = Sidecar(document.path.name, digest(done.text), done.bindings)
    if done.changes and not dry_run:
        kept = replace_document(document, prepared.data, sidecar, root, now)
    elif sidecar != prepared.before and not dry_run:
        save_sidecar(document, sidecar)  # the text was edited elsewhere: where the numbers are now
    source = prepared.context.source
    return Updated(
        document.path,
        tuple(Changed(Spot(*source.where(change.at), change.old), change.new, change.keys) for change in done.changes),
        len(done.bindings) - len(done.changes),
        tuple(difference(document.text, done.text, document.path.name)),
        kept,
        tuple(
            Missed(Spot(*source.where(each.start), each.text), each.why)
            for each in beside(prepared.context, prepared.bindings, [change.at for change in done.changes])
        ),
    )


def _mark(bindings: Sequence[Binding], book: Book, partial: str | None, *, allowed: bool, where: str) -> str | None:
    """The mark that numbers of an incomplete matrix get; without leave to write it they are not written."""
    if partial is None:
        known = [book.by_key[key] for binding in bindings for key in binding.keys if key in book.by_key]
        short = min(known, key=lambda quantity: quantity.k / max(1, quantity.n), default=None)
        partial = f"PARTIAL {short.k}/{short.n}" if short and short.k < short.n else None
    if partial and not allowed:
        raise Incomplete(
            f"the matrix is incomplete ({partial.removeprefix('PARTIAL ')}): its numbers are not written",
            where=where,
            hint="finish it (`muster up`), or use --partial, which marks each number",
        )
    return partial


def update_all(root: Path, documents: Sequence[str], quantities: Sequence[Quantity], partial: str | None) -> Documents:
    """For a report: every text by itself, marked where the matrix is incomplete. Those that are not bound are named."""
    updated, unbound, refused = [], [], []
    for name in documents:
        try:
            document = read_document(root / name)
            if load_sidecar(document) is None:
                unbound.append(name)
                continue
            update([root / name], quantities, partial, root, datetime.now().astimezone(), allowed=partial is not None)
            updated.append(name)
        except MusterError as error:
            refused.append((name, error.message + (f"; {error.hint}" if error.hint else "")))
    return Documents(tuple(updated), tuple(unbound), tuple(refused))


# -- audit


def audit(path: Path, quantities: Sequence[Quantity]) -> Audited:
    document = read_document(path)
    context = _context(document, quantities)
    found = findings_of(context, *_standing(context, load_sidecar(document)))
    bare = unlabelled(context.source.shown, context.numbers)
    return Audited(
        document.path,
        tuple((Spot(*context.source.where(each.start), each.text), each) for each in found),
        Unsaid(_spot(context, bare.start, bare.end), bare.count) if bare else None,
    )


# -- what they share


def _context(document: Document, quantities: Sequence[Quantity]) -> Context:
    if not quantities:
        raise MusterError("there are no results yet", hint="`muster status` shows what is done")
    book = Book(quantities)
    return Context(Source(document.text, kind_of(document.path.name, document.text)), book, Vocabulary(book))


def _standing(context: Context, sidecar: Sidecar | None) -> tuple[list[Binding], list[Lost]]:
    """Earlier bindings where they are now, and those that can't be found or are contradicted."""
    if sidecar is None:
        return [], []
    found, gone = find_again(sidecar, context.source.text)
    if sidecar.digest == digest(context.source.text):
        return found, gone
    kept, contradicted = still_standing(context, found)
    return _lined(context, kept), [*gone, *contradicted]


def _lined(context: Context, bindings: Sequence[Binding]) -> list[Binding]:
    return [replace(binding, line=context.source.where(binding.start)[0]) for binding in bindings]


def _spot(context: Context, start: int, end: int) -> Spot:
    return Spot(*context.source.where(start), context.source.text[start:end])


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end].strip()


def _said(keys: Sequence[str]) -> str:
    return " and ".join(keys)


def _lost_words(gone: Sequence[Lost]) -> str:
    count = f"{len(gone)} bound number{'s' * (len(gone) != 1)}"
    named = [
        f"line {each.binding.line}: {each.binding.token} ({_said(each.binding.keys)}): {each.why}" for each in gone
    ]
    more = f"; and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
    listed = "; ".join(named[:NAMED]) + more
    return f"the text changed so much that {count} can't be found; nothing was changed: {listed}"
