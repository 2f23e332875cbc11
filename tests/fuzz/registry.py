"""All readers that are fuzzed."""

from __future__ import annotations

from readers_runs import RUNS
from readers_state import STATE
from readers_texts import TEXTS

READERS = (*RUNS, *TEXTS, *STATE)
