"""Model-predictive control by random shooting, and the certificate that may overrule it."""

import numpy as np
from model import Array, Ensemble
from settings import Settings
from world import GOAL_BONUS, GOAL_RADIUS, World, distance, inside


class Planner:
    """Keeps each robot's last plan, (robots, horizon, 2), because the next one is best sought beside it."""

    def __init__(self, settings: Settings, model: Ensemble, robots: int, rng: np.random.Generator) -> None:
        self.settings, self.model, self.rng = settings, model, rng
        self.plan: Array = np.zeros((robots, settings.horizon, 2), np.float32)

    def forget(self) -> None:
        self.plan[:] = 0

    def act(self, world: World) -> tuple[Array, float]:
        """An action for each robot, and the mean penalty that its plan was charged for disagreement."""
        candidates = self._candidates()
        value, penalty = self._judge(world, candidates)
        best, each = value.argmax(axis=1), np.arange(len(value))
        self.plan = candidates[each, best]
        action = self.plan[:, 0]
        if self.settings.certificate:
            action = certify(self.settings, self.model, world, action)
        return action, float(penalty[each, best].mean())

    def _candidates(self) -> Array:
        """Half vary the last plan, half are new; noise is held over steps, since jitter moves no mass."""
        robots, horizon, _ = self.plan.shape
        n = self.settings.candidates
        shape = (robots, n, horizon, 2)
        held = self.rng.standard_normal((robots, n, 2, 2), np.float32).repeat(horizon // 2, axis=2)
        noise = 0.8 * held + 0.2 * self.rng.standard_normal(shape, np.float32)
        last = np.concatenate([self.plan[:, 1:], self.plan[:, -1:]], axis=1)[:, None]
        near, fresh = last + 0.5 * noise[:, : n // 2], 1.5 * noise[:, n // 2 :]
        near[:, 0] = last[:, 0]
        candidates: Array = np.concatenate([near, fresh], axis=1).clip(-1, 1).astype(np.float32)
        return candidates

    def _judge(self, world: World, candidates: Array) -> tuple[Array, Array]:
        """Roll all candidates through all members; value and penalty are (robots, candidates)."""
        s, members = self.settings, self.model.members
        robots, n, horizon, _ = candidates.shape
        rows = (members, robots, n)
        state = np.broadcast_to(world.state[None, :, None], (*rows, 4)).reshape(members, robots * n, 4)
        goal, hazards = world.goal[:, None], world.hazards[:, None]
        nearest = np.broadcast_to(distance(world.state[:, :2], world.goal)[:, None], rows)
        value = np.zeros(rows, np.float32)
        penalty = np.zeros((robots, n), np.float32)
        for t in range(horizon):
            state = self.model.predict(state, candidates[:, :, t].reshape(1, robots * n, 2))
            here = state[..., :2].reshape(*rows, 2)
            # Only coming nearer than ever counts: a plan that runs past a goal it reached loses nothing.
            nearer = np.minimum(nearest, np.maximum(distance(here, goal), GOAL_RADIUS))
            gain = nearest - nearer + GOAL_BONUS * ((nearer <= GOAL_RADIUS) & (nearest > GOAL_RADIUS))
            cost = inside(here, hazards)
            value += np.float32(s.discount**t) * (gain - s.cost_weight * cost)
            nearest = nearer
            if s.risk_weight:
                penalty += np.float32(s.risk_weight / horizon) * np.sqrt(here.var(axis=0).sum(axis=-1))
        return value.mean(axis=0) - penalty, penalty


def certify(s: Settings, model: Ensemble, world: World, wanted: Array) -> Array:
    """The action nearest to the wanted one that keeps h(next) >= (1 - decay) h(now).

    It has to hold for each hazard and by every member's prediction; where no action does, the one that falls
    short least is taken.
    """
    robots = len(wanted)
    trials = np.concatenate([wanted[:, None], np.broadcast_to(FAN, (robots, *FAN.shape))], axis=1)
    n = trials.shape[1]
    state = np.broadcast_to(world.state[:, None], (model.members, robots, n, 4)).reshape(model.members, -1, 4)
    after = model.predict(state, trials.reshape(1, -1, 2)).reshape(model.members, robots, n, 4)
    hazards = world.hazards[:, None]
    allowed = (1 - s.decay) * barrier(s, world.state[:, None], hazards)
    shortfall = np.maximum(allowed - barrier(s, after, hazards), 0).max(axis=(0, 3))
    change = distance(trials, wanted[:, None])
    chosen: Array = trials[np.arange(robots), (change + 1e4 * shortfall).argmin(axis=1)]
    return chosen


def barrier(s: Settings, state: Array, hazards: Array) -> Array:
    """h > 0 is safe. A robot with inertia is unsafe before it is inside: approach speed eats up clearance."""
    away = state[..., None, :2] - hazards[..., :2]
    gap = np.sqrt((away * away).sum(axis=-1)) + np.float32(1e-6)
    approach = np.maximum(-(away * state[..., None, 2:]).sum(axis=-1) / gap, 0)
    safety: Array = gap - hazards[..., 2] - s.margin - s.brake_time * approach
    return safety


def _fan() -> Array:
    angles = np.arange(12) * (2 * np.pi / 12)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([np.zeros((1, 2)), 0.5 * ring, ring]).astype(np.float32)


FAN = _fan()  # the actions that a certificate may fall back on: none, and two rings of directions
