"""Tells what Muster says of real GPU runs that are well, quiet, stopped, spinning, out of memory and killed.

python story.py        needs an NVIDIA GPU, torch and jax; prints a transcript. Times are paced down (MUSTER_PACE)
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PROGRESS = "progress: [{jsonl: metrics.jsonl, step: step}, {files: replay/*.npz}]"
FAILED = []


def campaign(root: Path, name: str, cells: dict[str, str], per_gpu: int) -> None:
    jobs = "\n".join(
        f"  {cell}: {{axes: [], command: {sys.executable} {HERE / script}, {PROGRESS},"
        f" env: {{XLA_PYTHON_CLIENT_PREALLOCATE: 'false'}}}}"
        for cell, script in cells.items()
    )
    (root / "campaign.yaml").write_text(
        f"muster: 1\ncampaign: {name}\nslots: {{gpus: [0], per_gpu: {per_gpu}, cpus: 1}}\njobs:\n{jobs}\n"
    )


def muster(root: Path, *arguments: str, show: bool = True) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "muster", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    if show:
        print(f"$ muster {' '.join(arguments)}\n{done.stdout}{done.stderr}", flush=True)
    return done.stdout


def cell(root: Path, name: str) -> dict:
    return json.loads(muster(root, "why", name, "--json", show=False))


def expect(root: Path, name: str, wanted: str, timeout_s: float = 120) -> dict:
    """Waits until the cell's verdict, kind and confidence are what is wanted, and says what they became."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = cell(root, name)
        kind = f"({found['kind']})" if found["kind"] else f"({found['cause']})" if found["cause"] else ""
        shown = f"{found['verdict']}{kind} {found['confidence']}"
        if shown == wanted or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    print(f"## {name}: {shown}" + ("" if shown == wanted else f"   WANTED {wanted}"), flush=True)
    if shown != wanted:
        FAILED.append(name)
    muster(root, "why", name)
    return found


def alone(root: Path) -> None:
    """One run on the GPU at a time: its readings are the run's own."""
    for name, script in {"torch": "train_torch.py well", "jax": "train_jax.py well"}.items():
        print(f"# {name}: well, then stopped, then killed", flush=True)
        one(root, name, script)
        expect(root, name, "RUNNING proven")
        pid = cell(root, name)["pid"]
        os.kill(pid, signal.SIGSTOP)
        expect(root, name, "STALLED(stopped) proven")
        os.kill(pid, signal.SIGCONT)
        expect(root, name, "RUNNING proven")
        os.kill(pid, signal.SIGKILL)
        expect(root, name, "DEAD(signal(9)) proven")
    print("# its log falls silent, its chunks go on", flush=True)
    one(root, "quiet", "train_torch.py quiet")
    expect(root, "quiet", "QUIET proven")
    muster(root, "stop", "quiet")
    print("# a kernel that is busy without end", flush=True)
    one(root, "spin", "train_torch.py spin")
    expect(root, "spin", "STALLED(spinning) presumed")
    muster(root, "stop", "spin")
    for name, script in {"torch_oom": "train_torch.py oom", "jax_oom": "train_jax.py oom"}.items():
        print(f"# {name}", flush=True)
        one(root, name, script)
        expect(root, name, "DEAD(cuda_oom) proven")


def one(root: Path, name: str, script: str) -> None:
    campaign(root, "alone", {name: script}, per_gpu=1)
    muster(root, "up", "--detach", show=False)


def together(root: Path) -> None:
    print("# two runs on one GPU: whose memory is whose", flush=True)
    campaign(root, "together", {"narrow": "train_torch.py narrow", "wide": "train_torch.py wide"}, per_gpu=2)
    muster(root, "up", "--detach", show=False)
    deadline, sizes = time.monotonic() + 90, {}
    while time.monotonic() < deadline and not apart(sizes):
        time.sleep(1)
        sizes = {name: memory(cell(root, name)) for name in ("narrow", "wide")}
    print(f"## MiB of each: {sizes}" + ("" if apart(sizes) else "   WANTED: 1280 MiB apart"), flush=True)
    if not apart(sizes):
        FAILED.append("attribution")
    used = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv"]
    print(f"$ {' '.join(used)}\n{subprocess.run(used, capture_output=True, text=True, check=False).stdout}")
    for name in sizes:
        muster(root, "why", name)
    muster(root, "status")
    muster(root, "down", "--runs", "--because", "the story is told", show=False)


def apart(sizes: dict[str, int]) -> bool:
    """The wide one holds five parts of 256 MiB more, and a larger model."""
    return bool(sizes) and sizes["wide"] - sizes["narrow"] > 1280


def memory(found: dict) -> int:
    reading = next((row["reading"] for row in found["evidence"] if row["signal"] == "gpu0"), "")
    return int(reading.split(" MiB")[0].split()[-1]) if "MiB" in reading else 0


if __name__ == "__main__":
    os.environ.setdefault("MUSTER_PACE", "0.02")
    os.environ.setdefault("MUSTER_POLL_S", "0.3")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MUSTER_HOME"] = f"{folder}/home"
        (Path(folder) / "alone").mkdir()
        (Path(folder) / "together").mkdir()
        try:
            if "together" not in sys.argv:
                alone(Path(folder) / "alone")
            together(Path(folder) / "together")
        finally:
            for name in ("alone", "together"):
                muster(Path(folder) / name, "down", "--runs", "--because", "it was looked at", show=False)
    print("all as wanted" if not FAILED else f"NOT as wanted: {FAILED}")
    sys.exit(bool(FAILED))
