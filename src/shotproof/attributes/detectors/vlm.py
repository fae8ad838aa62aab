"""The detector `vlm`: words from captions that a Hugging Face image-to-text model writes (the papers' phi)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shotproof.attributes.detector import Words
from shotproof.attributes.detectors.captioning import CaptionDetector, Keep
from shotproof.catalog.catalog import Catalog
from shotproof.core.clients.hugging_face import load_part, missing_model_error, quiet, require_model
from shotproof.core.errors import InputError, MissingExtra, UnreadableItem, first_line
from shotproof.core.options import option
from shotproof.core.records import Source
from shotproof.core.runtime.devices import choose_device
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import file_sha256
from shotproof.media.images import open_image

if TYPE_CHECKING:
    import torch

logger = logging.getLogger("shotproof")

Pixels = npt.NDArray[np.float32]

BATCH_SIZE = 16
MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")


@dataclass(frozen=True)
class VlmDetector(CaptionDetector):
    """Captions by an image-to-text model, in batches, then the captions' nouns and adjectives.

    The model is looked up in the local cache and downloaded only with `hub`. It generates by beam search, without
    sampling; the defaults are those of ViT-GPT2. Captions are cached as they are generated, and no image is captioned
    twice.
    """

    about = "captions by a Hugging Face image-to-text model (ViT-GPT2, BLIP), then their words"
    example = "vlm:nlpconnect/vit-gpt2-image-captioning(hub=True)"

    model: str = option(help="model folder, or name of a model on the Hugging Face hub", argument=True)
    num_beams: int = option(4, "number of beams in the search for a caption", least=1)
    max_new_tokens: int = option(16, "maximum length of a caption, in tokens", least=1)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """Return the packages that the tagger and the model need."""
        return {"transformers": "vlm", **super().extras()}

    def check(self, catalog: Catalog) -> None:
        """Check that the model is available, or may be downloaded."""
        super().check(catalog)
        require_model(self.model, hub=self.hub)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item. An image that cannot be read gets None and a warning."""
        device = choose_device(runtime.device)
        size = runtime.batch_size or BATCH_SIZE

        def caption(paths: Sequence[Path], keep: Keep) -> None:
            batch: dict[int, Pixels] = {}

            def flush() -> None:
                for index, text in zip(batch, self._generate(list(batch.values()), device), strict=True):
                    keep(index, text)
                batch.clear()

            for index, pixels in enumerate(runtime.map(self._prepare, paths, title="captioning", chunk=size)):
                if isinstance(pixels, UnreadableItem):
                    keep(index, pixels)
                else:
                    batch[index] = pixels
                if len(batch) == size:
                    flush()
            if batch:
                flush()

        settings = {**self._identity, "num_beams": self.num_beams, "max_new_tokens": self.max_new_tokens}
        return self.caption(catalog, settings, caption, runtime)

    def sources(self) -> dict[str, Source]:
        """Return the model, identified by the digest of its files or its revision on the hub."""
        return {self.name: Source(self._identity.get("digest") or self._identity["revision"], self._identity["model"])}

    def _prepare(self, path: Path) -> Pixels | UnreadableItem:
        """Read an image and preprocess it for the network, [3, height, width]."""
        try:
            image = open_image(path)
        except UnreadableItem as error:
            return error
        # Stated because the processor would guess: an image three pixels high looks like one with its channels first.
        prepared = self._processor(images=image, input_data_format="channels_last", return_tensors="np")
        return np.asarray(prepared["pixel_values"][0], dtype=np.float32)

    def _generate(self, images: list[Pixels], device: torch.device) -> list[str]:
        """Generate a caption for each image [3, height, width]."""
        import torch

        if len({image.shape for image in images}) > 1:
            raise InputError(f"model {self.model} expects images of different shapes, which cannot be one batch")
        batch = torch.from_numpy(np.stack(images)).to(device)
        options = {"num_beams": self.num_beams, "max_new_tokens": self.max_new_tokens}
        with quiet(), torch.inference_mode():
            try:
                tokens = self._network.to(device).generate(pixel_values=batch, do_sample=False, **options)
            except torch.OutOfMemoryError as error:
                raise InputError(
                    f"detector 'vlm': a batch of {len(images)} images does not fit into the memory of {device}: "
                    "choose a smaller batch_size"
                ) from error
        texts = self._tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    @cached_property
    def _identity(self) -> dict[str, str]:
        """Return the model's name, with the digest of its files or its revision on the hub."""
        if Path(self.model).is_dir():
            return {"model": Path(self.model).resolve().name, "digest": _folder_digest(Path(self.model))}
        return {"model": self.model, "revision": _revision(self.model, self.hub)}

    @cached_property
    def _processor(self) -> Any:
        return self._load("AutoImageProcessor", backend="pil")

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer")

    @cached_property
    def _network(self) -> Any:
        import torch

        network, report = self._load("AutoModelForImageTextToText", dtype=torch.float32, output_loading_info=True)
        if report["missing_keys"]:
            logger.warning(
                "model %s: %d of its weights are missing from its files and are random, e.g. %s",
                self.model,
                len(report["missing_keys"]),
                min(report["missing_keys"]),
            )
        return network.eval()

    def _load(self, part: str, **options: Any) -> Any:
        if "revision" in self._identity:
            options["revision"] = self._identity["revision"]
        return load_part(part, self.model, hub=self.hub, extra="vlm", **options)


def _revision(model: str, hub: bool) -> str:
    """Return the commit of a model: that in the local cache, or the latest on the hub if `hub` allows downloads."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtra("detector 'vlm'", "vlm") from error
    try:
        return Path(hf_hub_download(model, "config.json", local_files_only=not hub)).parent.name
    except (OSError, ValueError) as error:
        if hub:
            raise InputError(f"model '{model}' cannot be downloaded from the hub: {first_line(error)}") from error
        raise missing_model_error(model) from error


def _folder_digest(folder: Path) -> str:
    """Compute a digest of the files that make up a model."""
    hasher = hashlib.sha256()
    for path in sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)):
        hasher.update(f"{path.name}:{file_sha256(path)[:32]};".encode())
    return hasher.hexdigest()[:32]
