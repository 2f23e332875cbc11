"""What Muster says, as data: a code and what it is about. The sentences stand in `locales/<language>/messages/`.

A phrase is a text in the language of this process, and keeps its code and parameters: logs record both beside the
English sentence, so that any other process can say the same in its own language. What an older version or a person
wrote is a plain text, and is shown as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from muster.locales import LANGUAGES, find_message

JOINED = "joined"  # the code of phrases side by side: `between`, and the `parts`
PSEUDO_LANGUAGE = "pseudo"  # English, each phrase in brackets: what stands outside of them nobody can translate
_language = "en"


class PluralNumber(int):
    """A number in a sentence, which knows one from many: `{n} {n:seed is|seeds are} missing`."""

    def __format__(self, form: str) -> str:
        if "|" not in form:
            return int.__format__(self, form)
        one, _, many = form.partition("|")
        return one if self == 1 else many


class Phrase(str):
    """A sentence, and what it was made of."""

    __slots__ = ("code", "params")
    code: str
    params: Mapping[str, Any]


def phrase(code: str, /, **params: Any) -> str:
    """The sentence of this code with its parts put in: `phrase("plan.needs", cells="a, b")`."""
    return _make_phrase(code, params, _language)


def join_phrases(between: str, parts: Iterable[str]) -> str:
    """Side by side; `between` is punctuation, no word."""
    return _make_phrase(JOINED, {"between": between, "parts": tuple(parts)}, _language)


def translate(text: str, language: str) -> str:
    """The same in another language; a plain text as it is."""
    return _make_phrase(text.code, text.params, language) if isinstance(text, Phrase) else text


def english_text(text: str) -> str:
    """As logs record it."""
    return str.__str__(translate(text, "en"))


def phrase_as_data(text: str) -> dict[str, Any]:
    """`code` and `params` for JSON; nothing of a plain text."""
    if not isinstance(text, Phrase):
        return {}
    return {"code": text.code, "params": {name: _param_as_data(each) for name, each in text.params.items()}}


def phrase_from_data(text: str, data: Mapping[str, Any] | None) -> str:
    """What was recorded, in the language of this process; a code that is not known here as it was recorded."""
    if not data:
        return text
    try:
        return _make_phrase(str(data["code"]), {n: _param_from_data(p) for n, p in data["params"].items()}, _language)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        return text


def has_code(text: str, code: str) -> bool:
    """Whether it is, or has in it, the phrase of this code."""
    if not isinstance(text, Phrase):
        return False
    parts = (each for param in text.params.values() for each in (param if isinstance(param, tuple) else (param,)))
    return text.code == code or any(has_code(each, code) for each in parts)


def rewrite_phrase(text: str, codes: Mapping[str, str], change: Callable[[str], str]) -> str:
    """The same with other codes, and with each plain text in it as `change` says it."""

    def rewrite(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(rewrite, value))
        if not isinstance(value, Phrase):
            return change(value) if type(value) is str else value
        params = {name: each if name == "between" else rewrite(each) for name, each in value.params.items()}
        return _make_phrase(codes.get(value.code, value.code), params, _language)

    rewritten: str = rewrite(text)
    return rewritten


def current_language() -> str:
    return _language


def set_language(language: str) -> None:
    """Of this process, from now on. A controller's is English."""
    global _language
    _language = language


@contextmanager
def speaking(language: str) -> Iterator[None]:
    before = _language
    set_language(language)
    try:
        yield
    finally:
        set_language(before)


def asked_language(environment: Mapping[str, str] = os.environ) -> str | None:
    """What `MUSTER_LANG` asks for; None: nothing, or nothing that Muster speaks."""
    return known_language(environment.get("MUSTER_LANG", ""))


def language_of_locale(environment: Mapping[str, str] = os.environ) -> str | None:
    return known_language(next((found for name in _LOCALE if (found := environment.get(name))), ""))


_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def known_language(name: str) -> str | None:
    """Of `zh`, `zh_CN.UTF-8`, `zh-Hans`."""
    language = re.split(r"[_.@-]", name.lower(), maxsplit=1)[0]
    return language if language in (*LANGUAGES, PSEUDO_LANGUAGE) else None


def _make_phrase(code: str, params: Mapping[str, Any], language: str) -> Phrase:
    told = {name: _say_param(each, language) for name, each in params.items()}
    if code == JOINED:
        text = told["between"].join(told["parts"])
    else:
        text = _template(code, language).format(**told)
        if language == PSEUDO_LANGUAGE:
            text = f"⟦{text}⟧"
    made = Phrase(text)
    made.code, made.params = code, params
    return made


def _say_param(value: Any, language: str) -> Any:
    if isinstance(value, Phrase):
        return translate(value, language)
    if type(value) is int:
        return PluralNumber(value)
    return [_say_param(each, language) for each in value] if isinstance(value, tuple) else value


@cache
def _template(code: str, language: str) -> str:
    subject, _, key = code.partition(".")
    return find_message(subject, key, "en" if language == PSEUDO_LANGUAGE else language)


def _param_as_data(value: Any) -> Any:
    if isinstance(value, Phrase):
        return {"text": english_text(value), **phrase_as_data(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_param_as_data(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _param_from_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return phrase_from_data(str(value["text"]), value)
    return tuple(map(_param_from_data, value)) if isinstance(value, list) else value
