"""The parser of ALTER TABLE that adds and drops constraints."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.parse.constraints import Constraint, declared_constraint
from everview.lang.sql.parse.create import named_rules, table_name
from everview.lang.sql.parse.statements import AlterConstraints


def alter_constraints(tree: exp.Expr, text: str, span: Span) -> AlterConstraints | None:
    """ALTER TABLE with constraints and NOT NULL; None where an action is about something else."""
    added: list[Constraint] = []
    dropped: list[tuple[str, bool]] = []
    not_null: list[tuple[str, bool]] = []
    if str(tree.args.get("kind") or "").upper() != "TABLE":
        return None
    for action in tree.args.get("actions") or ():
        match action:
            case exp.AddConstraint():
                added += (_added(part, text, span) for part in action.expressions)
            case exp.Drop() if str(action.args.get("kind") or "").upper() == "CONSTRAINT":
                name = table_name(action.args["tables"][0], text)
                dropped.append((name, bool(action.args.get("exists"))))
            case exp.AlterColumn() if _is_about_null(action):
                not_null.append((action.name, not action.args["allow_null"]))
            case _:
                return None
    table = table_name(tree.this, text)
    lenient = bool(tree.args.get("exists"))
    return AlterConstraints(table, tuple(added), tuple(dropped), tuple(not_null), lenient, span)


def _is_about_null(action: exp.AlterColumn) -> bool:
    """Whether a column is altered by SET or DROP NOT NULL, and by nothing else."""
    known = ("this", "allow_null", "drop")
    others = (value for part, value in action.args.items() if part not in known)
    return action.args.get("allow_null") is not None and not any(others)


def _added(part: exp.Expr, text: str, span: Span) -> Constraint:
    rules = named_rules(part, text)
    if len(rules) == 1:
        ((name, rule),) = rules
        constraint = declared_constraint(rule, name, "", text, span)
        if constraint is not None:
            return constraint
    raise UserError(
        "Q004",
        "this constraint cannot be added to a table",
        span=span,
        remedy="add a CHECK, UNIQUE or FOREIGN KEY; a primary key is declared with its table",
    )
