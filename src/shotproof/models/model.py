"""Trained models: weights, their purpose and their provenance, in one file of safetensors and JSON."""

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

from shotproof.core.errors import InputError, WriteFailed, error_prefix, first_line
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
MOST_WAYS = 100_000  # largest head that is built


@dataclass(frozen=True, repr=False)
class Model:
    """Few-shot network: the weights of backbone and head by name, and the record of how they were made.

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
        """Build the model of a network in its current state; the weights are copied."""
        state = {name: tensor for name, tensor in net.state_dict().items() if not name.startswith(IN_TRAINING_ONLY)}
        return cls({name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in state.items()}, record)

    @classmethod
    def read(cls, path: str | Path) -> Model:
        """Read a model.

        Raises:
            InputError: the file does not exist, is truncated, or is not a model.
        """
        path = Path(path)
        weights, meta = read_tensors(path, "model")
        with error_prefix(f"model {path}, metadata, "):
            return cls(weights, ModelRecord.read(meta))

    @classmethod
    def pretrained(cls, backbone: str | Backbone) -> Model:
        """Build a model from a pretrained backbone, e.g. `lite0` or `hf:NAME`, without any training.

        Raises:
            UnknownName: the backbone is unknown.
            InputError: the backbone has no pretrained weights.
        """
        backbone, objective = backbones.make(backbone), objectives.make("protonet")  # has no learned head
        if not backbone.pretrained:
            raise InputError(
                f"backbone '{backbone}' has no pretrained weights: train it first (shotproof train --backbone "
                f"{backbone.name}), and use the resulting model"
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
    def load(cls, model: str | Path) -> Model:
        """Load a model from its file, or from the spelling of a pretrained backbone such as `lite0`.

        Raises:
            InputError: it is neither.
        """
        spelling = str(model)
        # `hf:/folder` is a backbone in a local folder, `hf://...` a file on the Hugging Face hub.
        is_remote = url_of(spelling) is not None and not re.match("hf:/(?!/)", spelling)
        is_backbone = spelling in backbones or any(mark in spelling for mark in ":(")
        is_file = is_remote or os.path.lexists(spelling) or not is_backbone
        return cls.read(model) if is_file else cls.pretrained(spelling)

    def write(self, path: str | Path) -> None:
        """Write the model atomically; the same model gives the same bytes."""
        write_tensors(Path(path), self.weights, "model", {"digest": self.digest, **self.record.to_meta()})

    @cached_property
    def backbone(self) -> Backbone:
        """Return the backbone named in the record."""
        spelling = self._spelling("backbone")
        # The files of pretrained weights were read in training, and may be gone.
        options = backbones.get(parse_spelling(spelling)[0]).options()
        return backbones.make(spelling, **{option.name: option.default for option in options if option.path})

    @cached_property
    def objective(self) -> Objective[Any]:
        """Return the objective the model was trained with."""
        return objectives.make(self._spelling("objective"))

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """Return the preprocessing of its items."""
        return read_preprocessing(self.record.preprocessing)

    @property
    def way(self) -> int:
        """Return the number of classes of the tasks the model was trained on."""
        way: int = typed(self.record.settings.get("way"), int, f"model '{self.name}', settings.way") or 5
        if not 0 < way <= MOST_WAYS:
            raise InputError(f"model '{self.name}', settings.way: expected 1 to {MOST_WAYS:,}, found {way}")
        return way

    def network(self) -> FewShotNetwork:
        """Build the network with its weights, in evaluation mode on the CPU; each call builds a new one.

        Raises:
            InputError: the weights do not fit this backbone and objective; the message names the first mismatch.
        """
        count, architecture = len(self.record.classes), self.record.architecture
        net = blank_network(self.backbone, self.objective, self.preprocessing, count, self.way, architecture)
        load_weights(net, self.weights, f"model '{self.name}'")
        return net.eval()

    @property
    def name(self) -> str:
        """Return the name shown in tables: `protonet on resnet12`, unless the record has a name."""
        return self.record.name or f"{self.record.objective or 'model'} on {self.record.backbone or 'unknown'}"

    @cached_property
    def digest(self) -> str:
        """Return the digest of the weights and of everything that decides what the network computes."""
        parts = [self._spelling("backbone"), self._spelling("objective"), dict(self.record.preprocessing)]
        hasher = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
        hasher.update(weights_digest(self.weights).encode())
        return hasher.hexdigest()[:32]

    def __repr__(self) -> str:
        count = sum(tensor.numel() for tensor in self.weights.values())
        classes = f", trained on {counted(len(self.record.seen), 'class', 'classes')}" if self.record.seen else ""
        return f"<Model: {self.name}, {count:,} numbers{classes}, digest {self.digest}>"

    def _spelling(self, role: str) -> str:
        maker = getattr(self.record, role)
        if maker is None:
            raise InputError(f"the model's record names no {role}: the file was not written by shotproof train")
        return str(maker)


def blank_network(
    backbone: Backbone,
    objective: Objective[Any],
    preprocessing: Preprocessing,
    classes: int,
    way: int,
    architecture: Mapping[str, Any] | None = None,
) -> FewShotNetwork:
    """Build a network with weights from PyTorch's global generator, except those of a pretrained backbone.

    With an `architecture` from a model's record, those are random too: the model's file replaces them.
    """
    backbone_network = backbone.build(preprocessing.shape, architecture)
    return FewShotNetwork(backbone_network, objective.prepare(backbone_network, classes, way))


def load_weights(net: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Copy weights into a network. Raise InputError for the first that is missing, unexpected or of another shape."""
    expected = {name: tensor for name, tensor in net.state_dict().items() if not name.startswith(TEACHER)}
    missing = sorted(name for name in expected.keys() - weights.keys() if not name.startswith(MOMENTUM))
    unexpected = sorted(weights.keys() - expected.keys())
    if missing or unexpected:
        mismatch = (
            f"lacks {counted(len(missing), 'weight')}, e.g. {missing[0]}"
            if missing
            else f"has {counted(len(unexpected), 'unexpected weight')}, e.g. {unexpected[0]}"
        )
        raise InputError(f"{source} does not fit this network: it {mismatch}")
    for name, tensor in expected.items():
        if name in weights and tensor.shape != weights[name].shape:
            shape = list(weights[name].shape)
            raise InputError(f"{source}: weight {name} has the shape {shape}, expected {list(tensor.shape)}")
    net.load_state_dict(weights, strict=False)


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """Compute the digest of the names, shapes and values of weights."""
    hasher = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        hasher.update(f"{name}:{tensor.dtype}:{list(tensor.shape)};".encode())
        hasher.update(tensor.detach().cpu().numpy().tobytes())  # in row-major order, whatever the memory format
    return hasher.hexdigest()


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and metadata from a Shotproof file. Raise InputError if it is of another kind or truncated."""
    source = f"{kind} {path}"
    require_file(path, source)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = (file.metadata() or {}).get(METADATA_KEY, "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (safetensors.SafetensorError, OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise InputError(
            f"{source} cannot be read: it is truncated, or not a {kind} file: {first_line(error)}"
        ) from error
    meta = typed(parse_json(metadata, f"{source}, metadata"), Mapping[str, Any], f"{source}, metadata")
    with error_prefix(f"{source}, metadata, "):
        header: Header = typed(meta or {}, Header)
    if header.kind != kind:
        raise InputError(f"{path} is not a Shotproof {kind}: its metadata says kind {header.kind or 'none'}")
    if header.format not in (None, FORMAT):
        raise InputError(f"{source} has format {header.format}; this version reads {FORMAT}")
    return tensors, meta


def write_tensors(path: Path, tensors: Mapping[str, Tensor], kind: str, meta: Mapping[str, Any]) -> None:
    """Write tensors and metadata atomically."""
    metadata = {"format": FORMAT, "shotproof": __version__, "kind": kind, **meta}
    with whole_file(path) as temporary:
        try:
            save_file(
                dict(tensors), temporary, {METADATA_KEY: json.dumps(metadata, sort_keys=True, ensure_ascii=False)}
            )
        except safetensors.SafetensorError as error:  # the disk is full or read-only
            raise WriteFailed(f"cannot write {path}: {first_line(error)}") from error
