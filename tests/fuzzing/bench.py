"""A folder with one good file of every format, of which a fuzzer damages one at a time."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shotproof as sp
from shotproof.analysis.make_card import make_card as make_card_of
from shotproof.analysis.similarity import Similarity
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import TrainingFailed
from shotproof.features.nuisance_transforms import Nap
from tests.chat_servers import chat_server
from tests.drawn_cards import make_card
from tests.fuzzing.listings import write_listed

MINE = "mine"  # a folder with a card and all that it was made from
KEPT = "kept"  # a cache, which commands are given copies of
EXPERIMENT = """
[catalog]
root = "images"
layout = "folder"
splits = "splits.csv"
names = "names.csv"
name = "shapes"

[attributes]
detectors = ["table(file='annotations.csv')"]

[features]
encoders = ["pixels(size=2)", "file:features.npz"]
transforms = ["l2"]
on_error = "raise"

[tasks]
split = "test"
way = 2
shots = [1]
query = 2
tasks = 3
seeds = [0]
placebo = false
samplers = ["random", { name = "hardest", like = "random", encoder = "pixels(size=2)", seeds = [0] }]

[evaluate]
methods = ["ncc", { name = "ridge(penalty=1)", on = "pixels", shots = [1] }]
seed = 0

[runtime]
workers = 1
device = "cpu"
batch_size = 8
cache = "cache"
engine = "local"

[output]
folder = "out"
title = "fuzz"
intervals = ["sampler"]
metric = "acc"
projection = "none"
mismatch = "class"
"""
SOUNDING = """
[catalog]
file = "sounds.parquet"
[mix]
mapping = "mapping.toml"
clean = true
on_the_fly = true
embedding = "none"
seed = 0
[features]
encoders = ["logmel"]
[tasks]
way = 2
shots = [1]
query = 1
tasks = 2
split = "test"
samplers = ["random"]
[evaluate]
methods = ["ncc"]
[runtime]
workers = 1
cache = "cache"
[output]
folder = "out"
intervals = ["sampler"]
projection = "none"
"""
TRAINING: dict[str, Any] = {
    "backbone": "conv64f(pools=2, pooling='mean')",
    "way": 2,
    "shot": 1,
    "query": 1,
    "size": 16,
    "epochs": 1,
    "tasks": 1,
}


def make_bench(folder: Path) -> None:
    """Write all files into an empty folder."""
    os.environ["SHOTPROOF_CACHE"] = str(folder / "cache")
    with sp.Runtime(workers=1, cache=folder / "cache", progress=False):
        _images(folder)
        _texts(folder)
        _sounds(folder)
        _models(folder)
        _kept(folder)
        _mine(folder)
    write_listed(folder)


def _images(folder: Path) -> None:
    world = sp.worlds.ShapesWorld(classes=7, items=6, size=16)  # enough for halves of each class
    drawn = world.write(folder / "images")
    table = drawn.table.append_column("context", pa.array(["sea", "land"] * (len(drawn) // 2)))
    table = table.set_column(table.column_names.index("split"), "split", pa.array(["train"] * 12 + ["test"] * 30))
    catalog = Catalog(table, drawn.root, drawn.record)
    catalog.write(folder / "catalog.parquet")
    catalog = Catalog.read(folder / "catalog.parquet")
    attributes = world.attributes()
    attributes.write(folder / "attributes.parquet")
    features = sp.encode(catalog, "pixels(size=2)")
    features.write(folder / "features.parquet")
    features.write(folder / "features.parts")
    for kind in ("zip", "tar"):
        shutil.make_archive(str(folder / "images"), kind, folder / "images")
    Nap(base=features, catalog=catalog, directions=2).map.write(folder / "map.parquet")
    shape: dict[str, Any] = {"split": "test", "way": 2, "shot": 1, "query": 2, "tasks": 4}
    random = sp.sample(catalog, "random", **shape)
    random.write(folder / "tasks.parquet")
    hard = sp.sample(catalog, "hardest", like=random, features=features, **shape)
    hard.write(folder / "hard.parquet")
    sizes: dict[str, Any] = {**shape, "query": 1, "tasks": 3}
    sp.sample(catalog, "fewstab", attributes=attributes, **sizes).write(folder / "planted.parquet")
    sp.sample(catalog, "fewstab(variant='published')", attributes=attributes, **sizes).write(
        folder / "published.parquet"
    )
    sp.sample(catalog, "ood", **sizes).write(folder / "ood.parquet")
    sp.evaluate(random, features, ["ncc", "ridge"]).write(folder / "results.parquet")
    sp.evaluate(hard, features, ["ncc"]).write(folder / "hard-results.parquet")
    rows = len(catalog)
    measures = {"m_ce": np.linspace(0, 1, rows), "m_te": np.linspace(1, 0, rows)}
    columns = {
        name: table.column(column) for name, column in (("item", "item"), ("concept", "label"), ("context", "context"))
    }
    Similarity(pa.table({**columns, **measures})).write(folder / "similarity.parquet")
    words = sorted({*table["label"].to_pylist(), "sea", "land"})
    sp.Features.from_array(words, np.eye(len(words), features.array.shape[1]) + 0.1).write(folder / "texts.parquet")
    np.save(folder / "features.npy", features.array)
    items = [file.relative_to(folder / "images").as_posix() for file in sorted((folder / "images").rglob("*.png"))]
    np.savez(folder / "items.npz", items=np.array(catalog.items), features=features.array)
    np.savez(folder / "features.npz", items=np.array(items), features=features.array)
    labels = sorted(set(table["label"].to_pylist()))
    (folder / "splits.csv").write_text(
        "label,split\n" + "".join(f"{label},{'test' if label in labels[2:] else 'train'}\n" for label in labels)
    )
    (folder / "names.csv").write_text("label,name\n" + "".join(f"{label},the {label}\n" for label in labels))
    (folder / "names.txt").write_text("".join(f"{label} the {label}\n" for label in labels))
    (folder / "annotations.csv").write_text(
        "item,attribute\n" + "".join(f"{one},{'red' if place % 2 else 'blue'}\n" for place, one in enumerate(items))
    )
    (folder / "wide.csv").write_text(
        "item,red,blue\n" + "".join(f"{one},{place % 2},1\n" for place, one in enumerate(catalog.items))
    )
    rows_of = [
        {"item": one, "caption": f"a small bird near the water {place}"} for place, one in enumerate(catalog.items)
    ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of))
    (folder / "captions.csv").write_text(
        "item,caption\n" + "".join(f"{row['item']},{row['caption']}\n" for row in rows_of)
    )
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows_of), folder / "captions.parquet")
    (folder / "table.csv").write_text(
        "path,label,split,size\n" + "".join(f"images/{one},{one.split('/')[0]},test,3\n" for one in items)
    )
    (folder / "distances.csv").write_text(
        "class,"
        + ",".join(labels)
        + "\n"
        + "".join(f"{label}," + ",".join("0" if label == other else "1" for other in labels) + "\n" for label in labels)
    )
    (folder / "class-attributes.csv").write_text(
        "class,a,b\n" + "".join(f"{label},{place},1\n" for place, label in enumerate(labels))
    )
    (folder / "tree.csv").write_text(
        "child,parent\n"
        + "".join(f"{label},{'ab'[place > 1]}\n" for place, label in enumerate(labels))
        + "a,root\nb,root\n"
    )
    (folder / "tree.json").write_text(json.dumps({"root": {"a": labels[:2], "b": labels[2:]}}))
    (folder / "is_a.txt").write_text(
        "".join(f"{'ab'[place > 1]} {label}\n" for place, label in enumerate(labels)) + "root a\nroot b\n"
    )
    (folder / "tree.toml").write_text(f"[root]\na = {labels[:2]}\nb = {labels[2:]}\n".replace("'", '"'))


def _mine(folder: Path) -> None:
    """A folder of one's own with all files of an evaluation, and a card of it as a profile leaves one."""
    mine = folder / MINE
    mine.mkdir()
    for name in ("features", "attributes", "tasks", "hard", "results", "hard-results"):
        shutil.copy(folder / f"{name}.parquet", mine)
    # What the tasks were drawn from, with paths that start from the folder that it is in.
    sp.Catalog.read(folder / "catalog.parquet").write(mine / "catalog.parquet")
    study = sp.Study.of(mine)
    comparison = study.compare(intervals=["sampler"], placebo=False)
    make_card_of(comparison, study.inputs, comparison.blocks[0].classifiers[0], quick=True).write(mine / "card.json")
    sp.bundle(mine, folder / "mine.zip")


def _texts(folder: Path) -> None:
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "sounding.toml").write_text(SOUNDING)
    os.mkfifo(folder / "pipe")
    in_run = EXPERIMENT.replace('folder = "out"', 'folder = "run"')
    (folder / "in-run.toml").write_text(in_run)
    sp.run(folder / "in-run.toml")
    sp.bundle(folder / "run", folder / "bundle.zip")
    for name in ("card", "old-card"):
        make_card().write(folder / f"{name}.json")
    (folder / "limits.toml").write_text('only = ["fewstab"]\nmax_gap = 5\n[axes.fewstab]\nmax_skill_lost = 10\n')


def _sounds(folder: Path) -> None:
    world = sp.worlds.SoundsWorld(foregrounds=2, backgrounds=2, items=2)
    world.write(folder / "sounds").write(folder / "sounds.parquet")
    mapping = world.mapping()
    pairs = "".join(f"'{one}' = {list(labels)}\n".replace("'", '"') for one, labels in mapping.pairs.items())
    splits = f"test = {mapping.foregrounds}\n".replace("'", '"')
    (folder / "mapping.toml").write_text(f'hard = "others"\n[pairs]\n{pairs}[splits]\n{splits}')
    rows = "".join(f"{one},{label},pair,test\n" for one, labels in mapping.pairs.items() for label in labels)
    (folder / "mapping.csv").write_text("foreground,background,pairing,split\n" + rows)
    catalog = sp.Catalog.read(folder / "sounds.parquet")
    sp.mix(catalog, mapping, folder / "mixed", sp.sounds.MixSettings(embedding=None))
    sp.mix(catalog, mapping, folder / "recipes", sp.sounds.MixSettings(embedding=None, on_the_fly=True))


def _models(folder: Path) -> None:
    from tests.features.encoders.test_onnx import convolution

    convolution(folder / "network.onnx", ["b", 3, 8, 8], ("map", "vector"))
    (folder / "network.onnx.toml").write_text(
        'size = 8\nscale = 0.5\nmean = [0, 0, 0]\nstd = 1\nlayout = "nchw"\noutput = "vector"\n'
    )
    catalog = sp.Catalog.read(folder / "catalog.parquet")
    sp.train(catalog, "protonet", output=folder / "protonet.model", val_split=None, **TRAINING)
    features = sp.encode(catalog, f"model:{folder / 'protonet.model'}")
    sp.evaluate(sp.TaskSet.read(folder / "tasks.parquet"), features, ["ncc"]).write(folder / "model-results.parquet")
    with contextlib.suppress(TrainingFailed):  # the checkpoint of the first epoch is kept
        sp.train(
            catalog, "protonet", output=folder / "failed.model", val_split=None, lr=1e30, **{**TRAINING, "epochs": 2}
        )


def _kept(folder: Path) -> None:
    """What commands keep for the next time: a segment of features, decoded items, a log of a server's answers."""
    catalog, tasks = sp.Catalog.read(folder / "catalog.parquet"), sp.TaskSet.read(folder / "tasks.parquet")
    with sp.Runtime(workers=1, cache=folder / KEPT, progress=False):
        sp.encode(catalog, "pixels(size=2)")
        model = sp.Model.read(folder / "protonet.model")
        sp.evaluate(tasks, model=model, catalog=catalog, methods=["finetune(steps=1)"])
    (segment,), (items,) = ((folder / KEPT).glob(f"{part}/**/*.*") for part in ("features", "items"))
    (folder / "segment.parquet").write_bytes(segment.read_bytes())
    (folder / "items.npy").write_bytes(items.read_bytes())
    with chat_server() as server:
        log = folder / "answers.jsonl"
        sp.evaluate(tasks, catalog=catalog, methods=[f"chat(model='m', url='{server.url}', log='{log}')"])
    said = {"role": "assistant", "content": "a small bird near the water"}
    (folder / "answer.json").write_text(json.dumps({"choices": [{"message": said}]}))
