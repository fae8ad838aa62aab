"""The detector `vlm`: words from captions that a Hugging Face image-to-text model writes (the papers' phi)."""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from PIL import Image

from shotproof.attributes.caption_log import Captioned, CaptionLog, file_digest
from shotproof.attributes.detector import Detector, Words
from shotproof.attributes.words import make_tagger, words_of_captions
from shotproof.catalog.catalog import Catalog
from shotproof.devices import choose_device
from shotproof.errors import InputError, MissingExtra, UnreadableItem, first_line
from shotproof.hugging_face import load_part, not_here, quiet
from shotproof.images import open_image
from shotproof.progress import progress

logger = logging.getLogger("shotproof")

Input = TypeVar("Input")
Output = TypeVar("Output")

DECODING_THREADS = 4
MODEL_FILES = ("*.json", "*.txt", "*.model", "*.safetensors", "*.bin")


class VlmDetector(Detector):
    """Captions by an image-to-text model, in batches, then the captions' nouns and adjectives.

    `model` is a folder or a name, e.g. `nlpconnect/vit-gpt2-image-captioning`, which is looked up in the local cache
    and downloaded only with `hub`. It generates by beams, without sampling; the defaults are ViT-GPT2's own.
    With `resume`, a file, captions are kept as they come, and those that it has already are not made again.
    """

    about: ClassVar[str] = "captions by a Hugging Face image-to-text model (ViT-GPT2, BLIP), then their words"

    def __init__(
        self,
        model: str | Path,
        hub: bool = False,
        device: str | None = None,
        batch_size: int = 16,
        num_beams: int = 4,
        max_new_tokens: int = 16,
        tagger: str = "hanta",
        resume: str | Path | None = None,
    ) -> None:
        for name, value in {"batch_size": batch_size, "num_beams": num_beams, "max_new_tokens": max_new_tokens}.items():
            if not isinstance(value, int) or value < 1:
                raise InputError(f"detector 'vlm', option '{name}': expected 1 or more, got {value!r}")
        self._captioner = _Captioner(str(model), hub, device, num_beams, max_new_tokens)
        self._batch_size = batch_size
        self._tagger_name = tagger
        self._tagger = make_tagger(tagger)
        self._resume = resume

    def parameters(self) -> dict[str, Any]:
        """The model by its name and digest or revision, how it generates, and the tagger."""
        return {**self._captioner.parameters, "tagger": self._tagger_name}

    def detect(self, catalog: Catalog) -> Words:
        """The words of every item; an image that cannot be read is reported by name and has None."""
        captions: dict[str, list[str] | None] = {}
        with (
            CaptionLog(self._resume, self._captioner.parameters) as log,
            progress("captioning", len(catalog)) as advance,
        ):
            for row in self._captioned(catalog, log):
                captions[row.item] = None if row.caption is None else [row.caption]
                advance(1)
        return words_of_captions({item: captions[item] for item in catalog.items.to_pylist()}, self._tagger)

    def _captioned(self, catalog: Catalog, log: CaptionLog) -> Iterator[Captioned]:
        """The outcome of every item, in the order in which they come."""

        def prepare(item_and_path: tuple[str, Path]) -> tuple[Captioned, torch.Tensor | None]:
            """What is known of an item, and its pixels if it has yet to be captioned."""
            item, path = item_and_path
            digest = file_digest(path)
            if (caption := log.caption(item, digest)) is not None:
                return Captioned(item, digest, caption), None
            try:
                return Captioned(item, digest), self._captioner.pixels(open_image(path))
            except UnreadableItem as error:
                return Captioned(item, digest, error=str(error)), None

        batch: list[tuple[Captioned, torch.Tensor]] = []
        inputs = zip(catalog.items.to_pylist(), catalog.paths, strict=True)
        for row, pixels in _ahead(prepare, inputs, 2 * self._batch_size):
            if pixels is not None:
                batch.append((row, pixels))
            else:
                if row.error is not None:
                    logger.warning("item '%s' is skipped: %s", row.item, row.error)
                    log.append([row])
                yield row
            if len(batch) == self._batch_size:
                yield from self._caption(batch, log)
                batch = []
        if batch:
            yield from self._caption(batch, log)

    def _caption(self, batch: list[tuple[Captioned, torch.Tensor]], log: CaptionLog) -> list[Captioned]:
        captions = self._captioner.captions([pixels for _, pixels in batch])
        rows = [Captioned(row.item, row.digest, text) for (row, _), text in zip(batch, captions, strict=True)]
        log.append(rows)
        return rows


class _Captioner:
    """An image-to-text model; its parts are loaded when they are first needed."""

    def __init__(self, model: str, hub: bool, device: str | None, num_beams: int, max_new_tokens: int) -> None:
        try:
            import transformers
        except ImportError as error:
            raise MissingExtra("detector 'vlm'", "vlm") from error
        self._transformers = transformers
        self._model = model
        self._hub = hub
        self._source: dict[str, Any] = {}
        if Path(model).is_dir():
            identity = {"model": Path(model).resolve().name, "digest": _folder_digest(Path(model))}
        else:
            self._source["revision"] = _revision(model, hub)
            identity = {"model": model, "revision": self._source["revision"]}
        self._device = choose_device(device)
        self._generation = {"num_beams": num_beams, "max_new_tokens": max_new_tokens}
        self.parameters = {**identity, **self._generation}
        # Loaded before any thread needs it.
        self._processor = self._load(transformers.AutoImageProcessor, backend="pil")

    def pixels(self, image: Image.Image) -> torch.Tensor:
        """An RGB image as the network wants it, [3, height, width]."""
        # Said and not guessed: an image three pixels high would pass for one with its channels first.
        prepared = self._processor(images=image, input_data_format="channels_last", return_tensors="pt")
        pixels: torch.Tensor = prepared.pixel_values[0]
        return pixels

    def captions(self, pixels: list[torch.Tensor]) -> list[str]:
        """n x [3, height, width] to n captions."""
        if len({image.shape for image in pixels}) > 1:
            raise InputError(f"model {self._model}: it wants images of different shapes, which cannot be one batch")
        batch = torch.stack(pixels).to(self._device)
        with quiet(), torch.inference_mode():
            try:
                tokens = self._network.generate(pixel_values=batch, do_sample=False, **self._generation)
            except torch.OutOfMemoryError as error:
                raise InputError(
                    f"detector 'vlm': {len(pixels)} images at once are too many for the memory of {self._device}: "
                    "choose a smaller batch_size"
                ) from error
        texts = self._tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load(self._transformers.AutoTokenizer)

    @cached_property
    def _network(self) -> Any:
        network, report = self._load(
            self._transformers.AutoModelForImageTextToText, dtype=torch.float32, output_loading_info=True
        )
        if report["missing_keys"]:
            logger.warning(
                "model %s: %d of its weights are not in its files and are random, e.g. %s",
                self._model,
                len(report["missing_keys"]),
                min(report["missing_keys"]),
            )
        return network.eval().to(self._device)

    def _load(self, part: Any, **options: Any) -> Any:
        return load_part(part, self._model, hub=self._hub, **self._source, **options)


def _revision(model: str, hub: bool) -> str:
    """The commit of a model of the hub, as it is in the local cache, or there now if `hub` allows to ask."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, "config.json", local_files_only=not hub)).parent.name
    except (OSError, ValueError) as error:
        if hub:
            raise InputError(f"model '{model}' cannot be fetched from the hub: {first_line(error)}") from error
        raise not_here(model) from error


def _folder_digest(folder: Path) -> str:
    """A digest of the files that make up a model."""
    hasher = hashlib.sha256()
    for path in sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)):
        hasher.update(f"{path.name}:{file_digest(path)};".encode())
    return hasher.hexdigest()[:32]


def _ahead(work: Callable[[Input], Output], inputs: Iterable[Input], ahead: int) -> Iterator[Output]:
    """`map` in threads, in order, at most `ahead` results before the one that is taken."""
    waiting: deque[Future[Output]] = deque()
    with ThreadPoolExecutor(DECODING_THREADS) as pool:
        try:
            for value in inputs:
                waiting.append(pool.submit(work, value))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
