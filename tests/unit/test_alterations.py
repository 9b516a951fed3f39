"""ALTER TABLE on a mount without files is for changes that surely look at none."""

from __future__ import annotations

import pytest

from mainstem.operations.alterations import leaves_rows_unseen


@pytest.mark.parametrize(
    ("change", "unseen"),
    [
        ("ADD COLUMNS (note STRING)", True), ("add  column\n(note STRING COMMENT 'x')", True),
        ("RENAME COLUMN a TO b", True), ("DROP COLUMN a", True), ("ALTER COLUMN a TYPE BIGINT", True),
        ("ALTER COLUMN a COMMENT 'said'", True), ("SET TBLPROPERTIES ('a' = 'b', 'delta.appendOnly' = 'true')", True),
        ("SET\tTBLPROPERTIES('delta.enableChangeDataFeed' = true)", True), ("UNSET TBLPROPERTIES ('a')", True),
        ("ADD COLUMNS (note STRING NOT\n NULL)", False), ("ALTER COLUMN a SET  NOT  NULL", False),
        ("ADD  CONSTRAINT c CHECK (a > 0)", False), ("DROP  FEATURE deletionVectors", False),
        ("DROP\nFEATURE deletionVectors", False), ("/* so */ DROP FEATURE x", False),
        ("SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", False),
        ("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')", False),
        ("UNSET TBLPROPERTIES ('a', 'delta.columnMapping.mode')", False),
        ("SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')", False),
        ("SET TBLPROPERTIES (delta.enableIcebergCompatV2 = 'true')", False),
        ("SET TBLPROPERTIES (`delta` . enableIcebergCompatV2 = 'true')", False),
        (r"SET TBLPROPERTIES ('delta\x2eenableIcebergCompatV2' = 'true')", False),
        ("CLUSTER BY (a)", False), ("", False),
    ],
)  # fmt: skip
def test_what_is_not_known_to_look_at_no_row_gets_all_files(change: str, unseen: bool) -> None:
    assert leaves_rows_unseen(change) is unseen
