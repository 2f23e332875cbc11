"""Faults of whole campaigns. Each happens at a random time to whatever is there; False: there was nothing for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from simulator.campaign_brain import Arm, Brain
from simulator.campaign_folder import Folder

if TYPE_CHECKING:
    from simulator.campaign_scene import Scene

POINTS = (
    "log.append",
    "log.torn",
    "log.fsync",
    "fold.begin",
    "store.commit",
    "store.committed",
    "store.append",
    "store.load",
    "store.records",
    "executor.lease",
    "lease.taken",
    "executor.launch",
    "order.rename",
    "spawn.sent",
    "executor.order",
    "executor.revoke",
    "revoke.create",
    "executor.stop",
    "stop.rename",
    "stop.poke",
    "executor.restart",
    "executor.keep",
    "probe.look",
    "probe.looked",
    "signals.read",
    "memory.save",
    "memory.saved",
    "waker.watch",
    "waker.forget",
    "lock.beat",
    "publish",
)
STEPS = ("lock", "started", "fork", "identity", "gate", "exit", "reap", "leave")
FOREIGN = object()
HOURS_OF_A_YEAR = 8760


def _brain(scene: Scene) -> Brain | None:
    able = [brain for brain in scene.brains if brain.kept and not brain.stopped]
    return scene.world.random.choice(able) if able else None


def _running(scene: Scene) -> Folder | None:
    able = [folder for folder in scene.folders.values() if folder.executing]
    return scene.world.random.choice(able) if able else None


def _where(scene: Scene) -> tuple[str, int]:
    rng = scene.world.random
    if rng.random() < 0.4:
        return "", rng.randint(1, 60)
    return rng.choice(POINTS), rng.randint(1, 3)


def _come_back(scene: Scene) -> None:
    """After a controller or a machine has gone: somebody looks at the campaign sooner or later."""
    rng = scene.world.random
    delay = rng.choice((0.5, 5.0, 60.0, 600.0)) * rng.uniform(0.5, 1.5)

    def look() -> None:
        if scene.book.intent == "running" and not scene.brains and not scene.coming:
            scene.start_controller(0.3)

    scene.world.after(delay, look)


def kill_controller(scene: Scene) -> bool:
    brain = _brain(scene)
    if brain is None:
        return False
    brain.arms.append(Arm("kill", *_where(scene)))  # nobody but the guard comes back

    def anyway() -> None:
        if brain.alive:
            brain.arms.append(Arm("kill", "", 1))

    scene.world.after(scene.world.random.uniform(10.0, 600.0), anyway)
    return True


def kill_guard(scene: Scene) -> bool:
    if scene.guard is None:
        return False
    scene.world.say("the guard is killed")
    scene.guard.process.end()
    return True


def stop_guard(scene: Scene) -> bool:
    if scene.guard is None or scene.guard.process.stopped:
        return False
    scene.world.say("the guard is stopped")
    guard = scene.guard
    guard.process.stopped = True
    scene.world.after(scene.dice.uniform(10.0, 900.0), guard.steps.go_on)
    return True


def kill_both(scene: Scene) -> bool:
    """In the same moment: a shim that lives starts them again, or somebody who looks."""
    if scene.guard is None or not scene.brains:
        return False
    scene.guard.process.end()
    for brain in list(scene.brains):
        brain.gone("is killed together with the guard")
    _come_back(scene)
    return True


def forbid_controllers(scene: Scene) -> bool:
    """Nothing can be loaded for a while: every controller fails as it begins."""
    scene.unable_until = scene.world.now + scene.dice.uniform(60.0, 2000.0)
    scene.world.say("no controller can begin for a while")
    for brain in list(scene.brains):
        brain.gone("is killed")
    return True


def kill_next_controller(scene: Scene) -> bool:
    """While it begins: between the lock, the epoch and its first turn."""
    scene.stillborn.append(Arm("kill", "", scene.world.random.randint(1, 25), after=lambda: _come_back(scene)))
    return True


def stop_controller(scene: Scene) -> bool:
    """For a while, in the middle of whatever it does; nobody minds."""
    brain = _brain(scene)
    if brain is None:
        return False
    brain.arms.append(Arm("stop", *_where(scene), lasts=scene.world.random.uniform(2.0, 400.0)))
    return True


def take_over(scene: Scene) -> bool:
    """It hangs, and somebody takes over; the old one is killed, or should have been and goes on later."""
    brain, rng = _brain(scene), scene.world.random
    if brain is None:
        return False
    hangs, survives = rng.uniform(30.0, 600.0), rng.random() < 0.7

    def successor() -> None:
        if not brain.alive:
            return
        if not survives:
            brain.gone("is killed by its successor")
        scene.bear(scene.world.life, beside=True)

    def hung() -> None:
        scene.world.after(rng.uniform(10.0, hangs - 10.0), successor)

    brain.arms.append(Arm("stop", *_where(scene), lasts=hangs, after=hung))
    return True


def second_controller(scene: Scene) -> bool:
    """The lock did not keep it from beginning: the file system has none, or somebody deleted the file."""
    if _brain(scene) is None:
        return False
    scene.bear(scene.world.life, beside=True)
    return True


def starve_controller(scene: Scene) -> bool:
    brain = _brain(scene)
    if brain is None:
        return False
    brain.arms.append(Arm("starve", *_where(scene), lasts=scene.world.random.uniform(1.0, 300.0)))
    return True


def kill_next_shim(scene: Scene) -> bool:
    scene.fates.append(scene.world.random.choice(STEPS))
    return True


def kill_shim(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None or folder.shim is None:
        return False
    scene.world.say(f"the shim of {folder.key[0]}@{folder.key[1]} is killed while its run lives")
    folder.shim.process.end()
    return True


def stop_shim(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None or folder.shim is None:
        return False
    shim = folder.shim
    shim.process.stopped = True
    scene.world.say(f"the shim of {folder.key[0]}@{folder.key[1]} is stopped")
    scene.world.after(scene.world.random.uniform(10.0, 900.0), shim.steps.go_on)
    return True


def kill_run(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None or folder.run is None:
        return False
    scene.world.say(f"{folder.key[0]}@{folder.key[1]} is killed")
    folder.run.end(None, 9)
    return True


def stop_run(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None or folder.run is None:
        return False
    run = folder.run
    scene.world.say(f"{folder.key[0]}@{folder.key[1]} is stopped (SIGSTOP)")
    run.stop()
    scene.world.after(scene.world.random.uniform(3.0, 900.0), run.go_on)
    return True


def lose_request(scene: Scene) -> bool:
    scene.lost_requests += scene.world.random.randint(1, 3)
    return True


def slow_request(scene: Scene) -> bool:
    scene.slow_requests += scene.world.random.randint(1, 3)
    return True


def fail_launch(scene: Scene) -> bool:
    scene.failing_launches = scene.world.random.randint(1, 3)
    return True


def reboot(scene: Scene) -> bool:
    scene.world.say("the machine reboots")
    scene.reboot()
    _come_back(scene)
    return True


def restart_container(scene: Scene) -> bool:
    scene.world.say("the container is restarted")
    scene.restart_container()
    _come_back(scene)
    return True


def move_container(scene: Scene) -> bool:
    """The controller dies, and the next one lives in another container; what runs goes on in the old one."""
    scene.world.say("the controller's container goes, another one comes")
    for brain in list(scene.brains):
        brain.gone("goes with its container")
    if scene.guard:
        scene.guard.process.end()
    scene.world.move()
    _come_back(scene)
    return True


def reuse_pid(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None or folder.shim is None or folder.run is None or folder.identity is None:
        return False
    folder.shim.process.end()
    folder.run.end(None, 9)
    scene.world.reuse(folder.identity.pid)
    scene.world.reuse(folder.identity.shim_pid)
    scene.world.say(f"{folder.key[0]}@{folder.key[1]} and its shim are killed, strangers have their pids")
    return True


def fill_disk(scene: Scene) -> bool:
    lasts = scene.world.random.uniform(1.0, 300.0)
    scene.world.disk.full_until = scene.world.now + lasts
    scene.world.say(f"the disk is full for {lasts:.0f} s")
    for brain in scene.brains:
        brain.disturbed = max(brain.disturbed, scene.world.disk.full_until)
    return True


def fail_fold(scene: Scene) -> bool:
    scene.shelf.fold_fails = scene.world.random.randint(1, 3)
    return True


def hide_folder(scene: Scene) -> bool:
    folder = _running(scene)
    if folder is None:
        return False
    folder.unread_until = scene.world.now + scene.world.random.uniform(1.0, 200.0)
    scene.world.say(f"the folder of {folder.key[0]}@{folder.key[1]} can't be read for a while")
    return True


def delete_folder(scene: Scene) -> bool:
    """Of an open attempt that a shim was asked for: by a cleaner of old files, by `git clean`, by the run itself."""
    able = [folder for entry, attempt in scene.book.open() if (folder := scene.folders.get((entry.id, attempt.n)))]
    able = [folder for folder in able if folder.order is not None and not folder.gone]
    if not able:
        return False
    folder = scene.world.random.choice(able)
    scene.world.say(f"the folder of {folder.key[0]}@{folder.key[1]} is deleted")
    folder.delete()
    return True


def deafen(scene: Scene) -> bool:
    scene.deaf_until = scene.world.now + scene.world.random.uniform(10.0, 900.0)
    scene.world.say("progress files do not answer for a while")
    return True


def break_bell(scene: Scene) -> bool:
    scene.bell_dead_until = scene.world.now + scene.world.random.uniform(10.0, 600.0)
    scene.world.say("the bell is not heard for a while")
    return True


def ring_much(scene: Scene) -> bool:
    for _ in range(scene.world.random.randint(3, 20)):
        scene.world.after(scene.world.random.uniform(0.0, 2.0), lambda: scene.ring("log"))
    return True


def take_slot(scene: Scene) -> bool:
    """Another campaign is quicker."""
    rng = scene.world.random
    free = [name for name in scene.slot_names() if not scene.world.leased(name)]
    names = [rng.choice(free)] if free else [rng.choice(scene.slot_names() or ["cpu0"])]
    lasts = rng.uniform(1.0, 120.0)

    def take(tries: int = 40) -> None:
        hold = scene.world.lease(names, FOREIGN)
        if hold:
            scene.world.say(f"another campaign has {names[0]} for {lasts:.0f} s")
            scene.world.after(lasts, hold.unlock)
        elif tries:
            scene.world.after(rng.uniform(0.01, 20.0), lambda: take(tries - 1))

    take()
    return True


def suspend(scene: Scene) -> bool:
    scene.world.suspend(scene.world.random.uniform(5.0, 4000.0))
    for brain in scene.brains:
        brain.disturbed = scene.world.now
    return True


def jump(scene: Scene) -> bool:
    seconds = scene.world.random.choice((-3600.0, -30.0, 30.0, 3600.0))
    if abs(seconds) > 60 and random.Random(repr(scene.world.now)).random() < 0.5:  # drawn apart
        seconds *= HOURS_OF_A_YEAR
    scene.world.jump(seconds)
    scene.bill.clock_set(seconds)
    return True


def lose_database(scene: Scene) -> bool:
    """campaign.db is deleted together with a controller's end: the next one folds the whole log."""
    if scene.brains:
        for brain in list(scene.brains):
            brain.gone("is killed")
        _come_back(scene)
    scene.checks.known = scene.checks.known or len(scene.shelf.main.events())
    scene.shelf.lose_database()
    scene.world.say("campaign.db is deleted")
    return True


def lose_memory(scene: Scene) -> bool:
    scene.memory.clear()
    return True


FAULTS: dict[str, tuple[float, Callable[[Scene], bool]]] = {
    "controller killed": (6.0, kill_controller),
    "controller killed as it begins": (1.5, kill_next_controller),
    "controller stopped": (1.5, stop_controller),
    "controller taken over": (2.0, take_over),
    "two controllers": (1.0, second_controller),
    "controller starved": (1.0, starve_controller),
    "shim killed at a step": (4.0, kill_next_shim),
    "shim killed, run lives": (2.0, kill_shim),
    "shim stopped": (1.0, stop_shim),
    "run killed": (1.0, kill_run),
    "run stopped": (1.5, stop_run),
    "request lost": (2.0, lose_request),
    "request slow": (1.0, slow_request),
    "launch fails": (1.0, fail_launch),
    "reboot": (2.0, reboot),
    "container restarted": (1.0, restart_container),
    "container moved": (0.7, move_container),
    "pid reused": (1.0, reuse_pid),
    "disk full": (1.5, fill_disk),
    "database not written": (1.0, fail_fold),
    "folder not read": (1.0, hide_folder),
    "folder deleted": (1.5, delete_folder),
    "files do not answer": (1.0, deafen),
    "bell lost": (1.0, break_bell),
    "bell storm": (0.5, ring_much),
    "slot taken": (2.0, take_slot),
    "suspend": (1.0, suspend),
    "wall clock jumps": (1.0, jump),
    "database deleted": (0.7, lose_database),
    "memory lost": (0.5, lose_memory),
}


OF_THE_GUARD: dict[str, tuple[float, Callable[[Scene], bool]]] = {
    "guard killed": (3.0, kill_guard),
    "guard stopped": (1.0, stop_guard),
    "controller and guard killed": (2.0, kill_both),
    "no controller can begin": (0.7, forbid_controllers),
}


def schedule(scene: Scene, horizon: float, count: int) -> None:
    rng, names = scene.world.random, list(FAULTS)
    weights = [FAULTS[name][0] for name in names]
    for name in rng.choices(names, weights, k=count):
        scene.world.after(rng.uniform(0.0, horizon), lambda name=name: _strike(scene, name))  # type: ignore[misc]


def schedule_for_guard(scene: Scene, horizon: float) -> None:
    """By dice of their own, in half of the campaigns: what else happens in a seed stays the same."""
    rng, names = scene.dice, list(OF_THE_GUARD)
    for name in rng.choices(names, [OF_THE_GUARD[name][0] for name in names], k=rng.choice((0, 0, 2, 4))):
        scene.world.after(rng.uniform(0.0, horizon), lambda name=name: _strike(scene, name))  # type: ignore[misc]


def _strike(scene: Scene, name: str) -> None:
    if not scene.over and (FAULTS | OF_THE_GUARD)[name][1](scene):
        scene.count(f"fault: {name}")
