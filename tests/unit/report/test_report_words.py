"""Both languages say the same things: the same keys, the same places to fill in."""

import re
import string
from pathlib import Path

import pytest

import muster
import muster.app.report
from muster.locales import LANGUAGES, load_texts
from muster.text.catalogue import load_catalogue

TEXTS = {language: load_texts("report", language) for language in LANGUAGES}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# English takes a flag's sentence from `stats`, where it is made.
ONLY_CHINESE = {key for key in TEXTS["zh"] if key.startswith("flag.") and not key.startswith("flag.means.")}
# English tells what was recorded in English as it is.
ONLY_CHINESE |= {key for key in TEXTS["zh"] if key.startswith("recorded.") and key not in TEXTS["en"]}
NOT_WORDS = {"and", "comma", "semicolon", "between", "stop", "marked", "caption.marked"}


def places(text: str) -> set[str]:
    """Less those that only choose between one and many: `{n:seed|seeds}`. Chinese has no need of them."""
    found = set()
    for _, name, form, _ in string.Formatter().parse(text):
        found |= places(form) if form and "|" in form else {name} - {None}
    return found


def test_both_languages_have_the_same_keys() -> None:
    assert TEXTS["en"].keys() == TEXTS["zh"].keys() - ONLY_CHINESE


@pytest.mark.parametrize("key", TEXTS["en"])
def test_both_languages_fill_in_the_same_parts(key: str) -> None:
    english, chinese = TEXTS["en"][key], TEXTS["zh"][key]
    optional = {"n"} if key.startswith("count.") else set()
    assert places(english) - optional == places(chinese) - optional


def test_each_half_of_a_count_has_its_number() -> None:
    for language in ("en", "zh"):
        for key in (key for key in TEXTS[language] if key.startswith("count.")):
            assert all(places(half) == {"n"} for half in TEXTS[language][key].split("|")), key


def test_no_english_is_left_in_the_chinese_and_no_chinese_in_the_english() -> None:
    assert not [key for key, text in TEXTS["en"].items() if CHINESE.search(text)]
    worded = {key: re.sub(r"\{\w+\}", "", text) for key, text in TEXTS["zh"].items()}
    named = ("k/N", "Welch", "Hedges")  # names that both languages share
    assert not [
        key
        for key, text in worded.items()
        if re.search(r"[A-Za-z]{3}", text) and not CHINESE.search(text) and not any(name in text for name in named)
        and key not in NOT_WORDS
    ]  # fmt: skip


def test_chinese_uses_its_own_punctuation() -> None:
    wrong = re.compile(r"[\u4e00-\u9fff][,;:?!]|[\u4e00-\u9fff]\.(?:\s|$)")
    assert not [key for key, text in TEXTS["zh"].items() if wrong.search(text)]


def test_every_text_is_asked_for_somewhere() -> None:
    """A text that nobody asks for is one that nobody reads again."""
    app = Path(muster.__file__).parent / "app"
    files = [path for room in ("report", "facts", "loop") for path in (app / room).glob("*.py")]
    files += (app.parent / "text").glob("*.py")
    code = "\n".join(path.read_text("utf-8") for path in files)
    asked = set(re.findall(r"[\"']([a-z_]+(?:\.[a-zA-Z_]+)*)[\"']", code))
    families = set(re.findall(r"f[\"']([a-z_.]+[._])\{", code))
    families |= {"count.", "flag.", "most.", "price."}  # by Words.count, by the flag's code, by the kind of price
    known = asked | {"and", "comma", "between", "and_more"}  # by Words itself
    unasked = [key for key in TEXTS["en"] if key not in known and not any(key.startswith(each) for each in families)]
    assert unasked == []


def test_counts_and_lists() -> None:
    english, chinese = load_catalogue("report", "en"), load_catalogue("report", "zh")
    assert [english.count("seed", n) for n in (1, 2)] == ["1 training seed", "2 training seeds"]
    assert chinese.count("seed", 1) == "1 个训练种子"
    assert [english.several(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert chinese.several(["a", "b", "c"]) == "a、b 和 c"
    assert english.some(["a", "b", "c"]) == "a, b and c"
    assert english.some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert chinese.some(["a", "b", "c", "d", "e"]) == "a、b、c，另有 2 个"
