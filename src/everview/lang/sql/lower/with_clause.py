"""WITH: names for queries; those that are defined by themselves or each other are fixpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from everview.analysis.monotone import not_monotone
from everview.errors import UserError
from everview.expr.types import Schema
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import named_twice
from everview.lang.sql.lower.columns import renamed
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.parse.ctes import names_read, recursive_groups
from everview.lang.sql.parse.span import span_of
from everview.plan.build import distinct
from everview.plan.nodes import Distinct, Fixpoint, Plan, Recursive
from everview.plan.traverse import schema_of

Ctes = dict[str, exp.CTE]


def with_ctes(context: LoweringContext, tree: exp.Expr) -> LoweringContext:
    """The context of a query with the names that its own WITH gives."""
    clause = tree.args.get("with_")
    if clause is None:
        return context
    groups = recursive_groups(clause) if clause.args.get("recursive") else {}
    for at, cte in enumerate(clause.expressions):
        name = cte.alias.lower()
        if group := groups.get(name):
            if name not in context.ctes:
                context = context.with_ctes(_lower_group(context, group, clause))
            continue
        given = tuple(column.name for column in cte.args["alias"].columns)
        plan = context.uncorrelated(cte.this) if given else context.from_item(cte.this)
        plan = renamed(plan, given, span_of(cte, context.text)) if given else plan
        if name in (each.alias.lower() for each in clause.expressions[:at]):
            raise named_twice(cte, "WITH", context.text, cte.alias)
        context = context.with_ctes({name: plan}, {name: cte.this})
    return context


def _lower_group(
    context: LoweringContext, names: tuple[str, ...], clause: exp.With
) -> dict[str, Plan]:
    """The relations of one mutually recursive group, each as the fixpoint of all of them."""
    text = context.text
    ctes = {cte.alias.lower(): cte for cte in clause.expressions}
    group = {name: ctes[name] for name in names}
    schemas = _schemas(context, group)
    recursive = {name: Recursive(name, schema) for name, schema in schemas.items()}
    equations = []
    for name, cte in group.items():
        body = _renamed(context.with_ctes(recursive).uncorrelated(cte.this), cte, text)
        _must_have_types(body, schemas[name], cte, text)
        _must_be_monotone(body, name, group, text)
        equations.append((name, body))
    limit = max(_limit(cte) for cte in group.values())
    return {name: Fixpoint(name, tuple(equations), limit) for name in names}


def _limit(cte: exp.CTE) -> int:
    given = cte.args["alias"].args.get("limit")
    return int(given.name) if given is not None else 0


def _schemas(context: LoweringContext, group: Ctes) -> dict[str, Schema]:
    """The columns of each relation, from a term that reads only relations with known columns."""
    schemas: dict[str, Schema] = {}
    waiting = list(group)
    while waiting:
        ready = ((n, t) for n in waiting if (t := _first_term(group[n], group, schemas)))
        name, term = next(ready, ("", None))
        if term is None:
            cte = group[waiting[0]]
            raise UserError(
                "Q022",
                f"{cte.alias} is defined by itself alone: nothing says where it begins",
                span=span_of(cte, context.text),
                remedy="add a term that does not read it, before UNION or UNION ALL",
            )
        known = {other: Recursive(other, schema) for other, schema in schemas.items()}
        plan = context.with_ctes(known).uncorrelated(term)
        schemas[name] = schema_of(_renamed(plan, group[name], context.text))
        waiting.remove(name)
    return schemas


def _first_term(cte: exp.CTE, group: Ctes, known: Mapping[str, Schema]) -> exp.Expr | None:
    """The union of all terms that read no relation whose columns are still unknown."""
    unknown = {*group} - {*known}
    terms = [term for term in _terms(cte.this) if not names_read(term) & unknown]
    outside = [term for term in terms if not names_read(term) & {*group}] or terms
    union: exp.Expr | None = None
    for term in outside:
        plain = term.copy()
        union = plain if union is None else exp.Union(this=union, expression=plain, distinct=False)
    if union is not None and cte.this.args.get("with_"):
        union.set("with_", cte.this.args["with_"].copy())
    return union


def _terms(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The sides of the unions of a query, and the left sides of its other set operations."""
    if isinstance(tree, exp.SetOperation):
        yield from _terms(tree.left)
        if isinstance(tree, exp.Union):
            yield from _terms(tree.right)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.SetOperation):
        yield from _terms(tree.this)
    else:
        yield tree


def _renamed(plan: Plan, cte: exp.CTE, text: str) -> Plan:
    """The plan with the names given after WITH; a distinct stays at the top."""
    given = tuple(column.name for column in cte.args["alias"].columns)
    if not given:
        return plan
    if isinstance(plan, Distinct):
        return distinct(renamed(plan.child, given, span_of(cte, text)))
    return renamed(plan, given, span_of(cte, text))


def _must_have_types(body: Plan, wanted: Schema, cte: exp.CTE, text: str) -> None:
    """Refuse other types than those of the first term, which Spark keeps."""
    for column, first in zip(schema_of(body), wanted, strict=True):
        if column.type != first.type:
            raise UserError(
                "Q013",
                f"{cte.alias}.{first.name} is {first.type} where it begins and "
                f"{column.type} where it goes on",
                span=span_of(cte, text),
                remedy=f"CAST it to {column.type} in the first term",
            )


def _must_be_monotone(body: Plan, name: str, group: Ctes, text: str) -> None:
    """Refuse a relation that may lose rows when what it is defined by gains some."""
    is_set = isinstance(body, Distinct)
    construct = not_monotone(body.child if isinstance(body, Distinct) else body, is_set)
    if construct:
        cte = group[name]
        way = " → ".join(group[n].alias for n in (name, *(o for o in group if o != name), name))
        if "UNION ALL" in construct:
            raise refused(f"the recursion {way} through {construct}", cte, text, "write UNION")
        raise UserError(
            "Q022",
            f"the recursion {way} goes through {construct}",
            span=span_of(cte, text),
            remedy="let the recursion end first and put that in a query over its result; "
            "of what is not recursive, LEFT ANTI JOIN and NOT EXISTS take equal rows away",
        )
