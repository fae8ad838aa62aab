"""Every format that is read: how one of its files is damaged, and every command and reader that reads it."""

from __future__ import annotations

import io
import json
import shutil
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shotproof as sp
from tests.chat_servers import chat_server
from tests.fuzzing import raw, tables
from tests.fuzzing.bench import KEPT, TRAINING
from tests.fuzzing.choices import Choices
from tests.fuzzing.commands import (
    ALONE,
    CATALOG,
    COMPARE,
    DETECT,
    ENCODE,
    EVALUATE,
    EXPLAIN,
    FROM_TABLE,
    GEOMETRY,
    MINE,
    MIX,
    PLAN,
    PROFILE,
    REFERENCE,
    REPORT,
    RUN,
    SAMPLE,
    SIMILARITY,
    TRAIN,
    TRANSFER,
)
from tests.fuzzing.execute import Command
from tests.fuzzing.listings import LAYOUTS, LISTED
from tests.fuzzing.values import changed, json_value, to_json, to_toml, toml_value

Mutate = Callable[[bytes, Choices], bytes]


@dataclass(frozen=True)
class Format:
    """A file of the bench, how it is damaged, and what reads it: arguments, or a reader of Python."""

    file: str
    mutate: Mutate
    commands: Mapping[str, Command]

    def write(self, folder: Path, choices: Choices) -> None:
        """Damage the file."""
        path = folder / self.file
        good = path.read_bytes()
        path.write_bytes(self.mutate(good, choices))


def _either(*mutators: Mutate) -> Mutate:
    """One of these ways, or damage to the bytes themselves."""

    def mutate(content: bytes, choices: Choices) -> bytes:
        return choices.pick((*mutators, *mutators, raw.damaged))(content, choices)

    return mutate


def _toml(*keys: str) -> Mutate:
    def mutate(content: bytes, choices: Choices) -> bytes:
        document = tomllib.loads(content.decode())
        for _ in range(1 + choices.below(2)):
            document = changed(document, choices, toml_value, keys) if isinstance(document, dict) else document
        return to_toml(document).encode("utf-8", "surrogatepass")

    return _either(mutate)


def _json(content: bytes, choices: Choices) -> bytes:
    return to_json(changed(json.loads(content), choices, json_value)).encode("utf-8", "surrogatepass")


def _manifest(content: bytes, choices: Choices) -> bytes:
    """A bundle whose manifest says something else."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    members["manifest.json"] = _json(members["manifest.json"], choices)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def _read(file: str) -> Callable[[], Any]:
    return lambda: repr(sp.read(file))


def _onnx(content: bytes, choices: Choices) -> bytes:
    """A graph with other names, axes, or numbers."""
    import onnx

    model = onnx.load_from_string(content)
    action = choices.below(5)
    if action == 0:
        return content.replace(b"image", choices.pick((b"\xff\xfe\xfdaa", b"im\0ge", b"image"[::-1])))
    if action == 1:
        return content.replace(b"vector", b"\xff\xfe\xfdaaa")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    if action == 2:
        dims[choices.below(4)].dim_value = choices.pick((0, -1, 2**31, 2**40, 1, 100_000))
    elif action == 3:
        del dims[choices.below(4)]
    else:
        model.graph.input[0].type.tensor_type.elem_type = choices.below(20)
    return bytes(model.SerializeToString())


def _resume() -> None:
    out = Path("out")
    out.mkdir(exist_ok=True)
    shutil.copy("failed.model.checkpoint", out / "failed.model.checkpoint")
    with sp.Runtime(workers=1, progress=False):
        sp.train(
            sp.Catalog.read(CATALOG),
            "protonet",
            output=out / "failed.model",
            val_split=None,
            lr=1e30,
            resume=True,
            **{**TRAINING, "epochs": 2},
        )


def _with_kept(file: str, part: str, work: Callable[[sp.Runtime], Any]) -> Callable[[], None]:
    """Work with a cache in which a file of a part of it has the content of this file."""

    def command() -> None:
        cache = Path("out", KEPT)
        shutil.copytree(KEPT, cache)
        (kept,) = cache.glob(f"{part}/**/*.*")
        shutil.copy(file, kept)
        work(sp.Runtime(workers=1, cache=cache, progress=False))

    return command


def _encode_again(runtime: sp.Runtime) -> None:
    found = sp.encode(sp.Catalog.read(CATALOG), "pixels(size=2)", runtime=runtime)
    assert found.digest == sp.Features.read("features.parquet").digest, "what was kept is taken for something else"


def _adapt_again(runtime: sp.Runtime) -> None:
    data: dict[str, Any] = {"catalog": sp.Catalog.read(CATALOG), "model": sp.Model.read("protonet.model")}
    sp.evaluate(sp.TaskSet.read("tasks.parquet"), methods=["finetune(steps=1)"], runtime=runtime, **data)


def _caption() -> None:
    """All captions by a server that answers with the content of a file."""
    with chat_server() as server, sp.Runtime(workers=1, cache=None, progress=False):
        server.faults = ["raw " + Path("answer.json").read_bytes().decode("utf-8", "replace")] * 100
        sp.detect(sp.Catalog.read(CATALOG), f"endpoint(model='m', url='{server.url}', retries=0)")


def _listing_mutation(file: str) -> Mutate:
    kinds = {".csv": _either(raw.changed_csv), ".json": _either(_json)}
    return kinds.get(Path(file).suffix, raw.damaged)


def _in(*names: str) -> dict[str, Command]:
    known: dict[str, Command] = {
        "encode": (*ENCODE, "--encoder", "pixels(size=2)"),
        "detect": (*DETECT, "--detector", "photometric"),
        "evaluate": EVALUATE,
        "evaluate items": (
            "evaluate",
            "tasks.parquet",
            "--catalog",
            CATALOG,
            "--model",
            "protonet.model",
            "-m",
            "finetune(steps=1)",
            "-o",
            "out/results.parquet",
            *ALONE,
        ),
        "sample": (*SAMPLE, "--sampler", "random"),
        "sample fewstab": (*SAMPLE, "--sampler", "fewstab", "--attributes", "attributes.parquet"),
        "sample hardest": (*SAMPLE, "--sampler", "hardest", "--features", "features.parquet"),
        "sample like": (
            "sample",
            CATALOG,
            "-o",
            "out/tasks.parquet",
            "--split",
            "test",
            "--way",
            "2",
            "--shot",
            "1",
            "--query",
            "2",
            "--sampler",
            "hardest",
            "--features",
            "features.parquet",
            "--like",
            "tasks.parquet",
            *ALONE,
        ),
        "sample context": (*SAMPLE[:2], "-o", "out/tasks", *SAMPLE[4:], "--query", "1", "--sampler", "context"),
        "check": ("check", "tasks.parquet", "--catalog", CATALOG, "--attributes", "attributes.parquet"),
        "compare": COMPARE,
        "report": REPORT,
        "explain": EXPLAIN,
        "transfer": TRANSFER,
        "plan": PLAN,
        "geometry": GEOMETRY,
        "geometry reference": REFERENCE,
        "similarity": SIMILARITY,
        "train": TRAIN,
        "mix": MIX,
        "run": RUN,
        "catalog check": ("catalog", CATALOG, "--check", "--stats", "-o", "out/catalog.parquet", *ALONE),
        "catalog table": FROM_TABLE,
        "detect stats": (
            "detect",
            "attributes.parquet",
            "--catalog",
            CATALOG,
            "--stats",
            "--against",
            "attributes.parquet",
        ),
    }
    return {name: known[name] for name in names}


_TABLE = _either(tables.changed_table)
_OF_CATALOG = (
    "encode",
    "detect",
    "sample",
    "sample fewstab",
    "sample hardest",
    "sample context",
    "check",
    "compare",
    "report",
    "explain",
    "plan",
    "geometry",
    "similarity",
    "train",
    "catalog check",
    "evaluate items",
)

FORMATS: dict[str, Format] = {
    "experiment": Format(
        "experiment.toml",
        _toml("root", "file", "layout", "mix", "tune_on", "sets", "files", "stages", "model", "models"),
        {"run": RUN, "run --dry-run": (*RUN, "--dry-run"), "sp.read": _read("experiment.toml")},
    ),
    "experiment on sounds": Format(
        "sounding.toml",
        _toml("mapping", "min_audible", "gain", "dial", "embedding"),
        {"run": ("run", "sounding.toml", *ALONE)},
    ),
    "catalog": Format(CATALOG, _TABLE, {**_in(*_OF_CATALOG), "sp.read": _read(CATALOG)}),
    "catalog of sounds": Format("sounds.parquet", _either(tables.changed_table, tables.with_paths), {"mix": MIX}),
    "catalog of recipes": Format(
        "recipes/catalog.parquet",
        _either(tables.changed_table, tables.with_paths),
        {"encode": ("encode", "recipes/catalog.parquet", "-o", "out/features.parquet", "--encoder", "logmel", *ALONE)},
    ),
    "paths in catalogs": Format(
        CATALOG,
        tables.with_paths,
        _in("encode", "detect", "train", "catalog check", "report", "explain", "evaluate items"),
    ),
    "attributes": Format(
        "attributes.parquet",
        _TABLE,
        {**_in("sample fewstab", "check", "report", "explain", "detect stats"), "sp.read": _read("attributes.parquet")},
    ),
    "features": Format(
        "features.parquet",
        _TABLE,
        {
            **_in(
                "evaluate",
                "sample hardest",
                "compare",
                "report",
                "explain",
                "transfer",
                "geometry",
                "geometry reference",
                "similarity",
            ),
            "encode": (*ENCODE, "--encoder", "file:features.parquet"),
            "evaluate centered": (*EVALUATE, "-t", "center(base='features.parquet')"),
            "sp.read": _read("features.parquet"),
        },
    ),
    **{
        f"features in parts, {file}": Format(
            f"features.parts/{file}",
            mutate,
            {
                "evaluate": ("evaluate", "tasks.parquet", "-f", "features.parts", *EVALUATE[4:]),
                "sp.read": _read("features.parts"),
            },
        )
        for file, mutate in (("whole.json", _either(_json)), ("part-00000.parquet", _TABLE))
    },
    **{
        f"archive, {kind}": Format(
            f"images.{kind}",
            raw.damaged,
            {"catalog check": ("catalog", f"images.{kind}", "--check", "-o", "out/catalog.parquet", *ALONE)},
        )
        for kind in ("zip", "tar")
    },
    "texts": Format("texts.parquet", _TABLE, _in("similarity")),
    "tasks": Format(
        "tasks.parquet",
        _TABLE,
        {
            **_in("evaluate", "evaluate items", "sample like", "check", "compare", "report", "explain", "transfer"),
            "sp.read": _read("tasks.parquet"),
        },
    ),
    "results": Format(
        "results.parquet",
        _TABLE,
        {
            **_in("compare", "report", "plan"),
            "sp.read": _read("results.parquet"),
            "check": ("check", "results.parquet", "--tasks", "tasks.parquet", "--features", "features.parquet"),
            "compare --json": (*COMPARE, "--json"),
            "compare --latex": (*COMPARE, "--latex"),
        },
    ),
    "similarity": Format("similarity.parquet", _TABLE, {**_in("report"), "sp.read": _read("similarity.parquet")}),
    "run's record": Format(
        "run/run.json",
        _either(_json),
        {
            "compare": ("compare", "run", *ALONE),
            "report": ("report", "run", "-o", "out/report.html", "--projection", "none", *ALONE),
            "explain": ("explain", "run", "-o", "out/explain.html", *ALONE),
            "plan": ("plan", "run"),
            "run": ("run", "in-run.toml", *ALONE),
            "view": ("view", "run", "--export", "out/page"),
            "profile": ("profile", "run", "--split", "test", *PROFILE),
            "bundle": ("bundle", "run", "-o", "out/bundle.zip"),
            "sp.read": _read("run"),
        },
    ),
    "card": Format(
        "card.json",
        _either(_json),
        {
            "gate": ("gate", "card.json", "--max-gap", "5", "--max-skill-lost", "0.1"),
            "gate --against": ("gate", "old-card.json", "--against", "card.json"),
            "check": ("check", "card.json", "--tasks", "tasks.parquet"),
            "leaderboard": ("leaderboard", ".", "-o", "out/site"),
            "sp.read": _read("card.json"),
        },
    ),
    "limits": Format("limits.toml", _toml("axes", "only"), {"gate": ("gate", "card.json", "--limits", "limits.toml")}),
    "bundle": Format(
        "bundle.zip",
        _either(_manifest),
        {
            "bundle --verify": ("bundle", "--verify", "bundle.zip"),
            "run": ("run", "bundle.zip", *MINE),
            "sp.read": _read("bundle.zip"),
        },
    ),
    "captions, JSON lines": Format(
        "captions.jsonl",
        _either(raw.changed_json_lines),
        {
            "detect": (*DETECT, "--detector", "captions(file='captions.jsonl')"),
            "detect chunks": (*DETECT, "--detector", "captions(file='captions.jsonl', words='chunks')"),
        },
    ),
    "captions, CSV": Format(
        "captions.csv", _either(raw.changed_csv), {"detect": (*DETECT, "--detector", "captions(file='captions.csv')")}
    ),
    "captions, Parquet": Format(
        "captions.parquet", _TABLE, {"detect": (*DETECT, "--detector", "captions(file='captions.parquet')")}
    ),
    "annotations": Format("annotations.csv", _either(raw.changed_csv), {"run": RUN}),
    "annotations, wide": Format(
        "wide.csv", _either(raw.changed_csv), {"detect": (*DETECT, "--detector", "table(file='wide.csv')")}
    ),
    "table of items": Format("table.csv", _either(raw.changed_csv), {"catalog": FROM_TABLE}),
    "splits": Format(
        "splits.csv",
        _either(raw.changed_csv),
        {"run": RUN, "catalog": ("catalog", "images", "--splits", "splits.csv", "-o", "out/catalog.parquet")},
    ),
    "names": Format(
        "names.csv",
        _either(raw.changed_csv),
        {"run": RUN, "catalog": ("catalog", "images", "--names", "names.csv", "-o", "out/catalog.parquet")},
    ),
    "names, text": Format(
        "names.txt",
        raw.damaged,
        {"catalog": ("catalog", "images", "--names", "names.txt", "-o", "out/catalog.parquet")},
    ),
    **{
        f"class distances, {file}": Format(
            file, mutate, {"sample": (*SAMPLE, "--sampler", f"semantic(class_distances='{file}')")}
        )
        for file, mutate in (
            ("distances.csv", _either(raw.changed_csv)),
            ("class-attributes.csv", _either(raw.changed_csv)),
            ("tree.csv", _either(raw.changed_csv)),
            ("tree.json", _either(_json)),
            ("tree.toml", _toml()),
        )
    },
    **{
        f"hierarchy, {file}": Format(
            file,
            mutate,
            {
                "sample": (
                    "sample",
                    CATALOG,
                    "-o",
                    "out/tasks.parquet",
                    "--split",
                    "test",
                    "--tasks",
                    "2",
                    "--sampler",
                    f"meta-dataset(hierarchy='{file}')",
                    *ALONE,
                )
            },
        )
        for file, mutate in (
            ("tree.csv", _either(raw.changed_csv)),
            ("tree.json", _either(_json)),
            ("tree.toml", _toml()),
            ("is_a.txt", raw.damaged),
        )
    },
    "mapping, TOML": Format(
        "mapping.toml", _toml("pairs", "hard", "splits"), {"mix": MIX, "run": ("run", "sounding.toml", *ALONE)}
    ),
    "mapping, CSV": Format(
        "mapping.csv", _either(raw.changed_csv), {"mix": (*MIX[:2], "--mapping", "mapping.csv", *MIX[4:])}
    ),
    "mixing's record": Format("mixed/mix.json", _either(_json), {"mix": (*MIX[:-5], "-o", "mixed", *ALONE)}),
    "arrays, npy": Format(
        "features.npy", _either(raw.changed_npy), {"encode": (*ENCODE, "--encoder", "file:features.npy")}
    ),
    "arrays, npz": Format("features.npz", _either(raw.changed_npz), {"run": RUN}),
    "arrays, npz of a catalog": Format(
        "items.npz", _either(raw.changed_npz), {"encode": (*ENCODE, "--encoder", "file:items.npz")}
    ),
    "ONNX": Format("network.onnx", _either(_onnx), {"encode": (*ENCODE, "--encoder", "onnx:network.onnx")}),
    "ONNX's TOML": Format(
        "network.onnx.toml",
        _toml("input", "front_end", "rate", "seconds", "size"),
        {"encode": (*ENCODE, "--encoder", "onnx:network.onnx")},
    ),
    "model": Format(
        "protonet.model",
        _either(raw.changed_tensors),
        {
            "sp.read": _read("protonet.model"),
            "encode": (*ENCODE, "--encoder", "model:protonet.model"),
            **_in("evaluate items"),
            "train": (*TRAIN, "--from", "protonet.model"),
        },
    ),
    "checkpoint": Format("failed.model.checkpoint", _either(raw.changed_tensors), {"train --resume": _resume}),
    "cache segment": Format(
        "segment.parquet", _TABLE, {"encode": _with_kept("segment.parquet", "features", _encode_again)}
    ),
    "decoded items": Format(
        "items.npy", _either(raw.changed_npy), {"evaluate items": _with_kept("items.npy", "items", _adapt_again)}
    ),
    "log of answers": Format(
        "answers.jsonl",
        _either(raw.changed_json_lines),
        {
            "evaluate": (
                *("evaluate", "tasks.parquet", "--catalog", CATALOG, "-o", "out/results.parquet", *ALONE, "-m"),
                "chat(model='m', url='http://127.0.0.1:9/v1', log='answers.jsonl', max_requests=0)",
            )
        },
    ),
    "answer of a server": Format("answer.json", _either(_json), {"detect": _caption}),
    **{
        f"listing, {layout}, {file}": Format(
            f"{LAYOUTS}/{layout}/{file}",
            _listing_mutation(file),
            {"catalog": ("catalog", f"{LAYOUTS}/{layout}", "--layout", layout, "-o", "out/catalog.parquet")},
        )
        for layout, file in [(name, file) for name, listed in LISTED.items() for file in listed.listings]
    },
    "image": Format(
        "images/polygon-3/0000.png", raw.damaged, _in("encode", "detect", "catalog check", "train", "report")
    ),
    "sound": Format(
        "sounds/low-bell/0000.flac",
        raw.damaged,
        {"mix": MIX, "encode": ("encode", "sounds.parquet", "-o", "out/f.parquet", "--encoder", "logmel", *ALONE)},
    ),
}
