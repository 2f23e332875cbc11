"""The loop: an episode in every pond, learning, now and then an evaluation and the gate's word on it, a checkpoint."""

import sys
import time
from argparse import Namespace
from typing import Any
from zipfile import BadZipFile

import numpy as np
from checkpoint import FILE, load, save, told_by
from course import Course
from episodes import evaluate, record
from nets import Adam, new_weights
from numpy.typing import NDArray
from options import parser, staged
from pond import FEATURES, Pond, ponds, restart
from ppo import Lived, learn, live
from records import EVALS, GATE, TRAIN, Records, Row
from starts import Start, start

from muster.stages import GateError, SpecError
from muster.stages.episodes import Plan
from muster.stages.traces import stage_summary

FREE = ("artifacts", "resume", "save_every", "video_num_fish", "skip_final_eval")


class Trainer:
    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.course = Course(staged(args))
        self.rng = np.random.default_rng(args.seed)
        self.weights = new_weights(self.rng, FEATURES)
        self.adam = Adam(self.weights, args.learning_rate)
        self.done, past = 0, None
        if args.resume:
            told = load(args.resume, self.weights, self.adam, self.rng)
            other = [f"--{name} was {was}" for name, was in told["flags"].items() if was != self.flags().get(name)]
            if other:
                raise GateError(f"{args.resume} is of another run: {', '.join(other)}")
            self.course.load(told)
            self.done, past = told["iteration"], told["rows"]
        self.records = Records(args.artifacts, past)
        if not past:
            self.records.add(GATE, {"gate": "penalty", "settings": self.course.gate.settings.mapping()})

    def run(self) -> None:
        for iteration in range(self.done + 1, self.args.total_iterations + 1):
            self.iterate(iteration)
            if iteration % self.args.save_every == 0 or iteration == self.args.total_iterations:
                self.save(iteration)
        if self.done >= self.args.total_iterations:
            self.save(self.done)  # resumed at its end: the files are whole in this folder too
            print(f"it was finished already, after {self.done} iterations")
        if self.args.video_num_fish:
            seed, steps = self.args.multi_eval_seed_base, self.args.n_steps
            record(self.args.artifacts / "swim.npz", self.weights, seed, self.args.video_num_fish, steps)

    def iterate(self, iteration: int) -> None:
        began = time.monotonic()
        lived, row = self.swim(iteration)
        args = self.args
        learn(self.weights, self.adam, lived, self.rng, args.samples, args.batch_size, args.n_epochs)
        self.records.add(TRAIN, row | {"seconds": round(time.monotonic() - began, 3)})
        said = f"iteration {iteration} {row['stage']} fish {row['fish']} survival {row['survival']:.3f}"
        last = iteration == args.total_iterations and not args.skip_final_eval
        if iteration % args.multi_eval_interval == 0 or last:
            said += f" | {self.judge(iteration)}"
        print(said, flush=True)

    def swim(self, iteration: int) -> tuple[Lived, Row]:
        """An episode in every pond; the last ponds begin with hard starts, and once more when their time is up."""
        args, course, phase = self.args, self.course, self.course.phase
        stage, fish = course.stage(iteration), course.fish(iteration)
        tails = round(args.num_envs * args.hard_share)
        usual = args.num_envs - tails
        fresh = [start(int(seed), fish) for seed in self.rng.integers(2**31, size=usual)]
        pond = ponds(fresh + self.hard(stage.source, tails, fish), phase.quickness)
        counts = {"step_one": 0, "started": pond.alive.size}

        def renew(age: int, pond: Pond) -> NDArray[np.bool_]:
            counts["step_one"] += int((pond.death[pond.age == 1] == 1).sum())
            cut = np.zeros(args.num_envs, bool)
            if age % args.tail_force_reset_steps == 0 and age < args.n_steps:
                for index, school in enumerate(self.hard(stage.source, tails, fish), usual):
                    restart(pond, index, school, phase.quickness)
                    cut[index] = True
                counts["started"] += tails * fish
            return cut

        lived = live(pond, self.weights, self.rng, args.n_steps, phase.penalty, renew)
        return lived, {
            "iteration": iteration,
            "stage": stage.type,
            "fish": fish,
            "phase": course.gate.phase,
            "survival": round(float(pond.alive[:usual].mean()), 4),
            "first_death_step": round(float(np.where(pond.alive, args.n_steps, pond.death)[:usual].mean()), 1),
            "reward": round(float(lived.reward[lived.alive].mean()), 6),
            "step_one_ratio": round(counts["step_one"] / counts["started"], 4),
        } | counts

    def hard(self, source: str, count: int, fish: int) -> list[Start]:
        return [start(entry["seed"], fish, entry["type"]) for entry in self.course.cycler.draw(source, count)]

    def judge(self, iteration: int) -> str:
        args, stage = self.args, self.course.stage(iteration).type
        plan = Plan(args.multi_eval_probe_episodes, args.eval_multi_episodes, args.multi_eval_seed_base)
        found = evaluate(self.weights, iteration, plan, args.eval_multi_fish, args.n_steps)
        self.records.add(EVALS, {"iter": iteration, "stage": stage} | found)
        decision = self.course.gate.observe(iteration, found, stage=stage)
        self.records.add(GATE, decision.row())
        return f"p10 {found['first_death_p10']} avg_final {found['avg_final']} | {decision.state}: {decision.why}"

    def flags(self) -> dict[str, Any]:
        """What a run was started with; those that may change when it resumes are left out."""
        return {name: str(value) for name, value in vars(self.args).items() if value is not None and name not in FREE}

    def save(self, iteration: int) -> None:
        """The checkpoint comes last: what it says has been written is there."""
        records = self.records
        counts = ((row["iteration"], row["stage"], row["step_one"], row["started"]) for row in records.rows[TRAIN])
        records.json("schedule_trace.json", self.course.trace(iteration))
        records.json("stage_summary.json", stage_summary(counts))
        records.stats()
        rest: dict[str, Any] = {"iteration": iteration, "flags": self.flags(), "rows": records.rows}
        rest |= self.course.state()
        save(self.args.artifacts / FILE, self.weights, self.adam, self.rng, rest)


def run(argv: list[str]) -> int:
    known = parser()
    args = known.parse_args(argv)
    try:
        if args.resume:  # what is not given again stays as it was
            known.set_defaults(**told_by(args.resume)["flags"])
            args = known.parse_args(argv)
        trainer = Trainer(args)
    except (SpecError, GateError, OSError, ValueError, KeyError, BadZipFile) as error:
        print(error, file=sys.stderr)
        return 2
    trainer.run()
    return 0
