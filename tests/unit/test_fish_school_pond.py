"""The pond of examples/fish_school: many ponds at once are what a plain loop over one pond is, and fish learn in it."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "fish_school"
MODULES = ("pond", "starts", "nets", "ppo", "episodes", "make_seeds")


@pytest.fixture(scope="module")
def school() -> Iterator[Any]:
    """The example's modules, which are files beside its script; gone afterwards, as others have such names too."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


class PlainPond:
    """One pond, fish by fish and hunter by hunter, in doubles."""

    def __init__(self, rules: Any, start: Any) -> None:
        self.rules, self.time = rules, 0
        self.fish = [list(map(float, place)) for place in start.fish]
        self.speed = [list(map(float, v)) for v in start.fish_velocity]
        self.hunters = [list(map(float, place)) for place in start.hunters]
        self.hunter_speed = [[0.0, 0.0] for _ in start.hunters]
        self.quickness = [float(q) for q in start.quickness]
        self.resting = [0] * len(self.hunters)
        self.death = [0] * len(self.fish)

    def step(self, action: Any) -> None:
        self.time += 1
        rules = self.rules
        for fish, stroke in enumerate(action):
            length = math.hypot(*stroke)
            strong = [part / max(1.0, length) for part in stroke]
            v = self.speed[fish]
            v = [v[k] + rules.FISH_AGILITY * (rules.FISH_SPEED * float(strong[k]) - v[k]) for k in (0, 1)]
            self.speed[fish] = self._move(self.fish[fish], v)
        living = [fish for fish, died in enumerate(self.death) if not died]
        before = [list(place) for place in self.fish]
        for hunter in range(len(self.hunters)):
            self._hunt(hunter, before, living)
        caught = []
        for hunter, place in enumerate(self.hunters):
            nearest = min(living, key=lambda fish, place=place: math.dist(place, self.fish[fish]), default=None)
            near = nearest is not None and math.dist(place, self.fish[nearest]) < rules.CATCH
            if near and self.resting[hunter] == 0:
                caught.append(nearest)
                self.resting[hunter] = rules.REST
            else:
                self.resting[hunter] = max(0, self.resting[hunter] - 1)
        for fish in set(caught):
            self.death[fish] = self.time

    def _hunt(self, hunter: int, fish: list[list[float]], living: list[int]) -> None:
        rules, place, v = self.rules, self.hunters[hunter], self.hunter_speed[hunter]
        wanted = [0.0, 0.0]
        if living:
            away = {each: math.dist(place, fish[each]) for each in living}
            target = min(living, key=away.__getitem__)
            crowd = sum(distance < rules.CROWD_RANGE for distance in away.values()) - 1
            speed = rules.HUNTER_SPEED * self.quickness[hunter] * rules.CROWD_HALF / (rules.CROWD_HALF + max(0, crowd))
            speed *= rules.REST_SPEED if self.resting[hunter] else 1
            wanted = [speed * (fish[target][k] - place[k]) / (away[target] + 1e-6) for k in (0, 1)]
        v = [v[k] + rules.HUNTER_TURN * (wanted[k] - v[k]) for k in (0, 1)]
        self.hunter_speed[hunter] = self._move(place, v)

    def _move(self, place: list[float], v: list[float]) -> list[float]:
        left = []
        for k in (0, 1):
            free = place[k] + v[k]
            place[k] = min(1.0, max(-1.0, free))
            left.append(v[k] if place[k] == free else 0.0)
        return left


@pytest.mark.parametrize("kind", ["open", "ne"])
def test_many_ponds_at_once_are_what_a_plain_loop_is(school: Any, kind: str) -> None:
    starts = school.starts.starts(range(7, 13), 12, kind)
    pond = school.pond.ponds(starts)
    plain = [PlainPond(school.pond, start) for start in starts]
    rng = np.random.default_rng(3)
    for _ in range(40):
        action = rng.normal(0, 1, (6, 12, 2)).astype(np.float32)
        school.pond.step(pond, action)
        for each, strokes in zip(plain, action.tolist(), strict=True):
            each.step(strokes)
    assert pond.death.tolist() == [each.death for each in plain]
    assert pond.death.any(), "nobody was caught: nothing was compared"
    np.testing.assert_allclose(pond.fish, [each.fish for each in plain], atol=1e-5)
    np.testing.assert_allclose(pond.hunters, [each.hunters for each in plain], atol=1e-4)
    assert pond.resting.tolist() == [each.resting for each in plain]


def test_a_pond_does_not_see_its_neighbours(school: Any) -> None:
    starts = school.starts.starts(range(5), 15)
    together, alone = school.pond.ponds(starts), school.pond.ponds(starts[3:4])
    for pond in (together, alone):
        for _ in range(60):
            school.pond.step(pond, -5 * school.pond.observe(pond)[..., school.pond.HUNTERS])
    assert together.death[3].tolist() == alone.death[0].tolist()
    np.testing.assert_allclose(together.fish[3], alone.fish[0], atol=1e-4)


def test_a_restarted_pond_is_a_new_one(school: Any) -> None:
    one, other = school.starts.starts((1, 2), 10)
    pond = school.pond.ponds([one, one])
    for _ in range(30):
        school.pond.step(pond, np.zeros((2, 10, 2), np.float32))
    school.pond.restart(pond, 1, other)
    fresh = school.pond.ponds([other])
    assert pond.age.tolist() == [30, 0]
    np.testing.assert_array_equal(school.pond.observe(pond)[1], school.pond.observe(fresh)[0])


def test_a_start_is_its_seed_and_nothing_else(school: Any) -> None:
    one, again, other = (school.starts.start(seed, 20) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.fish, again.fish)
    assert not np.array_equal(one.fish, other.fish)
    assert school.starts.start(4, 20, "ne").quickness.min() > 1


def test_the_seed_files_are_what_the_script_makes(school: Any, tmp_path: Path) -> None:
    school.make_seeds.main(tmp_path)
    for path in tmp_path.iterdir():
        made, there = (json.loads(each.read_text()) for each in (path, EXAMPLE / path.name))
        assert {entry["type"] for entry in there} == {entry["type"] for entry in made}
        # a processor that rounds otherwise may see the order of two starts otherwise
        shared = {entry["seed"] for entry in made} & {entry["seed"] for entry in there}
        assert len(shared) >= 0.8 * len(made), f"{path.name}: run make_seeds.py"


def test_gradients_are_those_of_the_loss(school: Any) -> None:
    """By small differences, in doubles."""
    nets, rng = school.nets, np.random.default_rng(0)
    weights = {name: value.astype(float) for name, value in nets.new_weights(rng, 5).items()}
    seen, action = rng.normal(size=(40, 5)), rng.normal(size=(40, 2))
    chance = nets.log_chance(weights, nets.actor(weights, seen), action) + rng.normal(0, 0.2, 40)
    batch = nets.Batch(seen, action, chance, rng.normal(size=40), rng.normal(size=40))

    def loss(w: dict[str, Any]) -> float:
        off = (action - nets.actor(w, seen)) / np.exp(w["spread"])  # log_chance itself rounds to singles
        now = -0.5 * (off * off).sum(axis=-1) - w["spread"].sum() - math.log(2 * math.pi)
        ratio = np.exp(now - chance)
        gain = np.minimum(ratio * batch.advantage, np.clip(ratio, 0.8, 1.2) * batch.advantage)
        value = nets.critic(w, seen)
        return float(-gain.mean() + 0.5 * ((value - batch.target) ** 2).mean() - 0.003 * w["spread"].sum())

    found = nets.gradients(weights, batch, 0.2, 0.003)
    for name, grad in found.items():
        place = tuple(rng.integers(size) for size in grad.shape)
        slopes = []
        for sign in (1, -1):
            moved = {key: value.copy() for key, value in weights.items()}
            moved[name][place] += sign * 1e-6
            slopes.append(loss(moved))
        assert grad[place] == pytest.approx((slopes[0] - slopes[1]) / 2e-6, abs=2e-5), name


def test_measures_of_an_evaluation(school: Any) -> None:
    death = np.array([[1, 50, 100, 301], [301, 301, 301, 200]], np.int32)  # of episodes of 300 steps
    found = school.episodes.measures(death, 300)
    assert (found["avg_final"], found["min_final"]) == (0.5, 0.25)
    assert (found["early_death_100"], found["step_one"], found["step_one_ratio"]) == (0.375, 1, 0.125)
    assert found["first_death_p10"] == pytest.approx(35.3)


def test_fish_learn_to_survive(school: Any) -> None:
    rng = np.random.default_rng(1)
    weights = school.nets.new_weights(rng, school.pond.FEATURES)
    adam = school.nets.Adam(weights, 2e-3)
    survival = []
    for _ in range(12):
        pond = school.pond.ponds(school.starts.starts(rng.integers(2**31, size=24), 15))
        lived = school.ppo.live(pond, weights, rng, 200, 1.0, lambda *_: np.zeros(24, bool))
        school.ppo.learn(weights, adam, lived, rng, 20_000, 1024, 3)
        survival.append(pond.alive.mean())
    assert np.mean(survival[-3:]) > np.mean(survival[:3]) + 0.1
