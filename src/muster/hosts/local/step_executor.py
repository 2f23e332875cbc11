"""Runs the commands of the finish under shims, as cells run."""

from __future__ import annotations

from pathlib import Path

from muster.engine.ports.clock import Clock
from muster.hosts.local.attempt_probe import AttemptProbe
from muster.hosts.local.executor import LocalExecutor, WarmProcess
from muster.model.attempt_snapshot import ProofReading
from muster.model.campaign import Slots


class LocalStepExecutor(LocalExecutor):
    """Shims in `.muster/finish/<step>/<n>`, without a slot."""

    def __init__(self, state: Path, clock: Clock, warm: WarmProcess | None = None) -> None:
        super().__init__(state, Slots(gpus=(), cpus=0))
        self.warm = warm or self.warm
        self.probe = AttemptProbe(self.folder, clock, lambda *_: ProofReading(True), traces=self.traces)

    def folder(self, cell: str, n: int) -> Path:
        return self.state / cell / str(n)
