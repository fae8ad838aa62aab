"""The contract of an encoder, the registered ones, and `encode`, which runs one on a catalog."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.features.features import Features
from shotproof.registry import Registry
from shotproof.specs import parse_call, write_call


def default_cache() -> Path:
    """Where features are kept: $SHOTPROOF_CACHE, else shotproof/ in $XDG_CACHE_HOME, else in ~/.cache."""
    if chosen := os.environ.get("SHOTPROOF_CACHE"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "shotproof"


@dataclass
class Tally:
    """How many items were encoded anew, and how many came from the cache (or are copies of another item)."""

    encoded: int = 0
    reused: int = 0


@dataclass
class EncodeSettings:
    """How to encode, without a say in what comes out.

    `cache` None: keep nothing. `device` None: a GPU if there is one. `batch_size` None: what suits the device.
    `workers` None: one process a core.
    """

    cache: Path | None = field(default_factory=default_cache)
    device: str | None = None
    batch_size: int | None = None
    workers: int | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch size {self.batch_size}: expected 1 or more")
        if self.workers is not None and self.workers < 0:
            raise InputError(f"workers {self.workers}: expected 0 (none but the main process) or more")


class Encoder(ABC):
    """Turns every item of a catalog into a vector."""

    about: ClassVar[str]  # one line for lists of encoders
    name: str  # as the user spells it, e.g. `lite0`, `hf:dinov2-small`, `pixels(size=4)`

    def parameters(self) -> dict[str, Any]:
        """All that the features depend on besides the items, as JSON values, for the features' metadata."""
        return {}

    @abstractmethod
    def encode(self, catalog: Catalog, settings: EncodeSettings) -> Features:
        """A feature for every item, in the order of the catalog."""


encoders: Registry[Encoder] = Registry(
    "encoder",
    {
        "pixels": "shotproof.features.pixels:Pixels",
        "lite0": "shotproof.features.lite0:Lite0",
        "hf": "shotproof.features.hf:HuggingFace",
        "onnx": "shotproof.features.onnx:Onnx",
        "file": "shotproof.features.file:FeatureFile",
        "logmel": "shotproof.features.logmel:LogMelStatistics",
        "hf-audio": "shotproof.features.hf_audio:HuggingFaceAudio",
        "birdnet": "shotproof.features.birdnet:BirdNet",
        "dial": "shotproof.worlds.dial:DialEncoder",
    },
)


def make_encoder(spec: str, **options: Any) -> Encoder:
    """An encoder by its spelling: `lite0`, `pixels(size=4)`, `onnx:FILE`, `hf:NAME(pooling='cls')`."""
    kind, argument, spelled = _parse_spec(spec)
    given = {**spelled, **options}
    encoder = encoders.make(kind, *argument, **given)
    shown = {key: value for key, value in given.items() if key in encoder.parameters()}
    encoder.name = write_call(":".join([kind, *argument]), shown)
    return encoder


def encode(
    catalog: Catalog,
    encoder: str | Encoder,
    *,
    cache: str | Path | bool | None = True,
    device: str | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    tally: Tally | None = None,
    **options: Any,
) -> Features:
    """The features of all items of a catalog.

    `cache` is a folder, True for the default one, or False for none. `options` go to the encoder that a
    string names. `tally`, where given, receives how many items were encoded anew.
    """
    if isinstance(encoder, str):
        encoder = make_encoder(encoder, **options)
    elif options:
        raise InputError(f"encoder '{encoder.name}' is made already: it takes no option {', '.join(options)}")
    folder = default_cache() if cache is True else Path(cache) if cache else None
    settings = EncodeSettings(folder, device, batch_size, workers, tally or Tally())
    features = encoder.encode(catalog, settings)
    meta = {"made_by": {"encoder": encoder.name, **encoder.parameters()}, "from": {"catalog": catalog.digest}}
    return Features(features.table, {**features.meta, **meta})


def _parse_spec(spec: str) -> tuple[str, list[str], dict[str, Any]]:
    """Kind, argument after a colon (none or one) and options in parentheses at the end."""
    kind, colon, argument = spec.strip().partition(":")
    if not colon or "(" in kind:
        name, options = parse_call(spec)
        return name, [], options
    if not argument:
        raise InputError(f"encoder '{spec}': expected something after the colon, e.g. {kind}:NAME")
    # A path may hold parentheses; only `(option=...)` at the very end is read as options.
    path, call = re.fullmatch(r"(.+?)(\(\s*\w+\s*=.*\))?", argument, re.DOTALL).groups()  # type: ignore[union-attr]
    return kind, [path], parse_call(f"{kind}{call}")[1] if call else {}
