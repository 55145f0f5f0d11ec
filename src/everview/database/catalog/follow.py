"""Which views and assertions follow when a relation that they read is altered, and which break.

A view keeps its columns, as in PostgreSQL: they were fixed when it was declared. It is left as it
is where its plan reads nothing that is altered. Else its text is made to read the relation through
a projection to the columns there were. It breaks where a column that it reads is gone, or has
another type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from everview.compiler import View
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.errors import UserError
from everview.expr import scalar
from everview.expr.quoting import spark_name
from everview.lang import plan_text
from everview.lang.front_end import PLAN, SQL, reading_instead
from everview.lang.sql.bind.read_through import names_in, read_through
from everview.lang.sql.parse.constraints import ASSERTION, Constraint
from everview.plan.build import map_
from everview.plan.nodes import Map, Output, Plan, Source, Totals
from everview.plan.text import parse_plan
from everview.plan.traverse import transform, walk
from everview.rewrite.passes import rewrite


@dataclass(frozen=True, slots=True)
class AlteredSource:
    """A table or view as it was read, and as it is read now.

    `kept` are the columns that are there still with their types, by their names of before. `lost`
    are the names of before, in lower case, that mean nothing now, or another column.
    """

    before: Source
    after: Source
    kept: Mapping[str, str]
    lost: frozenset[str] = frozenset()

    @property
    def keeps_all(self) -> bool:
        """Whether every column is there still, as it was."""
        return len(self.kept) == len(self.before.schema)

    def item(self, named: Collection[str]) -> str:
        """The relation as an item of FROM with columns of before, those that are `named` there."""
        if self.before.schema == self.after.schema:
            return spark_name(self.after.name)
        chosen = [name for name in self.kept if name.lower() in named] or [*self.kept][:1]
        columns = ", ".join(f"{spark_name(self.kept[n])} AS {spark_name(n)}" for n in chosen)
        return f"(SELECT {columns} FROM {spark_name(self.after.name)})"

    def swapped(self, plan: Plan) -> Plan:
        """A plan over the relation of now that means the same, if it reads only what stays."""
        return _over(plan, self.before, self.after)

    def projected(self, plan: Plan) -> Plan:
        """A plan over the relation of now, read through a projection to the columns of before."""
        outputs = tuple(
            Output(column.name, column.type, scalar.column(self.kept[column.name]))
            for column in self.before.schema
        )
        return _over(plan, self.before, map_(self.after, outputs))

    def forms(self, plan: Plan) -> tuple[Plan, ...]:
        """The plans over the relation of now that mean what `plan` meant, rewritten or not."""
        swapped = (self.swapped(plan),)
        if not self.keeps_all:
            return swapped
        projected = self.projected(plan)
        return (*swapped, projected, rewrite(projected))


def _over(plan: Plan, source: Source, instead: Plan) -> Plan:
    """The plan over another one in the place of a source; a map that changes nothing goes."""

    def rule(node: Plan) -> Plan:
        if node == source:
            return instead
        return map_(node.child, node.outputs) if isinstance(node, Map) else node

    return transform(plan, rule)


@dataclass(frozen=True, slots=True)
class Followed:
    """A catalog whose views have followed.

    `same` are views whose rows need not be looked at, `moved` relations that have another name now,
    by the old one, and `broken` the views that cannot follow, each with the reason.
    """

    catalog: Catalog
    same: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)


def follow(
    before: Catalog, catalog: Catalog, altered: AlteredSource, held: Collection[str]
) -> Followed:
    """The views of `before` over an altered relation; `catalog` declares it as it is now.

    `held` are the relations that the store has.
    """
    readers = [view for view in catalog.views if altered.before.name in _reads(before, view)]
    broken: dict[str, str] = {}
    same: set[str] = set()
    for name in readers:
        if _reads(before, name) & broken.keys():
            continue
        try:
            catalog, is_same = _followed(before, catalog, altered, name)
        except UserError as problem:
            broken[name] = problem.problem
        else:
            same |= {name} if is_same else set()
    constraints = dict(catalog.constraints)
    for name in [n for n, each in constraints.items() if each.kind == ASSERTION]:
        if altered.before.name not in before.reads(name) or {*before.reads(name)} & broken.keys():
            continue
        try:
            constraints[name] = _followed_assertion(before, catalog, altered, name)
        except UserError as problem:
            broken[name] = problem.problem
    if broken:
        return Followed(before, broken=broken)
    catalog = catalog.with_definitions(catalog.tables, catalog.views, constraints).compile()
    moved = _moved_states(before, catalog, altered, held)
    if _is_total_lost(catalog, {*held, *moved.values()}):
        same -= {*readers}
    return Followed(catalog, frozenset(same), moved)


def _reads(catalog: Catalog, view: str) -> set[str]:
    return {*catalog.reads(view)} if view in catalog.views else set()


def _followed(
    before: Catalog, catalog: Catalog, altered: AlteredSource, name: str
) -> tuple[Catalog, bool]:
    """The catalog with one view over the relation of now, and whether its plan is the same."""
    view, wanted = catalog.views[name], before.compiled(name)
    if name in before.beyond_reach:
        raise before.beyond_reach[name]
    if not _reads_in_blocks(view, altered.before.name, before):
        try:
            grown = catalog.redefined(catalog.tables, catalog.views, name)
        except UserError:
            if not altered.keeps_all:
                raise
        else:
            if _is_same(wanted, grown.compiled(name), altered):
                return grown, True
    if not altered.keeps_all:
        raise _reads_what_goes(name)
    if view.language == SQL and not view.parts:
        with suppress(UserError):
            grown = _reading(catalog, view, altered, names_in(view.query))
            if _is_same(wanted, grown.compiled(name), altered):
                return grown, True
    every = {column.name.lower() for column in altered.before.schema}
    grown = _reading(catalog, view, altered, every)
    if grown.compiled(name).source != wanted.source:
        raise _reads_what_goes(name)
    return grown, not view.parts and _is_same(wanted, grown.compiled(name), altered)


def _followed_assertion(
    before: Catalog, catalog: Catalog, altered: AlteredSource, name: str
) -> Constraint:
    """An assertion over the relation of now: as it is, else it reads through a projection."""
    if name in before.beyond_reach:
        raise before.beyond_reach[name]
    assertion = catalog.constraints[name]
    text, wanted = assertion.condition, altered.forms(before.as_assertion(assertion).plan)
    names_no_lost = not altered.lost & names_in(text)
    with suppress(UserError):
        made = catalog.as_assertion(assertion).plan
        if made in wanted or (names_no_lost and not altered.keeps_all):
            return assertion
    if not altered.keeps_all:
        raise _reads_what_goes(name)
    every = {column.name.lower() for column in altered.before.schema}
    for named in (names_in(text), every):
        fresh = replace(
            assertion, condition=read_through(text, altered.before.name, altered.item(named))
        )
        with suppress(UserError):
            if catalog.as_assertion(fresh).plan in wanted:
                return fresh
    catalog.as_assertion(fresh)
    return fresh


def _reads_in_blocks(view: ViewDefinition, relation: str, catalog: Catalog) -> bool:
    return any(catalog.find(read) == relation for part in view.parts for read in part.reads)


def _is_same(old: View, new: View, altered: AlteredSource) -> bool:
    shape = old.source.schema, old.source.key, old.sort
    return shape == (new.source.schema, new.source.key, new.sort) and (
        new.plan in altered.forms(old.plan)
    )


def _reading(
    catalog: Catalog, view: ViewDefinition, altered: AlteredSource, named: Collection[str]
) -> Catalog:
    """The catalog with a view that reads the relation of now through a projection.

    The projection has the columns of before, those that are `named`: a column that a view does not
    name can be dropped later.
    """
    if view.language == SQL:
        query = read_through(view.query, altered.before.name, altered.item(named))
    elif view.language == PLAN:
        query = plan_text.written(altered.projected(parse_plan(view.query)))
    else:
        read, now = altered.before.name, altered.after.name
        columns = {} if altered.before.schema == altered.after.schema else altered.kept
        other = reading_instead(view.query, view.language, read, now, columns)
        if other is None:
            raise _reads_what_goes(view.name)
        query = other
    views = {**catalog.views, view.name: replace(view, query=query)}
    return catalog.redefined(catalog.tables, views, view.name)


def _reads_what_goes(view: str) -> UserError:
    return UserError("C008", f"{view} reads what is altered", remedy="leave that as it is")


def _moved_states(
    before: Catalog, after: Catalog, altered: AlteredSource, held: Collection[str]
) -> dict[str, str]:
    """The states of before that are states of now under another name, by the old one."""
    now = {(each.plan, each.sort): each.name for each in after.maintenance.states.stored.values()}
    found: dict[str, str] = {}
    for state in before.maintenance.states.stored.values():
        if state.name not in held:
            continue
        names = (now.get((form, state.sort)) for form in altered.forms(state.plan))
        name = next((each for each in names if each is not None), state.name)
        if name != state.name and name not in found.values():
            found[state.name] = name
    return found


def _is_total_lost(after: Catalog, held: Collection[str]) -> bool:
    """Whether sums have to be built again; of doubles they may differ in the last digits.

    Then the views over them are built again too, so that each stays what its states make of it.
    """
    fresh = (s for s in after.maintenance.states.stored.values() if s.name not in held)
    return any(isinstance(node, Totals) for state in fresh for node in walk(state.plan))


def with_table(catalog: Catalog, old: str, table: TableDefinition) -> dict[str, TableDefinition]:
    """The tables of a catalog with another definition in the place of one."""
    return {
        (table.name if name == old else name): (table if name == old else each)
        for name, each in catalog.tables.items()
    }
