"""What Muster says: every code has its sentence, in every language with the same parameters, and comes back from a log."""

import ast
import os
import re
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster
from muster.engine.store.decision_log import mask_decision
from muster.files.json_codec import outcome_as_data, outcome_in_words
from muster.locales import LANGUAGES, decode_message, message_lines
from muster.model.attempt import Outcome
from muster.model.decision import Decision
from muster.model.verdict import Cause, Evidence, VerdictState
from muster.text.phrases import (
    Phrase,
    asked_language,
    english_text,
    has_code,
    join_phrases,
    language_of_locale,
    phrase,
    phrase_as_data,
    phrase_from_data,
    speaking,
    translate,
)


def load_messages(subject: str, language: str) -> dict[str, str]:
    return {key: decode_message(written) for key, written in message_lines(subject, language).items()}


SOURCE = Path(muster.__file__).parent
FILES = {language: sorted((SOURCE / "locales" / language / "messages").glob("*.toml")) for language in LANGUAGES}
SUBJECTS = [path.stem for path in FILES["en"]]
ENGLISH = {f"{subject}.{key}": text for subject in SUBJECTS for key, text in load_messages(subject, "en").items()}
FILE_ENDS = (".db", ".yaml", ".log", ".json", ".jsonl", ".py", ".md", ".csv")
CODE = re.compile(rf"(?:{'|'.join(SUBJECTS)})\.[a-z0-9_]+")


def names_in(text: str) -> set[str]:
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def said_in_source() -> Iterator[tuple[str, ast.Call | None]]:
    """Each code, and the call of `phrase` that has it as its first argument."""
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        calls = {
            id(node.args[0]): node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "phrase" and node.args
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.value.endswith(FILE_ENDS):
                continue
            code = CODE.fullmatch(node.value) and ("_" in node.value or node.value in ENGLISH)
            if id(node) in calls or code:  # in a table, or behind an `if`
                yield node.value, calls.get(id(node))


SAID = list(said_in_source())


@pytest.mark.parametrize("path", [path for paths in FILES.values() for path in paths], ids=str)
def test_a_line_is_read_as_toml_reads_it(path: Path) -> None:
    """The quick reader takes lines; what is written over several would be lost."""
    assert load_messages(path.stem, path.parent.parent.name) == tomllib.loads(path.read_text("utf-8"))


def test_every_code_has_a_sentence_and_gets_its_parameters() -> None:
    for code, call in SAID:
        assert code in ENGLISH, code
        given = {each.arg for each in call.keywords} if call else {None}
        if None not in given:
            assert names_in(ENGLISH[code]) == given, code


def test_no_sentence_is_left_that_nobody_says() -> None:
    assert not set(ENGLISH) - {code for code, _ in SAID}


def test_translations_have_the_same_parameters() -> None:
    for language in LANGUAGES:
        for path in FILES[language]:
            for key, text in load_messages(path.stem, language).items():
                assert names_in(text) == names_in(ENGLISH[f"{path.stem}.{key}"]), (language, path.stem, key)


def test_a_phrase_is_a_text_that_remembers_what_it_says() -> None:
    told = phrase("judge.command_exited", code=137)
    assert told == "the command exited with 137"
    assert phrase_as_data(told) == {"code": "judge.command_exited", "params": {"code": 137}}
    assert phrase_as_data("a person's words") == {}
    both = join_phrases("; ", (told, "what a shell said"))
    assert both == "the command exited with 137; what a shell said"
    assert has_code(both, "judge.command_exited")
    assert not has_code("the command exited with 137", "judge.command_exited")
    assert translate(both, "pseudo") == "⟦the command exited with 137⟧; what a shell said"


def test_one_and_many() -> None:
    assert phrase("plan.median_finished_cell", count=1) == "the median of 1 finished cell"
    assert phrase("plan.median_finished_cell", count=2) == "the median of 2 finished cells"


def test_a_phrase_comes_back_from_its_data_in_another_language() -> None:
    inner = phrase("judge.exit_status", code=1)
    told = join_phrases(", ", (phrase("judge.exit_json_after_s", exit=inner, duration_s=2.0), "step 3"))
    data = phrase_as_data(told)
    with speaking("pseudo"):
        assert phrase_from_data(str(told), data) == "⟦exit.json: ⟦exit 1⟧ after 2.0 s⟧, step 3"
        assert english_text(phrase("judge.exit_status", code=1)) == "exit 1"


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"code": "judge.no_such_code", "params": {}},
        {"code": "nothing.at_all", "params": {}},
        {"code": "../../../etc/passwd", "params": {}},
        {"code": "judge.exit_status", "params": {}},
        {"code": "judge.exit_status", "params": {"code": {"no": "text"}}},
        {"code": "judge.exit_json_after_s", "params": {"exit": 1, "duration_s": "no number"}},
        {"code": "joined", "params": {"between": 1, "parts": 2}},
        {"code": 7, "params": []},
    ],
)
def test_what_a_newer_or_damaged_log_says_is_shown_as_it_is(data: dict[str, object] | None) -> None:
    assert phrase_from_data("as it was recorded", data) == "as it was recorded"


def make_outcome(secret: str = "") -> Outcome:
    note = phrase("judge.command_could_not_executed", exec_error=secret or "no such file")
    evidence = (Evidence("exit", "exit", phrase("judge.exit_status", code=1), "ended"),)
    return Outcome(VerdictState.DEAD, Cause("never_started", note=note), note, evidence=evidence)


def test_an_outcome_is_recorded_in_english_with_its_codes() -> None:
    with speaking("pseudo"):
        outcome = make_outcome()
        data = outcome_as_data(outcome)
        assert data["reason"] == "the command could not be executed: no such file"
        assert data["phrases"][data["reason"]]["code"] == "judge.command_could_not_executed"
        read = Outcome(
            VerdictState.DEAD, Cause("never_started", note=data["reason"]), data["reason"], phrases=data["phrases"]
        )
        assert outcome_in_words(read).reason == "⟦the command could not be executed: no such file⟧"


def test_a_decision_keeps_the_code_of_its_reason_unless_it_tells_a_secret() -> None:
    told = phrase("controller.could_not_launched", error="hunter2")
    made = mask_decision(Decision("found", "me", told), str)
    assert made.data["phrases"][made.reason]["params"] == {"error": "hunter2"}
    hidden = mask_decision(Decision("found", "me", told), lambda text: text.replace("hunter2", "..."))
    assert "hunter2" not in str(hidden)
    data = {"outcome": outcome_as_data(make_outcome("hunter2"))}
    assert "hunter2" not in str(
        mask_decision(Decision("settle", "me", "", data=data), lambda text: text.replace("hunter2", "..."))
    )


def test_the_language_of_the_environment() -> None:
    assert asked_language({"MUSTER_LANG": "zh"}) == "zh"
    assert asked_language({"MUSTER_LANG": "tlh", "LANG": "zh_CN.UTF-8"}) is None
    assert language_of_locale({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language_of_locale({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}) is None
    assert language_of_locale({}) is None
    assert isinstance(phrase("judge.exit_status", code=0), Phrase)


def test_a_log_names_no_file_of_its_own(tmp_path: Path) -> None:
    """Another user may have written it: a code leads to our sentences, and nowhere else."""
    (tmp_path / "evil.toml").write_text('key = "{x.__class__} {x:999}"\n')
    os.mkfifo(tmp_path / "pipe.toml")  # whoever opens it waits for ever
    for name in ("evil", "pipe", "none"):
        code = f"{tmp_path}/{name}.key"
        assert phrase_from_data("as it was recorded", {"code": code, "params": {"x": 1}}) == "as it was recorded"
