"""The declared tables and views, and how they are written in a manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.analysis.keys import keys
from everview.compiler import Maintenance, Table, View
from everview.emit.sql import ring_columns
from everview.engine.protocol import Stored
from everview.errors import UserError
from everview.lang.sql.lower import Analyze, lower_query
from everview.plan.build import columns_of
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import children, schema_of, sources, walk, with_children
from everview.plan.types import Column, Schema, names
from everview.rewrite.passes import rewrite


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A declared table."""

    name: str
    columns: Schema
    key: tuple[str, ...]
    not_null: tuple[str, ...]

    @property
    def source(self) -> Source:
        """The table as plans read it."""
        return Source(self.name, self.columns, self.key)

    @property
    def sort(self) -> tuple[str, ...]:
        """The order its segments are stored in."""
        return self.key or (self.columns[0].name,)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A declared view: its query as written, and the names given to its columns."""

    name: str
    query: str
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class Catalog:
    """What is declared, in order of declaration, and the maintenance compiled from it."""

    tables: dict[str, TableDefinition]
    views: dict[str, ViewDefinition]
    analyze: Analyze
    _compiled: dict[str, View] = field(default_factory=dict)
    _maintenance: Maintenance | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], analyze: Analyze) -> Catalog:
        """The catalog that `to_json` wrote."""
        tables = {
            each["name"]: TableDefinition(
                each["name"],
                tuple(Column(name, type_) for name, type_ in each["columns"]),
                tuple(each["key"]),
                tuple(each["not_null"]),
            )
            for each in raw.get("tables", ())
        }
        views = {
            each["name"]: ViewDefinition(each["name"], each["query"], tuple(each["columns"]))
            for each in raw.get("views", ())
        }
        return cls(tables, views, analyze)

    def to_json(self) -> dict[str, Any]:
        """The declarations, as JSON."""
        tables = [
            {
                "name": table.name,
                "columns": [[column.name, column.type] for column in table.columns],
                "key": list(table.key),
                "not_null": list(table.not_null),
            }
            for table in self.tables.values()
        ]
        views = [
            {"name": view.name, "query": view.query, "columns": list(view.columns)}
            for view in self.views.values()
        ]
        return {"tables": tables, "views": views}

    def with_table(self, table: TableDefinition) -> Catalog:
        """The catalog with one more table."""
        self._must_be_free(table.name)
        return Catalog({**self.tables, table.name: table}, self.views, self.analyze, self._compiled)

    def with_view(self, view: ViewDefinition) -> Catalog:
        """The catalog with one more view, compiled."""
        self._must_be_free(view.name)
        views = {**self.views, view.name: view}
        grown = Catalog(self.tables, views, self.analyze, dict(self._compiled))
        grown.compiled(view.name)
        return grown

    def without(self, name: str) -> Catalog:
        """The catalog without a table or view that nothing reads."""
        readers = [v for v in self.views if v != name and name in self.reads(v)]
        if readers:
            raise UserError(
                "C003",
                f"{name} cannot be dropped, because it is read by {', '.join(readers)}",
                remedy=f"drop {', '.join(reversed(readers))} first",
            )
        tables = {key: value for key, value in self.tables.items() if key != name}
        views = {key: value for key, value in self.views.items() if key != name}
        compiled = {key: value for key, value in self._compiled.items() if key != name}
        return Catalog(tables, views, self.analyze, compiled)

    def _must_be_free(self, name: str) -> None:
        taken = self.find(name)
        if taken is not None:
            raise UserError(
                "C001",
                f"there is a table or view {taken} already",
                remedy="choose another name, DROP it first, or write IF NOT EXISTS",
            )

    def find(self, name: str) -> str | None:
        """The declared spelling of a name, None when there is no such table or view."""
        known = {each.lower(): each for each in (*self.tables, *self.views)}
        return known.get(name.lower())

    def table(self, name: str) -> TableDefinition:
        """The table of that name, or a clear error."""
        found = self.find(name)
        if found in self.tables:
            return self.tables[found]
        if found is not None:
            raise UserError(
                "C004",
                f"{found} is a view: it follows its tables and cannot be changed itself",
                remedy=f"change what it reads: {', '.join(self.reads(found))}",
            )
        raise self.unknown(name)

    def unknown(self, name: str) -> UserError:
        """The error for a name that nothing has."""
        known = ", ".join((*self.tables, *self.views))
        return UserError(
            "C002",
            f"there is no table or view {name}",
            remedy=f"there are: {known}" if known else "create it with CREATE TABLE",
        )

    def relation(self, name: str) -> str:
        """The declared spelling of a table's or view's name, or a clear error."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        return found

    def schema(self, name: str) -> Schema:
        """The columns of a table or view."""
        if name in self.tables:
            return self.tables[name].columns
        return self.compiled(name).source.schema

    def reads(self, view: str) -> tuple[str, ...]:
        """The tables and views that a view reads."""
        return tuple(dict.fromkeys(source.name for source in sources(self.compiled(view).plan)))

    def compiled(self, name: str) -> View:
        """A view as a rewritten plan over the relations declared before it."""
        if name not in self._compiled:
            view = self.views[name]
            known: dict[str, Source] = {t.name.lower(): t.source for t in self.tables.values()}
            for other in self.views:
                if other == name:
                    break
                known[other.lower()] = self.compiled(other).source
            plan = rewrite(lower_query(view.query, known, self.analyze, view.columns))
            self._compiled[name] = _view(name, plan)
        return self._compiled[name]

    @property
    def maintenance(self) -> Maintenance:
        """The states and programs that keep all views fresh."""
        if self._maintenance is None:
            tables = {t.name: Table(t.source, t.sort, t.not_null) for t in self.tables.values()}
            views = tuple(self.compiled(name) for name in self.views)
            self._maintenance = Maintenance(tables, views)
        return self._maintenance

    def stored(self) -> dict[str, Stored]:
        """How every stored relation is read: tables, views and states."""
        found = {t.name: Stored(t.columns, t.sort) for t in self.tables.values()}
        for name in self.views:
            view = self.compiled(name)
            found[name] = Stored(view.source.schema, view.sort)
        for state in self.maintenance.states.stored.values():
            rings = ring_columns(state.plan)
            sort = tuple(column for column in state.sort if column not in rings)
            found[state.name] = Stored(schema_of(state.plan), sort, rings, ours=True)
        return found

    def to_build(self, present: Collection[str]) -> list[tuple[str, Plan]]:
        """The views and states that are not `present`, each over relations built before it.

        What a state holds is read from the state and not computed again: cheaper, and for sums of
        doubles, whose last digits depend on the order of addition, the only way to have one value.
        """
        states = {s.name: s.plan for s in self.maintenance.states.stored.values()}
        views = {name: self.compiled(name).plan for name in self.views}
        smallest_first = sorted(states, key=lambda name: len(tuple(walk(states[name]))))
        waiting = [name for name in (*smallest_first, *views) if name not in present]
        ready = {*present, *self.tables}
        found: list[tuple[str, Plan]] = []
        while waiting:
            name = next(
                n
                for n in waiting
                if all(s.name in ready for s in sources(states.get(n) or views[n]))
            )
            waiting.remove(name)
            plan = states.get(name) or views[name]
            known = {states[other]: other for other in states if other in ready}
            found.append((name, reading(plan, known)))
            ready.add(name)
        return found


def reading(plan: Plan, known: Mapping[Plan, str]) -> Plan:
    """The plan with every subplan that a relation holds replaced by that relation."""
    if plan in known:
        return Source(known[plan], schema_of(plan))
    return with_children(plan, tuple(reading(part, known) for part in children(plan)))


def _view(name: str, plan: Plan) -> View:
    """How others read the view: by its smallest key where it has one, else by its first column."""
    schema = schema_of(plan)
    found = sorted(keys(plan), key=lambda key: (len(key), sorted(key)))
    key = tuple(column for column in names(schema) if found and column in found[0])
    return View(Source(name, schema, key), key or columns_of(plan)[:1], plan)
