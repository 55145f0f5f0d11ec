"""Generators, which make several rows of one (EXPLODE, …), in the SELECT list and in LATERAL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.scalar import whole_number
from everview.expr.types import Column, Type, element_of, entries_of, entry_of, fields_of
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import function_name, must_be_plain, refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Item, Scope, shown_name, unlike
from everview.lang.sql.lower.columns import must_name_each
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.nested_items import elements, nested_relation
from everview.lang.sql.lower.order_limit import limit_rows
from everview.lang.sql.parse.span import span_of
from everview.plan.build import distinct, identity, map_, unnest
from everview.plan.nodes import Output, Plan, Values
from everview.plan.traverse import schema_of


@dataclass(frozen=True, slots=True)
class GeneratorCall:
    """A call that makes rows: of which array, with places or not, keeping rows without or not."""

    node: exp.Expr
    array: exp.Expr
    place: bool = False
    outer: bool = False
    inline: bool = False


def generator_of(node: exp.Expr) -> GeneratorCall | None:
    """The generator that a node calls, None when it calls none."""
    match node:
        case exp.Posexplode():
            return GeneratorCall(node, node.this, True, isinstance(node, exp.PosexplodeOuter))
        case exp.Explode():
            return GeneratorCall(node, node.this, outer=isinstance(node, exp.ExplodeOuter))
        case exp.Inline():
            return GeneratorCall(node, node.this, inline=True)
        case exp.Stack() if node.expressions and (whole_number(node.this) or 0) > 0:
            return GeneratorCall(
                node, _stacked(whole_number(node.this) or 1, node.expressions), inline=True
            )
        case exp.Anonymous(expressions=[array]) if node.name.lower() == "inline_outer":
            return GeneratorCall(node, array, outer=True, inline=True)
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


def _generated(
    context: LoweringContext, plan: Plan, call: GeneratorCall, array: str
) -> tuple[Plan, tuple[Output, ...]]:
    """The rows for each element, and the columns that the generator gives, by Spark's names."""
    type_ = context.type_of(array, schema_of(plan), call.node)
    entry = entry_of(type_)
    if entry is not None and not call.inline:
        array, type_ = scalar.canonical(f"MAP_ENTRIES({array})"), entries_of(*entry)
    element = element_of(type_)
    if element is None or (call.inline and not element.startswith("struct<")):
        raise UserError(
            "Q013",
            f"{call.node.key.upper()} of {type_} makes no rows",
            span=span_of(call.node, context.text),
            remedy="give it an array" + (" of structs" if call.inline else " or a map"),
        )
    number = context.fresh_number()
    name, place = f"element {number}", f"place {number}" if call.place else ""
    unnested = unnest(plan, array, Column(name, element), place, outer=call.outer)
    return unnested, tuple(_columns(name, place, element, call.inline or entry is not None))


def _from_dictionary(
    context: LoweringContext, plan: Plan, call: GeneratorCall, column: str, view: str
) -> tuple[Plan, tuple[Output, ...]]:
    """The same of a collection of a nested view, whose array is not built."""
    item = nested_relation(context.relations, view)
    assert item is not None
    number = context.fresh_number()
    found = elements(plan, item, column, number, apart=call.inline, outer=call.outer)
    if not found[1]:
        raise UserError(
            "Q013",
            f"{call.node.key.upper()} of a collection of values makes no rows",
            span=span_of(call.node, context.text),
            remedy="use EXPLODE",
        )
    return found


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


def _renamed(
    columns: tuple[Output, ...], names: list[str], call: GeneratorCall, text: str
) -> tuple[Output, ...]:
    """The columns of a generator with the names given to them, if there are any."""
    if not names:
        return columns
    must_name_each(names, columns, span_of(call.node, text))
    return tuple(Output(n, c.type, c.scalar) for n, c in zip(names, columns, strict=True))


def lower_lateral_view(
    context: LoweringContext, plan: Plan, node: exp.Expr, scope: Scope, *, outer: bool
) -> Plan:
    """Each row joined with the rows that a generator makes of it; `scope` learns its columns."""
    call = generator_of(node.this)
    if call is None:
        remedy = "use EXPLODE, POSEXPLODE, INLINE or STACK"
        name = function_name(node.this).upper()
        raise refused(f"LATERAL {name}", node, context.text, remedy)
    call = replace(call, outer=call.outer or outer)
    array = resolve(call.array, scope)
    must_be_plain(array, "LATERAL", context.text)
    if isinstance(array, exp.Column) and (view := scope.exploded.get(array.name)) is not None:
        unnested, columns = _from_dictionary(context, plan, call, array.name, view)
    else:
        unnested, columns = _generated(context, plan, call, scalar.text(array))
    given = node.args.get("alias")
    if node.args.get("view") and not (given and (given.this or given.columns)):
        raise UserError(
            "Q001",
            "syntax error: LATERAL VIEW has no name",
            span=span_of(node, context.text),
            remedy="write LATERAL VIEW explode(…) name AS column",
        )
    names = [column.name for column in given.columns] if given else []
    alias = node.alias or f"item {len(scope.items) + 1}"
    outputs = tuple(
        replace(o, name=f"{alias}.{o.name}") for o in _renamed(columns, names, call, context.text)
    )
    shown = tuple((o.name.removeprefix(f"{alias}."), o.name) for o in outputs)
    scope.add(Item(alias, shown), node)
    return map_(unnested, (*identity(schema_of(plan)), *outputs))


def lower_generator_item(context: LoweringContext, node: exp.Expr, scope: Scope) -> Plan:
    """A generator as the first item of FROM; if it reads the domain, for each of its values."""
    call = generator_of(node.this)
    alone: Plan = Values((), ((),))
    reads = call is not None and scalar.columns(scalar.text(resolve(call.array, scope.copy())))
    first = context.with_domain(alone) if reads else alone
    return lower_lateral_view(context, first, node, scope, outer=False)


def exploded(
    context: LoweringContext, plan: Plan, array: exp.Expr, name: str, scope: Scope, node: exp.Expr
) -> Plan:
    """Each row once for each element of a resolved array; the element is the column `name`."""
    call = GeneratorCall(node, array)
    unnested, columns = _generated(context, plan, call, scalar.text(array))
    outputs = tuple(replace(each, name=f"{name}.{name}") for each in columns)
    scope.add(Item(name, ((name, f"{name}.{name}"),)), node)
    return map_(unnested, (*identity(schema_of(plan)), *outputs))


def has_generator(tree: exp.Select) -> bool:
    """Whether a SELECT list has a generator."""
    return any(_call(node) for node in tree.expressions)


def _call(node: exp.Expr) -> tuple[GeneratorCall, list[str]] | None:
    """The generator of a projection, and the names given to its columns."""
    names: list[str] = []
    if isinstance(node, exp.Alias):
        node, names = node.this, [node.alias]
    elif isinstance(node, exp.Aliases):
        node, names = node.this, [name.name for name in node.expressions]
    call = generator_of(node)
    return (call, names) if call else None


def with_laterals(context: LoweringContext, tree: exp.Select) -> exp.Select:
    """A SELECT that explodes a collection of a nested view in its list, with LATERAL VIEW instead.

    Then the elements are read from the dictionary.
    """
    clauses = ("group", "having", "qualify", "windows")
    calls = [each for node in tree.expressions if (each := _call(node)) is not None]
    tables = [t for t in tree.find_all(exp.Table) if t.find_ancestor(exp.Select) is tree]
    nested = (nested_relation(context.relations, table.name) for table in tables)
    names = {name.lower() for item in nested if item is not None for name in item.below}
    is_plain = len(calls) == 1 and not any(tree.args.get(each) for each in clauses)
    if not is_plain or calls[0][0].place or calls[0][0].array.name.lower() not in names:
        return tree
    tree = tree.copy()
    at = next(at for at, node in enumerate(tree.expressions) if _call(node))
    call, given = _call(tree.expressions[at]) or calls[0]
    if call.inline or any(node.find(exp.AggFunc, exp.Window) for node in tree.expressions):
        return tree
    name = given[0] if given else "col"
    alias = exp.TableAlias(
        this=exp.to_identifier("generated", quoted=True),
        columns=[exp.to_identifier(name, quoted=True)],
    )
    view = exp.Lateral(this=call.node.copy(), view=True, alias=alias, outer=call.outer)
    column = exp.column(name, table="generated", quoted=True)
    tree.expressions[at].replace(exp.alias_(column, name, quoted=True))
    tree.set("laterals", [*(tree.args.get("laterals") or ()), view])
    return tree


def lower_generator_select(context: LoweringContext, tree: exp.Select) -> Plan:
    """A SELECT with generators in its list: the rest of it first, with their arrays as columns."""
    _refuse_over_generator(tree, context.text)
    carried = len(context.domain_columns)
    inner = tree.copy()
    for clause in ("with_", "distinct", "order", "limit", "offset"):
        inner.set(clause, None)
    calls: dict[str, tuple[GeneratorCall, list[str]]] = {}
    for at, node in enumerate(inner.expressions):
        if (call := _call(node)) is not None:
            mark = f"generated {at}"
            calls[mark] = call
            node.replace(exp.alias_(call[0].array.copy(), mark, quoted=True))
    plan = context.inside.query(inner)
    outputs: list[Output] = []
    for own in identity(schema_of(plan)):
        if own.name in calls:
            generator, names = calls[own.name]
            plan, columns = _generated(context, plan, generator, own.scalar)
            outputs += _renamed(columns, names, generator, context.text)
        else:
            outputs.append(own)
    shown = unlike(shown_name(each.name) for each in outputs[carried:])
    outputs[carried:] = [
        Output(name, o.type, o.scalar) for name, o in zip(shown, outputs[carried:], strict=True)
    ]
    selected = map_(plan, tuple(outputs))
    if tree.args.get("distinct"):
        refuse_maps(schema_of(selected), "DISTINCT", tree, context.text)
        selected = distinct(selected)
    return limit_rows(context, selected, tree)


def _refuse_over_generator(tree: exp.Select, text: str) -> None:
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
