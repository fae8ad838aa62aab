"""Words of a caption: its nouns and adjectives, as `water:noun` and `green:adj` (the papers' Omega).

With noun chunks, compounds are kept (`tree branch:noun`), as in FewSTAB's published code: the parts of a compound do
not count as words, and adjectives count only inside a noun chunk (not in `the bird is small`).
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
"""Turns a caption into its words, sorted and without duplicates."""

Form = Literal["single", "chunks"]
FORM_HELP = "single nouns and adjectives, or noun chunks: compounds, and adjectives that are part of a chunk"
TAGGERS = ("hanta", "spacy", "auto")
TAGGER_HELP = "part-of-speech tagger; auto is spacy if its model is installed, otherwise hanta"
TAGGER_EXTRAS = {"hanta": {"HanTa": "captions"}, "spacy": {"spacy": "spacy"}}  # module: extra that installs it
SPACY_MODEL = "en_core_web_sm"

# Contractions and possessives: bird's -> bird, don't -> do. A quote before a word remains, as a separator.
_TAIL = re.compile(r"(?<=[^\W\d_])(?:n['’]t|['’][^\W\d_]+)(?![^\W\d_])")
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 40  # longer runs of letters are not words, and the tagger's time is quadratic in their length

_HANTA_KINDS = {"NN": "noun", "NP": "noun", "UN": "noun", "AJ": "adj"}  # UNC: unknown to HanTa, e.g. giraffe
# Words that are frequent in captions and that HanTa gets wrong: leaves -> leave, skis -> sky.
_HANTA_SLIPS = {"leaves": "leaf", "ski": "ski", "skis": "ski", "giraffes": "giraffe", "sunglasses": "sunglasses"}
_SPACY_KINDS = {"NOUN": "noun", "PROPN": "noun", "ADJ": "adj"}


@dataclass(frozen=True)
class _Token:
    """Word of a caption.

    text, lemma: the word as written, and its base form
    kind: noun, adj, or None for any other
    joined: whether it may continue the phrase of the word before it: no punctuation or possessive between them
    """

    text: str
    lemma: str
    kind: str | None
    joined: bool


def available_tagger(name: str) -> str:
    """Resolve a tagger's name: `auto` is `spacy` if its model is installed, otherwise `hanta`."""
    if name != "auto":
        return name
    return "spacy" if all(importlib.util.find_spec(module) for module in ("spacy", SPACY_MODEL)) else "hanta"


def make_tagger(name: str, form: Form = "single") -> Tagger:
    """Load a tagger: `hanta` (offline, with a model in its package) or `spacy` (with its small English model).

    Args:
        name: one of `TAGGERS`
        form: `single` nouns and adjectives, or those of noun `chunks`, with compounds kept

    Raises:
        UnknownName: there is no such tagger.
        MissingExtra: the tagger is not installed.
        InputError: the tagger's model is not downloaded.

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
        return lambda caption: _format_words(_chunk(analyze(caption)))
    return lambda caption: _format_words((token.lemma, token.kind) for token in analyze(caption))


def words_of_captions(captions: Mapping[str, Iterable[str] | None], tagger: Tagger) -> dict[str, list[str] | None]:
    """Turn {item: captions} into {item: words}: the union over an item's captions. None stays None."""
    return {
        item: None if texts is None else sorted({word for text in texts for word in tagger(text)})
        for item, texts in captions.items()
    }


def _tokenize(caption: str) -> list[tuple[str, bool]]:
    """Split a caption into words, each with whether only spaces and hyphens separate it from the word before.

    Words are in lower case; digits, punctuation and endings after an apostrophe are dropped.
    """
    text = _TAIL.sub("|", unicodedata.normalize("NFKC", caption).casefold())
    tokens, end = [], 0
    for match in _LETTERS.finditer(text):
        token = match.group()
        # isalpha: the pattern takes numerals such as ½ for letters.
        if token.isalpha() and len(token) <= _LONGEST_WORD:
            tokens.append((token, not text[end : match.start()].strip(" -")))
            end = match.end()
    return tokens


@cache
def _hanta() -> Callable[[str], list[_Token]]:
    try:
        from HanTa import HanoverTagger
    except ImportError as error:
        raise MissingExtra("tagger 'hanta'", "captions") from error
    # By its full path, because HanTa would first look for the bare name in the working folder and unpickle it.
    model = HanoverTagger.HanoverTagger(str(Path(HanoverTagger.__file__).with_name("morphmodel_en.pgz")))

    def analyze(caption: str) -> list[_Token]:
        tokens = _tokenize(caption)
        # The tokens are in lower case, so their case does not reveal names.
        tags = model.tag_sent([token for token, _ in tokens], taglevel=1, casesensitive=False)
        return [
            _Token(token, _hanta_lemma(model, token, lemma, tag), _HANTA_KINDS.get(tag[:2]), joined)
            for (token, lemma, tag), (_, joined) in zip(tags, tokens, strict=True)
        ]

    return analyze


def _chunk(tokens: list[_Token]) -> Iterator[tuple[str, str]]:
    """Yield the nouns, compounds and adjectives of noun chunks: adjectives, joined by `and` or commas, then nouns."""
    noun_runs, adjectives = [], []
    pending: list[_Token] = []  # adjectives that a noun may follow
    nouns: list[_Token] = []  # the nouns that end the chunk
    for index, token in enumerate(tokens):
        if nouns and not (token.kind == "noun" and token.joined):
            noun_runs.append(nouns)
            nouns = []
        if token.kind == "noun":
            nouns = [*nouns, token]
            adjectives += pending
            pending = []
        elif token.kind == "adj":
            pending.append(token)
        elif not (token.text in ("and", "or") and index + 1 < len(tokens) and tokens[index + 1].kind == "adj"):
            pending = []
    noun_runs += [nouns] if nouns else []
    compounds = [run for run in noun_runs if len(run) > 1]
    parts = {part.text for compound in compounds for part in compound}
    parts |= {compound[-1].lemma for compound in compounds}
    for run in noun_runs:
        if len(run) > 1:
            yield " ".join([*(part.text for part in run[:-1]), run[-1].lemma]), "noun"
        elif run[0].text not in parts and run[0].lemma not in parts:
            yield run[0].lemma, "noun"
    yield from ((adjective.lemma, "adj") for adjective in adjectives)


def _hanta_lemma(model: Any, token: str, lemma: str, tag: str) -> str:
    """Return HanTa's lemma, or the regular singular if HanTa cuts a plural down to a word that it does not know."""
    if _HANTA_KINDS.get(tag[:2]) != "noun":
        return lemma
    if token in _HANTA_SLIPS:
        return _HANTA_SLIPS[token]
    if token.endswith(("er", "ss", "us")):  # surfer, albatross and platypus are not plurals
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
            f"tagger 'spacy': its model {SPACY_MODEL} is not installed: python -m spacy download {SPACY_MODEL}"
        ) from error

    def tag(caption: str) -> list[str]:
        parsed = model(unicodedata.normalize("NFKC", caption).casefold())
        if form == "chunks":
            return _format_words(_chunk_by_spacy(parsed))
        return _format_words((token.lemma_, _SPACY_KINDS.get(token.pos_)) for token in parsed if token.is_alpha)

    return tag


def _chunk_by_spacy(parsed: Any) -> Iterator[tuple[str, str]]:
    """Yield the compounds that spaCy's parser finds, the nouns outside them, and the adjectives of its noun chunks."""
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


def _format_words(lemmas: Iterable[tuple[str, str | None]]) -> list[str]:
    """Format words as `lemma:kind` in lower case, sorted; drop single letters (the t of a t-shirt)."""
    return sorted({f"{lemma.lower()}:{kind}" for lemma, kind in lemmas if kind is not None and len(lemma) > 1})
