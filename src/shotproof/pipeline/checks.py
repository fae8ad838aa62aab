"""Checks of an experiment against its data, run before anything is written (and in dry runs)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shotproof.analysis.projection import check_projection
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import can_be_changed
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Component
from shotproof.core.runtime.devices import choose_devices
from shotproof.core.storage.places import url_of
from shotproof.core.tables import check_output
from shotproof.evaluation.backends import require_unseen
from shotproof.features.encoder import Encoder
from shotproof.features.encoders.file import FeatureFile
from shotproof.features.encoders.staged import StagedEncoder
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.tasks.changed import ChangingSampler
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.random import Random

if TYPE_CHECKING:
    from shotproof.models.model import Model

FIRST_TASKS = 100  # drawn to find out whether they have items that cannot be changed


@contextlib.contextmanager
def error_location(experiment: Experiment, location: str) -> Iterator[None]:
    """Add the location in the experiment file to the message of each InputError raised in the block."""
    try:
        yield
    except InputError as error:
        prefix = f"{experiment.file}, " if experiment.file else ""
        raise error.with_prefix(f"{prefix}{location}: ") from error


def check_surroundings(experiment: Experiment, device: str | None) -> None:
    """Check everything that needs no data: output folder, device, files named in options, methods that need local maps.

    Args:
        experiment: experiment to run
        device: device for networks

    Raises:
        InputError: a check failed; the message names the location in the file.
    """
    with error_location(experiment, "[output], folder"):
        check_output(experiment.folder, folder=True)
        if url_of(experiment.folder):
            raise InputError("expected a local folder: a run locks it and reads it often")
    if device not in (None, "cpu"):  # always available, and importing PyTorch takes a second
        with error_location(experiment, "[runtime], device"):
            choose_devices(device)
    with error_location(experiment, "[output], projection"):
        check_projection(experiment.projection)
    cutter = None if experiment.masks is None else experiment.masks.settings.made_cutter
    components_by_location: dict[str, list[Component]] = {
        "[masks], cutter": [] if cutter is None else [cutter],
        "[attributes], detectors": [detector for detectors in experiment.detectors.values() for detector in detectors],
        "[features], encoders": [*experiment.encoders],
        "[features], transforms": [*experiment.transforms],
        "[tasks], samplers": [draw.sampler for draw in experiment.draws],
    }
    for location, components in components_by_location.items():
        with error_location(experiment, location):
            for component in components:
                _require_files(component)
    with error_location(experiment, "[evaluate], methods"):
        _require_maps(experiment)


def check_draws(
    experiment: Experiment, catalog: Catalog, attributes: Mapping[str, Attributes], earlier: Sequence[Draw] = ()
) -> None:
    """Check whether the data is sufficient for the tasks: splits, classes, items per class, context columns, masks.

    Args:
        experiment: experiment to run
        catalog: its data
        attributes: attributes that exist already, by the name of their set
        earlier: entries before its own, which `like` may name

    Raises:
        InputError: a check failed; the message names the location in the file.
    """
    for draw in experiment.draws:
        with error_location(experiment, "[tasks], split"):
            items = catalog.in_split(draw.split)
        for sampler in draw.sampler.sets(items).values():
            with error_location(experiment, f"[tasks], sampler '{draw.sampler}'"):
                for shot in draw.shots:
                    _check_draw(experiment, draw, sampler, items, TaskShape(draw.way, shot, draw.query), attributes)
                    if isinstance(sampler, ChangingSampler):
                        _check_changes(draw, sampler, items, shot, earlier)


def check_models(experiment: Experiment, models: Mapping[str, Model], catalog: Catalog) -> None:
    """Check whether methods can adapt the models, and whether the classes are new to the models and encoders.

    Args:
        experiment: experiment to run
        models: its models, by name
        catalog: its data

    Raises:
        InputError: a check failed; the message names the location in the file.
    """
    with error_location(experiment, "[evaluate], methods"):
        for model_source, model in zip(experiment.models, models.values(), strict=True):
            for use in experiment.uses:
                if isinstance(use.method, Adaptation) and use.applies(model_source):
                    use.method.require_model(model)
    if experiment.allow_seen:
        return
    trained_models = [("[evaluate], model", f"model '{name}'", model) for name, model in models.items()]
    model_encoders: list[Any] = [encoder for encoder in experiment.encoders if encoder.name == "model"]
    trained_models += [
        ("[features], encoders", f"the model of '{encoder}'", encoder.model) for encoder in model_encoders
    ]
    for draw in experiment.draws:
        labels = catalog.in_split(draw.split).table.column("label").unique().to_pylist()
        for location, description, model in trained_models:
            with error_location(experiment, location):
                require_unseen(labels, model.record.seen, description)


def with_stages(experiment: Experiment, catalog: Catalog) -> Experiment:
    """Return the experiment with an encoder for each requested stage, after the encoder of the full network.

    Args:
        experiment: experiment to run
        catalog: its data; its first item is used to count the stages of a network

    Raises:
        InputError: a network has fewer stages, or cannot be loaded.
    """
    if not experiment.stages:
        return experiment
    encoders: list[Encoder] = []
    with error_location(experiment, "[features], stages"):
        for encoder in experiment.encoders:
            encoders.append(encoder)
            if isinstance(encoder, StagedEncoder) and encoder.stage is None and not encoder.maps:
                count = encoder.count_stages(catalog)
                stages = range(1, count + 1) if experiment.stages == "all" else experiment.stages
                if max(stages) > count:
                    raise InputError(f"encoder '{encoder}' has {count} stages, but stage {max(stages)} is requested")
                encoders += [encoder.at(stage) for stage in stages]
    distinct = tuple(dict.fromkeys(encoders))  # a stage may also be listed as an encoder
    return replace(experiment, encoders=distinct)


def check_tuning(experiment: Experiment, models: Mapping[str, Model], catalog: Catalog) -> None:
    """Check whether learning rates can be tuned: on a separate split that is large enough and new to the models.

    Args:
        experiment: experiment to run
        models: its models, by name
        catalog: its data

    Raises:
        InputError: a check failed; the message names the location in the file.
    """
    tune_on = experiment.tune_on
    if tune_on is None:
        return
    with error_location(experiment, "[evaluate.tune_on]"):
        items = catalog.in_split(tune_on.split)
        labels = items.table.column("label").unique().to_pylist()
        for name, model in models.items():
            if not experiment.allow_seen:
                require_unseen(labels, model.record.seen, f"model '{name}'")
        for draw in experiment.draws:
            if draw.split in (None, tune_on.split):
                raise InputError(
                    f"split '{tune_on.split}' is also evaluated, by the tasks of sampler '{draw.sampler}': a learning "
                    "rate must not be chosen on the data it is evaluated on; name another split"
                )
            for shot in draw.shots:
                Random().check_sizes(items, TaskShape(draw.way, shot, draw.query))


def _check_draw(
    experiment: Experiment,
    draw: Draw,
    sampler: Sampler,
    items: Catalog,
    shape: TaskShape,
    attributes: Mapping[str, Attributes],
) -> None:
    """Bind the sampler if all of its inputs exist; otherwise check only that the classes are large enough."""
    if draw.like is not None:
        return  # its classes and sizes are those of the reference set, which is checked separately
    all_set_names = dict.fromkeys([*experiment.detectors, *experiment.attribute_files, *attributes])
    set_names = [draw.attributes] if draw.attributes is not None else list(all_set_names)
    takes_words = "attributes" in sampler.takes and bool(set_names)
    available: list[Attributes | None] = [attributes[name] for name in set_names if takes_words and name in attributes]
    if "features" in sampler.takes or (takes_words and not available):
        sampler.check_sizes(items, shape)
        return
    for attribute_set in available or [None]:
        sampler.bind(items, shape, draw.seeds[0], attributes=attribute_set)


def _check_changes(draw: Draw, sampler: ChangingSampler, items: Catalog, shot: int, earlier: Sequence[Draw]) -> None:
    """Check whether the items can be changed. If some cannot, draw the first tasks to see whether they have such items.

    Tasks that are drawn by features or attributes, which do not exist yet, are checked when they are drawn.
    """
    is_changeable = True
    for change in sampler.made_changes:
        change.require_medium(items.medium)
        is_changeable &= bool(can_be_changed(items, change).all())
    reference = draw
    while isinstance(reference.sampler, ChangingSampler):
        reference = next(entry for entry in earlier if str(entry) == reference.like)
    unchanged = next(iter(reference.sampler.sets(items).values()))
    if is_changeable or unchanged.takes:
        return
    shape = TaskShape(reference.way, shot, reference.query)
    bound = unchanged.bind(items, shape, draw.seeds[0])
    first = range(min(bound.available() or FIRST_TASKS, draw.tasks or FIRST_TASKS, FIRST_TASKS))
    sampler.bind(items, shape, draw.seeds[0], like=TaskSet(bound.draw(first))).draw(first)


def _require_files(component: Component) -> None:
    """Reject options that name a file that does not exist."""
    for option in component.options():
        value = getattr(component, option.name)
        if option.path and isinstance(value, str | Path) and not Path(value).exists():
            sibling_names = (
                [sibling.name for sibling in Path(value).parent.iterdir()] if Path(value).parent.is_dir() else []
            )
            hint = did_you_mean(Path(value).name, sibling_names) if sibling_names else ""
            raise InputError(f"{component.kind} '{component.name}': {option.name}: {value} does not exist{hint}")


def _require_maps(experiment: Experiment) -> None:
    """Reject methods that need local maps if an encoder returns vectors; feature files are not checked here."""
    vector_encoders = [
        encoder for encoder in experiment.encoders if not getattr(encoder, "maps", isinstance(encoder, FeatureFile))
    ]
    for use in experiment.uses:
        mismatch = next(
            (encoder for encoder in vector_encoders if use.method.needs == "maps" and use.applies(encoder)), None
        )
        if mismatch is not None:
            raise InputError(
                f"method '{use.method}' needs local maps, but encoder '{mismatch}' returns one vector per item: "
                "set the encoder's option maps=True"
            )
