"""Rules for nested values: maps are not compared, fields must exist, collected lists are sorted."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.type_inference import Typed, annotate
from everview.expr.types import Schema, element_of, fields_of
from everview.lang.sql.bind.refuse import refused


def refuse_maps(schema: Schema, construct: str, node: exp.Expr, text: str) -> None:
    """Refuse to compare maps, as Spark does; in its GROUP BY it does not, but loses NULLs."""
    for column in schema:
        if "map<" in column.type:
            name = f"{construct} of the map {column.name.rpartition('.')[2]}"
            raise refused(name, node, text, "compare its entries, with MAP_ENTRIES")


def refuse_unknown_fields(text: str, schema: Schema, span: Span | None) -> None:
    """Refuse a field that a struct does not have, and a field of another type."""

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


def with_sorted_lists(query: exp.Expr) -> exp.Expr:
    """The query with the lists of COLLECT_LIST sorted, as they are in views."""
    tree = query.copy()
    for node in list(tree.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg)):
        call = node.parent if isinstance(node.parent, exp.Filter) else node
        if not isinstance(call.parent, exp.ArraySort | exp.Window):
            parent = exp.ArraySort(this=call.copy(), nulls_first=exp.true())
            call.replace(parent)
    return tree
