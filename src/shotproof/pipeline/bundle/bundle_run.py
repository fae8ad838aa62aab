"""Somebody else's benchmark on one's own encoder.

run_bundle("birds.zip", "CUB_200_2011/images", encoder="lite0", output="birds-results")
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import is_there
from shotproof.core.storage.whole_files import whole_folder, write_text
from shotproof.core.tables import check_output, check_replaceable
from shotproof.core.trust import Trust, agreed_by_typing, trusting
from shotproof.features.encoder import encoders
from shotproof.features.encoders.file import FeatureFile
from shotproof.learners.method import make_method
from shotproof.pipeline.bundle.bundle import MANIFEST, Bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_text import experiment_text, method_from, path_from, spelling_from
from shotproof.pipeline.profile.profile import Profile, write_card
from shotproof.pipeline.steps.owner import EXPERIMENT_FILE, Owner
from shotproof.pipeline.steps.steps import Tell, read_manifest
from shotproof.pipeline.study import run

UNPACKED = "bundle"  # the folder, within the output's, of the bundle's own files


def run_bundle(
    bundle: str | Path,
    root: str | Path | None = None,
    *,
    encoder: str,
    output: str | Path,
    method: str | None = None,
    trust: Trust = False,
    verbose: bool = False,
    tell: Tell = lambda line: None,
    runtime: Runtime | None = None,
) -> Profile:
    """Run the benchmark of a bundle on an encoder: the same task sets, and the card of what came out.

    Args:
        bundle: a file that `bundle` has written; it is verified first
        root: the folder of the data, which the paths of the bundle's catalog start from; of `file:FEATURES` none is
            needed
        encoder: of the classifier: a name, `model:FILE` or `file:FEATURES`
        output: the folder to write
        method: of the classifier; by default the bundle's first. Its others are measured beside it
        trust: whether code that the bundle names may be imported, and servers that it names be asked; or which, as
            `NotTrusted` tells it. What `encoder` and `method` name is trusted
        verbose: tell every file, too
        tell: receives one line per step
        runtime: how to compute

    Returns:
        The card, and where it is.

    Raises:
        NotTrusted: the bundle names code, or a server, that is not trusted; nothing was written.
        InputError: the bundle is not as its manifest says, the data has not all of its items, or the folder belongs to
            something else; nothing was written.

    Example:
        >>> run_bundle("birds.zip", "CUB_200_2011/images", encoder="lite0", output="mine")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: bundle birds.zip does not exist
    """
    folder = Path(output)
    check_output(folder, folder=True)
    typed = agreed_by_typing(lambda: encoders.make(encoder))
    if method is not None:
        own = method_from(folder, method)
        typed += agreed_by_typing(lambda: make_method(own, folder=folder))
    trusted: Trust = trust is True or [*(trust or ()), *typed]
    with Bundle.unpacked(bundle) as (manifest, files):
        with trusting(trusted):
            for spelled in manifest.methods:
                make_method(spelled)  # refuses files and servers too, which an experiment may name
            content = _experiment(manifest, folder, root, encoder, method)
            planned = Experiment.of(content, folder)
            takes_items = not isinstance(encoders.make(encoder), FeatureFile)
        made_by = f"bundle {manifest.name} ({manifest.digest})"
        Owner.of(planned, made_by).require(read_manifest(folder).owner, folder)
        if takes_items:
            _require_items(manifest, files, root)
        check_replaceable(folder / UNPACKED, [MANIFEST], "one with an earlier bundle")
        with whole_folder(folder / UNPACKED) as placed:  # in place of an earlier one's
            shutil.copytree(files, placed, dirs_exist_ok=True)
    with trusting(trusted):
        experiment = Experiment.of(content, folder)  # again, now that paths through the folder lead somewhere
    write_text(folder / EXPERIMENT_FILE, experiment_text(content, f"{manifest.name}, made from {Path(bundle).name}."))
    theirs = next((Card.read(folder / UNPACKED / name) for name in manifest.names("card")), Card())
    study = run(
        experiment,
        trust=trusted,
        quick=theirs.quick,
        made_by=made_by,
        verbose=verbose,
        tell=tell,
        runtime=runtime,
    )
    return write_card(experiment, study, missing=theirs.missing, quick=theirs.quick)


def _experiment(
    manifest: Bundle, folder: Path, root: str | Path | None, encoder: str, method: str | None
) -> dict[str, Any]:
    """The tables of the experiment: the bundle's files, and what the user has named."""
    catalog = {"file": f"{UNPACKED}/{manifest.names('catalog')[0]}"}
    words = {Path(name).stem: f"{UNPACKED}/{name}" for name in manifest.names("attributes")}
    own = [] if method is None else [method_from(folder, method)]
    return {
        "catalog": {**catalog, **({} if root is None else {"root": path_from(folder, Path(root))})},
        **({"attributes": {"files": words}} if words else {}),
        "features": {"encoders": [spelling_from(folder, encoders.make(encoder))]},
        "tasks": {"files": [f"{UNPACKED}/{name}" for name in manifest.names("tasks")]},
        "evaluate": {"methods": list(dict.fromkeys([*own, *manifest.methods]))},
        "output": {
            **{"folder": ".", "title": f"{manifest.name}: {encoder}", "metric": manifest.metric},
            **{"intervals": list(manifest.intervals), "projection": "none"},
        },
    }


def _require_items(manifest: Bundle, files: Path, root: str | Path | None) -> None:
    """Refuse a folder that has not all items, before anything is written."""
    catalog = Catalog.read(files / manifest.names("catalog")[0])
    paths = [path for column in catalog.path_columns for path in catalog.table.column(column).to_pylist() if path]
    wanted = f"the folder '{manifest.paths_from}' of {manifest.name}, that has e.g. '{paths[0] if paths else ''}'"
    if root is None:
        raise InputError(f"expected the data (--root), {wanted}")
    missing = [path for path in dict.fromkeys(paths) if not is_there(Path(root, path))]
    if missing:
        raise InputError(
            f"{root} lacks {len(missing):,} of {len(set(paths)):,} items, e.g. '{missing[0]}': expected {wanted}"
        )
