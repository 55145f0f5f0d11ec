"""A trigger program as Python: one function for each event, over one dict for each map.

The text is built from the program as data. Names in it are numbers with a letter, and constants are
handed over as values, so nothing that a user wrote is in it. A function first computes what it
adds, reading old values, and then adds it, so that one that fails has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from everview.lang.agca.evaluate import matches
from everview.lang.agca.normal_form import constant, monomials
from everview.lang.agca.scope import needs
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
)
from everview.trigger_programs.program import Statement, Trigger, TriggerProgram

Key: TypeAlias = Any
"""The key of an entry: a value for one variable, else a tuple."""
_SIGNS = {"=": "==", "<>": "!="}
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Index:
    """The keys of a map by the values at some positions: for statements that loop over a slice."""

    map: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """Python for a program: its text, its constants, and the indexes it reads."""

    text: str
    constants: tuple[Any, ...]
    indexes: tuple[Index, ...]

    def functions(
        self,
        program: TriggerProgram,
        maps: dict[str, dict[Key, Any]],
        indexes: dict[Index, dict[Key, dict[Key, None]]],
    ) -> dict[tuple[str, int], Callable[..., None]]:
        """The functions over the maps and indexes that they change, by relation and sign."""
        scope: dict[str, Any] = {"L": matches, "__builtins__": {}}
        scope |= {f"m{at}": maps[each.name] for at, each in enumerate(program.maps)}
        scope |= {f"i{at}": indexes[each] for at, each in enumerate(self.indexes)}
        scope |= {f"c{at}": each for at, each in enumerate(self.constants)}
        exec(compile(self.text, "<triggers>", "exec"), scope)
        return {
            (each.relation, each.sign): scope[f"f{at}"] for at, each in enumerate(program.triggers)
        }


def generate(program: TriggerProgram) -> Generated:
    """The Python of a program."""
    writer = _Writer({each.name: at for at, each in enumerate(program.maps)})
    writer.arity = {each.name: len(each.keys) for each in program.maps}
    bodies = [writer.computing(each) for each in program.triggers]
    for at, (trigger, computing) in enumerate(zip(program.triggers, bodies, strict=True)):
        rows = ", ".join(f"r{each}" for each in range(len(trigger.row)))
        writer.lines += [f"def f{at}({rows}):", *computing]
        for number, each in enumerate(trigger.statements):
            writer.applying(number, each)
        writer.lines.append(f"{_INDENT}return None")
    return Generated("\n".join(writer.lines) + "\n", tuple(writer.constants), tuple(writer.indexes))


@dataclass(slots=True)
class _Writer:
    numbers: dict[str, int]
    arity: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)

    # Computing what is added

    def computing(self, trigger: Trigger) -> list[str]:
        """For each statement, the list of keys and numbers that it adds."""
        lines: list[str] = []
        for number, each in enumerate(trigger.statements):
            lines.append(f"{_INDENT}a{number} = []")
            lines += self._statement(number, each, trigger)
        return lines

    def _statement(self, number: int, statement: Statement, trigger: Trigger) -> list[str]:
        bound = {name: f"r{at}" for at, name in enumerate(trigger.row)}
        [term] = monomials(statement.body, frozenset(bound))
        lines: list[str] = []
        depth = 1
        for name in statement.given:
            lines.append(f"{_INDENT * depth}if {bound[name]} is not None:")
            depth += 1
        product: list[str] = []
        left = list(term.factors)
        while left:
            factor = min(left, key=lambda each: self._rank(each, bound))
            left.remove(factor)
            added = self._factor(factor, bound, product, depth)
            lines += added.lines
            depth = added.depth
        if term.coefficient != 1 or not product:
            product.insert(0, self._constant(_number(term.coefficient)))
        key = _key([bound[name] for name in statement.keys])
        lines.append(f"{_INDENT * depth}a{number}.append(({key}, {' * '.join(product)}))")
        return lines

    def _rank(self, factor: Expr, bound: dict[str, str]) -> tuple[int, int]:
        """What comes first: conditions and values, then lookups, then loops over few keys."""
        if not isinstance(factor, Atom):
            return (0 if needs(factor) <= bound.keys() else 9, 0)
        free = [a for a in factor.arguments if isinstance(a, Variable) and a.name not in bound]
        return (1 if not free else 2, len(free))

    def _factor(
        self, factor: Expr, bound: dict[str, str], product: list[str], depth: int
    ) -> _Block:
        indent = _INDENT * depth
        match factor:
            case Atom():
                return self._lookup(factor, bound, product, depth)
            case Comparison():
                return _Block([f"{indent}if {self._condition(factor, bound)}:"], depth + 1)
            case Assignment(variable, value):
                text = self._value(value, bound)
                if variable.name in bound:
                    return _Block([f"{indent}if {bound[variable.name]} == {text}:"], depth + 1)
                bound[variable.name] = f"x{len(bound)}"
                return _Block([f"{indent}{bound[variable.name]} = {text}"], depth)
            case _:
                product.append(self._value(factor, bound))
                return _Block([], depth)

    def _lookup(self, atom: Atom, bound: dict[str, str], product: list[str], depth: int) -> _Block:
        map_ = f"m{self.numbers[atom.relation]}"
        names = [each.name for each in atom.arguments if isinstance(each, Variable)]
        value = f"w{len(product)}"
        product.append(value)
        if all(name in bound for name in names):
            key = _key([bound[name] for name in names])
            return _Block(
                [
                    f"{_INDENT * depth}{value} = {map_}.get({key})",
                    f"{_INDENT * depth}if {value} is not None:",
                ],
                depth + 1,
            )
        held = tuple(at for at, name in enumerate(names) if name in bound)
        entry = f"e{len(bound)}"
        lines: list[str] = []
        if held:
            index = self._index(Index(atom.relation, held))
            key = _key([bound[names[at]] for at in held])
            lines.append(f"{_INDENT * depth}for {entry} in i{index}.get({key}, ()):")
            lines.append(f"{_INDENT * (depth + 1)}{value} = {map_}[{entry}]")
        else:
            lines.append(f"{_INDENT * depth}for {entry}, {value} in {map_}.items():")
        depth += 1
        for at, name in enumerate(names):
            part = entry if len(names) == 1 else f"{entry}[{at}]"
            if name not in bound:
                bound[name] = f"x{len(bound)}"
                lines.append(f"{_INDENT * depth}{bound[name]} = {part}")
            elif at not in held:
                lines.append(f"{_INDENT * depth}if {bound[name]} == {part}:")
                depth += 1
        return _Block(lines, depth)

    def _index(self, index: Index) -> int:
        if index not in self.indexes:
            self.indexes.append(index)
        return self.indexes.index(index)

    # Values

    def _condition(self, comparison: Comparison, bound: dict[str, str]) -> str:
        sign = comparison.operator
        left, right = (self._value(e, bound) for e in (comparison.left, comparison.right))
        if "like" in sign:
            return f"{'not ' if sign != 'like' else ''}L({right}, {left})"
        return f"{left} {_SIGNS.get(sign, sign)} {right}"

    def _value(self, query: Expr, bound: dict[str, str]) -> str:
        match query:
            case Variable(name):
                return bound[name]
            case Constant(value):
                return self._constant(value)
            case Negate(body):
                return f"(-{self._value(body, bound)})"
            case Add(parts):
                return f"({' + '.join(self._value(each, bound) for each in parts)})"
            case Product(parts):
                return f"({' * '.join(self._value(each, bound) for each in parts)})"
            case Sum(body):
                return self._value(body, bound)
            case Comparison():
                return f"(1 if {self._condition(query, bound)} else 0)"
            case _:
                raise AssertionError(query)

    def _constant(self, value: Any) -> str:
        for at, each in enumerate(self.constants):
            if type(each) is type(value) and each == value:
                return f"c{at}"
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    # Adding it

    def applying(self, number: int, statement: Statement) -> None:
        """Add what a statement has computed to its map and to the indexes of the map."""
        map_ = f"m{self.numbers[statement.map]}"
        plain = self.arity[statement.map] == 1
        self.lines += [
            f"{_INDENT}for k, d in a{number}:",
            f"{_INDENT * 2}v = {map_}.get(k, 0) + d",
        ]
        mine = [(at, each) for at, each in enumerate(self.indexes) if each.map == statement.map]
        self.lines.append(f"{_INDENT * 2}if v:")
        for at, index in mine:
            part = _key(["k"] if plain else [f"k[{p}]" for p in index.positions])
            self.lines += [
                f"{_INDENT * 3}if k not in {map_}:",
                f"{_INDENT * 4}i{at}.setdefault({part}, {{}})[k] = None",
            ]
        self.lines += [
            f"{_INDENT * 3}{map_}[k] = v",
            f"{_INDENT * 2}elif k in {map_}:",
            f"{_INDENT * 3}del {map_}[k]",
        ]
        for at, index in mine:
            part = _key(["k"] if plain else [f"k[{p}]" for p in index.positions])
            self.lines += [
                f"{_INDENT * 3}del i{at}[{part}][k]",
                f"{_INDENT * 3}if not i{at}[{part}]:",
                f"{_INDENT * 4}del i{at}[{part}]",
            ]


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of Python, and the depth at which what follows is indented."""

    lines: list[str]
    depth: int


def _key(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"({', '.join(parts)})"


def _number(value: Fraction) -> Any:
    return constant(value).value
