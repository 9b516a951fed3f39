"""Statistics in DuckDB, by JSON pointers, which can name any key."""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.engines.filesql import DAY, INTEGER, MOMENT, NUMBER, TIME, Bind, FileSql, Kind

_TYPES = {Kind.INTEGER: "HUGEINT", Kind.DECIMAL: "DOUBLE", Kind.FLOAT: "DOUBLE", Kind.DOUBLE: "DOUBLE"}
_TOKENS = {
    Kind.INTEGER: INTEGER,
    Kind.DECIMAL: NUMBER,
    Kind.FLOAT: NUMBER,
    Kind.DOUBLE: NUMBER,
    Kind.DATE: f'"{DAY}"',
    Kind.TIMESTAMP: rf'"{DAY}T{TIME}\.[0-9]{{3,9}}Z"',
    Kind.TIMESTAMP_NTZ: rf'"{DAY}T{TIME}\.[0-9]{{3,9}}Z?"',
}
_PLAIN = "num_records IS NOT NULL AND NOT contains(stats, '\\u') AND json_valid(stats)"


def _match(text: str, pattern: str, end: str = "$") -> str:
    return f"nullif(regexp_extract({text}, '^{pattern}{end}'), '')"


def _pointer(names: Sequence[str]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


class DuckdbFileSql(FileSql):
    exact_decimals = False  # its JSON reads every other number as a double
    readable_partition = "NOT contains(partition_values, '\\u')"

    def bound(self, section: str, path: Sequence[str], kind: Kind, bind: Bind) -> str | None:
        place = bind(_pointer([section, *path]))
        if kind is Kind.STRING:
            # A number where a text belongs is no bound of texts.
            known = f"{_PLAIN} AND json_type(stats, {place}) = 'VARCHAR'"
            return f"CASE WHEN {known} THEN json_extract_string(stats, {place}) END"
        if kind not in _TOKENS:
            return None
        found = _match(self._token(place), _TOKENS[kind])
        if kind in _TYPES:
            return f"TRY_CAST({found} AS {_TYPES[kind]})"
        return f"substr({found}, 2, {10 if kind is Kind.DATE else 23})"

    def local_day(self, section: str, path: Sequence[str], bind: Bind) -> str | None:
        found = _match(self._token(bind(_pointer([section, *path]))), f'"{DAY}[T ][0-9][0-9]:', end="")
        return f"substr({found}, 2, 10)"

    def null_count(self, path: Sequence[str], bind: Bind) -> str | None:
        return f"TRY_CAST({_match(self._token(bind(_pointer(['nullCount', *path]))), INTEGER)} AS HUGEINT)"

    def records(self, bind: Bind) -> str:
        return f"TRY_CAST({_match(self._token(bind('/numRecords')), INTEGER)} AS HUGEINT)"

    def ambiguous(self, names: Sequence[str], bind: Bind) -> str | None:
        # It takes the first of two equal keys.
        twice = []
        for depth, name in enumerate(names):
            keys = f"json_keys(stats, {bind(_pointer(names[:depth]))})" if depth else "json_keys(stats)"
            twice.append(f"len(list_filter({keys}, lambda k: k = {bind(name)})) > 1")
        return f"CASE WHEN {_PLAIN} THEN {' OR '.join(twice)} END"

    @staticmethod
    def _token(place: str) -> str:
        return f"CASE WHEN {_PLAIN} THEN CAST(json_extract(stats, {place}) AS VARCHAR) END"

    def partition(self, key: str, bind: Bind) -> str | None:
        return f"json_extract_string(partition_values, {bind(_pointer([key]))})"

    def typed(self, text: str, kind: Kind) -> str:
        if kind in _TYPES:
            return f"TRY_CAST({_match(text, _TOKENS[kind])} AS {_TYPES[kind]})"
        if kind is Kind.DATE:
            return _match(text, DAY)
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            found = _match(text, MOMENT)
            whole = f"replace(substr({found}, 1, 19), ' ', 'T') || '.' || rtrim(substr({found}, 21), 'Z') || '000000'"
            return f"substr({whole}, 1, 26)"
        return _match(f"lower({text})", "(?:true|false)") if kind is Kind.BOOLEAN else text

    def number(self, text: str) -> str:
        return f"CAST({text} AS DOUBLE)"

    def begins(self, text: str, prefix: str) -> str:
        return f"starts_with({text}, {prefix})"

    def text_of_hex(self, digits: str) -> str:
        return f"decode(from_hex('{digits}'))"
