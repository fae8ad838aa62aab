"""The task sets of a run: placebos, variants of one sampler, matched sets, tasks like others."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.analysis.compare import compare
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.pipeline.read import read_inputs
from shotproof.pipeline.study import run
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_layers import draw_masked
from tests.experiment_files import up_to_results
from tests.pipeline.shapes_experiment import ENCODER, EXPERIMENT, FILES

PLACEBOS = [name for name in FILES if "placebo-of-" in name]


def test_placebos_are_made_unless_they_are_not_wanted(experiment: Path) -> None:
    assert {name for name in run(experiment, dry_run=True).made if "placebo" in name} == set(PLACEBOS)
    experiment.write_text(EXPERIMENT.replace("tasks = 12", "tasks = 12\nplacebo = false"))
    without = run(experiment)
    assert sorted(up_to_results(without.made)) == sorted(set(FILES) - set(PLACEBOS))
    assert [block.placebos for block in without.compare().blocks] == [{}, {}]
    assert not any(loss.excess for block in without.compare().blocks for loss in block.losses)
    experiment.write_text(EXPERIMENT)
    again = run(experiment)
    assert sorted(up_to_results(again.made)) == PLACEBOS
    assert all(loss.excess for block in again.compare().blocks for loss in block.losses)
    placebo = TaskSet.read(experiment.parent / "out" / "tasks-placebo-of-fewstab-3way-1shot.parquet")
    like = TaskSet.read(experiment.parent / "out" / "tasks-fewstab-3way-1shot.parquet")
    assert (placebo.record.source("like"), placebo.match) == (like.digest, like.match)


def test_variants_of_one_sampler_have_their_own_files(experiment: Path) -> None:
    samplers = """samplers = ["random", "hardest(effort='high')", "hardest(effort='low')"]"""
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    outcome = run(experiment)
    labels = [group.label for group in outcome.compare().blocks[0].groups]
    assert labels == ["random", "hardest(effort='high')", "hardest(effort='low')"]
    digests = {group.digests[0] for group in outcome.compare().groups}
    assert len(digests) == 6
    assert run(experiment).made == []


def test_task_sets_that_differ_in_the_number_of_tasks_have_their_own_files(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "random", tasks = 5 }]'
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    made = [name for name in run(experiment, dry_run=True).made if name.startswith("tasks-")]
    assert len(made) == len(set(made)) == 4


def test_context_in_an_experiment_is_its_matched_sets(experiment: Path, tmp_path: Path) -> None:
    from shotproof.worlds.context_world import ContextWorld

    world = ContextWorld(concepts=4, contexts=4, figures=8, size=16)
    world.write(tmp_path / "contexts").write(tmp_path / "contexts.parquet")
    experiment.write_text(
        '[catalog]\nfile = "contexts.parquet"\n[features]\nencoders = ["pixels(size=2)"]\n'
        '[tasks]\nway = 3\nshots = [2]\nquery = 3\ntasks = 10\nsamplers = ["context"]\n'
        '[evaluate]\nmethods = ["ncc"]\n[runtime]\ncache = "cache"\n[output]\nfolder = "out"\nintervals = ["sampler"]\n'
    )
    outcome = run(experiment)
    (block,) = outcome.compare().blocks
    assert [group.label for group in block.measured] == ["iid", "ood", "hard-ood"]
    assert block.placebos == {group.label: f"placebo of {group.label}" for group in block.measured}
    assert all(gap.paired and gap.label == "iid" for gap in block.gaps)
    assert all(loss.excess and loss.excess.paired for loss in block.losses)


def test_hard_tasks_of_an_encoder_like_the_random_ones_on_transformed_features(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "hardest", like = "random" }]'
    text = EXPERIMENT.replace("[tasks]", 'transforms = ["l2"]\n[tasks]')
    text = text.replace("tasks = 12", f"tasks = 12\n{samplers}")
    experiment.write_text(text)
    outcome = run(experiment)
    assert outcome.compare().encoders == ["pixels(size=4) > l2"]
    assert {row.reference for row in outcome.compare().rows("gap")} == {"random"}
    assert all(row.axis == "difficulty" and row.interval.low > 0 for row in outcome.compare().rows("gap"))
    assert run(experiment).made == []
    # The folder has the features as they were encoded; intervals that re-evaluate transform them again.
    folder = read_inputs([experiment.parent / "out"], halvings=4)
    again = compare(folder, intervals=["sampler", "images"])
    assert again.refused == {}


def test_like_needs_the_same_shots(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "hardest", like = "random", shots = [3] }]'
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    with pytest.raises(InputError, match="sampler 'hardest', like: 'random' has no tasks with 3 shots and seed 0"):
        run(experiment)


def test_samplers_whose_tasks_the_data_cannot_give_are_left_out_where_that_is_asked_for(experiment: Path) -> None:
    ShapesWorld(classes=5, items=10, size=16).catalog(experiment.parent / "world").write(
        experiment.parent / "c.parquet"
    )
    samplers = """samplers = ["random", "fewstab", "iid(context_column='fill')"]"""
    text = EXPERIMENT.replace('root = "world"', 'file = "c.parquet"').replace("tasks = 12", f"tasks = 4\n{samplers}")
    experiment.write_text(text.replace("way = 3", "way = 5").replace("[1, 2]", "[5]").replace("query = 4", "query = 5"))
    with pytest.raises(InsufficientData):
        run(experiment)
    found = run(experiment, leave_out=True)
    assert set(found.left_out) == {"fewstab", "iid(context_column='fill')"}
    assert "[tasks]" not in found.left_out["iid(context_column='fill')"]  # the reason, without its place in the file
    assert [group.label for group in found.compare().groups] == ["random"]
    current = json.loads((experiment.parent / "out" / "run.json").read_text())["current"]
    assert not [name for name in current if "fewstab" in name]


def test_task_sets_that_are_there_are_taken_in_place_of_samplers(finished: Path) -> None:
    before = finished.parent / "out"
    catalog = 'file = "out/catalog.parquet"\nroot = "moved"'
    tasks = "tasks-random-3way-1shot.parquet"
    text = EXPERIMENT.replace('root = "world"', catalog).replace("[tasks]", f'[tasks]\nfiles = ["out/{tasks}"]')
    finished.write_text(text.replace('folder = "out"', 'folder = "again"'))
    table = Catalog.read(before / "catalog.parquet")
    (finished.parent / "world").rename(finished.parent / "moved")
    # Its paths start from `moved`: what they had above `world` is no longer there.
    paths = pa.array([path.removeprefix("../world/") for path in table.table.column("path").to_pylist()])
    moved = table.table.set_column(table.table.column_names.index("path"), "path", paths)
    Catalog(moved, before, table.record).write(before / "catalog.parquet")
    found = run(finished)
    assert [name for name in up_to_results(found.made) if name.startswith("tasks")] == [tasks]
    folder = finished.parent / "again"
    assert TaskSet.read(folder / tasks).digest == TaskSet.read(before / tasks).digest
    results = f"results/random-3way-1shot/{ENCODER}/ncc.parquet"
    assert Results.read(folder / results).digest == Results.read(before / results).digest


def test_task_sets_of_another_catalog_are_refused(finished: Path) -> None:
    ShapesWorld(classes=6, items=10, size=16).write(finished.parent / "other")
    text = EXPERIMENT.replace('root = "world"', 'root = "other"').replace('folder = "out"', 'folder = "again"')
    tasks = '[tasks]\nfiles = ["out/tasks-random-3way-1shot.parquet"]'
    finished.write_text(text.replace("[tasks]", tasks))
    with pytest.raises(Mismatch, match=r"\[tasks\], files: the tasks of .* were drawn from catalog"):
        run(finished)
    assert not (finished.parent / "again").exists()


def test_chosen_supports_of_several_sets(experiment: Path) -> None:
    entries = ", ".join(
        [
            '"random"',
            '"fewstab"',
            '{ name = "chosen", like = "random" }',
            '{ name = "chosen", choose = "spread", like = "fewstab" }',
            '{ name = "chosen", choose = "easy", like = "fewstab" }',
            '{ name = "changed", change = "noise" }',
            '{ name = "chosen", choose = "typical", like = "changed" }',
        ]
    )
    text = EXPERIMENT.replace("tasks = 12", f"tasks = 12\nplacebo = false\nsamplers = [{entries}]")
    experiment.write_text(text)
    outcome = run(experiment)
    labels = [group.label for group in outcome.compare().blocks[0].groups]
    assert len(set(labels)) == 7
    assert {"chosen(choose='random')", "chosen(choose='spread')", "chosen(choose='easy')"} & set(labels)
    assert run(experiment).made == []
    again = compare(read_inputs([experiment.parent / "out"], halvings=4), intervals=["sampler", "images"])
    assert again.refused == {}
    experiment.write_text(text.replace(', like = "random"', ""))
    with pytest.raises(InputError, match="sampler 'chosen', like: name the earlier sampler"):
        run(experiment)


def test_copies_beside_changed_tasks(experiment: Path) -> None:
    folder = experiment.parent
    draw_masked(folder / "discs", items=14).write(folder / "discs.parquet")
    entries = ", ".join(
        [
            '"random"',
            '{ name = "changed", change = "mixed-same" }',
            '{ name = "changed", change = "mixed-random" }',
            '{ name = "copied", like = "random" }',
            """{ name = "copied", changes = "noise", like = "changed(change='mixed-random')" }""",
            """{ name = "copied", changes = ["blur", "noise"], like = "changed(change='mixed-random')" }""",
        ]
    )
    experiment.write_text(
        '[catalog]\nfile = "discs.parquet"\n[features]\nencoders = ["pixels(size=2)"]\n'
        f"[tasks]\nway = 3\nshots = [1]\nquery = 3\ntasks = 10\nsamplers = [{entries}]\n"
        '[evaluate]\nmethods = ["ncc"]\n[runtime]\ncache = "cache"\n[output]\nfolder = "out"\nintervals = ["sampler"]\n'
    )
    outcome = run(experiment)
    (block,) = outcome.compare().blocks
    assert len({group.label for group in block.groups}) == 6
    assert {"copied(changes=('mixed-random',))", "copied"} & {group.label for group in block.groups}
    assert run(experiment).made == []
    again = compare(read_inputs([folder / "out"], halvings=4), intervals=["sampler", "images"])
    assert again.refused == {}
    page = folder / "page.html"
    outcome.report(page)
    assert "copied" in page.read_text()
