"""All readers that are fuzzed."""

from __future__ import annotations

from readers_more import MORE
from readers_runs import RUNS
from readers_state import STATE
from readers_texts import TEXTS

READERS = (*RUNS, *TEXTS, *STATE, *MORE)

# Modules that open or parse something and are not fuzzed, each with the reason.
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        (
            "muster.observe.find_process",
            "muster.observe.other_users",
            "muster.observe.probes.cgroup",
            "muster.observe.probes.kernel",
            "muster.observe.probes.tree",
            "muster.wiring.started_here",
            "muster.wiring.other_homes",
        ),
        "it reads what the kernel or the administrator writes",
    ),
    **dict.fromkeys(
        (
            "muster.ports.plain_files",
            "muster.ports.regular_files",
            "muster.ports.write_files",
            "muster.wiring.owner",
            "muster.wiring.begin",
        ),
        "it opens for others, who read; tests of its own have the pipes, links and devices",
    ),
    **dict.fromkeys(
        (
            "muster.spec.fields",
            "muster.spec.model_after",
            "muster.spec.model_gate",
            "muster.spec.model_search",
            "muster.rounds.summary",
            "muster.observe.metrics.joined",
            "muster.observe.table_rows",
            "muster.store.fold_clock",
            "muster.store.fold_refused",
            "muster.wiring.mended",
            "muster.wiring.renaming",
            "muster.wiring.packing",
            "muster.wiring.one_more",
            "muster.acts.stamp_places",
            "muster.acts.periods",
            "muster.domain.shell_text",
            "muster.wiring.gating",
        ),
        "it works on what a reader that is fuzzed has read, or reads it through that one",
    ),
    **dict.fromkeys(
        (
            "muster.spec.templates",
            "muster.store.sql",
            "muster.observe.pattern_child",
            "muster.observe.user_patterns",
            "muster.wiring.notifying",
        ),
        "it reads what Muster or the campaign's owner wrote, and nothing of a run",
    ),
    **dict.fromkeys(
        (
            "muster.acts.pack",
            "muster.acts.take_in",
            "muster.observe.source_files",
            "muster.wiring.cleaning",
            "muster.wiring.config_files",
            "muster.wiring.looping",
            "muster.wiring.recording",
            "muster.wiring.at_boot",
            "muster.store.database_file",
        ),
        "it copies, hashes, compares or locks bytes and makes nothing of them",
    ),
    **dict.fromkeys(
        ("muster.execute.guard", "muster.wiring.desk", "muster.observe.waker"),
        "one word of the state, compared with those that are known",
    ),
    **dict.fromkeys(
        ("muster.observe.code", "muster.observe.git"), "what git answers; tests/unit/observe has hostile repositories"
    ),
    "muster.wiring.power_switch": "what a command of ours answers",
}
