"""Masks by networks: an ONNX model of saliency, or a Hugging Face model of semantic segmentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from shotproof.core.errors import InputError, MissingExtra, did_you_mean, first_line
from shotproof.core.options import option
from shotproof.core.storage.files import require_file
from shotproof.features.encoders.onnx import model_digests
from shotproof.features.encoders.tower import tower_digest
from shotproof.masks.cutter import Cutter, Pixels
from shotproof.media.box import Box
from shotproof.media.mask_file import Mask

_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's
BACKGROUND = "background"


@dataclass(frozen=True)
class OnnxSegmentation(Cutter):
    """A model of salient objects in ONNX, such as U2-Net: a batch of one RGB image to one map of it.

    Values are (x / 255 - mean) / std of ImageNet; the map is scaled to its range, as U2-Net's own code does.
    """

    about = "an ONNX model of salient objects, e.g. onnx:u2net.onnx (extra: onnx)"
    example = "onnx:u2net.onnx"

    path: Path = option(help="file of the model", path=True, argument=True)
    size: int = option(320, "pixels per side of its input", least=16, most=2048)
    threshold: float = option(0.5, "value from which a pixel is foreground, after scaling to 0 to 1", least=0, most=1)

    def extras(self) -> Mapping[str, str]:
        """Return the runtime of ONNX."""
        return {"onnxruntime": "onnx"}

    @cached_property
    def fingerprint(self) -> str:
        """Return the digests of the model's file and of weights beside it, with the options."""
        require_file(self.path, f"cutter 'onnx': file {self.path}")
        return f"onnx {','.join(model_digests(self.path))} {self.size} {self.threshold}"

    @cached_property
    def _session(self) -> Any:
        """Load the model."""
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("cutter 'onnx'", "onnx") from error
        require_file(self.path, f"cutter 'onnx': file {self.path}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise InputError(f"cutter 'onnx': {self.path} is not a readable model: {first_line(error)}") from error

    def cut(self, pixels: Pixels, box: Box | None) -> Mask:
        """Return the salient pixels."""
        height, width = pixels.shape[:2]
        square = Image.fromarray(pixels).resize((self.size, self.size), Image.Resampling.BILINEAR)
        values = ((np.asarray(square) / 255 - _MEAN) / _DEVIATION).astype(np.float32)
        session = self._session
        try:
            outputs = session.run(None, {session.get_inputs()[0].name: values.transpose(2, 0, 1)[None]})
        except Exception as error:
            raise InputError(f"cutter 'onnx': {self.path} does not take such images: {first_line(error)}") from error
        saliency = np.squeeze(np.asarray(outputs[0], dtype=np.float32))
        if saliency.ndim != 2:
            raise InputError(f"cutter 'onnx': expected one map of an image, got shape {list(np.shape(outputs[0]))}")
        low, high = float(saliency.min()), float(saliency.max())
        scaled = (saliency - low) / (high - low) if high > low else np.zeros_like(saliency)
        map_of_image = Image.fromarray(scaled).resize((width, height), Image.Resampling.BILINEAR)
        return _inside(np.asarray(map_of_image) >= self.threshold, box)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the session out: each worker process loads its own."""
        return {name: value for name, value in super().__getstate__().items() if name != "_session"}


@dataclass(frozen=True)
class HuggingFaceSegmentation(Cutter):
    """A model of semantic segmentation from the Hugging Face hub or a folder."""

    about = "a Hugging Face model of semantic segmentation (extra: hf)"
    example = "hf:nvidia/segformer-b0-finetuned-ade-512-512(classes=('animal',))"

    model: str = option(help="name on the hub, or folder", argument=True)
    classes: tuple[str, ...] = option((), "labels that are foreground; by default all but 'background'")
    hub: bool = option(False, "whether the model may be downloaded", downloads=True, recorded=False)

    def extras(self) -> Mapping[str, str]:
        """Return the library of its models."""
        return {"transformers": "hf"}

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the model's weights, settings and preprocessing, with the classes."""
        processor, network, numbers = self._parts
        return f"hf {tower_digest(network, processor.to_json_string())} {sorted(numbers)}"

    @cached_property
    def _parts(self) -> tuple[Any, Any, list[int]]:
        """Load the processor and the model, and find the numbers of the foreground's labels."""
        from shotproof.core.clients.hugging_face import load_part

        processor = load_part("AutoImageProcessor", self.model, hub=self.hub, backend="pil")
        network = load_part("AutoModelForSemanticSegmentation", self.model, hub=self.hub, use_safetensors=True)
        labels = {str(name): int(number) for number, name in network.config.id2label.items()}
        for name in self.classes:
            if name not in labels:
                raise InputError(f"cutter 'hf': model '{self.model}' has no class '{name}'{did_you_mean(name, labels)}")
        chosen = self.classes or [name for name in labels if name.lower() != BACKGROUND]
        return processor, network.eval(), [labels[name] for name in chosen]

    def cut(self, pixels: Pixels, box: Box | None) -> Mask:
        """Return the pixels whose most likely label is one of the foreground's."""
        import torch

        processor, network, numbers = self._parts
        height, width = pixels.shape[:2]
        with torch.inference_mode():
            logits = network(**processor(Image.fromarray(pixels), return_tensors="pt")).logits
            logits = torch.nn.functional.interpolate(logits, (height, width), mode="bilinear", align_corners=False)
        return _inside(np.isin(logits[0].argmax(0).numpy(), numbers), box)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the network out: each worker process loads its own."""
        return {name: value for name, value in super().__getstate__().items() if name != "_parts"}


def _inside(mask: Mask, box: Box | None) -> Mask:
    """Keep only what lies inside the box."""
    if box is None:
        return mask
    left, top, right, bottom = box.in_pixels(mask.shape[1], mask.shape[0])
    inside = np.zeros_like(mask)
    inside[top:bottom, left:right] = mask[top:bottom, left:right]
    return inside
