"""A program as tables and views: a table for each relation of facts, a view for each derived one.

The facts of a relation that also has rules are in a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from everview.expr.types import Schema
from everview.lang.datalog.check import CheckedProgram, check_program
from everview.lang.datalog.functors import FLOAT, UNSIGNED
from everview.lang.datalog.lower import lower_relation, schema_of_relation
from everview.lang.datalog.parse import parse_program
from everview.lang.datalog.printer import print_declaration, print_rule
from everview.lang.datalog.syntax import Atom, Constant, Directive, Rule, parts
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Plan

Row = tuple[int | float | str | bool, ...]


@dataclass(frozen=True, slots=True)
class GivenRelation:
    """A table of facts: its columns, and those that the text states."""

    name: str
    relation: str
    columns: Schema
    facts: tuple[Row, ...]
    read: Directive | None


@dataclass(frozen=True, slots=True)
class DerivedRelation:
    """A view: the declarations and rules of its stratum, which are a program by themselves."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a program declares: tables, views in order, and the relations of its outputs."""

    given: tuple[GivenRelation, ...]
    derived: tuple[DerivedRelation, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]


def declarations(text: str) -> Declarations:
    """The tables and views that a program asks for."""
    checked = checked_program(text)
    roles = _roles(checked)
    facts = _facts(checked)
    rules = _rules(checked, facts)
    own = {
        name: _facts_table(name, checked) if rules.get(name) else name
        for name in checked.declared
        if name in facts or not rules.get(name) or name in roles["input"]
    }
    given = tuple(
        GivenRelation(
            table,
            name,
            schema_of_relation(checked, name),
            tuple(dict.fromkeys(facts.get(name, ()))),
            roles["input"].get(name),
        )
        for name, table in own.items()
    )
    needed = _needed(checked, roles, rules)
    derived = tuple(
        DerivedRelation(name, _stratum(checked, part, rules, own))
        for part in checked.strata
        for name in part
        if name in needed and rules.get(name)
    )
    shown = tuple(roles["output"]) or tuple(name for name in rules if rules[name])
    return Declarations(given, derived, shown, tuple(roles["printsize"]))


@lru_cache(maxsize=1024)
def checked_program(text: str) -> CheckedProgram:
    """A program, checked; the same text is checked once."""
    return check_program(parse_program(text))


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a stratum reads and does not derive."""
    checked = checked_program(text)
    return tuple(name for name in checked.declared if name not in checked.rules)


def lower_view(text: str, name: str, known: Mapping[str, StoredRelation]) -> Plan:
    """The plan of a view from the text of its stratum."""
    return lower_relation(checked_program(text), name, known)


def _roles(checked: CheckedProgram) -> dict[str, dict[str, Directive]]:
    found: dict[str, dict[str, Directive]] = {"input": {}, "output": {}, "printsize": {}}
    for each in checked.program.directives:
        found[each.kind][each.relation] = each
    return found


def _facts(checked: CheckedProgram) -> dict[str, list[Row]]:
    """The facts of constants; one with a computed value is a rule."""
    found: dict[str, list[Row]] = {}
    for rule in checked.program.rules:
        if _is_fact(rule):
            found.setdefault(rule.head.relation, []).append(_row(rule, checked))
    return found


def _is_fact(rule: Rule) -> bool:
    return not rule.body and all(isinstance(each, Constant) for each in rule.head.arguments)


def _row(rule: Rule, checked: CheckedProgram) -> Row:
    types = checked.columns[rule.head.relation]
    values: list[int | float | str] = []
    for argument, type_ in zip(rule.head.arguments, types, strict=True):
        assert isinstance(argument, Constant)
        value = argument.value
        if type_ == FLOAT and not isinstance(value, str):
            value = float(value)
        if type_ == UNSIGNED and isinstance(value, int):
            value %= 2**32
        values.append(value)
    return tuple(values) or (True,)


def _rules(checked: CheckedProgram, facts: Mapping[str, list[Row]]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {name: [] for name in checked.rules}
    for rule in checked.program.rules:
        if not _is_fact(rule):
            found[rule.head.relation].append(rule)
    for name, each in checked.declared.items():
        if "eqrel" in each.qualifiers:
            found.setdefault(name, [])
    return {
        name: rules
        for name, rules in found.items()
        if rules or "eqrel" in checked.declared[name].qualifiers
    }


def _facts_table(name: str, checked: CheckedProgram) -> str:
    taken = {each.lower() for each in checked.declared}
    table = f"{name}_facts"
    while table.lower() in taken:
        table += "_"
    return table


def _needed(
    checked: CheckedProgram,
    roles: Mapping[str, Mapping[str, Directive]],
    rules: Mapping[str, list[Rule]],
) -> set[str]:
    """The relations that the outputs depend on; all, where there are no outputs."""
    outputs = [*roles["output"], *roles["printsize"]] or list(rules)
    needed = list(outputs)
    for name in needed:
        for rule in rules.get(name, ()):
            needed += (each for each in _read(rule) if each not in needed)
    return set(needed)


def _read(rule: Rule) -> Iterator[str]:
    for literal in rule.body:
        for each in parts(literal):
            if isinstance(each, Atom):
                yield each.relation


def _stratum(
    checked: CheckedProgram,
    part: tuple[str, ...],
    rules: Mapping[str, list[Rule]],
    own: Mapping[str, str],
) -> str:
    """A stratum as a program of its own: the declarations it reads, and its rules."""
    read = dict.fromkeys(each for name in part for rule in rules[name] for each in _read(rule))
    lines = [
        print_declaration(checked.declared[name], checked.columns[name])
        for name in checked.declared
        if name in read or name in part
    ]
    copies: list[str] = []
    for name in part:
        if name in own:
            declaration = checked.declared[name]
            columns = print_declaration(declaration, checked.columns[name])
            lines.append(columns.replace(f" {name}(", f" {own[name]}(", 1).removesuffix(" eqrel"))
            arguments = ", ".join(f"x{at}" for at in range(len(declaration.attributes)))
            copies.append(f"{name}({arguments}) :- {own[name]}({arguments}).")
    return "\n".join([*lines, *copies, *(print_rule(r) for name in part for r in rules[name])])
