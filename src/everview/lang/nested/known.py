"""What a nested view reads: relations, and other nested views as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everview.errors import UserError
from everview.expr.types import names as columns
from everview.lang.nested.check import Checker, row_type
from everview.lang.nested.definition import Definition, read_definition
from everview.lang.nested.normal_form import normal_form
from everview.lang.nested.partial import stored_relations
from everview.lang.nested.shred import Shredded, relation_of, shred
from everview.lang.nested.stored import Inside, Stored
from everview.lang.nested.syntax import Expr, relations
from everview.lang.nested.types import Bag, Type, shown
from everview.plan.nodes import Source


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
        parts = stored_relations(shredded(definition, self), definition.mode)

        def of(part: Shredded) -> Stored:
            if part.shared is not None:
                return part.shared.dictionary
            relation = relation_of(definition.view, part)
            below = [
                (leaf.path, parts[part.below(leaf)])
                for leaf in part.leaves
                if part.below(leaf) in parts
            ]
            inside = (Inside(path, columns(each.labels), of(each)) for path, each in below)
            schema = self.sources[relation.lower()].schema
            return Stored(relation, part.labels, schema, part.element, tuple(inside))

        return of(parts[""])


def type_of_query(expr: Expr, known: Known) -> Type:
    """The type of a query over the relations there are."""
    read = (name for name in relations(expr) if name.lower() in known.sources)
    return Checker({name: known.element(name) for name in read}).type(expr)


def shredded(definition: Definition, known: Known) -> dict[str, Shredded]:
    """The relations of a query by path, each after the one above it."""
    expr = definition.expr
    type_ = type_of_query(expr, known)
    if not isinstance(type_, Bag):
        raise UserError(
            "N003",
            f"a view is a collection, and this is {shown(type_)}",
            remedy="give back a comprehension",
        )
    schemas = {name: known.sources[name.lower()].schema for name in relations(expr)}
    found = normal_form(expr, type_.element, schemas, known.nested(relations(expr)))
    parts = shred(found, type_.element, shares=definition.mode != "inline")
    return {each.path: each for each in parts}
