"""Definitions of tables, views and functions, and their JSON in a manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from everview.database.catalog.calculus import as_query
from everview.database.catalog.dictionaries import Collections, Dictionary, dictionaries
from everview.database.catalog.evolution import UNALTERED, Evolution, evolution_from, evolution_json
from everview.expr.types import Column, Schema, unusable_name
from everview.lang.front_end import SQL
from everview.lang.nested.syntax import Expr, Rel
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.statements import STRICT
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.plan.nodes import Source
from everview.program.policy import CIRCUIT, Decision
from everview.runtime.protocol import Stored

_NAME_MAX_BYTES = 200
"""Leaves room for what is added to a name in the names of files."""


def unusable_relation(name: str) -> str | None:
    """Why a name cannot be given to a table or a view, which has a folder of that name.

    >>> unusable_relation("orders"), unusable_relation("..")
    (None, "'..' is what folders call each other")
    """
    if name in (".", ".."):
        return f"{name!r} is what folders call each other"
    if len(name.encode()) > _NAME_MAX_BYTES:
        return f"{name[:20]}… is longer than {_NAME_MAX_BYTES} bytes"
    return unusable_name(name)


FormerNames: TypeAlias = tuple[tuple[int, str], ...]
"""Names of a relation before some epochs, in order."""


@dataclass(frozen=True, slots=True)
class Comments:
    """What a user says of a relation and of its columns; nothing where the text is empty."""

    relation: str = ""
    columns: tuple[tuple[str, str], ...] = ()

    def of(self, column: str) -> str:
        """What is said of a column."""
        return dict(self.columns).get(column, "")

    def with_column(self, column: str, text: str) -> Comments:
        """The same with another comment on a column."""
        kept = {name: each for name, each in self.columns if name != column}
        return Comments(self.relation, tuple((kept | ({column: text} if text else {})).items()))


UNCOMMENTED = Comments()


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A declared table; `lengths` says how long the texts of a column may be.

    `defaults` and `generated` are the expressions of columns that a row does not give.
    `evolution` is how it was altered, `formerly` the names it had until some epochs.
    A table that `is_set` has no row twice: changes of it are minimized. One with `collections` is
    the flat relation of them; a dictionary is a table too, with the name of the one it is `inside`.
    """

    name: str
    columns: Schema
    key: tuple[str, ...]
    not_null: tuple[str, ...]
    lengths: tuple[tuple[str, int], ...] = ()
    evolution: Evolution = UNALTERED
    formerly: FormerNames = ()
    comments: Comments = UNCOMMENTED
    is_set: bool = False
    defaults: tuple[tuple[str, str], ...] = ()
    generated: tuple[tuple[str, str], ...] = ()
    collections: Collections | None = None
    inside: str = ""

    @property
    def dictionaries(self) -> tuple[Dictionary, ...]:
        """The dictionaries of its collections, with those inside them."""
        key = tuple(column for name in self.key for column in self.columns if column.name == name)
        return dictionaries(self.name, key, self.collections) if self.collections else ()

    @property
    def declared(self) -> TableDefinition:
        """The table as its rows are given: collections are columns, which are empty by default."""
        if self.collections is None:
            return self
        empty = tuple((each.column, "ARRAY()") for each in self.dictionaries)
        columns = self.collections.columns
        return replace(self, columns=columns, defaults=empty, collections=None)

    @property
    def query(self) -> Expr:
        """What it means in the nested calculus: a relation, or a query for its collections."""
        if self.collections is None:
            return Rel(self.name)
        return as_query(self.name, self.collections.columns, self.dictionaries)

    @property
    def lookup(self) -> tuple[str, ...]:
        """The column by which a row of a dictionary is looked up; none of another table."""
        return (self.columns[-1].name,) if self.inside else ()

    @property
    def shown(self) -> Schema:
        """The columns that a reader of its rows is shown: those of a dictionary without digests."""
        return self.columns[:-1] if self.inside else self.columns

    @property
    def source(self) -> Source:
        """The table as plans read it."""
        return Source(self.name, self.columns, self.key)

    @property
    def sort(self) -> tuple[str, ...]:
        """The order its segments are stored in."""
        return self.key or (self.columns[0].name,)

    @property
    def stored(self) -> Stored:
        """How its files are read, whenever they were written."""
        former = self.evolution.former(self.columns)
        fills = self.evolution.fills_of(self.columns) if former else ()
        return Stored(self.columns, self.sort, former=former, fills=fills)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A declared view: its query as written, and the names given to its columns.

    With parts that are recomputed, `rest` is the query in which they stand for their blocks. The
    functions that the query `calls` are written out in it. In Datalog, the query is a stratum;
    in relational algebra, an expression; built in Python, it is the text of a plan. It is
    maintained under `decision`: None until one is chosen.
    """

    name: str
    query: str
    columns: tuple[str, ...] = ()
    refresh: str = STRICT
    rest: str | None = None
    parts: tuple[RecomputedBlock, ...] = ()
    calls: tuple[str, ...] = ()
    language: str = SQL
    formerly: FormerNames = ()
    comments: Comments = UNCOMMENTED
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What a store tells of its views to those who cannot compile them.

    `sources` are the views as they are read; `states` have the tables that they are made from.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def only(self, views: Collection[str]) -> Known:
        """The same of some of the views."""
        return Known({n: each for n, each in self.sources.items() if n in views}, self.states)


def known_from(raw: Mapping[str, Any]) -> Known:
    """What `known_json` wrote; a version before wrote nothing."""
    told: Mapping[str, Any] = raw.get("known", {})
    sources = {
        name: Source(name, _columns_from(each["columns"]), tuple(each["key"]))
        for name, each in told.get("views", {}).items()
    }
    return Known(sources, {name: tuple(each) for name, each in told.get("states", {}).items()})


def known_json(known: Known) -> dict[str, Any]:
    """What is known of views and states, as JSON; nothing where there are none."""
    views = {
        name: {"columns": _columns_json(each.schema), "key": list(each.key)}
        for name, each in known.sources.items()
    }
    states = {name: list(tables) for name, tables in known.states.items()}
    return {"known": {"views": views, "states": states}} if views or states else {}


def table_from(raw: Mapping[str, Any]) -> TableDefinition:
    """A table as `table_json` wrote it."""
    columns = _columns_from(raw["columns"])
    lengths = tuple((name, int(length)) for name, length in raw.get("lengths", ()))
    key, not_null = tuple(raw["key"]), tuple(raw["not_null"])
    evolution = evolution_from(raw.get("evolution", {}))
    table = TableDefinition(raw["name"], columns, key, not_null, lengths, evolution)
    defaults, generated = (
        tuple((name, text) for name, text in raw.get(kind, ()))
        for kind in ("defaults", "generated")
    )
    table = replace(table, defaults=defaults, generated=generated, inside=raw.get("inside", ""))
    if "collections" in raw:
        told = raw["collections"]
        found = Collections(_columns_from(told["columns"]), tuple(told["paths"]))
        table = replace(table, collections=found)
    return replace(table, is_set=raw.get("kind") == "set", **_told_from(raw))


def table_json(table: TableDefinition) -> dict[str, Any]:
    """A table, as JSON; what it does not have is left out."""
    plain: dict[str, Any] = {
        "name": table.name,
        "columns": _columns_json(table.columns),
        "key": list(table.key),
        "not_null": list(table.not_null),
    }
    pairs = {"lengths": table.lengths, "defaults": table.defaults, "generated": table.generated}
    plain |= {kind: [list(each) for each in given] for kind, given in pairs.items() if given}
    plain |= {"evolution": evolution_json(table.evolution)} if table.evolution.layouts else {}
    plain |= {"kind": "set"} if table.is_set else {}
    plain |= {"inside": table.inside} if table.inside else {}
    if table.collections is not None:
        told = _columns_json(table.collections.columns), list(table.collections.paths)
        plain |= {"collections": dict(zip(("columns", "paths"), told, strict=True))}
    return plain | _told_json(table)


def _told_from(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The former names and the comments of a table or view."""
    formerly = tuple((int(until), name) for until, name in raw.get("formerly", ()))
    told = raw.get("comments", {})
    columns = tuple((name, text) for name, text in told.get("columns", ()))
    return {"formerly": formerly, "comments": Comments(told.get("relation", ""), columns)}


def _told_json(each: TableDefinition | ViewDefinition) -> dict[str, Any]:
    """As `_told_from` reads it; what there is none of is left out."""
    comments, formerly = each.comments, [list(name) for name in each.formerly]
    told = {"relation": comments.relation, "columns": [list(pair) for pair in comments.columns]}
    found: dict[str, Any] = {"formerly": formerly} if formerly else {}
    return found | ({"comments": told} if comments != UNCOMMENTED else {})


def view_from(raw: Mapping[str, Any]) -> ViewDefinition:
    """A view as `view_json` wrote it."""
    parts = tuple(
        RecomputedBlock(
            p["name"], p["query"], _columns_from(p["columns"]), tuple(p["reads"]), p["reason"]
        )
        for p in raw.get("parts", ())
    )
    columns, refresh = tuple(raw["columns"]), raw.get("refresh", STRICT)
    name, calls = raw["name"], tuple(raw.get("calls", ()))
    language = raw.get("language", SQL)
    told: Mapping[str, Any] = raw.get("policy", {})
    rows = tuple((name, count) for name, count in told.get("rows", {}).items())
    decision = Decision(
        told.get("name", CIRCUIT), told.get("declared", False), told.get("reason", ""), rows
    )
    view = ViewDefinition(
        *(name, raw["query"], columns, refresh, raw.get("rest"), parts, calls, language),
        decision=decision,
    )
    return replace(view, **_told_from(raw))


def view_json(view: ViewDefinition) -> dict[str, Any]:
    """A view, as JSON; what it does not have is left out."""
    parts = [
        {
            "name": part.name,
            "query": part.query,
            "columns": _columns_json(part.columns),
            "reads": list(part.reads),
            "reason": part.reason,
        }
        for part in view.parts
    ]
    plain = {"name": view.name, "query": view.query, "columns": list(view.columns)}
    plain |= {"calls": list(view.calls)} if view.calls else {}
    plain |= {"language": view.language} if view.language != SQL else {}
    plain |= _told_json(view)
    plain |= _decision_json(view.decision)
    if view.refresh == STRICT:
        return plain
    return plain | {"refresh": view.refresh, "rest": view.rest, "parts": parts}


def declared_policy(policy: str) -> Decision | None:
    """The decision for a policy that a view is declared with; None where it has none."""
    return Decision(policy, declared=True) if policy else None


def _decision_json(decision: Decision | None) -> dict[str, Any]:
    """A policy that was declared, or that a version before would not have taken."""
    if decision is None or (decision.policy == CIRCUIT and not decision.declared):
        return {}
    told: dict[str, Any] = {"name": decision.policy}
    told |= {"declared": True} if decision.declared else {"reason": decision.reason}
    told |= {"rows": dict(decision.rows)} if decision.rows else {}
    return {"policy": told}


def function_from(raw: Mapping[str, Any]) -> Function:
    """A function as `function_json` wrote it."""
    return Function(raw["name"], _columns_from(raw["takes"]), raw["gives"], raw["body"])


def function_json(function: Function) -> dict[str, Any]:
    """A function, as JSON."""
    return {
        "name": function.name,
        "takes": _columns_json(function.takes),
        "gives": function.gives,
        "body": function.body,
    }


def _columns_from(raw: Any) -> Schema:
    return tuple(Column(name, type_) for name, type_ in raw)


def _columns_json(columns: Schema) -> list[list[str]]:
    return [[column.name, column.type] for column in columns]
