"""Studies: what they evaluate and what they keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError, UnreadableItem
from shotproof.features.encoder import encode
from shotproof.pipeline.encode_tasks import encode as encode_with_tasks
from shotproof.pipeline.study import Study, compare, run
from shotproof.tasks.sampler import sample, samplers
from shotproof.worlds.context_world import ContextWorld
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_layers import draw_masked
from tests.pipeline.shapes_experiment import EXPERIMENT

WORLD = ShapesWorld(classes=6, items=30)
SMALL = {"shots": [1], "query": 5, "tasks": 6, "placebo": False}


def drawn_study() -> Study:
    features = encode(WORLD.catalog(), DialEncoder(share=0.5))
    return Study(WORLD.catalog(), encoder=features, attributes=WORLD.attributes())


def test_a_sampler_is_a_spelling_an_object_or_a_table() -> None:
    spelled = "hardest(effort='high')"
    table = {"name": "hardest", "effort": "high"}
    made = [
        drawn_study().evaluate("ncc", on=on, **SMALL).tasks
        for on in (spelled, samplers.make(spelled), table, [table], {"name": samplers.make(spelled)})
    ]
    assert {tasks.record.sampler.spelling for (tasks,) in made} == {spelled}
    assert len({tasks.digest for (tasks,) in made}) == 1
    with pytest.raises(InputError, match="sampler 'hardest' has no option 'efort'"):
        drawn_study().evaluate("ncc", on="hardest(efort='high')", **SMALL)


def test_matched_sets_are_drawn_together() -> None:
    catalog = ContextWorld(concepts=5, figures=8).catalog()
    study = Study(catalog, encoder=encode(catalog, DialEncoder(share=0.5, factors=("context",))), attributes=())
    study.evaluate("ncc", on="context(clean_value='none')", **SMALL)
    assert [tasks.record.sampler_name for tasks in study.tasks] == ["iid", "ood", "hard-ood", "clean"]


def test_what_was_evaluated_stays_and_is_not_made_again() -> None:
    study = drawn_study().evaluate("ncc", on="random", **SMALL)
    first = study.results[0].digest
    study.evaluate(["ncc", "ridge"], on=["random", "fewstab"], **SMALL)
    assert {method for results in study.results for method in results.methods} == {"ncc", "ridge"}
    assert [tasks.record.sampler_name for tasks in study.tasks] == ["random", "fewstab"]
    assert first in {results.digest for results in study.results}
    comparison = study.compare(intervals="sampler")
    assert study.compare(intervals="sampler") is comparison


def test_an_experiment_file_is_a_study(tmp_path: Path) -> None:
    ShapesWorld(classes=5, items=24, size=16).write(tmp_path / "shapes")
    (tmp_path / "experiment.toml").write_text(
        '[catalog]\nroot = "shapes"\n[features]\nencoders = ["pixels(size=4)"]\n'
        '[tasks]\nsamplers = ["random"]\nshots = [1]\nquery = 5\ntasks = 10\n[evaluate]\nmethods = ["ncc"]\n'
        '[output]\nintervals = ["sampler"]\n'
    )
    study = run(tmp_path / "experiment.toml")
    assert study.verdict() == study.compare().verdict()
    beside = Study(tmp_path / "shapes", encoder="pixels(size=4)").evaluate("ncc", on="random", **SMALL | {"tasks": 10})
    assert [tasks.digest for tasks in beside.tasks] == [tasks.digest for tasks in study.tasks]
    assert [results.digest for results in beside.results] == [results.digest for results in study.results]


def test_a_study_of_files_evaluates_nothing_more() -> None:
    study = Study.of(drawn_study().evaluate("ncc", on="random", **SMALL).results)
    with pytest.raises(InputError, match="study was read from files"):
        study.evaluate("ridge")
    with pytest.raises(InputError, match="nothing was evaluated yet"):
        drawn_study().verdict()


SHAPE = {"way": 3, "shots": [1], "query": 4, "tasks": 12}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of drawn shapes."""
    folder = tmp_path_factory.mktemp("data") / "shapes"
    ShapesWorld(classes=5, items=20, size=16).write(folder)
    return folder


def evaluated(data: Path, folder: Path | None = None) -> Study:
    return Study(data, encoder="pixels(size=4)", folder=folder).evaluate(["ncc", "knn"], **SHAPE)


def test_a_study_in_memory_makes_the_full_claim_and_nothing_twice(data: Path) -> None:
    study = evaluated(data)
    assert study.compare().interval_names == ("images", "sampler")
    assert {row.quantity for row in study.compare().to_pandas().itertuples()} >= {"accuracy", "gap", "placebo"}
    assert study.verdict() == study.compare().verdict()
    made = list(study.made)
    study.evaluate(["ncc", "knn"], **SHAPE).compare()
    assert study.made == made
    study.evaluate("ridge", **SHAPE)
    assert all("ridge" in name for name in study.made[len(made) :])
    assert study.compare().methods == ["ncc", "knn", "ridge"]


def test_a_study_in_a_folder_is_found_again_by_the_next_one(data: Path, tmp_path: Path) -> None:
    study = evaluated(data, tmp_path / "out")
    page = study.report()
    assert page == tmp_path / "out" / "report.html"
    again = evaluated(data, tmp_path / "out")
    assert again.compare().to_json() == study.compare().to_json()
    assert again.report() == page
    assert again.made == []
    parts = Study.of(tmp_path / "out")
    assert parts.compare().to_json() == study.compare().to_json()
    assert parts.made == []


def test_parts_are_a_study_whatever_their_order_and_form(data: Path, tmp_path: Path) -> None:
    study = evaluated(data)
    parts = [*study.tasks, study.catalog, *study.features.values(), *study.inputs.attributes, *study.results]
    assert Study.of(parts).compare().to_json() == study.compare().to_json()
    for number, part in enumerate(parts):
        part.write(tmp_path / f"{number}.parquet")
    read = Study.of(sorted(tmp_path.iterdir()))
    assert read.compare().interval_names == study.compare().interval_names
    assert read.verdict() == study.verdict()
    assert compare(study) is study.compare()


def test_what_is_no_part_of_a_study_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected results, task sets, .* found list"):
        Study.of([[]])  # type: ignore[list-item]


def test_hard_tasks_are_explained_from_what_the_study_has(data: Path) -> None:
    (explanation,) = evaluated(data).explain()
    assert [explained.name.split("(")[0] for explained in explanation.sets][:2] == ["fewstab", "random"]
    assert explanation.sets[0].hardness


def test_a_folder_is_compared_as_its_run_was(finished: Path) -> None:
    finished.write_text(EXPERIMENT.replace('intervals = ["sampler"]', 'intervals = ["sampler"]\nmetric = "wacc"'))
    study = run(finished)
    read = Study.of(finished.parent / "out")
    assert (read.compare().interval_names, read.compare().metric) == (("sampler",), "wacc")
    assert read.compare().to_json() == study.compare().to_json()
    assert read.made == []
    # Beside other files, or asked otherwise, it is as if there had been no run.
    assert read.compare(metric="acc").metric == "acc"
    assert Study.of([*study.results]).compare().metric == "acc"


CHANGED = {"way": 3, "shots": [1, 2], "query": 2, "tasks": 5}


def masked_study(folder: Path) -> Study:
    """A study of pictures with masks."""
    return Study(draw_masked(folder, items=8), encoder="pixels(size=4)", attributes=[])


def references(study: Study) -> dict[str, set[str]]:
    """What each task set is compared with."""
    rows = study.compare(intervals="sampler").rows("gap")
    return {row.tasks: {other.reference for other in rows if other.tasks == row.tasks} for row in rows}


def test_one_thing_is_changed_in_what_was_evaluated(tmp_path: Path) -> None:
    study = masked_study(tmp_path).evaluate(["ncc", "knn"], on="random", **CHANGED)
    changed = study.change("mixed-rival").change(["blur", "noise(severity=5)"], side="both")
    assert changed is study
    names = ["random", "mixed-same", "mixed-rival", "blur on both sides", "noise(severity=5) on both sides"]
    comparison = study.compare(intervals="sampler")
    assert [[group.label for group in block.groups] for block in comparison.blocks] == [names, names]
    assert comparison.methods == ["ncc", "knn"]
    assert references(study) == {
        "mixed-same": {"random"},
        "mixed-rival": {"mixed-same"},
        "blur on both sides": {"random"},
        "noise(severity=5) on both sides": {"random"},
    }
    assert len({len(tasks) for tasks in study.tasks}) == 1
    count = len(study.made)
    study.change("mixed-rival")
    assert len(study.made) == count


def test_a_changed_set_of_a_study_is_that_of_an_evaluation(tmp_path: Path) -> None:
    short = masked_study(tmp_path).evaluate("ncc", on="random", **CHANGED).change("blur")
    sampler = "changed(change='blur')"
    long = masked_study(tmp_path).evaluate("ncc", on=["random", sampler], **CHANGED)
    named = masked_study(tmp_path).evaluate("ncc", on=["random", {"name": sampler, "like": "random"}], **CHANGED)
    digests = [[results.digest for results in study.results] for study in (short, long, named)]
    assert digests[0] == digests[1] == digests[2]


def test_features_at_hand_must_have_the_changed_items(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=8)
    design = {"way": 3, "shot": 1, "query": 2, "tasks": 5}
    blurred = sample(catalog, "changed", like=sample(catalog, "random", **design))  # type: ignore[arg-type]
    shape = {**CHANGED, "shots": [1]}
    given = Study(catalog, encoder=encode_with_tasks(catalog, "pixels(size=4)", tasks=blurred), attributes=[])
    assert given.evaluate("ncc", on="random", **shape).change("blur").tasks[1].digest == blurred.digest
    plain = Study(catalog, encoder=encode(catalog, "pixels(size=4)"), attributes=[]).evaluate(
        "ncc", on="random", **shape
    )
    with pytest.raises(InputError, match=r"lack 32 changed items, e\.g\. '0-0\.png @ blur': .*tasks=\[\.\.\.\]"):
        plain.change("blur")
    assert len(plain.tasks) == 1  # what was evaluated before is still there


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("blurr", {}, "unknown change 'blurr': did you mean 'blur'"),
        ("band", {}, "change 'band' does not apply to images"),
        ("blur", {"side": "left"}, "side: expected query or support or both, found 'left'"),
        ("blur", {"of": "hardest"}, "no tasks of sampler 'hardest' were evaluated"),
        ("mixed-same(plate=a)", {}, r"cannot read change 'mixed-same\(plate=a\)'"),
        ("", {}, "cannot read change ''"),
        (7, {}, "expected a change: .* found int"),
        (None, {}, "expected a change: .* found NoneType"),
        ([], {}, "change: expected at least one change"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    tmp_path: Path, change: object, options: dict[str, str], message: str
) -> None:
    study = masked_study(tmp_path).evaluate("ncc", on="random", **CHANGED)
    with pytest.raises(InputError, match=message):
        study.change(change, **options)  # type: ignore[arg-type]
    assert len(study.results) == 2


def test_a_change_needs_tasks(tmp_path: Path) -> None:
    study = masked_study(tmp_path)
    with pytest.raises(InputError, match="nothing was evaluated yet"):
        study.change("blur")
    with pytest.raises(InputError, match=r"^sampler 'changed' changes the tasks"):
        study.evaluate("ncc", on="changed", **CHANGED)
    with pytest.raises(InputError, match="unknown sampler 'blur': it is a change"):
        study.evaluate("ncc", on=["random", "blur"], **CHANGED)
    read = Study.of(study.evaluate("ncc", on="random", **CHANGED).results)
    with pytest.raises(InputError, match=r"study was read from files: .*change tasks"):
        read.change("blur")


def test_one_method_on_one_set_is_counted_so(tmp_path: Path) -> None:
    study = masked_study(tmp_path).evaluate("ncc", on="random", **{**CHANGED, "shots": [1]})
    assert repr(study).endswith(": 1 method on 1 task set>")


def test_bad_masks_say_how_a_study_leaves_them_out(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=8)
    (tmp_path / "masks" / "0-0.png").unlink()
    study = Study(catalog, encoder="pixels(size=4)", attributes=[]).evaluate("ncc", on="random", **CHANGED)
    with pytest.raises(UnreadableItem, match=r'0-0\.png does not exist.*Study\(\.\.\., on_error="skip"\)'):
        study.change("mixed-same")
