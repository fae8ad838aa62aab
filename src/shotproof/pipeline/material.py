"""Any of our files, by what it holds; and all that lies in a run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from shotproof.analysis.reevaluation.material import Material
from shotproof.analysis.similarity.similarity import Similarity
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.files import is_folder
from shotproof.core.parts import in_parts
from shotproof.core.places import absolute
from shotproof.core.trust import Trust
from shotproof.evaluation.results import Results
from shotproof.features.features import Features
from shotproof.features.transforms import Transform, transform
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.run_files import files_of, kind_of
from shotproof.stats.card.card import Card
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where one is read: it needs PyTorch

Readable = Union[
    Catalog, Attributes, Features, TaskSet, Results, Similarity, Experiment, "Model", Card, Bundle, Material
]

MODEL_SUFFIXES = (".model", ".safetensors")
_KINDS: dict[str, Any] = {
    "catalog": Catalog,
    "attributes": Attributes,
    "features": Features,
    "tasks": TaskSet,
    "results": Results,
    "similarity": Similarity,
}


def read(path: str | Path, *, trust: Trust = False) -> Readable:
    """Read a file of any kind, or a run's folder.

    Args:
        path: a catalog, attributes, features, tasks, results or similarity file, an experiment (.toml), a model
            (.model or .safetensors), a robustness card (.json), a bundle (.zip), or a folder
        trust: of an experiment or a folder, whether code that it names may be imported

    Returns:
        A `Catalog`, `Attributes`, `Features`, `TaskSet`, `Results`, `Similarity`, `Experiment`, `Model`, `Card` or
        `Bundle`; of a folder, the `Material` of its run, which `compare` and `write_report` take.

    Raises:
        InputError: there is no such file, or it is none of these.

    Example:
        >>> import tempfile, shotproof as sp
        >>> file = Path(tempfile.mkdtemp()) / "catalog.parquet"
        >>> sp.ShapesWorld(classes=2, items=3).catalog().write(file)
        >>> read(file)
        <Catalog: world of shapes, 6 items of 2 classes, splits all>
    """
    path = Path(path)
    if is_folder(path) and not in_parts(path):
        return read_material([path], trust=trust)
    if path.suffix in MODEL_SUFFIXES:
        from shotproof.models.model import Model

        return Model.read(path)
    if path.suffix == ".toml":
        return Experiment.read(path, trust)
    if path.suffix == ".json":
        return Card.read(path)
    if path.suffix == ".zip":
        return Bundle.read(path)
    found: Readable = _KINDS[kind_of(path)].read(path)
    return found


def read_material(
    paths: Iterable[str | Path],
    *,
    tasks: Sequence[str | Path] = (),
    catalogs: Sequence[str | Path] = (),
    features: Sequence[str | Path] = (),
    attributes: Sequence[str | Path] = (),
    transforms: Sequence[str | Transform] = (),
    halvings: int | None = None,
    trust: Trust = False,
) -> Material:
    """All that files and folders of runs hold.

    Args:
        paths: files of any kind, and folders of runs; of a folder, what its last run consists of
        tasks, catalogs, features, attributes: further files of these kinds
        transforms: applied to all features, so that results on transformed features find theirs
        halvings: how often the data is halved at random, for intervals that re-evaluate
        trust: whether code that the files name may be imported, and files elsewhere be read

    Raises:
        InputError: a file is not there, or not of a kind that is of use here.
    """
    paths = list(paths)
    found: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
    named = {"tasks": tasks, "catalog": catalogs, "features": features, "attributes": attributes}
    wanted: list[tuple[str | None, Path]] = [(None, file) for path in paths for file in files_of(Path(path))]
    wanted += [(kind, Path(path)) for kind, given in named.items() for path in given]
    for kind, path in wanted:
        kind = kind or kind_of(path)
        one = _KINDS[kind].read(path)
        found[kind][f"{absolute(path)}"] = one
    of = {kind: list(each.values()) for kind, each in found.items()}
    return Material(
        results=of["results"],
        tasks=of["tasks"],
        catalogs=of["catalog"],
        features=[transform(one, transforms) for one in of["features"]],
        attributes=of["attributes"],
        halvings=halvings,
        trust=trust,
        folders=list(dict.fromkeys(path if is_folder(path) else path.parent for path in map(Path, paths))),
    )
