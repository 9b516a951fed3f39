"""Proposals become versions: one short transaction over all tables involved, or nothing.

Lock the heads in one order, read what came since each proposal, check it by Delta's rules, move on what depends on the
version, insert, close spans, advance every head by compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainstem.engines.base import Asked
from mainstem.errors import ConflictError, EngineBusy, ForeignCommit, TableNotFound, UsageError
from mainstem.proposal import NO_VERSION, Proposal, TableState, require_same
from mainstem.ratified import Entry, Ratified, Terms, transaction_of
from mainstem.store import Queries, Row, as_utc, asked, asked_among
from mainstem.versions import to_millis
from mainstem.versionwriter import Writer, name_taken

# Behind every version that a head can have.
_NO_END = 2**62


def opening(
    proposals: Sequence[Proposal], token: str, *, kinds: bool, only_read: Sequence[TableState] = ()
) -> list[tuple[str, Asked]]:
    """The queries that the transaction of `ratify` begins with: the heads are locked, and then looked at.

    So are those of tables that are `only_read` and must stay where they are: all locks are taken here, in one order for
    everybody. A table that is to be made has no head, unless an attempt whose connection was lost has made it. With
    `kinds`, also of which kinds there are actions since each proposal, which is wanted if a head has moved: it is for
    engines where one query more costs no round trip while others wait for the lock.
    """
    ids = sorted({state.table_id for state in (*(each.table for each in proposals), *only_read)})
    found = [asked_among("heads_lock", "ids", ids), asked_among("heads_now", "ids", ids, txn_id=token)]
    for table in (each.table for each in _known(proposals) if kinds):
        found.append(asked("kinds_between", table_id=table.table_id, first=table.read_version + 1, last=_NO_END))
    return found


def ratify(queries: Queries, proposals: Sequence[Proposal], terms: Terms) -> list[Ratified]:
    """Turn the proposals into versions, inside of a transaction that began with `opening`. Raises: keep nothing then.

    A token that was ratified before, or application transactions none of which is newer than the table's, are not done
    a second time: the first result is returned.
    """
    _, found, *kinds = queries.first
    heads = {row["table_id"]: row for row in found}
    since = {each.table.table_id: row for each, (row,) in zip(_known(proposals), kinds, strict=False)}
    for each in proposals:
        _require_open(each, heads.get(each.table.table_id), terms)
    if repeated := _repeated(queries, proposals, heads, terms):
        return repeated
    clock = next(iter(heads.values()))["clock"] if heads else queries.scalar("clock_now")
    now_ms = to_millis(clock)
    written = []
    for each in proposals:
        head, kinds_since = (of.get(each.table.table_id) for of in (heads, since))
        written.append(Writer(queries, each, head, terms, now_ms, kinds_since=kinds_since).write())
    return list(terms.alongside(queries, written))


def _known(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Those to tables that are there already, in the order in which everybody locks their heads."""
    known = [each for each in proposals if each.table.read_version != NO_VERSION]
    return sorted(known, key=lambda each: each.table.table_id)


def _require_open(proposal: Proposal, head: Row | None, terms: Terms) -> None:
    name, is_new = proposal.table.name, proposal.table.read_version == NO_VERSION
    if head is None and is_new:
        return
    if head is None:
        raise TableNotFound(f"the catalog no longer has the table {name}.", hint="Nothing was written.", table=name)
    if head["repeated_version"] is not None:
        return
    if is_new:
        raise name_taken(name)
    if head["authority"] != terms.authority:
        leads = "its log leads" if head["authority"] == "log" else "the catalog leads it already"
        raise UsageError(
            f"{name} takes no commit from the catalog: {leads}."
            if terms.authority == "catalog"
            else f"{name} cannot be changed so: {leads}.",
            hint=f"Nothing was written. Let the catalog lead by: mainstem cutover {name}"
            if terms.authority == "catalog"
            else "Nothing was written.",
            table=name,
        )
    if head["foreign_version"] is not None:
        raise ForeignCommit(
            f"{name} takes no commit: an outside engine has written version {head['foreign_version']} into its log.",
            hint=f"Nothing was written. Decide by: mainstem resolve {name}",
            table=name,
            version=head["foreign_version"],
        )
    waiting = head["current_version"] - head["published_version"]
    if terms.most_unpublished is not None and waiting >= terms.most_unpublished:
        raise EngineBusy(
            f"{name} has {waiting} versions that are not published yet, and no more than {terms.most_unpublished} may "
            "wait.",
            hint=f"Nothing was written. Publish them by: mainstem publish {name}. The limit is max_unpublished.",
            table=name,
        )
    if head["current_version"] < proposal.table.read_version:
        require_same(proposal.table, None)


def _repeated(
    queries: Queries, proposals: Sequence[Proposal], heads: Mapping[str, Row], terms: Terms
) -> list[Ratified]:
    """The first results, if all of this was done before; nothing, if none of it was."""
    found: list[Ratified] = []
    for each in proposals:
        head = heads.get(each.table.table_id)
        if head is not None and (entries := _entries(queries, each, head, terms)):
            found.append(Ratified.of(each, head["published_version"], entries, repeated=True))
    if found and len(found) != len(proposals):
        names = ", ".join(done.name for done in found)
        raise ConflictError(
            f"a part of this transaction was committed before: {names}, and the rest was not.",
            hint="Nothing was written. An application transaction must always cover the same tables.",
            rule="ConcurrentTransaction",
        )
    return found


def _entries(queries: Queries, proposal: Proposal, head: Row, terms: Terms) -> tuple[Entry, ...]:
    """What a proposal has become when it was made before: by its token, or else by its applications."""
    table_id = proposal.table.table_id
    if head["repeated_version"] is not None:
        commits = len(proposal.commits)
        tokens = [terms.token_of(place, commits) for place in range(1, commits + 1)]
        rows = queries.rows_among("versions_of_tokens", "tokens", tokens, table_id=table_id)
        return tuple(map(_entry, rows))
    version = _known_applications(queries, proposal)
    return () if version is None else (_last_beside(queries, table_id, version),)


def _last_beside(queries: Queries, table_id: str, version: int) -> Entry:
    """The last version of the transaction by which this one came: what its caller was told of."""
    row = queries.row("versions_between", table_id=table_id, first=version, last=version)
    if row is None:
        left = queries.row("version_range", table_id=table_id, min_readable_version=version)
        assert left is not None
        return Entry(version, as_utc(left["first_time"]), b"", None, None)
    if row["txn_id"] is not None and (token := transaction_of(row["txn_id"])) != row["txn_id"]:
        [row] = queries.rows_among("versions_of_tokens", "tokens", [token], table_id=table_id)
    return _entry(row)


def _entry(row: Row) -> Entry:
    group = None if row["group_id"] is None else str(row["group_id"])
    return Entry(row["version"], as_utc(row["committed_at"]), b"", row["txn_id"], group)


def _known_applications(queries: Queries, proposal: Proposal) -> int | None:
    """The version by which all applications of a proposal had come so far; None if none of them has."""
    known, new = [], []
    for key, wanted in proposal.applications.items():
        row = queries.row("txn_now", table_id=proposal.table.table_id, app_key=key)
        if row is not None and row["txn_version"] >= wanted.txn_version:
            known.append((wanted.app_id, int(row["version"])))
        else:
            new.append(wanted.app_id)
    if known and new:
        name = proposal.table.name
        raise ConflictError(
            f"{name} has the transaction of {', '.join(repr(app) for app, _ in known)} already, and not that of "
            f"{', '.join(map(repr, new))}, which would be lost with it.",
            hint="Nothing was written. Commit what is new alone.",
            table=name,
            rule="ConcurrentTransaction",
        )
    return max((version for _, version in known), default=None)
