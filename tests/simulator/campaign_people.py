"""People: they act at random while the campaign runs, and in the end one of them brings it to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.engine.plan.scheduling import choose_slots, slots_needed
from simulator import campaign_looker
from simulator.campaign_book import Entry
from simulator.campaign_make import changed, richer

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene

ACTS = ("hold", "release", "stop", "retry", "giveup", "accept", "down", "up", "change", "edit", "filter", "look")
PATIENCE = 3  # how often a cell is retried before it is given up


def schedule(scene: Scene, horizon: float, count: int) -> None:
    rng = scene.world.random
    for act in rng.choices(ACTS, k=count):
        scene.world.after(rng.uniform(0.0, horizon), lambda act=act: _act(scene, act))  # type: ignore[misc]
        if act in ("hold", "down"):  # and after a while somebody lets it go on
            then = "release" if act == "hold" else "up"
            scene.world.after(rng.uniform(0.0, horizon), lambda then=then: _act(scene, then))  # type: ignore[misc]


def _act(scene: Scene, act: str) -> None:
    if scene.over:
        return
    campaign_looker.look(scene)
    if act in ("stop", "retry", "giveup", "accept"):
        _about_a_cell(scene, act)
    elif act in ("hold", "release"):
        scene.decide([scene.person(act, "a person wants it")])
    elif act == "down":
        scene.decide([scene.person("intent", "muster down", intent="down")])
    elif act == "change":
        scene.campaign, what = changed(scene.world.random, scene.campaign)
        scene.count(f"campaign: {what}")
        scene.take_in()
    elif act == "edit":
        _edit(scene)
        scene.take_in()
    elif act == "filter":
        scene.take_in(only=[{"seed": ["s0", "s1"]}])
    elif act == "up":
        scene.take_in()
    look(scene)


def look(scene: Scene) -> None:
    """Any command revives a controller that died."""
    if scene.book.intent == "running" and not scene.brains and not scene.coming:
        scene.start_controller(scene.world.random.uniform(0.1, 1.0))


def _edit(scene: Scene) -> None:
    """Somebody fixes the code, or the config of a cell."""
    cell = scene.world.random.choice(["code", *scene.book.cells])
    scene.versions[cell] = scene.versions.get(cell, 0) + 1


def _about_a_cell(scene: Scene, act: str) -> None:
    rng = scene.world.random
    cells = list(scene.book.cells.values())
    fitting = [entry for entry in cells if bool(entry.open) == (act == "stop") and entry.tries]
    entry = rng.choice(fitting or cells)
    number = len(entry.tries) if act == "accept" else None
    if act == "accept" and not entry.tries:
        return
    scene.decide([scene.person(act, "a person wants it", entry.id, number)])


class Diligent:
    """Comes by now and then, after all faults, until the campaign is complete."""

    def __init__(self, scene: Scene, every_s: float) -> None:
        self.scene, self.every_s = scene, every_s
        self.rounds = 0
        self.tries: dict[str, int] = {}
        self.asked: dict[str, int] = {}

    def come(self) -> None:
        self.rounds += 1
        scene = self.scene
        campaign_looker.look(scene)
        if scene.coming:
            pass
        elif scene.book.complete and not scene.brains:
            scene.over = scene.book.end is not None and bool(scene.book.end.data["complete"])
            if not scene.over:
                self._wake()
        else:
            self._tend()
            look(scene)
        if not scene.over:
            scene.world.after(self.every_s, self.come)

    def _wake(self) -> None:
        """All is done, and nobody has said so yet."""
        if self.scene.book.intent == "held":
            self.scene.decide([self.scene.person("release", "all is done")])
        if self.scene.book.intent != "running":
            self.scene.take_in()
        self.scene.start_controller(0.3)

    def _tend(self) -> None:
        scene = self.scene
        if scene.book.intent == "held":
            scene.decide([scene.person("release", "it is fixed")])
        if scene.bill.may_refuse() and not scene.brains and scene.book.startable():
            scene.campaign = richer(scene.campaign)
            scene.count("campaign: more money")
            scene.take_in()
        elif scene.book.intent == "down" or scene.book.only:
            scene.take_in()
        for entry, attempt in scene.book.open():
            self._stop_if_stuck(entry.id, attempt.n)
        for entry in scene.book.declared:
            if entry.open:
                continue
            if entry.tries and not entry.settled and not scene.book.may_retry(entry):
                self.tries[entry.id] = self.tries.get(entry.id, 0) + 1
                kind = "retry" if self.tries[entry.id] <= PATIENCE else "giveup"
                scene.decide([scene.person(kind, "after all", entry.id)])
            elif not entry.settled and self._hopeless(entry):
                scene.decide([scene.person("giveup", "it can never start", entry.id)])

    def _hopeless(self, entry: Entry) -> bool:
        """What it needs was given up, or there are not enough slots for it."""
        book, slots = self.scene.book, self.scene.slot_names()
        gpus, cpus = [slot for slot in slots if slot[0] == "g"], [slot for slot in slots if slot[0] == "c"]
        if choose_slots(slots_needed(book.jobs[entry.job], has_gpus=bool(gpus)), gpus, cpus) is None:
            return True
        return any(book.cells[other].given_up for other in book.needs[entry.id])

    def _stop_if_stuck(self, cell: str, n: int) -> None:
        folder = self.scene.folders.get((cell, n))
        if folder is not None and folder.gone and not folder.lives and not self.scene.book.cells[cell].stop:
            self.scene.decide([self.scene.person("stop", "its files are gone, and nothing of it runs", cell)])
            return
        if folder is None or folder.run is None or folder.run.plan.truth.works(folder.run.t):
            return
        self.asked[cell] = self.asked.get(cell, 0) + 1
        if not self.scene.book.cells[cell].stop:
            self.scene.decide([self.scene.person("stop", "it hangs", cell)])
        elif self.asked[cell] > PATIENCE:  # in a container that nobody can look into, without a shim
            self.scene.count("person: kills by hand")
            folder.run.end(None, 9)
