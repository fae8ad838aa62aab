"""Every format that is read: how one of its files is damaged, and every command and reader that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fuzzing import raw, tables
from tests.fuzzing.bench import MINE
from tests.fuzzing.choices import Choices
from tests.fuzzing.commands import (
    ALONE,
    CATALOG,
    COMPARE,
    DETECT,
    ENCODE,
    EVALUATE,
    EXPLAIN,
    FEATURES,
    FROM_TABLE,
    MIX,
    OWN,
    PLAN,
    PROFILE,
    REFERENCE,
    REPORT,
    RUN,
    SAMPLE,
    SIMILARITY,
    TRAIN,
    TRANSFER,
    VERIFY,
)
from tests.fuzzing.execute import Command
from tests.fuzzing.listings import LAYOUTS, LISTED
from tests.fuzzing.mutators import (
    Mutate,
    changed_json,
    changed_listing,
    changed_manifest,
    changed_member,
    changed_onnx,
    changed_toml,
    either,
)
from tests.fuzzing.readers import adapt_again, caption, encode_again, reading, resume_training, with_kept


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


def _in(*names: str) -> dict[str, Command]:
    known: dict[str, Command] = {
        "encode": (*ENCODE, "--encoder", "pixels(size=2)"),
        "detect": (*DETECT, "--detector", "photometric"),
        "evaluate": EVALUATE,
        "evaluate items": (
            "evaluate",
            "tasks.parquet",
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
        "sample fewstab": (*SAMPLE, "attributes.parquet", "--sampler", "fewstab"),
        "sample hardest": (*SAMPLE, "features.parquet", "--sampler", "hardest"),
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
            "features.parquet",
            "--like",
            "tasks.parquet",
            *ALONE,
        ),
        "sample context": (*SAMPLE[:2], "-o", "out/tasks", *SAMPLE[4:], "--query", "1", "--sampler", "context"),
        "verify": ("share", "verify", "tasks.parquet", CATALOG, "attributes.parquet"),
        "compare": COMPARE,
        "report": REPORT,
        "explain": EXPLAIN,
        "transfer": TRANSFER,
        "plan": PLAN,
        "explain features": FEATURES,
        "explain features --against": REFERENCE,
        "similarity": SIMILARITY,
        "train": TRAIN,
        "mix": MIX,
        "run": RUN,
        "catalog check": ("catalog", CATALOG, "--check", "--stats", "-o", "out/catalog.parquet", *ALONE),
        "catalog table": FROM_TABLE,
        "detect stats": (
            "detect",
            "attributes.parquet",
            CATALOG,
            "--stats",
            "--against",
            "attributes.parquet",
        ),
    }
    return {name: known[name] for name in names}


_TABLE = either(tables.changed_table)
_NAP = (
    "nap(base='features.parquet', catalog='catalog.parquet', by='words', attributes='attributes.parquet', directions=1)"
)
_CENTERED = "center-contexts(base='features.parquet', catalog='catalog.parquet')"
_OF_CATALOG = (
    "encode",
    "detect",
    "sample",
    "sample fewstab",
    "sample hardest",
    "sample context",
    "verify",
    "compare",
    "report",
    "explain",
    "plan",
    "explain features",
    "similarity",
    "train",
    "catalog check",
    "evaluate items",
)

FORMATS: dict[str, Format] = {
    "experiment": Format(
        "experiment.toml",
        changed_toml("root", "file", "layout", "mix", "tune_on", "sets", "files", "stages", "model", "models"),
        {"run": RUN, "run --dry-run": (*RUN, "--dry-run"), "sp.read": reading("experiment.toml")},
    ),
    "experiment on sounds": Format(
        "sounding.toml",
        changed_toml("mapping", "min_audible", "gain", "dial", "embedding"),
        {"run": ("run", "sounding.toml", *ALONE)},
    ),
    "catalog": Format(
        CATALOG,
        _TABLE,
        {**_in(*_OF_CATALOG), "evaluate centered": (*EVALUATE, "-t", _CENTERED), "sp.read": reading(CATALOG)},
    ),
    "catalog of sounds": Format("sounds.parquet", either(tables.changed_table, tables.with_paths), {"mix": MIX}),
    "catalog of recipes": Format(
        "recipes/catalog.parquet",
        either(tables.changed_table, tables.with_paths),
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
        {
            **_in("sample fewstab", "verify", "report", "explain", "detect stats"),
            "evaluate projected": (*EVALUATE, "-t", _NAP),
            "sp.read": reading("attributes.parquet"),
        },
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
                "explain features",
                "explain features --against",
                "similarity",
            ),
            "encode": (*ENCODE, "--encoder", "file:features.parquet"),
            "verify": (*VERIFY, "features.parquet"),
            "evaluate centered": (*EVALUATE, "-t", "center(base='features.parquet')"),
            "evaluate projected": (*EVALUATE, "-t", _NAP),
            "sp.read": reading("features.parquet"),
        },
    ),
    "fitted map": Format(
        "map.parquet",
        _TABLE,
        {
            "evaluate": (*EVALUATE, "-t", "fitted(file='map.parquet')"),
            "show": ("show", "map.parquet"),
            "sp.read": reading("map.parquet"),
        },
    ),
    **{
        f"features in parts, {file}": Format(
            f"features.parts/{file}",
            mutate,
            {
                "evaluate": ("evaluate", "tasks.parquet", "features.parts", *EVALUATE[3:]),
                "sp.read": reading("features.parts"),
            },
        )
        for file, mutate in (("whole.json", either(changed_json)), ("part-00000.parquet", _TABLE))
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
            **_in("evaluate", "evaluate items", "sample like", "verify", "compare", "report", "explain", "transfer"),
            "sp.read": reading("tasks.parquet"),
        },
    ),
    **{
        f"tasks, {name}": Format(
            f"{name}.parquet",
            _TABLE,
            {
                "verify": ("share", "verify", f"{name}.parquet", CATALOG, "attributes.parquet"),
                "evaluate": ("evaluate", f"{name}.parquet", *EVALUATE[2:]),
                "explain": ("explain", "hardness", f"{name}.parquet", "attributes.parquet", CATALOG),
                "sp.read": reading(f"{name}.parquet"),
            },
        )
        for name in ("planted", "published", "ood")
    },
    "results": Format(
        "results.parquet",
        _TABLE,
        {
            **_in("compare", "report", "plan"),
            "show": ("show", "results.parquet"),
            "sp.read": reading("results.parquet"),
            "verify": (*VERIFY, "features.parquet"),
            "compare --json": (*COMPARE, "--json"),
            "compare --latex": (*COMPARE, "--latex"),
        },
    ),
    "similarity": Format("similarity.parquet", _TABLE, {**_in("report"), "sp.read": reading("similarity.parquet")}),
    "run's record": Format(
        "run/run.json",
        either(changed_json),
        {
            "compare": ("compare", "run", *ALONE),
            "show": ("show", "run"),
            "report": ("compare", "run", "-o", "out/report.html", "--projection", "none", *ALONE),
            "explain": ("explain", "hardness", "run", "-o", "out/explain.html", *ALONE),
            "plan": ("explain", "plan", "run"),
            "run": ("run", "in-run.toml", *ALONE),
            "view": ("view", "run", "--export", "out/page"),
            "profile": ("profile", "run", "--split", "test", *PROFILE),
            "cure": ("cure", "run", "--tasks", "2", *ALONE),
            "bundle": ("share", "bundle", "run", "-o", "out/bundle.zip"),
            "sp.read": reading("run"),
        },
    ),
    "card": Format(
        "card.json",
        either(changed_json),
        {
            "show": ("show", "card.json"),
            "gate": ("gate", "card.json", "--max-gap", "5", "--max-skill-lost", "10"),
            "gate --against": ("gate", "old-card.json", "--against", "card.json"),
            "verify": ("share", "verify", "card.json", "tasks.parquet", "features.parquet"),
            "sp.read": reading("card.json"),
        },
    ),
    "limits": Format(
        "limits.toml", changed_toml("axes", "only"), {"gate": ("gate", "card.json", "--limits", "limits.toml")}
    ),
    "bundle": Format(
        "bundle.zip",
        either(changed_manifest),
        {
            "verify": ("share", "verify", "bundle.zip"),
            "show": ("show", "bundle.zip"),
            "run": ("run", "bundle.zip", *OWN),
            "sp.read": reading("bundle.zip"),
        },
    ),
    "bundle's files": Format(
        "mine.zip",
        changed_member,
        {
            "verify": ("share", "verify", "mine.zip"),
            "show": ("show", "mine.zip"),
            "run": ("run", "mine.zip", *OWN),
            "sp.read": reading("mine.zip"),
        },
    ),
    **{
        f"folder with a card, {file}": Format(
            f"{MINE}/{file}",
            either(changed_json) if file == "card.json" else _TABLE,
            {
                "verify": ("share", "verify", MINE),
                "verify --sample": ("share", "verify", MINE, "--sample", "2"),
                "compare": ("compare", MINE, "--halvings", "2", *ALONE),
                "report": ("compare", MINE, "-o", "out/report.html", "--projection", "none", *ALONE),
                "explain": ("explain", "hardness", MINE, "-o", "out/explain.html", *ALONE),
                "plan": ("explain", "plan", MINE),
                "view": ("view", MINE, "--export", "out/page"),
                "bundle": ("share", "bundle", MINE, "-o", "out/bundle.zip"),
                "leaderboard": ("share", "leaderboard", MINE, "-o", "out/site"),
                "gate": ("gate", MINE, "--max-gap", "5", "--axis", "hardest"),
                "cure": ("cure", MINE, "--tasks", "2", *ALONE),
                "sp.read": reading(MINE),
            },
        )
        for file in ("card.json", "catalog.parquet", "features.parquet", "hard.parquet", "hard-results.parquet")
    },
    "captions, JSON lines": Format(
        "captions.jsonl",
        either(raw.changed_json_lines),
        {
            "detect": (*DETECT, "--detector", "captions(file='captions.jsonl')"),
            "detect chunks": (*DETECT, "--detector", "captions(file='captions.jsonl', words='chunks')"),
        },
    ),
    "captions, CSV": Format(
        "captions.csv", either(raw.changed_csv), {"detect": (*DETECT, "--detector", "captions(file='captions.csv')")}
    ),
    "captions, Parquet": Format(
        "captions.parquet", _TABLE, {"detect": (*DETECT, "--detector", "captions(file='captions.parquet')")}
    ),
    "annotations": Format("annotations.csv", either(raw.changed_csv), {"run": RUN}),
    "annotations, wide": Format(
        "wide.csv", either(raw.changed_csv), {"detect": (*DETECT, "--detector", "table(file='wide.csv')")}
    ),
    "table of items": Format("table.csv", either(raw.changed_csv), {"catalog": FROM_TABLE}),
    "splits": Format(
        "splits.csv",
        either(raw.changed_csv),
        {"run": RUN, "catalog": ("catalog", "images", "--splits", "splits.csv", "-o", "out/catalog.parquet")},
    ),
    "names": Format(
        "names.csv",
        either(raw.changed_csv),
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
            ("distances.csv", either(raw.changed_csv)),
            ("class-attributes.csv", either(raw.changed_csv)),
            ("tree.csv", either(raw.changed_csv)),
            ("tree.json", either(changed_json)),
            ("tree.toml", changed_toml()),
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
            ("tree.csv", either(raw.changed_csv)),
            ("tree.json", either(changed_json)),
            ("tree.toml", changed_toml()),
            ("is_a.txt", raw.damaged),
        )
    },
    "mapping, TOML": Format(
        "mapping.toml", changed_toml("pairs", "hard", "splits"), {"mix": MIX, "run": ("run", "sounding.toml", *ALONE)}
    ),
    "mapping, CSV": Format(
        "mapping.csv", either(raw.changed_csv), {"mix": (*MIX[:2], "--mapping", "mapping.csv", *MIX[4:])}
    ),
    "mixing's record": Format("mixed/mix.json", either(changed_json), {"mix": (*MIX[:-5], "-o", "mixed", *ALONE)}),
    "arrays, npy": Format(
        "features.npy", either(raw.changed_npy), {"encode": (*ENCODE, "--encoder", "file:features.npy")}
    ),
    "arrays, npz": Format("features.npz", either(raw.changed_npz), {"run": RUN}),
    "arrays, npz of a catalog": Format(
        "items.npz",
        either(raw.changed_npz),
        {
            "encode": (*ENCODE, "--encoder", "file:items.npz"),
            "verify": (*VERIFY, "items.npz", CATALOG),
            "profile": ("profile", CATALOG, "items.npz", "--split", "test", *PROFILE[2:]),
        },
    ),
    "ONNX": Format("network.onnx", either(changed_onnx), {"encode": (*ENCODE, "--encoder", "onnx:network.onnx")}),
    "ONNX's TOML": Format(
        "network.onnx.toml",
        changed_toml("input", "front_end", "rate", "seconds", "size"),
        {"encode": (*ENCODE, "--encoder", "onnx:network.onnx")},
    ),
    "model": Format(
        "protonet.model",
        either(raw.changed_tensors),
        {
            "sp.read": reading("protonet.model"),
            "encode": (*ENCODE, "--encoder", "model:protonet.model"),
            **_in("evaluate items"),
            "verify": ("share", "verify", "model-results.parquet", *VERIFY[3:], "protonet.model", CATALOG),
            "train": (*TRAIN, "--from", "protonet.model"),
        },
    ),
    "checkpoint": Format("failed.model.checkpoint", either(raw.changed_tensors), {"train": resume_training}),
    "cache segment": Format(
        "segment.parquet", _TABLE, {"encode": with_kept("segment.parquet", "features", encode_again)}
    ),
    "decoded items": Format(
        "items.npy", either(raw.changed_npy), {"evaluate items": with_kept("items.npy", "items", adapt_again)}
    ),
    "log of answers": Format(
        "answers.jsonl",
        either(raw.changed_json_lines),
        {
            "evaluate": (
                *("evaluate", "tasks.parquet", CATALOG, "-o", "out/results.parquet", *ALONE, "-m"),
                "chat(model='m', url='http://127.0.0.1:9/v1', log='answers.jsonl', max_requests=0)",
            )
        },
    ),
    "answer of a server": Format("answer.json", either(changed_json), {"detect": caption}),
    **{
        f"listing, {layout}, {file}": Format(
            f"{LAYOUTS}/{layout}/{file}",
            changed_listing(file),
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
