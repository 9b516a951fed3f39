"""Statistics in Postgres.

Parsing a whole JSON text for each value takes five times as long as finding the value's place in it. So the layout that
every known writer has (`{"numRecords":n,"minValues":{…},"maxValues":{…},"nullCount":{…}`) is taken apart at its braces,
and only other texts are parsed. What is cut out is surely the value: there is no brace but those of the layout, and
`,"name":` outside of a string can only be a key, while inside of one a quote would have a backslash before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mainstem.engines.filesql import (
    DAY,
    INTEGER,
    MOMENT,
    NUMBER,
    PREFIX,
    TEXTS,
    TIME,
    Bind,
    FileSql,
    Kind,
    simple_name,
)

_TOKENS = {
    Kind.INTEGER: f"^{INTEGER}$",
    Kind.DECIMAL: f"^{NUMBER}$",
    Kind.FLOAT: f"^{NUMBER}$",
    Kind.DOUBLE: f"^{NUMBER}$",
    Kind.DATE: f'^"{DAY}"$',
    Kind.TIMESTAMP: rf'^"{DAY}T{TIME}\.[0-9]{{3,9}}Z"$',
    Kind.TIMESTAMP_NTZ: rf'^"{DAY}T{TIME}\.[0-9]{{3,9}}Z?"$',
}
_TYPES = {
    Kind.INTEGER: "numeric",
    Kind.DECIMAL: "numeric",
    Kind.FLOAT: "double precision",
    Kind.DOUBLE: "double precision",
}
# What is parsed must be JSON, and not so deep that the parser gives up. An escape by `\u` may stand for what no text
# can hold, such as U+0000.
_PARSEABLE = (
    "num_records IS NOT NULL AND strpos(stats, '\\u') = 0"
    " AND octet_length(stats) - octet_length(translate(stats, '[{', '')) < 1000 AND stats IS JSON OBJECT"
)
# A text that ends otherwise than by a brace is torn: it says nothing. Asked so, a third of the time of right(stats, 1).
_WHOLE = "split_part(stats, '}', -1) = ''"
_HEAD = f"{_WHOLE} AND starts_with(stats, '{{\"numRecords\":' || num_records || ',\"minValues\":{{')"
# The layout up to the end of each section. A fifth opening brace would be a struct, or one in a text, or anything.
_MAX = "starts_with(split_part(stats, '}', 2), ',\"maxValues\":{')"
_NULLS = "starts_with(split_part(stats, '}', 3), ',\"nullCount\":{')"
_FLAT = "split_part(stats, '{', 6) = ''"
_USUAL = {
    "minValues": f"{_HEAD} AND {_MAX} AND {_FLAT}",
    "maxValues": f"{_HEAD} AND {_MAX} AND {_NULLS} AND {_FLAT}",
    "nullCount": f"{_HEAD} AND {_MAX} AND {_NULLS} AND {_FLAT}",
}
_INSIDE = {
    "minValues": "split_part(split_part(stats, '}', 1), '{', 3)",
    "maxValues": "split_part(split_part(stats, '}', 2), '{', 2)",
    "nullCount": "split_part(split_part(stats, '}', 3), '{', 2)",
}


class PostgresFileSql(FileSql):
    exact_decimals = True
    readable_partition = "strpos(partition_values, '\\u') = 0"
    partition_prefix = f'(left(partition_values, {PREFIX}) COLLATE "C")'

    def bound(self, section: str, path: Sequence[str], kind: Kind, bind: Bind) -> str | None:
        if kind is Kind.STRING:
            # A number where a text belongs is no bound of texts.
            names = ", ".join([f"'{section}'", *map(bind, path)])
            known = f"{_PARSEABLE} AND json_typeof(stats::json #> ARRAY[{names}]) = 'string'"
            return f'(CASE WHEN {known} THEN stats::json #>> ARRAY[{names}] END) COLLATE "C"'
        if kind not in _TOKENS:
            return None
        found = f"substring({self._token(section, path, bind)} from '{_TOKENS[kind]}')"
        if kind in _TYPES:
            return f"({found})::{_TYPES[kind]}"
        return f'left(ltrim({found}, \'"\'), {10 if kind is Kind.DATE else 23}) COLLATE "C"'

    def local_day(self, section: str, path: Sequence[str], bind: Bind) -> str | None:
        found = f"substring({self._token(section, path, bind)} from '^\"{DAY}[T ][0-9][0-9]:')"
        return f'left(ltrim({found}, \'"\'), 10) COLLATE "C"'

    def null_count(self, path: Sequence[str], bind: Bind) -> str | None:
        return f"substring({self._token('nullCount', path, bind)} from '^{INTEGER}$')::numeric"

    def _token(self, section: str, path: Sequence[str], bind: Bind) -> str:
        """The JSON text of a value."""
        parsed = f"({self._parsed(section, path, bind)})::text"
        if len(path) > 1 or not simple_name(path[0]):
            return parsed
        return f"coalesce({self._cut(section, path[0], bind)}, {parsed})"

    @staticmethod
    def _parsed(section: str, path: Sequence[str], bind: Bind) -> str:
        names = ", ".join([f"'{section}'", *map(bind, path)])
        return f"CASE WHEN {_PARSEABLE} THEN stats::json #> ARRAY[{names}] END"

    @staticmethod
    def _cut(section: str, name: str, bind: Bind) -> str:
        """The value between its key and the next comma."""
        # From the end: of two equal keys the last one counts. Without the key, what is left begins with the comma.
        key = bind(f',"{name}":')
        found = f"split_part(split_part(',' || {_INSIDE[section]}, {key}, -1), ',', 1)"
        return f"CASE WHEN {_USUAL[section]} THEN nullif({found}, '') END"

    def records(self, bind: Bind) -> str:
        return f"substring(({self._parsed('numRecords', (), bind)})::text from '^{INTEGER}$')::numeric"

    def partition(self, key: str, bind: Bind) -> str | None:
        return f"(partition_values::json ->> {bind(key)})"

    def typed(self, text: str, kind: Kind) -> str:
        if kind in _TYPES:
            return f"substring({text} from '{_TOKENS[kind]}')::{_TYPES[kind]}"
        if kind is Kind.DATE:
            return f"substring({text} from '^{DAY}$') COLLATE \"C\""
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            found = f"substring({text} from '^{MOMENT}$')"
            whole = f"replace(left({found}, 19), ' ', 'T') || '.' || rtrim(substr({found}, 21), 'Z') || '000000'"
            return f'left({whole}, 26) COLLATE "C"'
        if kind is Kind.BOOLEAN:
            return f"substring(lower({text}) from '^(?:true|false)$') COLLATE \"C\""
        return f'{text} COLLATE "C"'

    def number(self, text: str) -> str:
        return f"CAST({text} AS numeric)"

    def begins(self, text: str, prefix: str) -> str:
        return f"starts_with({text}, {prefix})"

    def text_of_hex(self, digits: str) -> str:
        return f"convert_from(decode('{digits}', 'hex'), 'UTF8')"


assert set(_TYPES).isdisjoint(TEXTS)
