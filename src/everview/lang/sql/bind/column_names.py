"""The names that Spark gives to columns without an alias."""

from __future__ import annotations

from sqlglot import exp


def output_name(node: exp.Expr) -> str:
    """The alias, the column's own name, or the expression as Spark writes it."""
    if isinstance(node, exp.Alias | exp.Column):
        return str(node.alias_or_name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return _shown(node)


def _shown(node: exp.Expr) -> str:
    """The text of an expression with every operator in parentheses.

    >>> from sqlglot import parse_one
    >>> _shown(parse_one("-v + t.k * SUM(x)", read="spark"))
    '((- v) + (k * sum(x)))'
    """
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Literal():
            return str(node.this)
        case exp.Paren():
            return _shown(node.this)
        case exp.Neg():
            return f"(- {_shown(node.this)})"
        case exp.Binary() if type(node) in _SYMBOLS:
            return f"({_shown(node.left)} {_SYMBOLS[type(node)]} {_shown(node.right)})"
        case exp.Count() if isinstance(node.this, exp.Star):
            return "count(1)"
        case exp.Count() | exp.Sum() | exp.Avg():
            return f"{node.key}({_shown(node.this)})"
        case _:
            shown = node.sql(dialect="spark", normalize_functions="lower")
            return shown.replace("`", "").replace('"', "")


_SYMBOLS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
}
