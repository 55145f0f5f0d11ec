"""What is asked of nested values so that equal ones are equal whatever made them."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.parse import parse_query
from everview.lang.sql.refuse import refused
from everview.plan.dialect import DIALECT
from everview.plan.nodes import Map, Plan, Unnest
from everview.plan.traverse import schema_of, walk
from everview.plan.types import Column, Schema, element_of, fields_of
from everview.plan.typing import Typed, annotate

_KEEPING = ("column", "variable", "index", "lambda", "literal", "case", "coalesce", "field")
_ARRAYS = ("[]", "element_at", "try_element_at", "get", "array", "struct", "filter", "slice")
_MORE = ("concat", "reverse", "flatten", "array_compact", "map_filter", "transform_values")
_ORDERED = frozenset((*_KEEPING, *_ARRAYS, *_MORE))
"""Constructs that give a map as they got it, its keys in order."""


def refuse_new_maps(plan: Plan, text: str) -> None:
    """Refuse a view that makes maps of its own.

    Maps are stored in the order of their keys, so that equal maps are equal rows. One that a view
    made in another order would show it to a function such as map_keys, and not once it is stored.
    """
    for node in walk(plan):
        match node:
            case Map(child, outputs):
                made = [(Column(o.name, o.type), o.scalar) for o in outputs]
                _check(made, schema_of(child), text)
            case Unnest(child, array, element, _, _):
                _check([(element, array)], schema_of(child), text)
            case _:
                pass


def _check(made: list[tuple[Column, str]], schema: Schema, text: str) -> None:
    for column, scalar in made:
        if "map<" in column.type and not _keeps_order(annotate(scalar, schema)):
            raise UserError(
                "Q014",
                f"the column {column.name} is a map that the view makes itself",
                span=Span(text, 0, len(text)),
                remedy="keep its entries, with MAP_ENTRIES, or read the map from a table",
            )


def _keeps_order(node: Typed) -> bool:
    if node.type is None:
        return False
    if "map<" not in node.type and node.name != "lambda":
        return True
    if node.name == "cast":
        return node.args[0].type == "void"
    return node.name in _ORDERED and all(map(_keeps_order, node.args))


def refuse_maps(schema: Schema, construct: str, node: exp.Expr, text: str) -> None:
    """Refuse to compare maps: Spark refuses it too, but for GROUP BY, where it loses nulls."""
    for column in schema:
        if "map<" in column.type:
            name = f"{construct} of the map {column.name}"
            raise refused(name, node, text, "compare its entries, with MAP_ENTRIES")


def refuse_unknown_fields(text: str, schema: Schema, span: Span | None) -> None:
    """Refuse the field of a struct that has none of that name, or of what is no struct."""

    def refuse(node: Typed) -> None:
        for arg in node.args:
            refuse(arg)
        if node.name != "field" or node.type is not None or node.args[0].type is None:
            return
        inner = element_of(node.args[0].type) or node.args[0].type
        known = [name for name, _ in fields_of(inner)] if inner.startswith("struct<") else []
        raise UserError(
            "Q007",
            f"there is no field {node.value} in {node.args[0].type.upper()}",
            span=span,
            remedy=f"the fields are {', '.join(known)}" if known else "only structs have fields",
        )

    refuse(annotate(text, schema))


def with_sorted_lists(text: str) -> str:
    """The query with collected values in the order that views have them in."""
    lowered = text.lower()
    if not any(name in lowered for name in ("collect_list", "collect_set", "array_agg")):
        return text
    tree = parse_query(text).copy()
    for node in list(tree.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg)):
        call = node.parent if isinstance(node.parent, exp.Filter) else node
        if not isinstance(call.parent, exp.ArraySort | exp.Window):
            parent = exp.ArraySort(this=call.copy(), nulls_first=exp.true())
            call.replace(parent)
    return tree.sql(dialect=DIALECT)
