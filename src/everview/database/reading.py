"""What `read` and `changes` give: rows and feeds of a relation; nested views are rebuilt."""

from __future__ import annotations

from everview.arguments import did_you_mean, named
from everview.database import queries
from everview.database.catalog.catalog import Catalog
from everview.database.change_feed import ChangePair, change_feed, pair_of_feed
from everview.database.collections.query import rebuilt
from everview.database.handle import Handle
from everview.errors import UserError
from everview.expr.types import names
from everview.lang.front_end import rebuilt_view, shared_dictionaries
from everview.plan.build import project
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.results import Result


def read(handle: Handle, name: str, epoch: int | None, *, nested: bool) -> Result:
    """The rows of a table or view at an epoch, the newest unless one is named."""
    snapshot, catalog = handle.at(epoch)
    relation = catalog.relation(name)
    if nested and (catalog.is_nested(relation) or _has_collections(catalog, relation)):
        rows = _rebuilt(handle.engine, relation, catalog, snapshot)
    elif relation in catalog.tables and catalog.tables[relation].inside:
        table = catalog.tables[relation]
        plan = project(table.source, names(table.shown))
        rows = queries.within_budget(
            queries.read_plan(handle.engine, plan, snapshot), handle.engine
        )
    else:
        rows = queries.read(handle.engine, relation, snapshot)
    return handle.lazy(rows, snapshot)


def _has_collections(catalog: Catalog, relation: str) -> bool:
    return relation in catalog.tables and catalog.tables[relation].collections is not None


def _rebuilt(engine: Engine, view: str, catalog: Catalog, snapshot: Snapshot) -> Result:
    """A nested view or table, its collections put together by whoever reads the rows."""
    if view in catalog.tables:
        plan = rebuilt(catalog.tables[view])
    else:
        plan = rebuilt_view(catalog.views[view].query, catalog.known_relations())
    return queries.within_budget(queries.read_plan(engine, plan, snapshot), engine)


def changes(handle: Handle, name: str, after: int, path: str | None) -> Result:
    """The change feed of a table or view, or of a collection inside a nested view."""
    snapshot, catalog = handle.at()
    relation = _relation(catalog, name, path)
    feed = change_feed(handle.store, catalog, relation, after)
    return handle.lazy(queries.within_budget(feed, handle.engine), snapshot)


def change_pair(handle: Handle, name: str, after: int, path: str | None) -> ChangePair:
    """The same as two relations: what went, and what came."""
    snapshot, catalog = handle.at()
    relation = _relation(catalog, name, path)
    both = pair_of_feed(handle.engine, catalog, relation, after, snapshot)
    engine = handle.engine
    return ChangePair(*(handle.lazy(queries.within_budget(e, engine), snapshot) for e in both))


def _relation(catalog: Catalog, name: str, path: str | None) -> str:
    relation = catalog.relation(name)
    return relation if path is None else _inside(catalog, relation, path)


def _inside(catalog: Catalog, view: str, path: str) -> str:
    """The relation of a collection inside a nested view."""
    known = {each[len(view) + 1 :]: each for each in catalog.dictionaries(view)}
    if catalog.is_nested(view):
        query = catalog.views[view].query
        known |= shared_dictionaries(query, catalog.known_relations())
    if path not in known:
        near = did_you_mean(path, tuple(known))
        raise UserError(
            "N008",
            f"{view} has no collection {named(path)}",
            remedy=f"{near}there are: {', '.join(known)}" if known else "leave out path",
        )
    return known[path]
