"""Every number that a run depends on. A run's `config.json` is this record, resolved."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Settings:
    config: str = "baseline"
    seed: int = 0
    # what the four configs differ in
    risk_weight: float = 0.0  # price of the ensemble's disagreement along a plan
    certificate: bool = False  # filter actions through the barrier certificate
    # the robots: several gather data side by side, so that numpy has something to chew on
    robots: int = 4
    episode_length: int = 50
    warmup_steps: int = 200  # environment steps of random actions
    # ensemble
    members: int = 5
    hidden: int = 32
    learning_rate: float = 5e-4
    batch: int = 32
    # planner
    horizon: int = 8
    candidates: int = 32
    discount: float = 0.97
    cost_weight: float = 0.1
    # certificate
    margin: float = 0.01  # metres kept from a hazard's rim, for what the model does not know
    brake_time: float = 0.2  # seconds of approach speed that count as already travelled
    decay: float = 0.8  # share of the remaining safety that one step may use up


CONFIGS: dict[str, Settings] = {
    "baseline": Settings(config="baseline"),
    "u_only": Settings(config="u_only", risk_weight=1.0),
    "cert_only": Settings(config="cert_only", certificate=True),
    "full": Settings(config="full", risk_weight=1.0, certificate=True),
}


def resolve(config: str, seed: int) -> Settings:
    return replace(CONFIGS[config], seed=seed)
