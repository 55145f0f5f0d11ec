"""WITH RECURSIVE: relations defined by themselves and by each other, as fixpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Schema
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.columns import renamed
from everview.lang.sql.parse.span import span_of
from everview.plan.build import distinct
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Recursive,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import children, recurs, schema_of

if TYPE_CHECKING:
    from everview.lang.sql.lower.query import Lowering

Ctes = dict[str, exp.CTE]
Seeing = Callable[[Mapping[str, Plan]], "Lowering"]


def circles(clause: exp.With) -> dict[str, tuple[str, ...]]:
    """For each name that WITH RECURSIVE defines by itself: all that are on one circle with it."""
    ctes = {cte.alias.lower(): cte for cte in clause.expressions}
    reads = {name: _read(cte.this) & {*ctes} for name, cte in ctes.items()}
    reach = {name: _reached(name, reads) for name in ctes}
    return {
        name: tuple(other for other in ctes if other in reach[name] and name in reach[other])
        for name in ctes
        if name in reach[name]
    }


def _read(tree: exp.Expr) -> set[str]:
    """The names that a query reads, but for those it defines itself."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = (node for node in tree.find_all(exp.Table) if not node.args.get("db"))
    return {node.name.lower() for node in found} - own


def _reached(name: str, reads: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [name]
    while waiting:
        fresh = reads[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found


def lower_circle(
    names: tuple[str, ...], clause: exp.With, seeing: Seeing, text: str
) -> dict[str, Plan]:
    """The relations of one circle, each as the fixpoint of all of them."""
    ctes = {cte.alias.lower(): cte for cte in clause.expressions}
    circle = {name: ctes[name] for name in names}
    schemas = _schemas(circle, seeing, text)
    known = {name: Recursive(name, schema) for name, schema in schemas.items()}
    equations = []
    for name, cte in circle.items():
        body = _shaped(seeing(known).derived(cte.this), cte, text)
        _must_be_typed(body, schemas[name], cte, text)
        _must_rise(body, name, circle, text)
        equations.append((name, body))
    limit = max(_limit(cte) for cte in circle.values())
    return {name: Fixpoint(name, tuple(equations), limit) for name in names}


def _limit(cte: exp.CTE) -> int:
    given = cte.args["alias"].args.get("limit")
    return int(given.name) if given is not None else 0


def _schemas(circle: Ctes, seeing: Seeing, text: str) -> dict[str, Schema]:
    """The columns of each relation, from a term that needs only what has columns already."""
    found: dict[str, Schema] = {}
    waiting = list(circle)
    while waiting:
        ready = ((n, t) for n in waiting if (t := _first_term(circle[n], circle, found)))
        name, term = next(ready, ("", None))
        if term is None:
            cte = circle[waiting[0]]
            raise UserError(
                "Q022",
                f"{cte.alias} is defined by itself alone: nothing says where it begins",
                span=span_of(cte, text),
                remedy="add a term that does not read it, before UNION or UNION ALL",
            )
        known = {other: Recursive(other, schema) for other, schema in found.items()}
        found[name] = schema_of(_shaped(seeing(known).derived(term), circle[name], text))
        waiting.remove(name)
    return found


def _first_term(cte: exp.CTE, circle: Ctes, known: Mapping[str, Schema]) -> exp.Expr | None:
    """All terms of a union together that read no relation without columns."""
    open_ = {*circle} - {*known}
    terms = [term for term in _terms(cte.this) if not _read(term) & open_]
    outside = [term for term in terms if not _read(term) & {*circle}] or terms
    made: exp.Expr | None = None
    for term in outside:
        plain = term.copy()
        made = plain if made is None else exp.Union(this=made, expression=plain, distinct=False)
    if made is not None and cte.this.args.get("with_"):
        made.set("with_", cte.this.args["with_"].copy())
    return made


def _terms(tree: exp.Expr) -> Iterator[exp.Expr]:
    """What the unions of a query put together, and what others take from or compare with."""
    if isinstance(tree, exp.SetOperation):
        yield from _terms(tree.left)
        if isinstance(tree, exp.Union):
            yield from _terms(tree.right)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.SetOperation):
        yield from _terms(tree.this)
    else:
        yield tree


def _shaped(plan: Plan, cte: exp.CTE, text: str) -> Plan:
    """The plan with the names given after WITH; a distinct stays at the top."""
    given = tuple(column.name for column in cte.args["alias"].columns)
    if not given:
        return plan
    if isinstance(plan, Distinct):
        return distinct(renamed(plan.child, given, span_of(cte, text)))
    return renamed(plan, given, span_of(cte, text))


def _must_be_typed(body: Plan, wanted: Schema, cte: exp.CTE, text: str) -> None:
    """Spark keeps the types of the first term."""
    for column, first in zip(schema_of(body), wanted, strict=True):
        if column.type != first.type:
            raise UserError(
                "Q013",
                f"{cte.alias}.{first.name} is {first.type} where it begins and "
                f"{column.type} where it goes on",
                span=span_of(cte, text),
                remedy=f"CAST it to {column.type} in the first term",
            )


_FALLING: dict[type[Plan], str] = {
    Totals: "an aggregate or a negation",
    Groups: "an aggregate or a negation",
    Partition: "an aggregate or a negation",
    Window: "a window function or LIMIT",
    Positive: "EXCEPT ALL or INTERSECT ALL",
    Negate: "a negation",
    Fixpoint: "another recursion",
}
_RISING = (Filter, Map, Unnest, Add, Join, Distinct, Recursive)


def _must_rise(body: Plan, name: str, circle: Ctes, text: str) -> None:
    """Refuse a relation that may lose rows when what it is defined by gains some."""
    once = isinstance(body, Distinct)
    found = falling(body.child if isinstance(body, Distinct) else body, once)
    if found:
        cte = circle[name]
        way = " → ".join(circle[n].alias for n in (name, *(o for o in circle if o != name), name))
        if "UNION ALL" in found:
            raise refused(f"the recursion {way} through {found}", cte, text, "write UNION")
        raise UserError(
            "Q022",
            f"the recursion {way} goes through {found}",
            span=span_of(cte, text),
            remedy="let the recursion end first and put that in a query over its result; "
            "of what is not recursive, LEFT ANTI JOIN and NOT EXISTS take equal rows away",
        )


def falling(plan: Plan, once: bool) -> str:
    """What stands in the way of the recursion."""
    if not recurs(plan):
        return ""
    if type(plan) in _FALLING:
        return _FALLING[type(plan)]
    if not isinstance(plan, _RISING):
        return type(plan).__name__
    if isinstance(plan, Add) and isinstance(plan.right, Negate) and recurs(plan.right):
        kept = _is_part(plan.right.child, plan.left)
        return falling(plan.left, once) if kept else "a negation"
    twice = isinstance(plan, Join) and bool(recurs(plan.left) and recurs(plan.right))
    if not once and (twice or isinstance(plan, Distinct)):
        # Spark joins what one level added with itself alone.
        return "a join with itself or a DISTINCT, which UNION ALL would count by levels"
    return next((f for part in children(plan) if (f := falling(part, once))), "")


def _is_part(part: Plan, whole: Plan) -> bool:
    """Whether `part` is what filters, or a relation that is not recursive, leave of `whole`."""
    if part == whole:
        return True
    match part, whole:
        case Filter(child, more), Filter(same, some) if child == same:
            return {*scalar.conjuncts(some)} <= {*scalar.conjuncts(more)}
        case Filter(child), _:
            return _is_part(child, whole)
        case Map(child, outputs), _:
            as_they_are = all(each.scalar == scalar.column(each.name) for each in outputs)
            return as_they_are and _is_part(child, whole)
        case Join(left, right), _:
            inside = [side for side in (left, right) if recurs(side)]
            return len(inside) == 1 and _is_part(inside[0], whole)
        case _:
            return False
