from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from shotproof.analysis.compare import compare
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError, UnknownName
from shotproof.features.features import Features
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.material import read, read_material
from shotproof.pipeline.run import run
from shotproof.pipeline.steps.steps import MANIFEST, file_name
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.shapes import ShapesWorld
from tests.chat_servers import chat_server
from tests.features.encoders.test_hf import saved

EXPERIMENT = """
[catalog]
root = "world"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=4)"]
[tasks]
way = 3
shots = [1, 2]
query = 4
tasks = 12
[evaluate]
methods = ["ncc", "knn"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""
ENCODER = file_name("pixels(size=4)")
TASKS = [f"{sampler}-3way-{shot}shot" for sampler in ("random", "fewstab", "placebo-of-fewstab") for shot in (1, 2)]
FILES = sorted(
    [
        "catalog.parquet",
        "attributes.parquet",
        f"features-{ENCODER}.parquet",
        *(f"tasks-{name}.parquet" for name in TASKS),
        *(f"results/{name}/{ENCODER}/{method}.parquet" for name in TASKS for method in ("ncc", "knn")),
    ]
)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    ShapesWorld(classes=5, items=10, size=16).write(tmp_path / "world")
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_whole_path_and_then_nothing_to_do(experiment: Path) -> None:
    first = run(experiment)
    out = experiment.parent / "out"
    assert sorted(first.made) == FILES
    assert first.reused == []
    assert first.comparison is not None
    assert first.comparison.methods == ["ncc", "knn"]
    written = bytes_of(out)
    assert sorted(written) == sorted([*FILES, MANIFEST, "report.html"])
    second = run(experiment)
    assert second.made == []
    assert sorted(second.reused) == FILES
    assert bytes_of(out) == written
    assert second.comparison is not None
    assert second.comparison.to_json() == first.comparison.to_json()


PLACEBOS = [name for name in FILES if "placebo-of-" in name]


def test_placebos_are_made_unless_they_are_not_wanted(experiment: Path) -> None:
    assert {name for name in run(experiment, dry_run=True).made if "placebo" in name} == set(PLACEBOS)
    experiment.write_text(EXPERIMENT.replace("tasks = 12", "tasks = 12\nplacebo = false"))
    without = run(experiment)
    assert sorted(without.made) == sorted(set(FILES) - set(PLACEBOS))
    assert without.comparison is not None
    assert [block.placebos for block in without.comparison.blocks] == [[], []]
    assert not any(loss.excess for block in without.comparison.blocks for loss in block.losses)
    experiment.write_text(EXPERIMENT)
    again = run(experiment)
    assert sorted(again.made) == PLACEBOS
    assert again.comparison is not None
    assert all(loss.excess for block in again.comparison.blocks for loss in block.losses)
    placebo = TaskSet.read(experiment.parent / "out" / "tasks-placebo-of-fewstab-3way-1shot.parquet")
    like = TaskSet.read(experiment.parent / "out" / "tasks-fewstab-3way-1shot.parquet")
    assert (placebo.record.source("like"), placebo.match) == (like.digest, like.match)


def test_images_come_first_where_nothing_is_asked_for_and_a_set_too_small_says_so(experiment: Path) -> None:
    """Ten items per class are enough for halves with 1 shot and 4 queries, and too few with 2 shots."""
    experiment.write_text(EXPERIMENT.replace('intervals = ["sampler"]', "").replace('["ncc", "knn"]', '["ncc"]'))
    outcome = run(experiment)
    assert outcome.comparison is not None
    assert outcome.comparison.covers == ("images", "sampler")
    one, two = outcome.comparison.blocks
    assert {row.first("acc").covers for group in one.groups for row in group.rows} == {"images"}
    assert {row.first("acc").covers for group in two.groups for row in group.rows} == {"sampler"}
    refused = two.groups[0].rows[0].intervals["acc"]["images"].refused
    assert refused is not None
    assert "halves of the images need 12 of each class" in refused
    assert outcome.comparison.refused == {}


def test_the_metric_and_the_intervals_of_the_file_are_those_of_the_comparison(experiment: Path) -> None:
    asked = 'intervals = ["depletion", "sampler"]\nmetric = "wacc"'
    experiment.write_text(EXPERIMENT.replace('intervals = ["sampler"]', asked))
    comparison = run(experiment).comparison
    assert comparison is not None
    assert (comparison.covers, comparison.metric) == (("depletion", "sampler"), "wacc")
    assert list(comparison.to_json()["covers"]) == ["depletion", "sampler"]


def test_a_method_that_is_added_is_the_only_one_to_be_evaluated(experiment: Path) -> None:
    run(experiment)
    experiment.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["ncc", "ridge(penalty=2)", "knn"]'))
    again = run(experiment)
    assert sorted(again.made) == sorted(
        f"results/{name}/{ENCODER}/{file_name('ridge(penalty=2)')}.parquet" for name in TASKS
    )
    assert again.comparison is not None
    assert again.comparison.methods == ["ncc", "ridge(penalty=2)", "knn"]


def test_a_method_that_is_removed_removes_nothing_else(experiment: Path) -> None:
    run(experiment)
    out = experiment.parent / "out"
    experiment.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["knn"]'))
    again = run(experiment)
    assert again.made == []
    assert again.comparison is not None
    assert again.comparison.methods == ["knn"]
    assert (out / f"results/{TASKS[0]}/{ENCODER}/ncc.parquet").is_file()
    # What is read from the folder is what the last run consists of.
    assert {method for one in read_material([out]).results for method in one.methods} == {"knn"}


def test_a_method_of_ones_own_is_evaluated_again_when_its_file_has_changed(experiment: Path) -> None:
    head = experiment.parent / "heads.py"
    head.write_text("def head(support, labels, query):\n    return (query @ support.T)[:, :3]\n")
    experiment.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["ncc", "heads.py:head"]'))
    run(experiment)
    assert run(experiment).made == []
    head.write_text(head.read_text().replace("return (", "return -("))
    assert {Path(name).stem for name in run(experiment).made} == {file_name("heads.py:head")}


def test_only_what_depends_on_a_change_is_made_again(experiment: Path) -> None:
    run(experiment)
    experiment.write_text(EXPERIMENT.replace("shots = [1, 2]", "shots = [1, 3]"))
    again = run(experiment)
    assert all("3shot" in name for name in again.made)
    assert len(again.made) == 3 + 6  # random tasks, FewSTAB's and their placebo; two methods on each


def test_variants_of_one_sampler_have_their_own_files(experiment: Path) -> None:
    samplers = """samplers = ["random", "hardest(effort='high')", "hardest(effort='low')"]"""
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    outcome = run(experiment)
    assert outcome.comparison is not None
    labels = [group.label for group in outcome.comparison.blocks[0].groups]
    assert labels == ["random", "hardest(effort='high')", "hardest(effort='low')"]
    digests = {group.digests[0] for group in outcome.comparison.groups}
    assert len(digests) == 6
    assert run(experiment).made == []


def test_detectors_seeds_and_encoders_stand_in_one_comparison(experiment: Path) -> None:
    text = EXPERIMENT.replace(
        '[attributes]\ndetectors = ["photometric"]',
        '[attributes.sets]\nlight = ["photometric"]\nboth = ["photometric", "table(file=\'words.csv\')"]',
    )
    items = read_layout(experiment.parent / "world").items
    words = "".join(f"{item},{'striped' if place % 3 else ''}\n" for place, item in enumerate(items))
    (experiment.parent / "words.csv").write_text(f"item,attributes\n{words}")
    text = text.replace('["pixels(size=4)"]', '["pixels(size=4)", "pixels(size=2)"]')
    text = text.replace("shots = [1, 2]", "shots = [1]\nseeds = [0, 5]")
    experiment.write_text(text)
    outcome = run(experiment)
    assert outcome.comparison is not None
    (block,) = outcome.comparison.blocks
    assert [group.label for group in block.measured] == ["random", "fewstab [light]", "fewstab [both]"]
    assert block.placebos == ["placebo of fewstab [light]", "placebo of fewstab [both]"]
    assert all(loss.excess for loss in block.losses)
    assert all(group.seeds == [0, 5] and group.tasks == 24 for group in block.groups)
    assert outcome.comparison.encoders == ["pixels(size=4)", "pixels(size=2)"]
    (agreement,) = block.detectors
    assert agreement.detectors == ("light", "both")
    assert agreement.accuracy is not None
    light, both = agreement.accuracy
    assert both == 100.0  # it finds all words that the other has
    assert 0 < light < 100


def test_attributes_that_were_made_before_lie_in_the_folder_too(experiment: Path) -> None:
    run(experiment)
    made = experiment.parent / "out" / "attributes.parquet"
    made.rename(experiment.parent / "mine.parquet")
    experiment.write_text(EXPERIMENT.replace('detectors = ["photometric"]', 'file = "mine.parquet"'))
    run(experiment)
    (attributes,) = read_material([experiment.parent / "out"]).attributes
    assert attributes.digest == Attributes.read(experiment.parent / "mine.parquet").digest


def test_task_sets_that_differ_in_the_number_of_tasks_have_their_own_files(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "random", tasks = 5 }]'
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    made = [name for name in run(experiment, dry_run=True).made if name.startswith("tasks-")]
    assert len(made) == len(set(made)) == 4


def test_context_in_an_experiment_is_its_matched_sets(experiment: Path, tmp_path: Path) -> None:
    from shotproof.worlds.contexts import ContextWorld

    world = ContextWorld(concepts=4, contexts=4, figures=8, size=16)
    world.write(tmp_path / "contexts").write(tmp_path / "contexts.parquet")
    experiment.write_text(
        '[catalog]\nfile = "contexts.parquet"\n[features]\nencoders = ["pixels(size=2)"]\n'
        '[tasks]\nway = 3\nshots = [2]\nquery = 3\ntasks = 10\nsamplers = ["context"]\n'
        '[evaluate]\nmethods = ["ncc"]\n[runtime]\ncache = "cache"\n[output]\nfolder = "out"\nintervals = ["sampler"]\n'
    )
    outcome = run(experiment)
    assert outcome.comparison is not None
    (block,) = outcome.comparison.blocks
    assert [group.label for group in block.measured] == ["iid", "ood", "hard-ood"]
    assert block.placebos == [f"placebo of {group.label}" for group in block.measured]
    assert all(gap.paired and gap.label == "iid" for gap in block.gaps)
    assert all(loss.excess and loss.excess.paired for loss in block.losses)


def test_a_changed_image_is_seen(experiment: Path) -> None:
    run(experiment)
    features = experiment.parent / "out" / f"features-{ENCODER}.parquet"
    before = Features.read(features).array
    image = sorted((experiment.parent / "world").rglob("*.png"))[0]
    Image.new("RGB", (16, 16), "red").save(image)
    again = run(experiment)
    assert features.name in again.made
    changed = (Features.read(features).array != before).any(axis=1)
    assert changed.sum() == 1


def test_an_unreadable_image_ends_a_run_or_is_left_out_when_asked(
    experiment: Path, caplog: pytest.LogCaptureFixture
) -> None:
    image = sorted((experiment.parent / "world").rglob("*.png"))[0]
    image.write_bytes(b"no image")
    with pytest.raises(InputError, match=image.name):
        run(experiment)
    experiment.write_text(EXPERIMENT.replace('["pixels(size=4)"]', '["pixels(size=4)"]\non_error = "skip"'))
    lines: list[str] = []
    with caplog.at_level("WARNING"):
        run(experiment, tell=lines.append)
    assert image.stem in caplog.text
    assert any(line.startswith("left out     1 unreadable") for line in lines)
    material = read(experiment.parent / "out")
    skipped = material.features[0].record.skipped  # type: ignore[union-attr]
    assert len(skipped) == 1
    tasks = material.tasks[0].table  # type: ignore[union-attr]
    used = {item for side in ("support", "query") for row in tasks.column(side).to_pylist() for item in row}
    assert skipped[0] not in used


def test_a_deleted_or_altered_output_is_made_again(experiment: Path) -> None:
    run(experiment)
    out = experiment.parent / "out"
    whole = bytes_of(out)
    (out / "tasks-random-3way-1shot.parquet").unlink()
    (out / "attributes.parquet").write_bytes(b"not what was written")
    again = run(experiment)
    assert sorted(again.made) == ["attributes.parquet", "tasks-random-3way-1shot.parquet"]
    after = bytes_of(out)
    assert {name: after[name] for name in FILES} == {name: whole[name] for name in FILES}


def test_an_interrupted_run_goes_on_where_it_stopped(experiment: Path) -> None:
    class Interrupt(Exception):
        pass

    def stop(line: str) -> None:
        if "tasks-random-3way-2shot" in line:
            raise Interrupt

    with pytest.raises(Interrupt):
        run(experiment, tell=stop)
    rest = run(experiment)
    assert "catalog.parquet" in rest.reused
    assert "tasks-random-3way-1shot.parquet" in rest.reused
    assert "tasks-random-3way-2shot.parquet" in rest.made


def test_a_dry_run_tells_and_writes_nothing(experiment: Path) -> None:
    lines: list[str] = []
    outcome = run(experiment, dry_run=True, tell=lines.append)
    assert outcome.comparison is None
    assert not (experiment.parent / "out").exists()
    assert lines[:2] == ["would make   catalog.parquet", "would make   attributes.parquet"]
    run(experiment)
    assert sorted(run(experiment, dry_run=True).reused) == FILES


def test_the_manifest_says_what_was_made_when(experiment: Path) -> None:
    run(experiment)
    manifest = json.loads((experiment.parent / "out" / MANIFEST).read_text())
    assert sorted(manifest["current"]) == FILES
    assert all(entry["made"].startswith("20") for entry in manifest["files"].values())


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("knn", "knnn", UnknownName, "unknown method 'knnn'"),
        ("pixels(size=4)", "pixel", UnknownName, "unknown encoder 'pixel'"),
        ("photometric", "photometry", UnknownName, "unknown detector"),
        ("detectors = ", "# detectors = ", InputError, r"add a section \[attributes\]"),
        (
            '["sampler"]',
            '["image"]',
            InputError,
            r"\[output\], intervals: unknown interval 'image': did you mean 'images'",
        ),
        ('["sampler"]', "[]", InputError, r"\[output\]: intervals must be a list of .*, at least one"),
        ("tasks = 12", "tasks = 12\nplacebo = 1", InputError, r"\[tasks\]: placebo must be"),
        ('["sampler"]', '["sampler"]\nmetric = "wac"', InputError, "metric must be acc or wacc, not 'wac'"),
        ('root = "world"', 'root = "wrld"', InputError, "wrld does not exist"),
    ],
)
def test_bad_names_are_told_before_anything_is_made(
    experiment: Path, old: str, new: str, error: type[Exception], message: str
) -> None:
    experiment.write_text(EXPERIMENT.replace(old, new))
    with pytest.raises(error, match=message):
        run(experiment)
    assert not (experiment.parent / "out").exists() or "attributes" in message


def test_hard_tasks_of_an_encoder_like_the_random_ones_on_transformed_features(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "hardest", like = "random" }]'
    text = EXPERIMENT.replace("[tasks]", 'transforms = ["l2"]\n[tasks]')
    text = text.replace("tasks = 12", f"tasks = 12\n{samplers}")
    experiment.write_text(text)
    outcome = run(experiment)
    assert outcome.comparison is not None
    assert outcome.comparison.encoders == ["pixels(size=4) > l2"]
    assert outcome.comparison.references == ["random"]
    assert all(row.axis == "difficulty" and row.gap["acc"].low > 0 for row in outcome.comparison.rows)
    assert run(experiment).made == []
    # The folder has the features as they were encoded; intervals that re-evaluate transform them again.
    folder = read_material([experiment.parent / "out"], halvings=4)
    again = compare(folder, intervals=["sampler", "images"])
    assert again.refused == {}


def test_like_needs_the_same_shots(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "hardest", like = "random", shots = [3] }]'
    experiment.write_text(EXPERIMENT.replace("tasks = 12", f"tasks = 12\n{samplers}"))
    with pytest.raises(InputError, match="sampler 'hardest', like: 'random' has no tasks of 3 shots and seed 0"):
        run(experiment)


def test_methods_on_items_are_evaluated_once_beside_those_on_features(experiment: Path) -> None:
    with chat_server() as server:
        method = f"chat(model='tiny', url='{server.url}', max_requests=200)"
        experiment.write_text(EXPERIMENT.replace('"knn"', f'"{method}"').replace("tasks = 12", "tasks = 3"))
        first = run(experiment)
        asked = len(server.bodies)
        second = run(experiment)
    assert asked == len(TASKS) * 3 * 3 * 4
    assert len(server.bodies) == asked
    assert not second.made
    name = file_name("chat(model='tiny')")
    assert {f"results/{tasks}/items/{name}.parquet" for tasks in TASKS} <= set(first.made)
    assert first.comparison is not None
    shown = set(first.comparison.to_pandas("methods")["method"])
    assert shown == {"pixels(size=4): ncc", "items: chat(model='tiny')"}
    assert "chat(model=" in first.report.read_text()


def test_the_log_of_a_method_on_items_lies_beside_the_experiment(
    experiment: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    with chat_server() as server:
        method = f"chat(model='tiny', url='{server.url}', log='logs/answers.jsonl')"
        text = EXPERIMENT.replace('"ncc", "knn"', f'"{method}"').replace(
            "tasks = 12", 'tasks = 2\nsamplers = ["random"]'
        )
        experiment.write_text(text)
        run(experiment)
    kept = (experiment.parent / "logs" / "answers.jsonl").read_text().splitlines()
    assert len(kept) == len(server.bodies) > 0
    assert not list(elsewhere.iterdir())
    chosen = Experiment.read(experiment).methods[0]
    assert chosen.spelling == "chat(model='tiny')"
    experiment.write_text(text.replace("logs/answers.jsonl", str(elsewhere / "other.jsonl")))
    assert vars(Experiment.read(experiment).methods[0])["log"] == elsewhere / "other.jsonl"


def test_without_methods_on_features_nothing_is_encoded(experiment: Path) -> None:
    text = EXPERIMENT.replace(
        'methods = ["ncc", "knn"]', """methods = ["chat(model='tiny', url='http://localhost')"]"""
    )
    experiment.write_text(text.replace("[features]\n", "").replace('encoders = ["pixels(size=4)"]\n', ""))
    assert not any(name.startswith("features") for name in run(experiment, dry_run=True).made)


@pytest.mark.usefixtures("quiet_transformers")
def test_stages_are_encoders_of_their_own_and_are_on_the_page(experiment: Path) -> None:
    saved("convnext", experiment.parent / "net")
    model = f"hf:{experiment.parent / 'net'}"
    text = EXPERIMENT.replace('["pixels(size=4)"]', f'["{model}"]\nstages = [1, 3]').replace("tasks = 12", "tasks = 4")
    text = text.replace('methods = ["ncc", "knn"]', 'methods = ["ncc"]').replace("shots = [1, 2]", "shots = [1]")
    text = text.replace("query = 4", "query = 4\nplacebo = false")
    experiment.write_text(text)
    done = run(experiment)
    assert done.comparison is not None
    assert done.comparison.encoders == ["hf:net", "hf:net(stage=1)", "hf:net(stage=3)"]
    assert "hf:net: random - fewstab, 3-way 1-shot" in done.report.read_text()
    experiment.write_text(text.replace("stages = [1, 3]", "stages = [5]"))
    with pytest.raises(InputError, match=r"\[features\], stages: encoder 'hf:.*' has 4 stages, found 5"):
        run(experiment, dry_run=True)


def test_one_split_alone_is_all_that_anything_is_made_of(experiment: Path) -> None:
    catalog = read_layout(experiment.parent / "world", "folder")
    labels = sorted(set(catalog.table.column("label").to_pylist()))
    rows = [f"{label},{'train' if label == labels[-1] else 'test'}\n" for label in labels]
    (experiment.parent / "splits.csv").write_text("label,split\n" + "".join(rows))
    text = EXPERIMENT.replace('root = "world"', 'root = "world"\nsplits = "splits.csv"\nsplit = "test"')
    experiment.write_text(text.replace("tasks = 12", 'tasks = 2\nsamplers = ["random"]'))
    run(experiment)
    features = Features.read(experiment.parent / "out" / f"features-{ENCODER}.parquet")
    expected = [one["item"] for one in catalog.table.to_pylist() if one["label"] != labels[-1]]
    assert features.table.column("item").to_pylist() == expected
    experiment.write_text(text.replace('split = "test"', 'split = "tst"'))
    with pytest.raises(UnknownName, match=r"\[catalog\]: unknown split 'tst': did you mean 'test'"):
        run(experiment, dry_run=True)
