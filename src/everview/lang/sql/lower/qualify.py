"""The window functions of one SELECT, with its WINDOW and QUALIFY clauses."""

from __future__ import annotations

from sqlglot import exp

from everview.lang.sql.bind.scope import named_twice
from everview.lang.sql.lower.conditions import as_boolean
from everview.lang.sql.lower.expressions import SelectExpressions
from everview.lang.sql.lower.windows import Windows
from everview.plan.build import filter_
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

_QUALIFY, _WINDOW = "?qualify", "@"


def qualify_condition(expressions: SelectExpressions) -> dict[str, exp.Expr]:
    """The resolved condition of QUALIFY, if there is one, for `later`."""
    qualify = expressions.tree.args.get("qualify")
    if qualify is None:
        return {}
    aliases = dict(reversed(expressions.wanted))
    return {_QUALIFY: expressions.condition(expressions.resolve(qualify.this, aliases))}


def window_definitions(expressions: SelectExpressions) -> dict[str, exp.Expr]:
    """The resolved definitions of the WINDOW clause, for `later`."""
    definitions: dict[str, exp.Expr] = {}
    for window in expressions.tree.args.get("windows") or ():
        name = f"{_WINDOW}{window.this.name.lower()}"
        if name in definitions:
            raise named_twice(window.this, "WINDOW", expressions.text)
        definitions[name] = expressions.resolve(window)
    return definitions


def lower_windows(expressions: SelectExpressions, plan: Plan) -> Plan:
    """The rows with a column for every window function, of which QUALIFY keeps some."""
    context, later = expressions.context, expressions.later
    named = {
        name.removeprefix(_WINDOW): tree for name, tree in later.items() if name.startswith(_WINDOW)
    }
    expressions.later = {name: tree for name, tree in later.items() if name[:1] != _WINDOW}
    windows = Windows(context, plan, named)
    expressions.rewrite(windows.replaced)
    plan = windows.computed()
    if (condition := expressions.later.get(_QUALIFY)) is not None:
        plan = filter_(plan, as_boolean(context, condition, schema_of(plan), "QUALIFY"))
    return plan
