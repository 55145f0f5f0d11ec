"""Collections in the SELECT list: ARRAY(SELECT …), MULTISET(SELECT …), and what groups collect.

Such a column is kept in one of two ways. Inline it is an array in its row, in ascending order, and
is written again when an element changes. Shredded, the row has a label, which is the values that
the collection depends on, and a dictionary relation has a row of label and element for each
element. Only a column that is nothing but a collection, of rows that are all shown, is shredded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.quoting import spark_type
from everview.expr.types import Column, Schema, Type, struct_of
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import shown_name
from everview.lang.sql.parse.span import span_of
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    identity,
    join,
    map_,
    partition,
    project,
)
from everview.plan.nodes import Aggregate, Filter, Map, Output, Plan, Source
from everview.plan.traverse import schema_of, transform, walk

SIGN = "@"
"""Between the path of a collection and the name of a column of its label."""
ELEMENT = "element"
"""The column of a dictionary whose elements are single values."""
Mode: TypeAlias = Literal["auto", "shredded", "inline"]
"""How the collections of a view are kept: `auto` shreds what it may and what can change."""
_ITEM = "#item"


def array_query(node: exp.Expr) -> exp.Expr | None:
    """The query of ARRAY(SELECT …) or MULTISET(SELECT …), None for any other expression."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() == "multiset"
    if not (named or isinstance(node, exp.Array)) or len(node.expressions) != 1:
        return None
    (query,) = node.expressions
    is_query = isinstance(query, exp.Query) and not isinstance(query, exp.Subquery)
    return _with_fields(query) if is_query else None


def _with_fields(query: exp.Expr) -> exp.Expr:
    """SELECT struct(a, b) as SELECT a, b: elements of several columns are structs of them."""
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return query
    made = query.expressions[0].unalias()
    fields = made.expressions if isinstance(made, exp.Struct) else []
    named = [each for each in fields if isinstance(each, exp.PropertyEQ)]
    if len(named) < 2 or len(named) < len(fields) or query.args.get("distinct"):
        return query
    query = query.copy()
    columns = [exp.alias_(e.expression.copy(), e.this.name, quoted=True) for e in named]
    query.set("expressions", columns)
    return query


def must_be_unordered(query: exp.Expr, text: str) -> None:
    """Refuse ORDER BY and LIMIT in a collection, whose elements have no order of their own."""
    for clause, word in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if (node := query.args.get(clause)) is not None:
            remedy = "leave it out: elements are read in ascending order"
            if clause != "order":
                remedy = "take the first rows in a subquery in FROM, by ROW_NUMBER"
            place = node.expressions[0] if clause == "order" else node.expression
            raise refused(f"{word} inside a collection", place, text, remedy)


# Inline: an array in each row.


def collected(rows: Plan, support: Plan, keys: tuple[str, ...], item: Output) -> Plan:
    """For each row of `support`, its keys and an array of an item of the rows, in ascending order.

    An item is packed in a struct, so that NULL is an element too.
    """
    boxed: Type = struct_of(((ELEMENT, item.type),))
    box = scalar.canonical(f"named_struct('{ELEMENT}', {item.scalar})")
    kept = tuple(o for o in identity(schema_of(support)) if o.name in keys)
    nothing = Output(_ITEM, boxed, scalar.canonical(f"CAST(NULL AS {spark_type(boxed)})"))
    boxes = add(map_(rows, (*kept, Output(_ITEM, boxed, box))), map_(support, (*kept, nothing)))
    every = Aggregate(_ITEM, f"array<{boxed}>", "collect_list", _ITEM)
    unboxed = scalar.canonical(f"({scalar.column(_ITEM)}).{ELEMENT}")
    arrays = partition(boxes, keys, (every,))
    return map_(arrays, (*kept, Output(item.name, f"array<{item.type}>", unboxed)))


def with_arrays(plan: Plan, arrays: Plan, pairs: tuple[tuple[str, str], ...], name: str) -> Plan:
    """The rows with the array that has the same keys."""
    apart = {theirs: f"#key.{theirs}" for _, theirs in pairs}
    outputs = (replace(o, name=apart.get(o.name, o.name)) for o in identity(schema_of(arrays)))
    on = tuple((ours, apart[theirs]) for ours, theirs in pairs)
    return project(
        join(plan, map_(arrays, tuple(outputs)), on, nulls=True), (*columns_of(plan), name)
    )


def element_of_columns(columns: Schema, names_: Iterable[str]) -> tuple[Type, str]:
    """The type of an element and the scalar that makes it: a value, or a struct of several."""
    named = tuple(zip(names_, columns, strict=True))
    if len(named) == 1:
        return columns[0].type, scalar.column(columns[0].name)
    fields = (f"{_text(name)}, {scalar.column(column.name)}" for name, column in named)
    type_ = struct_of(tuple((name, column.type) for name, column in named))
    return type_, scalar.canonical(f"named_struct({', '.join(fields)})")


def _text(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="spark")


# Shredded: a label in each row, and a dictionary.


@dataclass(frozen=True, slots=True)
class FoundCollection:
    """A shredded collection: its elements, in the columns of `rows` after those of the label.

    `rows` are over `leaf`, the labels that there are; `labels` are the columns of both, and what
    they are called in the relation above and in the dictionary. `support` is the leaf computed from
    tables, where that is cheap.
    """

    path: str
    above: str
    labels: tuple[tuple[str, Column], ...]
    rows: Plan
    leaf: Plan | None
    leaf_labels: tuple[tuple[str, Column], ...]
    support: Plan | None
    restricted: bool = False


@dataclass(frozen=True, slots=True)
class Shredding:
    """How the collections of a query are kept, and those that are shredded, by path.

    `path` is that of the relation whose rows a SELECT gives: empty for the view itself, None where
    its rows are no rows of a relation.
    """

    mode: Mode
    path: str | None = ""
    found: dict[str, FoundCollection] = field(default_factory=dict)

    def below(self, name: str) -> str:
        """The path of the collection in a column."""
        return f"{self.path}.{name}" if self.path else name

    def must_allow_inline(self, node: exp.Expr, text: str) -> None:
        """Refuse a collection that is not shredded where all of them have to be."""
        if self.mode == "shredded":
            raise UserError(
                "N012",
                "only a whole column of a SELECT without DISTINCT, LIMIT and set operations can be "
                "shredded",
                span=span_of(node, text),
                remedy="declare the view WITH (nested = 'auto'), or select the collection alone",
            )


def within(shredding: Shredding | None, path: str | None) -> Shredding | None:
    """The same for a query whose rows are those of another relation, or of none."""
    return None if shredding is None else replace(shredding, path=path)


def may_be_shredded(tree: exp.Select, shredding: Shredding | None) -> bool:
    """Whether the rows of a SELECT are those of a relation, each once."""
    clauses = ("distinct", "limit", "offset")
    if shredding is None or shredding.path is None or shredding.mode == "inline":
        return False
    return not any(tree.args.get(clause) for clause in clauses)


def label_columns(path: str, columns: Schema) -> tuple[tuple[str, Column], ...]:
    """The columns of a label, each with the one that it is computed from."""
    found: list[tuple[str, Column]] = []
    taken: set[str] = set()
    for column in columns:
        stem = name = f"{path}{SIGN}{shown_name(column.name.rpartition('^')[2])}"
        count = 1
        while name.lower() in taken:
            count += 1
            name = f"{stem}{SIGN}{count}"
        taken.add(name.lower())
        found.append((column.name, Column(name, column.type)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Labels:
    """The columns of a label of the collection at a path, and what they are computed from."""

    path: str
    columns: tuple[tuple[str, Column], ...]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns over the rows that have the label; one of no values is a constant."""
        if not self.columns:
            return (Output(f"{self.path}{SIGN}", "int", "0"),)
        return tuple(Output(c.name, c.type, scalar.column(own)) for own, c in self.columns)


def is_constant(plan: Plan) -> bool:
    """Whether no change can reach the rows of a plan, but by the labels."""
    return not any(isinstance(node, Source) for node in walk(plan))


def is_linear(plan: Plan) -> bool:
    """Whether labels are read as cheaply from the table as from the relation above."""
    while isinstance(plan, Filter | Map):
        plan = plan.child
    return isinstance(plan, Source)


def dictionary(found: FoundCollection, above: Plan) -> Plan:
    """The plan of a dictionary: the elements for the labels in the relation above it."""
    plan = found.rows
    if found.leaf is not None:
        labels = found.support or _labels(above, found.leaf_labels)
        leaf = found.leaf
        plan = transform(plan, lambda node: labels if node == leaf else node)
    elif not found.labels:
        plan = join(distinct(map_(above, ())), plan)
    if found.restricted:
        plan = _restricted(plan, above, found)
    own = [name for name, _ in found.labels]
    elements = tuple(o for o in identity(schema_of(plan)) if o.name not in own)
    return map_(plan, (*Labels(found.path, found.labels).outputs, *_elements(found.path, elements)))


def _labels(above: Plan, labels: tuple[tuple[str, Column], ...]) -> Plan:
    return distinct(map_(above, tuple(Output(n, c.type, scalar.column(c.name)) for n, c in labels)))


def _restricted(plan: Plan, above: Plan, found: FoundCollection) -> Plan:
    """The elements whose label is in the relation above."""
    apart = tuple((f"#{own}", column) for own, column in found.labels)
    pairs = tuple((own, f"#{own}") for own, _ in found.labels)
    return project(join(plan, _labels(above, apart), pairs, nulls=True), columns_of(plan))


def _elements(path: str, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    """The columns of an element, with their names in a dictionary: one alone is the element."""
    is_label = [output.name.startswith(f"{path}.") for output in outputs]
    if len(outputs) == 1 and not any(is_label):
        return (replace(outputs[0], name=ELEMENT),)
    return outputs
