"""Time travel: tables and views of a query as an earlier epoch has them."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sqlglot import exp

from everview.database.catalog.load import load
from everview.database.introspect.system_tables import BoundQuery
from everview.errors import UserError
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.versions import names_version, version_of, versioned_tables
from everview.runtime.protocol import Engine, Snapshot
from everview.store.store import Store

_NEVER = datetime.min.replace(tzinfo=UTC)


def bind_versions(query: BoundQuery, engine: Engine) -> tuple[BoundQuery, tuple[Snapshot, ...]]:
    """The query with each AS OF bound to a relation of that epoch; the epochs it reads beside.

    Such a relation is one more of the snapshot: its value is the segments that its epoch names.
    """
    if not names_version(query.text):
        return query, ()
    tree = parse_query(query.text)
    reads, travelled = list(query.reads), dict[int, Snapshot]()
    stored, relations = dict(query.snapshot.stored), dict(query.snapshot.manifest.relations)
    for table in versioned_tables(tree):
        epoch = _epoch(version_of(table, query.text), query.snapshot.store)
        then = travelled.get(epoch) or _at(epoch, query.snapshot.store, engine)
        travelled[epoch] = then
        name = _found(table, then, query.text)
        alias = f"{name} at {epoch}"
        for inside in _with_collections(name, then):
            called = f"{alias}{inside.removeprefix(name)}"
            stored[called] = then.stored[inside]
            relations[called] = replace(then.relation(inside), name=called)
        reads.append(alias)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(alias, quoted=True))
        table.set("version", None)
    manifest = replace(query.snapshot.manifest, relations=relations)
    snapshot = replace(query.snapshot, manifest=manifest, stored=stored)
    bound = BoundQuery(tree.sql(dialect=QUERIES), tuple(reads), snapshot, query.pending)
    return bound, tuple(travelled.values())


def bind_query(text: str, reads: tuple[str, ...], snapshot: Snapshot, engine: Engine) -> BoundQuery:
    """A query over an epoch with nothing pending, each AS OF in it bound."""
    return bind_versions(BoundQuery(text, reads, snapshot, {}), engine)[0]


def _at(epoch: int, store: Store, engine: Engine) -> Snapshot:
    manifest = store.read(epoch)
    catalog = load(manifest, engine, store.folder.shown).compile()
    return Snapshot(store, manifest, catalog.stored())


def _with_collections(name: str, then: Snapshot) -> list[str]:
    """A relation of an epoch, and the dictionaries of the collections in its rows."""
    found = (n for n, each in then.stored.items() if n.startswith(f"{name}.") and not each.ours)
    return [name, *found]


def _found(table: exp.Table, then: Snapshot, text: str) -> str:
    """The table or view of an epoch that a query names; what is Everview's own is not seen."""
    seen = {name.lower(): name for name, each in then.stored.items() if not each.ours}
    name = None if table.db else seen.get(table.name.lower())
    if name is None:
        raise UserError(
            "C002",
            f"epoch {then.manifest.epoch} has no table or view {table.name}",
            span=span_of(table, text),
            remedy="read an epoch after it was created",
        )
    return name


def _epoch(version: int | datetime, store: Store) -> int:
    """The epoch of that number, or the newest that was committed at or before a moment."""
    if isinstance(version, int):
        return version
    epochs = store.epochs()
    after = bisect_right(epochs, version, key=lambda epoch: _created(store, epoch))
    if not after:
        first = _created(store, epochs[0]).isoformat(" ")
        remedy = f"ask for a moment from {first} on"
        raise store.log.not_retained(f"the epoch of {version.isoformat(' ')}", remedy)
    return epochs[after - 1]


def _created(store: Store, epoch: int) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(store.read(epoch).created)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _NEVER
