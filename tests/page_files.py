"""Small files under the names that the documentation's Python takes as given: data, task sets, a run, a profile."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import soundfile
from PIL import Image

import shotproof as sp
from shotproof.models.objective import objectives
from shotproof.sounds.mapping import read_mapping
from tests.drawn_clips import tone
from tests.models.objectives.untrained_models import model_of

EXPERIMENT = """
[catalog]
root = "birds"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=4)"]
[tasks]
shots = [1]
tasks = 40
[evaluate]
methods = ["ncc", "ridge"]
[output]
folder = "birds-results"
"""

CURABLE = """
[catalog]
file = "shapes.parquet"
[attributes]
file = "words.parquet"
[features]
encoders = ["pixels(size=8)"]
[tasks]
split = "test"
way = 3
shots = [3]
query = 3
tasks = 60
[evaluate]
methods = ["cosine"]
[output]
folder = "birds-results"
"""


class PageFiles:
    """Makes files in a folder when a page first names them, each once, and copies them to where the page runs.

    Pages about contexts, sounds and training have other data under the same names (`catalog.parquet`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, names: Iterable[str], page: str, folder: Path) -> None:
        """Copy the files of these names to a folder, as a page has them, with the pictures that they are about."""
        for name in names:
            self.made(name, page)
            own = (page, name) in OF_PAGE
            for source in [self.folder / page] if own else [self.folder / name, self.folder / "birds"]:
                if own or source.is_dir():
                    shutil.copytree(source, folder if own else folder / source.name, dirs_exist_ok=True)
                elif source.exists():
                    shutil.copy2(source, folder)

    def made(self, name: str, page: str = "") -> Path:
        """Return the file of a name, making it first if it is not there."""
        own = (page, name) in OF_PAGE
        path = self.folder / (page if own else "") / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            with sp.runtime(workers=1, progress=False):
                (OF_PAGE[page, name] if own else FILES[name])(self, path)
        return path

    def read(self, name: str, page: str = "") -> sp.Catalog | sp.Features | sp.Attributes | sp.TaskSet | sp.Results:
        """Read the file of a name."""
        found = sp.read(self.made(f"{name}.parquet", page))
        assert isinstance(found, sp.Catalog | sp.Features | sp.Attributes | sp.TaskSet | sp.Results)
        return found


def _birds(files: PageFiles, path: Path) -> None:
    sp.worlds.ShapesWorld(classes=5, items=50, size=16).write(path)


def _archive(files: PageFiles, path: Path) -> None:
    shutil.make_archive(str(path.with_suffix("")), "zip", files.made("birds"))


def _catalog(files: PageFiles, path: Path) -> None:
    sp.read_layout(files.made("birds"), "folder").write(path)


def _masks(files: PageFiles, path: Path) -> None:
    """Write one mask for each picture: the middle of it."""
    catalog = files.read("catalog")
    assert isinstance(catalog, sp.Catalog)
    for item in catalog.items:
        file = (path / item).with_suffix(".png")
        file.parent.mkdir(parents=True, exist_ok=True)
        mask = Image.new("1", (16, 16))
        mask.paste(1, (4, 4, 12, 12))
        mask.save(file)


def _features(encoder: str, page: str = "") -> Callable[[PageFiles, Path], None]:
    return lambda files, path: sp.encode(files.read("catalog", page), encoder).write(path)


def _tasks(sampler: str, tasks: int, *inputs: str, **shape: int) -> Callable[[PageFiles, Path], None]:
    def write(files: PageFiles, path: Path) -> None:
        given = {name: files.read(name) for name in inputs}
        like = {"like": files.read("random")} if sampler == "hardest" else {"tasks": tasks, **shape}
        sp.sample(files.read("catalog"), sampler, **given, **like).write(path)

    return write


def _results(files: PageFiles, path: Path) -> None:
    sp.evaluate(files.read("random"), files.read("features"), ["ncc", "ridge"]).write(path)


def _experiment(files: PageFiles, path: Path) -> None:
    path.write_text(EXPERIMENT)


def _run(files: PageFiles, path: Path) -> None:
    files.made("birds")
    sp.run(files.made("experiment.toml"))


def _curable_run(files: PageFiles, path: Path) -> None:
    """Run an experiment on enough classes to fit a remedy on some and to confirm it on others."""
    world = sp.worlds.ShapesWorld(classes=14, train_classes=8, items=40, size=24)
    world.write(path.parent / "shapes").write(path.parent / "shapes.parquet")
    world.attributes().write(path.parent / "words.parquet")
    (path.parent / "birds.toml").write_text(CURABLE)
    sp.run(path.parent / "birds.toml")


def _profile(files: PageFiles, path: Path) -> None:
    sp.profile(files.made("birds"), path, encoder="pixels(size=4)", method="cosine", quick=True)


def _submissions(files: PageFiles, path: Path) -> None:
    path.mkdir()
    for results in files.read("pilot").by_method():
        results.write(path / f"{results.methods[0]}.parquet")


def _contexts(files: PageFiles, path: Path) -> None:
    world = sp.worlds.ContextWorld(concepts=6, figures=20, size=16)
    world.write(path.parent / "pictures").write(path)


def _split(files: PageFiles, path: Path) -> None:
    """Classes for training, some of them for validation."""
    catalog = sp.worlds.ShapesWorld(classes=12, items=24, size=16).write(path.parent / "pictures")
    labels = catalog.table.column("label").to_pylist()
    known = sorted(set(labels))
    splits = pa.array(["train" if known.index(label) < 6 else "val" for label in labels])
    place = catalog.table.schema.get_field_index("split")
    sp.Catalog(catalog.table.set_column(place, "split", splits), catalog.root, catalog.record).write(path)


def _network(files: PageFiles, path: Path) -> None:
    model_of(objectives.make("protonet"), seed=0).write(path)


def _sounds(files: PageFiles, path: Path) -> None:
    """One recording of each class that the mapping names."""
    mapping = read_mapping("esc50")
    (path / "audio").mkdir(parents=True)
    (path / "meta").mkdir()
    lines = ["filename,fold,target,category,esc10,src_file,take"]
    for number, label in enumerate(sorted({*mapping.foregrounds, *mapping.backgrounds})):
        name = f"1-{number}-A-{number}.wav"
        soundfile.write(path / "audio" / name, tone(number), 16_000)
        lines.append(f"{name},1,{number},{label},False,{number},A")
    (path / "meta" / "esc50.csv").write_text("\n".join(lines) + "\n")


Maker = Callable[[PageFiles, Path], None]
FILES: dict[str, Maker] = {
    "birds": _birds,
    "birds.zip": _archive,
    "catalog.parquet": _catalog,
    "attributes.parquet": lambda files, path: sp.detect(files.read("catalog"), "photometric").write(path),
    "features.parquet": _features("pixels(size=4)"),
    "pixels.parquet": _features("pixels(size=4)"),
    "lite0.parquet": _features("lite0"),
    "random.parquet": _tasks("random", 40, shot=5, query=10),
    "fewstab.parquet": _tasks("fewstab", 40, "attributes", shot=5, query=10),
    "hard.parquet": _tasks("hardest", 40, "features"),
    "tasks.parquet": _tasks("random", 4, way=3, shot=2, query=2),
    "pilot.parquet": _results,
    "experiment.toml": _experiment,
    "birds-results": _run,
    "birds-profile": _profile,
    "submissions": _submissions,
    "silhouettes": _masks,
    "rfs.model": _network,
    "ESC-50": _sounds,
}
OF_PAGE: dict[tuple[str, str], Maker] = {
    ("context-shift", "catalog.parquet"): _contexts,
    ("cure", "birds-results"): _curable_run,
    ("geometry", "catalog.parquet"): _contexts,
    ("own-components", "birds-results"): _curable_run,
    ("geometry", "features.parquet"): _features("pixels(size=4)", "geometry"),
    ("train", "catalog.parquet"): _split,
}
