"""Benchmark of a bundle, run on the user's own encoder.

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
from shotproof.core.storage.files import path_exists
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
from shotproof.pipeline.steps.steps import Log, read_manifest
from shotproof.pipeline.study import run

UNPACKED = "bundle"  # subfolder of the output folder for the files of the bundle


def run_bundle(
    bundle: str | Path,
    root: str | Path | None = None,
    *,
    encoder: str,
    output: str | Path,
    method: str | None = None,
    trust: Trust = False,
    verbose: bool = False,
    log: Log = lambda line: None,
    runtime: Runtime | None = None,
) -> Profile:
    """Run the benchmark of a bundle on an encoder, with the same task sets, and write the robustness card.

    Args:
        bundle: file written by `bundle`; it is verified first
        root: data folder, which the paths of the bundle's catalog start from; not needed with `file:FEATURES`
        encoder: encoder of the classifier: a name, `model:FILE` or `file:FEATURES`
        output: folder to write
        method: method of the classifier, by default the bundle's first; the bundle's other methods are baselines
        trust: whether code that the bundle names may be imported and servers contacted, or which ones, as listed by
            `NotTrusted`. Whatever `encoder` and `method` name is trusted
        verbose: report every file
        log: called with one line per step
        runtime: runtime settings

    Returns:
        The card, and its folder.

    Raises:
        NotTrusted: the bundle names code or a server that is not trusted; nothing was written.
        InputError: the bundle does not match its manifest, items are missing from the data, or the folder belongs to
            something else; nothing was written.

    Example:
        >>> run_bundle("birds.zip", "CUB_200_2011/images", encoder="lite0", output="mine")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: bundle birds.zip does not exist
    """
    folder = Path(output)
    check_output(folder, folder=True)
    typed_by_user = agreed_by_typing(lambda: encoders.make(encoder))
    if method is not None:
        method_spelling = method_from(folder, method)
        typed_by_user += agreed_by_typing(lambda: make_method(method_spelling, folder=folder))
    trusted: Trust = trust is True or [*(trust or ()), *typed_by_user]
    with Bundle.unpacked(bundle) as (manifest, files):
        with trusting(trusted):
            for spelling in manifest.methods:
                make_method(spelling)  # also rejects files and servers, which experiments may name
            content = _build_tables(manifest, folder, root, encoder, method)
            planned_experiment = Experiment.of(content, folder)
            takes_items = not isinstance(encoders.make(encoder), FeatureFile)
        made_by = f"bundle {manifest.name} ({manifest.digest})"
        Owner.of(planned_experiment, made_by).require(read_manifest(folder).owner, folder)
        if takes_items:
            _require_items(manifest, files, root)
        check_replaceable(folder / UNPACKED, [MANIFEST], "one with an earlier bundle")
        with whole_folder(folder / UNPACKED) as unpacked_folder:  # replaces the files of an earlier bundle
            shutil.copytree(files, unpacked_folder, dirs_exist_ok=True)
    with trusting(trusted):
        experiment = Experiment.of(content, folder)  # again: paths through the folder now exist
    write_text(folder / EXPERIMENT_FILE, experiment_text(content, f"{manifest.name}, made from {Path(bundle).name}."))
    bundled_card = next((Card.read(folder / UNPACKED / name) for name in manifest.names("card")), Card())
    study = run(
        experiment,
        trust=trusted,
        quick=bundled_card.quick,
        made_by=made_by,
        verbose=verbose,
        log=log,
        runtime=runtime,
    )
    return write_card(experiment, study, missing=bundled_card.missing, quick=bundled_card.quick)


def _build_tables(
    manifest: Bundle, folder: Path, root: str | Path | None, encoder: str, method: str | None
) -> dict[str, Any]:
    """Build the tables of the experiment from the files of the bundle and the user's choices."""
    catalog = {"file": f"{UNPACKED}/{manifest.names('catalog')[0]}"}
    attribute_files = {Path(name).stem: f"{UNPACKED}/{name}" for name in manifest.names("attributes")}
    user_methods = [] if method is None else [method_from(folder, method)]
    return {
        "catalog": {**catalog, **({} if root is None else {"root": path_from(folder, Path(root))})},
        **({"attributes": {"files": attribute_files}} if attribute_files else {}),
        "features": {"encoders": [spelling_from(folder, encoders.make(encoder))]},
        "tasks": {"files": [f"{UNPACKED}/{name}" for name in manifest.names("tasks")]},
        "evaluate": {"methods": list(dict.fromkeys([*user_methods, *manifest.methods]))},
        "output": {
            **{"folder": ".", "title": f"{manifest.name}: {encoder}", "metric": manifest.metric},
            **{"intervals": list(manifest.intervals), "projection": "none"},
        },
    }


def _require_items(manifest: Bundle, files: Path, root: str | Path | None) -> None:
    """Reject a data folder that lacks items, before anything is written."""
    catalog = Catalog.read(files / manifest.names("catalog")[0])
    paths = [path for column in catalog.path_columns for path in catalog.table.column(column).to_pylist() if path]
    expected = (
        f"the folder '{manifest.paths_from}' of {manifest.name}, which contains e.g. '{paths[0] if paths else ''}'"
    )
    if root is None:
        raise InputError(f"expected the data (--root), {expected}")
    missing = [path for path in dict.fromkeys(paths) if not path_exists(Path(root, path))]
    if missing:
        raise InputError(
            f"{root} lacks {len(missing):,} of {len(set(paths)):,} items, e.g. '{missing[0]}': expected {expected}"
        )
