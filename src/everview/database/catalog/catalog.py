"""The declared tables, views and functions, and the maintenance compiled from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from everview.arguments import did_you_mean, named
from everview.compiler import (
    Assertion,
    Maintenance,
    Table,
    View,
    compile_arrangements,
    compile_view,
)
from everview.database.catalog.constraints import (
    ConstraintDefinition,
    constraint_from,
    constraint_json,
    free_name,
    keys_first,
    no_condition,
    relies_on,
    resolved,
    tables_that_follow,
    tables_that_refer,
    violating_queries_of,
)
from everview.database.catalog.definitions import (
    Known,
    TableDefinition,
    ViewDefinition,
    function_from,
    function_json,
    known_from,
    known_json,
    table_from,
    table_json,
    unusable_relation,
    view_from,
    view_json,
)
from everview.errors import UserError
from everview.expr.types import PLAIN_NAME, Schema, names
from everview.lang import plan_text
from everview.lang.front_end import (
    AGCA,
    DATALOG,
    NESTED,
    PLAN,
    RELALG,
    SQL,
    ViewText,
    comprehension,
    is_nested_in_sql,
    lower_view,
    names_read,
    nested_view,
)
from everview.lang.sql.bind.inline_functions import inline_calls_in_text
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.statements import AUTO
from everview.lang.sql.recompute.partition_query import (
    Describe,
    RecomputedBlock,
    partition_query,
    recomputation_offered,
)
from everview.lang.stored_relation import StoredRelation as KnownSource
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of, sources
from everview.runtime.protocol import Stored
from everview.sqlgen.sql import ring_columns

RowCounts: TypeAlias = Callable[[], Mapping[str, int]]

BEYOND_REACH = ("E011", "E012", "E015", "Q010", "Q023")
"""What is said of a stored view that another engine, or one that is given more, keeps fresh."""


@dataclass(slots=True)
class Catalog:
    """What is declared, in order of declaration, and the maintenance compiled from it.

    A view is compiled when it is declared. `compile` does the rest, once for all declarations that
    are made together.
    """

    tables: dict[str, TableDefinition]
    views: dict[str, ViewDefinition]
    analyze: Analyze
    describe: Describe
    functions: dict[str, Function] = field(default_factory=dict)
    constraints: dict[str, ConstraintDefinition] = field(default_factory=dict)
    """By name. One that is not enforced is also a view of that name, of what violates it."""
    known: Known = field(default_factory=Known)
    """What the store tells of views that were declared before, whoever compiled them."""
    row_counts: RowCounts = dict
    """How many rows each relation has now, where that is known: the choice of a policy asks."""
    _beyond: dict[str, UserError] = field(default_factory=dict)
    _compiled: dict[str, View] = field(default_factory=dict)
    _assertions: dict[str, Assertion] = field(default_factory=dict)
    _maintenance: Maintenance | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], analyze: Analyze, describe: Describe) -> Catalog:
        """The catalog that `to_json` wrote."""
        tables = {each["name"]: table_from(each) for each in raw.get("tables", ())}
        views = {each["name"]: view_from(each) for each in raw.get("views", ())}
        functions = {each["name"].lower(): function_from(each) for each in raw.get("functions", ())}
        constraints = {each["name"]: constraint_from(each) for each in raw.get("constraints", ())}
        known = known_from(raw)
        return cls(tables, views, analyze, describe, functions, constraints, known)

    def to_json(self) -> dict[str, Any]:
        """The declarations, as JSON."""
        found = {
            "tables": [table_json(table) for table in self.tables.values()],
            "views": [view_json(view) for view in self.views.values()],
        }
        functions = [function_json(each) for each in self.functions.values()]
        found |= {"functions": functions} if functions else {}
        constraints = [constraint_json(each) for each in self.constraints.values()]
        found |= {"constraints": constraints} if constraints else {}
        return found | known_json(self._known())

    def _known(self) -> Known:
        """What others need to know of what is compiled here; the rest as the store told it."""
        sources = {name: self.compiled(name).source for name in self.views}
        own = self.maintenance.states.stored.values()
        states = {each.name: self._tables_of(each.plan) for each in own}
        return Known(sources, self.states_beyond_reach() | states)

    def states_beyond_reach(self) -> dict[str, tuple[str, ...]]:
        """The states that only views beyond reach have, each with the tables under it."""
        under = {table for view in self.beyond_reach for table in self.tables_under(view)}
        return {name: tables for name, tables in self.known.states.items() if under >= {*tables}}

    def _tables_of(self, plan: Plan) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for source in sources(plan):
            found |= dict.fromkeys(self.tables_under(source.name))
        return tuple(found)

    def tables_under(self, name: str) -> tuple[str, ...]:
        """The tables that a relation is made from: a table itself, those under a view."""
        found: dict[str, None] = {}
        waiting = [name]
        for each in waiting:
            if each in self.views or each in self.constraints:
                waiting += (read for read in self.reads(each) if read not in waiting)
            elif each in self.parts:
                waiting += (read for read in self.parts[each].reads if read not in waiting)
            else:
                found[each] = None
        return tuple(found)

    @property
    def beyond_reach(self) -> Mapping[str, UserError]:
        """The views and constraints that this engine cannot compute, each with the reason."""
        return self._beyond

    def with_table(self, table: TableDefinition) -> Catalog:
        """The catalog with one more table."""
        self.must_be_free(table.name)
        return self._like({**self.tables, table.name: table}, self.views)

    def with_plan(self, name: str, plan: Plan) -> Catalog:
        """The catalog with one more view, of a plan that was built in Python."""
        return self.with_view(ViewDefinition(name, plan_text.written(plan), language=PLAN))

    def with_relalg(self, name: str, text: str) -> Catalog:
        """The catalog with one more view, an expression of relational algebra."""
        return self.with_view(ViewDefinition(name, text, language=RELALG))

    def with_view(self, view: ViewDefinition) -> Catalog:
        """The catalog with one more view, compiled."""
        self.must_be_free(view.name)
        view = self._partitioned(view, self._sources())
        grown = self._like(self.tables, {**self.views, view.name: view})
        with recomputation_offered(view.query) if view.language == SQL else nullcontext():
            grown._compile_view(view.name)
        return grown

    def _partitioned(self, view: ViewDefinition, known: Mapping[str, Source]) -> ViewDefinition:
        """A view with the blocks of it that are recomputed, where it allows that."""
        if view.refresh != AUTO:
            return view
        found = partition_query(
            view.name, view.query, known, self.analyze, self.describe, view.columns
        )
        return replace(view, rest=found.query if found.parts else None, parts=found.parts)

    def with_definitions(
        self,
        tables: dict[str, TableDefinition],
        views: dict[str, ViewDefinition],
        constraints: dict[str, ConstraintDefinition] | None = None,
    ) -> Catalog:
        """The catalog with other definitions; what is defined again is not compiled yet."""
        fresh = self._like(tables, views)
        if constraints is not None:
            fresh.constraints = constraints
            fresh._assertions = {
                name: each
                for name, each in fresh._assertions.items()
                if constraints.get(name) is self.constraints[name]
            }
        return fresh

    def redefined(
        self, tables: dict[str, TableDefinition], views: dict[str, ViewDefinition], again: str
    ) -> Catalog:
        """The catalog with other definitions, of which the view `again` is compiled.

        The views before it must be compiled already; its blocks are found again.
        """
        grown = self._like(tables, {**views, again: replace(views[again], rest=None, parts=())})
        fresh = grown._partitioned(grown.views[again], grown._sources(again))
        grown = grown._like(tables, {**grown.views, again: fresh})
        grown._compile_view(again)
        return grown

    def replacing(self, view: ViewDefinition) -> Catalog:
        """The catalog with another query for a view; the views that read it must still hold.

        Like a view that is declared again, it comes after all that do not read it.
        """
        name = self.relation(view.name)
        if self.views[name].language == NESTED:
            remedy = f"DROP VIEW {self.whole_view(name)} first"
            raise UserError("C009", f"{name} is a nested view", remedy=remedy)
        readers = self.readers(name)
        for read in names_read(view.query, view.language):
            if (found := self.find(read)) in (name, *readers):
                raise UserError(
                    "C007",
                    f"{name} cannot read {found}, which reads {name}"
                    if found != name
                    else f"{name} cannot read itself",
                    remedy="read what is declared without it",
                )
        others = {n: v for n, v in self.views.items() if n not in (name, *readers)}
        grown = self._like(self.tables, others).with_view(replace(view, name=name))
        for reader in readers:
            grown = self.with_reader(grown, reader, name)
        return grown

    def without_readers_of(self, names: Collection[str]) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog without some views and all that read them, which are to be declared again.

        The readers come with it, in order.
        """
        gone = {*names, *(each for name in names for each in self.dictionaries(name))}
        readers = {reader for name in gone for reader in self.readers(name)} - gone
        left = {n: view for n, view in self.views.items() if n not in gone | readers}
        return self._like(self.tables, left), tuple(n for n in self.views if n in readers)

    def with_reader(self, grown: Catalog, reader: str, name: str) -> Catalog:
        """The grown catalog with a view as it is declared here, if it keeps its columns.

        It reads `name`, which has been replaced.
        """
        remedy = f"keep the columns that {reader} reads, or drop {reader} first"
        try:
            grown = grown.with_view(replace(self.views[reader], rest=None, parts=()))
        except UserError as problem:
            message = f"{reader}, which reads {name}, would not be valid: {problem.problem}"
            raise UserError("C008", message, remedy=remedy) from None
        kept = grown.schema(reader)
        lost = [column.name for column in self.schema(reader) if column not in kept]
        if lost:
            message = f"{reader}, which reads {name}, would lose or retype: {', '.join(lost)}"
            raise UserError("C008", message, remedy=remedy)
        return grown

    def with_function(self, function: Function, *, replaces: bool) -> Catalog:
        """The catalog with one more function, or another body for one that no view calls."""
        if function.name.lower() in self.functions:
            if not replaces:
                raise UserError(
                    "C001",
                    f"there is a function {function.name} already",
                    remedy="choose another name, DROP it first, or write OR REPLACE",
                )
            self._must_be_uncalled(function.name)
        body, _ = inline_calls_in_text(function.body, self.functions)
        function = replace(function, body=body)
        self.describe(function.probe, {"given": function.takes})
        functions = {**self.functions, function.name.lower(): function}
        return replace(self, functions=functions)

    def without_function(self, name: str) -> Catalog:
        """The catalog without a function that no view calls."""
        self._must_be_uncalled(name)
        kept = {key: value for key, value in self.functions.items() if key != name.lower()}
        return replace(self, functions=kept)

    def _must_be_uncalled(self, name: str) -> None:
        calls = {view.name: view.calls for view in self.views.values()}
        calls |= {each.name: each.calls for each in self.constraints.values()}
        callers = [each for each, called in calls.items() if name.lower() in map(str.lower, called)]
        if callers:
            raise UserError(
                "C003",
                f"the function {name} is called by {', '.join(callers)}",
                remedy=f"drop {', '.join(reversed(callers))} first, or use another name",
            )

    def readers(self, name: str) -> tuple[str, ...]:
        """The views that read a relation, themselves or through others, in order."""
        found = [name]
        for view in self.views:
            if any(read in found for read in self.reads(view)):
                found.append(view)
        return tuple(found[1:])

    def _like(
        self, tables: dict[str, TableDefinition], views: dict[str, ViewDefinition]
    ) -> Catalog:
        """Other declarations; what is compiled of those that stay is kept."""
        kept = {
            name: compiled
            for name, compiled in self._compiled.items()
            if views.get(name) is self.views[name]
        }
        same = {n for n, view in views.items() if view is self.views.get(n)}
        known = self.known.only(same)
        beyond = {name: why for name, why in self._beyond.items() if name in same}
        same |= {name for name, table in tables.items() if table is self.tables.get(name)}
        assertions = {
            name: each for name, each in self._assertions.items() if same >= {*self.reads(name)}
        }
        declared = (self.functions, self.constraints, known, self.row_counts)
        compiled = (beyond, kept, assertions)
        return Catalog(tables, views, self.analyze, self.describe, *declared, *compiled)

    def with_constraint(self, constraint: ConstraintDefinition) -> Catalog:
        """The catalog with one more constraint, compiled; its table is declared already."""
        name = constraint.name or free_name(constraint, {*map(str.lower, self._names())})
        self.must_be_free(name)
        known = self.constraints.values()
        constraint = resolved(replace(constraint, name=name), self.tables, known)
        try:
            assertion = self.as_assertion(constraint)
        except UserError as problem:
            raise no_condition(constraint, self.tables, self.describe) or problem from None
        if constraint.enforced:
            grown = self._like(self.tables, self.views)
            grown._assertions[name] = assertion
        else:
            grown = self.with_view(ViewDefinition(name, assertion.query, calls=constraint.calls))
        grown.constraints = {**self.constraints, name: constraint}
        return grown

    def without_constraint(self, name: str) -> Catalog:
        """The catalog without a constraint that no foreign key relies on."""
        gone = self.constraints[name]
        for other in self.constraints.values():
            if relies_on(other, gone, self.tables):
                raise UserError(
                    "C003",
                    f"{name} cannot be dropped, because {other.name} of {other.table} refers to it",
                    remedy=f"drop {other.name} first",
                )
        views = self.views
        if not gone.enforced:
            self._must_be_unread(name)
            views = {key: view for key, view in views.items() if key != name}
        left = self._like(self.tables, views)
        left.constraints = {key: each for key, each in self.constraints.items() if key != name}
        left._assertions.pop(name, None)
        left._beyond.pop(name, None)
        return left

    def constraint(self, name: str) -> ConstraintDefinition:
        """The constraint of that name, or a clear error."""
        found = {each.lower(): each for each in self.constraints}.get(name.lower())
        if found is not None:
            return self.constraints[found]
        known = ", ".join(self.constraints)
        near = did_you_mean(name, tuple(self.constraints))
        raise UserError(
            "C002",
            f"there is no constraint {named(name)}",
            remedy=f"{near}there are: {known}" if known else "there are none",
        )

    def tables_that_follow(self, removes: Collection[str]) -> frozenset[str]:
        """The tables that foreign keys change when some tables lose rows."""
        return tables_that_follow(self.constraints.values(), removes)

    def tables_that_refer(self, tables: Collection[str]) -> frozenset[str]:
        """The tables with foreign keys to some tables, or to others that have such keys."""
        return tables_that_refer(self.constraints.values(), tables)

    def assertion(self, name: str) -> Assertion:
        """A constraint that is enforced, as the view that must stay empty."""
        return self._assertions[name]

    def without(self, name: str) -> Catalog:
        """The catalog without a table or view that nothing reads; its own constraints go too."""
        if (whole := self.whole_view(name)) != name:
            raise UserError(
                "C009",
                f"{name} is a collection inside {whole}",
                remedy=f"drop {whole}, which drops it too",
            )
        left = self
        for own in [each.name for each in self.constraints.values() if each.table == name]:
            left = left._without_own(own)
        gone = {name, *left.dictionaries(name)}
        left._must_be_unread(name, *gone, unless=", or write CASCADE")
        tables = {key: value for key, value in left.tables.items() if key not in gone}
        views = {key: value for key, value in left.views.items() if key not in gone}
        return left._like(tables, views)

    def resting_on(self, names: Iterable[str]) -> list[str]:
        """The views and constraints among some names, and all that cannot be without them.

        Each comes after those that it cannot be without.
        """
        gone = {*names}
        views: list[str] = []
        for view in self.views:
            if view in gone or gone & {*self.reads(view)}:
                whole = self.whole_view(view)
                gone |= {view, whole, *self.dictionaries(whole)}
                views.append(view)
        rest = {n: c for n, c in self.constraints.items() if n not in self.views}
        keys = [rest[name] for name in gone if name in rest]
        found = [
            name
            for name, each in rest.items()
            if name in gone
            or gone & {*self.reads(name)}
            or any(relies_on(each, key, self.tables) for key in keys)
        ]
        return [*views, *keys_first(rest[name] for name in found)]

    def without_all(self, names: Sequence[str]) -> Catalog:
        """The catalog without views and constraints, the last one first."""
        left = self
        for name in reversed(names):
            if name in left.constraints:
                left = left.without_constraint(name)
            elif name in left.views:
                left = left.without(left.whole_view(name))
        return left

    def _without_own(self, name: str) -> Catalog:
        """The catalog without a constraint whose table goes; what refers to that is in the way."""
        if not self.constraints[name].enforced:
            return self.without_constraint(name)
        left = replace(self, constraints={n: c for n, c in self.constraints.items() if n != name})
        left._assertions = {n: each for n, each in self._assertions.items() if n != name}
        return left

    def _must_be_unread(self, name: str, *inside: str, unless: str = "") -> None:
        gone = {name, *inside}
        readers = [v for v in self.views if v not in gone and gone & {*self.reads(v)}]
        readers += [c for c in self.constraints if c not in self.views and gone & {*self.reads(c)}]
        if readers:
            raise UserError(
                "C003",
                f"{name} cannot be dropped, because it is read by {', '.join(readers)}",
                remedy=f"drop {', '.join(reversed(readers))} first{unless}",
            )

    def _names(self) -> tuple[str, ...]:
        return (*self.tables, *self.views, *self.constraints)

    def whole_view(self, name: str) -> str:
        """The view or table that a relation belongs to: itself, unless it is inside another."""
        if name in self.tables:
            return self.tables[name].inside or name
        view = self.views.get(name)
        return (view and nested_view(view.query, view.language)) or name

    def is_nested(self, name: str) -> bool:
        """Whether a relation is a nested view, and no collection inside one."""
        view = self.views.get(name)
        return view is not None and view.language == NESTED and self.whole_view(name) == name

    def dictionaries(self, name: str) -> tuple[str, ...]:
        """The relations of the collections in a view or table, each after the one above it."""
        every = (*self.tables, *self.views)
        return tuple(each for each in every if each != name and self.whole_view(each) == name)

    def lookup_state(self, dictionary: str) -> str:
        """The state in which the rows of a dictionary of a table are looked up by their digests."""
        by, states = self.tables[dictionary].lookup, self.maintenance.states.stored.values()
        return next(
            state.name
            for state in states
            if state.sort == by and [each.name for each in sources(state.plan)] == [dictionary]
        )

    def read_by(self, names: Iterable[str]) -> tuple[str, ...]:
        """The tables and views of these names, with the dictionaries of nested views in SQL."""
        found: dict[str, None] = {}
        for name in filter(None, map(self.find, names)):
            found[name] = None
            view = self.views.get(name)
            if view is not None and is_nested_in_sql(view.query, view.language):
                found |= dict.fromkeys(self.dictionaries(name))
        return tuple(found)

    def must_be_free(self, name: str) -> None:
        """Refuse a name that no table or view can have, or that one has already."""
        if problem := unusable_relation(name):
            raise UserError("Q011", problem, remedy=PLAIN_NAME)
        taken = {each.lower(): each for each in self._names()}.get(name.lower())
        if taken is not None:
            kind = "constraint" if self.find(taken) is None else "table or view"
            raise UserError(
                "C001",
                f"there is a {kind} {taken} already",
                remedy="choose another name, DROP it first, or write IF NOT EXISTS",
            )

    def find(self, name: str) -> str | None:
        """The declared spelling of a name, None when there is no such table or view."""
        known = {each.lower(): each for each in (*self.tables, *self.views)}
        return known.get(name.lower())

    def table(self, name: str) -> TableDefinition:
        """The table of that name, or a clear error; a dictionary is changed through its table."""
        found = self.find(name)
        if found in self.tables and not self.tables[found].inside:
            return self.tables[found]
        if found in self.tables:
            raise UserError(
                "C004",
                f"{found} is a collection inside {self.tables[found].inside}",
                remedy=f"use tx.update_inner, or INSERT INTO {found} OF key VALUES …",
            )
        if found is not None:
            raise UserError(
                "C004",
                f"{found} is a view: it follows its tables and cannot be changed itself",
                remedy=f"change what it reads: {', '.join(self.reads(found))}",
            )
        raise self.unknown(name)

    def unknown(self, name: str) -> UserError:
        """The error for a name that nothing has."""
        every = (*self.tables, *self.views)
        near, known = did_you_mean(name, every), ", ".join(every)
        return UserError(
            "C002",
            f"there is no table or view {named(name)}",
            remedy=f"{near}there are: {known}" if known else "create it with CREATE TABLE",
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

    def schemas(self) -> dict[str, Schema]:
        """The columns of every table and view."""
        return {name: self.schema(name) for name in (*self.tables, *self.views)}

    def source(self, name: str) -> Source:
        """A table or view as plans read it."""
        found = self.relation(name)
        return self.tables[found].source if found in self.tables else self.compiled(found).source

    def reads(self, view: str) -> tuple[str, ...]:
        """The tables and views that the query of a view names, whether it needs them or not.

        Those of a constraint are the ones that the query of what violates it names.
        """
        if view in self.constraints and view not in self.views:
            query, language = violating_queries_of(self.constraints[view], self.tables)[-1], SQL
        else:
            query, language = self.views[view].query, self.views[view].language
        found = dict.fromkeys(self.read_by(names_read(query, language)))
        if (whole := self.whole_view(view)) != view:
            # A dictionary is over the relations above it: not itself, nor those beside or below it.
            every = self.dictionaries(whole)
            apart = {each for each in every if not view.startswith(f"{each}.")}
            found = {each: None for each in found if each not in apart}
        if comprehension(query, language):
            others = (each for each in found if each != self.whole_view(view))
            found |= dict.fromkeys(each for name in others for each in self.inside(name))
        return tuple(found)

    def inside(self, name: str) -> Iterator[str]:
        """The dictionaries that hold the collections inside a relation, its own or shared."""
        if not self.is_nested(name):
            return
        yield from self.dictionaries(name)
        if comprehension(self.views[name].query, NESTED):
            yield from (each for each in self.reads(name) if self.whole_view(each) != each)

    @property
    def parts(self) -> dict[str, RecomputedBlock]:
        """What is recomputed, in the order in which views are declared."""
        return {part.name: part for view in self.views.values() for part in view.parts}

    def compile(self) -> Catalog:
        """Compile what is not yet: views that a store has as text, then all that keeps them fresh.

        A view beyond reach is not kept fresh here.
        """
        for name in self.views:
            if name not in self._compiled:
                self._compile_view(name)
        if self._maintenance is None:
            tables = {
                t.name: Table(t.source, t.sort, t.not_null, bool(t.inside), t.lookup)
                for t in self.tables.values()
            }
            tables |= {p.name: Table(p.source, p.sort, ours=True) for p in self.parts.values()}
            views = (self._compiled[name] for name in self.views if name not in self._beyond)
            assertions = self._compile_assertions()
            self._maintenance = compile_arrangements(tables, tuple(views), assertions)
        return self

    def _compile_assertions(self) -> tuple[Assertion, ...]:
        """The constraints that are enforced; those beyond reach keep their tables as they are."""
        for name, constraint in self.constraints.items():
            if constraint.enforced and name not in self._assertions:
                try:
                    self._must_read_what_is_fresh(name)
                    self._assertions[name] = self.as_assertion(constraint)
                except UserError as problem:
                    if problem.code not in BEYOND_REACH:
                        told = f"{name} would not be valid: {problem.problem}"
                        raise UserError(problem.code, told, remedy=f"drop {name} first") from None
                    self._beyond[name] = problem
        return tuple(self._assertions[n] for n in self.constraints if n in self._assertions)

    def as_assertion(self, constraint: ConstraintDefinition) -> Assertion:
        """A constraint compiled, by the first of its queries that can be read."""
        name, problem = constraint.name, None
        known = self.known_relations()
        for query in violating_queries_of(constraint, self.tables):
            try:
                view, _ = compile_view(ViewText(name, query), known, self.analyze)
            except UserError as wrong:
                problem = problem or wrong
            else:
                return Assertion(name, constraint.text, query, view.query or view.plan)
        assert problem is not None
        raise problem

    def compiled(self, name: str) -> View:
        """A view as a rewritten plan over the relations declared before it."""
        return self._compiled[name]

    @property
    def maintenance(self) -> Maintenance:
        """What keeps all views fresh, compiled."""
        assert self._maintenance is not None, "the catalog is not compiled"
        return self._maintenance

    def _compile_view(self, name: str) -> None:
        """Compile a view; one beyond reach is no more than what is stored of it."""
        stored = self.known.sources.get(name)
        try:
            self._must_read_what_is_fresh(name)
            view = self.views[name]
            text, known = self.text_over(name)
            rows = self.row_counts() if view.decision is None else {}
            made, decision = compile_view(text, known, self.analyze, view.decision, rows)
            self._compiled[name] = made
            if view.decision is None:
                self.views[name] = replace(view, decision=decision)
        except UserError as problem:
            if stored is None or problem.code not in BEYOND_REACH:
                raise
            self._beyond[name] = problem
            self._compiled[name] = View(stored, stored.key or names(stored.schema)[:1], stored)

    def _must_read_what_is_fresh(self, name: str) -> None:
        for read in self.reads(name):
            if (problem := self._beyond.get(read)) is not None:
                told = f"it reads {read}: {problem.problem}"
                raise UserError("E015", told, span=problem.span, remedy=problem.remedy)

    def written(self, name: str) -> Plan:
        """A view as a plan that no rewriting has touched."""
        return lower_view(*self.text_over(name), self.analyze)

    def text_over(self, name: str) -> tuple[ViewText, dict[str, KnownSource]]:
        """The text of a view, and the relations it may read, by lower-case name."""
        view = self.views[name]
        text = view.query if view.rest is None else view.rest
        known = self.known_relations(name)
        known |= {part.name.lower(): KnownSource(part.source, nulls=True) for part in view.parts}
        return ViewText(name, text, view.language, view.columns), known

    def known_relations(self, before: str | None = None) -> dict[str, KnownSource]:
        """What a view may read, by lower-case name: all, or what is declared before a view."""
        sources = self._sources(before).items()
        return {
            name: KnownSource(
                each,
                self._may_be_null(each),
                self.views[each.name].query if self.is_nested(each.name) else "",
            )
            for name, each in sources
        }

    def _may_be_null(self, source: Source) -> bool:
        """Whether a relation may hold a NULL, or a row twice."""
        if source.name in self.views:
            return self.views[source.name].language not in (DATALOG, AGCA)
        required = self.tables[source.name].not_null
        return not (source.key and all(name in required for name in names(source.schema)))

    def _sources(self, before: str | None = None) -> dict[str, Source]:
        """The tables, and the views declared before one or all of them, by lower-case name."""
        known: dict[str, Source] = {t.name.lower(): t.source for t in self.tables.values()}
        for other in self.views:
            if other == before:
                break
            known[other.lower()] = self.compiled(other).source
        return known

    def stored(self) -> dict[str, Stored]:
        """How every stored relation is read: tables, views and states."""
        found = {table.name: table.stored for table in self.tables.values()}
        for name in self.views:
            view = self.compiled(name)
            found[name] = Stored(view.source.schema, view.sort)
        for part in self.parts.values():
            found[part.name] = Stored(part.columns, part.sort, ours=True)
        for state in self.maintenance.states.stored.values():
            rings = ring_columns(state.plan)
            sort = tuple(column for column in state.sort if column not in rings)
            found[state.name] = Stored(schema_of(state.plan), sort, rings, ours=True)
        return found
