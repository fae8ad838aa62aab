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
from shotproof.core.clients.hugging_face import load_part, not_here, quiet, require_model
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

    The model is looked up in the local cache and downloaded only with `hub`. It generates by beams, without sampling;
    the defaults are ViT-GPT2's own. Captions are kept in the cache as they come, and none is made twice.
    """

    about = "captions by a Hugging Face image-to-text model (ViT-GPT2, BLIP), then their words"
    example = "vlm:nlpconnect/vit-gpt2-image-captioning(hub=True)"

    model: str = option(help="a folder, or a name on the Hugging Face hub", argument=True)
    num_beams: int = option(4, "beams of the search for a caption", least=1)
    max_new_tokens: int = option(16, "the longest caption, in tokens", least=1)
    hub: bool = option(False, "whether the model may be downloaded", recorded=False, downloads=True)

    def extras(self) -> Mapping[str, str]:
        """Return the tagger, and what makes the captions."""
        return {"transformers": "vlm", **super().extras()}

    def check(self, catalog: Catalog) -> None:
        """Refuse a model that would have to be downloaded without leave."""
        super().check(catalog)
        require_model(self.model, hub=self.hub)

    def detect(self, catalog: Catalog, runtime: Runtime) -> Words:
        """Return the words of every item; an image that cannot be read is reported by name and has None."""
        device = choose_device(runtime.device)
        size = runtime.batch_size or BATCH_SIZE

        def caption(paths: Sequence[Path], keep: Keep) -> None:
            batch: dict[int, Pixels] = {}

            def flush() -> None:
                for place, text in zip(batch, self._captions(list(batch.values()), device), strict=True):
                    keep(place, text)
                batch.clear()

            for place, found in enumerate(runtime.map(self._pixels, paths, what="captioning", chunk=size)):
                if isinstance(found, UnreadableItem):
                    keep(place, found)
                else:
                    batch[place] = found
                if len(batch) == size:
                    flush()
            if batch:
                flush()

        made_by = {**self._identity, "num_beams": self.num_beams, "max_new_tokens": self.max_new_tokens}
        return self.caption(catalog, made_by, caption, runtime)

    def sources(self) -> dict[str, Source]:
        """Return the model, by the digest of its files or its revision on the hub."""
        return {self.name: Source(self._identity.get("digest") or self._identity["revision"], self._identity["model"])}

    def _pixels(self, path: Path) -> Pixels | UnreadableItem:
        """Return an image as the network wants it, [3, height, width]."""
        try:
            image = open_image(path)
        except UnreadableItem as error:
            return error
        # Said and not guessed: an image three pixels high would pass for one with its channels first.
        prepared = self._processor(images=image, input_data_format="channels_last", return_tensors="np")
        return np.asarray(prepared["pixel_values"][0], dtype=np.float32)

    def _captions(self, pixels: list[Pixels], device: torch.device) -> list[str]:
        """n x [3, height, width] to n captions."""
        import torch

        if len({image.shape for image in pixels}) > 1:
            raise InputError(f"model {self.model}: it wants images of different shapes, which cannot be one batch")
        batch = torch.from_numpy(np.stack(pixels)).to(device)
        options = {"num_beams": self.num_beams, "max_new_tokens": self.max_new_tokens}
        with quiet(), torch.inference_mode():
            try:
                tokens = self._network.to(device).generate(pixel_values=batch, do_sample=False, **options)
            except torch.OutOfMemoryError as error:
                raise InputError(
                    f"detector 'vlm': {len(pixels)} images at once are too many for the memory of {device}: "
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
                "model %s: %d of its weights are not in its files and are random, e.g. %s",
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
    """Return the commit of a model of the hub, as it is in the local cache, or there now if `hub` allows to ask."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtra("detector 'vlm'", "vlm") from error
    try:
        return Path(hf_hub_download(model, "config.json", local_files_only=not hub)).parent.name
    except (OSError, ValueError) as error:
        if hub:
            raise InputError(f"model '{model}' cannot be fetched from the hub: {first_line(error)}") from error
        raise not_here(model) from error


def _folder_digest(folder: Path) -> str:
    """Return a digest of the files that make up a model."""
    hasher = hashlib.sha256()
    for path in sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)):
        hasher.update(f"{path.name}:{file_sha256(path)[:32]};".encode())
    return hasher.hexdigest()[:32]
