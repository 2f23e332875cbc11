"""Readers of what people write: campaign files, configs and their edits, expressions, notations, documents, journals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from containers import LINES
from harness import Reader
from readers_runs import (
    CONFIGS_JSON,
    CONFIGS_TOML,
    CONFIGS_YAML,
    FLAGS,
    JSON_WORDS,
    TOML_WORDS,
    YAML_BYTES,
    YAML_WORDS,
    honest_yaml,
)

from muster.app.campaign import proposer_function
from muster.app.campaign.preflight import launched_command
from muster.app.campaign.run_configs import find_base_variants, read_variant_records
from muster.app.documents import bind_update_audit, document_files
from muster.app.documents.number_bindings import DamagedSidecar, parse_sidecar
from muster.app.documents.result_names import NameReader, QuantityIndex
from muster.app.journal import journal_audit, journal_versions
from muster.app.journal.fill_and_audit import FillRequest, fill_opened_journal
from muster.app.journal.generated_blocks import RunBlocks
from muster.app.journal.journal_versions import NewJournalRequest, create_journal
from muster.app.journal.metric_index import MetricIndex
from muster.app.loop.edit_variant import write_edited_variant
from muster.model.errors import MusterError
from muster.rules.config_paths import PathError, UnreadableConfig, find_config_places, parse_config_path
from muster.rules.edit_config import EditsRefused, edit_config_text, parse_config
from muster.rules.edits import EditError, parse_edit
from muster.rules.expressions import ExpressionError, keys_in_expression, parse_expression
from muster.spec import campaign_reader, gate_rules
from muster.spec.rename_in_text import rename_value_in_text
from muster.stages.criteria import Window
from muster.stages.notation import SpecError, parse_counts_by_stage, parse_numbers_by_stage
from muster.stages.schedule import Curriculum, Schedule
from muster.stages.training_flags import parse_training_flags
from muster.text import hide_secrets
from muster.text.command_template import list_placeholders, render_template, split_shell_words
from muster.text.escape_markup import as_one_safe_line, escape_latex, escape_markdown
from muster.text.secret_masking import SecretMasker

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "unit" / "report" / "documents"))
sys.path.insert(0, str(TESTS / "unit" / "report" / "journal"))
from document_world import STORY, quantities  # noqa: E402
from journal_world import REFERENCE  # noqa: E402
from journal_world import run as journal_run  # noqa: E402

KNOWN = quantities(STORY)
ANY = (EditsRefused, UnreadableConfig, EditError, PathError, ExpressionError, SpecError, ValueError)


ONE_WORD = 128 << 10  # bytes: no word of a command line may be longer


def _words_of(read: Callable[[str], object]) -> Callable[[Path], object]:
    """Of the command line: bytes that are no UTF-8 come as lone surrogates."""
    return lambda path: read(path.read_bytes().decode("utf-8", "surrogateescape"))


def _text(read: Callable[[str], object]) -> Callable[[Path], object]:
    """Of files: what opens them refuses what is no UTF-8."""
    return lambda path: read(path.read_bytes().decode("utf-8", "replace"))


# -- campaign files


def _campaigns() -> list[bytes]:
    shown = [(TESTS / "unit" / "spec" / "interface.yaml").read_bytes()]
    examples = sorted((TESTS.parent / "examples").rglob("*campaign*.yaml"))
    templates = sorted((TESTS.parent / "src" / "muster" / "spec" / "templates").rglob("*.yaml"))
    return [*shown, *(path.read_bytes() for path in (*examples, *templates))]


def _campaign(text: str) -> object:
    return campaign_reader.read_campaign_text(text, file="campaign.yaml", folder="/nowhere")


def _taken(path: Path) -> object:
    """As `check` does."""
    from muster.app.campaign.load_campaign import read_campaign_file

    return read_campaign_file(path)


def _renamed(text: str) -> object:
    """Only what can be read is renamed in."""
    _campaign(text)
    return rename_value_in_text(text, "config", "v2_full", "v3") + rename_value_in_text(text, "seed", "1", "9")


def _honest_campaign(size: int) -> bytes:
    head = b"muster: 1\ncampaign: c\naxes: {seed: 0..3}\njobs: {train: {command: python train.py {seed}}}\nenv:\n"
    return head + b"".join(b"  KEY_%d: a value  # why\n" % at for at in range(size // 25 + 1))


CAMPAIGN_WORDS = (*YAML_WORDS, b"muster: 1\n", b"axes:", b"jobs:", b"command: ", b"{seed}", b"{config.args}", b"{last.checkpoint}", b"needs: [", b"slots: {gpus: auto}", b"seed: 0..999999999",
                  b"loop:", b"gates:", b"decision:", b"edits: [", b"when: ", b"1d", b"5%", b"proof:", b"results:", b"money:", b"shell: true", b"env: {", b"exclude: [", b"*", b"**")  # fmt: skip
GATE_RULES = b"penalty:\n  read: {jsonl: eval_history.jsonl, step: iteration}\n  success: [{key: first_death_p10, min: 70, window: mean 3}]\n  failure: [{key: min_final, below: 0.5, by_stage: {ne: 0.4}}]\n  required: 2\n  tolerance: 2\n"

# -- configs and edits

EDITS = (
    b"lr@mul=1.5@max=10",
    b"nested.a[0]@set=5",
    b"**.lr@add=0.1",
    b'model.layers[1].n@set="x"',
    b'a["b.c"]@set={"x": [1]}',
    b"*@set=null",
)
EDIT_WORDS = (
    b"@set=",
    b"@mul=",
    b"@add=",
    b"@max=",
    b"@min=",
    b"[0]",
    b"**",
    b"*.",
    b'["',
    b'"]',
    b".",
    b"null",
    b"1e999",
    b"[",
    b"{",
)
EXPRESSIONS = (
    b'last("ot.pi_sum") < 0.05 and not missing("eval.success")',
    b'mean("loss", 10) / (1 - max("x")) >= -2.5e3 or trend("a") == 1',
    b'best("score", higher)',
    b'(last("a") + 1) * 2 > 3',
)
EXPRESSION_WORDS = (
    b"(",
    b")",
    b"not ",
    b"and ",
    b"or ",
    b'last("a")',
    b"missing(",
    b"<",
    b"<=",
    b"==",
    b"-",
    b"+",
    b"*",
    b"/",
    b"**",
    b",",
    b'"',
    b"'",
    b"1e999",
    b"__",
    b".",
)


def _config(kind: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        found: list[object] = [parse_config(text, kind)]
        for edit in ("lr@mul=2", "seed@set=3", "model.lr@set=0.5", "**@set=1", 'a.lr@set="x"'):
            try:
                found.append(edit_config_text(text, kind, [edit]))
            except EditsRefused as refused:
                found.append(str(refused))
        return found

    return read


def _edited(text: str) -> object:
    return edit_config_text(
        '{"lr": 1e-4, "nested": {"a": [1, 2]}, "model": {"layers": [{"n": 1}, {"n": 2}]}, "text": "x"}',
        "json",
        text.split("\n"),
    )


def _path(text: str) -> object:
    pattern = parse_config_path(text)
    return find_config_places(pattern, {"a": {"b.c": [1, {"lr": 2}]}, "lr": 3, "x": [[[1]]]}), str(pattern)


def _expression(text: str) -> object:
    node = parse_expression(text)
    return list(keys_in_expression(node))


def _made(path: Path) -> object:
    return write_edited_variant(path, ["lr@mul=2"], "why", "2026-01-01")


def _bases(path: Path) -> object:
    (path.parent / "a.yaml").write_text("lr: 1\n")
    return find_base_variants([f"@{path.name}", path.name], path.parent)


# -- command lines


def _notations(text: str) -> object:
    found: list[object] = []
    for read in (Schedule.parse, Curriculum.parse, parse_numbers_by_stage, parse_counts_by_stage, Window.parse):
        try:
            found.append(read(text))
        except (SpecError, ValueError) as error:
            found.append(str(error))
    return found


def _words(text: str) -> object:
    list(list_placeholders(text))
    values = {"seed": "1", "config": "a"}
    with_values = render_template(text, values) if all(name in values for name in list_placeholders(text)) else ""
    return with_values, split_shell_words(text)


NOTATIONS = (
    b"8:a.json|type=ne;15:b.json|type=main",
    b"15:9,20:10",
    b"ne:0.13,main:0.10",
    b"mean 3",
    b"p10 20",
    b"main:3",
)
TEMPLATES = (
    b"python train.py --seed {seed} --out '{out}' {config.args} {{x}}",
    b'sh -c "a {seed}; b" \\ {last.checkpoint}',
)
SECRETS = b"env:\n  API_KEY: abcdefgh\n  list:\n    - password: x\n    - --token=abc\n  text: |\n    secret: y\ncommand: python x.py --auth abc --key=def https://u:p@h/x?api_key=zzz Bearer abc.def\n"


def _masked(text: str) -> object:
    return (
        hide_secrets.hide_secrets_in_text(text),
        hide_secrets.hide_secrets_in_yaml(text.split("\n")),
        hide_secrets.hide_secrets_in_words(text.split(" ")),
    )


MASKED = (
    b'{"url": "https://u:hunter22hunter22@h/x?sig=abc1", "note": "p%40ss%20word/with:signs", "n": 1234567890}',
    b"Authorization: Bearer abcdefg123\tp@ss word/with:signs\t1234567890\x1b[31mhunter22\x1b[0mhunter22",
    b"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nxoxb-12345678 sk-abcdefgh12345678",
)
SECRET_WORDS = (
    b"hunter22",
    b"://",
    b"Bearer ",
    b"token=",
    b'\\"',
    b"-----BEGIN PRIVATE KEY-----",
    b"\x1b[0m",
    b"?key=",
)
MASKER = SecretMasker(
    ["hunter22hunter22", "p@ss word/with:signs", "1234567890", "-----BEGIN\nlong line of a key 1\n-----END"]
)


def _masked_output(text: str) -> object:
    shown = [each(text) for each in (MASKER.mask, MASKER.mask_tail, MASKER.output, MASKER.written, MASKER.json_output)]
    return [*shown, MASKER.table_output(text, "\t")]


# -- documents and journals


def _texts() -> list[bytes]:
    folder = TESTS / "unit" / "report" / "documents" / "texts"
    return [path.read_bytes()[:6000] for path in sorted(folder.iterdir()) if path.suffix in (".md", ".tex", ".txt")]


def _document(path: Path) -> object:
    """Bound; a small one is looked through and written anew, too, which are commands of their own."""
    bound = bind_update_audit.bind_document(path, KNOWN)
    if path.stat().st_size > 1 << 20:
        return bound
    bind_update_audit.audit_document(path, KNOWN)
    return bound, bind_update_audit.update_documents(
        [path], KNOWN, None, path.parent, datetime(2026, 2, 23), dry_run=True
    )


def _sidecars() -> list[bytes]:
    import tempfile

    found = []
    for name in ("report.md", "ppt.md"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes((TESTS / "unit" / "report" / "documents" / "texts" / name).read_bytes())
            bind_update_audit.bind_document(path, KNOWN)
            found.append(document_files.read_text_document(path).sidecar.read_bytes())
    return found


def _with_sidecar(path: Path) -> object:
    """Bindings from elsewhere beside an honest text."""
    text = path.with_name("report.md")
    text.write_bytes((TESTS / "unit" / "report" / "documents" / "texts" / "report.md").read_bytes())
    path.rename(document_files.read_text_document(text).sidecar)
    bind_update_audit.audit_document(text, KNOWN)
    return bind_update_audit.update_documents([text], KNOWN, None, text.parent, datetime(2026, 2, 23))


def _vocabulary(text: str) -> object:
    return NameReader(QuantityIndex(KNOWN)).read(text)


def _journals() -> list[bytes]:
    import tempfile

    from muster.app.journal.journal_versions import open_journal

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dev_v40.md")
        path.write_text(REFERENCE, encoding="utf-8")
        bodies = {"evaluation": "| a | 1 |", "artifacts": "- `runs/v40/x.json` (sha256 abc)"}
        fill_opened_journal(open_journal(path), FillRequest([RunBlocks("runs/v40", "v40", bodies)], "zh"))
        filled = path.read_bytes()
    return [filled, REFERENCE.encode()[:8000], POINTS.encode()]


POINTS = """# v41

## Observations
- [ ] P40.1 (carried 2 times, since v40) fix it; survival 0.853 at iter 56
- [x] P40.2 done
- [-] P39.1 (dropped: no time)

## Plan
1. [ ] P40.3 first_death_p10 >= 70

## Learning
- avg_final rose from 0.716 to 0.768 (+7.3%), 3x as fast
"""


def _journal(path: Path) -> object:
    opened = journal_versions.open_journal(path)
    audited = journal_audit.audit_opened_journal(opened, {opened.version: JOURNAL}, lambda _: None)
    work = FillRequest([RunBlocks("runs/v40", "v40", {"evaluation": "| a | 2 |"})], "en")
    filled = fill_opened_journal(opened, work, dry_run=True)
    return journal_audit.audited_journal_as_json(audited), filled


def _next_journal(path: Path) -> object:
    return create_journal(NewJournalRequest(path.parent, datetime(2026, 2, 23), 41))


JOURNAL = MetricIndex("40", [journal_run()])
TEXT_WORDS = (b"| ", b"|---|", b"\n\n", b"# ", b"- ", b"```\n", b"~~~", b"<!-- ", b"-->", b"$", b"\\begin{tabular}{ll}", b"\\end{tabular}", b"&", b"\\\\", b"\\hline", b"%", b"v2_full", b"ood", b"score",
              b"1.684\xc2\xb10.741", "±".encode(), "，".encode(), "。".encode(), "种子".encode(), b"seed 0", b"1,234.5", b"**", b"_", b"[", b"](", b"`", b"\\(", b"\\textbf{", b"{", b"}", b"<b>", b"&nbsp;", b"  ", b"\t", b"0.000")  # fmt: skip
JOURNAL_WORDS = (*TEXT_WORDS, b"- [ ] P40.1 ", b"(carried 3 times, since v40)", b"(dropped: ", b"<!-- muster:begin ", b"<!-- muster:end -->", b"<!-- muster", b"## ", "## 学习".encode(), b"iter 56", b"first_death_p10", b"3x", b"P999999.9999",
                 b"sha256", b"%", b"->", "→".encode())  # fmt: skip
PROPOSER = b'import random\nfrom x import y as z\nLIMIT = 5\ndef propose(run, *, seed=0):\n    """Why."""\n    return [{"edit": ["lr@mul=2"], "reason": f"{run!r:>{seed}}"} for _ in range(3) if seed]\nclass A: pass\n'
PYTHON_WORDS = (b"-", b"not ", b"a.", b"(", b")", b"[", b"]", b"{", b"}", b"lambda: ", b"f'{", b"}'", b"\n    ", b"\t", b"if 1:\n", b"propose = ", b"def propose", b"*", b"**", b"@", b":=", b"match x:\n case ", b"#coding: utf-7\n", b"async ", b"'''", b"\\\n", b"1e999j")  # fmt: skip


def _entry(path: Path) -> object:
    return proposer_function.ProposerFunction(f"{path.name}:propose", path.parent).mistake()


def _escaped(text: str) -> object:
    return as_one_safe_line(text), escape_markdown(text), escape_latex(text)


def _shebang(path: Path) -> object:
    return launched_command.make_shebang_reader(str(path.parent), path.name)


def _all() -> Iterable[Reader]:
    yield Reader(
        "campaign",
        ("muster.spec.campaign_reader", "muster.spec.read_yaml", "muster.spec.yaml_tree", "muster.spec.yaml_tree"),
        _campaigns,
        _text(_campaign),
        (MusterError,),
        most=YAML_BYTES,
        honest=_honest_campaign,
        words=CAMPAIGN_WORDS,
        codec=LINES,
        share=2,
    )
    yield Reader(
        "campaign.file",
        ("muster.app.campaign.load_campaign",),
        _campaigns,
        _taken,
        (MusterError,),
        file="campaign.yaml",
        most=YAML_BYTES,
        honest=_honest_campaign,
        words=CAMPAIGN_WORDS,
        codec=LINES,
    )
    yield Reader(
        "campaign.renamed",
        ("muster.spec.rename_in_text",),
        _campaigns,
        _text(_renamed),
        (MusterError, ValueError),
        most=YAML_BYTES,
        honest=_honest_campaign,
        words=CAMPAIGN_WORDS,
        codec=LINES,
    )
    yield Reader(
        "gate.rules",
        ("muster.spec.gate_rules",),
        lambda: [GATE_RULES],
        _text(lambda text: gate_rules.read_gate_file(text, file="f")),
        (MusterError, SpecError),
        most=YAML_BYTES,
        honest=honest_yaml,
        words=(*YAML_WORDS, b"success:", b"mean 3", b"min: "),
        codec=LINES,
    )
    for kind, seed, words in (
        ("yaml", CONFIGS_YAML, YAML_WORDS),
        ("json", CONFIGS_JSON, JSON_WORDS),
        ("toml", CONFIGS_TOML, TOML_WORDS),
    ):
        yield Reader(
            f"config.{kind}",
            ("muster.rules.config_formats", "muster.rules.edit_config"),
            lambda seed=seed: [seed],
            _text(_config(kind)),
            (UnreadableConfig, EditsRefused),
            words=words,
            share=2,
            most=YAML_BYTES,
            honest=honest_yaml if kind == "yaml" else None,
        )
        yield Reader(
            f"variant.{kind}",
            ("muster.app.loop.edit_variant", "muster.app.campaign.run_configs"),
            lambda seed=seed: [seed],
            _made,
            (MusterError,),
            file=f"base.{kind}",
            words=words,
            most=YAML_BYTES,
            honest=honest_yaml if kind == "yaml" else None,
        )
    yield Reader(
        "variants",
        ("muster.app.loop.edit_variant",),
        lambda: [b'{"file": "a.yaml", "base": "b.yaml", "edits": ["lr@mul=2"], "reason": "x", "at": "2026"}\n' * 3],
        lambda path: list(read_variant_records(path)),
        (MusterError,),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "bases",
        ("muster.app.campaign.run_configs",),
        lambda: [b"a.yaml\n# c\nb*.yaml\n"],
        _bases,
        (MusterError,),
        file="list.txt",
        words=(b"*", b"**/", b"[", b"@", b"../", b"\n", b"a.yaml"),
        codec=LINES,
    )
    yield Reader(
        "edit",
        ("muster.rules.edits", "muster.rules.config_paths", "muster.rules.edit_config"),
        lambda: list(EDITS),
        _words_of(_edited),
        (EditsRefused, UnreadableConfig),
        words=EDIT_WORDS,
        most=ONE_WORD,
    )
    yield Reader(
        "edit.alone",
        ("muster.rules.edits",),
        lambda: list(EDITS),
        _words_of(parse_edit),
        (EditError,),
        words=EDIT_WORDS,
        most=ONE_WORD,
    )
    yield Reader(
        "path",
        ("muster.rules.config_paths",),
        lambda: [each.partition(b"@")[0] for each in EDITS],
        _words_of(_path),
        (PathError,),
        words=EDIT_WORDS,
        most=ONE_WORD,
    )
    yield Reader(
        "expression",
        ("muster.rules.expressions", "muster.rules.expressions"),
        lambda: list(EXPRESSIONS),
        _text(_expression),
        (ExpressionError,),
        words=EXPRESSION_WORDS,
        most=ONE_WORD,
    )
    yield Reader(
        "expression.number",
        ("muster.rules.expressions",),
        lambda: list(EXPRESSIONS),
        _text(lambda text: parse_expression(text, "number")),
        (ExpressionError,),
        words=EXPRESSION_WORDS,
        most=ONE_WORD,
    )
    yield Reader("notations", ("muster.stages.notation", "muster.stages.schedule", "muster.stages.schedule", "muster.stages.notation", "muster.stages.criteria"), lambda: list(NOTATIONS), _text(_notations),
                 words=(b":", b";", b",", b"|type=", b"mean ", b"p10 ", b"|"), most=ONE_WORD)  # fmt: skip
    yield Reader(
        "flags",
        ("muster.stages.training_flags",),
        lambda: [FLAGS],
        _words_of(parse_training_flags),
        (SpecError,),
        words=(b"--penalty_gate_", b"--curriculum", b"=", b":", b";", b",", b"'", b"\\\n"),
        most=ONE_WORD,
    )
    yield Reader(
        "template",
        ("muster.text.command_template",),
        lambda: list(TEMPLATES),
        _text(_words),
        (ValueError,),
        words=(b"{", b"}", b"{{", b"}}", b"'", b'"', b"\\", b"{seed}", b"{a.b}"),
        most=ONE_WORD,
    )
    yield Reader(
        "secrets",
        ("muster.text.secret_masking",),
        lambda: [SECRETS, *MASKED],
        _text(_masked_output),
        words=SECRET_WORDS,
    )
    yield Reader(
        "masking",
        ("muster.text.hide_secrets",),
        lambda: [SECRETS, SECRETS.replace(b"\n", b" ")],
        _text(_masked),
        words=(
            b"password",
            b"://",
            b":",
            b"@",
            b"--key",
            b"=",
            b"Bearer ",
            b"?token=",
            b"&",
            b"- ",
            b"|\n",
            b"'",
            b'"',
            b"api_key: ",
        ),
        codec=LINES,
        share=2,
    )
    yield Reader("document.md", ("muster.app.documents.text_layout", "muster.app.documents.find_numbers", "muster.app.documents.text_layout", "muster.app.documents.text_tables", "muster.app.documents.bind_numbers", "muster.app.documents.bind_update_audit", "muster.app.documents.document_files"),
                 _texts, _document, (MusterError,), file="text.md", words=TEXT_WORDS, codec=LINES, share=3)  # fmt: skip
    yield Reader(
        "document.tex",
        ("muster.app.documents.text_tables", "muster.app.documents.text_layout"),
        _texts,
        _document,
        (MusterError,),
        file="text.tex",
        words=TEXT_WORDS,
        codec=LINES,
        share=2,
    )
    yield Reader("document.names", ("muster.app.documents.result_names",), _texts, _text(_vocabulary), words=TEXT_WORDS)
    yield Reader(
        "document.sidecar",
        ("muster.app.documents.number_bindings",),
        _sidecars,
        lambda path: parse_sidecar(path.read_bytes()),
        (DamagedSidecar,),
        words=JSON_WORDS,
    )
    yield Reader(
        "document.bound",
        (
            "muster.app.documents.document_files",
            "muster.app.documents.number_bindings",
            "muster.app.documents.number_bindings",
        ),
        _sidecars,
        _with_sidecar,
        (MusterError,),
        words=(b'"start":', b'"token":', b'"line":', *JSON_WORDS),
    )
    yield Reader("journal", ("muster.app.journal.journal_versions", "muster.app.journal.journal_audit", "muster.app.journal.journal_text", "muster.app.journal.generated_blocks", "muster.app.journal.journal_text", "muster.app.journal.number_audit", "muster.app.journal.journal_points", "muster.app.journal.journal_audit"),
                 _journals, _journal, (MusterError,), file="dev_v40.md", words=JOURNAL_WORDS, codec=LINES, share=3)  # fmt: skip
    yield Reader(
        "journal.next",
        ("muster.app.journal.journal_versions",),
        _journals,
        _next_journal,
        (MusterError,),
        file="dev_v40.md",
        words=JOURNAL_WORDS,
        codec=LINES,
    )
    yield Reader(
        "proposer",
        ("muster.app.campaign.proposer_function",),
        lambda: [PROPOSER],
        _entry,
        file="my_rules.py",
        words=PYTHON_WORDS,
        codec=LINES,
        share=2,
    )
    yield Reader(
        "shebang",
        ("muster.app.campaign.preflight.launched_command",),
        lambda: [b"#!/usr/bin/env -S python3 -u\nx\n"],
        _shebang,
        file="train",
        words=(b"#!", b"'", b'"', b"\\", b" "),
    )
    yield Reader("escapes", ("muster.text.escape_markup",), _texts, _text(_escaped), words=TEXT_WORDS)


TEXTS = tuple(_all())
