"""All checks of the Spark form, cheap ones first. Those of a few rows are the driver's own."""

from __future__ import annotations

from mainstem.validate.commits import log_ends_with_the_catalog
from mainstem.validate.distributed.commits import commits_equal
from mainstem.validate.distributed.files import data_files_present, orphans_counted, statistics_sane
from mainstem.validate.distributed.spans import spans_equal_replay
from mainstem.validate.distributed.states import checkpoints_equal, snapshots_equal_delta
from mainstem.validate.rows import head_is_newest, published_in_time, versions_contiguous
from mainstem.validate.subject import Check

CHECKS: tuple[Check, ...] = (
    versions_contiguous,
    head_is_newest,
    published_in_time,
    spans_equal_replay,
    log_ends_with_the_catalog,
    commits_equal,
    checkpoints_equal,
    snapshots_equal_delta,
    data_files_present,
    statistics_sane,
    orphans_counted,
)
