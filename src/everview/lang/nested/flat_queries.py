"""The flat queries of a shredded query, as expressions: h^F, and h^Γ of a label (Fig. 6).

A label is the tuple ⟨ι, ε⟩ of base values, so these have no inner bags: they are in IncNRC⁺, have a
finite degree, and are maintained by their deltas (Thm 5).
"""

from __future__ import annotations

from functools import reduce
from typing import assert_never

from everview.lang.nested.normal_form import (
    Call,
    Collection,
    ColumnOf,
    Comprehension,
    Head,
    Part,
    Total,
    Tuple,
)
from everview.lang.nested.shred import Member, Occurrence, Shredded
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    For,
    Record,
    Rel,
    Sng,
    Union,
    Var,
)
from everview.lang.nested.text import print_expr
from everview.lang.nested.types import ELEMENT

INDEX = "index"
"""The component of a label that has the number of the occurrence: ι."""


def flat_query(relation: Shredded, below: dict[str, Shredded], own: int | None = None) -> Expr:
    """The query of a relation, whose rows have labels in the place of bags.

    Of a dictionary it is the query of one occurrence, for a label: the variables that the bag
    depends on are free in it.
    """
    found: Expr = Empty()
    for number, member in enumerate(relation.members):
        if own is None or (member.under is not None and member.under.number == own):
            part = _comprehension(member.part, _flat_head(relation, below, number, member))
            found = part if found == Empty() else Union(found, part)
    return found


def flat_text(relation: Shredded, below: dict[str, Shredded]) -> str:
    """The flat query of a relation as text: of a dictionary, one for each occurrence."""
    owns: list[int | None] = [each.number for each in relation.occurrences]
    queries = (print_expr(flat_query(relation, below, own)) for own in owns or [None])
    return "\n".join(queries)


def _flat_head(relation: Shredded, below: dict[str, Shredded], number: int, member: Member) -> Expr:
    parts = []
    for leaf in relation.leaves:
        value = leaf.of(member.part.head)
        if isinstance(value, Collection):
            parts.append((leaf.path, _label(below[relation.below(leaf)].occurrences[number])))
        else:
            parts.append((leaf.path, _expr(value)))
    return Record(tuple(parts))


def _label(occurrence: Occurrence) -> Expr:
    """⟨ι, ε⟩."""
    values = ((label_name(each), _expr(each)) for each in occurrence.values)
    return Record(((INDEX, Const(occurrence.number)), *values))


def label_name(value: ColumnOf) -> str:
    """The component of a label that has the value of a column."""
    return f"{value.variable}.{value.name}"


def _comprehension(part: Comprehension, head: Expr) -> Expr:
    tests = [_expr(each) for each in part.conditions]
    test = reduce(lambda a, b: Apply("and", (a, b)), tests) if tests else None
    found: Expr = Sng(head)
    if not part.generators:
        return found if test is None else Choice(test, found, Empty())
    for each in reversed(part.generators):
        source = Rel(each.source) if isinstance(each.source, str) else _expr(each.source)
        found, test = For(each.variable, source, test, found), None
    return found


def _expr(head: Head) -> Expr:
    match head:
        case ColumnOf(variable, name):
            return Var(variable) if name == ELEMENT else Field(Var(variable), name)
        case Const():
            return head
        case Part(child, name):
            return Field(_expr(child), name)
        case Call("if", (test, then, otherwise)):
            return Choice(_expr(test), _expr(then), _expr(otherwise))
        case Call(function, args):
            return Apply(function, tuple(map(_expr, args)))
        case Total(function, collection):
            return Aggregate(function, _expr(collection))
        case Tuple(fields):
            return Record(tuple((name, _expr(each)) for name, each in fields))
        case Collection(parts):
            bags = [_comprehension(each, _expr(each.head)) for each in parts]
            return reduce(Union, bags) if bags else Empty()
        case _:
            assert_never(head)
