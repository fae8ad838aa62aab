"""From a caption to its words: the nouns and adjectives, as `water:noun` and `green:adj` (the papers' Omega).

As noun chunks, compounds are kept (`tree branch:noun`), as in FewSTAB's published code: the parts of a compound are no
words by themselves, and adjectives count only inside a noun chunk (not in `the bird is small`).
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from shotproof.core.errors import InputError, MissingExtra, UnknownName

Tagger = Callable[[str], list[str]]
"""A caption to its words, sorted and unique."""

Form = Literal["single", "chunks"]
FORM_HELP = "nouns and adjectives one by one (single), or compounds kept and adjectives of noun chunks alone (chunks)"
TAGGERS = ("hanta", "spacy", "auto")
TAGGER_HELP = "what tells nouns and adjectives; auto is spacy where its model is installed, hanta elsewhere"
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


@dataclass(frozen=True)
class _Token:
    """A word of a caption: its text, lemma and kind (None: neither noun nor adjective), and whether a phrase may go on
    from the word before it (no punctuation between them, nor a possessive).
    """

    text: str
    lemma: str
    kind: str | None
    joined: bool


def available_tagger(name: str) -> str:
    """What a tagger's name stands for here: `auto` is `spacy` where its model is installed, and `hanta` elsewhere."""
    if name != "auto":
        return name
    return "spacy" if all(importlib.util.find_spec(module) for module in ("spacy", SPACY_MODEL)) else "hanta"


def make_tagger(name: str, form: Form = "single") -> Tagger:
    """Return the tagger of a name: `hanta` (offline, its model comes with it) or `spacy` (its small English model).

    Args:
        name: one of `TAGGERS`
        form: `single` nouns and adjectives, or those of noun `chunks`, with compounds kept

    Raises:
        UnknownName: there is no such tagger.
        MissingExtra: it is not installed.
        InputError: its model is not downloaded.

    Example:
        >>> make_tagger("hanta", "chunks")("a small bird on a tree branch")
        ['bird:noun', 'small:adj', 'tree branch:noun']
    """
    if name not in TAGGERS:
        raise UnknownName("tagger", name, TAGGERS)
    if available_tagger(name) == "spacy":
        return _spacy(form)
    analyze = _hanta()
    if form == "chunks":
        return lambda caption: _written(_chunked(analyze(caption)))
    return lambda caption: _written((token.lemma, token.kind) for token in analyze(caption))


def words_of_captions(captions: Mapping[str, Iterable[str] | None], tagger: Tagger) -> dict[str, list[str] | None]:
    """{item: captions} to {item: words}: the union over an item's captions; None stays None."""
    return {
        item: None if texts is None else sorted({word for text in texts for word in tagger(text)})
        for item, texts in captions.items()
    }


def _joined_tokens(caption: str) -> list[tuple[str, bool]]:
    """Return the words of a caption, each with whether nothing but spaces and hyphens parts it from the one before.

    They are in lower case; digits, punctuation and what follows an apostrophe are dropped.
    """
    text = _TAIL.sub("|", unicodedata.normalize("NFKC", caption).casefold())
    found, end = [], 0
    for match in _LETTERS.finditer(text):
        token = match.group()
        # isalpha: to the pattern a numeral such as ½ is a letter.
        if token.isalpha() and len(token) <= _LONGEST_WORD:
            found.append((token, not text[end : match.start()].strip(" -")))
            end = match.end()
    return found


@cache
def _hanta() -> Callable[[str], list[_Token]]:
    try:
        from HanTa import HanoverTagger
    except ImportError as error:
        raise MissingExtra("tagger 'hanta'", "captions") from error
    # By its full path: the bare name would first be looked for in the working folder, and unpickled from there.
    model = HanoverTagger.HanoverTagger(str(Path(HanoverTagger.__file__).with_name("morphmodel_en.pgz")))

    def analyze(caption: str) -> list[_Token]:
        found = _joined_tokens(caption)
        # Captions are lower case, so that case says nothing about what is a name.
        tagged = model.tag_sent([token for token, _ in found], taglevel=1, casesensitive=False)
        return [
            _Token(token, _hanta_lemma(model, token, lemma, tag), _HANTA_KINDS.get(tag[:2]), joined)
            for (token, lemma, tag), (_, joined) in zip(tagged, found, strict=True)
        ]

    return analyze


def _chunked(words: list[_Token]) -> Iterator[tuple[str, str]]:
    """The nouns, compounds and adjectives of noun chunks: adjectives, joined by `and` or commas, and then nouns."""
    compounds, adjectives = [], []
    waiting: list[_Token] = []  # adjectives of which a noun may follow
    nouns: list[_Token] = []  # the nouns that end the chunk
    for place, word in enumerate(words):
        if nouns and not (word.kind == "noun" and word.joined):
            compounds.append(nouns)
            nouns = []
        if word.kind == "noun":
            nouns = [*nouns, word]
            adjectives += waiting
            waiting = []
        elif word.kind == "adj":
            waiting.append(word)
        elif not (word.text in ("and", "or") and place + 1 < len(words) and words[place + 1].kind == "adj"):
            waiting = []
    compounds += [nouns] if nouns else []
    joined = [compound for compound in compounds if len(compound) > 1]
    parts = {part.text for one in joined for part in one} | {one[-1].lemma for one in joined}
    for one in compounds:
        if len(one) > 1:
            yield " ".join([*(part.text for part in one[:-1]), one[-1].lemma]), "noun"
        elif one[0].text not in parts and one[0].lemma not in parts:
            yield one[0].lemma, "noun"
    yield from ((word.lemma, "adj") for word in adjectives)


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
def _spacy(form: Form) -> Tagger:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtra("tagger 'spacy'", "spacy") from error
    try:
        model = spacy.load(SPACY_MODEL, exclude=["parser", "ner"] if form == "single" else ["ner"])
    except OSError as error:
        raise InputError(
            f"tagger 'spacy': its model {SPACY_MODEL} is not downloaded: python -m spacy download {SPACY_MODEL}"
        ) from error

    def tag(caption: str) -> list[str]:
        parsed = model(unicodedata.normalize("NFKC", caption).casefold())
        if form == "chunks":
            return _written(_spacy_chunked(parsed))
        return _written((token.lemma_, _SPACY_KINDS.get(token.pos_)) for token in parsed if token.is_alpha)

    return tag


def _spacy_chunked(parsed: Any) -> Iterator[tuple[str, str]]:
    """What spaCy's parser calls compounds, the nouns that are in none, and the adjectives of its noun chunks."""
    parts: set[str] = set()
    for token in parsed:
        if token.dep_ == "compound" and token.i < token.head.i:
            span = [part for part in parsed[token.i : token.head.i + 1] if part.is_alpha]
            parts |= {part.text for part in span} | {span[-1].lemma_}
            yield " ".join([*(part.text for part in span[:-1]), span[-1].lemma_]), "noun"
    for token in parsed:
        if token.pos_ == "NOUN" and token.is_alpha and token.text not in parts and token.lemma_ not in parts:
            yield token.lemma_, "noun"
    for chunk in parsed.noun_chunks:
        yield from ((token.lemma_, "adj") for token in chunk if token.pos_ == "ADJ" and token.is_alpha)


def _written(lemmas: Iterable[tuple[str, str | None]]) -> list[str]:
    """`lemma:kind`, lower case; single letters (the t of a t-shirt) are no words."""
    return sorted({f"{lemma.lower()}:{kind}" for lemma, kind in lemmas if kind is not None and len(lemma) > 1})
