"""What the condition of a MERGE says of the files that it can touch: never more than it says of every matching row."""

from __future__ import annotations

import json

import pytest
from pruning_cases import columns

from mainstem.operations.bounds import Bounds, bounds_of
from mainstem.pruning import may_match, parse


@pytest.mark.parametrize(
    ("on", "target", "pairs"),
    [
        ("t.id = s.id", [], [("id", "id")]),
        ("s.ID = T.id AND t.n < 5", ["n < 5"], [("id", "ID")]),
        ("(t.a = s.b) AND (t.n IN (1, 2))", ["n IN (1, 2)"], [("a", "b")]),
        ("t.s = 'it''s'", ["s = 'it\\'s'"], []),
        ('t.s = "a""b"', ["s = 'a\"b'"], []),
        ("t.st.n > 4 AND t.`odd name`.x = 1", ["st.n > 4", "`odd name`.x = 1"], []),
        # A field of a struct has the name of its last part alone: no pair of columns.
        ("t.st.n = s.n AND t.n = s.st.n", [], []),
        # The source's struct may be called as the target is.
        ("s.t.x = 5 AND t.id = s.id", [], [("id", "id")]),
        # What Spark and the parser may read in two ways bounds nothing.
        ("t.s = 'a\\nb' AND t.n > 3", ["n > 3"], []),
        ("n > 3 AND s.n > 4 AND t.n + s.n = 7", [], []),
        ("t.n = 1 OR t.n = s.n", [], []),
    ],
)
def test_only_what_is_the_targets_own_bounds_it(on: str, target: list[str], pairs: list[tuple[str, str]]) -> None:
    assert bounds_of(on, target="t", source="s") == Bounds(tuple(target), tuple(pairs))


def test_a_file_that_has_a_matching_row_is_within_the_bounds() -> None:
    [bound] = bounds_of("t.id = s.id AND t.s = 'it''s'", target="t", source="s").target
    stats = json.dumps({"numRecords": 1, "minValues": {"s": "it's"}, "maxValues": {"s": "it's"}, "nullCount": {"s": 0}})
    assert may_match(parse(bound, columns()), {}, stats)
    assert not may_match(parse(bound, columns()), {}, stats.replace("it's", "its"))
