"""Random small worlds: tables, changes and plans, well formed by construction.

Values are few and NULL is among them, so that joins meet, rows cancel and groups vanish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product
from math import inf, isnan, nan

import pyarrow as pa
from hypothesis import strategies as st

from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.type_inference import type_of
from everview.expr.types import Column, Schema, is_exact, is_nested
from everview.plan.build import (
    add,
    distinct,
    filter_,
    group_by,
    join,
    map_,
    negate,
    partition,
    positive,
    restrict,
    unnest,
    window,
)
from everview.plan.nodes import (
    Aggregate,
    Change,
    Empty,
    Order,
    Output,
    Over,
    Plan,
    Source,
    Values,
)
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema

T = Source("t", (Column("a", "int"), Column("b", "int"), Column("x", "decimal(6,2)")))
U = Source("u", (Column("a", "int"), Column("d", "double"), Column("s", "string")))
SOURCES = {"t": T, "u": U}

_VALUES = {
    "int": st.sampled_from([None, 0, 1, 2]),
    "decimal(6,2)": st.sampled_from([None, Decimal("0.00"), Decimal("1.25"), Decimal("-3.10")]),
    "double": st.sampled_from([None, 0.0, -0.0, 0.5, -1.0, 4.0, inf]),
    "string": st.sampled_from([None, "", "p", "q"]),
}

Row = tuple[object, ...]
Bag = Counter[Row]
World = Mapping[str, Bag]


def rows(schema: Schema) -> st.SearchStrategy[Row]:
    """One row."""
    return st.tuples(*(_VALUES[column.type] for column in schema))


def bags(schema: Schema, size: int = 5) -> st.SearchStrategy[Bag]:
    """A bag of a few rows, duplicates among them."""
    several = st.tuples(rows(schema), st.sampled_from([1, 1, 2]))
    some = st.lists(several, min_size=2, max_size=size)
    return st.one_of(some, some, some, st.just([])).map(
        lambda found: Counter(row for row, times in found for _ in range(times))
    )


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Bag]:
    """A value for every source."""
    return {name: draw(bags(source.schema)) for name, source in SOURCES.items()}


@st.composite
def changes(draw: st.DrawFn, world: World, most: int = 3) -> dict[str, Bag]:
    """A change after which no row has a negative weight: new rows, old rows removed."""
    found = {}
    for name, source in SOURCES.items():
        change: Bag = Counter()
        present = sorted(world[name].elements(), key=repr)
        if present:
            for row in draw(st.lists(st.sampled_from(present), max_size=most)):
                if world[name][row] + change[row] > 0:
                    change[row] -= 1
        for row in draw(bags(source.schema, 3)).elements():
            change[row] += 1
        found[name] = Counter({row: weight for row, weight in change.items() if weight})
    return found


def after(world: World, change: World) -> dict[str, Bag]:
    """The world with a change added."""
    found = {}
    for name, bag in world.items():
        total = Counter(bag)
        for row, weight in change[name].items():
            total[row] += weight
        found[name] = Counter({row: weight for row, weight in total.items() if weight})
    return found


def as_arrow(bag: Bag, schema: Schema) -> pa.Table:
    """A bag as a weighted Arrow table."""
    wanted = arrow_schema(schema)
    entries = [(*row, weight) for row, weight in bag.items()]
    columns = list(zip(*entries, strict=True)) or [()] * len(wanted)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.table(arrays, schema=wanted)


def as_bag(table: pa.Table) -> Bag:
    """A weighted Arrow table as a bag; NaN is one value, as in SQL."""
    found: Bag = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[tuple(_plain(value) for value in row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def _plain(value: object) -> object:
    """One object for every NaN, so that it equals itself, and arrays that can be counted."""
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return nan if isinstance(value, float) and isnan(value) else value


def total(*bags_: Bag) -> Bag:
    """The sum of bags, rows that cancel gone."""
    found: Bag = Counter()
    for bag in bags_:
        for row, weight in bag.items():
            found[row] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


NOTHING = Empty((Column("a", "int"), Column("n", "double")))
CONSTANT = Values(
    (Column("a", "int"), Column("k", "int")), (("1", "2"), ("CAST(NULL AS INT)", "0"))
)
OLD = (T, U, T, U, T, U, CONSTANT, NOTHING)
SIGNED = (
    *(Change(source.name, source.schema) for source in (T, U)),
    *(add(source, Change(source.name, source.schema)) for source in (T, U)),
    CONSTANT,
)
OPERATORS = (
    *("filter", "map", "unnest", "add", "subtract", "join", "distinct", "positive", "group"),
    "window",
    "first rows",
    "frames",
)


POLYNOMIAL = ("filter", "map", "unnest", "add", "subtract", "join")
"""Operators of which plans are polynomials: their degree is finite."""


@st.composite
def plans(
    draw: st.DrawFn,
    depth: int = 3,
    leaves: tuple[Plan, ...] = OLD,
    kinds: tuple[str, ...] = (*OPERATORS, "join", "group"),
) -> Plan:
    """A plan of at most `depth` operators above the leaves; joins and groups are the most."""
    kind = draw(st.sampled_from(("leaf", *kinds))) if depth else "leaf"
    if kind == "leaf":
        return draw(st.sampled_from(leaves))
    below = plans(depth - 1, leaves, kinds)
    return draw(_operator(kind, draw(below), below))


@st.composite
def _operator(draw: st.DrawFn, kind: str, child: Plan, others: st.SearchStrategy[Plan]) -> Plan:
    """An operator over `child`, and over another plan if it takes two."""
    match kind:
        case "filter":
            return filter_(child, draw(predicates(schema_of(child))))
        case "map":
            return draw(_mapped(child))
        case "unnest":
            return draw(_unnested(child))
        case "add" if draw(st.booleans()):
            return add(child, filter_(child, draw(predicates(schema_of(child)))))
        case "add":
            return add(draw(_two_ints(child)), draw(_two_ints(draw(others))))
        case "subtract":
            return add(draw(_two_ints(child)), negate(draw(_two_ints(draw(others)))))
        case "join":
            return draw(_joined(child, draw(others)))
        case "distinct":
            return distinct(child)
        case "positive":
            return positive(child)
        case "window":
            return draw(windowed(child))
        case "frames":
            return draw(framed(child))
        case "first rows":
            return draw(first_rows(child))
        case "whole groups":
            return draw(partitioned(child))
        case "ordered groups":
            return draw(ordered_groups(child))
        case "extremes":
            return draw(extremes(child))
        case "signed extremes":
            return draw(extremes(draw(_operator("subtract", child, others))))
        case "surplus":
            return positive(draw(_operator("subtract", child, others)))
        case "match":
            return draw(_joined(child, draw(others), nulls=True))
        case "restrict":
            to = draw(others)
            return restrict(child, to, tuple(draw(_keys(child, to))))
        case "count":
            return draw(grouped(child, exact=True))
        case _:
            return draw(grouped(child))


EVERY = (
    *OPERATORS,
    "count",
    "match",
    "surplus",
    "whole groups",
    "ordered groups",
    "extremes",
    "signed extremes",
)


@st.composite
def one_of_each(
    draw: st.DrawFn, leaves: tuple[Plan, ...], kinds: tuple[str, ...] = EVERY
) -> tuple[Plan, ...]:
    """Every operator over the leaves."""
    leaf = st.sampled_from(leaves)
    return tuple(draw(_operator(kind, draw(leaf), leaf)) for kind in kinds)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Plan, ...]:
    """Joins with a join, by a key of its left side, of its right side, of both; and by a float."""
    left, right, third = (prefixed(T, prefix) for prefix in ("l", "r", "t"))
    residual = draw(st.sampled_from([None, scalar.canonical("`l0` < `r0` + 1")]))
    inner = join(left, right, (("l1", "r1"),), residual, draw(st.booleans()))
    by = ((("l0", "t0"),), (("r0", "t0"),), (("l0", "t0"), ("r0", "t1")))
    floats = distinct(map_(U, (Output("d", "double", "`d`"),)))
    joins = (
        join(inner, third, on) if draw(st.booleans()) else _turned(third, inner, on) for on in by
    )
    return (*joins, join(prefixed(U, "u"), floats, (("u1", "d"),)))


def _turned(left: Plan, right: Plan, on: tuple[tuple[str, str], ...]) -> Plan:
    return join(left, right, tuple((b, a) for a, b in on))


_FACTORS = (
    *("`l0`", "`l2`", "`r2`", "`t1`", "`r0` + 1", "1 - `t0`", "2", "`l2` * `l0`", "NULL"),
    *("CASE WHEN `r1` > 0 THEN `t2` ELSE 0 END", "CASE WHEN `l0` = 1 THEN `r2` END", "`t0` - 1"),
    *("CASE WHEN `t0` = 1 THEN `l2` WHEN `r0` > 0 THEN 3 ELSE `t1` END", "COALESCE(`t2`, 1)"),
)
"""Numbers over one relation or two of a join of l, r and t, null among them."""


@st.composite
def grouped_joins(draw: st.DrawFn) -> Plan:
    """Sums of products over a join of three relations: in a chain, with a circle, or apart.

    Some relations are filtered, and some conditions are no equalities.
    """
    parts = [prefixed(T, prefix) for prefix in ("l", "r", "t")]
    parts = [
        filter_(part, draw(predicates(schema_of(part)))) if draw(st.booleans()) else part
        for part in parts
    ]
    residual = draw(st.sampled_from([None, None, None, "`l0` < `r0` + 1", "`l1` = 1"]))
    chain = join(parts[0], parts[1], draw(st.sampled_from(((("l0", "r0"),), (("l1", "r0"),)))))
    on = draw(st.sampled_from(((("r1", "t0"),), (("r1", "t0"),), (("l0", "t0"), ("r1", "t1")), ())))
    whole = filter_(join(chain, parts[2], on), residual and scalar.canonical(residual))
    outputs = [Output(name, "int", f"`{name}`") for name in ("l0", "l1", "r1", "t0")]
    outputs += [
        Output("l2", "decimal(6,2)", "`l2`"),
        Output("k", "int", draw(st.sampled_from(["CAST(`r1` AS INT)", "`t1`", "`l0` + `t0`"]))),
    ]
    texts = []
    for number in range(draw(st.integers(1, 3))):
        one, other = (draw(st.sampled_from(_FACTORS)) for _ in range(2))
        operator = draw(st.sampled_from("**+-"))
        text = scalar.canonical(f"({one}) {operator} ({other})")
        texts.append(one if draw(st.booleans()) else text)
        type_ = type_of(scalar.canonical(texts[-1]), schema_of(whole))
        if type_ is not None and is_exact(type_):
            outputs.append(Output(f"v{number}", type_, scalar.canonical(texts[-1])))
    values = [o for o in outputs if o.name.startswith(("v", "l2"))]
    aggregates = [Aggregate("n", "bigint", "count")] if draw(st.booleans()) else []
    for value in values:
        for function in draw(st.lists(st.sampled_from(("count", "sum", "avg")), min_size=1)):
            name = f"{function}.{value.name}"
            made = result_type(function, value.type)
            if made is not None and name not in {a.name for a in aggregates}:
                aggregates.append(Aggregate(name, made, function, value.name))
    keys = draw(st.lists(st.sampled_from(("l0", "l1", "r1", "t0", "k")), max_size=2, unique=True))
    return group_by(map_(whole, tuple(outputs)), tuple(keys), tuple(aggregates))


@st.composite
def read_by_key(draw: st.DrawFn) -> tuple[Plan, ...]:
    """Tables joined with every operator over tables, so that it is read by a key."""
    views = draw(one_of_each((T, U)))
    having = draw(grouped(T))
    chosen = (*views, filter_(having, draw(predicates(schema_of(having)))))
    tables = st.sampled_from((T, U))
    return tuple(
        draw(_joined(view, draw(tables)) if draw(st.booleans()) else _joined(draw(tables), view))
        for view in chosen
    )


def predicates(schema: Schema) -> st.SearchStrategy[str]:
    """A condition over columns of `schema`."""
    if not schema:
        return st.just("TRUE")
    column = st.sampled_from(schema)
    ints = [c for c in schema if c.type == "int"]
    choices = [
        column.map(lambda c: f"{scalar.column(c.name)} IS NULL"),
        column.map(lambda c: f"NOT {scalar.column(c.name)} IS NULL"),
    ]
    if ints:
        picked = st.sampled_from(ints)
        choices += [
            st.tuples(picked, st.integers(0, 2)).map(
                lambda p: f"{scalar.column(p[0].name)} > {p[1]}"
            ),
            st.tuples(picked, picked).map(
                lambda p: f"{scalar.column(p[0].name)} = {scalar.column(p[1].name)}"
            ),
            st.tuples(picked, picked).map(
                lambda p: f"{scalar.column(p[0].name)} < {scalar.column(p[1].name)} + 1"
            ),
        ]
    return st.one_of(*choices).map(scalar.canonical)


@st.composite
def _mapped(draw: st.DrawFn, child: Plan) -> Plan:
    schema = schema_of(child)
    kept = draw(st.lists(st.sampled_from(schema), max_size=3, unique=True)) if schema else []
    outputs = [Output(f"m.{i}", c.type, scalar.column(c.name)) for i, c in enumerate(kept)]
    ints = [c for c in schema if c.type == "int"]
    if ints and draw(st.booleans()):
        c = draw(st.sampled_from(ints))
        outputs.append(Output("m.n", "int", scalar.canonical(f"{scalar.column(c.name)} + 1")))
    if not outputs:
        outputs = [Output("m.c", "int", "1")]
    return map_(child, tuple(outputs))


@st.composite
def _two_ints(draw: st.DrawFn, child: Plan) -> Plan:
    ints = [c.name for c in schema_of(child) if c.type == "int"]
    texts = [scalar.column(draw(st.sampled_from(ints))) if ints else "1" for _ in range(2)]
    return map_(child, tuple(Output(f"p.{i}", "int", text) for i, text in enumerate(texts)))


@st.composite
def _unnested(draw: st.DrawFn, child: Plan) -> Plan:
    """The rows of `child` once for each element of an array of its integers, or of one it has."""
    schema = schema_of(child)
    ints = [scalar.column(c.name) for c in schema if c.type == "int"] or ["1"]
    a, b = (draw(st.sampled_from(ints)) for _ in range(2))
    arrays = [
        f"ARRAY({a}, {b})",
        f"CASE WHEN {a} > 0 THEN ARRAY({b}) END",
        f"CASE WHEN {a} > 0 THEN ARRAY({b}, {a}, {b}) ELSE CAST(ARRAY() AS ARRAY<INT>) END",
        *(scalar.column(c.name) for c in schema if c.type == "array<int>"),
    ]
    number = sum(c.name.startswith("e.") for c in schema)
    place = f"p.{number}e" if draw(st.booleans()) else ""
    array = scalar.canonical(draw(st.sampled_from(arrays)))
    element = Column(f"e.{number}", "int")
    return unnest(child, array, element, place, outer=draw(st.booleans()))


def prefixed(plan: Plan, prefix: str) -> Plan:
    """The plan with columns called by a prefix and their places."""
    outputs = (
        Output(f"{prefix}{i}", c.type, scalar.column(c.name)) for i, c in enumerate(schema_of(plan))
    )
    return map_(plan, tuple(outputs))


def _keys(left: Plan, right: Plan, least: int = 0) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Pairs of columns of one type, at most two; none where there are none."""
    pairs = [
        (a.name, b.name) for a in schema_of(left) for b in schema_of(right) if a.type == b.type
    ]
    if not pairs:
        return st.just([])
    return st.lists(st.sampled_from(pairs), min_size=least, max_size=2, unique=True)


@st.composite
def _joined(draw: st.DrawFn, left: Plan, right: Plan, nulls: bool = False) -> Plan:
    """A join; with `nulls` it has a key if there can be one, and NULL equals NULL."""
    left, right = prefixed(left, "l"), prefixed(right, "r")
    on = draw(_keys(left, right, least=int(nulls)))
    residual = None
    if draw(st.booleans()):
        residual = draw(predicates(schema_of(left) + schema_of(right)))
    if residual is None and draw(st.booleans()):
        ints = [[c.name for c in schema_of(side) if c.type == "int"] for side in (left, right)]
        if all(ints):
            a, b = (scalar.column(draw(st.sampled_from(names))) for names in ints)
            residual = scalar.canonical(f"{a} < {b} + 1")
    return join(left, right, tuple(on), residual, nulls or draw(st.booleans()))


@st.composite
def windowed(draw: st.DrawFn, child: Plan) -> Plan:
    """Functions over the groups of `child` in the order of a column; equal rows have equal values.

    A plan without a column of integers is left as it is.
    """
    schema = schema_of(child)
    ints = [c.name for c in schema if c.type == "int"]
    if not ints:
        return child
    keys = draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=1))
    order = (Order(draw(st.sampled_from(ints)), draw(st.booleans()), draw(st.booleans())),)
    summed = scalar.column(draw(st.sampled_from(ints)))
    chosen = [("rank", "int", ()), ("dense_rank", "int", ()), ("count", "bigint", ())]
    chosen.append(("sum", "bigint", (summed,)))
    columns = [
        Over(f"w{len(schema)}.{function}", type_, function, arguments, order)
        for function, type_, arguments in chosen
    ]
    columns.append(Over(f"w{len(schema)}.whole", "bigint", "sum", (summed,)))
    some = draw(st.lists(st.sampled_from(columns), min_size=2, max_size=3, unique=True))
    return window(child, tuple(keys), tuple(some))


@st.composite
def framed(draw: st.DrawFn, child: Plan, reach: int = 3) -> Plan:
    """Functions of the rows of `child` that are at most `reach` apart in a column of integers.

    A plan without such a column is left as it is.
    """
    schema = schema_of(child)
    ints = [c.name for c in schema if c.type == "int"]
    if not ints:
        return child
    keys = draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=2, unique=True))
    order = (Order(draw(st.sampled_from(ints)), draw(st.booleans()), draw(st.booleans())),)
    summed = scalar.column(draw(st.sampled_from(ints)))
    columns = []
    for function, arguments in (("count", ()), ("sum", (summed,))):
        low, high = (draw(st.integers(0, reach)) for _ in range(2))
        frame = f"RANGE BETWEEN {low} PRECEDING AND {high} FOLLOWING"
        name = f"n{len(schema)}.{function}"
        columns.append(Over(name, "bigint", function, arguments, order, frame))
    return window(child, tuple(keys), tuple(columns))


@st.composite
def first_rows(draw: st.DrawFn, child: Plan) -> Plan:
    """The first rows of the groups of `child`, by number or by rank.

    A plan without a column of integers, or with one of arrays, is left as it is.
    """
    schema = schema_of(child)
    ints = [c.name for c in schema if c.type == "int"]
    if not ints or any(is_nested(c.type) for c in schema):
        return child
    keys = tuple(draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=1)))
    order = (Order(draw(st.sampled_from(ints)), draw(st.booleans()), draw(st.booleans())),)
    known = {*keys, order[0].column}
    whole = (*order, *(Order(c.name) for c in schema if c.name not in known))
    orders = {"row_number": whole, "rank": order, "dense_rank": order}
    functions = draw(st.lists(st.sampled_from(list(orders)), min_size=1, max_size=2, unique=True))
    columns = [Over(f"f{len(schema)}.{f}", "int", f, (), orders[f]) for f in functions]
    number, most = scalar.column(columns[0].name), draw(st.sampled_from([2, 1, 2, 3, 4, 0]))
    forms = (f"{number} <= {most}", f"{number} < {most}", f"{number} = {most}")
    forms += (f"{most} >= {number}", f"{most} > {number}", f"{number} BETWEEN 2 AND {most}")
    predicate = draw(st.sampled_from((forms[0], *forms)))
    if draw(st.booleans()):
        predicate += f" AND {draw(predicates(schema))}"
    return filter_(window(child, keys, tuple(columns)), scalar.canonical(predicate))


FUNCTIONS: tuple[str, ...] = ("count", "sum", "avg", "min", "max", "collect_list")


@st.composite
def partitioned(draw: st.DrawFn, child: Plan) -> Plan:
    """Whole groups of `child`, with every aggregate there is of two of its columns."""
    schema = schema_of(child)
    keys = draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=2, unique=True))
    aggregates = [Aggregate("n", "bigint", "count")]
    for column in draw(st.lists(st.sampled_from(schema), min_size=2, max_size=2, unique=True)):
        for function, distinct_ in product(FUNCTIONS, (False, True)):
            type_ = result_type(function, column.type)
            if type_ is not None:
                name = f"{function}({column.name}, {distinct_})"
                aggregates.append(Aggregate(name, type_, function, column.name, distinct_))
    return partition(child, tuple(keys), tuple(aggregates))


@st.composite
def ordered_groups(draw: st.DrawFn, child: Plan) -> Plan:
    """Whole groups of `child`, with aggregates that are no sums."""
    schema = schema_of(child)
    keys = draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=1, unique=True))
    column, other = (draw(st.sampled_from(schema)) for _ in range(2))
    aggregates = _holistic(column, other, draw(st.booleans()))
    return partition(child, tuple(keys), (Aggregate("n", "bigint", "count"), *aggregates))


@st.composite
def extremes(draw: st.DrawFn, child: Plan) -> Plan:
    """Groups of `child` with aggregates that follow from those of their parts."""
    schema = schema_of(child)
    keys = draw(st.lists(st.sampled_from([c.name for c in schema]), max_size=2, unique=True))
    column = draw(st.sampled_from(schema))
    made = [Aggregate(f"{f}.m", column.type, f, column.name) for f in ("min", "max")]
    made.append(Aggregate("count.m", "bigint", "count", column.name))
    made.append(Aggregate("rows.m", "bigint", "count"))
    if column.type == "int":
        made.append(Aggregate("bits.m", "int", "bit_or", column.name))
        made.append(Aggregate("sum.m", "bigint", "sum", column.name))
    some = draw(st.lists(st.sampled_from(made[2:]), max_size=3, unique=True))
    return partition(child, tuple(keys), (draw(st.sampled_from(made[:2])), *some))


def _holistic(column: Column, other: Column, descending: bool) -> Iterator[Aggregate]:
    """Aggregates that are no sums, of one column in the order of another."""
    name, type_ = column.name, column.type
    least, by = Order(name, descending), Order(other.name, descending, not descending)
    for function in ("max_by", "min_by"):
        yield Aggregate(f"{function}({name})", type_, function, name, more=(other.name,))
    yield Aggregate(f"pairs({name})", "bigint", "count", name, distinct=True, more=(other.name,))
    for way in (False, True):
        yield Aggregate(f"mode({name}, {way})", type_, "mode", name, order=(Order(name, way),))
    if type_ == "int":
        for function in ("bit_and", "bit_or", "bit_xor"):
            yield Aggregate(f"{function}({name})", type_, function, name)
        yield Aggregate(f"bit_xor({name}, True)", type_, "bit_xor", name, distinct=True)
    if type_ == "double":
        for function, part in (("percentile_cont", "0.3"), ("percentile_disc", "0.6")):
            made = Aggregate(f"{function}({name})", type_, function, name)
            yield replace(made, order=(least,), fixed=part)
    if type_ == "string":
        made = Aggregate(f"listagg({name})", type_, "listagg", name, fixed="'-'")
        yield replace(made, order=(by, Order(name)))
        yield replace(made, name=f"listagg({name}, True)", distinct=True, order=(least,))


@st.composite
def grouped(draw: st.DrawFn, child: Plan, exact: bool = False) -> Plan:
    """A GROUP BY over `child`, with keys or without; `exact` where it has totals."""
    schema = schema_of(child)
    groupable = [c.name for c in schema]
    keys = draw(st.lists(st.sampled_from(groupable), max_size=2, unique=True)) if groupable else []
    aggregates: list[Aggregate] = []
    taken = [int(c.name[1:].split(".")[0]) for c in schema if c.name.startswith("g")]
    depth = max(taken, default=0) + 1
    for i in range(draw(st.integers(1, 2))):
        function = draw(st.sampled_from(FUNCTIONS[:2] if exact else FUNCTIONS))
        numeric = [c for c in schema if is_exact(c.type) or (c.type == "double" and not exact)]
        if (function == "count" and draw(st.booleans())) or not schema:
            aggregates.append(Aggregate(f"g{depth}.{i}", "bigint", "count"))
            continue
        usable = numeric if function in ("sum", "avg") else list(schema)
        if not usable:
            aggregates.append(Aggregate(f"g{depth}.{i}", "bigint", "count"))
            continue
        column = draw(st.sampled_from(usable))
        type_ = result_type(function, column.type)
        assert type_ is not None
        distinct_ = not exact and draw(st.sampled_from([False, False, True]))
        aggregates.append(Aggregate(f"g{depth}.{i}", type_, function, column.name, distinct_))
    return group_by(child, tuple(keys), tuple(aggregates))
