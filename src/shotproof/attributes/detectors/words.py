"""From a caption to its words: the nouns and adjectives, as `water:noun` and `green:adj` (the papers' Omega)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, MissingExtra, UnknownName

Tagger = Callable[[str], list[str]]
"""A caption to its words, sorted and unique."""

TAGGERS = ("hanta", "spacy")
TAGGER_EXTRAS = {"hanta": {"HanTa": "captions"}, "spacy": {"spacy": "spacy"}}  # the module, and what brings it
SPACY_MODEL = "en_core_web_sm"

# Contractions and possessives: bird's -> bird, don't -> do. A quote before a word is left to be a separator.
_TAIL = re.compile(r"(?<=[^\W\d_])(?:n['’]t|['’][^\W\d_]+)(?![^\W\d_])")
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 40  # longer runs of letters are no words, and the tagger's time is quadratic in their length

_HANTA_KINDS = {"NN": "noun", "NP": "noun", "UN": "noun", "AJ": "adj"}  # UNC: unknown to it, e.g. giraffe
# Frequent in captions, and beyond the rules: leaves -> leave, skis -> sky.
_HANTA_SLIPS = {"leaves": "leaf", "ski": "ski", "skis": "ski", "giraffes": "giraffe", "sunglasses": "sunglasses"}
_SPACY_KINDS = {"NOUN": "noun", "PROPN": "noun", "ADJ": "adj"}


def make_tagger(name: str) -> Tagger:
    """The tagger of a name: `hanta` (offline, its model comes with it) or `spacy` (its small English model)."""
    if name not in TAGGERS:
        raise UnknownName("tagger", name, TAGGERS)
    return _hanta() if name == "hanta" else _spacy()


def words_of_captions(captions: Mapping[str, Iterable[str] | None], tagger: Tagger) -> dict[str, list[str] | None]:
    """{item: captions} to {item: words}: the union over an item's captions; None stays None."""
    return {
        item: None if texts is None else sorted({word for text in texts for word in tagger(text)})
        for item, texts in captions.items()
    }


def tokens(caption: str) -> list[str]:
    """The words of a caption in order, lower case; digits, punctuation and what follows an apostrophe are dropped."""
    text = _TAIL.sub("", unicodedata.normalize("NFKC", caption).casefold())
    # isalpha: to the pattern a numeral such as ½ is a letter.
    return [token for token in _LETTERS.findall(text) if token.isalpha() and len(token) <= _LONGEST_WORD]


@cache
def _hanta() -> Tagger:
    try:
        from HanTa import HanoverTagger
    except ImportError as error:
        raise MissingExtra("tagger 'hanta'", "captions") from error
    # By its full path: the bare name would first be looked for in the working folder, and unpickled from there.
    model = HanoverTagger.HanoverTagger(str(Path(HanoverTagger.__file__).with_name("morphmodel_en.pgz")))

    def tag(caption: str) -> list[str]:
        # Captions are lower case, so that case says nothing about what is a name.
        tagged = model.tag_sent(tokens(caption), taglevel=1, casesensitive=False)
        return _written(
            (_hanta_lemma(model, token, lemma, tag), _HANTA_KINDS.get(tag[:2])) for token, lemma, tag in tagged
        )

    return tag


def _hanta_lemma(model: Any, token: str, lemma: str, tag: str) -> str:
    """HanTa's lemma, but regular English inflection where HanTa cuts a plural down to a word that it does not know."""
    if _HANTA_KINDS.get(tag[:2]) != "noun":
        return lemma
    if token in _HANTA_SLIPS:
        return _HANTA_SLIPS[token]
    if token.endswith(("er", "ss", "us")):  # surfer, albatross and platypus are no plurals
        return token
    if tag == "NN2" and lemma not in model.cache:
        return _regular_singular(token)
    return lemma


def _regular_singular(plural: str) -> str:
    if re.search(r"(?:ch|sh|x|ss|us)es$", plural):
        return plural[:-2]
    if plural.endswith("ies"):
        return plural[:-3] + "y"
    return plural.removesuffix("s")


@cache
def _spacy() -> Tagger:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtra("tagger 'spacy'", "spacy") from error
    try:
        model = spacy.load(SPACY_MODEL, exclude=["parser", "ner"])
    except OSError as error:
        raise InputError(
            f"tagger 'spacy': its model {SPACY_MODEL} is not downloaded: python -m spacy download {SPACY_MODEL}"
        ) from error

    def tag(caption: str) -> list[str]:
        text = unicodedata.normalize("NFKC", caption).casefold()
        return _written((token.lemma_, _SPACY_KINDS.get(token.pos_)) for token in model(text) if token.is_alpha)

    return tag


def _written(lemmas: Iterable[tuple[str, str | None]]) -> list[str]:
    """`lemma:kind`, lower case; single letters (the t of a t-shirt) are no words."""
    return sorted({f"{lemma.lower()}:{kind}" for lemma, kind in lemmas if kind is not None and len(lemma) > 1})
