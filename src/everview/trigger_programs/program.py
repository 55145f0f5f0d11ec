"""Trigger programs: what one inserted or deleted row adds to each map, as data and as text.

A map is a finite function from keys to numbers, and a statement reads others as relations:
`m(a, b)` has the rows (a, b), with the numbers as multiplicities. So the right side of a statement
is an expression of AGCA, a product of lookups, conditions and values.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.lang.agca.parse import Parser
from everview.lang.agca.printer import print_definition, print_name, print_query
from everview.lang.agca.syntax import Definition, Expr, Variable


@dataclass(frozen=True, slots=True)
class Statement:
    """`map[keys] += body`, for every binding of the body, if the row has values for `given`."""

    map: str
    keys: tuple[str, ...]
    body: Expr
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """What the insertion (+1) or deletion (−1) of a row of a relation does."""

    relation: str
    sign: int
    row: tuple[str, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A result: the map with its values, and the map that counts the bindings of each group."""

    name: str
    values: str
    counts: str


@dataclass(frozen=True, slots=True)
class TriggerProgram:
    """Maps with their meaning over the tables, the triggers that keep them, and the results."""

    maps: tuple[Definition, ...]
    triggers: tuple[Trigger, ...]
    views: tuple[View, ...]


def print_program(program: TriggerProgram) -> str:
    """A program as text, which reads back as the same program."""
    lines = [f"map {print_definition(each)};" for each in program.maps]
    lines += [
        f"view {print_name(v.name)} := {print_name(v.values)}, {print_name(v.counts)};"
        for v in program.views
    ]
    for trigger in program.triggers:
        row = ", ".join(map(print_name, trigger.row))
        sign = "+" if trigger.sign > 0 else "-"
        lines.append(f"on {sign}{print_name(trigger.relation)}({row}):")
        lines += (f"  {_statement(each)};" for each in trigger.statements)
    return "\n".join(lines) + "\n"


def _statement(statement: Statement) -> str:
    keys = ", ".join(map(print_name, statement.keys))
    given = ", ".join(map(print_name, statement.given))
    text = f"{print_name(statement.map)}[{keys}] += {print_query(statement.body)}"
    return f"{text} given {given}" if given else text


def parse_program(text: str) -> TriggerProgram:
    """The program that a text is."""
    parser = Parser(text)
    maps: list[Definition] = []
    views: list[View] = []
    triggers: list[Trigger] = []
    while parser.next.kind != "end":
        if parser.takes_word("map"):
            maps.append(parser.definition())
            parser.expect(";")
        elif parser.takes_word("view"):
            views.append(_parse_view(parser))
        elif parser.takes_word("on"):
            triggers.append(_parse_trigger(parser))
        else:
            raise parser.unexpected("map, view or on")
    return TriggerProgram(tuple(maps), tuple(triggers), tuple(views))


def _parse_view(parser: Parser) -> View:
    name = parser.name("the name of a view")
    parser.expect(":=")
    values = parser.name("a map")
    parser.expect(",")
    counts = parser.name("a map")
    parser.expect(";")
    return View(name, values, counts)


def _parse_trigger(parser: Parser) -> Trigger:
    sign = 1 if parser.takes("+") else -1
    if sign < 0:
        parser.expect("-")
    relation = parser.name("a relation")
    parser.expect("(")
    row = _variables(parser, ")")
    parser.expect(":")
    statements: list[Statement] = []
    while parser.next.kind != "end" and parser.next.text != "on":
        statements.append(_parse_statement(parser))
    return Trigger(relation, sign, row, tuple(statements))


def _parse_statement(parser: Parser) -> Statement:
    name = parser.name("a map")
    parser.expect("[")
    keys = _variables(parser, "]")
    parser.expect("+=")
    body = parser.query()
    given: list[str] = []
    if parser.takes_word("given"):
        given.append(parser.variable("a variable").name)
        while parser.takes(","):
            given.append(parser.variable("a variable").name)
    parser.expect(";")
    return Statement(name, keys, body, tuple(given))


def _variables(parser: Parser, bracket: str) -> tuple[str, ...]:
    found: list[Variable] = []
    while not parser.closed(bracket, after=bool(found)):
        found.append(parser.variable("a variable"))
    return tuple(each.name for each in found)
