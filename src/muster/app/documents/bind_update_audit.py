"""`muster docs`: binds the numbers of people's texts to results, updates those and nothing else, audits texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from muster.app.documents.bind_numbers import BindingDecision, decide_bindings
from muster.app.documents.document_context import DocumentContext
from muster.app.documents.document_files import (
    TextDocument,
    check_document_writable,
    load_sidecar,
    read_text_document,
    replace_document,
    save_sidecar,
)
from muster.app.documents.document_results import (
    AmbiguousNumber,
    AuditResult,
    BindResult,
    BoundNumber,
    ChangedNumber,
    MissedNumber,
    NumberSpot,
    SpreadWarning,
    UpdateResult,
)
from muster.app.documents.number_bindings import (
    Binding,
    LostBinding,
    Sidecar,
    TextUpdate,
    UpdateRefused,
    binding_from_decision,
    digest_of_text,
    find_bindings_again,
    make_binding,
    prove_nothing_else_changed,
    unified_text_diff,
    update_text,
)
from muster.app.documents.result_names import NameReader, Quantity, QuantityIndex
from muster.app.documents.text_audit import (
    audit_numbers_of_text,
    bindings_still_standing,
    find_stale_neighbours,
    find_unlabelled_spreads,
    finding_of_binding,
    unbound_numbers,
)
from muster.app.documents.text_layout import TextSource, kind_of_text
from muster.model.errors import MusterError, UsageError
from muster.text.sentences import join_few_names

MOST_LOST_NAMED = 4
SEVERAL_CONFIGS = "several configs are named near it, and only its value says whose it is"
SPREAD_WOULD_STAY = "a number in brackets follows, perhaps its spread, which would stay as it is"
BRACKETED = re.compile(r"(?:\\,|[\s~*_$])*[(\[]\s*[-+±]?\d+\.\d")
OTHER_VALUE = "its place says which it is, but the result never had this value; --place binds it all the same"
ChooseCandidate = Callable[[AmbiguousNumber], int | None]  # the number of a candidate, or none of them


class IncompleteMatrix(MusterError):
    """Numbers of an incomplete matrix are written with their mark or not at all."""

    code = "incomplete"
    exit = 3


@dataclass(frozen=True, slots=True)
class UpdatedDocuments:
    """What a report did about the texts that the campaign names; paths as it names them."""

    updated: tuple[str, ...] = ()  # and those in which nothing had to change
    unbound: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # with the reason


# -- bind


def bind_document(
    path: Path,
    quantities: Sequence[Quantity],
    choose: ChooseCandidate | None = None,
    *,
    by_place: bool = False,
    dry_run: bool = False,
) -> BindResult:
    """Binds what is certain, asks `choose` about the rest, keeps earlier bindings that still stand.

    `by_place`: also a number whose place is certain and whose value its result never had. Without leave it stays
    unbound: it may be somebody else's number, cited beside ours, and would be overwritten.
    """
    document = read_text_document(path)
    context = _context_of_document(document, quantities)
    before = load_sidecar(document)
    standing, gone = _standing_bindings(context, before)
    decisions = decide_bindings(context, unbound_numbers(context, standing))
    decisions = [_ask_if_harmful(each, document.text, by_place=by_place) for each in decisions]
    new = [binding_from_decision(document.text, each) for each in decisions if each.state == "bound"]
    ambiguous = []
    for each in _ambiguous_numbers(context, decisions):
        chosen = choose(each) if choose else None
        if chosen is None:
            ambiguous.append(each)
        else:
            target = each.decision.candidates[chosen]
            new.append(make_binding(document.text, each.decision.number, target, "chosen"))
    bindings = sorted([*standing, *_with_line_numbers(context, new)], key=lambda binding: binding.start)
    sidecar = Sidecar(document.path.name, digest_of_text(document.text), tuple(bindings))
    written = bool(bindings or before) and not dry_run
    if written and sidecar != before:
        save_sidecar(document, sidecar)
    kept = {binding.start for binding in standing}
    return BindResult(
        document.path,
        document.sidecar,
        tuple(_bound_number(context, binding, old=binding.start in kept) for binding in bindings),
        tuple(ambiguous),
        tuple(
            MissedNumber(_spot_in_document(context, each.number.start, each.number.end), each.why)
            for each in _untraced_decisions(decisions)
        ),
        tuple(MissedNumber(NumberSpot(each.binding.line, 0, each.binding.token), each.why) for each in gone),
        written,
    )


def _ask_if_harmful(decision: BindingDecision, text: str, *, by_place: bool) -> BindingDecision:
    """What is probably right and would do harm if it were not: somebody has to say that it is meant."""
    if decision.state != "bound" or decision.target is None:
        return decision
    why = _reason_to_ask(decision, text, by_place=by_place)
    if not why:
        return decision
    return replace(decision, state="ambiguous", target=None, why=why, candidates=(decision.target,))


def _reason_to_ask(decision: BindingDecision, text: str, *, by_place: bool) -> str:
    if decision.by == "place" and not by_place:
        return OTHER_VALUE
    if decision.loose:
        return SEVERAL_CONFIGS
    return SPREAD_WOULD_STAY if not decision.number.pair and BRACKETED.match(text, decision.number.end) else ""


def _ambiguous_numbers(context: DocumentContext, decisions: Sequence[BindingDecision]) -> Iterator[AmbiguousNumber]:
    for each in decisions:
        if each.state == "ambiguous":
            number = each.number
            spot = _spot_in_document(context, number.start, number.end)
            names = tuple(_join_quantity_keys(target.keys) for target in each.candidates)
            yield AmbiguousNumber(spot, each.why, names, each, _line_of_text(context.source.text, number.start))


def _untraced_decisions(decisions: Sequence[BindingDecision]) -> list[BindingDecision]:
    return [each for each in decisions if each.state == "untraced" and not each.number.plain_integer]


def _bound_number(context: DocumentContext, binding: Binding, *, old: bool) -> BoundNumber:
    state = finding_of_binding(binding, context.book.by_key, bound=True).state
    now = {"agrees": "now", "stale": "earlier"}.get(state, "")
    return BoundNumber(_spot_in_document(context, binding.start, binding.end), binding, now, old)


# -- update


def update_documents(
    paths: Sequence[Path],
    quantities: Sequence[Quantity],
    partial: str | None,
    root: Path,
    now: datetime,
    *,
    allowed: bool = False,
    dry_run: bool = False,
) -> list[UpdateResult]:
    """Writes the current values. All texts or none: what refuses one of them is told before any is changed."""
    prepared = [
        _prepare_update(read_text_document(path), quantities, partial, allowed=allowed, dry_run=dry_run)
        for path in paths
    ]
    return [_write_prepared_update(each, root, now, dry_run=dry_run) for each in prepared]


@dataclass(frozen=True, slots=True)
class _PreparedUpdate:
    document: TextDocument
    context: DocumentContext
    before: Sidecar
    bindings: Sequence[Binding]
    update: TextUpdate
    data: bytes


def _prepare_update(
    document: TextDocument, quantities: Sequence[Quantity], partial: str | None, *, allowed: bool, dry_run: bool
) -> _PreparedUpdate:
    context = _context_of_document(document, quantities)
    sidecar = load_sidecar(document)
    name = document.path.name
    if sidecar is None:
        raise UsageError(
            "nothing in it is bound yet", where=str(document.path), hint=f"`muster docs bind {name}` first"
        )
    bindings, gone = _standing_bindings(context, sidecar)
    if gone:
        hint = f"`muster docs bind {name}` looks for them anew"
        raise MusterError(_describe_lost_bindings(gone), where=str(document.path), hint=hint, code="lost")
    mark = _mark_for_partial(bindings, context.book, partial, allowed=allowed, where=str(document.path))
    try:
        done = update_text(document.text, bindings, context.book.by_key, mark)
        data = done.text.encode(document.encoding)
        prove_nothing_else_changed(document.data, data, done, document.text, document.encoding)
    except UpdateRefused as refused:
        hint = f"`muster docs bind {name}` once more, or wait for the result"
        raise MusterError(f"{refused}; nothing was changed", where=str(document.path), hint=hint) from None
    if done.changes and not dry_run:
        check_document_writable(document)
    return _PreparedUpdate(document, context, sidecar, bindings, done, data)


def _write_prepared_update(prepared: _PreparedUpdate, root: Path, now: datetime, *, dry_run: bool) -> UpdateResult:
    document, done = prepared.document, prepared.update
    kept = None
    sidecar = Sidecar(document.path.name, digest_of_text(done.text), done.bindings)
    if done.changes and not dry_run:
        kept = replace_document(document, prepared.data, sidecar, root, now)
    elif sidecar != prepared.before and not dry_run:
        save_sidecar(document, sidecar)  # the text was edited elsewhere: where the numbers are now
    source = prepared.context.source
    return UpdateResult(
        document.path,
        tuple(
            ChangedNumber(NumberSpot(*source.where(change.at), change.old), change.new, change.keys)
            for change in done.changes
        ),
        len(done.bindings) - len(done.changes),
        tuple(unified_text_diff(document.text, done.text, document.path.name)),
        kept,
        tuple(
            MissedNumber(NumberSpot(*source.where(each.start), each.text), each.why)
            for each in find_stale_neighbours(
                prepared.context, prepared.bindings, [change.at for change in done.changes]
            )
        ),
    )


def _mark_for_partial(
    bindings: Sequence[Binding], book: QuantityIndex, partial: str | None, *, allowed: bool, where: str
) -> str | None:
    """The mark that numbers of an incomplete matrix get; without leave to write it they are not written."""
    if partial is None:
        known = [book.by_key[key] for binding in bindings for key in binding.keys if key in book.by_key]
        short = min(known, key=lambda quantity: quantity.k / max(1, quantity.n), default=None)
        partial = f"PARTIAL {short.k}/{short.n}" if short and short.k < short.n else None
    if partial and not allowed:
        raise IncompleteMatrix(
            f"the matrix is incomplete ({partial.removeprefix('PARTIAL ')}): its numbers are not written",
            where=where,
            hint="finish it (`muster up`), or use --partial, which marks each number",
        )
    return partial


def update_campaign_documents(
    root: Path, documents: Sequence[str], quantities: Sequence[Quantity], partial: str | None
) -> UpdatedDocuments:
    """For a report: every text by itself, marked where the matrix is incomplete. Those that are not bound are named."""
    updated, unbound, refused = [], [], []
    for name in documents:
        try:
            document = read_text_document(root / name)
            if load_sidecar(document) is None:
                unbound.append(name)
                continue
            update_documents(
                [root / name], quantities, partial, root, datetime.now().astimezone(), allowed=partial is not None
            )
            updated.append(name)
        except MusterError as error:
            refused.append((name, error.message + (f"; {error.hint}" if error.hint else "")))
    return UpdatedDocuments(tuple(updated), tuple(unbound), tuple(refused))


# -- audit


def audit_document(path: Path, quantities: Sequence[Quantity]) -> AuditResult:
    document = read_text_document(path)
    context = _context_of_document(document, quantities)
    found = audit_numbers_of_text(context, *_standing_bindings(context, load_sidecar(document)))
    bare = find_unlabelled_spreads(context.source.shown, context.numbers)
    return AuditResult(
        document.path,
        tuple((NumberSpot(*context.source.where(each.start), each.text), each) for each in found),
        SpreadWarning(_spot_in_document(context, bare.start, bare.end), bare.count) if bare else None,
    )


# -- what they share


def _context_of_document(document: TextDocument, quantities: Sequence[Quantity]) -> DocumentContext:
    if not quantities:
        raise MusterError("there are no results yet", hint="`muster status` shows what is done")
    book = QuantityIndex(quantities)
    return DocumentContext(
        TextSource(document.text, kind_of_text(document.path.name, document.text)), book, NameReader(book)
    )


def _standing_bindings(context: DocumentContext, sidecar: Sidecar | None) -> tuple[list[Binding], list[LostBinding]]:
    """Earlier bindings where they are now, and those that can't be found or are contradicted."""
    if sidecar is None:
        return [], []
    found, gone = find_bindings_again(sidecar, context.source.text)
    if sidecar.digest == digest_of_text(context.source.text):
        return found, gone
    kept, contradicted = bindings_still_standing(context, found)
    return _with_line_numbers(context, kept), [*gone, *contradicted]


def _with_line_numbers(context: DocumentContext, bindings: Sequence[Binding]) -> list[Binding]:
    return [replace(binding, line=context.source.where(binding.start)[0]) for binding in bindings]


def _spot_in_document(context: DocumentContext, start: int, end: int) -> NumberSpot:
    return NumberSpot(*context.source.where(start), context.source.text[start:end])


def _line_of_text(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end].strip()


def _join_quantity_keys(keys: Sequence[str]) -> str:
    return " and ".join(keys)


def _describe_lost_bindings(gone: Sequence[LostBinding]) -> str:
    count = f"{len(gone)} bound number{'s' * (len(gone) != 1)}"
    named = [
        f"line {each.binding.line}: {each.binding.token} ({_join_quantity_keys(each.binding.keys)}): {each.why}"
        for each in gone
    ]
    listed = join_few_names(named, MOST_LOST_NAMED, "; ")
    return f"the text changed so much that {count} can't be found; nothing was changed: {listed}"
