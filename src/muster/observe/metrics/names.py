"""What the files and folders are called that runs log into, and which of them are W&B's own."""

from __future__ import annotations

import re

LOOKED_FOR = (
    "wandb/run-*/*.wandb, wandb/offline-run-*/*.wandb, events.out.tfevents.*, *.jsonl, progress.csv, metrics.csv, "
    "trainer_state.json, *.log"
)
PARTS = frozenset({"train", "eval", "val", "valid", "test", "log", "logs", "tb", "tensorboard", "metrics", "events"})
STATE = "trainer_state.json"
CHECKPOINT = re.compile(r"checkpoint-(\d+)\Z")  # of HF: only its trainer_state.json is of interest
TABLES = re.compile(r"(?:progress|metrics|history|results|log|monitor|training_log|.*\.monitor|.*[_-]metrics)\.csv\Z")
ROWS = frozenset({"metrics.jsonl", "scores.jsonl", "history.jsonl", "log.jsonl"})
_PRINTED = r"(?:stdout|stderr|output|train|training|run|nohup|log|slurm-.*)\.(?:log|out|txt)"
LOGS = re.compile(rf"{_PRINTED}\Z|.*\.log\Z")

# W&B
WANDB_RUN = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(?P<id>.+)\Z")
LATEST = "latest-run"  # a link to the newest one
WANDB_HISTORY, WANDB_SUMMARY, WANDB_EVENTS = "wandb-history.jsonl", "wandb-summary.json", "wandb-events.jsonl"
WANDB_DEBUG = re.compile(r"debug(?:-(?:internal|core|cli(?:\..*)?))?\.log\Z")  # what W&B says of itself

_FILES = re.compile(
    rf".*\.wandb\Z|.*\.tfevents\..*|{re.escape(STATE)}\Z|wandb-(?:history\.jsonl|summary\.json)\Z|"
    rf"(?:metrics|scores|history|log)\.jsonl\Z|{_PRINTED}\Z|{TABLES.pattern}"
)
_FOLDERS = re.compile(rf"wandb\Z|{LATEST}\Z|lightning_logs\Z|version_\d+\Z|{WANDB_RUN.pattern}|{CHECKPOINT.pattern}")


def is_known(name: str) -> bool:
    """Whether a name tells by itself that it is worth a look, even among a million others."""
    return name in PARTS or bool(_FILES.match(name) or _FOLDERS.match(name))
