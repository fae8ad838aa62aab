"""What a search for a cure gathers from a study."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.pipeline.cure import cure_inputs
from shotproof.pipeline.cure_section import CureSection
from tests.drawn_layers import draw_masked


def test_items_to_fit_and_choose_on_are_shown_on_backgrounds_of_others(tmp_path: Path) -> None:
    drawn = draw_masked(tmp_path, items=20, correlated=False)
    labels = [f"{label}-{row % 2}" for row, label in enumerate(drawn.table.column("label").to_pylist())]
    splits = ["test" if label.startswith("class0") else "train" for label in labels]
    table = drawn.table.drop_columns(["label", "split"])
    table = table.append_column("label", pa.array(labels)).append_column("split", pa.array(splits))
    catalog = Catalog(table, drawn.root)
    with sp.runtime(cache=None, workers=1, progress=False):
        study = sp.Study(catalog, encoder="pixels(size=4)")
        study.evaluate("ncc", on=["random"], way=2, shots=[1], query=3, tasks=20)
        study.change("mixed-random")
        section = CureSection(remedies=("nap(by='changes')",), tasks=10)
        cure = cure_inputs(study.inputs.quickly(), study.experiment, section)
    assert cure.not_tried == ()
    (row,) = cure.tried
    assert [effect.axis for effect in row.effects] == ["mixed-random"]
    assert row.score is not None  # the classes to choose on have changed items, too
