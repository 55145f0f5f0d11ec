"""GROUPING SETS, ROLLUP and CUBE: several groupings of the same rows, one after another."""

from __future__ import annotations

from itertools import combinations, product
from typing import TypeAlias

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Type, type_in
from everview.lang.sql.lower.aggregates import Grouping
from everview.lang.sql.lower.outer_joins import null_of
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, group_by, identity, map_
from everview.plan.nodes import Aggregate, Output, Plan
from everview.plan.traverse import schema_of

Set: TypeAlias = tuple[exp.Expr, ...]

_SEVERAL = (exp.GroupingSets, exp.Rollup, exp.Cube)
WITH = ("rollup", "cube", "grouping_sets")


def sets_of(clause: exp.Expr) -> tuple[Set, list[Set]] | None:
    """All keys, and those of every grouping that GROUP BY asks for; None if it is a plain one."""
    nodes = list(clause.expressions)
    asked = [each for part in WITH for each in clause.args.get(part) or ()]
    if asked:  # GROUP BY a, b WITH ROLLUP or GROUPING SETS (…): the keys are listed before
        given = [each for each in asked if each.expressions]
        keys = _flat(tuple(map(_keys, nodes)))
        return keys, _product(given or [type(asked[0])(expressions=nodes)])
    if any(isinstance(node, _SEVERAL) for node in nodes):
        sets = _product(nodes)
        # One grouping without keys is the whole, which has a row even where there are no rows.
        return _flat(sets), sets if sets != [()] else []
    return None


def several_sets(clause: exp.Expr | None) -> bool:
    """Whether GROUP BY says GROUPING SETS, ROLLUP or CUBE, even of no key."""
    return clause is not None and sets_of(clause) is not None


def _product(nodes: list[exp.Expr]) -> list[Set]:
    """Groupings side by side are combined, each of one with each of the others."""
    return [tuple(key for part in each for key in part) for each in product(*map(_sets, nodes))]


def _sets(node: exp.Expr) -> list[Set]:
    parts = [_keys(each) for each in node.expressions] if isinstance(node, _SEVERAL[1:]) else []
    match node:
        case exp.GroupingSets():
            return [found for each in node.expressions for found in _sets(each)]
        case exp.Rollup():
            return [_flat(parts[:size]) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            sizes = range(len(parts), -1, -1)
            return [_flat(chosen) for size in sizes for chosen in combinations(parts, size)]
        case _:
            return [_keys(node)]


def _keys(node: exp.Expr) -> Set:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.unnest(),)


def _flat(parts: list[Set] | tuple[Set, ...]) -> Set:
    return tuple(key for part in parts for key in part)


def add_mark(node: exp.Func, grouping: Grouping, text: str) -> None:
    """Have the grouping tell which keys a row is not grouped by: GROUPING and GROUPING_ID."""
    every = tuple(dict.fromkeys(grouping.keys.values()))
    found = [(grouping.key(each), each) for each in node.expressions]
    for key, part in found or [(None, node)] * (not grouping.sets and not grouping.whole):
        if key is None or not grouping.sets:
            raise UserError(
                "Q009",
                f"{node.sql_name()} of something that GROUP BY has no sets of",
                span=span_of(part, text) or Span(text, 0, len(text)),
                remedy="name a key of GROUPING SETS, ROLLUP or CUBE",
            )
    single = isinstance(node, exp.Grouping)
    names = tuple(key for key, _ in found if key is not None) or every
    if not single and names != every:
        raise UserError(
            "Q009",
            "GROUPING_ID of other columns than GROUP BY has",
            span=span_of(node, text),
            remedy="name all of them in their order, or none",
        )
    mark = (f"mark{len(grouping.marks) + 1}", single, names)
    grouping.marks.setdefault(scalar.text(node), mark)


def group_by_sets(
    rows: Plan, carried: tuple[str, ...], grouping: Grouping, aggregates: tuple[Aggregate, ...]
) -> Plan:
    """All groupings of the rows; the keys that one leaves out are NULL in it.

    Every grouping has a constant key, so that it has no row where there are no rows at all.
    """
    return add(*(_one(rows, carried, keys, grouping, aggregates) for keys in grouping.sets))


def _one(
    rows: Plan,
    carried: tuple[str, ...],
    keys: tuple[str, ...],
    grouping: Grouping,
    aggregates: tuple[Aggregate, ...],
) -> Plan:
    schema = schema_of(rows)
    by = tuple(dict.fromkeys((*carried, *keys)))
    counted = map_(rows, (*identity(schema), Output(_WHOLE, "int", "1")))
    groups = group_by(counted, (*by, _WHOLE), aggregates)
    every = dict.fromkeys((*carried, *grouping.keys.values()))
    types = {name: type_in(schema, name) for name in every}
    shown = (
        Output(name, type_, scalar.column(name) if name in by else null_of(type_))
        for name, type_ in types.items()
    )
    computed = (Output(a.name, a.type, scalar.column(a.name)) for a in aggregates)
    marks = (_mark(name, single, of, keys) for name, single, of in grouping.marks.values())
    return map_(groups, (*shown, *computed, *marks))


def marked_whole(groups: Plan, grouping: Grouping) -> Plan:
    """The one group of GROUPING SETS (()), which GROUPING_ID tells nothing of."""
    marks = (_mark(name, single, of, ()) for name, single, of in grouping.marks.values())
    return map_(groups, (*identity(schema_of(groups)), *marks)) if grouping.marks else groups


def _mark(name: str, single: bool, of: tuple[str, ...], keys: tuple[str, ...]) -> Output:
    bits = sum((key not in keys) << place for place, key in enumerate(reversed(of)))
    type_: Type = "tinyint" if single else "bigint"
    return Output(name, type_, scalar.canonical(f"CAST({bits} AS {type_})"))


_WHOLE = "grouping"
"""The constant key."""
