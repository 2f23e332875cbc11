"""Ends in one of many ways that are no plain exception: `dying.py WAY SEED [ARGUMENT]`.

Where something has to be done to it from outside, it makes `ready` in its output folder and waits.
"""

import argparse
import contextlib
import ctypes
import json
import logging
import math
import mmap
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

from noise import HARMLESS_NUMBERS, bars, noise, say, steps
from raising import made

OUT = Path(os.environ.get("MUSTER_OUT", "."))
ARGUMENT = sys.argv[3] if len(sys.argv) > 3 else ""


def wait() -> None:
    """For a stranger to do something; not for ever."""
    (OUT / "ready").touch()
    time.sleep(60)


def go() -> None:
    """Until the test has put us where it wants us."""
    (OUT / "ready").touch()
    deadline = time.monotonic() + 60
    while not (OUT / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


# -- exit codes


def exits(_: random.Random) -> None:
    sys.exit(int(ARGUMENT))


def exits_at_once(_: random.Random) -> None:
    os._exit(int(ARGUMENT))


def exits_with_words(r: random.Random) -> None:
    sys.exit(r.choice(("no data found, giving up", "usage: train.py CONFIG", "preemption is not configured")))


def exits_by_usage(_: random.Random) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.parse_args(["--lr", "fast"])


def exits_after_a_survived_exception(r: random.Random) -> None:
    try:
        {}["gamma"]
    except KeyError:
        logging.exception("no gamma, 0.99 is taken")
    steps(r, err=True)
    sys.exit(int(ARGUMENT))


def exits_although_hung_up(r: random.Random) -> None:
    """SIGHUP is ignored by what Muster starts."""
    os.kill(os.getpid(), signal.SIGHUP)
    steps(r)
    sys.exit(int(ARGUMENT))


# -- signals


def waits(_: random.Random) -> None:
    wait()


def waits_in_a_child(_: random.Random) -> None:
    """The main process is a launcher, and is killed with all that it started."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)"])
    wait()


def kills_itself(_: random.Random) -> None:
    signal.signal(int(ARGUMENT), signal.SIG_DFL) if int(ARGUMENT) not in (9, 19) else None
    os.kill(os.getpid(), int(ARGUMENT))
    time.sleep(5)


def crashes(_: random.Random) -> None:
    ctypes.string_at(0)


def crashes_loudly(_: random.Random) -> None:
    import faulthandler

    faulthandler.enable()
    ctypes.string_at(0)


def bus_error(_: random.Random) -> None:
    with open(OUT / "mapped", "w+b") as file:
        file.truncate(8192)
        mapped = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        mapped[4096]


def cpu_limit(_: random.Random) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 5))
    while True:
        math.sqrt(2)


def file_limit(_: random.Random) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    with open(OUT / "large", "wb") as file:
        file.write(bytes(1 << 20))


def aborts(_: random.Random) -> None:
    os.abort()


def aborts_by_cpp(r: random.Random) -> None:
    thrown = (
        ("std::bad_alloc", "std::bad_alloc"),
        ("std::runtime_error", "could not open shard 7"),
        ("std::out_of_range", "vector::_M_range_check: __n (which is 9) >= this->size() (which is 9)"),
    )
    kind, told = r.choice(thrown)
    say(f"terminate called after throwing an instance of '{kind}'\n  what():  {told}", err=True)
    os.abort()


# -- hung up


def hangs_up(_: random.Random) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    wait()


def torchrun(_: random.Random) -> None:
    """torchrun's own handler: it raises, and so do the frames above it."""
    caught = made("torch.distributed.elastic.multiprocessing.api.SignalException")

    def handler(number: int, _: object) -> None:
        pid, elastic = os.getpid(), "torch/distributed/elastic"
        told = f"agent/server/api.py:719] Received {number} death signal, shutting down workers"
        say(f"W0215 10:11:12.345000 {pid} {elastic}/{told}", err=True)
        told = f"multiprocessing/api.py:897] Sending process {pid + 7} closing signal {signal.Signals(number).name}"
        say(f"W0215 10:11:12.346000 {pid} {elastic}/{told}", err=True)
        raise caught(f"Process {pid} got signal: {number}")

    signal.signal(signal.SIGHUP, handler)
    signal.signal(signal.SIGTERM, handler)
    wait()


# -- the GPU's memory, in the words of those who run out of it

TORCH = (
    "CUDA out of memory. Tried to allocate {gib:.2f} GiB. GPU 0 has a total capacity of 79.10 GiB of which 98.00 MiB "
    "is free. Process 387746 has 78.89 GiB memory in use. Of the allocated memory 70.12 GiB is allocated by PyTorch, "
    "and 765.81 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
    "Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
OLD_TORCH = (
    "CUDA out of memory. Tried to allocate {gib:.2f} GiB (GPU 0; 15.90 GiB total capacity; 14.25 GiB already "
    "allocated; 991.56 MiB free; 607.00 KiB cached)"
)
ASYNCHRONOUS = (
    "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with "
    "`TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
JAX = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate {bytes} bytes."
JAX_LONG = (
    JAX + "\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
    "             parameter allocation:    3.00GiB\n              constant allocation:         0B\n"
    "        maybe_live_out allocation:    2.00GiB\n     preallocated temp allocation:   22.00GiB\n"
    "  preallocated temp fragmentation:         0B (0.00%)\n                 total allocation:   27.00GiB\n"
    "Peak buffers:\n\tBuffer 1:\n\t\tSize: 2.00GiB\n"
)
ALLOCATOR = (
    "2026-02-15 10:11:12.123456: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out "
    "of memory trying to allocate 149.01GiB"
)
TENSORFLOW = (
    "{{{{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}}}} OOM when allocating "
    "tensor with shape[65536,65536] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator "
    "GPU_0_bfc [Op:Mul]"
)
CUPY = "Out of memory allocating {bytes} bytes (allocated so far: 1,024 bytes)."
THROWN = """\
terminate called after throwing an instance of 'c10::{kind}'
  what():  {told}
Exception raised from c10_cuda_check_implementation at ../c10/cuda/CUDAException.cpp:43 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f7d2a17a617 in /opt/conda/lib/libc10.so)
frame #1: <unknown function> + 0xd3e95 (0x7f7d5a0d3e95 in /opt/conda/bin/../lib/libstdc++.so.6)
"""
GPU_MEMORY = {
    "torch": ("torch.OutOfMemoryError", TORCH),
    "torch.cuda": ("torch.cuda.OutOfMemoryError", TORCH),
    "old_torch": ("builtins.RuntimeError", OLD_TORCH),
    "asynchronous": ("builtins.RuntimeError", ASYNCHRONOUS),
    "accelerator": ("torch.AcceleratorError", ASYNCHRONOUS),
    "jax": ("jax.errors.JaxRuntimeError", JAX),
    "old_jax": ("jaxlib.xla_extension.XlaRuntimeError", JAX_LONG),
    "tensorflow": ("tensorflow.python.framework.errors_impl.ResourceExhaustedError", TENSORFLOW),
    "cupy": ("cupy.cuda.memory.OutOfMemoryError", CUPY),
}


def out_of_gpu_memory(who: str, r: random.Random) -> Exception:
    full, told = GPU_MEMORY[who]
    base = RuntimeError if full != "builtins.RuntimeError" else Exception
    return made(full, base)(told.format(gib=r.uniform(0.1, 40), bytes=r.randrange(1 << 30, 1 << 38)))


def gpu_memory(r: random.Random) -> None:
    def forward(depth: int) -> None:
        if depth:
            forward(depth - 1)
        raise out_of_gpu_memory(ARGUMENT, r)

    if ARGUMENT.endswith("jax"):
        say(ALLOCATOR, err=True)
    forward(r.randrange(5))


def gpu_memory_in_a_wrapper(r: random.Random) -> None:
    """Some trainers wrap whatever happens."""
    try:
        raise out_of_gpu_memory(ARGUMENT, r)
    except Exception as error:
        raise RuntimeError("training failed in epoch 3") from error


def gpu_memory_on_a_rank(r: random.Random) -> None:
    def hook(*args: object) -> None:
        for line in "".join(traceback.format_exception(*args)).splitlines():
            say(f"[rank0]: {line}", err=True)

    sys.excepthook = hook
    raise out_of_gpu_memory(ARGUMENT, r)


def gpu_memory_aborts(r: random.Random) -> None:
    """From a thread of C++ nobody can catch it."""
    told = ASYNCHRONOUS.rstrip() if r.random() < 0.5 else OLD_TORCH.format(gib=r.uniform(1, 40))
    say(THROWN.format(kind=r.choice(("Error", "OutOfMemoryError", "CUDAError")), told=told), err=True)
    os.abort()


# -- numbers


def checked_loss(r: random.Random) -> None:
    loss = float(r.choice(("nan", "inf", "-inf")))
    assert math.isfinite(loss), r.choice((f"loss is {loss}", f"Loss is not finite: {loss}", f"non-finite loss {loss}"))


def bare_check(_: random.Random) -> None:
    loss = float("nan")
    assert not math.isnan(loss)


def named_loss(r: random.Random) -> None:
    told = (
        "loss is nan",
        "NaN detected in gradients at step 1200",
        "Gradient norm is inf",
        "Loss became NaN in epoch 7",
        "policy loss is nan, q loss is 0.3",
        "Found nan in model parameters",
    )
    raise r.choice((ValueError, RuntimeError))(r.choice(told))


def numpy_raises(r: random.Random) -> None:
    import numpy as np

    np.seterr(all="raise")
    if r.random() < 0.5:
        np.log(np.zeros(3))
    np.exp(np.full(3, 1e6))


def anomaly(r: random.Random) -> None:
    name = r.choice(("MulBackward0", "LogSoftmaxBackward0", "SqrtBackward0"))
    raise RuntimeError(f"Function '{name}' returned nan values in its {r.randrange(3)}th output.")


def distribution(_: random.Random) -> None:
    raise ValueError(
        "Expected parameter loc (Tensor of shape (64, 6)) of distribution Normal(loc: torch.Size([64, 6]), scale: "
        "torch.Size([64, 6])) to satisfy the constraint Real(), but found invalid values:\n"
        "tensor([[nan, nan, nan, nan, nan, nan],\n        [nan, nan, nan, nan, nan, nan]],\n"
        "       grad_fn=<AddmmBackward0>)"
    )


def lightning(_: random.Random) -> None:
    raise ValueError("The loss returned in `training_step` is nan.")


def own_type(_: random.Random) -> None:
    raise made("trainer.NanLossError", RuntimeError)("at step 300")


def stops_at_nan(r: random.Random) -> None:
    """As DETR and MAE do: a line, and exit 1."""
    steps(r)
    say("Loss is nan, stopping training")
    sys.exit(1)


# -- no space: ARGUMENT is a folder on a small disk that is full, or can be filled


def fill() -> Path:
    """Leaves no byte on that disk."""
    path = Path(ARGUMENT) / f"filler-{os.getpid()}"
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return Path(ARGUMENT) / f"out-{os.getpid()}"


def disk_by_write(_: random.Random) -> None:
    with open(fill(), "wb", buffering=0) as file:
        file.write(bytes(65536))


def disk_by_log(r: random.Random) -> None:
    with open(fill(), "w") as file:
        for step in range(100_000):
            file.write(json.dumps({"step": step, "loss": r.random()}) + "\n")


def disk_by_copy(_: random.Random) -> None:
    (OUT / "checkpoint").write_bytes(bytes(1 << 20))
    shutil.copyfile(OUT / "checkpoint", fill())


def disk_by_zip(_: random.Random) -> None:
    with zipfile.ZipFile(fill(), "w") as archive:
        archive.writestr("weights.npy", os.urandom(1 << 20))


def disk_by_sqlite(_: random.Random) -> None:
    db = sqlite3.connect(str(fill()))
    db.execute("CREATE TABLE trial (n INTEGER, state TEXT)")
    db.executemany("INSERT INTO trial VALUES (?, ?)", [(n, "x" * 100) for n in range(10_000)])
    db.commit()


def disk_by_torch(_: random.Random) -> None:
    """What torch.save says when its writer gets no room."""
    try:
        disk_by_write(random.Random(0))
    except OSError:
        pass
    raise RuntimeError("[enforce fail at inline_container.cc:603] . unexpected pos 18446656 vs 18446544")


def disk_by_device(_: random.Random) -> None:
    with open("/dev/full", "w") as file:
        file.write("x" * 100)


def disk_in_a_wrapper(_: random.Random) -> None:
    try:
        disk_by_write(random.Random(0))
    except OSError as error:
        raise RuntimeError("the checkpoint could not be saved") from error


# -- memory: the test has put us into a group with little of it


def allocate() -> None:
    held = []
    while True:
        held.append(bytearray(b"x" * (4 << 20)))


def oom(_: random.Random) -> None:
    go()
    allocate()


def oom_of_a_child(_: random.Random) -> None:
    go()
    pid = os.fork()
    if pid == 0:
        Path("/proc/self/oom_score_adj").write_text("1000")
        allocate()
    os.waitpid(pid, 0)


def oom_of_a_child_then_exception(r: random.Random) -> None:
    oom_of_a_child(r)
    {}["batch"]  # dies: oom_of_a_child_then_exception


def oom_of_a_child_then_waits(r: random.Random) -> None:
    oom_of_a_child(r)
    steps(r)
    time.sleep(1.0)  # looks in between show that it lived on
    (OUT / "ready_again").touch()
    time.sleep(60)


# -- others


def early(r: random.Random) -> None:
    """Exit 0 with a part of the steps."""
    with open(OUT / "metrics.jsonl", "w") as file:
        for step in range(1, r.randrange(20, 80)):
            print(json.dumps({"step": step, "loss": r.random()}), file=file)
    if r.random() < 0.3:
        say("Loss is nan, stopping training")
    if r.random() < 0.3:
        traceback.print_stack()
        say("KeyError: 'gamma' was caught, leaving early", err=True)


def too_long(r: random.Random) -> None:
    if r.random() < 0.3:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def stopped(r: random.Random) -> None:
    """How it takes SIGTERM is its own matter."""

    def leave(*_: object) -> None:
        raise RuntimeError("stopped by a signal")

    way = r.randrange(4)
    if way == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    elif way == 2:
        signal.signal(signal.SIGTERM, leave)
    elif way == 3:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait()


def preempted(_: random.Random) -> None:
    say("slurmstepd: error: *** JOB 4211 ON gpu-07 CANCELLED AT 2026-02-15T10:11:12 DUE TO PREEMPTION ***", err=True)
    wait()


# -- words that must not mislead


def survived_gpu_memory(r: random.Random, loud: bool = True) -> None:
    for _ in range(r.randrange(1, 4)):
        try:
            raise out_of_gpu_memory(r.choice(sorted(GPU_MEMORY)), r)
        except Exception as error:
            traceback.print_exc() if loud else say(f"WARNING: {error}; trying a smaller batch", err=True)
        steps(r, err=True)


def misled_by_gpu_memory_then_key(r: random.Random) -> None:
    survived_gpu_memory(r, loud=r.random() < 0.6)
    {}["gamma"]  # dies: misled_by_gpu_memory_then_key


def misled_by_gpu_memory_then_exits(r: random.Random) -> None:
    survived_gpu_memory(r, loud=r.random() < 0.6)
    sys.exit(int(ARGUMENT))


def misled_by_gpu_memory_then_waits(r: random.Random) -> None:
    survived_gpu_memory(r)
    wait()


def misled_by_killed(r: random.Random) -> None:
    """The word that a shell would print, printed by the program."""
    say("Killed", err=r.random() < 0.5)
    sys.exit(int(ARGUMENT))


def misled_by_numbers(r: random.Random) -> None:
    for line in HARMLESS_NUMBERS:
        say(line, err=r.random() < 0.5)
    say("loss nan at warm-up step 0, as expected", err=True)
    {}["nan_mask"]  # dies: misled_by_numbers


def misled_by_space(r: random.Random) -> None:
    logging.basicConfig()
    logging.warning("could not write the cache: [Errno 28] No space left on device")
    steps(r, err=True)
    sys.exit(int(ARGUMENT))


def misled_by_term(_: random.Random) -> None:
    say("received SIGTERM from the scheduler, saving a checkpoint", err=True)
    say("saved; going on as nobody came", err=True)
    [1, 2][len(HARMLESS_NUMBERS)]  # dies: misled_by_term


def misled_by_oom_words(r: random.Random) -> None:
    """Read from another machine's log, and echoed."""
    say("node 7 reports: Memory cgroup out of memory: Killed process 4242 (python3) total-vm:75160kB")
    say("oom_kill 3", err=True)
    steps(r)
    wait()


def misled_by_preemption(r: random.Random) -> None:
    say("INFO preemption notice handler installed", err=True)
    bars(r)
    sys.exit(int(ARGUMENT))


WAYS: dict[str, Callable[[random.Random], None]] = {
    name: each
    for name, each in list(globals().items())
    if callable(each) and getattr(each, "__module__", "") == "__main__"
}

if __name__ == "__main__":
    chosen = random.Random(int(sys.argv[2]))
    noise(chosen)
    WAYS[sys.argv[1]](chosen)
