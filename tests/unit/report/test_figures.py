"""The pictures as files: they decode, say what they are, and are the same for the same facts."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from figure_facts import analysis, changed, facts
from PIL import Image

from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.report.figures import ReportFigure, draw_report_figures

HERE = Path(__file__).parent
NAMES = ["learning_score", "learning_cost", "bars_score", "bars_cost", "score_against_cost", "coverage"]


def some_missing(config: int, seed: int, split: int) -> bool:
    return not (seed >= 3 and (config + seed + split) % 2 == 0)


@pytest.fixture(scope="module")
def whole() -> list[ReportFigure]:
    return list(draw_report_figures(analysis()))


@pytest.fixture(scope="module")
def partial() -> list[ReportFigure]:
    return list(draw_report_figures(analysis(done=some_missing)))


def png_text(figure: ReportFigure) -> Mapping[str, str]:
    with Image.open(BytesIO(figure.files["png"])) as image:
        image.load()
        return dict(image.text)  # type: ignore[attr-defined]


def svg_words(figure: ReportFigure) -> list[str]:
    """Each text that is drawn: its letters are paths, with the text itself in a comment."""
    return re.findall(r"<!-- (.*?) -->", figure.files["svg"].decode())


def test_every_picture_of_a_whole_report_opens(whole: list[ReportFigure]) -> None:
    assert [figure.name for figure in whole] == NAMES
    for figure in whole:
        assert set(figure.files) == {"png", "svg", "pdf"}
        with Image.open(BytesIO(figure.files["png"])) as image:
            image.load()
            assert (image.format, image.size) == ("PNG", (1600, 896))
            assert len(image.convert("RGB").getcolors(10**7) or ()) > 20  # something is drawn
        root = ElementTree.fromstring(figure.files["svg"])
        assert root.tag.endswith("svg")
        assert figure.files["pdf"].startswith(b"%PDF-")
        assert figure.files["pdf"].rstrip().endswith(b"%%EOF")
        assert max(len(data) for data in figure.files.values()) < 1_000_000


def test_a_picture_that_travels_alone_says_what_it_is(whole: list[ReportFigure]) -> None:
    learning = whole[0]
    told = png_text(learning)
    assert told["Title"] == "Learning curves: score"
    assert told["Description"] == "campaign safe-nav; 40 of 40 cells with results; code 1a2b3c4; muster 0.3.0"
    assert told["Description"] in learning.files["svg"].decode()
    assert b"/Title (Learning curves: score)" in learning.files["pdf"]
    assert b"campaign safe-nav; 40 of 40" in learning.files["pdf"]


def test_no_date_is_in_any_file(whole: list[ReportFigure]) -> None:
    for figure in whole:
        assert b"CreationDate" not in figure.files["pdf"]
        assert b"<dc:date>" not in figure.files["svg"]
        assert "Creation Time" not in png_text(figure)


def test_partial_is_in_every_title_caption_and_file(partial: list[ReportFigure]) -> None:
    for figure in partial:
        mark = "PARTIAL 32/40"
        assert figure.caption.startswith(f"{mark}. ")
        title = png_text(figure)["Title"]
        assert title.endswith(f"({mark})")
        assert title in svg_words(figure)
        assert svg_words(figure).count(mark) == 1  # in the corner
        assert mark in png_text(figure)["Description"]
        assert f"({mark})".encode().replace(b"(", b"\\(").replace(b")", b"\\)") in figure.files["pdf"]


def test_nothing_is_partial_that_is_whole(whole: list[ReportFigure]) -> None:
    for figure in whole:
        assert "PARTIAL" not in figure.caption + "".join(svg_words(figure)) + png_text(figure)["Title"]


def orange_in_the_corner(figure: ReportFigure) -> int:
    with Image.open(BytesIO(figure.files["png"])) as image:
        colours = image.convert("RGB").crop((1600 - 160, 0, 1600, 160)).getcolors(10**6) or []
    return sum(count for count, colour in colours if colour == (0xD5, 0x5E, 0x00))


def test_the_corner_is_painted_only_where_something_is_missing(
    whole: list[ReportFigure], partial: list[ReportFigure]
) -> None:
    assert [orange_in_the_corner(figure) for figure in whole] == [0] * 6
    assert all(orange_in_the_corner(figure) > 2000 for figure in partial)


def test_an_error_flag_marks_the_picture() -> None:
    same = analysis(scores=lambda _config, seed, _split: 1.2345 + 0.1 * seed)  # the same values in every config
    assert same.errors
    figure = next(draw_report_figures(same))
    assert png_text(figure)["Title"].endswith("(INVALID)")
    assert figure.caption.startswith("INVALID")


def test_each_rests_on_its_cells(whole: list[ReportFigure]) -> None:
    found = {figure.name: figure.cells for figure in whole}
    assert found["learning_score"][:2] == ("train/baseline/0", "train/baseline/1")
    assert len(found["learning_score"]) == 20
    assert len(found["bars_cost"]) == len(set(found["bars_cost"])) == 40
    assert all(cell.endswith("/ood") for cell in found["score_against_cost"])
    assert len(found["score_against_cost"]) == 20
    assert len(found["coverage"]) == 40


def test_captions_tell_n_and_the_kind_of_interval(whole: list[ReportFigure]) -> None:
    for figure in whole[:5]:
        assert "Student-t 95 %" in figure.caption
        assert "n = 5" in figure.caption
    assert "limit 25 of ood/cost" in whole[1].caption
    assert "limit" not in whole[0].caption.replace("beyond the limit", "")
    assert "ood is a proxy: shift.level=2" in whole[2].caption
    assert "Undetermined against the limit: cert_only, v2_full." in whole[4].caption


def test_captions_in_chinese_name_the_mark_and_n() -> None:
    found = list(
        draw_report_figures(analysis(configs=("a", "b"), done=lambda _config, seed, _split: seed < 4, language="zh"))
    )
    for figure in found:
        assert figure.caption.startswith("PARTIAL 16/20。")
    assert "每个配置 n = 4 个种子" in found[0].caption
    assert "学习曲线" in found[0].caption


def test_a_note_on_a_split_makes_no_proxy_of_it() -> None:
    noted = list(
        draw_report_figures(changed(facts(language="zh"), split_notes={"id": "分布内"}, proxies={"ood": "替代分布外"}))
    )
    bars = noted[2]
    assert "id：分布内。" in bars.caption
    assert "ood 是代理划分：替代分布外。" in bars.caption
    assert "id 是代理" not in bars.caption
    assert {"id", "ood (proxy)"} <= {word.strip() for word in svg_words(bars)}


def test_a_proxy_is_one_behind_its_job_too() -> None:
    found = facts()
    assert found.split_of("eval/ood") == "ood"
    assert found.split_of("ood/large") == "ood"


def test_what_the_font_lacks_gets_a_number_and_stands_in_the_caption() -> None:
    odd = facts(configs=("基线", "cert_only", "完整_v2"), seeds=("0", "种子一"), done=lambda c, s, _: c + s < 3)
    odd = replace(odd, campaign="安全导航", missing=(replace(odd.missing[0], cell="训练/完整_v2/0"), *odd.missing[1:]))
    for figure in draw_report_figures(
        analyse_facts(odd)
    ):  # a glyph that is missing would be a warning, and so an error
        words = svg_words(figure)
        assert words
        assert all(ord(letter) < 0x2100 for word in words for letter in word)
        assert "config 1 = 基线" in figure.caption
        assert "config 3 = 完整_v2" in figure.caption
        assert any("cert_only" in word for word in words)
        assert "安全导航" in png_text(figure)["Description"]


def test_metrics_and_splits_may_be_chinese_too() -> None:
    plain = facts(configs=("a", "b"))
    words = {"score": "得分", "cost": "代价"}
    splits = {"id": "域内", "ood": "域外"}
    assert plain.plan is not None
    assert plain.plan.limit is not None
    odd = changed(
        plain,
        columns=tuple(replace(c, head=splits[c.head], metric=words[c.metric]) for c in plain.columns),
        measured=tuple(
            replace(m, head=splits[m.head], results={words[key]: value for key, value in m.results.items()})
            for m in plain.measured
        ),
        curves=tuple(replace(c, metric=words[c.metric]) for c in plain.curves),
        plan=replace(
            plain.plan,
            primary=replace(plain.plan.primary, head="域外", metric="得分"),
            limit=replace(plain.plan.limit, head="域外", metric="代价"),
        ),
    )
    found = list(draw_report_figures(odd))
    assert len({figure.name for figure in found}) == 6
    for figure in found:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", figure.name)
        assert all(ord(letter) < 0x2100 for word in svg_words(figure) for letter in word)
    assert "metric 1 = 得分" in found[0].caption
    assert "split 2 = 域外" in found[2].caption


def digest(found: ReportAnalysis) -> str:
    whole = hashlib.sha256()
    for figure in draw_report_figures(found):
        for kind, data in sorted(figure.files.items()):
            whole.update(f"{figure.name}.{kind}".encode() + data)
    return whole.hexdigest()


def test_the_same_facts_give_the_same_bytes_anywhere(tmp_path: Path) -> None:
    """In another process, with other settings of matplotlib at hand; which leaves nothing behind."""
    home, temporary, work = (tmp_path / name for name in ("home", "tmp", "work"))
    for folder in (home, temporary, work):
        folder.mkdir()
    (work / "matplotlibrc").write_text("font.size: 33\naxes.facecolor: red\n")
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import os; before = dict(os.environ)\n"
        "from test_figures import digest, analysis, some_missing\n"
        "assert 'matplotlib' not in sys.modules\n"
        "print(digest(analysis(done=some_missing)))\n"
        "assert dict(os.environ) == before\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("MPL", "XDG"))},
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONHASHSEED": "7",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=work, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest(analysis(done=some_missing))
    assert [path for folder in (home, temporary) for path in folder.rglob("*")] == []


def test_settings_of_matplotlib_are_left_as_they_were() -> None:
    found = draw_report_figures(analysis(configs=("a",), seeds=("0",)))
    next(found)
    import matplotlib

    matplotlib.rcParams["font.size"] = 11.5
    before = dict(matplotlib.rcParams)
    for _ in found:
        assert dict(matplotlib.rcParams) == before
    assert dict(matplotlib.rcParams) == before
    matplotlib.rcParams["font.size"] = 10.0
