"""What an experiment asks for, held against its data before the first file is made: in a dry run as well."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shotproof.analysis.projection import check_projection
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.options import Component
from shotproof.core.runtime.devices import choose_devices
from shotproof.core.storage.places import url_of
from shotproof.core.tables import check_output
from shotproof.evaluation.grounds import require_unseen
from shotproof.features.encoder import Encoder
from shotproof.features.encoders.file import FeatureFile
from shotproof.features.encoders.staged import StagedEncoder
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import TaskShape
from shotproof.tasks.uniform.random import Random

if TYPE_CHECKING:
    from shotproof.models.model import Model


@contextlib.contextmanager
def placed(experiment: Experiment, place: str) -> Iterator[None]:
    """Tell errors within it with the place in the experiment's file."""
    try:
        yield
    except InputError as error:
        start = f"{experiment.file}, " if experiment.file else ""
        raise error.placed(f"{start}{place}: ") from error


def check_surroundings(experiment: Experiment, device: str | None) -> None:
    """What needs no data: the output's folder, the device, files that options name, methods on local maps.

    Args:
        experiment: what is to be run
        device: where networks will run

    Raises:
        InputError: something cannot be; the message says where in the file.
    """
    with placed(experiment, "[output], folder"):
        check_output(experiment.folder, folder=True)
        if url_of(experiment.folder):
            raise InputError("expected a folder on disk: a run locks it, and looks at it often")
    if device not in (None, "cpu"):  # these are always there, and to ask PyTorch takes a second
        with placed(experiment, "[runtime], device"):
            choose_devices(device)
    with placed(experiment, "[output], projection"):
        check_projection(experiment.projection)
    chosen: dict[str, list[Component]] = {
        "[attributes], detectors": [one for listed in experiment.detectors.values() for one in listed],
        "[features], encoders": [*experiment.encoders],
        "[features], transforms": [*experiment.transforms],
        "[tasks], samplers": [draw.sampler for draw in experiment.draws],
    }
    for place, components in chosen.items():
        with placed(experiment, place):
            for component in components:
                _require_files(component)
    with placed(experiment, "[evaluate], methods"):
        _require_maps(experiment)


def check_draws(experiment: Experiment, catalog: Catalog, attributes: Mapping[str, Attributes]) -> None:
    """Whether the data can give the tasks: splits, classes, items per class, columns of contexts.

    Args:
        experiment: what is to be run
        catalog: its data
        attributes: those that are there already, by the name of their set

    Raises:
        InputError: something cannot be; the message says where in the file.
    """
    for draw in experiment.draws:
        with placed(experiment, "[tasks], split"):
            items = catalog.in_split(draw.split)
        for sampler in draw.sampler.sets(items).values():
            with placed(experiment, f"[tasks], sampler '{draw.sampler}'"):
                for shot in draw.shots:
                    _check_draw(experiment, draw, sampler, items, TaskShape(draw.way, shot, draw.query), attributes)


def check_models(experiment: Experiment, models: Mapping[str, Model], catalog: Catalog) -> None:
    """Whether methods can adapt the models, and whether the data's classes are new to these and to encoders.

    Args:
        experiment: what is to be run
        models: its models, by name
        catalog: its data

    Raises:
        InputError: something cannot be; the message says where in the file.
    """
    with placed(experiment, "[evaluate], methods"):
        for given, model in zip(experiment.models, models.values(), strict=True):
            for use in experiment.uses:
                if isinstance(use.method, Adaptation) and use.applies(given):
                    use.method.require_model(model)
    if experiment.allow_seen:
        return
    trained = [("[evaluate], model", f"model '{name}'", model) for name, model in models.items()]
    encoding: list[Any] = [one for one in experiment.encoders if one.name == "model"]
    trained += [("[features], encoders", f"the model of '{one}'", one.model) for one in encoding]
    for draw in experiment.draws:
        labels = catalog.in_split(draw.split).table.column("label").unique().to_pylist()
        for place, whose, model in trained:
            with placed(experiment, place):
                require_unseen(labels, model.record.seen, whose)


def with_stages(experiment: Experiment, catalog: Catalog) -> Experiment:
    """The experiment with an encoder for each stage that is wanted, after the encoder of the whole network.

    Args:
        experiment: what is to be run
        catalog: its data, by the first item of which the stages of networks are counted

    Raises:
        InputError: a network has fewer stages, or cannot be loaded.
    """
    if not experiment.stages:
        return experiment
    chosen: list[Encoder] = []
    with placed(experiment, "[features], stages"):
        for encoder in experiment.encoders:
            chosen.append(encoder)
            if isinstance(encoder, StagedEncoder) and encoder.stage is None and not encoder.maps:
                count = encoder.count_stages(catalog)
                wanted = range(1, count + 1) if experiment.stages == "all" else experiment.stages
                if max(wanted) > count:
                    raise InputError(f"encoder '{encoder}' has {count} stages, found {max(wanted)}")
                chosen += [encoder.at(stage) for stage in wanted]
    distinct = tuple(dict.fromkeys(chosen))  # one stage may be among the encoders already
    return replace(experiment, encoders=distinct)


def check_tuning(experiment: Experiment, models: Mapping[str, Model], catalog: Catalog) -> None:
    """Whether learning rates can be chosen: the split is another one, large enough, and new to the models.

    Args:
        experiment: what is to be run
        models: its models, by name
        catalog: its data

    Raises:
        InputError: something cannot be; the message says where in the file.
    """
    tune_on = experiment.tune_on
    if tune_on is None:
        return
    with placed(experiment, "[evaluate.tune_on]"):
        items = catalog.in_split(tune_on.split)
        labels = items.table.column("label").unique().to_pylist()
        for name, model in models.items():
            if not experiment.allow_seen:
                require_unseen(labels, model.record.seen, f"model '{name}'")
        for draw in experiment.draws:
            if draw.split in (None, tune_on.split):
                raise InputError(
                    f"split '{tune_on.split}' is that of the tasks of sampler '{draw.sampler}': a learning rate must "
                    "not be chosen on what it is evaluated on, expected another split"
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
    """Bind the sampler where all that it takes is there; else see that the classes are large enough."""
    if draw.like is not None:
        return  # its classes and sizes are those of the set that it is like, which is looked at itself
    sets = dict.fromkeys([*experiment.detectors, *experiment.attribute_files, *attributes])
    given = [draw.attributes] if draw.attributes is not None else list(sets)
    takes_words = "attributes" in sampler.takes and bool(given)
    known: list[Attributes | None] = [attributes[name] for name in given if takes_words and name in attributes]
    if "features" in sampler.takes or (takes_words and not known):
        sampler.check_sizes(items, shape)
        return
    for words in known or [None]:
        sampler.bind(items, shape, draw.seeds[0], attributes=words)


def _require_files(component: Component) -> None:
    """Refuse options that name a file that is not there."""
    for option in component.options():
        value = getattr(component, option.name)
        if option.path and isinstance(value, str | Path) and not Path(value).exists():
            beside = [one.name for one in Path(value).parent.iterdir()] if Path(value).parent.is_dir() else []
            near = did_you_mean(Path(value).name, beside) if beside else ""
            raise InputError(f"{component.kind} '{component.name}': {option.name}: {value} does not exist{near}")


def _require_maps(experiment: Experiment) -> None:
    """Refuse methods on local maps where an encoder gives vectors; what a file of features holds is not known yet."""
    of_vectors = [one for one in experiment.encoders if not getattr(one, "maps", isinstance(one, FeatureFile))]
    for use in experiment.uses:
        wrong = next((one for one in of_vectors if use.method.needs == "maps" and use.applies(one)), None)
        if wrong is not None:
            raise InputError(
                f"method '{use.method}' needs local maps, but encoder '{wrong}' gives one vector per item: "
                "expected the encoder's option maps=True"
            )
