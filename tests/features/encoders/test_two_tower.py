from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from PIL import Image
from torch.nn.functional import cosine_similarity

from shotproof.analysis.similarity import measure_similarity, words_of
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import runtime
from shotproof.features.encoder import encode
from shotproof.features.encoders.two_tower import TwoTower
from shotproof.worlds.context_world import ContextWorld

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
VOCABULARY = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "a", "photo", "of", "star", "-", "5", "blue", "plain", "none"]


pytestmark = pytest.mark.usefixtures("quiet_transformers")


def tokenizer_of(first: int = 0, more: Sequence[str] = ()) -> Any:
    """A tokenizer of few words, and some more, whose numbers begin with `first`."""
    numbers = {word: first + n for n, word in enumerate([*VOCABULARY, *more])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[BOS] $A [EOS]", special_tokens=[("[BOS]", first + 2), ("[EOS]", first + 3)]
    )
    t: Any = transformers
    return t.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", bos_token="[BOS]", eos_token="[EOS]"
    )


def save(kind: str, folder: Path) -> tuple[Any, Any, Any]:
    """A tiny model of two towers with random weights, its image processor and its tokenizer, saved in a folder."""
    torch.manual_seed(0)
    t: Any = transformers
    text = {**SMALL, "vocab_size": 16, "max_position_embeddings": 12}
    text |= {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    vision = {**SMALL, "image_size": 32, "patch_size": 8}
    square = {"height": 32, "width": 32}
    if kind == "clip":
        model = t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))
        processor = t.CLIPImageProcessorPil(size={"shortest_edge": 36}, crop_size=square)
    else:
        model = t.SiglipModel(t.SiglipConfig(text_config=text, vision_config=vision))
        processor = t.SiglipImageProcessorPil(size=square)
    tokenizer = tokenizer_of()
    for part in (model, processor, tokenizer):
        part.save_pretrained(folder)
    return model.eval(), processor, tokenizer


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return ContextWorld(concepts=2, contexts=2, figures=2, size=32).write(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_cosines_agree_with_direct_calls(kind: str, catalog: Catalog, tmp_path: Path) -> None:
    model, processor, tokenizer = save(kind, tmp_path / "model")
    towers = TwoTower(str(tmp_path / "model"))
    texts = towers.encode_words(words_of(catalog), "a photo of a {}")
    found = measure_similarity(catalog, encode(catalog, towers, runtime=runtime(cache=None, workers=1)), texts)
    for row in found.table.to_pylist():
        pixels = processor(images=Image.open(catalog.root / f"{row['item']}.png"), return_tensors="pt")
        for name, measure in ((row["concept"], "m_ce"), (row["context"], "m_te")):
            full = {"padding": "max_length", "max_length": 12} if kind == "siglip" else {}
            tokens = tokenizer([f"a photo of a {name}"], return_tensors="pt", **full)
            output = model(**tokens, **pixels)
            expected = cosine_similarity(output.text_embeds, output.image_embeds).item()
            assert row[measure] == pytest.approx(expected, abs=1e-5)
    assert found.record.template == "a photo of a {}"


def test_texts_do_not_depend_on_their_neighbors(tmp_path: Path) -> None:
    save("clip", tmp_path)
    towers = TwoTower(str(tmp_path))
    together = towers.encode_words(["blue_plain", "a photo of a star", "none"]).array
    np.testing.assert_allclose(together[0], towers.encode_words(["blue plain"]).array[0], atol=1e-6)


def test_other_models_and_templates_are_refused(tmp_path: Path) -> None:
    save("clip", tmp_path / "clip")
    with pytest.raises(InputError, match=r"template 'a photo': expected \{\}"):
        TwoTower(str(tmp_path / "clip")).encode_words(["cat"], "a photo")
    t: Any = transformers
    t.ViTModel(t.ViTConfig(**SMALL, image_size=32, patch_size=8)).save_pretrained(tmp_path / "vit")
    t.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    with pytest.raises(InputError, match=r"is a ViTModel, .* towers for images and for texts"):
        TwoTower(str(tmp_path / "vit")).encode_words(["cat"])
    with pytest.raises(InputError, match="neither a folder nor"):
        TwoTower("no/such-model").encode_words(["cat"])
