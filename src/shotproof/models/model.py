"""A trained model: weights, what they are for, and how they came about, in one file of safetensors and JSON."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import save_file
from torch import Tensor, nn

from shotproof.core.errors import InputError, WriteFailed, first_line, placed
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain, typed
from shotproof.core.records import Header, Maker, ModelRecord
from shotproof.core.spelling import parse_spelling
from shotproof.core.storage.files import parse_json, require_file
from shotproof.core.storage.places import url_of
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.tables import FORMAT
from shotproof.models.backbone import Backbone, backbones
from shotproof.models.network import IN_TRAINING_ONLY, MOMENTUM, TEACHER, FewShotNetwork
from shotproof.models.objective import Objective, objectives
from shotproof.models.preprocessing import Preprocessing, read_preprocessing
from shotproof.version import __version__

METADATA_KEY = "shotproof"
MOST_WAYS = 100_000  # of which a head is made


@dataclass(frozen=True, repr=False)
class Model:
    """A network for few shots: the weights of backbone and head by name, and the record of how they were made.

    Example:
        >>> import shotproof as sp
        >>> sp.Model.read("missing.model")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: model missing.model does not exist
    """

    weights: Mapping[str, Tensor]
    record: ModelRecord = field(default_factory=ModelRecord)

    @classmethod
    def of(cls, net: FewShotNetwork, record: ModelRecord) -> Model:
        """The model of a network as it is now: its weights are copied."""
        kept = {name: each for name, each in net.state_dict().items() if not name.startswith(IN_TRAINING_ONLY)}
        return cls({name: each.detach().to("cpu", copy=True).contiguous() for name, each in kept.items()}, record)

    @classmethod
    def read(cls, path: str | Path) -> Model:
        """Read a model.

        Raises:
            InputError: there is no such file, or it is cut off, or no model.
        """
        path = Path(path)
        weights, meta = read_tensors(path, "model")
        with placed(f"model {path}, metadata, "):
            return cls(weights, ModelRecord.read(meta))

    @classmethod
    def pretrained(cls, backbone: str | Backbone) -> Model:
        """A pretrained backbone as it comes, e.g. `lite0` or `hf:NAME`: nothing of it was trained here.

        Raises:
            UnknownName: there is no such backbone.
            InputError: the backbone has no weights before it is trained.
        """
        backbone, objective = backbones.make(backbone), objectives.make("protonet")  # which learns nothing beside it
        if not backbone.pretrained:
            raise InputError(
                f"backbone '{backbone}' has no weights of its own: train it first (shotproof train --backbone "
                f"{backbone.name}), and give the model that comes out"
            )
        preprocessing = backbone.preprocessing("image")
        net = blank_network(backbone, objective, preprocessing, 0, 0)
        record = ModelRecord(
            name=str(backbone),
            backbone=Maker.of(backbone),
            objective=Maker.of(objective),
            preprocessing=plain(preprocessing.to_meta()),
            architecture=backbone.architecture(net.backbone),
        )
        return cls.of(net, record)

    @classmethod
    def given(cls, model: str | Path) -> Model:
        """A model as a user names it: by its file, or a pretrained backbone by its spelling, `lite0`.

        Raises:
            InputError: it is neither.
        """
        named = str(model)
        # `hf:/folder` is a backbone in a folder of this machine, `hf://...` a file of the hub.
        is_elsewhere = url_of(named) is not None and not re.match("hf:/(?!/)", named)
        is_backbone = named in backbones or any(mark in named for mark in ":(")
        is_file = is_elsewhere or os.path.lexists(named) or not is_backbone
        return cls.read(model) if is_file else cls.pretrained(named)

    def write(self, path: str | Path) -> None:
        """Write the model, whole or not at all; the same model gives the same bytes."""
        write_tensors(Path(path), self.weights, "model", {"digest": self.digest, **self.record.to_meta()})

    @cached_property
    def backbone(self) -> Backbone:
        """Which network it is."""
        spelling = self._spelling("backbone")
        # Files that its weights came from were read when it was trained.
        options = backbones.get(parse_spelling(spelling)[0]).options()
        return backbones.make(spelling, **{each.name: each.default for each in options if each.path})

    @cached_property
    def objective(self) -> Objective[Any]:
        """What it was trained for."""
        return objectives.make(self._spelling("objective"))

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """How items become its input."""
        return read_preprocessing(self.record.preprocessing)

    @property
    def way(self) -> int:
        """The number of classes of the tasks that it was trained for."""
        way: int = typed(self.record.settings.get("way"), int, f"model '{self.name}', settings.way") or 5
        if not 0 < way <= MOST_WAYS:
            raise InputError(f"model '{self.name}', settings.way: expected 1 to {MOST_WAYS:,}, found {way}")
        return way

    def network(self) -> FewShotNetwork:
        """The network with its weights, in evaluation mode on the CPU; each call makes a new one.

        Raises:
            InputError: the weights are not those of this backbone and objective; the message names the first one.
        """
        count, architecture = len(self.record.classes), self.record.architecture
        net = blank_network(self.backbone, self.objective, self.preprocessing, count, self.way, architecture)
        load_weights(net, self.weights, f"model '{self.name}'")
        return net.eval()

    @property
    def name(self) -> str:
        """What tables call it: `protonet on resnet12`, unless it was given a name."""
        return self.record.name or f"{self.record.objective or 'model'} on {self.record.backbone or 'unknown'}"

    @cached_property
    def digest(self) -> str:
        """Digest of the weights and of all that decides what the network computes."""
        parts = [self._spelling("backbone"), self._spelling("objective"), dict(self.record.preprocessing)]
        hasher = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        hasher.update(weights_digest(self.weights).encode())
        return hasher.hexdigest()[:32]

    def __repr__(self) -> str:
        count = sum(each.numel() for each in self.weights.values())
        classes = f", trained on {counted(len(self.record.seen), 'class', 'classes')}" if self.record.seen else ""
        return f"<Model: {self.name}, {count:,} numbers{classes}, digest {self.digest}>"

    def _spelling(self, role: str) -> str:
        maker = getattr(self.record, role)
        if maker is None:
            raise InputError(f"the model's record names no {role}: it was not made by shotproof train")
        return str(maker)


def blank_network(
    backbone: Backbone,
    objective: Objective[Any],
    preprocessing: Preprocessing,
    classes: int,
    way: int,
    architecture: Mapping[str, Any] | None = None,
) -> FewShotNetwork:
    """A network with weights drawn from PyTorch's global generator, but those of a pretrained backbone.

    With the `architecture` that a model's record tells, the pretrained ones are drawn too: the model has its own.
    """
    body = backbone.build(preprocessing.shape, architecture)
    return FewShotNetwork(body, objective.prepare(body, classes, way))


def load_weights(net: nn.Module, weights: Mapping[str, Tensor], what: str) -> None:
    """Copy weights into a network; InputError with the first that is missing, too many, or of another shape."""
    own = {name: each for name, each in net.state_dict().items() if not name.startswith(TEACHER)}
    missing = sorted(name for name in own.keys() - weights.keys() if not name.startswith(MOMENTUM))
    surplus = sorted(weights.keys() - own.keys())
    if missing or surplus:
        told = f"lacks {len(missing)}, e.g. {missing[0]}" if missing else f"has {len(surplus)} more, e.g. {surplus[0]}"
        raise InputError(f"{what}: its weights are not those of this network: it {told}")
    for name, each in own.items():
        if name in weights and each.shape != weights[name].shape:
            found = list(weights[name].shape)
            raise InputError(f"{what}: weight {name} has the shape {found}, the network's is {list(each.shape)}")
    net.load_state_dict(weights, strict=False)


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A digest of weights: their names, shapes and values."""
    hasher = hashlib.sha256()
    for name, each in sorted(weights.items()):
        hasher.update(f"{name}:{each.dtype}:{list(each.shape)};".encode())
        hasher.update(each.detach().cpu().numpy().tobytes())  # in the order of its axes, however it lies in memory
    return hasher.hexdigest()


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file of ours and its metadata; InputError where it is none, or cut off."""
    what = f"{kind} {path}"
    require_file(path, what)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            stated = (file.metadata() or {}).get(METADATA_KEY, "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except (safetensors.SafetensorError, OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise InputError(f"{what} cannot be read, it is cut off or no such file: {first_line(error)}") from error
    meta = typed(parse_json(stated, f"{what}, metadata"), Mapping[str, Any], f"{what}, metadata")
    with placed(f"{what}, metadata, "):
        header: Header = typed(meta or {}, Header)
    if header.kind != kind:
        raise InputError(f"{path} is no {kind} of Shotproof: its metadata names {header.kind or 'none'}")
    if header.format not in (None, FORMAT):
        raise InputError(f"{what} has format {header.format}; this version reads {FORMAT}")
    return tensors, meta


def write_tensors(path: Path, tensors: Mapping[str, Tensor], kind: str, meta: Mapping[str, Any]) -> None:
    """Write tensors and metadata, whole or not at all."""
    stamped = {"format": FORMAT, "shotproof": __version__, "kind": kind, **meta}
    with whole_file(path) as temporary:
        try:
            save_file(dict(tensors), temporary, {METADATA_KEY: json.dumps(stamped, sort_keys=True, ensure_ascii=False)})
        except safetensors.SafetensorError as error:  # the disk is full, or not to be written
            raise WriteFailed(f"cannot write {path}: {first_line(error)}") from error
