"""Semantic checks of a program: names, arities, types, bound variables and stratification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.errors import Span, UserError
from everview.expr.types import unusable_name
from everview.lang.datalog.functors import FUNCTORS
from everview.lang.datalog.normal_form import bound_by, normal_form, shared
from everview.lang.datalog.strata import strata
from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Attribute,
    Body,
    Call,
    Comparison,
    DatalogProgram,
    Declaration,
    Literal,
    Rule,
    Variable,
    Wildcard,
    outside,
    parts,
    variables,
)
from everview.lang.datalog.types import VariableTypes, base_types, unknown_type

HOLDS = "holds"
"""The column of a relation without attributes: it has one row, or none."""


@dataclass(frozen=True, slots=True)
class TypedRule:
    """A rule in normal form, with the types of its variables."""

    rule: Rule
    types: VariableTypes


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A program that passed all checks: relations, their types, and typed rules by relation."""

    program: DatalogProgram
    declared: Mapping[str, Declaration]
    columns: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, tuple[TypedRule, ...]]
    strata: tuple[tuple[str, ...], ...]
    """The derived relations in order: mutually recursive ones together, after those they read."""
    recursive: frozenset[str]

    def names(self, relation: str) -> tuple[str, ...]:
        """The columns of a relation."""
        return tuple(each.name for each in self.declared[relation].attributes) or (HOLDS,)


def check_program(program: DatalogProgram) -> CheckedProgram:
    """The program with types and strata, or an error that names the rule and the variable."""
    types = base_types(program)
    declared = _declared(program)
    columns = {
        each.name: tuple(_type(types, attribute, program) for attribute in each.attributes)
        for each in declared.values()
    }
    for directive in program.directives:
        if directive.relation not in declared:
            raise _unknown(directive.relation, directive.span, declared)
    rules: dict[str, list[TypedRule]] = {}
    for rule in (*program.rules, *_equivalences(program)):
        _check_atoms(rule, declared)
        normal = normal_form(rule)
        variable_types = VariableTypes.of(normal, columns, types)
        _check_bound(normal)
        rules.setdefault(rule.head.relation, []).append(TypedRule(normal, variable_types))
    typed = {name: tuple(each) for name, each in rules.items()}
    order, recursive = strata({name: [t.rule for t in each] for name, each in typed.items()})
    return CheckedProgram(program, declared, columns, typed, order, recursive)


def _type(types: Mapping[str, str], attribute: Attribute, program: DatalogProgram) -> str:
    if attribute.type not in types:
        raise unknown_type(attribute.type, attribute.span, {e.name: e for e in program.types})
    return types[attribute.type]


def _declared(program: DatalogProgram) -> dict[str, Declaration]:
    declared: dict[str, Declaration] = {}
    spelled: dict[str, str] = {}
    for each in program.declarations:
        if each.name.lower() in spelled:
            other = spelled[each.name.lower()]
            raise UserError(
                "D008",
                f"{each.name} is declared twice"
                if other == each.name
                else f"{other} and {each.name} differ in case alone",
                span=each.span,
                remedy="give every relation a name of its own, whatever the case of its letters",
            )
        names = [attribute.name for attribute in each.attributes]
        for at, name in enumerate(names):
            if name.lower() in (other.lower() for other in names[:at]) or unusable_name(name):
                raise UserError(
                    "D008",
                    unusable_name(name) or f"two attributes of {each.name} are called {name}",
                    span=each.attributes[at].span,
                    remedy="give every attribute a name of its own, whatever its case",
                )
        spelled[each.name.lower()] = each.name
        declared[each.name] = each
    return declared


def _unknown(name: str, span: Span, declared: Mapping[str, Declaration]) -> UserError:
    return UserError(
        "D003",
        f"there is no relation {name}",
        span=span,
        remedy=f"declare it with .decl; there are: {', '.join(declared) or 'none'}",
    )


def _check_atoms(rule: Rule, declared: Mapping[str, Declaration]) -> None:
    """Refuse undeclared relations, and atoms and functors with a wrong number of arguments."""
    for literal in (rule.head, *rule.body):
        for node in parts(literal):
            if isinstance(node, Atom):
                if node.relation not in declared:
                    raise _unknown(node.relation, node.span, declared)
                _count(node.relation, len(declared[node.relation].attributes), node)
            if isinstance(node, Call) and node.name == "range" and len(node.arguments) > 3:
                raise _arity("range", "2 or 3", node)
            if isinstance(node, Call) and node.name != "as":
                functor = FUNCTORS[node.name]
                if not functor.accepts(len(node.arguments)):
                    least = "at least " if functor.more else ""
                    raise _arity(node.name, f"{least}{len(functor.takes)}", node)
                _no_wildcards(node)
    for argument in rule.head.arguments:
        if isinstance(argument, Wildcard):
            raise _unbound("_", rule, rule.head)
    for literal in rule.body:
        if isinstance(literal, Comparison):
            _no_wildcards(Call("", (literal.left, literal.right), literal.span))


def _no_wildcards(call: Call) -> None:
    for argument in call.arguments:
        if isinstance(argument, Wildcard):
            raise UserError(
                "D006",
                "_ stands for any value and has none itself",
                span=argument.span,
                remedy="give it a name, and bind the name in a relation",
            )


def _count(name: str, takes: int, atom: Atom) -> None:
    if len(atom.arguments) != takes:
        raise _arity(name, str(takes), atom)


def _arity(name: str, takes: str, node: Atom | Call) -> UserError:
    return UserError(
        "D004",
        f"{name} takes {takes} arguments, not {len(node.arguments)}",
        span=node.span,
        remedy="give as many as it takes",
    )


def _check_bound(rule: Rule) -> None:
    """Range restriction: refuse a variable that neither a relation nor an equation binds."""
    reached = bound_by(rule.body, set())
    _check_body(rule.body, reached, rule)
    for each in variables(rule.head):
        if each.name not in reached:
            raise _unbound(each.name, rule, rule.head)


def _check_body(body: Body, reached: set[str], rule: Rule) -> None:
    for literal in body:
        for each in variables(literal):
            if each.name not in reached:
                raise _unbound(each.name, rule, literal)
        for term in outside(literal):
            if isinstance(term, Aggregate):
                _check_aggregate(term, body, reached, rule)


def _check_aggregate(term: Aggregate, around: Body, reached: set[str], rule: Rule) -> None:
    grouping = shared(term, (*around, rule.head))
    for name in sorted(grouping - reached):
        raise _unbound(name, rule, Comparison("=", term, term, term.span))
    for body in term.bodies:
        inner = bound_by(body, reached)
        _check_body(body, inner, rule)
        for each in variables(term.target) if term.target else ():
            if each.name not in inner:
                raise _unbound(each.name, rule, Comparison("=", term, term, term.span))


def _unbound(name: str, rule: Rule, literal: Literal) -> UserError:
    shown = name.partition(":")[0]
    same = (each for each in parts(literal) if isinstance(each, Variable) and each.name == name)
    place = next((each.span for each in same), literal.span)
    text = " ".join(rule.span.text[rule.span.start : rule.span.stop].split())
    return UserError(
        "D006",
        f"nothing binds the variable {shown} in the rule {text}",
        span=place,
        remedy=f"use {shown} in a relation that must hold, or set it equal to a value",
    )


def _equivalences(program: DatalogProgram) -> list[Rule]:
    """The rules that make a relation with the qualifier eqrel an equivalence."""
    rules: list[Rule] = []
    for each in program.declarations:
        if "eqrel" not in each.qualifiers:
            continue
        if len(each.attributes) != 2:
            raise UserError(
                "D004",
                f"an equivalence has 2 attributes, and {each.name} has {len(each.attributes)}",
                span=each.span,
                remedy="relate two values",
            )
        x, y, z = (Variable(name, each.span) for name in "xyz")

        def atom(left: Variable, right: Variable, each: Declaration = each) -> Atom:
            return Atom(each.name, (left, right), each.span)

        for head, *body in (
            (atom(x, x), atom(x, y)),
            (atom(y, x), atom(x, y)),
            (atom(x, z), atom(x, y), atom(y, z)),
        ):
            rules.append(Rule(head, tuple(body), each.span))
    return rules
