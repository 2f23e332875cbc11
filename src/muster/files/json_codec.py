"""JSON of unknown origin: decoded within bounds of memory (`[{},{},...]` takes forty times its own size), and encoded
whatever texts people and file systems hand in. A decision is read within bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from muster.model.attempt import Outcome
from muster.model.decision import LARGEST, Decision
from muster.text.phrases import Phrase, english_text, phrase, phrase_as_data, phrase_from_data

SMALL_TEXT = 1 << 20  # bytes of text: whatever it holds, it takes no more than some 40 MB
VALUE_BYTES = 100  # bytes that a comma, a colon or an opening bracket may cost; measured: 60 to 95 at most
MOST_MEMORY = 192 << 20  # bytes of memory
HONEST_FACTOR = 14  # times its own size: what the rows of a log take


class TooManyJsonValues(ValueError):
    """It would take too much memory."""


def check_json_values(data: bytes, most: int = MOST_MEMORY, times: int = 0) -> None:
    """Raises TooManyValues where parsing may take more than `most` bytes and more than `times` the size of the text."""
    if len(data) <= SMALL_TEXT:
        return
    values = data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{")
    if _text_memory_bytes(data) + VALUE_BYTES * values > max(most, times * len(data)):
        raise TooManyJsonValues(phrase("files.too_many_json_values", values=values))


def _text_memory_bytes(data: bytes) -> int:
    """Of the text and of one long text in it: one letter beyond the others makes all of them as wide as itself."""
    if data.isascii():
        return 2 * len(data)
    return (8 if any(bytes((first,)) in data for first in range(0xF0, 0xF5)) else 4) * len(data)


def load_bounded_json(data: bytes, most: int = MOST_MEMORY) -> Any:
    """As json.loads. Raises ValueError, also for what is nested too deep or would take too much memory."""
    check_json_values(data, most)
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError(phrase("files.nested_too_deep")) from None


JSON_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # a text that is no UTF-8; one nested too deep

MOST_DEPTH = 200  # of what a decision says; what looks at all of it does so recursively


def _encode_phrase(value: object) -> str:
    """In English, as everything that is kept."""
    if isinstance(value, str):
        return english_text(value)
    raise TypeError(f"objects of type {type(value)} are not written")


_encode = msgspec.json.Encoder(enc_hook=_encode_phrase).encode
_decode = msgspec.json.Decoder(Decision).decode


def encode_json_bytes(value: object) -> bytes:
    """A lone surrogate, which stands for a byte that is no UTF-8, becomes `\\udcff`: no line may fail on it."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_spell_out_surrogates(msgspec.to_builtins(value, enc_hook=_encode_phrase)))


def plain_value(value: object) -> Any:
    """Of lists, dicts, numbers and texts, those in English."""
    return msgspec.to_builtins(value, enc_hook=_encode_phrase)


def outcome_as_data(outcome: Outcome) -> dict[str, Any]:
    """For the log: its texts in English, and beside them the codes and parameters of those that are phrases."""
    data: dict[str, Any] = plain_value(outcome)
    texts = [outcome.reason, outcome.note, outcome.advice, *outcome.contributing]
    texts += [outcome.cause.note] if outcome.cause else []
    texts += [each.reading for each in outcome.evidence]
    return data | {"phrases": {english_text(each): phrase_as_data(each) for each in texts if isinstance(each, Phrase)}}


def outcome_in_words(outcome: Outcome) -> Outcome:
    """As it was recorded, in the language of this process."""

    def say(text: str) -> str:
        return phrase_from_data(text, outcome.phrases.get(text))

    if not outcome.phrases:
        return outcome
    return replace(
        outcome,
        reason=say(outcome.reason),
        note=say(outcome.note),
        advice=say(outcome.advice),
        contributing=tuple(map(say, outcome.contributing)),
        cause=replace(outcome.cause, note=say(outcome.cause.note)) if outcome.cause else None,
        evidence=tuple(replace(each, reading=say(each.reading)) for each in outcome.evidence),
    )


def decode_decision(line: bytes) -> Decision:
    """Raises one of NO_JSON also for what no Muster writes: numbers that no database holds, and endless nesting."""
    decision = _decode(line)
    if max(abs(decision.attempt or 0), abs(decision.epoch or 0)) > LARGEST:
        raise msgspec.ValidationError(phrase("files.number_out_of_bounds"))
    if line.count(b"{") + line.count(b"[") > MOST_DEPTH and _depth(decision.data) > MOST_DEPTH:
        raise msgspec.ValidationError(phrase("files.nested_too_deep"))
    return decision


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [inner for each in level for inner in _inside(each)]
    return depth


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _spell_out_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spell_out_surrogates(key): _spell_out_surrogates(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spell_out_surrogates(each) for each in value]
    return value
