"""The keys of GROUP BY: by position, alias or expression, and in GROUPING SETS, ROLLUP and CUBE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, product
from typing import TypeAlias

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.types import Column, Type
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import aggregates_in, must_be_plain, refused
from everview.lang.sql.bind.resolve import SelectList
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.parse.span import span_of

Resolve: TypeAlias = Callable[[exp.Expr], exp.Expr]
GroupingSet: TypeAlias = tuple[exp.Expr, ...]

_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
_SET_CLAUSES = ("rollup", "cube", "grouping_sets")


def group_keys(
    tree: exp.Select,
    scope: Scope,
    wanted: SelectList,
    resolve: Resolve,
    text: str,
) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """The keys of GROUP BY, and those of each grouping set where there are several."""
    clause = tree.args.get("group")
    if clause is None:
        return [], []
    if clause.args.get("all") is False:
        raise refused("GROUP BY DISTINCT", clause, text, "leave DISTINCT out")
    if _means_all(clause, scope, wanted):
        plain = [expression for _, expression in wanted if not aggregates_in(expression)]
        for expression in plain:
            must_be_plain(expression, "GROUP BY ALL", text)
        return plain, []

    def keys(nodes: Iterable[exp.Expr]) -> list[exp.Expr]:
        return [_group_key(node, scope, wanted, resolve, text) for node in nodes]

    sets = _sets_of(clause)
    if sets is None:
        return keys(clause.expressions), []
    return keys(sets[0]), list(map(keys, sets[1]))


def _means_all(clause: exp.Expr, scope: Scope, wanted: SelectList) -> bool:
    """Whether GROUP BY ALL stands for the SELECT list: no column and no alias is called so."""
    only = clause.expressions[0] if len(clause.expressions) == 1 else None
    if any(clause.args.get(part) for part in _SET_CLAUSES) or not isinstance(only, exp.Column):
        return False
    is_name = scope.has("all") or any(name.lower() == "all" for name, _ in wanted)
    return only.name.lower() == "all" and not only.table and not is_name


def _group_key(
    node: exp.Expr,
    scope: Scope,
    wanted: SelectList,
    resolve: Resolve,
    text: str,
) -> exp.Expr:
    """A key by position, by an alias of the SELECT list, or by expression."""
    if isinstance(node, exp.Literal) and not node.is_string:
        position = int(node.name) if node.name.isdigit() else 0
        if not 1 <= position <= len(wanted):
            raise UserError(
                "Q009",
                f"GROUP BY position {node.name} is not in the SELECT list",
                span=span_of(node, text) or Span(text, 0, len(text)),
                remedy=f"use 1 to {len(wanted)}",
            )
        must_be_plain(wanted[position - 1][1], "GROUP BY", text)
        return wanted[position - 1][1]
    if isinstance(node, exp.Column) and not node.table and not scope.has(node.name):
        for name, expression in wanted:
            if name.lower() == node.name.lower():
                must_be_plain(expression, "GROUP BY", text)
                return expression
    resolved = resolve(node)
    must_be_plain(resolved, "GROUP BY", text)
    return resolved


def must_be_key(node: exp.Expr, type_: Type, text: str, *, in_sets: bool) -> None:
    """Refuse a key of a type that rows cannot be grouped by."""
    refuse_maps((Column(output_name(node), type_),), "GROUP BY", node, text)
    if type_ == "void" and in_sets:
        raise UserError(
            "Q014",
            "NULL as a key of GROUPING SETS, ROLLUP or CUBE has no type",
            span=span_of(node, text) or Span(text, 0, len(text)),
            remedy="leave it out, or CAST NULL to a type",
        )


def unlisted_key(node: exp.Expr, text: str) -> UserError:
    """The error for a key of GROUPING SETS that the keys listed before it do not have."""
    return UserError(
        "Q009",
        "GROUPING SETS has a key that is not before it in GROUP BY",
        span=span_of(node, text),
        remedy="list it in GROUP BY too, or leave out the list before GROUPING SETS",
    )


def _sets_of(clause: exp.Expr) -> tuple[GroupingSet, list[GroupingSet]] | None:
    """All keys, and those of every grouping set; None for a plain GROUP BY."""
    nodes = list(clause.expressions)
    clauses = [each for part in _SET_CLAUSES for each in clause.args.get(part) or ()]
    if clauses:  # GROUP BY a, b WITH ROLLUP or GROUPING SETS (…): the keys are listed before
        given = [each for each in clauses if each.expressions]
        keys = _flat(tuple(map(_keys, nodes)))
        return keys, _product(given or [type(clauses[0])(expressions=nodes)])
    if any(isinstance(node, _SETS) for node in nodes):
        sets = _product(nodes)
        # One grouping without keys is the whole, which has a row even where there are no rows.
        return _flat(sets), sets if sets != [()] else []
    return None


def has_sets(clause: exp.Expr | None) -> bool:
    """Whether GROUP BY has GROUPING SETS, ROLLUP or CUBE, even of no key."""
    return clause is not None and _sets_of(clause) is not None


def _product(nodes: list[exp.Expr]) -> list[GroupingSet]:
    """Grouping sets beside each other are combined: each of one with each of the others."""
    return [tuple(key for part in each for key in part) for each in product(*map(_sets, nodes))]


def _sets(node: exp.Expr) -> list[GroupingSet]:
    parts = [_keys(each) for each in node.expressions] if isinstance(node, _SETS[1:]) else []
    match node:
        case exp.GroupingSets():
            return [keys for each in node.expressions for keys in _sets(each)]
        case exp.Rollup():
            return [_flat(parts[:size]) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            sizes = range(len(parts), -1, -1)
            return [_flat(chosen) for size in sizes for chosen in combinations(parts, size)]
        case _:
            return [_keys(node)]


def _keys(node: exp.Expr) -> GroupingSet:
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.unnest(),)


def _flat(parts: list[GroupingSet] | tuple[GroupingSet, ...]) -> GroupingSet:
    return tuple(key for part in parts for key in part)
