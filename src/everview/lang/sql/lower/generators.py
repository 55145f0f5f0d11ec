"""Functions that make several rows of one: EXPLODE, POSEXPLODE, INLINE and STACK."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Column, Schema, Type, element_of, entries_of, entry_of, fields_of
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import shown_name, unlike
from everview.lang.sql.lower.columns import name_each
from everview.lang.sql.lower.frames import whole_number
from everview.lang.sql.parse.span import span_of
from everview.plan.build import distinct, identity, map_, unnest
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


class Lower(Protocol):
    """What generators need of the lowering around them."""

    @property
    def text(self) -> str:
        """The text that places are in."""

    def number(self) -> int:
        """A number not given before, the same ones for the same query."""

    def type_(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        """The type of a scalar."""

    def cut(self, plan: Plan, tree: exp.Expr) -> Plan:
        """ORDER BY, LIMIT and OFFSET over the columns of a result."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A call that makes rows: of which array, with places or not, keeping rows without or not."""

    node: exp.Expr
    array: exp.Expr
    place: bool = False
    outer: bool = False
    inline: bool = False


def generator(node: exp.Expr) -> Generator | None:
    """The generator that a node calls, None when it calls none."""
    match node:
        case exp.Posexplode():
            return Generator(node, node.this, True, isinstance(node, exp.PosexplodeOuter))
        case exp.Explode():
            return Generator(node, node.this, outer=isinstance(node, exp.ExplodeOuter))
        case exp.Inline():
            return Generator(node, node.this, inline=True)
        case exp.Stack() if node.expressions and (whole_number(node.this) or 0) > 0:
            return Generator(
                node, _stacked(whole_number(node.this) or 1, node.expressions), inline=True
            )
        case exp.Anonymous(expressions=[array]) if node.name.lower() == "inline_outer":
            return Generator(node, array, outer=True, inline=True)
        case _:
            return None


def _stacked(count: int, values: list[exp.Expr]) -> exp.Expr:
    """STACK(n, …) as an array of n structs, the last filled up with NULLs."""
    width = -(-len(values) // count)
    filled = [*values, *(exp.Null() for _ in range(count * width - len(values)))]
    rows = (filled[at : at + width] for at in range(0, len(filled), width))
    return exp.Array(expressions=[_row(row) for row in rows])


def _row(values: list[exp.Expr]) -> exp.Expr:
    named = (
        exp.PropertyEQ(this=exp.Identifier(this=f"col{at}"), expression=value.copy())
        for at, value in enumerate(values)
    )
    return exp.Struct(expressions=list(named))


def generated(
    lower: Lower, plan: Plan, call: Generator, array: str
) -> tuple[Plan, tuple[Output, ...]]:
    """The rows for each element, and the columns that the generator gives, by Spark's names."""
    type_ = lower.type_(array, schema_of(plan), call.node)
    entry = entry_of(type_)
    if entry is not None and not call.inline:
        array, type_ = scalar.canonical(f"MAP_ENTRIES({array})"), entries_of(*entry)
    element = element_of(type_)
    if element is None or (call.inline and not element.startswith("struct<")):
        raise UserError(
            "Q013",
            f"{call.node.key.upper()} of {type_} makes no rows",
            span=span_of(call.node, lower.text),
            remedy="give it an array" + (" of structs" if call.inline else " or a map"),
        )
    number = lower.number()
    name, place = f"element {number}", f"place {number}" if call.place else ""
    made = unnest(plan, array, Column(name, element), place, outer=call.outer)
    return made, tuple(_columns(name, place, element, call.inline or entry is not None))


def _columns(name: str, place: str, element: Type, apart: bool) -> Iterator[Output]:
    if place:
        yield Output("pos", "int", scalar.column(place))
    if not apart:
        yield Output("col", element, scalar.column(name))
        return
    for field, type_ in fields_of(element):
        yield Output(
            field, type_, scalar.canonical(f"({scalar.column(name)}).{scalar.column(field)}")
        )


def renamed(
    columns: tuple[Output, ...], names: list[str], call: Generator, text: str
) -> tuple[Output, ...]:
    """The columns of a generator with the names given to them, if there are any."""
    if not names:
        return columns
    name_each(names, columns, span_of(call.node, text))
    return tuple(Output(n, c.type, c.scalar) for n, c in zip(names, columns, strict=True))


def in_projections(tree: exp.Select) -> bool:
    """Whether a SELECT list has a generator."""
    return any(_call(node) for node in tree.expressions)


def _call(node: exp.Expr) -> tuple[Generator, list[str]] | None:
    """The generator of a projection, and the names given to its columns."""
    names: list[str] = []
    if isinstance(node, exp.Alias):
        node, names = node.this, [node.alias]
    elif isinstance(node, exp.Aliases):
        node, names = node.this, [name.name for name in node.expressions]
    found = generator(node)
    return (found, names) if found else None


def lower_projections(
    lower: Lower, tree: exp.Select, carried: int, lowered: Callable[[exp.Select], Plan]
) -> Plan:
    """A SELECT with generators in its list: the rest of it first, with their arrays as columns."""
    _refuse_beside(tree, lower.text)
    inner = tree.copy()
    for clause in ("distinct", "order", "limit", "offset"):
        inner.set(clause, None)
    calls: dict[str, tuple[Generator, list[str]]] = {}
    for at, node in enumerate(inner.expressions):
        if (found := _call(node)) is not None:
            mark = f"generated {at}"
            calls[mark] = found
            node.replace(exp.alias_(found[0].array.copy(), mark, quoted=True))
    plan = lowered(inner)
    outputs: list[Output] = []
    for own in identity(schema_of(plan)):
        if own.name in calls:
            call, names = calls[own.name]
            plan, columns = generated(lower, plan, call, own.scalar)
            outputs += renamed(columns, names, call, lower.text)
        else:
            outputs.append(own)
    shown = unlike(shown_name(each.name) for each in outputs[carried:])
    outputs[carried:] = [
        Output(name, o.type, o.scalar) for name, o in zip(shown, outputs[carried:], strict=True)
    ]
    made = map_(plan, tuple(outputs))
    if tree.args.get("distinct"):
        refuse_maps(schema_of(made), "DISTINCT", tree, lower.text)
        made = distinct(made)
    return lower.cut(made, tree)


def _refuse_beside(tree: exp.Select, text: str) -> None:
    """Refuse what would have to be said of the rows that a generator makes."""
    remedy = "select from a subquery that has the generator"
    for node in tree.expressions:
        for window in node.find_all(exp.Window):
            raise refused("a window function beside a generator", window, text, remedy)
    if tree.args.get("qualify"):
        raise refused("QUALIFY beside a generator", tree.args["qualify"], text, remedy)
    quantifier = tree.args.get("distinct")
    if quantifier is not None and quantifier.args.get("on"):
        raise refused("DISTINCT ON", quantifier, text, "use GROUP BY")
    group = tree.args.get("group")
    for key in group.expressions if group is not None else ():
        if not isinstance(key, exp.Literal) and key.name.lower() != "all":
            continue
        raise refused("GROUP BY a position beside a generator", key, text, remedy)
