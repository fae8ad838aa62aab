"""Recordings of speakers are called recordings, and their contexts speakers; classes have their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import soundfile

from shotproof.core.errors import InputError
from shotproof.pipeline.study import run
from shotproof.results.results import Results
from tests.drawn_clips import tone
from tests.experiment_files import up_to_results
from tests.html_page import Page

EXPERIMENT = """
[catalog]
root = "clips.csv"
layout = "table"
names = "names.csv"
[features]
encoders = ["logmel"]
[tasks]
way = 2
shots = [1]
query = 2
tasks = 8
samplers = ["context(context_column='speaker')"]
[evaluate]
methods = ["ncc", "knn"]
[runtime]
cache = "cache"
workers = 1
[output]
intervals = ["sampler"]
folder = "out"
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spoken")
    rows = ["path,label,speaker"]
    for digit in range(3):
        for speaker in ("anna", "bert"):
            for take in range(5):
                path = f"{digit}-{speaker}-{take}.wav"
                soundfile.write(folder / path, tone(40 * digit + 7 * take + len(rows) % 3), 16_000)
                rows.append(f"{path},d{digit},{speaker}")
    (folder / "clips.csv").write_text("\n".join(rows) + "\n")
    (folder / "names.csv").write_text("label,name\nd0,zero\nd1,one\nd2,two\n")
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT)
    run(file)
    return file


def test_the_page_has_the_words_for_what_is_there(experiment: Path) -> None:
    text = (experiment.parent / "out" / "report.html").read_text()
    visible = re.sub(r"<(script|style|head)\b.*?</\1>", " ", text, flags=re.DOTALL)
    visible = re.sub(r"<[^>]*>", " ", visible)
    assert "says nothing about new recordings or new classes" in visible
    assert "What happens when the speaker changes?" in visible
    assert "ood and hard-ood are the same tasks here" in visible
    # The interval keeps the name that users type; nothing else is called an image.
    named = visible.replace("The intervals images and classes", "").replace("Images interval", "")
    named = named.replace("with images among the intervals", "")
    assert not re.search(r"\bimages?\b", re.sub(r"\bimages\s+and\s+classes", "", named, flags=re.IGNORECASE))
    assert "random halves of each class’s recordings" in visible


def test_the_gallery_names_classes_and_shows_contexts(experiment: Path) -> None:
    page = Page(experiment.parent / "out" / "report.html")
    assert set(page.find("span", **{"class": "context"})) == {"anna", "bert"}
    strong = set(page.find("strong"))
    assert strong & {"zero", "one", "two"}
    assert not strong & {"d0", "d1", "d2"}


def test_labels_in_files_stay(experiment: Path) -> None:
    file = next((experiment.parent / "out" / "results").rglob("ncc.parquet"))
    assert set(Results.read(file).table.column("label").to_pylist()) <= {"d0", "d1", "d2"}


def test_other_names_make_the_page_and_the_catalog_anew_but_no_tasks(experiment: Path) -> None:
    (experiment.parent / "names.csv").write_text("label,name\nd0,nought\nd1,one\nd2,two\n")
    assert up_to_results(run(experiment).made) == ["catalog.parquet"]
    assert "nought" in Page(experiment.parent / "out" / "report.html").find("strong")


def test_an_error_about_contexts_calls_them_by_their_column(experiment: Path) -> None:
    small = experiment.with_name("small.toml")
    small.write_text(EXPERIMENT.replace("way = 2", "way = 3").replace('"out"', '"nowhere"'))
    with pytest.raises(InputError, match=r"with their speakers.* or merge speakers"):
        run(small, dry_run=True)
    assert not (experiment.parent / "nowhere").exists()
