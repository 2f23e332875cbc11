"""All readers that are fuzzed."""

from __future__ import annotations

from readers_more import MORE
from readers_runs import RUNS
from readers_state import STATE
from readers_texts import TEXTS

from muster.bootstrap import install_local_services

install_local_services()

READERS = (*RUNS, *TEXTS, *STATE, *MORE)

# Modules that open or parse something and are not fuzzed, each with the reason.
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        (
            "muster.hosts.local.find_process",
            "muster.hosts.local.other_users",
            "muster.hosts.local.kernel",
            "muster.files.process_identity",
            "muster.hosts.local.process_tree",
            "muster.files.campaign_ownership",
        ),
        "it reads what the kernel or the administrator writes",
    ),
    **dict.fromkeys(
        (
            "muster.files.safe_open",
            "muster.files.atomic_write",
            "muster.files.campaign_ownership",
            "muster.bootstrap.begin_process",
        ),
        "it opens for others, who read; tests of its own have the pipes, links and devices",
    ),
    **dict.fromkeys(
        (
            "muster.spec.field_kinds",
            "muster.spec.model_decision_loop_finish",
            "muster.spec.model_gate",
            "muster.rules.metric_summary",
            "muster.readers.records.joined_history",
            "muster.engine.store.fold_campaign_records",
            "muster.engine.store.fold_cell_records",
            "muster.app.campaign.observe_campaign",
            "muster.app.campaign.verbs.rename_axis_value",
            "muster.app.overview.pack_campaign",
            "muster.app.loop.run_variant",
            "muster.text.shell_quoting",
            "muster.app.gates.gate_watcher",
        ),
        "it works on what a reader that is fuzzed has read, or reads it through that one",
    ),
    **dict.fromkeys(
        (
            "muster.spec.campaign_templates",
            "muster.app.campaign.verbs.write_template",
            "muster.engine.store.sql_files",
            "muster.locales",
            "muster.readers.pattern_child",
            "muster.readers.user_patterns",
        ),
        "it reads what Muster or the campaign's owner wrote, and nothing of a run",
    ),
    **dict.fromkeys(
        (
            "muster.app.campaign.cell_definitions",
            "muster.readers.source_code",
            "muster.app.campaign.verbs.clean_leftovers",
            "muster.app.loop.propose_round",
            "muster.app.record.write_record",
            "muster.hosts.local.start_at_boot",
        ),
        "it copies, hashes, compares or locks bytes and makes nothing of them",
    ),
    **dict.fromkeys(
        ("muster.hosts.local.guard", "muster.app.campaign.campaign_handle", "muster.hosts.local.waker"),
        "one word of the state, compared with those that are known",
    ),
    **dict.fromkeys(
        ("muster.readers.source_code", "muster.readers.git"),
        "what git answers; tests/unit/observe has hostile repositories",
    ),
}
