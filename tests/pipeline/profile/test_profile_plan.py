"""The experiment of a profile: which axes the data allows, and how its file names things."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, MissingExtra
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile_plan import Plan, ProfileOptions, context_columns, plan_profile
from shotproof.worlds.context_world import ContextWorld
from tests.drawn_layers import draw_masked


def write_catalog(folder: Path, **columns: Sequence[object]) -> Path:
    """Five classes of 40 items that have no files, with further columns."""
    labels = [f"class {number // 40}" for number in range(200)]
    items = [f"{number:03d}.png" for number in range(200)]
    table = {"item": items, "path": items, "label": labels, "split": ["test"] * 200, **columns}
    Catalog(pa.table(table)).write(folder / "catalog.parquet")
    return folder / "catalog.parquet"


def names(plan: Plan) -> list[str]:
    return [draw.sampler.name for draw in plan.file.tasks.draws]


def described(plan: Plan) -> Experiment:
    return Experiment.described_by(plan.file, plan.folder)


def reasons(plan: Plan) -> dict[str, str]:
    return {one.name: one.reason for one in plan.missing}


def test_what_the_data_cannot_give_is_named_with_the_reason(tmp_path: Path) -> None:
    plan = plan_profile(ProfileOptions(write_catalog(tmp_path), encoder="pixels"), tmp_path)
    assert names(plan) == ["random", "hardest", "random"]
    assert set(reasons(plan)) == {"fewstab", "contexts", "semantic", "changes"}
    assert "add attributes.parquet" in reasons(plan)["fewstab"]
    assert "--context-column" in reasons(plan)["contexts"]
    assert "--class-distances FILE" in reasons(plan)["semantic"]


def test_classes_too_small_for_ten_shots_lose_these_alone(tmp_path: Path) -> None:
    options = ProfileOptions(write_catalog(tmp_path), encoder="pixels", query=35)
    plan = plan_profile(options, tmp_path)
    assert plan.file.tasks.draws[0].shots == (1, 5)
    assert "a task needs 45" in reasons(plan)["random-10-shot"]


def test_classes_too_small_for_five_shots_have_as_many_as_they_have_items_for(tmp_path: Path) -> None:
    options = ProfileOptions(write_catalog(tmp_path), encoder="pixels", query=37)
    plan = plan_profile(options, tmp_path)
    assert plan.file.tasks.shots == (3,)
    assert plan.file.tasks.draws[0].shots == (1, 3)
    assert "shots: 3 instead of 5, because class 'class 0' has 40 items and 37 are queries" in plan.notes
    with pytest.raises(InputError, match=r"has 40 items, and 40 queries leave none .*--query 39"):
        plan_profile(replace(options, query=40), tmp_path)


def test_true_false_columns_are_attributes_and_a_hierarchy_beside_the_data_is_found(tmp_path: Path) -> None:
    (tmp_path / "hierarchy.csv").write_text("child,parent\n")
    plan = plan_profile(ProfileOptions(write_catalog(tmp_path, wet=[True, False] * 100), encoder="pixels"), tmp_path)
    assert [str(detector) for detector in plan.file.attributes.detectors or ()] == ["table"]
    assert names(plan)[-1] == "semantic"
    assert "hierarchy.csv" in str(plan.file.tasks.draws[-1])


def test_contexts_are_offered_by_name(tmp_path: Path) -> None:
    camera = [f"camera {number % 5}" for number in range(200)]
    light = ["day" if number % 2 else "night" for number in range(200)]
    file = write_catalog(tmp_path, camera=camera, light=light, width=list(range(200)))
    plan = plan_profile(ProfileOptions(file, encoder="pixels", query=3), tmp_path)
    assert "context(context_column='camera')" in [str(draw) for draw in plan.file.tasks.draws]
    assert "contexts: column 'camera'; others that look like contexts: light (--context-column)" in plan.notes
    asked = plan_profile(ProfileOptions(file, encoder="pixels", query=3, context_column="light"), tmp_path)
    assert reasons(asked)["contexts"].startswith("column 'light': 5 ways need 5 classes with a light")


def test_columns_that_follow_from_the_class_or_tell_items_apart_are_no_contexts() -> None:
    labels = [f"class {number // 10}" for number in range(40)]
    items = [str(number) for number in range(40)]
    columns = {
        "family": [f"family {number // 20}" for number in range(40)],
        "photographer": [f"p{number // 4}" for number in range(40)],
        "weather": ["rain" if number % 3 else "sun" for number in range(40)],
        "area": [float(number) for number in range(40)],
        "source": ["a", "b"] * 20,
    }
    table = {"item": items, "path": items, "label": labels, "split": ["all"] * 40, **columns}
    assert context_columns(Catalog(pa.table(table))) == ["weather"]
    assert context_columns(ContextWorld(concepts=3, contexts=3, figures=2).catalog()) == ["context"]


def test_the_file_says_the_same_as_the_plan_and_finds_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_catalog(tmp_path, wet=[True, False] * 100)
    np.savez(tmp_path / "own ' features.npz", items=np.array(["a"]), features=np.zeros((1, 2)))
    (tmp_path / "out").mkdir()
    options = ProfileOptions(file, features=Path("own ' features.npz"), method="ridge(penalty=2)")
    plan = plan_profile(options, tmp_path / "out")
    (tmp_path / "out" / "experiment.toml").write_text(plan.to_toml())
    read = Experiment.read(tmp_path / "out" / "experiment.toml")
    assert replace(read, file=None, folder=tmp_path / "out") == described(plan)
    assert read.uses[0].method.spelling == "ridge(penalty=2)"
    assert [use.method.name for use in read.uses] == ["ridge", "cosine", "ncc", "ridge", "knn"]
    assert read.encoders[0].path.samefile(tmp_path / "own ' features.npz")  # type: ignore[attr-defined]


def test_files_that_an_encoder_names_are_found_from_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_catalog(tmp_path)
    (tmp_path / "net.onnx").touch()
    (tmp_path / "heads.py").write_text("def head(support, labels, query):\n    return query @ support.T\n")
    (tmp_path / "out").mkdir()
    options = ProfileOptions(file, encoder="onnx:net.onnx", method="heads.py:head")
    content = tomllib.loads(plan_profile(options, tmp_path / "out").to_toml())
    assert content["features"]["encoders"][0] == "onnx:../net.onnx"
    assert content["evaluate"]["methods"][0]["name"] == "../heads.py:head"


def test_a_quick_profile_has_a_tenth_of_the_tasks(tmp_path: Path) -> None:
    file = write_catalog(tmp_path)
    plan = plan_profile(ProfileOptions(file, encoder="pixels", quick=True), tmp_path)
    assert plan.file.tasks.tasks == 60


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"data": Path("nowhere")}, "nowhere does not exist: expected a data folder"),
        ({"encoder": "pixels", "features": Path("x.npz")}, "one of encoder, features and model"),
        ({"encoder": "lite9"}, "unknown encoder 'lite9': did you mean 'lite0'"),
        ({"encoder": "pixels", "method": "cosin"}, "unknown method 'cosin': did you mean 'cosine'"),
        ({"encoder": "pixels", "split": "tset"}, "unknown split 'tset': did you mean 'test'"),
        ({"encoder": "pixels", "method": "finetune"}, "method 'finetune' adapts a network"),
        ({"encoder": "pixels", "context_column": "camra"}, "the catalog has no column 'camra'"),
        (
            {"attributes": (Path("a"),), "detectors": ("photometric",)},
            "either attributes files or detectors",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_profile(ProfileOptions(**{"data": write_catalog(tmp_path), **options}), tmp_path)  # type: ignore[arg-type]


def test_a_model_is_tested_with_its_own_head_or_adapted(drawn_networks: Path, tmp_path: Path) -> None:
    given = {"data": drawn_networks / "catalog.parquet", "split": "val", "way": 2, "query": 1}
    own = plan_profile(ProfileOptions(**given, model=drawn_networks / "first.model"), tmp_path)  # type: ignore[arg-type]
    head, cosine = described(own).uses[:2]
    assert head.method.name == "model"
    assert cosine.on == described(own).encoders
    assert [encoder.name for encoder in described(own).encoders] == ["model", "pixels"]
    adapted = ProfileOptions(**given, model=drawn_networks / "anil.model", method="anil")  # type: ignore[arg-type]
    experiment = described(plan_profile(adapted, tmp_path))
    assert experiment.uses[0].on == experiment.models
    assert experiment.encoders[0].name == "model"


def test_the_catalog_and_the_attributes_of_a_run_are_taken(run_shapes: Path, tmp_path: Path) -> None:
    plan = plan_profile(ProfileOptions(run_shapes / "out", encoder="pixels", way=3, query=2), tmp_path)
    experiment = described(plan)
    assert experiment.catalog_file is not None
    assert experiment.catalog_file.samefile(run_shapes / "out" / "catalog.parquet")
    assert experiment.attribute_files[""].samefile(run_shapes / "out" / "attributes.parquet")


BOX = dict.fromkeys(("box_x", "box_y", "box_width", "box_height"), [1.0] * 24)
BACKGROUNDS = ["only-background", "mixed-same", "mixed-random", "mixed-rival"]


def write_masked(folder: Path, masks: bool, **columns: Sequence[object]) -> ProfileOptions:
    """Pictures with or without a column of masks, and with further columns; the options of a profile."""
    catalog = draw_masked(folder)
    table = catalog.table if masks else catalog.table.drop_columns(["mask"])
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    Catalog(table, folder).write(folder / "catalog.parquet")
    return ProfileOptions(folder / "catalog.parquet", encoder="pixels", way=3, query=1)


def changed_sets(plan: Plan) -> dict[str, str | None]:
    """What the changed sets of a plan are compared with, by change."""
    changed = [draw for draw in plan.file.tasks.draws if draw.sampler.name == "changed"]
    return {draw.sampler.change: draw.like for draw in changed}  # type: ignore[attr-defined]


def test_boxes_are_cut_by_and_images_without_a_mask_stay_in_other_axes(tmp_path: Path) -> None:
    plan = plan_profile(write_masked(tmp_path, masks=False, **BOX), tmp_path)
    assert plan.file.masks is not None
    assert plan.file.masks.keep_all
    masked = "shift(support_where=\"mask != ''\", query_where=\"mask != ''\", shifted=False)"
    likes = changed_sets(plan)
    assert [likes[name] for name in BACKGROUNDS] == [masked, masked, *["changed(change='mixed-same')"] * 2]
    assert {likes[name] for name in ("blur", "noise")} == {"random"}
    assert "background" not in reasons(plan)
    assert plan.notes[-1].startswith("changes: 6 of 24 items, so 144 changed items are encoded, and those with other")
    assert "out of 24 images first, by their boxes" in "\n".join(plan.notes)
    (tmp_path / "experiment.toml").write_text(plan.to_toml())
    assert 'cutter = "grabcut"\nkeep_all = true' in plan.to_toml()
    read = Experiment.read(tmp_path / "experiment.toml")
    assert replace(read, file=None, folder=tmp_path) == described(plan)


def test_without_opencv_the_card_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lack(*_: object) -> None:
        raise MissingExtra("cutter 'grabcut'", "cut")

    monkeypatch.setattr("shotproof.masks.grabcut.GrabCut.require_extras", lack)
    plan = plan_profile(write_masked(tmp_path, masks=False, **BOX), tmp_path)
    assert plan.file.masks is None
    assert not set(BACKGROUNDS) & set(changed_sets(plan))
    assert 'pip install "shotproof[cut]"' in reasons(plan)["background"]


@pytest.mark.parametrize("complete", [True, False])
def test_masks_of_a_column_are_taken_and_items_without_left_out_of_their_axes(tmp_path: Path, complete: bool) -> None:
    options = write_masked(tmp_path, masks=True)
    if not complete:
        catalog = Catalog.read(options.data)
        masks = [None, *catalog.table["mask"].to_pylist()[1:]]
        column = catalog.table.column_names.index("mask")
        table = catalog.table.set_column(column, "mask", pa.array(masks, pa.string()))
        Catalog(table, catalog.root).write(options.data)
    plan = plan_profile(options, tmp_path)
    assert plan.file.masks is None
    assert (changed_sets(plan)["mixed-same"] == "random") == complete
    assert (names(plan).count("shift") == 0) == complete


def test_a_folder_of_masks_is_taken(tmp_path: Path) -> None:
    options = replace(write_masked(tmp_path, masks=False), masks=tmp_path / "masks")
    plan = plan_profile(options, tmp_path)
    assert 'masks = "masks"\nkeep_all = true' in plan.to_toml()
    assert set(BACKGROUNDS) < set(changed_sets(plan))


@pytest.mark.parametrize("changes", [{"quick": True}, {"features": Path("f.npz"), "encoder": None}])
def test_nothing_is_cut_if_nothing_is_changed(tmp_path: Path, changes: dict[str, object]) -> None:
    options = replace(write_masked(tmp_path, masks=False, **BOX), masks=tmp_path / "masks", **changes)  # type: ignore[arg-type]
    plan = plan_profile(options, tmp_path)
    assert plan.file.masks is None
    assert changed_sets(plan) == {}
    assert "background" not in reasons(plan)


@pytest.mark.parametrize("quick", [True, False])
def test_a_folder_of_masks_that_does_not_exist_is_refused_as_it_was_typed(tmp_path: Path, quick: bool) -> None:
    options = replace(write_masked(tmp_path, masks=False), masks=tmp_path / "nowhere", quick=quick)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError) as caught:
        plan_profile(options, tmp_path / "out")
    assert str(caught.value).startswith(f"masks: folder {tmp_path / 'nowhere'} does not exist")


def test_backgrounds_that_cannot_be_shown_are_one_missing_axis(tmp_path: Path) -> None:
    options = replace(write_masked(tmp_path, masks=False), masks=tmp_path / "masks")
    plan = plan_profile(options, tmp_path)
    spellings = [str(draw.sampler) for draw in plan.file.tasks.draws]
    first = next(number for number, name in enumerate(spellings) if name.startswith("shift"))
    without = plan.without(dict.fromkeys(spellings[first:], "no mask is good"))
    assert [axis.name for axis in without.missing if axis not in plan.missing] == ["background"]
    assert not set(BACKGROUNDS) & set(changed_sets(without))
    pasted = "changed(change='mixed-same')"
    assert [axis.name for axis in plan.without({pasted: "too few"}).missing][-1] == "mixed-same"


def test_pictures_without_masks_and_boxes_say_what_gives_masks(tmp_path: Path) -> None:
    plan = plan_profile(write_masked(tmp_path, masks=False), tmp_path)
    assert plan.file.masks is None
    assert "--cutter grabcut" in reasons(plan)["background"]
    left_out = plan.without({"changed(change='blur(severity=5)')": "too few", "random(query_dirichlet=2)": "too few"})
    assert [axis.name for axis in left_out.missing[-2:]] == ["blur(severity=5)", "unbalanced"]
