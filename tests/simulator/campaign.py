"""Whole campaigns: the real controller, planner, judge and store in a made-up world, seeded, in compressed time.

python -m simulator.campaign --campaigns 2000 --jobs 2     many seeds, with figures
python -m simulator.campaign --campaigns 0 --seed 17       one seed, told as a timeline
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from muster.engine.store.database_checks import dump_database
from muster.engine.store.sql_files import QUERIES
from muster.engine.store.sqlite_store import SqliteStore
from muster.ledger.billed_spans import all_slot_spans, ledger_time_of
from muster.ledger.prices_and_accounts import build_ledger, declared_prices, first_claim_time, rented_stretches
from simulator import campaign_faults, campaign_people
from simulator.campaign_book import summary
from simulator.campaign_make import make_campaign
from simulator.campaign_scene import Scene
from simulator.world import Violation, World

LONGEST = 15  # times what the campaign should take
BILL_S = 5.0  # moments between a decision and its commit, over a whole campaign
LINGERS_S = 600.0  # what a run leaves behind is gone by then


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    violation: str  # "": none
    counts: Counter[str]
    simulated_s: float
    took_s: float
    timeline: tuple[tuple[float, str], ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        return not self.violation


def simulate_campaign(seed: int) -> Result:
    began = time.process_time()
    world = World(seed)
    made = make_campaign(world.random)
    with tempfile.TemporaryDirectory(prefix="muster-sim-") as name:
        folder = Path(name)
        (folder / "campaigns").mkdir()
        scene = Scene(world, made, folder)
        violation = ""
        try:
            _live(scene)
            _final(scene)
        except Violation as found:
            violation = str(found)
            world.say(f"VIOLATION: {violation}")
    counts = scene.counts
    counts.update(summary(scene.book))
    counts.update(scene.checks.notes)
    counts["attempts"] = sum(len(entry.tries) for entry in scene.book.cells.values())
    counts["controllers"] = scene.born
    for entry in scene.book.cells.values():
        for attempt in entry.tries:
            if attempt.kind:
                counts[f"cause: {attempt.kind}"] += 1
    return Result(seed, violation, counts, world.now, time.process_time() - began, tuple(world.told))


def _live(scene: Scene) -> None:
    """A time of faults and of people who act at random, then a time in which somebody brings it to an end."""
    rng, lasts = scene.world.random, scene.made.lasts_s
    scene.take_in()
    scene.start_controller(0.3)
    horizon = lasts * rng.uniform(0.5, 1.2)
    campaign_faults.schedule(scene, horizon, rng.choice((0, 3, 8, 20)))
    campaign_faults.schedule_for_guard(scene, horizon)
    campaign_people.schedule(scene, horizon, rng.choice((0, 0, 4, 10)))
    every = max(120.0, 6 * scene.made.poll_s, lasts / 20)
    diligent = campaign_people.Diligent(scene, every)
    scene.world.after(horizon, diligent.come)
    scene.drive(horizon + LONGEST * lasts + 8 * 3600)
    if not scene.over:
        raise Violation(f"the campaign does not come to an end: {_left(scene)}")


def _left(scene: Scene) -> str:
    book = scene.book
    opens = [f"{entry.id}@{attempt.n}" for entry, attempt in book.open()]
    missing = [entry.id for entry in book.declared if not entry.settled]
    return f"intent {book.intent}, open {opens}, not settled {missing[:5]}, {len(scene.brains)} controllers"


def _final(scene: Scene) -> None:
    """When all is over: nothing is left behind, and the log tells all."""
    shelf = scene.shelf
    scene.world.spend(LINGERS_S)
    kept = [name for name in scene.slot_names() if scene.world.leased(name)]
    if kept:
        raise Violation(f"all is over, and {kept} are still leased")
    if shelf.main.behind():  # the last words of a controller that had to give way
        scene.checks.committed(None, [], shelf.main.commit([]))
    fresh = SqliteStore(shelf.folder, log=shelf.log, database=":memory:")
    fresh.commit([])
    if dump_database(fresh.db) != dump_database(shelf.main.db):
        raise Violation("the log folds to another database than the one that was kept")
    fresh.close()
    _billed_once(shelf.main)
    _billed_whole(scene)
    shelf.main.close()


def _billed_whole(scene: Scene) -> None:
    """The ledger explains what the campaign truly cost: no span is lost, and none is made up."""
    state, world = scene.shelf.main.load(), scene.world
    declared = declared_prices(state) if state else None
    if state is None or declared is None:
        return
    now = ledger_time_of(state, world.wall, world.boot, world.life.boot_id)
    on = rented_stretches(state, now, first_claim_time(state)) if declared.ever("machine") else []
    found = build_ledger(tuple(all_slot_spans(state, now)), declared, on).money
    told, truth, doubt = found.total if found else 0.0, scene.bill.spent(world.now), scene.bill.gap_doubt
    if not 0.99 * truth - BILL_S - doubt <= told <= 1.01 * (truth + scene.bill.doubt()) + BILL_S + doubt:
        raise Violation(f"the ledger tells {told:.0f}, and it cost {truth:.0f}")


def _billed_once(store: SqliteStore) -> None:
    """No slot was held for two attempts at the same time."""
    last: dict[tuple[str, str], tuple[float, str]] = {}
    for row in store.db.execute(QUERIES["spans"]):
        place, name = (row["boot_id"], row["slot"]), f"{row['cell']}@{row['attempt']}"
        until, other = last.get(place, (0.0, ""))
        if row["began_boot"] < until - 1e-6:
            raise Violation(f"{row['slot']} is billed to {other} and {name} at the same time")
        if row["ended_boot"] is not None:
            last[place] = (row["ended_boot"], name)


def replay(seed: int) -> Result:
    """Prints what happened, in the order in which it happened."""
    result = simulate_campaign(seed)
    for at, text in result.timeline:
        hours, rest = divmod(at, 3600)
        print(f"{hours:3.0f}:{rest // 60:02.0f}:{rest % 60:06.3f}  {text}")
    print(f"seed {seed}: {result.violation or 'nothing that must not happen'}")
    return result


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator.campaign", description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=0, help="how many seeds; 0: tell one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    args = parser.parse_args(argv)
    if not args.campaigns:
        return 0 if replay(args.seed).ok else 1
    results = simulate_many(range(args.seed, args.seed + args.campaigns), args.jobs)
    print(figures(results))
    return 0 if all(result.ok for result in results) else 1


def simulate_many(seeds: Sequence[int], jobs: int = 1) -> list[Result]:
    if jobs <= 1:
        return [_short(seed) for seed in seeds]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_short, seeds, chunksize=8))


def _short(seed: int) -> Result:
    """Without its timeline, which one seed tells again."""
    whole = simulate_campaign(seed)
    return Result(whole.seed, whole.violation, whole.counts, whole.simulated_s, whole.took_s)


def figures(results: Sequence[Result]) -> str:
    total: Counter[str] = Counter()
    for result in results:
        total.update(result.counts)
    bad = [result for result in results if not result.ok]
    took, simulated = sum(r.took_s for r in results), sum(r.simulated_s for r in results)
    lines = [
        f"{len(results)} campaigns, {len(bad)} with a violation; {took / max(1, len(results)):.2f} s each, "
        f"the longest {max(r.took_s for r in results):.1f} s; {simulated / 86400:.0f} simulated days",
    ]
    lines += [f"  {name}: {total[name]}" for name in sorted(total)]
    for result in bad[:20]:
        lines.append(f"seed {result.seed}: {result.violation.splitlines()[0]}")
        lines.append(f"    replay it with: python -m simulator.campaign --campaigns 0 --seed {result.seed}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
