"""Tables, files and predicates for the tests of pruning: what Delta would write, and what nobody should."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from mainstem.pruning import TableColumns, table_columns

TYPES: dict[str, Any] = {
    "n": "long",
    "small": "byte",
    "m": "decimal(10,2)",
    "wide": "decimal(38,10)",
    "f": "float",
    "d": "double",
    "s": "string",
    "day": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
    "flag": "boolean",
    "a b'c": "long",
    "st": {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]},
    "p": "string",
    "pi": "integer",
    "pd": "date",
    "pt": "timestamp",
    "pm": "decimal(10,2)",
    "pf": "boolean",
}
PARTITIONS = ("p", "pi", "pd", "pt", "pm", "pf")
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in TYPES.items()],
    }
)
HOSTILE_TEXTS = (
    "", "' OR 1=1 --", "it's", 'say "x"', "a\\b", "50% :name $1 ?", "{}", "},\"maxValues\":{", "naïve 🦆", "\n", "/*",
    "--",
    "__HIVE_DEFAULT_PARTITION__", "\uffff", "\U0010ffff", "a" * 40, "é" * 20,
)  # fmt: skip


def columns() -> TableColumns:
    return table_columns(SCHEMA, PARTITIONS, {})


@dataclass(frozen=True)
class Described:
    """As much of a snapshot as pruning looks at."""

    schema_json: str = SCHEMA
    partition_columns: Sequence[str] = PARTITIONS
    properties: Any = None
    in_utc: bool = True
    partition_texts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", self.properties or {})


@dataclass(frozen=True)
class File:
    """A file as the log has it, and the rows that are in it, where the test knows them."""

    partition_values: dict[str, str | None]
    stats: str | None
    rows: tuple[dict[str, Any], ...] = ()


# Rows and what Delta writes about them.

_TEXTS = st.one_of(
    st.sampled_from(HOSTILE_TEXTS),
    st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=40),
    st.text("ab", max_size=3),
)
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)) | st.integers(0, 3_000_000).map(
    lambda us: datetime(2024, 2, 28, 23, 59, 59) + timedelta(microseconds=us)
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)),
    "small": st.integers(-128, 127),
    "m": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda units: Decimal(units).scaleb(-10)),
    "f": st.floats(width=32, allow_nan=True),
    "d": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 0.1, 1e22, math.inf, -math.inf, math.nan])),
    "s": _TEXTS,
    "day": st.dates(date(1900, 1, 1), date(2100, 1, 1)) | st.dates(date(2024, 2, 27), date(2024, 3, 2)),
    "ts": _MOMENTS,
    "tn": _MOMENTS,
    "flag": st.booleans(),
    "a b'c": st.integers(-3, 3),
    "st.n": st.integers(-3, 3),
    "p": _TEXTS.filter(bool),
    "pi": st.integers(-3, 3),
    "pd": st.dates(date(2024, 2, 27), date(2024, 3, 2)),
    "pt": _MOMENTS,
    "pm": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "pf": st.booleans(),
}


class _Key:
    """Spark's order: NaN is the greatest and equals itself; texts go by their code points."""

    def __init__(self, value: Any) -> None:
        self.value = (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value

    def __lt__(self, other: _Key) -> bool:
        return bool(self.value < other.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and bool(self.value == other.value)


def _shortest32(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return text
    return repr(value)


def _number(name: str, value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    text = _shortest32(value) if name == "f" else repr(value)
    return text.replace("e+", "E").replace("e", "E")


def _stat(name: str, value: Any, *, most: bool) -> str:
    """One bound as JSON text, as Delta writes it: texts cut to 32 characters, moments cut to milliseconds."""
    if isinstance(value, float):
        return _number(name, value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return json.dumps(value.isoformat(timespec="milliseconds") + ("Z" if name == "ts" else ""))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, str):
        if len(value) > 32:
            following = value[32:]
            value = value[:32] + (("\U0010ffff" if max(following) > "\uffff" else "\uffff") if most else "")
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def stats_of(rows: Sequence[dict[str, Any]], *, tight: bool = True) -> str:
    """The statistics of some rows, in the layout of every known writer."""
    names = [name for name in VALUES if name not in PARTITIONS]
    sections: dict[str, list[str]] = {"minValues": [], "maxValues": [], "nullCount": []}
    nested: dict[str, str] = {}
    for name in names:
        there = [row[name] for row in rows if row[name] is not None]
        found = {"nullCount": str(len(rows) - len(there))}
        if there and name != "flag":
            found["minValues"] = _stat(name, min(there, key=_Key), most=False)
            found["maxValues"] = _stat(name, max(there, key=_Key), most=True)
        for section, text in found.items():
            if name == "st.n":
                nested[section] = f'"st":{{"n":{text}}}'
            else:
                sections[section].append(f"{json.dumps(name)}:{text}")
    for section, text in nested.items():
        sections[section].append(text)
    body = ",".join(f'"{section}":{{{",".join(members)}}}' for section, members in sections.items())
    ending = "" if tight else ',"tightBounds":false'
    return f'{{"numRecords":{len(rows)},{body}{ending}}}'


def flat_stats_of(rows: Sequence[dict[str, Any]]) -> str:
    """The same without the struct column."""
    return re.sub(r',"st":\{[^}]*\}', "", stats_of(rows))


def _partition_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").rstrip("0").rstrip(".") if value.microsecond else value.isoformat(sep=" ")
    return str(value)


@st.composite
def files(draw: st.DrawFn) -> File:
    """A file with rows, and what Delta would say of it."""
    partition = {name: draw(st.none() | VALUES[name]) for name in PARTITIONS}
    count = draw(st.integers(1, 4))
    rows = tuple(
        {**{name: draw(st.none() | values) for name, values in VALUES.items() if name not in PARTITIONS}, **partition}
        for _ in range(count)
    )
    texts = {name: _partition_text(value) for name, value in partition.items()}
    write = draw(st.sampled_from([stats_of, flat_stats_of]))
    # With deletion vectors the bounds stay those of all rows, and some rows are gone.
    gone = draw(st.integers(0, count - 1)) if draw(st.booleans()) else 0
    return File(texts, write(rows) if draw(st.integers(0, 9)) else None, rows[gone:])


# Predicates, with their truth for a row.

_NUMERIC = ("n", "small", "m", "wide", "a b'c", "st.n", "pi", "pm")


def _sql_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _sql(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return _sql_text(value) if isinstance(value, str) else str(value)


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


@dataclass(frozen=True)
class Predicate:
    sql: str
    truth: Any  # a row to True, False or None


def _compared(name: str, operator: str, value: Any) -> Any:
    def truth(row: dict[str, Any]) -> bool | None:
        if row[name] is None or value is None:
            return None
        left, right = _Key(row[name]), _Key(value)
        less, same = left < right, left == right
        return {
            "<": less, "<=": less or same, ">": not (less or same), ">=": not less, "=": same, "!=": not same,
        }[operator]  # fmt: skip

    return truth


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(list(VALUES)))
    column, value = _quoted(name), draw(VALUES[name] | st.none() if draw(st.integers(0, 9)) == 0 else VALUES[name])
    form = draw(st.sampled_from(["compare", "compare", "flip", "null", "in", "between", "same", "like"]))
    if form == "null":
        return Predicate(f"{column} IS NULL", lambda row: row[name] is None)
    if form == "same":
        same = _compared(name, "=", value)
        return Predicate(
            f"{column} <=> {_sql(value)}",
            lambda row: row[name] is value if value is None or row[name] is None else same(row),
        )
    if form == "in":
        listed = [value, *draw(st.lists(VALUES[name], max_size=20))]
        tests = [_compared(name, "=", one) for one in listed]
        return Predicate(
            f"{column} IN ({', '.join(map(_sql, listed))})", lambda row: _or([test(row) for test in tests])
        )
    if form == "between":
        low, high = value, draw(VALUES[name])
        return Predicate(
            f"{column} BETWEEN {_sql(low)} AND {_sql(high)}",
            lambda row: _and([_compared(name, ">=", low)(row), _compared(name, "<=", high)(row)]),
        )
    if form == "like" and name in ("s", "p") and value is not None:
        prefix = value[: draw(st.integers(0, 4))]
        if not set(prefix) & set("%_\\"):
            return Predicate(
                f"{column} LIKE {_sql_text(prefix + '%')}",
                lambda row: None if row[name] is None else row[name].startswith(prefix),
            )
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    if form == "flip":
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return Predicate(f"{_sql(value)} {flipped} {column}", _compared(name, operator, value))
    if name in _NUMERIC and value is not None and draw(st.booleans()):
        value = Decimal(value) + Decimal("0.005")
    return Predicate(f"{column} {operator} {_sql(value)}", _compared(name, operator, value))


def _and(parts: Sequence[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _or(parts: Sequence[bool | None]) -> bool | None:
    return True if True in parts else None if None in parts else False


def _not(part: bool | None) -> bool | None:
    return None if part is None else not part


def _joined(children: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(
            lambda two: Predicate(
                f"({two[0].sql}) AND ({two[1].sql})", lambda row: _and([one.truth(row) for one in two])
            )
        ),
        pairs.map(
            lambda two: Predicate(f"({two[0].sql}) OR ({two[1].sql})", lambda row: _or([one.truth(row) for one in two]))
        ),
        children.map(lambda one: Predicate(f"NOT ({one.sql})", lambda row: _not(one.truth(row)))),
    )


PREDICATES = st.recursive(leaves(), _joined, max_leaves=5)

# Statistics that nobody should write. None of them may raise, and none may hide a file that Delta would keep.
_DEEP = '{"numRecords":2,"minValues":' + "[" * 50_000 + "]" * 50_000 + "}"
HOSTILE_STATS: tuple[str | None, ...] = (
    None, "", "null", "[]", "5", '"x"', "{", "{}", '{"numRecords":2}', '{"numRecords":2,"minValues":null}',
    '{"numRecords":2,"minValues":5,"maxValues":[],"nullCount":"x"}',
    '{"numRecords":2,"minValues":{"n":1e400},"maxValues":{"n":1e200000},"nullCount":{"n":0}}',
    '{"numRecords":2,"minValues":{"d":1e400,"f":1e39,"m":1e99},"maxValues":{"d":1e400,"f":1e39,"m":1e99},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"d":"NaN","f":"NaN"},"maxValues":{"d":"NaN","f":"Infinity"},"nullCount":{"d":0}}',
    '{"numRecords":2,"minValues":{"n":123456789012345678901234567890},"maxValues":{"n":-123456789012345678901234567890},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"wide":123456789012345678901234567890.1234567890},"maxValues":{"wide":123456789012345678901234567890.1234567890},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"s":"a\\u0000b","n":5},"maxValues":{"s":"a\\u0000b","n":5},"nullCount":{"s":0,"n":0}}',
    '{"numRecords":2,"minValues":{"s":"\\ud83d","n":5},"maxValues":{"s":"\\ud83d","n":5},"nullCount":{"s":0,"n":0}}',
    '{"numRecords":2,"minValues":{"n":"5","s":5,"day":20240101,"ts":1},"maxValues":{"n":"5","day":1,"ts":1},"nullCount":{"n":"0"}}',
    '{"numRecords":2,"minValues":{"n":true,"d":true},"maxValues":{"n":false,"d":false},"nullCount":{"n":false}}',
    '{"numRecords":2,"minValues":{"n":1.5},"maxValues":{"n":1.5},"nullCount":{"n":0.0}}',
    '{"numRecords":2,"minValues":{"day":"2023-02-29","ts":"2024-13-01T00:00:00.000Z"},"maxValues":{"day":"2024-00-10","ts":"2024-01-01T25:00:00.000Z"},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"day":"zzzz-zz-zz","ts":"+12024-01-01T00:00:00.000Z"},"maxValues":{"day":"","ts":"now"},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"n":1,"n":100},"maxValues":{"n":200,"n":100},"nullCount":{"n":0,"n":1}}',
    '{"numRecords":2,"minValues":{"n":100},"maxValues":{"n":100},"nullCount":{"n":2},"minValues":{"n":1}}',
    '{"numRecords":2,"minValues":{"n":100},"minValues":{"n":1},"maxValues":{"n":100},"nullCount":{"n":2}}',
    '{"numRecords":2,"nullCount":{"n":2},"numRecords":3}',
    '{"numRecords":2,"minValues":{"x\\"n":100,"st":{"n":100}},"maxValues":{"st":{"n":100}},"nullCount":{}}',
    '{"numRecords":2,"minValues":{"st":{"q":1},"maxValues":{"n":-100}}}',
    '{"numRecords":2, "minValues" : { "n" : 1 } , "maxValues":{"n" : 3},"nullCount":{"n":0}}',
    '{"numRecords":-1,"nullCount":{"n":-1}}',
    '{"numRecords":99999999999999999999,"nullCount":{"n":99999999999999999999}}',
    '{"numRecords":2,"minValues":{"n":1},"maxValues":{"n":2',
    '{"numRecords":2,"minValues":{"n":1},"maxValues":{"n":2}} x',
    _DEEP,
)  # fmt: skip

# Zones other than UTC, more and fewer digits: as other writers put moments.
ODD_MOMENTS = tuple(
    f'{{"numRecords":1,"minValues":{{"ts":"{text}","tn":"{text}"}},"maxValues":{{"ts":"{text}","tn":"{text}"}},"nullCount":{{"ts":0,"tn":0}}}}'
    for text in (
        "2024-02-28T23:59:59.999-08:00", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00", "2024-02-29 00:00:00.1",
        "2024-02-28T23:59:59.123456Z", "2024-02-28T23:59:59.123456789Z", "2024-03-01T00:00:00+14:00",
    )
)  # fmt: skip
