"""No secret is shown: in every form in which YAML and commands can hold one."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from muster.text.hide_secrets import hide_secrets_in_text, hide_secrets_in_words, hide_secrets_in_yaml
from muster.text.secret_masking import HIDDEN_VALUE, is_secret_name

S = "s3cr3t"


@pytest.mark.parametrize(
    "text",
    [
        'env: {WANDB_API_KEY: "s3cr3t"}',
        "env: {A: 1, WANDB_API_KEY: s3cr3t, B: 2}",
        "env: {'HF_TOKEN': 's3cr3t'}",
        'env: {"HF_TOKEN":"s3cr3t"}',
        "env: {key: s3cr3t}",
        "env:\n  key: s3cr3t",
        "env:\n  WANDB_API_KEY: s3cr3t, with {odd} s3cr3t",
        'env:\n  "WANDB_API_KEY": "s3cr3t"',
        "env:\n  WANDB_API_KEY: >-\n    s3cr3t\n    s3cr3t\n  A: 1",
        "env:\n  WANDB_API_KEY:\n    s3cr3t",
        'env:\n  DB_PASSWORD: "a\n    s3cr3t"',
        "env: {A: 1,\n  WANDB_API_KEY:\n    s3cr3t,\n  B: 2}",
        'env: {A: 1, WANDB_API_KEY: "x\n    s3cr3t"}',
        "command: env WANDB_API_KEY=s3cr3t python t.py",
        "command: python t.py --api-key s3cr3t --x 1",
        "command: python t.py --api-key=s3cr3t",
        "command: python t.py --api-key 'a s3cr3t' --x 1",
        "command: python t.py +wandb.api_key=s3cr3t",
        'command: ["python", "t.py", "--api-key", "s3cr3t"]',
        'command: ["python","--api-key","s3cr3t"]',
        'command: ["env", "HF_TOKEN=s3cr3t", "python"]',
        "command:\n  - python\n  - --api-key\n  - s3cr3t\n  - t.py",
        'command:\n  - "--api-key"\n  - "s3cr3t"',
        "command: >\n  python t.py --api-key\n  s3cr3t",
        "command: |\n  python t.py --api-key \\\n    s3cr3t",
        "command: |\n  export HF_TOKEN=s3cr3t\n  python t.py",
        "command: |\n  export HF_TOKEN=\"s3cr3t 'and' s3cr3t\"\n  python t.py",
        "# WANDB_API_KEY: s3cr3t",
    ],
)
def test_in_a_campaign_file(text: str) -> None:
    lines = text.split("\n")
    shown = hide_secrets_in_yaml(lines)
    assert S not in "\n".join(shown)
    assert HIDDEN_VALUE in "\n".join(shown)
    assert len(shown) == len(lines)


@pytest.mark.parametrize(
    "text",
    [
        "results: {score: {json: result.json, key: score}}",
        "results:\n  score:\n    json: result.json\n    key: score",
        "jobs:\n  tokenize:\n    command: python tokenize.py --tokenizer gpt2 --max-tokens 512",
        "axes:\n  api_keys:\n    - a\n    - b",
        "command: python t.py --use-token\naxes: [seed]",
        "command: python t.py --use-token --seed 3",
        "env: {A: 1}\n\n  # a remark\nslots: {gpus: 0}",
        "command: curl http://somewhere:80/x",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert hide_secrets_in_yaml(text.split("\n")) == text.split("\n")


def test_what_stands_beside_it_stays() -> None:
    assert hide_secrets_in_yaml(["env: {A: 1, HF_TOKEN: x, B: 2}"]) == [
        f"env: {{A: 1, HF_TOKEN: {HIDDEN_VALUE}, B: 2}}"
    ]
    assert hide_secrets_in_text("env HF_TOKEN=x python t.py") == f"env HF_TOKEN={HIDDEN_VALUE} python t.py"
    lines = ["env:", "  HF_TOKEN: |", "    x", "  A: 1", "slots: {}"]
    assert hide_secrets_in_yaml(lines) == [
        "env:",
        f"  HF_TOKEN: {HIDDEN_VALUE}",
        f"    {HIDDEN_VALUE}",
        "  A: 1",
        "slots: {}",
    ]


def test_in_words() -> None:
    words = [
        "env",
        "HF_TOKEN=s3cr3t",
        "python",
        "--api-key",
        "s3cr3t",
        "--password=s3cr3t",
        "--use-token",
        "--seed",
        "3",
    ]
    assert hide_secrets_in_words(words) == [
        "env", f"HF_TOKEN={HIDDEN_VALUE}", "python", "--api-key", HIDDEN_VALUE, f"--password={HIDDEN_VALUE}", "--use-token", "--seed", "3",
    ]  # fmt: skip
    assert S not in hide_secrets_in_words(["/bin/sh", "-c", "python t.py --api-key \\\n  s3cr3t"])[2]


names = st.sampled_from(["WANDB_API_KEY", "hf-token", "db.password", "CREDENTIALS", "MY_SECRET_1"])
values = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20).map(lambda text: f"{text}{S}")


@given(names, values, st.booleans(), st.booleans(), st.integers(20, 200))
def test_in_whatever_way_yaml_writes_it(name: str, value: str, flow: bool, first: bool, width: int) -> None:
    env = {name: value, "A": "1"} if first else {"A": "1", name: value}
    written = YAML(typ="safe", pure=True)
    written.default_flow_style, written.width, written.allow_unicode = flow, width, True
    file = io.StringIO()
    written.dump({"env": env, "jobs": {"t": {"env": env}}}, file)
    assert S not in "\n".join(hide_secrets_in_yaml(file.getvalue().split("\n"))), file.getvalue()


@given(st.lists(st.text(st.sampled_from("ab \t'\"{}[],:=-#|>\\&*KEYkey_\n"), max_size=30), max_size=8))
def test_any_text_is_read_to_its_end(lines: list[str]) -> None:
    assert len(hide_secrets_in_yaml(lines)) == len(lines)
    hide_secrets_in_words(lines)


def test_names() -> None:
    assert all(map(is_secret_name, ["HF_TOKEN", "OPENAI_APIKEY", "aws_secret", "PGPASSWORD", "key"]))
    assert not any(map(is_secret_name, ["TOKENIZERS_PARALLELISM", "max_new_tokens", "n_tokens", "keypoints", "SEED"]))
