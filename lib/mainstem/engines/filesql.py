"""How a database looks into a file's statistics and partition values, which are JSON texts of `dl_add_files`.

Every expression is NULL for what it cannot read: no text whatsoever makes a statement fail. Where a key stands twice
the last one counts, as it does for Delta, or nothing does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar


class Kind(Enum):
    """How the values of a column compare."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp without zone"
    BOOLEAN = "boolean"
    OTHER = "other"


TEXTS = (Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.BOOLEAN, Kind.OTHER)
Bind = Callable[[int | str], str]  # a value's place in the SQL text
PREFIX = 256  # so many characters of the text of partition values are in an index: an entry has to be short

# Regular expressions that Postgres, DuckDB and Python read alike. A 29th of February is left out: it may not exist, and
# what is not a date must not hide a file.
INTEGER = r"-?[0-9]{1,19}"
NUMBER = r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?"
DAY = (
    r"[1-9][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)"
)
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
MOMENT = rf"{DAY}[T ]{TIME}(?:\.[0-9]{{1,6}})?Z?"


class FileSql(ABC):
    """Expressions over the columns of `dl_add_files`, in one database's SQL.

    Bounds of moments are texts to the millisecond (23 characters); partition values of moments, to the microsecond.
    """

    exact_decimals: ClassVar[bool]  # whether decimals of any size are compared exactly, or as doubles
    double_error: ClassVar[float] = 0.0  # by how much a double may be misread, relatively

    @abstractmethod
    def bound(self, section: str, path: Sequence[str], kind: Kind, bind: Bind) -> str | None:
        """A column's value in `minValues` or `maxValues`, comparable; None if this database cannot name the column."""

    @abstractmethod
    def local_day(self, section: str, path: Sequence[str], bind: Bind) -> str | None:
        """The day that a moment's text begins with, in whatever zone the text is."""

    @abstractmethod
    def null_count(self, path: Sequence[str], bind: Bind) -> str | None:
        """How often the column is NULL."""

    @abstractmethod
    def records(self, bind: Bind) -> str:
        """How many records the file has, as its statistics say."""

    def ambiguous(self, names: Sequence[str], bind: Bind) -> str | None:
        """Whether one of the keys on the way to a value stands twice; None if the database takes the last one."""
        return None

    @abstractmethod
    def partition(self, key: str, bind: Bind) -> str | None:
        """The text of a partition value, where `readable_partition` holds."""

    readable_partition: ClassVar[str]
    partition_prefix: ClassVar[str | None] = None  # what is indexed of a file's partition values, if anything is

    @abstractmethod
    def typed(self, text: str, kind: Kind) -> str:
        """A partition value's text as a comparable value."""

    @abstractmethod
    def number(self, text: str) -> str:
        """The text of a constant as a number that compares with decimals and doubles."""

    @abstractmethod
    def begins(self, text: str, prefix: str) -> str:
        """Whether a text begins with another one, byte by byte."""

    @abstractmethod
    def text_of_hex(self, digits: str) -> str:
        """The text whose UTF-8 bytes these are, for statements that cannot bind."""


def simple_name(name: str) -> bool:
    """Whether JSON writes the name as it is."""
    return '"' not in name and "\\" not in name and not any(character < " " for character in name)
