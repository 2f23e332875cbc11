"""Placeholders in shell texts, read by real shells: what arrives is the value, wherever the placeholder stands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.plan.cell_command import AttemptContext, build_command, cell_placeholder_values
from muster.model.campaign import AxisValue, Job
from muster.model.cell import Cell
from muster.text.shell_quoting import find_shell_placeholders, is_plain_shell_word, render_shell_text

SHELLS = [shell for shell in ("/bin/sh", shutil.which("dash"), shutil.which("bash")) if shell]
SHELLS = list({os.path.realpath(shell): shell for shell in SHELLS}.values())  # each once
PRINT = r"printf '%s\0' "

# how a text hands over what stands at {v}; the value must arrive between « and »
PLACES = {
    "bare": PRINT + "«{v}»",
    "alone": PRINT + "«\\\n{v}\\\n»",
    "double": PRINT + '"«{v}»"',
    "single": PRINT + "'«{v}»'",
    "between quotes": PRINT + "\"«\"{v}'»'",
    "assigned": "X={v}; " + PRINT + '"«$X»"',
    "assigned in quotes": 'X="{v}"; ' + PRINT + '"«$X»"',
    "exported": "export X={v}; " + PRINT + '"«$X»"',
    "in a subshell": "( " + PRINT + "«{v}» )",
    "substituted": PRINT + "\"«$(printf '%s»' {v})\"",
    "substituted in quotes": PRINT + '"«$(printf \'%s\' "{v}»")"',
    "substituted twice": PRINT + "\"«$(printf '%s' \"$(printf '%s»' '{v}')\")\"",
    "behind a variable": "Y=«; " + PRINT + "$Y{v}»",
    "behind a variable in quotes": "Y=«; " + PRINT + '"$Y{v}»"',
    "behind a number": ': "$((1 + 2 * (3 - 1)))"; ' + PRINT + "«{v}»",
    "behind an expansion": PRINT + '"${Z:-}«{v}»"',
    "behind a comment": ": # it's \"a comment\n" + PRINT + "«{v}»",
    "behind a here-document": "cat >/dev/null <<'END' # it's\nit's \"$( `\nEND\n" + PRINT + "«{v}»",
    "behind one that expands": "cat >/dev/null <<-END\n\tit's \"$(echo a)\n\tEND\n" + PRINT + "«{v}»",
    "behind backquotes": PRINT + '"`echo «`{v}»"',
    "in a loop": "for i in {v}; do " + PRINT + '"«$i»"; done',
    "in a case": "case {v} in {v}) " + PRINT + "«{v}» ;; esac",
    "before a redirection": PRINT + "«»{v}>&1",
    "an argument": 'f() {{ ' + PRINT + '"«$1»"; }}\nf {v}',
    "and more": "true && " + PRINT + "«{v}» || false",
    "to a shell as an argument": "/bin/sh -c 'printf \"%s\\0\" \"«$1»\"' _ {v}",
}  # fmt: skip

HOSTILE = [
    "a; touch PWNED #", "$(touch PWNED)", "`touch PWNED`", "'; touch PWNED; '", '"; touch PWNED; "', "a\ntouch PWNED\n",
    "a' \"b", "\\", "\\'", '\\"', "a\\\nb", "two words", "  ", "", "-n", "--x=1", "-", "2", "~", "~root", "*", "?", "[a]",
    "$HOME", "${HOME}", "$", "!!", "#", "#a", "a#b", "a=b", "PATH=/nowhere", "if", "}", "{a,b}", "{1..3}", ">PWNED",
    "&", "|tee PWNED", "\t", "\n", "é\udcff", "END\ntouch PWNED", "x[$(touch PWNED)]", ")", "))", "$((1", "\r",
]  # fmt: skip


def run(shell: str, text: str, cwd: Path) -> bytes:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [shell, "-c", os.fsencode(text)], cwd=cwd, env=environment, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert not list(cwd.iterdir()), f"{text!r} made {list(cwd.iterdir())}"
    assert done.returncode == 0, (text, done.stderr)
    return done.stdout


def expected(place: str, value: str) -> bytes:
    if place == "before a redirection":
        return "«»".encode() + os.fsencode(value) + b"\0"
    return "«".encode() + os.fsencode(value) + "»".encode() + b"\0"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_value_arrives_as_it_is(place: str, shell: str, tmp_path: Path) -> None:
    """All values in one process: each text in a subshell of its own."""
    texts = [render_shell_text(PLACES[place], {"v": value}) for value in HOSTILE]
    got = run(shell, "\n".join(f"(\n{text}\n)" for text in texts), tmp_path)
    assert got == b"".join(expected(place, value) for value in HOSTILE)


NASTY = st.text("'\"`$\\(){}[]<>;&|#*?~!=-+.,:/ \n\t\raE019é", max_size=12) | st.text(
    st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(sorted(PLACES)), NASTY), min_size=1, max_size=12))
def test_any_value_arrives_as_it_is(tmp_path: Path, chosen: list[tuple[str, str]]) -> None:
    """One text with a placeholder of its own at each place: what stands before one must not change how it is read."""
    template = "\n".join(PLACES[place].replace("{v}", f"{{v{at}}}") for at, (place, _) in enumerate(chosen))
    text = render_shell_text(template, {f"v{at}": value for at, (_, value) in enumerate(chosen)})
    for shell in SHELLS:
        assert run(shell, text, tmp_path) == b"".join(expected(place, value) for place, value in chosen)


PIECES = [
    "{v}", "'", '"', "`", "$(", ")", "(", "((", "$((", "))", "${X:-", "${X}", "}", "\\", "\n", " ", "#", " #", "<<E", "<<'E'",
    "<<-E", "<<<", "\nE\n", "echo ", "case a in ", "a)", ";;", "esac", "$X", "$", ";", "$'", "$[", "]", "a", "1", "=", "&&", "|",
    ">&1", ": ", "if :; then ", "fi", "for i in ", "; do ", "done", "{{ ", "; }}", "eval ",
]  # fmt: skip
# whichever quote or bracket it lies in, as it is it gets out and leaves a mark
POLYGLOT = "'\"`;touch PWNED;$(touch PWNED)\ntouch PWNED\nE\ntouch PWNED\n)));};touch PWNED\n#"


def accepted(template: str) -> str | None:
    try:
        return render_shell_text(template, {"v": POLYGLOT})
    except ValueError:
        return None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([each for each in PIECES if each != "eval "]), max_size=14).map("".join))
def test_no_text_that_is_taken_lets_a_value_out(tmp_path: Path, template: str) -> None:
    """Any text, also one that no shell understands: where the place can't be known, it is refused."""
    text = accepted(template + "{v}")
    if text is None:
        return
    for shell in SHELLS:
        subprocess.run([shell, "-c", text], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
        assert not (tmp_path / "PWNED").exists(), text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("run # {v}", "a comment"),
        ("cat <<E\n{v}\nE\n", "a here-document"),
        ("cat <<'E'\n{v}\nE\n", "a here-document"),
        ("cat <<{v}\n", "ends nobody knows where"),
        ("run `echo {v}`", "backquotes"),
        ('run "`echo {v}`"', "backquotes"),
        ("run \\{v}", "a backslash"),
        ('run "\\{v}"', "a backslash"),
        ("run $'{v}'", "$'...'"),
        ("run $'a\\'' {v}", "$'...'"),
        ('run "{v}', "a double quote before it is never closed"),
        ("run 'a {v}", "a single quote before it is never closed"),
        ("run $(echo {v}", "a `$(` before it is never closed"),
        ("run $((1 + {v}) | cat)", "`$((` is not closed"),
        ("((x = {v}))", "means something else to each shell"),
        ("run $[{v}]", "means something else to each shell"),
        ("run $(case a in a) echo;; esac) {v}", "`case` inside of $( )"),
        ("run \"${X:-'}'}\" {v}", "shells disagree"),
    ],
)
def test_where_no_value_is_safe_it_is_refused(text: str, why: str) -> None:
    assert [spot.context for spot in find_shell_placeholders(text)] == ["refused"]
    assert why in find_shell_placeholders(text)[0].why
    assert find_shell_placeholders(text)[0].hint
    with pytest.raises(ValueError, match="can't be put in safely"):
        render_shell_text(text, {"v": "1"})


def test_in_arithmetic_only_a_whole_number_is_put_in() -> None:
    assert render_shell_text("echo $((6000 + {v}))", {"v": "12"}) == "echo $((6000 + 12))"
    for value in ("a", "a[$(touch PWNED)]", "", "-1", "010", "1 2", "1\n", "١"):
        with pytest.raises(ValueError, match="only a whole number"):
            render_shell_text("echo $((6000 + {v}))", {"v": value})


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ('cd "{out}" && python "$OLDPWD/t.py" --algo {config} --seed {seed} > {out}/log 2>&1',
         'cd "/c/.muster/out" && python "$OLDPWD/t.py" --algo PPO --seed 3 > /c/.muster/out/log 2>&1'),
        ("SEEDS='{seed}' ./train.sh ${X:-{seed} | tee {out}/log", "SEEDS='3' ./train.sh ${X:-{seed} | tee /c/.muster/out/log"),
        ("echo '{{\"step\": {seed}}}' > runs/new_{seed}/m", "echo '{\"step\": 3}' > runs/new_3/m"),
        ("echo {seed}>f", "echo '3'>f"),
    ],
)  # fmt: skip
def test_plain_values_stand_there_as_before(text: str, rendered: str) -> None:
    assert render_shell_text(text, {"out": "/c/.muster/out", "config": "PPO", "seed": "3"}) == rendered
    assert is_plain_shell_word("/c/.muster/attempts/train@v2%2F1/1/out")


def test_a_nul_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL byte"):
        render_shell_text("run {v}", {"v": "a\0b"})
    with pytest.raises(ValueError, match="NUL byte"):
        render_shell_text("run\0 {v}", {"v": "a"})


def job(text: str, **more: object) -> Job:
    return Job("train", axes=("config",), command=(text,), shell=True, **more)  # type: ignore[arg-type]


def words_of(job: Job, shell: str, cwd: Path, *, args: str = "", **place: object) -> list[str]:
    cell = Cell("train/x", "train", (("config", AxisValue("v 2", "v 2", args=args)),))
    at = AttemptContext(n=2, out="/o u't", **place)  # type: ignore[arg-type]
    argv = build_command(job, cell_placeholder_values(job, cell, at))
    assert argv[-3:-1] == ["/bin/sh", "-c"]
    told = run(shell, argv[-1], cwd)
    return os.fsdecode(told).split("\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_args_are_words_and_each_is_quoted(shell: str, tmp_path: Path) -> None:
    args = "--a 'b c' --d=\"$HOME;\" --tag {config}"
    printed = words_of(job(PRINT + "x {config.args} y"), shell, tmp_path, args=args)
    assert printed == ["x", "--a", "b c", "--d=$HOME;", "--tag", "v 2", "y"]
    assert words_of(job(PRINT + "x {config.args} y"), shell, tmp_path) == ["x", "y"]
    assert words_of(job(PRINT + "x {config.args}#y"), shell, tmp_path) == ["x", "#y"]
    assert words_of(job(PRINT + '"{config.args}"'), shell, tmp_path, args="--a 'b c'") == ["--a 'b c'"]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_trainings_chose_and_other_jobs_wrote_is_quoted_too(shell: str, tmp_path: Path) -> None:
    checkpoint = "/c/a'; touch PWNED #.pt"
    resumed = job(
        "false", needs=("base",), resume=(PRINT + '{last.checkpoint} "{last.checkpoint}" {last.output} {base.output}',)
    )
    got = words_of(
        resumed, shell, tmp_path, last_checkpoint=checkpoint, last_output="/l $(touch PWNED)", outputs={"base": "/b\n`touch PWNED`"}
    )  # fmt: skip
    assert got == [checkpoint, checkpoint, "/l $(touch PWNED)", "/b\n`touch PWNED`"]


def test_words_before_the_shell_are_words() -> None:
    within = job("run {config}", within=("conda", "run", "-n", "{config}"))
    cell = Cell("train/x", "train", (("config", AxisValue("a; b", "a; b")),))
    argv = build_command(within, cell_placeholder_values(within, cell, AttemptContext(n=1, out="/o")))
    assert argv == ["conda", "run", "-n", "a; b", "/bin/sh", "-c", "run 'a; b'"]
