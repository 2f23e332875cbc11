"""The same with jax."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

mode = sys.argv[1]
out = Path(os.environ["MUSTER_OUT"])
(out / "replay").mkdir(parents=True, exist_ok=True)


@jax.jit
def update(weights, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w).mean(1) - x.mean(1)) ** 2))(weights)
    return weights - 0.01 * gradient, loss


weights = jax.random.normal(jax.random.key(0), (1024, 1024)) * 0.03
log = (out / "metrics.jsonl").open("a", buffering=1)
began = time.monotonic()
step = 0
while time.monotonic() - began < 600:
    for _ in range(20):
        weights, loss = update(weights, jax.random.normal(jax.random.key(step), (256, 1024)))
        step += 1
    log.write(json.dumps({"step": step, "loss": float(loss)}) + "\n")
    (out / "replay" / f"{step:07}.npz").write_bytes(b"chunk")
    if mode == "oom" and step >= 400:
        jnp.zeros((1 << 40,), dtype=jnp.uint8).block_until_ready()
    time.sleep(0.05)
