"""Ends by an exception that nobody catches: `raising.py KIND MANNER SEED`.

KIND is what is raised, MANNER how it comes out. The line that raises is marked `dies: NAME`.
"""

import asyncio
import atexit
import concurrent.futures
import json
import logging
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable

from noise import bars, noise, say, steps

# -- what is raised: name -> (the name of its type, the function)


class ConfigError(Exception):
    pass


def key(r: random.Random) -> None:
    {"lr": 1}[r.choice(("gamma", "nan_mask", "inf", "loss/nan", "CUDA out of memory"))]  # dies: key


def value(r: random.Random) -> None:
    raise ValueError(r.choice(("too many values", "expected shape (3, 4)\nbut got (4, 3)", "")))  # dies: value


def number(_: random.Random) -> None:
    int("12.5e")  # dies: number


def kind(_: random.Random) -> None:
    len(5)  # dies: kind


def index(r: random.Random) -> None:
    [1, 2, 3][r.randrange(5, 50)]  # dies: index


def attribute(_: random.Random) -> None:
    None.shape  # noqa: B018  # dies: attribute


def zero(r: random.Random) -> None:
    r.randrange(9) / 0  # dies: zero


def runtime(r: random.Random) -> None:
    told = (
        "mat1 and mat2 shapes cannot be multiplied (64x12 and 16x4)",
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight". ',
        "stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 7",
        "generator raised StopIteration",
    )
    raise RuntimeError(r.choice(told))  # dies: runtime


def claim(r: random.Random) -> None:
    assert r.random() > 2, r.choice(("batch must be even", "shapes differ: (3,) and (4,)"))  # dies: claim


def bare_claim(r: random.Random) -> None:
    assert len("abc") == r.randrange(9, 20)  # dies: bare_claim


def missing_file(r: random.Random) -> None:
    open(f"/no/such/folder/{r.choice(('nan', 'train', 'inf'))}.npz")  # noqa: SIM115  # dies: missing_file


def missing_module(r: random.Random) -> None:
    __import__(r.choice(("torch_scatter_not_here", "flash_attn_not_here")))  # dies: missing_module


def permission(_: random.Random) -> None:
    raise PermissionError(13, "Permission denied", "/data/set")  # dies: permission


def text(_: random.Random) -> None:
    b"\xff\xfe\x00".decode("utf-8")  # dies: text


def parse(_: random.Random) -> None:
    json.loads('{"lr": 0.1,}')  # dies: parse


def absent(_: random.Random) -> None:
    raise NotImplementedError  # dies: absent


def name(_: random.Random) -> None:
    modle  # noqa: B018, F821  # dies: name


def deep(r: random.Random) -> None:
    deep(r)  # dies: deep


def memory(_: random.Random) -> None:
    bytearray(1 << 60)  # dies: memory


def reset(_: random.Random) -> None:
    raise ConnectionResetError(104, "Connection reset by peer")  # dies: reset


def late(_: random.Random) -> None:
    raise TimeoutError("the environment did not answer within 60 s")  # dies: late


def broken_disk(_: random.Random) -> None:
    raise OSError(5, "Input/output error", "/data/shard_003.tar")  # dies: broken_disk


def too_large(_: random.Random) -> None:
    2.0**5000  # noqa: B018  # dies: too_large


def config(r: random.Random) -> None:
    raise ConfigError(f"unknown key 'optimiser' (line {r.randrange(90)}); did you mean 'optimizer'?")  # dies: config


def elsewhere(_: random.Random) -> None:
    raise made("gymnasium.error.UnregisteredEnv")("No registered env with id: HalfCheeta-v4")  # dies: elsewhere


def device(_: random.Random) -> None:
    told = (
        "CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be"
        " incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )
    raise RuntimeError(told)  # dies: device


# A script that reads the logs of others: their words are no cause of its own.


def quoted_gpu(r: random.Random) -> None:
    raise ValueError(f"row {r.randrange(9)}: unknown status 'CUDA out of memory'")  # dies: quoted_gpu


def quoted_disk(r: random.Random) -> None:
    path = f"/logs/{r.randrange(9)}/[Errno 28] No space left on device.txt"
    raise FileNotFoundError(2, "No such file or directory", path)  # dies: quoted_disk


def quoted_loss(_: random.Random) -> None:
    {"ok": 3, "Killed": 1}["loss is nan"]  # dies: quoted_loss


def made(full: str, base: type = Exception) -> type[Exception]:
    module, _, short = full.rpartition(".")
    return type(short, (base,), {"__module__": module})


KINDS: dict[str, tuple[str, Callable[[random.Random], None]]] = {
    "key": ("KeyError", key),
    "value": ("ValueError", value),
    "number": ("ValueError", number),
    "kind": ("TypeError", kind),
    "index": ("IndexError", index),
    "attribute": ("AttributeError", attribute),
    "zero": ("ZeroDivisionError", zero),
    "runtime": ("RuntimeError", runtime),
    "claim": ("AssertionError", claim),
    "bare_claim": ("AssertionError", bare_claim),
    "missing_file": ("FileNotFoundError", missing_file),
    "missing_module": ("ModuleNotFoundError", missing_module),
    "permission": ("PermissionError", permission),
    "text": ("UnicodeDecodeError", text),
    "parse": ("JSONDecodeError", parse),
    "absent": ("NotImplementedError", absent),
    "name": ("NameError", name),
    "deep": ("RecursionError", deep),
    "memory": ("MemoryError", memory),
    "reset": ("ConnectionResetError", reset),
    "late": ("TimeoutError", late),
    "broken_disk": ("OSError", broken_disk),
    "too_large": ("OverflowError", too_large),
    "config": ("ConfigError", config),
    "elsewhere": ("UnregisteredEnv", elsewhere),
    "device": ("RuntimeError", device),
    "quoted_gpu": ("ValueError", quoted_gpu),
    "quoted_disk": ("FileNotFoundError", quoted_disk),
    "quoted_loss": ("KeyError", quoted_loss),
}
Raise = Callable[[random.Random], None]


# -- how it comes out. Those that end by another exception than the one given say so in OTHERS.


def plain(raise_: Raise, r: random.Random) -> None:
    def down(depth: int) -> None:
        down(depth - 1) if depth else raise_(r)

    down(r.randrange(6))


def from_another(raise_: Raise, r: random.Random) -> None:
    try:
        raise_(r)
    except Exception as error:
        raise RuntimeError("the trainer gave up") from error  # dies: from_another


def while_handling(raise_: Raise, r: random.Random) -> None:
    try:
        raise_(r)
    except Exception:
        {}["best_checkpoint"]  # dies: while_handling


def thread_pool(raise_: Raise, r: random.Random) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: raise_(r), range(3)))


def process_pool(raise_: Raise, r: random.Random) -> None:
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        pool.submit(raise_, r).result()


def old_pool(raise_: Raise, r: random.Random) -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(raise_, [r])


def child(raise_: Raise, r: random.Random) -> None:
    """The child says why; the parent only sees that it failed."""
    process = multiprocessing.get_context("fork").Process(target=raise_, args=(r,), name="rollout-0")
    process.start()
    process.join()
    sys.exit(1 if process.exitcode else 0)


def thread(raise_: Raise, r: random.Random) -> None:
    failed = []

    def work() -> None:
        try:
            raise_(r)
        except BaseException:
            failed.append(True)
            raise

    worker = threading.Thread(target=work, name="learner")
    worker.start()
    worker.join()
    sys.exit(1 if failed else 0)


def group(raise_: Raise, r: random.Random) -> None:
    async def both() -> None:
        async def one(wait_s: float) -> None:
            await asyncio.sleep(wait_s)
            raise_(r)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one(0))
            tasks.create_task(one(60))

    asyncio.run(both())


def gathered(raise_: Raise, r: random.Random) -> None:
    caught = []
    for _ in range(r.randrange(1, 4)):
        try:
            raise_(r)
        except Exception as error:
            caught.append(error)
    raise ExceptionGroup("all workers failed", caught)


def rich(raise_: Raise, r: random.Random) -> None:
    from rich.console import Console
    from rich.traceback import install

    install(console=Console(stderr=True, width=r.choice((80, 100, 140)), force_terminal=r.random() < 0.5))
    plain(raise_, r)


def boxed(raise_: Raise, r: random.Random) -> None:
    """A box of our own, without colours and without the source."""

    def hook(kind: type[BaseException], error: BaseException, trace: object) -> None:
        width = 100
        say("╭" + " Traceback (most recent call last) ".center(width - 2, "─") + "╮", err=True)
        for frame in traceback.extract_tb(error.__traceback__):
            for line in (f"{frame.filename}:{frame.lineno} in {frame.name}", "", f"❱ {frame.lineno} {frame.line}"):
                say("│ " + line.ljust(width - 4)[: width - 4] + " │", err=True)
        say("╰" + "─" * (width - 2) + "╯", err=True)
        say(f"{kind.__name__}: {error}", err=True)

    sys.excepthook = hook
    plain(raise_, r)


def barred(raise_: Raise, r: random.Random) -> None:
    bars(r)
    plain(raise_, r)


def tracked(raise_: Raise, r: random.Random) -> None:
    """A tracker says goodbye after the traceback."""

    def goodbye() -> None:
        say(
            "wandb: \nwandb: Run history:\nwandb:  loss █▇▆▅▁\nwandb: \nwandb: 🚀 View run at https://wandb.ai/ana/x/runs/1",
            err=True,
        )
        say("wandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)", err=True)

    def after_the_traceback(*args: object) -> None:
        sys.__excepthook__(*args)
        goodbye()

    if r.random() < 0.5:
        atexit.register(goodbye)
    else:
        sys.excepthook = after_the_traceback
    plain(raise_, r)


def hydra(raise_: Raise, r: random.Random) -> None:
    """It shows the user's frames alone, and a remark."""
    try:
        plain(raise_, r)
    except Exception as error:
        say("Error executing job with overrides: ['seed=1', 'lr=0.1']", err=True)
        own = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, own)
        say("\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.", err=True)
        sys.exit(1)


def logged(raise_: Raise, r: random.Random) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        plain(raise_, r)
    except Exception:
        logging.exception("training failed")
        raise


def said_and_left(raise_: Raise, r: random.Random) -> None:
    """Caught at the top, printed, exit 1."""
    try:
        plain(raise_, r)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def on_stdout(raise_: Raise, r: random.Random) -> None:
    os.dup2(1, 2)
    plain(raise_, r)


def ranked(raise_: Raise, r: random.Random) -> None:
    """As torch does in a distributed run: every line with its rank."""
    rank = r.randrange(8)

    def hook(*args: object) -> None:
        for line in "".join(traceback.format_exception(*args)).splitlines():
            say(f"[rank{rank}]: {line}", err=True)

    sys.excepthook = hook
    plain(raise_, r)


def awaited(raise_: Raise, r: random.Random) -> None:
    async def work() -> None:
        await asyncio.sleep(0.01)
        raise_(r)

    asyncio.run(work())


def by_a_command(_: Raise, r: random.Random) -> None:
    """A program that it calls fails and says why; so does it."""
    command = [sys.executable, __file__, sys.argv[1], "plain", str(r.randrange(99))]
    subprocess.run(command, check=True)  # dies: by_a_command


def survived_another(raise_: Raise, r: random.Random) -> None:
    """An exception was printed and survived long before."""
    try:
        made_of = made(r.choice(("torch.OutOfMemoryError", "builtins.OSError", "builtins.FloatingPointError")))
        raise made_of(
            r.choice(
                (
                    "CUDA out of memory. Tried to allocate 2.00 GiB.",
                    "[Errno 28] No space left on device",
                    "overflow in exp",
                )
            )
        )
    except Exception:
        traceback.print_exc()
        say("skipping this batch", err=True)
    steps(r, err=True)
    plain(raise_, r)


def after_a_while(raise_: Raise, r: random.Random) -> None:
    steps(r)
    time.sleep(r.uniform(0.05, 0.5))
    plain(raise_, r)


MANNERS: dict[str, Callable[[Raise, random.Random], None]] = {
    each.__name__: each
    for each in (
        plain, from_another, while_handling, thread_pool, process_pool, old_pool, child, thread, group, gathered,
        rich, boxed, barred, tracked, hydra, logged, said_and_left, on_stdout, ranked, awaited, by_a_command,
        survived_another, after_a_while,
    )
}  # fmt: skip
OTHERS = {"from_another": "RuntimeError", "while_handling": "KeyError"}  # the type that ends it

if __name__ == "__main__":
    chosen = random.Random(int(sys.argv[3]))
    noise(chosen)
    MANNERS[sys.argv[2]](KINDS[sys.argv[1]][1], chosen)
