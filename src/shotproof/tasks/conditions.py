"""Conditions on items, such as `blurry and not viewpoint in (front, back)`, read by a parser and never run as code.

    condition   = condition "or" condition | condition "and" condition | "not" condition | "(" condition ")" | test
    test        = "any"                                 holds of all items
                | WORD                                  an attribute holds, or a Boolean column is true
                | COLUMN ("=" | "!=") VALUE
                | COLUMN ("<" | "<=" | ">" | ">=") NUMBER
                | COLUMN ["not"] "in" "(" VALUE, ... ")"

Names and values with spaces or signs are quoted: 'back visible'. If an item's value is empty, or its attributes are
unknown, a test neither holds nor fails, and neither does its negation.
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
_MOST_TOKENS = 200
_EXPECTED = (
    "expected e.g. blurry, not blurry, viewpoint = side, viewpoint in (front, back), width > 100, joined by and/or"
)


Truth: TypeAlias = Any  # pa.Array | pa.ChunkedArray, which have no types
"""Whether a condition holds, one entry per item; null where it is not known."""


@dataclass(frozen=True)
class ItemFacts:
    """Items of a catalog, with their attributes if there are any, which conditions are tested on."""

    catalog: Catalog
    attributes: Attributes | None = None

    def matches(self, condition: str) -> BoolArray:
        """Return for which items, in the catalog's order, a condition holds. Raise InputError for an unknown name."""
        holds: BoolArray = pc.fill_null(_Parser(condition, self).read(), False).to_numpy(zero_copy_only=False)
        return holds

    def absent_values(self, condition: str) -> str:
        """Return the values in a condition that no item has, with the closest ones, to append to an error message."""
        parser = _Parser(condition, self)
        parser.read()
        return "; ".join(["", *parser.absent_values])

    def word(self, name: str) -> Truth:
        """Return for which items an attribute holds, or a Boolean column is true."""
        columns = self.catalog.table.column_names
        booleans = [column for column in columns if pa.types.is_boolean(self.catalog.table.schema.field(column).type)]
        if name in booleans:
            return self.equal(name, ["true"])
        if name not in self._words:
            if name in columns:
                raise InputError(f"condition: column '{name}' is not Boolean: expected a test such as {name} = VALUE")
            hint = "" if self.attributes is not None else "; no attributes were given"
            near = did_you_mean(name, {*booleans, *self._words})
            raise InputError(f"condition: '{name}' is neither an attribute nor a Boolean column{hint}{near}")
        held_words = self._held_words
        holds = np.zeros(len(self.catalog), dtype=np.bool_)
        if name in held_words.words:
            holds = held_words.matrix[:, held_words.words.index(name)].toarray().ravel()
        return pa.array(holds, mask=~held_words.known)

    @cached_property
    def _held_words(self) -> HeldWords:
        assert self.attributes is not None
        return self.attributes.of(self.catalog)

    @cached_property
    def _words(self) -> list[str]:
        """Return all words of the attributes, including those that no item of the catalog has."""
        if self.attributes is None:
            return []
        words: list[str] = pc.unique(pc.list_flatten(self.attributes.table.column("attributes"))).to_pylist()
        return words

    def equal(self, column: str, values: list[str]) -> Truth:
        """Return for which items a column has one of these values."""
        data = self.column(column)
        if _is_number(data.type):
            targets, data = pa.array([_number(value, column) for value in values]), data.cast(pa.float64())
        else:
            lowered = [value.lower() if pa.types.is_boolean(data.type) else value for value in values]
            targets, data = pa.array(lowered, pa.string()), data.cast(pa.string())
        return pc.if_else(data.is_valid(), pc.is_in(data, value_set=targets), None)

    def compared(self, column: str, sign: str, value: str) -> Truth:
        """Return for which items a numeric column is below or above a number."""
        numbers = self.column(column)
        if not _is_number(numbers.type):
            raise InputError(f"condition: '{sign}' needs a numeric column, but '{column}' has {numbers.type}")
        return _ORDERS[sign](numbers.cast(pa.float64()), _number(value, column))

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the catalog. Raise UnknownName if there is none with this name."""
        if name not in self.catalog.table.column_names:
            raise UnknownName("column of the catalog", name, self.catalog.table.column_names)
        return self.catalog.table.column(name)


class _Parser:
    """Recursive-descent parser of one condition; `absent_values` collects values that no item has."""

    def __init__(self, text: str, items: ItemFacts) -> None:
        self.text, self.items = text, items
        self.tokens = _tokens(text)
        if len(self.tokens) > _MOST_TOKENS:
            raise self._syntax_error(f"it has {len(self.tokens)} parts, more than the {_MOST_TOKENS} allowed")
        self.position = 0
        self.absent_values: list[str] = []

    def read(self) -> Truth:
        truth = self._disjunction()
        if self.position < len(self.tokens):
            raise self._syntax_error(f"'{self.tokens[self.position][1]}' is unexpected here")
        return truth

    def _disjunction(self) -> Truth:
        """Read conditions joined by `or`."""
        truth = self._conjunction()
        while self._take("or"):
            truth = pc.or_kleene(truth, self._conjunction())
        return truth

    def _conjunction(self) -> Truth:
        """Read conditions joined by `and`."""
        truth = self._negation()
        while self._take("and"):
            truth = pc.and_kleene(truth, self._negation())
        return truth

    def _negation(self) -> Truth:
        """Read a test, a condition in parentheses, or the negation of either."""
        if self._take("not"):
            return pc.invert(self._negation())
        if self._take("("):
            truth = self._disjunction()
            self._require(")")
            return truth
        if self._take("any"):
            return pa.array([True] * len(self.items.catalog))
        return self._read_test(self._read_name())

    def _read_test(self, name: str) -> Truth:
        """Read the rest of a test that begins with this name."""
        for sign in ("=", "==", "!="):
            if self._take(sign):
                return self._among(name, [self._read_name()], negated=sign == "!=")
        for sign in _ORDERS:
            if self._take(sign):
                return self.items.compared(name, sign, self._read_name())
        negated = self._peek("not") and self.tokens[self.position + 1 : self.position + 2] == [("word", "in")]
        if negated:
            self.position += 1
        if not self._take("in"):
            return self.items.word(name)
        self._require("(")
        values = [self._read_name()]
        while self._take(","):
            values.append(self._read_name())
        self._require(")")
        return self._among(name, values, negated)

    def _among(self, name: str, values: list[str], negated: bool) -> Truth:
        for value in values:
            if not pc.any(self.items.equal(name, [value])).as_py():
                column = self.items.column(name)
                present = [] if _is_number(column.type) else pc.unique(column.cast(pa.string())).drop_null().to_pylist()
                self.absent_values.append(f"no item has {name} = {value}{did_you_mean(value, present)}")
        truth = self.items.equal(name, values)
        return pc.invert(truth) if negated else truth

    def _peek(self, text: str) -> bool:
        """Return whether the next token is this word or sign."""
        return self.position < len(self.tokens) and self.tokens[self.position] in (("word", text), ("sign", text))

    def _take(self, text: str) -> bool:
        """Skip the next token if it is this word or sign; return whether it was."""
        is_next = self._peek(text)
        self.position += is_next
        return is_next

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise self._syntax_error(f"'{text}' is missing")

    def _read_name(self) -> str:
        if self.position == len(self.tokens):
            raise self._syntax_error("a name or value is missing at the end")
        kind, text = self.tokens[self.position]
        if kind == "sign" or (kind == "word" and text in _WORDS):
            raise self._syntax_error(f"a name or value is missing before '{text}'")
        self.position += 1
        return text

    def _syntax_error(self, reason: str) -> InputError:
        return InputError(f"condition '{self.text}': {reason}; {_EXPECTED}")


def _tokens(text: str) -> list[tuple[str, str]]:
    """Split a condition into tokens: the kind (`quoted`, `sign`, `word`) and text of each."""
    tokens, position = list[tuple[str, str]](), 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise InputError(f"condition '{text}': cannot read '{text[position:].strip()}'; {_EXPECTED}")
        kind = str(match.lastgroup)
        token = match.group(kind)
        tokens.append((kind, token[1:-1] if kind == "quoted" else token))
        position = match.end()
    return tokens


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_floating(dtype) or pa.types.is_integer(dtype))


def _number(value: str, column: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise InputError(f"condition: column '{column}' is numeric, but '{value}' is not a number") from error
