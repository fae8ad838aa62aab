"""Conditions on items, such as `blurry and not viewpoint in (front, back)`: read by a small parser, never evaluated.

    condition   = condition "or" condition | condition "and" condition | "not" condition | "(" condition ")" | test
    test        = "any"                                 holds of all items
                | WORD                                  an attribute holds, or a Boolean column is true
                | COLUMN ("=" | "!=") VALUE
                | COLUMN ("<" | "<=" | ">" | ">=") NUMBER
                | COLUMN ["not"] "in" "(" VALUE, ... ")"

Names and values with spaces or signs are quoted: 'back visible'. Where an item's value is empty, or nothing is known of
its attributes, a test neither holds nor fails, and nor does its negation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.attributes.attributes import Attributes, HeldWords
from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError, UnknownName, did_you_mean

_TOKEN = re.compile(r"""\s*(?:(?P<quoted>'[^']*'|"[^"]*")|(?P<sign>==|!=|<=|>=|[=<>(),])|(?P<word>[^\s'"()=!<>,]+))""")
_WORDS = ("and", "or", "not", "in")
_ORDERS = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_LONGEST = 200  # tokens of a condition
_EXPECTED = (
    "expected e.g. blurry, not blurry, viewpoint = side, viewpoint in (front, back), width > 100, joined by and/or"
)


Truth: TypeAlias = Any  # pa.Array | pa.ChunkedArray, which have no types
"""Whether a condition holds, one entry per item; null where it is not known."""


@dataclass(frozen=True)
class ItemFacts:
    """What conditions are about: the items of a catalog, and their attributes where there are any."""

    catalog: Catalog
    attributes: Attributes | None = None

    def where(self, condition: str) -> BoolArray:
        """Of which items, in the catalog's order, a condition holds; an unknown name is an error."""
        holds: BoolArray = pc.fill_null(_Parser(condition, self).read(), False).to_numpy(zero_copy_only=False)
        return holds

    def strange_values(self, condition: str) -> str:
        """The end of a message about a condition that holds of too few: values that no item has, with the nearest."""
        parser = _Parser(condition, self)
        parser.read()
        return "; ".join(["", *parser.strange])

    def word(self, name: str) -> Truth:
        """Whether an attribute holds, or a Boolean column is true."""
        columns = self.catalog.table.column_names
        booleans = [column for column in columns if pa.types.is_boolean(self.catalog.table.schema.field(column).type)]
        if name in booleans:
            return self.equal(name, ["true"])
        if name not in self._words:
            if name in columns:
                raise InputError(f"condition: column '{name}' is not Boolean: expected a test such as {name} = VALUE")
            given = "" if self.attributes is not None else "; attributes were not given"
            near = did_you_mean(name, {*booleans, *self._words})
            raise InputError(f"condition: '{name}' is neither an attribute nor a Boolean column{given}{near}")
        held = self._held
        holds = np.zeros(len(self.catalog), dtype=np.bool_)
        if name in held.words:
            holds = held.matrix[:, held.words.index(name)].toarray().ravel()
        return pa.array(holds, mask=~held.known)

    @cached_property
    def _held(self) -> HeldWords:
        assert self.attributes is not None
        return self.attributes.of(self.catalog)

    @cached_property
    def _words(self) -> list[str]:
        """All words of the attributes, whether or not an item of the catalog holds them."""
        if self.attributes is None:
            return []
        words: list[str] = pc.unique(pc.list_flatten(self.attributes.table.column("attributes"))).to_pylist()
        return words

    def equal(self, column: str, values: list[str]) -> Truth:
        """Whether a column has one of these values."""
        given = self.column(column)
        if _is_number(given.type):
            wanted, given = pa.array([_number(value, column) for value in values]), given.cast(pa.float64())
        else:
            lowered = [value.lower() if pa.types.is_boolean(given.type) else value for value in values]
            wanted, given = pa.array(lowered, pa.string()), given.cast(pa.string())
        return pc.if_else(given.is_valid(), pc.is_in(given, value_set=wanted), None)

    def compared(self, column: str, sign: str, value: str) -> Truth:
        """Whether a column of numbers is below or above a number."""
        numbers = self.column(column)
        if not _is_number(numbers.type):
            raise InputError(f"condition: '{sign}' needs a column of numbers, '{column}' has {numbers.type}")
        return _ORDERS[sign](numbers.cast(pa.float64()), _number(value, column))

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the catalog."""
        if name not in self.catalog.table.column_names:
            raise UnknownName("column of the catalog", name, self.catalog.table.column_names)
        return self.catalog.table.column(name)


class _Parser:
    """Reads one condition from left to right; `strange` collects values that no item has."""

    def __init__(self, text: str, items: ItemFacts) -> None:
        self.text, self.items = text, items
        self.tokens = _tokens(text)
        if len(self.tokens) > _LONGEST:
            raise self._refusal(f"it has {len(self.tokens)} parts, at most {_LONGEST} are read")
        self.place = 0
        self.strange: list[str] = []

    def read(self) -> Truth:
        truth = self._any()
        if self.place < len(self.tokens):
            raise self._refusal(f"'{self.tokens[self.place][1]}' is not expected there")
        return truth

    def _any(self) -> Truth:
        truth = self._all()
        while self._take("or"):
            truth = pc.or_kleene(truth, self._all())
        return truth

    def _all(self) -> Truth:
        truth = self._one()
        while self._take("and"):
            truth = pc.and_kleene(truth, self._one())
        return truth

    def _one(self) -> Truth:
        if self._take("not"):
            return pc.invert(self._one())
        if self._take("("):
            truth = self._any()
            self._require(")")
            return truth
        if self._take("any"):
            return pa.array([True] * len(self.items.catalog))
        return self._test(self._name())

    def _test(self, name: str) -> Truth:
        for sign in ("=", "==", "!="):
            if self._take(sign):
                return self._among(name, [self._name()], negated=sign == "!=")
        for sign in _ORDERS:
            if self._take(sign):
                return self.items.compared(name, sign, self._name())
        negated = self._peek("not") and self.tokens[self.place + 1 : self.place + 2] == [("word", "in")]
        if negated:
            self.place += 1
        if not self._take("in"):
            return self.items.word(name)
        self._require("(")
        values = [self._name()]
        while self._take(","):
            values.append(self._name())
        self._require(")")
        return self._among(name, values, negated)

    def _among(self, name: str, values: list[str], negated: bool) -> Truth:
        for value in values:
            if not pc.any(self.items.equal(name, [value])).as_py():
                column = self.items.column(name)
                present = [] if _is_number(column.type) else pc.unique(column.cast(pa.string())).drop_null().to_pylist()
                self.strange.append(f"no item has {name} = {value}{did_you_mean(value, present)}")
        truth = self.items.equal(name, values)
        return pc.invert(truth) if negated else truth

    def _peek(self, text: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place] in (("word", text), ("sign", text))

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self.place += found
        return found

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise self._refusal(f"'{text}' is missing")

    def _name(self) -> str:
        if self.place == len(self.tokens):
            raise self._refusal("a name or a value is missing at the end")
        kind, text = self.tokens[self.place]
        if kind == "sign" or (kind == "word" and text in _WORDS):
            raise self._refusal(f"a name or a value is missing before '{text}'")
        self.place += 1
        return text

    def _refusal(self, reason: str) -> InputError:
        return InputError(f"condition '{self.text}': {reason}; {_EXPECTED}")


def _tokens(text: str) -> list[tuple[str, str]]:
    """The kind (`quoted`, `sign`, `word`) and text of each token."""
    found, place = list[tuple[str, str]](), 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(f"condition '{text}': cannot read '{text[place:].strip()}'; {_EXPECTED}")
        kind = str(match.lastgroup)
        token = match.group(kind)
        found.append((kind, token[1:-1] if kind == "quoted" else token))
        place = match.end()
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _number(value: str, column: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise InputError(f"condition: column '{column}' has numbers, '{value}' is none") from error
