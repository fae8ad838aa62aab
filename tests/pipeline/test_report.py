from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.explanation.explain import explain
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch, WriteFailed
from shotproof.core.records import AttributesRecord
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.pipeline.report import write_explanations
from shotproof.pipeline.study import Study
from shotproof.results.results import Results
from shotproof.stats.intervals import meanings
from shotproof.tasks.sampler import sample
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.hard_tasks import WORLD, leaning_features, pictured
from tests.hash_seeds import run_with_another_hash_seed
from tests.html_page import Page
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks, write_report

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
BREAK_OUT = "</script><script>alert(2)</script>\u2028&'"


def test_the_page_has_every_part(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    comparison = write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog, title="A & B")
    page = Page(tmp_path / "r.html")
    assert page.find("h1") == ["A & B"]
    assert comparison.to_json() == compare(results).to_json()
    assert json.loads(page.find("script", id="comparison")[0]) == json.loads(json.dumps(comparison.to_json()))
    assert page.text.count("<tr>") > len(comparison.rows("gap"))
    # Skill and points by encoder, scatters by design, three heat maps per design, plans by design, and the tasks of two
    # classifiers by design and set. What attributes cost needs features.
    assert len(page.find("svg", role="img")) == 2 + 2 + 2 + 6 + 2 + 4
    assert len(page.find("details", **{"class": "task"})) == 6
    for digest in [*(result.digest for result in results), *(task.digest for task in tasks), catalog.digest]:
        assert digest in page.text
    costs, why, thumbnails = page.find("p", **{"class": "missing"})
    assert "cost of planted attributes" in costs
    assert "tasks built from attributes or contexts" in costs
    assert "needs the attributes of the items" in why
    assert "need JavaScript" in thumbnails


def test_labels_of_any_kind_stay_text(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(
        tmp_path, labels=(SCRIPT, IMAGE, BREAK_OUT), attributes=(SCRIPT, IMAGE, BREAK_OUT), encoder=BREAK_OUT
    )
    (tmp_path / "0-0.png").unlink()
    methods = {IMAGE: 0.5, SCRIPT: 0.4}
    results = [make_results(task, BREAK_OUT, methods, seed) for seed, task in enumerate(tasks)]
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog, title=SCRIPT)
    page = Page(tmp_path / "r.html")
    scripts = [given for tag, given, _ in page.elements if tag == "script"]
    assert [script.get("id") for script in scripts] == [
        "comparison",
        "gallery-images",
        "gallery-sounds",
        "gallery-marks",
        None,
    ]
    assert not any(name.startswith("on") for _, given, _ in page.elements for name in given)
    assert all("data-image" in given and "src" not in given for tag, given, _ in page.elements if tag == "img")
    assert page.find("h1") == [SCRIPT]
    embedded = json.loads(page.find("script", id="comparison")[0])
    assert {row["method"] for row in embedded["estimates"]} == set(methods)
    assert {row["encoder"] for row in embedded["estimates"]} == {BREAK_OUT}
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


def test_without_tasks_or_catalog_the_page_says_that_it_needs_them(tmp_path: Path) -> None:
    results, tasks, _ = make_experiment(tmp_path)
    write_report(tmp_path / "none.html", results)
    write_report(tmp_path / "tasks.html", results, tasks=tasks)
    none, some = ((tmp_path / name).read_text() for name in ("none.html", "tasks.html"))
    assert "Thumbnails need the task files and the catalog" in none
    assert "A plan needs the catalog" in none
    assert "Thumbnails need the task files" not in some
    assert "Thumbnails need the catalog" in some


def test_results_of_somebody_s_own_script_make_a_page(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    bare = Results(results.table.drop_columns("missed"))
    comparison = write_report(tmp_path / "r.html", [bare])
    assert comparison.rows()[0].reference is None
    assert "tasks of an unknown sampler" in (tmp_path / "r.html").read_text()


def test_results_without_missed_show_counts_only(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    counts = [Results(result.table.drop_columns("missed"), result.record) for result in results]
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
    assert "cost of planted attributes" in page.text


def test_tasks_of_other_results_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = make_results(make_tasks(catalog), "pixels", {"ncc": 0.5})
    with pytest.raises(Mismatch, match="no results are on"):
        write_report(tmp_path / "r.html", [results], tasks=[make_tasks(catalog, seed=3)])
    assert not (tmp_path / "r.html").exists()


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="cannot write"):
        write_report(tmp_path / "file" / "r.html", [results])


def test_the_same_files_give_the_same_page_whatever_the_hash_seed(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    for number, result in enumerate(results):
        result.write(tmp_path / f"results{number}.parquet")
    for number, task_set in enumerate(tasks):
        task_set.write(tmp_path / f"tasks{number}.parquet")
    Catalog(catalog.table, catalog.root).write(tmp_path / "catalog.parquet")
    program = (
        "import sys; from pathlib import Path; from shotproof.pipeline.study import Study\n"
        "from shotproof.catalog.catalog import Catalog; from shotproof.results.results import Results\n"
        "from shotproof.tasks.taskset import TaskSet; folder = Path(sys.argv[1])\n"
        "results = [Results.read(folder / f'results{i}.parquet') for i in range(8)]\n"
        "tasks = [TaskSet.read(folder / f'tasks{i}.parquet') for i in range(4)]\n"
        "Study.of([*results, *tasks, Catalog.read(folder / 'catalog.parquet')]).report(sys.argv[2])\n"
    )
    run_with_another_hash_seed(program, tmp_path, tmp_path / "there.html")
    write_report(tmp_path / "here.html", results, tasks=tasks, catalog=catalog)
    assert (tmp_path / "there.html").read_bytes() == (tmp_path / "here.html").read_bytes()


def test_intervals_that_re_evaluate_are_drawn_with_their_names(tmp_path: Path) -> None:
    catalog, features = WORLD.catalog(), leaning_features(0.5)
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=40)
    results = evaluate(tasks, features, ["ncc", "knn"])
    intervals = ("sampler", "depletion")
    write_report(tmp_path / "r.html", [results], catalog=catalog, features=[features], intervals=intervals)
    page = Page(tmp_path / "r.html")
    inputs = Inputs([results], catalogs=[catalog], features=[features])
    comparison = compare(inputs, intervals=intervals)
    assert json.loads(page.find("script", id="comparison")[0]) == json.loads(json.dumps(comparison.to_json()))
    for name in intervals:
        assert len([words for words in page.find("text") if words == name]) == 2 * 2  # methods, metrics
        assert meanings("image")[name] in page.find("span", id=f"tip-intervals-{name}")
    with pytest.raises(InputError, match="the interval 'images' re-evaluates the methods"):
        write_report(tmp_path / "none.html", [results], intervals=["images"])
    assert not (tmp_path / "none.html").exists()


def test_several_data_sets_stand_in_one_page_each_with_its_own_images(tmp_path: Path) -> None:
    results, tasks, catalogs = [], [], []
    for name in ("birds", "pets"):
        (tmp_path / name).mkdir()
        made, sets, catalog = make_experiment(tmp_path / name, labels=[f"{name} {n}" for n in range(4)], name=name)
        results, tasks, catalogs = [*results, *made], [*tasks, *sets], [*catalogs, catalog]
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalogs)
    page = Page(tmp_path / "r.html")
    for name in ("birds", "pets"):
        for shot in (1, 2):
            assert f"fewstab, {name}, 3-way {shot}-shot" in page.text
        assert any(f"{name} " in text for text in page.find("strong"))
    assert not [note for note in page.find("li") if "were drawn from the catalog" in note]


def test_tasks_of_a_catalog_that_is_not_there_are_not_shown(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    others = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        others.append(make_catalog(tmp_path / name, (name, "b", "c")))
    write_report(tmp_path / "r.html", results, tasks=tasks, catalog=others)
    page = Page(tmp_path / "r.html")
    assert page.find("details", **{"class": "task"}) == []
    assert any("not shown" in note and catalog.digest in note for note in page.find("li"))


def test_replicates_are_shown_with_their_spread(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks = [make_tasks(catalog, sampler, seed=seed) for seed in (0, 1) for sampler in ("random", "fewstab")]
    results = [make_results(task, "pixels", {"ncc": 0.6}) for task in tasks]
    comparison = write_report(tmp_path / "r.html", results, tasks=tasks, catalog=catalog)
    page = Page(tmp_path / "r.html")
    row = comparison.groups[0].rows[0]
    spread = row.spread("acc")
    assert spread is not None
    assert f"{row.means['acc']:.1f} " in page.find("td", **{"data-value": str(row.means["acc"])})
    assert f"±{spread:.1f}" in page.find("span", **{"class": "half"})
    shown = page.find("details", **{"class": "task"})
    asides = page.find("span", **{"class": "aside"})[: len(shown)]
    assert len(asides) == 6
    assert all(text.startswith("fewstab, 3-way 1-shot, seed 0; ") for text in asides)


def test_detectors_stand_side_by_side(tmp_path: Path) -> None:
    world = ShapesWorld(classes=6, items=40)
    catalog, features = world.catalog(), encode(world.catalog(), DialEncoder(0.7, noise=2.0))
    known = world.attributes()
    half = {item: sorted(words)[::2] for item, words in known.to_words().items() if words is not None}
    detectors = [
        Attributes(known.table, replace(known.record, name="all words")),
        Attributes.from_words(half, AttributesRecord(name="half of them")),
    ]
    sets = [sample(catalog, "random", shot=2, query=5, tasks=20)] + [
        sample(catalog, "fewstab", attributes=words, shot=2, query=5, tasks=20) for words in detectors
    ]
    results = [evaluate(tasks, features, ["ncc", "ridge", "knn", "cosine"]) for tasks in sets]
    comparison = write_report(tmp_path / "r.html", results, tasks=sets, attributes=detectors)
    page = Page(tmp_path / "r.html")
    for name in ("all words", "half of them"):
        assert f"wAcc-A [{name}]" in page.find("button", **{"class": "sort"})
        assert any(heading.startswith(f"fewstab [{name}]") for heading in page.find("h3"))  # and each is explained
    (agreement,) = comparison.blocks[0].detectors
    assert agreement.accuracy is not None
    caption = page.text[page.text.index("The same sampler with the attributes of several detectors") :]
    assert f"(1: the same order): {agreement.correlation:.2f}." in caption
    few = write_report(
        tmp_path / "few.html", [part for result in results for part in result.by_method()[:2]], tasks=sets
    )
    assert few.agreements
    assert "rank correlation" not in Page(tmp_path / "few.html").text
    first, second = agreement.detectors
    assert f"{second}, {first} finds {agreement.accuracy[0]:.1f}%;" in caption


def test_what_is_read_from_files_makes_the_same_page(tmp_path: Path) -> None:
    results, tasks, catalog = make_experiment(tmp_path)
    parts = {f"{type(part).__name__}{number}.parquet": part for number, part in enumerate([*results, *tasks, catalog])}
    for name, part in parts.items():
        part.write(tmp_path / name)
    Study.of(parts.values()).report(tmp_path / "parts.html")
    Study.of([tmp_path / name for name in parts]).report(tmp_path / "files.html")
    assert (tmp_path / "files.html").read_bytes() == (tmp_path / "parts.html").read_bytes()


def test_a_name_that_promises_something_else_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    results = make_experiment(tmp_path)[0]
    with pytest.raises(InputError, match=r"r\.pdf: a report is a page.*\.html; for figures .* figures=FOLDER"):
        Study.of([]).report(tmp_path / "r.pdf")
    Study.of(results).report(tmp_path / "r.HTM")
    assert (tmp_path / "r.HTM").exists()


def test_an_explanation_is_a_page_of_its_own(tmp_path: Path) -> None:
    catalog, words = pictured(tmp_path), WORLD.attributes()
    biased = sample(catalog, "fewstab", attributes=words, shot=1, query=5, tasks=20)
    explanation = explain(biased, words)
    for name, given in (("with", [catalog]), ("without", [])):
        write_explanations(tmp_path / f"{name}.html", [(explanation, words)], given)
    with_images, without = (Page(tmp_path / f"{name}.html") for name in ("with", "without"))
    assert with_images.find("h1") == without.find("h1") == ["Why are these fewstab tasks hard?"]
    assert with_images.find("img")
    assert not without.find("img")
    with pytest.raises(InputError, match=r"expected .*\.html$"):
        write_explanations(tmp_path / "x.svg", [(explanation, words)])
