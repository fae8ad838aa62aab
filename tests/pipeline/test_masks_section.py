"""Experiments that cut the foregrounds of images out first, and may mix them then."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.changes.change import changes
from shotproof.core.errors import InsufficientData, UnreadableItem
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.study import run
from tests.drawn_clips import draw_clips
from tests.drawn_layers import draw_masked
from tests.experiment_files import assert_refused, up_to_results, write_experiment

EXPERIMENT = """
[catalog]
file = "catalog.parquet"
[masks]
masks = "pictures/masks"
[features]
encoders = ["pixels(size=4)"]
[tasks]
way = 2
shots = [1]
query = 1
tasks = 4
samplers = ["random"]
placebo = false
[evaluate]
methods = ["ncc"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""
MIX = '[mix]\nmapping = "mapping.toml"\nclean = true\n[features]'
CHANGED = """samplers = ["random", { name = "changed(change='mixed-rival')", like = "random" }]"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Pictures with a folder of masks, of which one is missing, their catalog without masks, and a mapping."""
    catalog = draw_masked(tmp_path / "pictures", items=4)
    Catalog(catalog.table.drop_columns(["mask"]), catalog.root).write(tmp_path / "catalog.parquet")
    (tmp_path / "pictures" / "masks" / "0-3.png").unlink()
    (tmp_path / "mapping.toml").write_text(
        '[pairs]\nclass0 = ["class2", "class3"]\nclass1 = ["class2", "class3"]\n[splits]\ntest = ["class0", "class1"]\n'
    )
    return tmp_path


def test_a_run_cuts_first_and_leaves_out_what_has_no_mask(data: Path) -> None:
    file = write_experiment(data, EXPERIMENT, ('samplers = ["random"]', CHANGED))
    dry = run(file, dry_run=True)
    assert not (data / "out").exists()
    told: list[str] = []
    first = run(file, log=told.append)
    assert set(up_to_results(dry.made)) <= set(first.made)
    (folder,) = (name for name in first.made if name.startswith("masks-"))
    sheet = f"{folder.split('/')[0]}/contact-sheet.html"
    outcome = f"1 of 16 images left out; look at {sheet}"
    assert any(line.startswith("masks ") and outcome in line for line in told)
    assert "15 of 16 images have a good mask" in (data / "out" / sheet).read_text()
    catalog = Catalog.read(data / "out" / "catalog.parquet")
    assert len(catalog) == len(Catalog.read(data / "out" / folder)) == 15
    assert all((catalog.root / mask).is_file() for mask in catalog.table["mask"].to_pylist())
    second = run(file)
    assert second.made == []
    # Another threshold is another folder.
    stricter = write_experiment(data, file.read_text(), ("[features]", "min_area = 0.05\n[features]"))
    assert folder not in run(stricter, dry_run=True).made


HAS_MASK = "mask != ''"
KEPT = f"""samplers = [
  "random",
  "changed(change='blur')",
  {{ name = "shift", support_where = "{HAS_MASK}", query_where = "{HAS_MASK}", shifted = false }},
  {{ name = "changed", change = "mixed-same", like = "shift" }},
  "changed(change='mixed-rival')",
]"""


def test_images_without_a_mask_are_kept_for_tasks_that_need_none(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = EXPERIMENT.replace("tasks = 4", "tasks = 40").replace("[features]", "keep_all = true\n[features]", 1)
    file = write_experiment(data, text, ('samplers = ["random"]', KEPT))
    dry, told = run(file, dry_run=True), list[str]()
    with caplog.at_level(logging.INFO, logger="shotproof"):
        study = run(file, log=told.append)
    assert set(up_to_results(dry.made)) <= set(study.made)
    assert any("1 of 16 images without a good mask" in line for line in told)
    masks = dict(zip(study.catalog.items, study.catalog.table["mask"].to_pylist(), strict=True))
    assert [item for item, mask in masks.items() if not mask] == ["0-3.png"]
    assert all((study.catalog.root / mask).is_file() for mask in masks.values() if mask)
    random, blurred, masked, same, rival = study.tasks
    unmasked = [
        "0-3.png" in {item for side in ("support", "query") for row in tasks.table[side].to_pylist() for item in row}
        for tasks in study.tasks
    ]
    assert unmasked == [True, True, False, False, False]
    likes = [tasks.record.source("like") for tasks in (blurred, same, rival)]
    assert likes == [random.digest, masked.digest, same.digest]
    (said,) = [message for message in caplog.messages if message.startswith("encoding ")]
    assert said.startswith("encoding ")
    assert said.endswith("; 16 of blur")
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="shotproof"):
        assert run(file).made == []
    assert caplog.messages == []


def test_images_of_which_none_has_a_mask_keep_all_other_tasks(data: Path) -> None:
    for mask in (data / "pictures" / "masks").iterdir():
        mask.unlink()
    text = EXPERIMENT.replace("[features]", "keep_all = true\n[features]", 1)
    file = write_experiment(data, text, ('samplers = ["random"]', KEPT))
    study = run(file, leave_out=True)
    assert [tasks.record.name for tasks in study.tasks] == ["random", "changed"]
    shift, same, rival = study.left_out.values()
    assert shift.startswith("none of 16 images has a good mask: 16 missing: name each mask as its image, e.g. 0-0.png")
    assert "contact-sheet.html" in shift
    assert same.startswith("it is compared with shift(")
    assert rival.startswith("it is compared with changed(change='mixed-same')")
    without = write_experiment(data, file.read_text(), ("keep_all = true\n", ""))
    with pytest.raises(InsufficientData, match="none of 16 images has a good mask"):
        run(without, leave_out=True)


def test_a_column_of_masks_gives_way_to_a_folder_of_which_none_is_good(data: Path) -> None:
    draw_masked(data / "pictures", items=4).write(data / "catalog.parquet")
    (data / "none").mkdir()
    text = EXPERIMENT.replace("pictures/masks", "none").replace("[features]", "keep_all = true\n[features]", 1)
    study = run(write_experiment(data, text))
    assert study.catalog.table["mask"].null_count == 16


def test_a_mask_that_changes_is_noticed(data: Path) -> None:
    file = write_experiment(data, EXPERIMENT)
    run(file)
    mask = data / "pictures" / "masks" / "1-1.png"
    mask.write_bytes((data / "pictures" / "masks" / "1-0.png").read_bytes())
    assert any(name.startswith("masks-") for name in run(file).made)


def test_masks_that_move_within_their_folder_are_noticed(data: Path) -> None:
    masks, catalog = data / "pictures" / "masks", Catalog.read(data / "catalog.parquet")
    items = [f"a/{item}" for item in catalog.items]
    Catalog(catalog.table.set_column(0, "item", pa.array(items)), data).write(data / "catalog.parquet")
    file = write_experiment(data, EXPERIMENT.replace("[features]", "keep_all = true\n[features]", 1))
    for name in ("1-1", "1-2"):
        (masks / "a" / name).with_suffix(".png").parent.mkdir(exist_ok=True)
        (masks / f"{name}.png").rename(masks / "a" / f"{name}.png")
    count = len(run(file).catalog.table["mask"].drop_null())
    (masks / "a").rename(masks / "b")
    assert len(run(file).catalog.table["mask"].drop_null()) == count - 2


def test_two_folders_of_masks_have_two_folders_in_a_run(data: Path) -> None:
    shutil.copytree(data / "pictures" / "masks", data / "others" / "masks")
    folders = set()
    for masks in ("pictures/masks", "others/masks"):
        section = Experiment.read(write_experiment(data, EXPERIMENT, ("pictures/masks", masks))).masks
        assert section is not None
        folders.add(section.folder("digest of the images", None))
    assert len(folders) == 2


def test_images_are_cut_and_mixed(data: Path) -> None:
    text = EXPERIMENT.replace("[features]", MIX).replace('["random"]', '["iid", "clean"]')
    file = write_experiment(data, text)
    dry = run(file, dry_run=True)
    first = run(file)
    assert sorted(name.split("/")[0][:5] for name in up_to_results(dry.made)) == sorted(
        name.split("/")[0][:5] for name in up_to_results(first.made)
    )
    mixed = Catalog.read(data / "out" / "catalog.parquet")
    assert sorted(mixed.table["context"].to_pylist()) == ["class2"] * 7 + ["class3"] * 7 + ["clean"] * 7
    assert mixed.record.skipped == ()
    assert run(file).made == []


def test_a_cutter_is_named_with_its_options(data: Path) -> None:
    file = write_experiment(data, EXPERIMENT, ('masks = "pictures/masks"', 'cutter = "grabcut(iterations=2)"'))
    masks = Experiment.read(file).masks
    assert masks is not None
    assert str(masks.settings.cutter) == "grabcut(iterations=2)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((("[features]", 'cutter = "grabcut"\n[features]'),), "[masks]: expected either cutter or masks"),
        ((("[features]", "min_are = 0.1\n[features]"),), "[masks]: unknown key 'min_are': did you mean 'min_area'"),
        ((("[features]", "max_pieces = 0\n[features]"),), "[masks], max_pieces: expected a whole number"),
        ((("pictures/masks", "pictures/mask"),), "[masks]: masks: folder "),
        ((('masks = "pictures/masks"', 'cutter = "grabcutt"'),), "[masks], cutter: unknown cutter 'grabcutt'"),
        ((('masks = "pictures/masks"', 'cutter = "onnx:no.onnx"'),), "[masks], cutter: cutter 'onnx'"),
        ((("catalog.parquet", "sounds.parquet"),), "[masks]: cut: expected images, found sounds"),
        ((("[features]", f"{MIX}".replace("clean", "dial = 2\nclean")),), "[mix]: 'dial' is for sounds"),
        ((("[features]", f"{MIX}".replace("clean", "gain = 2\nclean")),), "[mix]: 'gain' is for sounds"),
        ((("[features]", f"{MIX}".replace("clean", "max_alike = 0.5\nclean")),), "[mix]: 'max_alike' is for sounds"),
        ((("[masks]\n", ""), ('masks = "pictures/masks"\n[features]', MIX)), "[mix]: a foreground is"),
        ((("query = 1", "query = 9"),), "[tasks], sampler 'random': "),
        ((("[features]", f"keep_all = true\n{MIX}"),), "[masks], keep_all: images are mixed by their masks"),
        ((('"random"', '"random", "blur"'),), "[tasks], samplers: unknown sampler 'blur': it is a change"),
        ((('"random"', '"changed"'),), "[tasks], samplers: sampler 'changed' changes the tasks of another sampler"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_cut(
    data: Path, changes: tuple[tuple[str, str], ...], message: str
) -> None:
    draw_clips(data / "sounds", 2).write(data / "sounds.parquet")
    assert_refused(write_experiment(data, EXPERIMENT, *changes), message)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("sampler", "lost", "message"),
    [
        ("changed(change='band')", 0, "change 'band' does not apply to images"),
        ("changed(change='mixed-same(margin_db=3)')", 0, "margin_db applies to sounds"),
        ("copied(changes=('noise', 'gain'))", 0, "change 'gain' does not apply to images"),
        ("changed(change='only-background')", 16, "change 'only-background' needs the foreground of each item"),
        ("changed(change='only-background')", 3, "change 'only-background': 3 items of the tasks have no mask"),
    ],
)
def test_a_change_that_cannot_work_is_refused_before_encoding(
    tmp_path: Path, sampler: str, lost: int, message: str, dry_run: bool
) -> None:
    catalog = draw_masked(tmp_path / "pictures", items=4)
    masks = [None if row < lost else mask for row, mask in enumerate(catalog.table["mask"].to_pylist())]
    table = catalog.table.drop_columns(["mask"]).append_column("mask", pa.array(masks, pa.string()))
    Catalog(table, catalog.root).write(tmp_path / "catalog.parquet")
    draws = f'samplers = ["random", {{ name = "{sampler}", like = "random" }}]'
    file = write_experiment(tmp_path, EXPERIMENT.replace("tasks = 4", "tasks = 40"), WITHOUT_SECTION)
    file = write_experiment(tmp_path, file.read_text(), ('samplers = ["random"]', draws))
    assert_refused(file, f"[tasks], sampler '{sampler}': ", message, dry_run=dry_run)


WITHOUT_SECTION = ('[masks]\nmasks = "pictures/masks"\n', "")
ONLY_MASKED = f"""samplers = [
  {{ name = "shift", support_where = "{HAS_MASK}", query_where = "{HAS_MASK}", shifted = false }},
  {{ name = "changed", change = "mixed-random", like = "shift" }},
]"""


def test_masks_that_a_catalog_gets_loses_or_exchanges_are_noticed(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path / "pictures", items=8)
    file = write_experiment(tmp_path, EXPERIMENT, WITHOUT_SECTION, ('samplers = ["random"]', ONLY_MASKED))

    def items_used(edits: dict[str, str | None]) -> set[str]:
        """Items and plates of the tasks after the masks of some items were edited, which leaves the digest as it is."""
        masks = [edits.get(row["item"], row["mask"]) for row in catalog.table.to_pylist()]
        index = catalog.table.column_names.index("mask")
        edited = Catalog(catalog.table.set_column(index, "mask", pa.array(masks, pa.string())), catalog.root)
        assert edited.digest == catalog.digest
        edited.write(tmp_path / "catalog.parquet")
        study = run(file)
        assert [bool(mask) for mask in study.catalog.table["mask"].to_pylist()] == [bool(mask) for mask in masks]
        assert run(file).made == []
        _, changed = study.tasks
        spellings = changed.changes("query")
        assert spellings is not None
        plates = {str(changes.make(text).plate) for text in spellings.to_pylist()}  # type: ignore[attr-defined]
        sides = (row[side] for row in changed.table.to_pylist() for side in ("support", "query"))
        return plates.union(*sides)

    before = items_used({})
    lost = sorted(before)[:3]
    assert not items_used(dict.fromkeys(lost)) & set(lost)
    assert items_used({}) == before
    Image.new("L", (64, 48), 0).save(tmp_path / "pictures" / "masks" / "other.png")
    with pytest.raises(UnreadableItem, match=r"other\.png is empty"):
        items_used({lost[0]: "masks/other.png"})


def test_bad_masks_of_a_catalog_are_named_or_left_out_if_backgrounds_are_shown(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path / "pictures", items=4)
    catalog.write(tmp_path / "catalog.parquet")
    mask = tmp_path / "pictures" / "masks" / "0-3.png"
    with Image.open(mask) as image:
        empty = Image.new("L", image.size)
    empty.save(mask)
    with pytest.raises(UnreadableItem, match=r"1 mask of 16 images cannot be used: mask .*0-3\.png is empty"):
        run(write_experiment(tmp_path, EXPERIMENT, WITHOUT_SECTION, ('samplers = ["random"]', CHANGED)))
    skip = ("[features]", '[features]\non_error = "skip"')
    file = write_experiment(tmp_path, EXPERIMENT, WITHOUT_SECTION, skip, ('samplers = ["random"]', CHANGED))
    study = run(file)
    assert len(study.catalog) == 15
    assert not any("0-3.png" in str(tasks.table.to_pylist()) for tasks in study.tasks)
    assert run(file).made == []
    blurred = write_experiment(tmp_path, file.read_text(), ("mixed-rival", "blur"))
    assert len(run(blurred).catalog) == 16
