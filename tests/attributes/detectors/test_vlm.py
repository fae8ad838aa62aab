"""The detector `vlm`, on tiny models with random weights that are made here."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from shotproof.attributes.detector import Words, detect
from shotproof.attributes.detectors.vlm import VlmDetector
from shotproof.attributes.detectors.words import make_tagger
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.records import Source
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import COLUMNS
from shotproof.core.tables import digest

NOUNS = ["bird", "dog", "cat", "water", "grass", "tree", "branch"]
OTHERS = ["a", "the", "red", "green", "blue", "on", "small", "large", "sitting", "running", "near", "with"]
TINY = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
VISION = {**TINY, "image_size": 32, "patch_size": 8, "initializer_range": 1.0}
GENERATION = {"num_beams": 3, "max_new_tokens": 10}


def save_tokenizer(folder: Path, special: list[str], **roles: str) -> int:
    vocabulary = {word: code for code, word in enumerate([*special, *NOUNS, *OTHERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    return len(vocabulary)


def save_vit_gpt2(folder: Path) -> None:
    end = "<|endoftext|>"
    words = save_tokenizer(folder, [end], bos_token=end, eos_token=end, unk_token=end, pad_token=end)
    decoder = transformers.GPT2Config(
        vocab_size=words, n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0,
        add_cross_attention=True, is_decoder=True, initializer_range=1.0,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**VISION), decoder
    )
    model = transformers.VisionEncoderDecoderModel(config)
    model.generation_config.update(decoder_start_token_id=0, pad_token_id=0, eos_token_id=0)
    model.save_pretrained(folder)
    ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)


def save_blip(folder: Path) -> None:
    special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[DEC]"]
    roles = dict(zip(["unk_token", "pad_token", "cls_token", "sep_token", "bos_token"], special, strict=True))
    words = save_tokenizer(folder, special, **roles)
    text = {"vocab_size": words, "encoder_hidden_size": 16, "max_position_embeddings": 64, "initializer_range": 1.0}
    codes = {"pad_token_id": 1, "eos_token_id": 3, "sep_token_id": 3, "bos_token_id": 4}
    config = transformers.BlipConfig(
        text_config={**TINY, **text, **codes}, vision_config=VISION, projection_dim=16, image_text_hidden_size=16
    )
    transformers.BlipForConditionalGeneration(config).save_pretrained(folder)
    BlipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """On networks this small, threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def save_model(folder: Path) -> Path:
    torch.manual_seed(0)
    {"vit-gpt2": save_vit_gpt2, "blip": save_blip}[folder.name](folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "vit-gpt2")


@pytest.fixture(scope="module", params=["vit-gpt2", "blip"])
def each_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Seven images, among them one three pixels high, one grey and one of a single pixel."""
    rng = np.random.default_rng(0)
    shapes = [(40, 30, 3), (3, 50, 3), (1, 1, 3), (64, 64), (50, 20, 3), (32, 32, 3), (20, 90, 3)]
    names = [f"image{number}" for number in range(len(shapes))]
    for name, shape in zip(names, shapes, strict=True):
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / f"{name}.png")
    columns = {"item": names, "path": [f"{name}.png" for name in names]}
    return Catalog(pa.table({**columns, "label": ["x"] * len(names), "split": ["test"] * len(names)}), tmp_path)


def direct_captions(model: Path, catalog: Catalog) -> dict[str, str]:
    """One image at a time by transformers' own means, with the classes of the two models."""
    kind = {"blip": transformers.BlipForConditionalGeneration, "vit-gpt2": transformers.VisionEncoderDecoderModel}
    processor = {"blip": BlipImageProcessorPil, "vit-gpt2": ViTImageProcessorPil}[model.name].from_pretrained(model)
    network = kind[model.name].from_pretrained(model).eval()
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(model)
    captions = {}
    for item, path in zip(catalog.items, catalog.paths, strict=True):
        image = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)
        pixels = processor(images=image, return_tensors="pt", input_data_format="channels_first").pixel_values
        tokens = network.generate(pixel_values=pixels, do_sample=False, **GENERATION)[0]
        captions[item] = tokenizer.decode(tokens, skip_special_tokens=True).strip()
    return captions


def words_by(model: Path | str, catalog: Catalog, cache: Path | None = None, **settings: Any) -> Words:
    detector = VlmDetector(str(model), **GENERATION)
    return detector.detect(catalog, Runtime(device="cpu", cache=cache, **settings))


def kept(cache: Path) -> list[str]:
    """The captions in a cache, sorted."""
    tables = [pq.read_table(path) for path in (cache / "captions").rglob("*.parquet")]
    return sorted(caption for table in tables for caption in table["value"].to_pylist())


def test_captions_are_those_of_the_model_itself_whatever_the_batch(
    each_model: Path, catalog: Catalog, tmp_path: Path
) -> None:
    expected = direct_captions(each_model, catalog)
    assert len(set(expected.values())) > 2, "the tiny model should tell the images apart"
    for batch_size in (1, 4, 16):
        cache = tmp_path / f"{batch_size}"
        words = words_by(each_model, catalog, cache, batch_size=batch_size)
        assert kept(cache) == sorted(expected.values())
        assert words == {item: make_tagger("hanta")(caption) for item, caption in expected.items()}
        assert list(words) == catalog.items


def test_a_run_continues_where_it_was_interrupted(
    model: Path, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, opened = tmp_path / "cache", Image.open
    expected = direct_captions(model, catalog)

    def interrupted_open(path: Path, **options: Any) -> Image.Image:
        if "image5" in str(path):
            raise KeyboardInterrupt
        return opened(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Image, "open", interrupted_open)
        with pytest.raises(KeyboardInterrupt):
            words_by(model, catalog, cache, batch_size=2)
    assert kept(cache) == sorted(list(expected.values())[:4])

    # A caption that no model wrote shows that what is in the cache is not made again.
    (segment,) = (cache / "captions").rglob("*.parquet")
    table = pq.read_table(segment)
    table = table.set_column(1, "value", pa.array(["a zebra"] * len(table)))
    segment.unlink()
    pq.write_table(table, segment.with_name(f"{digest(table, COLUMNS)}.parquet"))
    words = words_by(model, catalog, cache, batch_size=2)
    assert [item for item, held in words.items() if held == ["zebra:noun"]] == catalog.items[:4]
    assert words_by(model, catalog, cache) == words


def test_an_image_that_changed_is_captioned_again(model: Path, catalog: Catalog, tmp_path: Path) -> None:
    words_by(model, catalog, tmp_path / "cache")
    Image.open(catalog.paths[4]).resize((9, 9)).save(catalog.paths[0])
    assert words_by(model, catalog, tmp_path / "cache") == words_by(model, catalog)
    assert len(kept(tmp_path / "cache")) == len(catalog) + 1


def test_broken_images_are_reported_by_name_and_skipped(
    model: Path, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.paths[1].write_bytes(b"no image")
    catalog.paths[3].unlink()
    catalog.paths[6].write_bytes(catalog.paths[6].read_bytes()[:200])
    whole = Catalog(catalog.table.take([0, 2, 4, 5]), tmp_path)
    words = words_by(model, catalog, tmp_path / "cache", batch_size=3)
    assert [item for item, held in words.items() if held is None] == ["image1", "image3", "image6"]
    for item, message in zip(["image1", "image3", "image6"], caplog.messages, strict=True):
        assert message.startswith(f"item '{item}' is skipped: image ")
    assert {item: held for item, held in words.items() if held is not None} == words_by(model, whole)
    assert len(kept(tmp_path / "cache")) == 4


def test_workers_change_nothing(model: Path, catalog: Catalog) -> None:
    assert words_by(model, catalog, workers=2, batch_size=2) == words_by(model, catalog, workers=1)


def test_the_record_names_the_model_by_its_content_and_never_its_folder(model: Path, catalog: Catalog) -> None:
    detector = VlmDetector(str(model), **GENERATION)
    record = detect(catalog, detector, runtime=Runtime(device="cpu", cache=None)).record
    assert record.detectors[0].options == {**GENERATION, "model": model.name, "tagger": "hanta", "words": "single"}
    assert record.sources["vlm"].name == model.name
    assert str(model.parent) not in json.dumps(record.to_meta())


def test_another_model_or_other_beams_make_other_captions(model: Path, catalog: Catalog, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    words_by(model, catalog, cache)
    VlmDetector(str(model), num_beams=1, max_new_tokens=10).detect(catalog, Runtime(device="cpu", cache=cache))
    assert len(kept(cache)) == 2 * len(catalog)
    changed = tmp_path / model.name
    changed.mkdir()
    for path in model.iterdir():
        (changed / path.name).write_bytes(path.read_bytes() + (b"\n" if path.name == "config.json" else b""))
    words_by(changed, catalog, cache)
    assert len(kept(cache)) == 3 * len(catalog)


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no such/folder/at/all"])
def test_the_hub_is_not_asked_unless_allowed(catalog: Catalog, name: str) -> None:
    with pytest.raises(InputError, match=f"model '{name}' is neither a folder .* allow the download .* with hub=True"):
        words_by(name, catalog)


def test_a_model_in_the_local_cache_goes_by_its_revision(
    model: Path, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision = "0e334c7000000000000000000000000000000000"
    repository = tmp_path / "hub" / "models--somebody--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / revision).symlink_to(model)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert VlmDetector("somebody/tiny").sources() == {"vlm": Source(revision, "somebody/tiny")}
    assert words_by("somebody/tiny", catalog) == words_by(model, catalog)


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('a pickle was run')",)


def test_nothing_that_comes_with_a_model_is_run(model: Path, catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "harmful"
    folder.mkdir()
    for path in model.iterdir():
        if path.suffix == ".json":
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harmful(), protocol=2))
    with pytest.raises(InputError, match=r"model .*harmful': cannot load its ModelForImageTextToText"):
        words_by(folder, catalog)

    config = json.loads((folder / "config.json").read_text())
    (folder / "code.py").write_text("raise SystemExit('code was run')")
    config |= {
        "model_type": "unheard-of",
        "auto_map": {"AutoConfig": "code.C", "AutoModelForImageTextToText": "code.M"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="cannot load its"):
        words_by(folder, catalog)


def test_weights_that_are_missing_are_not_made_up_in_silence(
    model: Path, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "partial"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    weights = load_file(folder / "model.safetensors")
    gone = min(name for name in weights if "patch_embed" in name)
    save_file({k: v for k, v in weights.items() if k != gone}, folder / "model.safetensors", {"format": "pt"})
    words_by(folder, catalog)
    assert any("1 of its weights" in message and "random" in message for message in caplog.messages)


@pytest.mark.parametrize("broken", ["config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"])
def test_a_folder_with_a_broken_part(model: Path, catalog: Catalog, tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(b"{" if path.name == broken else path.read_bytes())
    with pytest.raises(InputError, match=r"model .*broken': cannot load its \w+: "):
        words_by(folder, catalog)


def test_a_folder_with_a_model_of_another_kind(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    transformers.ViTModel(transformers.ViTConfig(**VISION)).save_pretrained(folder)
    ViTImageProcessorPil().save_pretrained(folder)
    with pytest.raises(InputError, match="cannot load its ModelForImageTextToText"):
        words_by(folder, catalog)


def test_a_model_that_keeps_the_shapes_of_images_cannot_batch_them(
    model: Path, catalog: Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "shapes"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    ViTImageProcessorPil(do_resize=False).save_pretrained(folder)
    with pytest.raises(InputError, match=r"images of different shapes.*batch"):
        words_by(folder, catalog)


def test_a_device_that_is_none(model: Path, catalog: Catalog) -> None:
    with pytest.raises(InputError, match="device 'abacus' cannot be used"):
        VlmDetector(str(model)).detect(catalog, Runtime(device="abacus"))


def test_without_transformers(monkeypatch: pytest.MonkeyPatch, catalog: Catalog, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"model '.* pip install shotproof\[vlm\]"):
        words_by(tmp_path, catalog)
