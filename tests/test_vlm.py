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
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from shotproof.attributes.detector import detect
from shotproof.attributes.vlm import VlmDetector
from shotproof.attributes.words import make_tagger
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch, MissingExtra

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
    for item, path in zip(catalog.items.to_pylist(), catalog.paths, strict=True):
        image = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)
        pixels = processor(images=image, return_tensors="pt", input_data_format="channels_first").pixel_values
        tokens = network.generate(pixel_values=pixels, do_sample=False, **GENERATION)[0]
        captions[item] = tokenizer.decode(tokens, skip_special_tokens=True).strip()
    return captions


def logged(path: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return {row["item"]: row.get("caption") for row in rows}


def test_captions_are_those_of_the_model_itself_whatever_the_batch(
    each_model: Path, catalog: Catalog, tmp_path: Path
) -> None:
    expected = direct_captions(each_model, catalog)
    assert len(set(expected.values())) > 2, "the tiny model should tell the images apart"
    for batch_size in (1, 4, 16):
        log = tmp_path / f"{batch_size}.jsonl"
        words = VlmDetector(each_model, batch_size=batch_size, device="cpu", resume=log, **GENERATION).detect(catalog)
        assert logged(log) == expected
        assert words == {item: make_tagger("hanta")(caption) for item, caption in expected.items()}
        assert list(words) == catalog.items.to_pylist()


def test_a_run_continues_where_it_was_interrupted(
    model: Path, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    opened = Image.open

    def interrupted_open(path: Path, **options: Any) -> Image.Image:
        if "image5" in str(path):
            raise KeyboardInterrupt
        return opened(path, **options)

    options = {"batch_size": 2, "device": "cpu", "resume": log, **GENERATION}
    detector = VlmDetector(model, **options)
    with monkeypatch.context() as patch:
        patch.setattr(Image, "open", interrupted_open)
        with pytest.raises(KeyboardInterrupt):
            detector.detect(catalog)
    assert list(logged(log)) == ["image0", "image1", "image2", "image3"]

    # Captions that no model wrote show that what is in the log is not made again.
    marked = {item: f"zebra {item}" for item in logged(log)}
    lines = log.read_text().splitlines()
    rows = [{**json.loads(line), "caption": marked[json.loads(line)["item"]]} for line in lines[1:]]
    log.write_text("".join(line + "\n" for line in [lines[0], *map(json.dumps, rows)]) + '{"item": "image6", "cap')
    words = VlmDetector(model, **options).detect(catalog)
    assert logged(log) == {**direct_captions(model, catalog), **marked}
    assert [item for item, held in words.items() if "zebra:noun" in (held or [])] == list(marked)

    size = log.stat().st_size
    assert VlmDetector(model, **options).detect(catalog) == words
    assert log.stat().st_size == size


def test_an_image_that_changed_is_captioned_again(model: Path, catalog: Catalog, tmp_path: Path) -> None:
    options = {"device": "cpu", "resume": tmp_path / "log.jsonl", **GENERATION}
    VlmDetector(model, **options).detect(catalog)
    Image.open(catalog.paths[4]).save(catalog.paths[0])
    VlmDetector(model, **options).detect(catalog)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(lines) == 1 + len(catalog) + 1
    assert logged(tmp_path / "log.jsonl")["image0"] == logged(tmp_path / "log.jsonl")["image4"]


def test_broken_images_are_reported_by_name_and_skipped(
    model: Path, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.paths[1].write_bytes(b"no image")
    catalog.paths[3].unlink()
    catalog.paths[6].write_bytes(catalog.paths[6].read_bytes()[:200])
    whole = Catalog(catalog.table.take([0, 2, 4, 5]), tmp_path)
    options = {"device": "cpu", "batch_size": 3, **GENERATION}
    words = VlmDetector(model, resume=tmp_path / "log.jsonl", **options).detect(catalog)
    assert [item for item, held in words.items() if held is None] == ["image1", "image3", "image6"]
    for item, message in zip(["image1", "image3", "image6"], caplog.messages, strict=True):
        assert message.startswith(f"item '{item}' is skipped: image ")
    assert {item: held for item, held in words.items() if held is not None} == VlmDetector(model, **options).detect(
        whole
    )
    assert logged(tmp_path / "log.jsonl")["image3"] is None


def test_the_metadata_names_the_model_by_its_content_and_never_its_folder(model: Path, catalog: Catalog) -> None:
    parameters = VlmDetector(model, device="cpu", **GENERATION).parameters()
    assert {**GENERATION, "model": model.name, "tagger": "hanta"}.items() <= parameters.items()
    meta = json.dumps(detect(catalog, "vlm", model=str(model), device="cpu", **GENERATION).meta)
    assert parameters["digest"] in meta
    assert str(model.parent) not in meta


def test_a_log_of_another_model_or_of_other_beams_is_refused(model: Path, catalog: Catalog, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    VlmDetector(model, device="cpu", resume=log, **GENERATION).detect(catalog)
    with pytest.raises(Mismatch, match="made with num_beams 3 and not 1"):
        VlmDetector(model, device="cpu", resume=log, num_beams=1, max_new_tokens=10).detect(catalog)
    changed = tmp_path / model.name
    changed.mkdir()
    for path in model.iterdir():
        (changed / path.name).write_bytes(path.read_bytes() + (b"\n" if path.name == "config.json" else b""))
    with pytest.raises(Mismatch, match="made with digest"):
        VlmDetector(changed, device="cpu", resume=log, **GENERATION).detect(catalog)


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no such/folder/at/all"])
def test_the_hub_is_not_asked_unless_allowed(name: str) -> None:
    with pytest.raises(InputError, match=f"model '{name}' is neither a folder .* allow the download .* with --hub"):
        VlmDetector(name)


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
    detector = VlmDetector("somebody/tiny", device="cpu", **GENERATION)
    assert {"model": "somebody/tiny", "revision": revision}.items() <= detector.parameters().items()
    assert detector.detect(catalog) == VlmDetector(model, device="cpu", **GENERATION).detect(catalog)


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
    with pytest.raises(InputError, match=r"model .*harmful': no ModelForImageTextToText can be loaded"):
        VlmDetector(folder, device="cpu").detect(catalog)

    config = json.loads((folder / "config.json").read_text())
    (folder / "code.py").write_text("raise SystemExit('code was run')")
    config |= {
        "model_type": "unheard-of",
        "auto_map": {"AutoConfig": "code.C", "AutoModelForImageTextToText": "code.M"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="can be loaded"):
        VlmDetector(folder, device="cpu").detect(catalog)


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
    VlmDetector(folder, device="cpu", **GENERATION).detect(catalog)
    assert any("1 of its weights are not in its files and are random" in message for message in caplog.messages)


@pytest.mark.parametrize("broken", ["config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"])
def test_a_folder_with_a_broken_part(model: Path, catalog: Catalog, tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(b"{" if path.name == broken else path.read_bytes())
    with pytest.raises(InputError, match=r"model .*broken': no \w+ can be loaded: "):
        VlmDetector(folder, device="cpu").detect(catalog)


def test_a_folder_with_a_model_of_another_kind(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "vit"
    transformers.ViTModel(transformers.ViTConfig(**VISION)).save_pretrained(folder)
    ViTImageProcessorPil().save_pretrained(folder)
    with pytest.raises(InputError, match="no ModelForImageTextToText can be loaded"):
        VlmDetector(folder, device="cpu").detect(catalog)


def test_a_model_that_keeps_the_shapes_of_images_cannot_batch_them(
    model: Path, catalog: Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "shapes"
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    ViTImageProcessorPil(do_resize=False).save_pretrained(folder)
    with pytest.raises(InputError, match="images of different shapes, which cannot be one batch"):
        VlmDetector(folder, device="cpu").detect(catalog)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "'batch_size': expected 1 or more, got 0"),
        ({"num_beams": "many"}, "'num_beams': expected 1 or more, got 'many'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
        ({"tagger": "nltk"}, "unknown tagger 'nltk'"),
    ],
)
def test_options_that_cannot_be(model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VlmDetector(model, **options)


def test_without_transformers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"detector 'vlm' .* pip install shotproof\[vlm\]"):
        VlmDetector(tmp_path)
