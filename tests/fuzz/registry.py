"""All readers that are fuzzed."""

from __future__ import annotations

from readers_more import MORE
from readers_runs import RUNS
from readers_state import STATE
from readers_texts import TEXTS

READERS = (*RUNS, *TEXTS, *STATE, *MORE)

# Modules that open or parse something and are not fuzzed here, each with the reason.
LEFT_OUT: dict[str, str] = {}
