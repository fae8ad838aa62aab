"""Captions to words."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.attributes.detectors import words
from shotproof.attributes.detectors.words import make_tagger, words_of_captions
from shotproof.core.errors import InputError, MissingExtra, UnknownName

# Captions as ViT-GPT2 and BLIP write them, with their nouns and adjectives as a reader marks them.
EXPECTED = {
    "a small bird perched on a branch of a tree": ("bird branch tree", "small"),
    "two brown dogs are running through the green grass": ("dog grass", "brown green"),
    "arafed bird with a long beak sitting on top of a wooden post": ("beak bird post top", "arafed long wooden"),
    "a black and white photo of a cat": ("cat photo", "black white"),
    "there is a yellow bird that is standing on a rock": ("bird rock", "yellow"),
    "a man riding a wave on top of a surfboard": ("man surfboard top wave", ""),
    "two women and three children are playing with knives": ("child knife woman", ""),
    "a herd of elephants walking across a dry grass field": ("elephant field grass herd", "dry"),
    "a blue and white bird flying over a body of water": ("bird body water", "blue white"),
    "a red fire hydrant on the side of a street": ("fire hydrant side street", "red"),
    "the bird is smaller than the biggest duck": ("bird duck", "big small"),
    "a person on skis going down a snowy slope": ("person ski slope", "snowy"),
    "a surfer and a skateboarder near the beach": ("beach skateboarder surfer", ""),
    "yellow leaves on the ground": ("ground leaf", "yellow"),
    "two finches, three raspberries and an albatross": ("albatross finch raspberry", ""),
    "giraffes and geese near two foxes": ("fox giraffe goose", ""),
    "a close-up of a red-and-white bird's head": ("bird close head", "red white"),
    "it's a man's t-shirt, and they don't sell 12 hats!": ("hat man shirt", ""),
    "the ‘stop’ sign and the dogs’ bowl": ("bowl dog sign stop", ""),
    "A LARGE JETLINER FLYING THROUGH A BLUE SKY": ("jetliner sky", "blue large"),
    "": ("", ""),
    " 42 ... !?": ("", ""),
}


@pytest.mark.parametrize("caption", EXPECTED)
def test_nouns_and_adjectives_of_a_caption(caption: str) -> None:
    nouns, adjectives = EXPECTED[caption]
    expected = [f"{noun}:noun" for noun in nouns.split()] + [f"{adjective}:adj" for adjective in adjectives.split()]
    assert make_tagger("hanta")(caption) == sorted(expected)


# The nouns, compounds and adjectives of noun chunks, as a reader marks them.
CHUNKS = {
    "a small bird perched on a tree branch": ("bird, tree branch", "small"),
    "a herd of elephants walking across a dry grass field": ("elephant, grass field, herd", "dry"),
    "two red fire hydrants on the side of a street": ("fire hydrant, side, street", "red"),
    "the bird is smaller than the biggest duck": ("bird, duck", "big"),
    "the big, brown dog is happy": ("dog", "big brown"),
    "a black and white photo of a cat": ("cat, photo", "black white"),
    "a dog, cat and bird near the kitchen sink": ("bird, cat, dog, kitchen sink", ""),
    "a close-up of a red-and-white bird's head": ("bird, close, head", "red white"),
    "a bowl of fruit salad on a wooden dining room table": ("bowl, dining room table, fruit salad", "wooden"),
    # The parts of a compound are no words by themselves, wherever they stand.
    "a teddy bear next to two teddy bears and a bear": ("teddy bear", ""),
    "": ("", ""),
}


@pytest.mark.parametrize("caption", CHUNKS)
def test_nouns_compounds_and_adjectives_of_noun_chunks(caption: str) -> None:
    nouns, adjectives = CHUNKS[caption]
    expected = [f"{noun}:noun" for noun in nouns.split(", ") if noun] + [f"{part}:adj" for part in adjectives.split()]
    assert make_tagger("hanta", "chunks")(caption) == sorted(expected)


@pytest.mark.parametrize("caption", EXPECTED)
def test_chunks_have_the_words_of_a_caption_and_no_others(caption: str) -> None:
    single, chunks = (make_tagger("hanta", form)(caption) for form in ("single", "chunks"))
    parts = {part for word in chunks for part in word.rpartition(":")[0].split()}
    tokens = {*re.findall(r"[a-z]+", caption.casefold()), *(word.rpartition(":")[0] for word in single)}
    assert parts <= tokens
    assert {word for word in chunks if word.endswith(":adj")} <= set(single)


@given(st.text())
@settings(deadline=None)
def test_any_text_gives_sorted_lower_case_words(caption: str) -> None:
    found = make_tagger("hanta")(caption)
    assert found == sorted(set(found))
    for word in found:
        lemma, _, kind = word.rpartition(":")
        assert kind in ("noun", "adj")
        assert lemma == lemma.lower()
        assert lemma.isalpha()


@given(
    st.lists(st.sampled_from([*sorted({word for caption in EXPECTED for word in caption.split()}), "Straße", "ÉLAN"]))
)
@settings(deadline=None)
def test_case_says_nothing(parts: list[str]) -> None:
    tag, caption = make_tagger("hanta"), " ".join(parts)
    assert tag(caption.upper()) == tag(caption.title().swapcase()) == tag(caption)


def test_a_run_of_letters_as_long_as_a_book_is_no_word() -> None:
    assert make_tagger("hanta")("a dog " + "x" * 1_000_000) == ["dog:noun"]


def test_the_model_is_the_taggers_own_whatever_lies_in_the_working_folder(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "morphmodel_en.pgz").write_bytes(b"not a model")
    monkeypatch.chdir(tmp_path)
    words._hanta.cache_clear()
    assert make_tagger("hanta")("a dog") == ["dog:noun"]


def test_captions_of_an_item_give_the_union_of_their_words() -> None:
    captions = {"a": ["a green tree", "a dog", "a tree"], "b": [], "c": None}
    expected = {"a": ["dog:noun", "green:adj", "tree:noun"], "b": [], "c": None}
    assert words_of_captions(captions, make_tagger("hanta")) == expected


def test_an_unknown_tagger_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown tagger 'hantta': did you mean 'hanta'"):
        make_tagger("hantta")


@pytest.mark.parametrize(("name", "module", "extra"), [("hanta", "HanTa", "captions"), ("spacy", "spacy", "spacy")])
def test_a_tagger_that_is_not_installed(name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    getattr(words, f"_{name}").cache_clear()
    with pytest.raises(MissingExtra, match=rf"tagger '{name}' .* pip install shotproof\[{extra}\]"):
        make_tagger(name)


def test_spacy_without_its_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, exclude: list[str]) -> None:
        raise OSError(f"[E050] Can't find model '{name}'.")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(InputError, match="python -m spacy download en_core_web_sm"):
        make_tagger("spacy")


def test_spacy_parts_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens with the attributes that spaCy documents, since its model cannot come with a test."""

    def token(lemma: str, pos: str) -> SimpleNamespace:
        return SimpleNamespace(lemma_=lemma, pos_=pos, is_alpha=lemma.isalpha())

    sentences = {
        "two green dogs in t-paris ...": [
            token("two", "NUM"),
            token("green", "ADJ"),
            token("dog", "NOUN"),
            token("in", "ADP"),
            token("t", "NOUN"),
            token("-", "PUNCT"),
            token("Paris", "PROPN"),
            token("...", "NOUN"),
        ]
    }
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name, exclude: sentences.__getitem__))
    words._spacy.cache_clear()
    try:
        assert make_tagger("spacy")("Two green dogs in T-Paris ...") == ["dog:noun", "green:adj", "paris:noun"]
    finally:
        words._spacy.cache_clear()


class Parsed(list[SimpleNamespace]):
    """Tokens as spaCy's parser gives them, with its noun chunks."""

    noun_chunks: list[list[SimpleNamespace]]

    def __init__(self, sentence: list[tuple[str, str, str, str, int]], chunks: list[tuple[int, int]]) -> None:
        super().__init__(
            SimpleNamespace(text=text, lemma_=lemma, pos_=pos, dep_=dep, i=i, is_alpha=text.isalpha())
            for i, (text, lemma, pos, dep, _) in enumerate(sentence)
        )
        for token, (*_, head) in zip(self, sentence, strict=True):
            token.head = self[head]
        self.noun_chunks = [self[start:stop] for start, stop in chunks]


def test_spacy_compounds_and_adjectives_of_its_noun_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words with the marks that spaCy documents, since its model cannot come with a test."""
    parsed = Parsed(
        [
            ("two", "two", "NUM", "nummod", 2),
            ("red", "red", "ADJ", "amod", 3),
            ("fire", "fire", "NOUN", "compound", 3),
            ("hydrants", "hydrant", "NOUN", "nsubj", 4),
            ("are", "be", "AUX", "ROOT", 4),
            ("small", "small", "ADJ", "acomp", 4),
            (",", ",", "PUNCT", "punct", 4),
            ("dogs", "dog", "NOUN", "conj", 4),
            ("and", "and", "CCONJ", "cc", 7),
            ("fire", "fire", "NOUN", "conj", 7),
        ],
        [(0, 4), (7, 8), (9, 10)],
    )
    loaded = []

    def load(name: str, exclude: list[str]) -> Any:
        loaded.append((name, exclude))
        return lambda text: parsed

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    words._spacy.cache_clear()
    try:
        assert make_tagger("spacy", "chunks")("...") == ["dog:noun", "fire hydrant:noun", "red:adj"]
        assert loaded == [("en_core_web_sm", ["ner"])]  # it needs the parser
    finally:
        words._spacy.cache_clear()


@pytest.mark.parametrize(("installed", "expected"), [(("spacy", "en_core_web_sm"), "spacy"), (("spacy",), "hanta")])
def test_auto_is_spacy_where_its_model_is_installed(
    installed: tuple[str, ...], expected: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in installed:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("spacy", "en_core_web_sm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert words.available_tagger("auto") == expected
    assert words.available_tagger("hanta") == "hanta"
