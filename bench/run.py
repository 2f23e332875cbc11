"""Figures of speed, each with its floor in the same run, because this machine may be shared and slow.

make bench            all of them
python bench/run.py launch gap status   some of them
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import readers
import reports
import staged

MUSTER = [sys.executable, "-m", "muster"]
FAILED: list[str] = []


def say(name: str, figure: str, goal: str, good: bool) -> None:
    print(f"{'ok  ' if good else 'MISS'} {name:<44} {figure:<44} goal: {goal}", flush=True)
    if not good:
        FAILED.append(name)


@contextmanager
def workshop() -> Iterator[None]:
    """Where the campaigns of this run lie; deleted at the very end.

    ext4 creates files forty times slower for minutes after many were deleted close by, because it will not reuse
    their inodes yet: a bench that cleans up behind itself would measure its own broom. +T spreads the folders.
    """
    base = tempfile.mkdtemp(prefix="muster-bench-")
    subprocess.run(["chattr", "+T", base], stderr=subprocess.DEVNULL, check=False)
    tempfile.tempdir = base
    print(f"     a new file costs {new_file_us(base):.0f} us here, a synced one {new_file_us(base, sync=True):.0f} us")
    try:
        yield
    finally:
        shutil.rmtree(base, ignore_errors=True)


def new_file_us(base: str, *, sync: bool = False) -> float:
    folder, spent = tempfile.mkdtemp(dir=base), []
    for number in range(200):
        began = time.perf_counter()
        fd = os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY)
        if sync:
            os.write(fd, b"x")
            os.fsync(fd)
        os.close(fd)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6


@contextmanager
def campaign(text: str) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp())
    os.environ["MUSTER_HOME"] = str(root / "home")
    (root / "campaign.yaml").write_text(text)
    try:
        yield root
    finally:
        muster(root, "down", "--runs", "--because", "the bench is over")


def muster(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MUSTER, "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def run_to_the_end(root: Path) -> None:
    """Nobody watches: a live view would take its share of the two cores."""
    muster(root, "up", "--detach")
    wait_for(lambda: not (root / ".muster" / "controller.lock").read_text().strip(), 120)


def matrix(cells: int, command: str, slots: int = 2) -> str:
    seeds = ", ".join(map(str, range(cells)))
    return (
        f"muster: 1\ncampaign: bench\naxes: {{seed: [{seeds}]}}\nslots: {{gpus: 0, cpus: {slots}}}\n"
        f"jobs: {{train: {{axes: [seed], command: {command}}}}}\n"
    )


def spawn_floor(count: int = 300) -> float:
    """Milliseconds for one /bin/true, two at a time, by posix_spawn."""
    began, live = time.perf_counter(), 0
    for _ in range(count):
        if live == 2:
            os.wait()
            live -= 1
        os.posix_spawn("/bin/true", ["true"], {})
        live += 1
    while live:
        os.wait()
        live -= 1
    return (time.perf_counter() - began) / count * 1000


def python_floor() -> float:
    return median_ms([sys.executable, "-c", "pass"])


def median_ms(command: list[str], times: int = 15) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1000


def launch() -> None:
    count = 300
    floor = statistics.median(spawn_floor(count) for _ in range(3))
    with campaign(matrix(count, "/bin/true")) as root:
        run_to_the_end(root)
        db = sqlite3.connect(root / ".muster" / "campaign.db")
        (first,) = db.execute("SELECT min(boot) FROM event WHERE kind = 'start'").fetchone()
        (last,) = db.execute("SELECT max(boot) FROM event WHERE kind = 'settle'").fetchone()
        (done,) = db.execute("SELECT count(*) FROM attempt WHERE verdict = 'DONE'").fetchone()
    each = (last - first) / count * 1000
    say("launch of a no-op attempt, 2 slots, 300", f"{each:.2f} ms = {each / floor:.1f} x {floor:.2f} ms ({done} done)",
        "<= 25 x the floor", each / floor <= 25 and done == count)  # fmt: skip


def gap() -> None:
    """From the moment a run's exit is seen to the moment the next one on that slot is let go."""
    with campaign(matrix(200, "sleep 0.03")) as root:
        run_to_the_end(root)
        facts = []
        for folder in (root / ".muster" / "attempts" / "train").glob("*/*"):
            order = json.loads((folder / "attempt.json").read_text())
            began = json.loads((folder / "identity.json").read_text())["boot"]
            ended = json.loads((folder / "exit.json").read_text())["boot"]
            facts.append((order["slots"][0], began, ended))
    facts.sort()
    gaps = [b[1] - a[2] for a, b in pairwise(facts) if a[0] == b[0]]
    p50, p99 = statistics.median(gaps) * 1000, statistics.quantiles(gaps, n=100)[98] * 1000
    say("idle gap of a slot between two attempts", f"p50 {p50:.1f} ms, p99 {p99:.1f} ms ({len(gaps)} gaps)",
        "p50 <= 10 ms, p99 <= 40 ms", p50 <= 10 and p99 <= 40)  # fmt: skip


def status() -> None:
    for cells, goal in ((20, 12), (10_000, 40)):
        with campaign(finished(cells)) as root:
            muster(root, "up", "--only", "seed=0")
            floor = python_floor()
            spent = median_ms([*MUSTER, "-C", str(root), "status"])
        say(f"muster status, cold, {cells} cells", f"{spent:.0f} ms = {spent / floor:.1f} x {floor:.1f} ms",
            f"<= {goal} x python -c pass", spent / floor <= goal)  # fmt: skip


def finished(cells: int) -> str:
    side = max(1, cells // 100) if cells > 100 else 1
    configs = ", ".join(f"c{i}" for i in range(side))
    seeds = ", ".join(map(str, range(cells // side)))
    return (
        f"muster: 1\ncampaign: bench\naxes: {{config: [{configs}], seed: [{seeds}]}}\nslots: {{gpus: 0, cpus: 2}}\n"
        "jobs: {train: {axes: [config, seed], command: /bin/true}}\n"
    )


def hundred() -> None:
    """100 live runs: what the controller and a shim cost, and how soon the truth is back after a kill."""
    with campaign(matrix(100, "sleep 600", slots=100)) as root:
        muster(root, "up", "--detach")
        wait_for(lambda: len(list((root / ".muster/attempts/train").glob("*/1/execing"))) == 100)
        pid = controller(root)
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(20)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began) * 100
        size = rss_mb(pid)
        good = share <= 1 and size <= 80
        say("controller with 100 live runs", f"{share:.2f} % of a core, {size:.1f} MB", "<= 1 %, 80 MB", good)
        shims = [int((f / "shim.lock").read_text().split()[0]) for f in (root / ".muster/attempts/train").glob("*/1")]
        largest = max(rss_mb(shim) for shim in shims)
        say("RSS of a shim", f"{largest:.1f} MB (largest of {len(shims)})", "<= 12 MB", largest <= 12)
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        while True:
            found = json.loads(muster(root, "status", "--json").stdout)
            if found["controller"]["alive"] and found["counts"]["RUNNING"] == 100:
                break
        took = time.monotonic() - began
        say("killed controller to true status, 100 runs", f"{took:.2f} s (status {found['counts']['RUNNING']} RUNNING)",
            "<= 2 s", took <= 2)  # fmt: skip


WRITER = """\
import json, os, sys, time
out = os.environ["MUSTER_OUT"]
os.makedirs(out + "/replay")
for chunk in range(50):
    with open(f"{out}/replay/{chunk:05}.npz", "wb") as file:
        file.write(bytes(1000))
with open(out + "/model.ckpt", "wb") as file:
    file.write(bytes(100_000))
with open(out + "/metrics.jsonl", "a", buffering=1) as log:
    for step in range(10**9):
        log.write(json.dumps({"step": step, "loss": 1 / (step + 1), "reward": step * 0.5}) + "\\n")
        time.sleep(1)
"""


def observe() -> None:
    """100 live runs whose metrics grow every second, with 50 chunks and a checkpoint each, polled every 5 s."""
    text = matrix(100, f"{sys.executable} -S writer.py", slots=100)[:-3] + (
        ", progress: [{jsonl: metrics.jsonl, step: step}, {files: replay/*.npz}, {checkpoint: model.ckpt}]}}\n"
    )
    with campaign(text) as root:
        (root / "writer.py").write_text(WRITER)
        muster(root, "up", "--detach")
        wait_for(lambda: len(list((root / ".muster/attempts/train").glob("*/1/out/metrics.jsonl"))) == 100)
        time.sleep(12)  # the first looks read all there is
        pid = controller(root)
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(30)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began) * 100
        seen = json.loads((root / ".muster" / "watch.json").read_text())["histories"]
        steps = [each["pulses"]["metrics.jsonl"]["count"] or 0 for each in seen.values()]
        size = rss_mb(pid)
        good = share <= 3 and size <= 150 and len(steps) == 100 and min(steps) > 20
        figure = f"{share:.2f} % of a core, {size:.1f} MB (least step seen {min(steps):.0f})"
        say("observing 100 live runs", figure, "<= 3 %, 150 MB", good)


def chunks() -> None:
    from muster.readers.file_watches import ChunkWatch

    folder = Path(tempfile.mkdtemp())
    for number in range(20_000):
        (folder / f"chunk_{number:06}.npz").touch()
    watch, spent = ChunkWatch(str(folder / "*.npz")), []
    watch.look()
    for number in range(50):
        (folder / f"new_{number}.npz").touch()
        began = time.perf_counter()
        watch.look()
        spent.append(time.perf_counter() - began)
    floor = median_call_ms(lambda: os.listdir(folder))  # noqa: PTH208
    middle, worst = statistics.median(spent) * 1000, max(spent) * 1000
    figure = f"median {middle:.1f}, worst {worst:.1f} ms; a bare listdir {floor:.1f} ms"
    say("a pass over 20,000 chunks, one new", figure, "<= 20 ms", middle <= 20)


def median_call_ms(work: Callable[[], object], times: int = 15) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1000


def jsonl() -> None:
    """100 MB appended to a log that is being read, against msgspec decoding the same lines."""
    import msgspec

    from muster.readers.records.text_steps import JsonlStepReader

    row = {"step": 0, "train/loss": 0.123456789, "train/reward": -12.5, "grad/norm": 1.75, "note": "x" * 60}
    lines = [msgspec.json.encode({**row, "step": step}) for step in range(650_000)]
    path = Path(tempfile.mkdtemp()) / "metrics.jsonl"
    path.write_bytes(lines[0] + b"\n")
    reader = JsonlStepReader(str(path), "step")
    reader.look()
    data = b"\n".join(lines[1:]) + b"\n"
    with path.open("ab") as file:
        file.write(data)
    began = time.perf_counter()
    while reader.step != 649_999:
        reader.look()
    ours = time.perf_counter() - began
    began = time.perf_counter()
    decode = msgspec.json.Decoder().decode
    for line in data.split(b"\n")[:-1]:
        decode(line)
    floor = time.perf_counter() - began
    size = len(data) / 1e6
    figure = f"{size / ours:.0f} MB/s = {floor / ours:.1f} x msgspec's {size / floor:.0f} MB/s ({size:.0f} MB)"
    say("appended JSONL is read", figure, ">= 0.5 x", floor / ours >= 0.5)


def report() -> None:
    with campaign(reports.sprint(5)) as root:
        run_to_the_end(root)
        muster(root, "report")
        floor = reports.import_floor()
        spent, peak, code = reports.timed(root, "report")
    say("muster report, 20 x 2 cells, warm", f"{spent:.2f} s = {spent / floor:.1f} x {floor:.2f} s, {peak:.0f} MB",
        "<= 6 s, 400 MB (floor: import matplotlib)", code == 0 and spent <= 6 and peak <= 400)  # fmt: skip


def trace() -> None:
    with campaign(reports.sprint(125)) as root:
        run_to_the_end(root)
        muster(root, "report")
        floor = python_floor() / 1000
        for words in (("verify",), ("trace", "reports/decision.md", "--all")):
            spent, peak, code = reports.timed(root, *words)
            say(f"muster {words[0]}, 1,000 cells and their 500 runs",
                f"{spent:.2f} s = {spent / floor:.0f} x {floor:.3f} s, {peak:.0f} MB",
                "<= 3 s, 400 MB (floor: python -c pass)", code == 0 and spent <= 3 and peak <= 400)  # fmt: skip


def controller(root: Path) -> int:
    return int(json.loads((root / ".muster" / "controller.lock").read_text())["pid"])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def wait_for(reached: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError("the bench campaign did not get going")
        time.sleep(0.02)


BENCHES = {
    "launch": launch,
    "gap": gap,
    "status": status,
    "hundred": hundred,
    "observe": observe,
    "chunks": chunks,
    "jsonl": jsonl,
    "wandb": lambda: readers.wandb(say),
    "tfevents": lambda: readers.tfevents(say),
    "histories": lambda: readers.histories(say),
    "stages": lambda: staged.imported(say),
    "gate": lambda: staged.decision(say),
    "report": report,
    "trace": trace,
}

if __name__ == "__main__":
    with workshop():
        for name in sys.argv[1:] or BENCHES:
            BENCHES[name]()
    sys.exit(1 if FAILED else 0)
