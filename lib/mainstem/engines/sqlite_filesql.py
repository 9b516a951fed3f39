"""Statistics in SQLite, which knows JSON, but neither regular expressions nor decimals."""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.engines.filesql import Bind, FileSql, Kind, simple_name

_NUMBERS = (Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)
_PLAIN = "num_records IS NOT NULL AND instr(stats, '\\u') = 0 AND json_valid(stats)"
_DAY = (
    "(substr(t, 1, 10) GLOB '[1-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]' AND substr(t, 6, 2) BETWEEN '01' AND '12'"
    " AND (substr(t, 9, 2) BETWEEN '01' AND '28' OR (substr(t, 9, 2) IN ('29', '30') AND substr(t, 6, 2) <> '02')"
    " OR (substr(t, 9, 2) = '31' AND substr(t, 6, 2) IN ('01', '03', '05', '07', '08', '10', '12'))))"
)
_TIME = "(substr(t, 12, 8) GLOB '[0-2][0-9]:[0-5][0-9]:[0-5][0-9]' AND substr(t, 12, 2) < '24')"
_MILLISECONDS = "substr(t, 20, 4) GLOB '.[0-9][0-9][0-9]' AND rtrim(substr(t, 24), 'Z') NOT GLOB '*[^0-9]*'"


def _where(condition: str, text: str, then: str = "t") -> str:
    """`then`, if the condition holds; both speak of the text as `t`, which is computed once."""
    return f"(SELECT CASE WHEN {condition} THEN {then} END FROM (SELECT {text} AS t))"  # noqa: S608  text of our own


class SqliteFileSql(FileSql):
    exact_decimals = False
    double_error = 1e-15  # it reads a double well, but not to the last bit
    readable_partition = "instr(partition_values, '\\u') = 0"

    def bound(self, section: str, path: Sequence[str], kind: Kind, bind: Bind) -> str | None:
        place = self._place([section, *path], bind)
        if place is None:
            return None
        if kind is Kind.INTEGER:
            return self._of_type(place, "'integer'")
        if kind in _NUMBERS:
            found = self._of_type(place, "'integer', 'real'")
            return _where("abs(t) < 1e300", found, "CAST(t AS REAL)")
        text = self._of_type(place, "'text'")
        if kind is Kind.STRING:
            return text
        if kind is Kind.DATE:
            return _where(f"length(t) = 10 AND {_DAY}", text)
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            zone = "substr(t, -1) = 'Z'" if kind is Kind.TIMESTAMP else "TRUE"
            shape = f"substr(t, 11, 1) = 'T' AND {_DAY} AND {_TIME} AND {_MILLISECONDS} AND {zone}"
            return _where(shape, text, "substr(t, 1, 23)")
        return None

    def local_day(self, section: str, path: Sequence[str], bind: Bind) -> str | None:
        place = self._place([section, *path], bind)
        if place is None:
            return None
        shape = f"{_DAY} AND substr(t, 11, 4) GLOB '[T ][0-9][0-9]:'"
        text = self._of_type(place, "'text'")
        return _where(shape, text, "substr(t, 1, 10)")

    def null_count(self, path: Sequence[str], bind: Bind) -> str | None:
        place = self._place(["nullCount", *path], bind)
        return None if place is None else self._of_type(place, "'integer'")

    def records(self, bind: Bind) -> str:
        return self._of_type(bind('$."numRecords"'), "'integer'")

    def ambiguous(self, names: Sequence[str], bind: Bind) -> str | None:
        # It takes the first of two equal keys.
        if not all(map(simple_name, names)):
            return None
        twice = [
            f"(SELECT count(*) FROM json_each(stats, {self._place(names[:depth], bind)}) "  # noqa: S608  text of our own
            f"WHERE key = {bind(name)}) > 1"
            for depth, name in enumerate(names)
        ]
        return f"CASE WHEN {_PLAIN} THEN {' OR '.join(twice)} END"

    @staticmethod
    def _place(names: Sequence[str], bind: Bind) -> str | None:
        # Its paths have no way to write a quote.
        return bind("$" + "".join(f'."{name}"' for name in names)) if all(map(simple_name, names)) else None

    @staticmethod
    def _of_type(place: str, types: str) -> str:
        known = f"{_PLAIN} AND json_type(stats, {place}) IN ({types})"
        return f"CASE WHEN {known} THEN json_extract(stats, {place}) END"

    def partition(self, key: str, bind: Bind) -> str | None:
        place = self._place([key], bind)
        return None if place is None else f"json_extract(partition_values, {place})"

    def typed(self, text: str, kind: Kind) -> str:
        if kind is Kind.INTEGER:
            return _where("CAST(CAST(t AS INTEGER) AS TEXT) = t", text, "CAST(t AS INTEGER)")
        if kind in _NUMBERS:
            shape = (
                "t GLOB '*[0-9]*' AND t NOT GLOB '*[^0-9.-]*' AND instr(substr(t, 2), '-') = 0"
                " AND length(t) - length(replace(t, '.', '')) <= 1"
            )
            return _where(shape, text, "CAST(t AS REAL)")
        if kind is Kind.DATE:
            return _where(f"length(t) = 10 AND {_DAY}", text)
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            fraction = "rtrim(substr(t, 21), 'Z')"
            shape = (
                f"{_DAY} AND {_TIME} AND substr(t, 11, 1) IN ('T', ' ') AND substr(t, 20, 1) IN ('', 'Z', '.')"
                f" AND {fraction} NOT GLOB '*[^0-9]*' AND length({fraction}) <= 6"
            )
            whole = f"replace(substr(t, 1, 19), ' ', 'T') || '.' || {fraction} || '000000'"
            return _where(shape, text, f"substr({whole}, 1, 26)")
        if kind is Kind.BOOLEAN:
            return _where("lower(t) IN ('true', 'false')", text, "lower(t)")
        return text

    def number(self, text: str) -> str:
        return f"CAST({text} AS REAL)"

    def begins(self, text: str, prefix: str) -> str:
        return f"substr({text}, 1, length({prefix})) = {prefix}"

    def text_of_hex(self, digits: str) -> str:
        return f"CAST(X'{digits}' AS TEXT)"
