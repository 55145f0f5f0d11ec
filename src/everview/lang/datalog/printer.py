"""Declarations and rules printed as Datalog text, which parses to the same."""

from __future__ import annotations

from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Declaration,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
    Wildcard,
)

_PREFIX = {"neg": "-", "bnot": "bnot ", "lnot": "lnot "}


def print_declaration(declaration: Declaration, types: tuple[str, ...]) -> str:
    """A declaration whose attributes have one of the four types there are."""
    names = (each.name for each in declaration.attributes)
    columns = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    eqrel = " eqrel" if "eqrel" in declaration.qualifiers else ""
    return f".decl {declaration.name}({columns}){eqrel}"


def print_rule(rule: Rule) -> str:
    """A rule with one head and one conjunction."""
    body = ", ".join(map(_literal, rule.body))
    return f"{_literal(rule.head)} :- {body}." if body else f"{_literal(rule.head)}."


def _literal(literal: Literal) -> str:
    match literal:
        case Atom(relation, arguments):
            return f"{relation}({', '.join(map(_term, arguments))})"
        case Negation(atom):
            return f"!{_literal(atom)}"
        case Comparison(operator, left, right):
            if operator.lstrip("!") in ("match", "contains"):
                return f"{operator}({_term(left)}, {_term(right)})"
            return f"{_term(left)} {operator} {_term(right)}"


def _term(term: Term) -> str:
    match term:
        case Variable(name):
            return name
        case Wildcard():
            return "_"
        case Constant(value, kind):
            return _constant(value, kind)
        case Call("as", (inner, Constant(value=type_))):
            return f"as({_term(inner)}, {type_})"
        case Call(name, (inner,)) if name in _PREFIX:
            return f"({_PREFIX[name]}{_term(inner)})"
        case Call(name, (left, right)) if not name.isidentifier() or name[0] in "bl":
            return f"({_term(left)} {name} {_term(right)})"
        case Call(name, arguments):
            return f"{name}({', '.join(map(_term, arguments))})"
        case Aggregate(function, target, bodies):
            aimed = "" if target is None else f" ({_term(target)})"
            ranged = "; ".join(", ".join(map(_literal, body)) for body in bodies)
            return f"{function}{aimed} : {{ {ranged} }}"


def _constant(value: int | float | str, kind: str) -> str:
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"')
        for plain, written in (("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
            text = text.replace(plain, written)
        return f'"{text}"'
    if kind == "float":
        return f"({value:.1f})" if value == int(value) and abs(value) < 1e16 else f"({value!r})"
    return f"({value})" if value < 0 else f"{value}{'u' if kind == 'unsigned' else ''}"
