"""Which changes of a table's definition leave its rows unseen."""

from __future__ import annotations

import re

# Of columns: what they are called, where they stand, what is said of them. Widening a type rewrites nothing.
_OF_COLUMNS = re.compile(r"(ADD COLUMNS?|RENAME COLUMN|DROP COLUMNS?|ALTER COLUMN|CHANGE COLUMN) .*", re.DOTALL)
_OF_PROPERTIES = re.compile(r"(SET|UNSET) TBLPROPERTIES ?\(.*", re.DOTALL)
_QUOTES, _DOTS = re.compile("['\"`]"), re.compile(r" ?\. ?")
_LOOKING = ("CONSTRAINT", "NOT NULL", "CHECK")
_DELTAS = re.compile(r"DELTA\.[\w.]+")
# By these Delta neither looks at a file nor rewrites one. Of all others it may: row tracking numbers the rows that are
# there, column mapping is taken away by rewriting them.
_PROPERTIES = re.compile(
    r"DELTA\.(APPENDONLY|AUTOOPTIMIZE(\.\w+)?|CHECKPOINT\.\w+|CHECKPOINTINTERVAL|CHECKPOINTPOLICY|DATASKIPPING\w+|"
    r"DELETEDFILERETENTIONDURATION|ENABLECHANGEDATAFEED|ENABLEDELETIONVECTORS|ENABLEEXPIREDLOGCLEANUP|"
    r"ENABLEINCOMMITTIMESTAMPS|ENABLETYPEWIDENING|ISOLATIONLEVEL|LOGRETENTIONDURATION|PARQUET\.[\w.]+|"
    r"SETTRANSACTIONRETENTIONDURATION|TARGETFILESIZE|TUNEFILESIZESFORREWRITES)"
)


def leaves_rows_unseen(change: str) -> bool:
    """Whether `ALTER TABLE … change` surely asks for no file; of what is not known here, none is."""
    if any(hiding in change for hiding in ("/*", "--", "\\")):
        return False
    text = _DOTS.sub(".", " ".join(_QUOTES.sub("", change).split())).upper()
    if _OF_COLUMNS.fullmatch(text):
        return not any(word in text for word in _LOOKING)
    if _OF_PROPERTIES.fullmatch(text):
        return all(map(_PROPERTIES.fullmatch, _DELTAS.findall(text)))
    return False
