"""Nested views as texts in a catalog: which relations a definition makes, and the plan of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil

from everview.errors import Span, UserError
from everview.expr.types import names as columns
from everview.lang.nested.check import Checker, row_type
from everview.lang.nested.cost import LEAST, Cost, Many
from everview.lang.nested.dictionaries import Dictionaries
from everview.lang.nested.estimate import Estimate, estimates
from everview.lang.nested.flat_queries import flat_query
from everview.lang.nested.lower import Lowering
from everview.lang.nested.normal_form import normal_form
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.rebuild import Rebuilding
from everview.lang.nested.shred import Shredded, relation_of, shred
from everview.lang.nested.stored import Inside, Stored
from everview.lang.nested.syntax import Expr, relations
from everview.lang.nested.text import print_expr, quoted
from everview.lang.nested.types import Bag, Type, shown
from everview.lang.sql.lower.context import Analyze
from everview.plan.nodes import Plan, Source


@dataclass(frozen=True, slots=True)
class Known:
    """The relations that a query may read, and the texts of those that are nested views.

    All are by lower-case name.
    """

    sources: Mapping[str, Source]
    texts: Mapping[str, str] = field(default_factory=dict)

    def element(self, name: str) -> Type:
        """The type of the elements of a relation."""
        nested = self.nested((name,))
        return nested[name].element if nested else row_type(self.sources[name.lower()].schema)

    def nested(self, names: Iterable[str]) -> dict[str, Stored]:
        """Those of some relations that are nested views, as they are stored."""
        return {each: self._stored(each) for each in names if each.lower() in self.texts}

    def _stored(self, name: str) -> Stored:
        definition = read_definition(self.texts[name.lower()])
        parts = shredded(definition.expr, self)

        def of(part: Shredded) -> Stored:
            if part.shared is not None:
                return part.shared.dictionary
            relation = relation_of(definition.view, part)
            below = [
                (leaf.path, parts[part.below(leaf)])
                for leaf in part.leaves
                if isinstance(leaf.type, Bag)
            ]
            inside = (Inside(path, columns(each.labels), of(each)) for path, each in below)
            schema = self.sources[relation.lower()].schema
            return Stored(relation, part.labels, schema, part.element, tuple(inside))

        return of(parts[""])


@dataclass(frozen=True, slots=True)
class Definition:
    """One relation of a nested view: the view, the path of the relation in it, and the query."""

    view: str
    path: str
    expr: Expr

    @property
    def relation(self) -> str:
        """The name of the relation."""
        return f"{self.view}.{self.path}" if self.path else self.view

    @property
    def text(self) -> str:
        """The text that a catalog holds of it."""
        place = f"/{self.path}" if self.path else ""
        return f"{quoted(self.view)}{place} := {print_expr(self.expr)}"


@lru_cache(maxsize=1024)
def read_definition(text: str) -> Definition:
    """The definition that a text of a catalog holds."""
    head, sign, body = text.partition(" := ")
    # The name of a view may have the sign in it: then it stands in backquotes.
    while head.count("`") % 2 and sign:
        more, sign, body = body.partition(" := ")
        head = f"{head} := {more}"
    name, _, path = head.rpartition("/") if not head.endswith("`") else ("", "", head)
    if not name:
        name, path = path, ""
    if not sign or not name:
        raise UserError(
            "N001",
            "a nested view is written as name := query",
            span=Span(text, 0, len(text)),
            remedy="correct the text",
        )
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return Definition(plain, path, parse_expr(body))


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a definition reads; a dictionary reads the relations above it too."""
    found = read_definition(text)
    above: list[str] = []
    if found.path:
        steps = found.path.split(".")
        above = [".".join((found.view, *steps[:count])) for count in range(len(steps))]
    return (*relations(found.expr), *above)


def definitions(view: str, expr: Expr, known: Known) -> tuple[Definition, ...]:
    """The relations of a view, in the order in which they are declared."""
    if parse_expr(print_expr(expr)) != expr:
        raise UserError(
            "N007",
            "a variable has the name of a table that is read inside it",
            remedy="use another name for the variable",
        )
    parts = shredded(expr, known).values()
    return tuple(Definition(view, each.path, expr) for each in parts if each.shared is None)


def type_of_query(expr: Expr, known: Known) -> Type:
    """The type of a query over the relations there are."""
    read = (name for name in relations(expr) if name.lower() in known.sources)
    return Checker({name: known.element(name) for name in read}).type(expr)


def shredded(expr: Expr, known: Known) -> dict[str, Shredded]:
    """The relations of a query by path, each after the one above it."""
    type_ = type_of_query(expr, known)
    if not isinstance(type_, Bag):
        raise UserError(
            "N003",
            f"a view is a collection, and this is {shown(type_)}",
            remedy="give back a comprehension",
        )
    schemas = {name: known.sources[name.lower()].schema for name in relations(expr)}
    found = normal_form(expr, schemas, known.nested(relations(expr)))
    return {each.path: each for each in shred(found, type_.element)}


def lower_view(text: str, known: Known, analyze: Analyze) -> Plan:
    """The plan of one relation of a nested view."""
    found = read_definition(text)
    read = relations(found.expr)
    inside = known.nested(read).values()
    names = (*read, *(each.relation for stored in inside for each in stored.walk()))
    sources = {n: known.sources[n.lower()] for n in names if n.lower() in known.sources}
    parts = shredded(found.expr, known)
    if found.path not in parts:
        raise UserError(
            "N008",
            f"{found.view} has no collection {found.path}",
            remedy=f"there are: {', '.join(filter(None, parts)) or 'none'}",
        )
    stored = _stored(found.view, parts, known)
    return Dictionaries(parts, Lowering(sources, analyze), stored).plan(found.path)


def rebuilt(text: str, known: Known) -> Plan:
    """The plan that reads a nested view in its nested form."""
    found = read_definition(text)
    parts = shredded(found.expr, known)
    return Rebuilding(parts, _stored(found.view, parts, known)).plan()


def flat_texts(text: str, known: Known) -> dict[str, str]:
    """The flat query of each relation of a nested view, by its name: of a dictionary, per label."""
    found = read_definition(text)
    parts = shredded(found.expr, known)
    texts: dict[str, str] = {}
    for each in parts.values():
        name = relation_of(found.view, each)
        if each.shared is not None:
            continue
        owns: list[int | None] = [o.number for o in each.occurrences]
        queries = [print_expr(flat_query(each, parts, own)) for own in owns or [None]]
        texts[name] = "\n".join(queries)
    return texts


def shared_by(text: str, known: Known) -> tuple[str, ...]:
    """The dictionaries of other views that a view has labels of."""
    found = read_definition(text)
    parts = shredded(found.expr, known).values()
    return tuple(relation_of(found.view, each) for each in parts if each.shared is not None)


def estimated(text: str, known: Known, rows: Mapping[str, int]) -> dict[str, Estimate]:
    """What each relation of a nested view costs, by its name, where relations have so many rows."""
    found = read_definition(text)
    sizes: dict[str, Cost] = {}
    for name in relations(found.expr):
        sizes[name] = Many(max(rows.get(name, 0), 1), LEAST)
    for stored in known.nested(relations(found.expr)).values():
        labels = max(rows.get(stored.relation, 0), 1)
        for each in stored.walk():
            under = ceil(rows.get(each.relation, 0) / labels) if each.label else labels
            sizes[each.relation] = Many(max(under, 1), LEAST)
    parts = shredded(found.expr, known)
    found_costs = estimates(parts, sizes)
    return {relation_of(found.view, parts[path]): each for path, each in found_costs.items()}


def _stored(view: str, parts: Mapping[str, Shredded], known: Known) -> dict[str, Source]:
    names = {path: relation_of(view, part).lower() for path, part in parts.items()}
    return {path: known.sources[name] for path, name in names.items() if name in known.sources}
