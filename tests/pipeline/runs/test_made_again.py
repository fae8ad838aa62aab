"""What the next run of a changed experiment makes again, and what it leaves."""

from __future__ import annotations

import os
from pathlib import Path

from PIL import Image

from shotproof.attributes.attributes import Attributes
from shotproof.features.features import Features
from shotproof.pipeline.read import read_inputs
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import run
from tests.experiment_files import up_to_results
from tests.pipeline.shapes_experiment import ENCODER, EXPERIMENT, FILES, TASKS, bytes_of


def test_a_method_that_is_added_is_the_only_one_to_be_evaluated(finished: Path) -> None:
    finished.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["ncc", "ridge(penalty=2)", "knn"]'))
    again = run(finished)
    assert sorted(up_to_results(again.made)) == sorted(
        f"results/{name}/{ENCODER}/{file_name('ridge(penalty=2)')}.parquet" for name in TASKS
    )
    assert again.compare().methods == ["ncc", "ridge(penalty=2)", "knn"]


def test_a_method_that_is_removed_removes_nothing_else(finished: Path) -> None:
    out = finished.parent / "out"
    finished.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["knn"]'))
    again = run(finished)
    assert up_to_results(again.made) == []
    assert again.compare().methods == ["knn"]
    assert (out / f"results/{TASKS[0]}/{ENCODER}/ncc.parquet").is_file()
    # What is read from the folder is what the last run consists of.
    assert {method for result in read_inputs([out]).results for method in result.methods} == {"knn"}


def test_a_method_of_ones_own_is_evaluated_again_when_its_file_has_changed(experiment: Path) -> None:
    head = experiment.parent / "heads.py"
    head.write_text("def head(support, labels, query):\n    return (query @ support.T)[:, :3]\n")
    experiment.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["ncc", "heads.py:head"]'))
    run(experiment, trust=True)
    assert run(experiment, trust=True).made == []
    head.write_text(head.read_text().replace("return (", "return -("))
    assert {Path(name).stem for name in up_to_results(run(experiment, trust=True).made)} == {"heads.py-head"}


def test_only_what_depends_on_a_change_is_made_again(finished: Path) -> None:
    finished.write_text(EXPERIMENT.replace("shots = [1, 2]", "shots = [1, 3]"))
    again = run(finished)
    assert all("3shot" in name for name in up_to_results(again.made))
    assert len(up_to_results(again.made)) == 3 + 6  # random tasks, FewSTAB's and their placebo; two methods on each


def test_attributes_that_were_made_before_lie_in_the_folder_too(finished: Path) -> None:
    made = finished.parent / "out" / "attributes.parquet"
    made.rename(finished.parent / "mine.parquet")
    finished.write_text(EXPERIMENT.replace('detectors = ["photometric"]', 'file = "mine.parquet"'))
    run(finished)
    (attributes,) = read_inputs([finished.parent / "out"]).attributes
    assert attributes.digest == Attributes.read(finished.parent / "mine.parquet").digest


def test_a_changed_image_is_seen(finished: Path) -> None:
    features = finished.parent / "out" / f"features-{ENCODER}.parquet"
    before = Features.read(features).array
    image = sorted((finished.parent / "world").rglob("*.png"))[0]
    Image.new("RGB", (16, 16), "red").save(image)
    again = run(finished)
    assert features.name in up_to_results(again.made)
    changed = (Features.read(features).array != before).any(axis=1)
    assert changed.sum() == 1


def test_a_deleted_or_altered_output_is_made_again(finished: Path) -> None:
    out = finished.parent / "out"
    whole = bytes_of(out)
    (out / "tasks-random-3way-1shot.parquet").unlink()
    (out / "attributes.parquet").write_bytes(b"not what was written")
    again = run(finished)
    assert sorted(up_to_results(again.made)) == ["attributes.parquet", "tasks-random-3way-1shot.parquet"]
    after = bytes_of(out)
    assert {name: after[name] for name in FILES} == {name: whole[name] for name in FILES}


def test_an_output_that_a_disk_has_altered_is_made_again(finished: Path) -> None:
    out = finished.parent / "out"
    whole = bytes_of(out)
    altered = [out / "catalog.parquet", out / f"results/{TASKS[0]}/{ENCODER}/ncc.parquet"]
    for path in altered:
        times, content = path.stat(), bytearray(path.read_bytes())
        content[len(content) // 3] ^= 4
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert sorted(up_to_results(run(finished).made)) == sorted(path.relative_to(out).as_posix() for path in altered)
    after = bytes_of(out)
    assert {name: after[name] for name in FILES} == {name: whole[name] for name in FILES}
