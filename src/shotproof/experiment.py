"""The file that describes a whole experiment: TOML, every key checked, every path relative to the file.

[catalog]
root = "birds/"                # or: file = "catalog.parquet"
layout = "folder"
splits = "splits.csv"

[attributes]
detectors = ["photometric", { name = "captions", file = "captions.csv" }]

[features]
encoders = ["lite0", "pixels"]

[tasks]
split = "test"
way = 5
shots = [1, 5]
query = 15
tasks = 600
seed = 0
samplers = ["random", "fewstab"]  # or with options: { name = "hardest", encoder = "lite0", like = "random" }

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]

[output]
folder = "birds-results"
intervals = ["sampler", "images"]
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.catalog.layout import read_layout
from shotproof.errors import InputError, did_you_mean
from shotproof.tables import write_text

_SECTIONS = {
    "catalog": {"root", "file", "layout", "splits"},
    "attributes": {"detectors", "file"},
    "features": {"encoders", "transforms", "device", "batch_size", "workers", "cache"},
    "tasks": {"split", "way", "shots", "query", "tasks", "seed", "samplers", "workers"},
    "evaluate": {"methods", "device"},
    "output": {"folder", "title", "intervals"},
}
_FILE_OPTIONS = ("file", "model", "splits", "root", "cache", "class_distances")  # values that may be paths

Named = tuple[str, dict[str, Any]]

_OF_A_FOLDER = """\
# Made for {root}. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew.

[catalog]
root = {root}
layout = "folder"

[attributes]
detectors = ["photometric"]

[features]
encoders = ["lite0"]

[tasks]
{split}way = 5
shots = [1, 5]
query = 15
tasks = 600
seed = 0
samplers = ["random", "fewstab"]

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]

[output]
folder = "."
"""


@dataclass(frozen=True)
class Experiment:
    """A whole experiment. Named things are pairs of a name and its options."""

    catalog: dict[str, Any]
    attributes_file: Path | None
    detectors: list[Named]
    encoders: list[str]
    transforms: list[str]
    encode_settings: dict[str, Any]
    split: str | None
    way: int
    shots: list[int]
    query: int
    tasks: int | None
    seed: int
    workers: int
    samplers: list[Named]
    methods: list[str]
    device: str | None
    folder: Path
    title: str | None
    intervals: list[str]

    @classmethod
    def read(cls, path: str | Path) -> Experiment:
        """Read and check the file; nothing is run."""
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(f"experiment file {path} does not exist") from error
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"experiment file {path}: {error}") from error
        _check_keys(content, path)
        read = _Reader(content, path)
        settings = content.get("features", {}).items()
        encode_settings = {key: value for key, value in settings if key not in ("encoders", "transforms")}
        if "cache" in encode_settings:
            encode_settings["cache"] = path.parent / str(encode_settings["cache"])
        title = read.value("output", "title", str, None)
        attributes_file = read.value("attributes", "file", str, None)
        experiment = cls(
            catalog=_with_paths(content["catalog"], path.parent),
            attributes_file=None if attributes_file is None else path.parent / attributes_file,
            detectors=read.named("attributes", "detectors", []),
            encoders=read.value("features", "encoders", list, ["lite0"]),
            transforms=read.value("features", "transforms", list, []),
            encode_settings=encode_settings,
            split=read.value("tasks", "split", str, None),
            way=read.value("tasks", "way", int, 5),
            shots=read.value("tasks", "shots", list, [1, 5]),
            query=read.value("tasks", "query", int, 15),
            tasks=read.value("tasks", "tasks", int, None),
            seed=read.value("tasks", "seed", int, 0),
            workers=read.value("tasks", "workers", int, 1),
            samplers=read.named("tasks", "samplers", ["random", "fewstab"]),
            methods=read.value("evaluate", "methods", list, ["ncc", "cosine", "logistic", "ridge", "knn"]),
            device=read.value("evaluate", "device", str, None),
            folder=path.parent / read.value("output", "folder", str, f"{path.stem}-results"),
            title=title,
            intervals=read.value("output", "intervals", list, ["sampler"]),
        )
        experiment._check(path)
        return experiment

    def _check(self, path: Path) -> None:
        if ("root" in self.catalog) == ("file" in self.catalog):
            raise InputError(f"{path}, [catalog]: expected either root (a data folder) or file (a catalog)")
        if self.detectors and self.attributes_file is not None:
            raise InputError(f"{path}, [attributes]: expected either detectors or file, not both")
        for key, wanted, values in (
            ("shots", int, self.shots),
            ("encoders", str, self.encoders),
            ("methods", str, self.methods),
            ("intervals", str, self.intervals),
        ):
            if not values or not all(type(value) is wanted for value in values):
                raise InputError(f"{path}: {key} must be a list of {wanted.__name__}, with at least one, not {values}")


def experiment_of_folder(root: Path, path: Path) -> None:
    """Write the experiment that anybody would begin with on a folder of images; one that is there already stays."""
    if path.exists():
        return
    splits = read_layout(root, "folder").splits
    if len(splits) > 1 and "test" not in splits:
        raise InputError(f"{root} has the splits {', '.join(splits)} and none called test: write an experiment file")
    split = 'split = "test"\n' if len(splits) > 1 else ""
    relative = os.path.relpath(root.resolve(), path.parent.resolve())
    write_text(path, _OF_A_FOLDER.format(root=json.dumps(relative), split=split))


@dataclass(frozen=True)
class _Reader:
    content: Mapping[str, Any]
    path: Path

    def value(self, section: str, key: str, kind: type, default: Any) -> Any:
        value = self.content.get(section, {}).get(key, default)
        if value is not default and type(value) is not kind:
            raise InputError(f"{self.path}, [{section}]: {key} must be {kind.__name__}, not {value!r}")
        return value

    def named(self, section: str, key: str, default: list[str]) -> list[Named]:
        """A list of names, or of tables with a `name` and options."""
        found: list[Named] = []
        for entry in self.value(section, key, list, default):
            if isinstance(entry, str):
                found.append((entry, {}))
            elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
                options = {option: value for option, value in entry.items() if option != "name"}
                found.append((entry["name"], _with_paths(options, self.path.parent)))
            else:
                raise InputError(
                    f'{self.path}, [{section}]: {key} has {entry!r}, expected "NAME" or {{ name = "NAME", ... }}'
                )
        return found


def _check_keys(content: Mapping[str, Any], path: Path) -> None:
    for section, values in content.items():
        if section not in _SECTIONS:
            raise InputError(f"{path}: unknown section [{section}]{did_you_mean(section, _SECTIONS)}")
        if not isinstance(values, dict):
            raise InputError(f"{path}: {section} must be a section, [{section}]")
        # A catalog's further keys are the layout's own options; the layout refuses what it does not know.
        for key in values if section != "catalog" else ():
            if key not in _SECTIONS[section]:
                raise InputError(f"{path}, [{section}]: unknown key '{key}'{did_you_mean(key, _SECTIONS[section])}")
    if "catalog" not in content:
        raise InputError(f"{path}: expected a section [catalog] with root or file")


def _with_paths(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options whose values name files that exist beside the experiment's file, made paths from it."""
    made = dict(options)
    for key in _FILE_OPTIONS:
        value = made.get(key)
        if isinstance(value, str) and (key in ("root", "file", "splits") or (folder / value).exists()):
            made[key] = str(folder / value)
    return made
