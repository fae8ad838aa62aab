"""What a notebook user expects of everything that is kept in a file: a short description, and data frames."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Self

from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN = 5  # rows of a description in a notebook
LONGEST = 60  # characters of a cell there


class Tabular:
    """A table with a record: to and from pandas, and how it shows itself."""

    table: pa.Table

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        require_pandas()
        return self.table.to_pandas()

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """From a data frame that has the columns of this kind of file; its index is left out.

        Raises:
            InputError: a column is missing, or its values are of another type.
        """
        import pyarrow as pa

        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:  # half a surrogate pair is a ValueError
            raise InputError(f"the data frame cannot be read: {error}") from error
        return cls(table.replace_schema_metadata(None))  # type: ignore[call-arg]

    def describe(self) -> str:
        """What it is, in one line."""
        return counted(self.table.num_rows, "row")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _repr_html_(self) -> str:
        names = self.table.column_names
        rows = self.table.slice(0, SHOWN).to_pylist()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def require_pandas() -> Any:
    """The module pandas; MissingExtra where it is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("a data frame", "pandas") from error
    return pd


def _cell(value: Any) -> str:
    text = str(value)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
