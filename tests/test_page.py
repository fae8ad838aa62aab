from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from benchmarks.task_size import gaussian_world

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch, WriteFailed
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.results import Results
from shotproof.report.comparison import compare_results
from shotproof.report.page import write_report
from shotproof.stats.compare import compare
from shotproof.stats.intervals import MEANING
from shotproof.stats.material import Material
from shotproof.tasks.sampler import sample
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
BREAK_OUT = "</script><script>alert(2)</script>\u2028&'"


class Page(HTMLParser):
    """The elements of a page, as (tag, attributes, text directly inside)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.ended = False
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes), []))
        self.ended = False

    def handle_endtag(self, tag: str) -> None:
        self.ended = True

    def handle_data(self, data: str) -> None:
        if self.elements and not self.ended:
            self.elements[-1][2].append(data)

    def find(self, tag: str, **attributes: str) -> list[str]:
        """The text of each such element up to the next tag."""
        wanted = attributes.items()
        return ["".join(text) for name, given, text in self.elements if name == tag and wanted <= given.items()]


def test_the_page_has_every_part(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    comparison = write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog, title="A & B")
    page = Page(tmp_path / "r.html")
    assert page.find("h1") == ["A & B"]
    assert comparison == compare_results(results)
    assert json.loads(page.find("script", id="comparison")[0]) == json.loads(json.dumps(comparison.to_json()))
    assert page.text.count("<tr>") > len(comparison.rows)
    # Scatters by design, gaps by encoder, three heat maps a design, plans by design, attributes by task set.
    assert len(page.find("svg", role="img")) == 2 + 2 + 6 + 2 + 2
    assert len(page.find("details", **{"class": "task"})) == 6
    for digest in [*(given.digest for given in results), *(given.digest for given in tasks), catalog.digest]:
        assert digest in page.text
    why, thumbnails = page.find("p", **{"class": "missing"})
    assert why.startswith("How support and query differ needs the attributes")
    assert thumbnails == "The thumbnails and the choice of a classifier need JavaScript."


def test_labels_of_any_kind_stay_text(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(
        tmp_path, labels=(SCRIPT, IMAGE, BREAK_OUT), attributes=(SCRIPT, IMAGE, BREAK_OUT), encoder=BREAK_OUT
    )
    (tmp_path / "0-0.png").unlink()
    methods = {IMAGE: 0.5, SCRIPT: 0.4}
    results = [make_results(given, BREAK_OUT, methods, seed) for seed, given in enumerate(tasks)]
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog, title=SCRIPT)
    page = Page(tmp_path / "r.html")
    scripts = [given for tag, given, _ in page.elements if tag == "script"]
    assert [given.get("id") for given in scripts] == [
        "comparison",
        "method-tables",
        "gallery-images",
        "gallery-sounds",
        "gallery-marks",
        None,
    ]
    assert not any(name.startswith("on") for _, given, _ in page.elements for name in given)
    assert all("data-image" in given and "src" not in given for tag, given, _ in page.elements if tag == "img")
    assert page.find("h1") == [SCRIPT]
    embedded = json.loads(page.find("script", id="comparison")[0])
    assert {row["method"] for row in embedded["rows"]} == set(methods)
    assert {row["encoder"] for row in embedded["rows"]} == {BREAK_OUT}
    assert "\u2028" not in page.find("script", id="comparison")[0]


def test_nothing_outside_the_page_is_named_and_its_policy_holds(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog)
    page = Page(tmp_path / "r.html")
    for _, given, _ in page.elements:
        assert not {"src", "srcset", "action", "style"} & set(given)
        assert (given.get("href") or "#").startswith("#")
    assert "url(" not in page.find("style")[0]
    assert "@import" not in page.find("style")[0]
    (policy,) = (given["content"] or "" for _, given, _ in page.elements if "http-equiv" in given)
    assert policy.startswith("default-src 'none'; img-src data:;")
    for kind, content in (("style", page.find("style")[0]), ("script", page.find("script")[-1])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_ids_are_unique_and_references_lead_somewhere(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog)
    page = Page(tmp_path / "r.html")
    ids = [given["id"] for _, given, _ in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    for _, given, _ in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for", "href"):
            if name in given:
                assert (given[name] or "").removeprefix("#") in ids


def test_without_tasks_or_catalog_the_page_says_how_to_get_them(tmp_path: Path) -> None:
    results, tasks, _ = make_experiment(tmp_path)
    write_report(tmp_path / "none.html", results)
    write_report(tmp_path / "tasks.html", results, tasks=tasks)
    none, some = ((tmp_path / name).read_text() for name in ("none.html", "tasks.html"))
    assert "--tasks tasks.parquet" in none
    assert "--catalog catalog.parquet" in none
    assert "--tasks tasks.parquet" not in some
    assert "--catalog catalog.parquet" in some


def test_results_of_somebody_s_own_script_make_a_page(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    bare = Results(results.table.drop_columns("missed"))
    comparison = write_report(tmp_path / "r.html", [bare])
    assert comparison.rows[0].biased is not None
    assert "tasks of an unknown sampler" in (tmp_path / "r.html").read_text()


def test_results_without_missed_show_counts_only(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    counts = [Results(given.table.drop_columns("missed"), given.meta) for given in results]
    write_report(tmp_path / "r.html", counts, tasks=tasks, catalog=catalog)
    page = Page(tmp_path / "r.html")
    marks = json.loads(page.find("script", id="gallery-marks")[0])
    assert all(outcome["missed"] == [None] * 3 for task in marks for outcome in task)
    assert any(re.fullmatch(r"\d of 4 correct", text) for text in page.find("span", **{"class": "score"}))


def test_only_random_tasks_still_make_a_gallery(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = make_tasks(catalog, "random")
    write_report(tmp_path / "r.html", [make_results(tasks, "p", {"ncc": 0.5})], tasks=[tasks], catalog=catalog)
    page = Page(tmp_path / "r.html")
    assert len(page.find("details", **{"class": "task"})) == 6
    assert "No attribute was planted" in page.text


def test_tasks_of_other_results_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = make_results(make_tasks(catalog), "pixels", {"ncc": 0.5})
    with pytest.raises(Mismatch, match="no results are on the task set"):
        write_report(tmp_path / "r.html", [results], tasks=[make_tasks(catalog, seed=3)])
    assert not (tmp_path / "r.html").exists()


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="cannot write"):
        write_report(tmp_path / "file" / "r.html", [results])


def test_the_same_files_give_the_same_page_whatever_the_hash_seed(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    for number, given in enumerate(results):
        given.write(tmp_path / f"results{number}.parquet")
    for number, task_set in enumerate(tasks):
        task_set.write(tmp_path / f"tasks{number}.parquet")
    Catalog(catalog.table, catalog.root).write(tmp_path / "catalog.parquet")
    program = (
        "import sys; from pathlib import Path; from shotproof.report.page import write_report\n"
        "from shotproof.catalog.catalog import Catalog; from shotproof.evaluation.results import Results\n"
        "from shotproof.tasks.taskset import TaskSet; folder = Path(sys.argv[1])\n"
        "results = [Results.read(folder / f'results{i}.parquet') for i in range(8)]\n"
        "tasks = [TaskSet.read(folder / f'tasks{i}.parquet') for i in range(4)]\n"
        "write_report(sys.argv[2], results, tasks=tasks, catalog=Catalog.read(folder / 'catalog.parquet'))\n"
    )
    pages = []
    for seed in ("1", "2"):
        output = tmp_path / f"{seed}.html"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program, tmp_path, output], check=True, env=environment)
        pages.append(output.read_bytes())
    assert pages[0] == pages[1]


def test_intervals_that_re_evaluate_are_drawn_with_their_names(tmp_path: Path) -> None:
    catalog, features = gaussian_world(classes=5, items=30)
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=40)
    results = evaluate(tasks, features, ["ncc", "knn"])
    intervals = ("sampler", "depletion")
    write_report(tmp_path / "r.html", [results], catalog=catalog, features=[features], intervals=intervals)
    page = Page(tmp_path / "r.html")
    table = compare([results], intervals=intervals, metric="wacc", material=Material((), catalog, [features]))
    assert json.loads(page.find("script", id="method-tables")[0]) == [json.loads(json.dumps(table.to_json()))]
    for name in intervals:
        assert len([words for words in page.find("text") if words == name]) == 2 * 2  # methods, metrics
        assert MEANING[name] in page.find("span", id=f"tip-intervals-{name}")
    with pytest.raises(InputError, match="the interval 'images' re-evaluates the methods"):
        write_report(tmp_path / "none.html", [results], intervals=["images"])
    assert not (tmp_path / "none.html").exists()
