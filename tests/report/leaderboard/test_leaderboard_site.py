from __future__ import annotations

import json
import re
from dataclasses import replace

from shotproof.comparison.card import CardRemedy
from shotproof.comparison.leaderboard import Leaderboard, make_leaderboard
from shotproof.comparison.leaderboard_rows import measure_card
from shotproof.report.leaderboard.leaderboard_site import MODULES, join_modules, page_name, site_files
from tests.drawn_cards import make_card, random_axis, stress_axis

HOSTILE = "</script><script>alert(1)</script>"


def board(*names: tuple[str, str], remedy: CardRemedy | None = None) -> Leaderboard:
    """A leaderboard of cards, the first of them with a remedy."""
    measured = []
    for number, (encoder, method) in enumerate(names):
        card = make_card(random_axis(5, 80.0 - 10 * number), stress_axis("fewstab", 10.0 + 5 * number))
        remedies = (remedy,) if remedy and number == 0 else ()
        measured += measure_card(replace(card, encoder=encoder, method=method, remedies=remedies), f"{number}.json")
    return make_leaderboard(measured)


def data_of(files: dict[str, str]) -> dict:
    inner = re.fullmatch(r"globalThis\.leaderboard = JSON\.parse\((.*)\);\n", files["data.js"])
    assert inner
    return json.loads(json.loads(inner[1]))


def test_the_data_has_what_the_leaderboard_has() -> None:
    made = board(("lite0", "cosine"), ("lite0", "knn"))
    data = data_of(dict(site_files(made, "Mine")))
    assert data["methods"] == ["cosine", "knn"]
    assert [(one["quantity"], one["metric"]) for one in data["columns"] if one["axis"] == 1] == [
        *(("accuracy", "acc"), ("skill_lost", "acc"), ("accuracy", "wacc"), ("skill_lost", "wacc")),
    ]
    first = data["columns"][0]
    assert (first["mean"], first["best"], first["worst"], first["of"]) == ([80.0, 70.0], [1, 2], [1, 2], 2)
    assert data["axes"][1]["reference"] == 0
    pair = next(one for one in data["pairs"] if one["columns"] == [0, 3])
    assert (pair["r"], pair["beaten"]) == (None, "40")  # too few for a rank; the second: 0100 0000
    four = board(*(("lite0", method) for method in ("cosine", "knn", "ncc", "ridge")))
    pairs = {tuple(one["columns"]): one["r"] for one in data_of(dict(site_files(four, "Mine")))["pairs"]}
    assert pairs[0, 3] == -1.0


def test_every_classifier_has_a_page_with_its_ranks_and_what_its_card_says() -> None:
    made = board(("lite0", "cosine"), ("lite0", "knn"))
    files = dict(site_files(made, "Mine"))
    page = files[f"classifiers/{page_name(made.entries[1])}"]
    assert "knn on lite0" in page
    assert "2 of 2" in page
    assert "On fewstab tasks." in page
    assert set(data_of(files)["pages"]) == {path.removeprefix("classifiers/") for path in files if "/" in path}


def test_remedies_are_stated_where_there_are_any() -> None:
    remedy = CardRemedy("features", "wccn(ridge=10)", 130)
    made = board(("lite0", "cosine"), ("lite0", "knn"), remedy=remedy)
    files = dict(site_files(made, "Mine"))
    stated = {path for path, text in files.items() if "wccn(ridge=10), fitted on 130 classes" in text}
    assert stated == {"index.html", f"classifiers/{page_name(made.entries[0])}"}
    assert data_of(files)["remedied"] == [True, False]
    files = dict(site_files(board(("lite0", "cosine")), "Mine"))
    assert not any("measured with" in text.lower() for text in files.values())


def test_hostile_names_stay_text() -> None:
    remedy = CardRemedy("features", HOSTILE, 130)
    made = board((HOSTILE, "../../etc"), ("\u2028", "x" * 500), remedy=remedy)
    for path, text in site_files(made, HOSTILE):
        assert "<script>alert" not in text, path
        assert re.fullmatch(r"(classifiers/)?[a-z0-9.-]{1,80}", path), path
        assert ".." not in path


def test_pages_are_different_where_names_differ_in_case_alone() -> None:
    made = board(("lite0", "NCC"), ("lite0", "ncc"), ("", "???"))
    assert len({page_name(entry).lower() for entry in made.entries}) == 3


def test_the_same_leaderboard_gives_the_same_bytes() -> None:
    names = [("lite0", "cosine"), ("pixels", "knn"), ("pixels", "ncc")]
    assert list(site_files(board(*names), "Mine")) == list(site_files(board(*names), "Mine"))


def test_modules_are_joined_to_one_script_that_imports_nothing() -> None:
    script = join_modules(MODULES)
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    # Each comes after what it imports.
    names = [path.name for path in MODULES]
    for place, path in enumerate(MODULES):
        assert set(re.findall(r'from "\./(\w+\.js)"', path.read_text())) <= set(names[:place])
