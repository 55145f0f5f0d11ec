"""Fig. 1 and Fig. 2 as tables, and the changes of a view, each written by the code that it shows.

An operator is applied to S and T, of which nothing is known but their names, and the result is
printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.differentiate.sets.nabla import changes_of
from everview.differentiate.sets.propagate import carry_delete, carry_insert
from everview.differentiate.sets.transaction import Transaction, pre, transaction
from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    Mod,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
    children,
    relations,
    with_children,
)
from everview.lang.relalg.printer import print_expression, print_name
from everview.plan.build import fresh

_S, _T = Relation("S"), Relation("T")
_P, _A = "p", (("A", "A"),)
_LESS, _MORE = Sub(_S, Deleted("S")), Add(_S, Inserted("S"))
_OPERATORS: tuple[Expression, ...] = (
    Relation("R"),
    Select(_S, _P),
    Project(_S, _A),
    Product(_S, _T),
    Union(_S, _T),
    Intersection(_S, _T),
    Difference(_S, _T),
    NaturalJoin(_S, _T),
)
"""One expression for each operator, in the order of the grammar."""
LEFT_SIDES: tuple[Expression, ...] = (
    Select(_LESS, _P),
    Select(_MORE, _P),
    Project(_LESS, _A),
    Project(_MORE, _A),
    Product(_LESS, _T),
    Product(_MORE, _T),
    Union(_LESS, _T),
    Union(_MORE, _T),
    Difference(_LESS, _T),
    Difference(_S, Sub(_T, Deleted("T"))),
    Difference(_MORE, _T),
    Difference(_S, Add(_T, Inserted("T"))),
    Intersection(_LESS, _T),
    Intersection(_MORE, _T),
    NaturalJoin(_LESS, _T),
    NaturalJoin(_MORE, _T),
)
"""The left sides of the equations of Fig. 1, from the first to the sixteenth."""


def equations() -> Iterator[tuple[int, str, str]]:
    """Fig. 1: the number, the left and the right side of each equation."""
    for left in LEFT_SIDES:
        carried = carry_insert(left) or carry_delete(left)
        assert carried is not None
        number, right = carried
        yield number, print_expression(_written_out(left)), print_expression(_written_out(right))


def rules() -> Iterator[tuple[str, str, str]]:
    """Fig. 2: an operator, ∇ and Δ of it."""
    changed = transaction("RST")
    for query in _OPERATORS:
        yield _shown(query, changed)


def _shown(query: Expression, changed: Transaction) -> tuple[str, str, str]:
    changes = changes_of(changed, query)
    deleted, inserted = print_expression(changes.deleted), print_expression(changes.inserted)
    return print_expression(query), deleted, inserted


def _written_out(expression: Expression) -> Expression:
    """The expression with S − ∇S and S ∪ ΔS instead of their abbreviations."""
    below = tuple(map(_written_out, children(expression)))
    match expression:
        case Add():
            return Union(below[0], below[1])
        case Sub():
            return Difference(below[0], below[1])
        case _:
            return with_children(expression, below)


def definitions(view: str, query: Expression) -> tuple[str, ...]:
    """A view, ∇ and Δ of it, a line each, after those of the parts that they read.

    Each part of the query has a name and is defined once, so the text grows as the query does.
    """
    taken = tuple({each.name for each in relations(query)} | {view})
    parts: dict[Expression, Relation] = {}
    lines: list[str] = []

    def part(below: Expression) -> Relation:
        if isinstance(below, Relation):
            return below
        if below not in parts:
            over = with_children(below, [part(child) for child in children(below)])
            parts[below] = Relation(fresh(f"Q{len(parts) + 1}", taken))
            define(parts[below].name, over)
        return parts[below]

    def define(name: str, over: Expression) -> None:
        changed = transaction(each.name for each in relations(over))
        texts = _shown(over, changed)
        signs = ("", "∇", "Δ")
        lines.extend(f"{s}{print_name(name)} = {t}" for s, t in zip(signs, texts, strict=True))

    define(view, with_children(query, [part(child) for child in children(query)]))
    return tuple(lines)


def pre_text(view: str, query: Expression) -> str:
    """What a view will be, over what its relations are: each R is replaced by (R − ∇R) ∪ ΔR."""

    def written_out(node: Expression) -> Expression:
        if isinstance(node, Mod):
            return Union(Difference(node.child, node.deleted), node.inserted)
        return with_children(node, map(written_out, children(node)))

    changed = transaction(each.name for each in relations(query))
    return f"pre({print_name(view)}) = {print_expression(written_out(pre(changed, query)))}"
