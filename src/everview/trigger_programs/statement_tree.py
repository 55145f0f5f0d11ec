"""The statements of a trigger as a tree: each step in it, a condition, a lookup or a loop, once.

Statements share the steps that they begin with. What a statement adds to its map stands at the node
where all its steps are passed. A step is lines of Python already, over names that are a letter and
a number. A loop runs over the slice of a map where its index has one, else over the whole map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from everview.lang.agca.normal_form import constant
from everview.lang.agca.scope import needs
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Expr,
    Extract,
    Negate,
    Product,
    Sum,
    Variable,
    children,
    names_in,
    rebuilt,
)
from everview.trigger_programs.columns import EXACT, Columns, constant_value, days
from everview.trigger_programs.program import Statement, Trigger

INDENT = "    "
_SIGNS = {"=": "==", "<>": "!="}


@dataclass(frozen=True, slots=True)
class Index:
    """The keys of a map by the values at some positions: for statements that loop over a slice."""

    map: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A comparison of two columns, or of a column and a number, that all rows must satisfy."""

    operator: str
    left: int
    right: int | Any
    is_column: bool


@dataclass(slots=True)
class SharedNames:
    """What the functions of a program have in common."""

    numbers: Mapping[str, int]
    arity: Mapping[str, int]
    columns: Columns | None
    constants: list[Any] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    integral: set[str] = field(default_factory=set)

    def constant(self, value: Any) -> str:
        """The name of a constant."""
        if type(value) is int and abs(value) < 10:
            return str(value) if value >= 0 else f"({value})"
        for at, each in enumerate(self.constants):
            if type(each) is type(value) and each == value:
                return f"c{at}"
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    def index(self, index: Index) -> int:
        """The number of an index."""
        if index not in self.indexes:
            self.indexes.append(index)
        return self.indexes.index(index)

    def indexes_of(self, map_: str, key: str) -> list[tuple[int, str]]:
        """The indexes of a map, each with its own key, taken from the map's."""
        plain = self.arity[map_] == 1
        return [
            (at, key_text([key] if plain else [f"{key}[{p}]" for p in each.positions]))
            for at, each in enumerate(self.indexes)
            if each.map == map_
        ]


NATIVE = -1
"""The scale of a value that is not in units of its last digit, but an int or Decimal as it is."""


DAYS = -2
"""The scale of a date that is a number of days."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value as Python, and how many of its digits are decimal places, or NATIVE."""

    text: str
    scale: int


@dataclass(slots=True)
class Step:
    """Lines that bind or test something, after which the rest is indented, or not."""

    lines: tuple[str, ...]
    opens: bool
    is_loop: bool = False
    deeper: int = 0
    computes: bool = False
    """Whether it adds or multiplies numbers, which is exact in the context for that only."""


@dataclass(slots=True)
class Added:
    """What is added to a map at a node: the key, the number, and the sign."""

    map: str
    key: str
    value: Number
    sign: int


@dataclass(slots=True)
class Node:
    """A step, and what is under it: other nodes, and what is added where they are all passed."""

    step: Step | None
    in_loop: bool = False
    children: dict[tuple[str, ...], Node] = field(default_factory=dict)
    added: list[Added] = field(default_factory=list)

    def walk(self) -> Iterable[Node]:
        """It and all nodes under it."""
        yield self
        for each in self.children.values():
            yield from each.walk()


class StatementTree:
    """The statements of a trigger as a tree of steps; `typed` with numbers in units."""

    def __init__(self, trigger: Trigger, shared: SharedNames, *, typed: bool) -> None:
        self.trigger = trigger
        self.event = trigger.relation, trigger.sign
        self.shared = shared
        self.typed = typed
        self.places = {name: at for at, name in enumerate(trigger.row)}
        self.locals: dict[tuple[str, ...], str] = {}
        self.root = Node(None)
        self.filters: tuple[Filter, ...] = ()
        counted = Counter[Expr]()
        for each in trigger.statements:
            counted.update(set(self._row_conditions(each)))
        filtered = self._filtered(counted) if typed else []
        for each in trigger.statements:
            self._insert(each, counted, filtered)
        used = {n for s in trigger.statements for n in (*names_in(s.body), *s.keys, *s.given)}
        self.columns = tuple(at for name, at in self.places.items() if name in used)

    # Which conditions come first

    def _row_conditions(self, statement: Statement) -> list[Expr]:
        _, factors = _parts(statement.body)
        return [
            each
            for each in factors
            if isinstance(each, Comparison) and names_in(each) <= self.places.keys()
        ]

    def _filtered(self, counted: Counter[Expr]) -> list[Expr]:
        """The conditions of all statements that batches are filtered by, column by column."""
        found: list[Expr] = []
        filters: list[Filter] = []
        given = [frozenset(each.given) for each in self.trigger.statements]
        for condition, number in counted.items():
            assert isinstance(condition, Comparison)
            if number < len(self.trigger.statements) or "like" in condition.operator:
                continue
            left, right = condition.left, condition.right
            if not isinstance(left, Variable) or not self._has_units(left.name):
                continue
            strict = all(names_in(condition) <= each for each in given)
            if not strict and any(self._may_be_null(each) for each in names_in(condition)):
                continue
            at = self.places[left.name]
            if isinstance(right, Variable) and self._has_units(right.name):
                other = self.places[right.name]
                if self._scale(left.name) != self._scale(right.name):
                    continue
                filters.append(Filter(condition.operator, at, other, True))
            elif not names_in(right):
                assert self.shared.columns is not None
                value = self.shared.columns.units(self.trigger.relation, at, right)
                if value is None:
                    continue
                filters.append(Filter(condition.operator, at, value, False))
            else:
                continue
            found.append(condition)
        self.filters = tuple(filters)
        return found

    def _has_units(self, name: str) -> bool:
        columns, at = self.shared.columns, self.places[name]
        if columns is None or not columns.fits_int64(self.trigger.relation, at):
            return False
        return columns.has_units(self.trigger.relation, at)

    def _scale(self, name: str) -> int:
        columns, at = self.shared.columns, self.places[name]
        assert columns is not None
        if columns.is_date(self.trigger.relation, at):
            return DAYS
        return columns.scale(self.trigger.relation, at)

    def _may_be_null(self, name: str) -> bool:
        columns = self.shared.columns
        if columns is None or name not in self.places:
            return True
        return columns.may_be_null(self.trigger.relation, self.places[name])

    # Statements to steps

    def _insert(self, statement: Statement, counted: Counter[Expr], filtered: list[Expr]) -> None:
        bound = {name: f"r{at}" for name, at in self.places.items()}
        nullable = {n for n in bound if self._may_be_null(n)} - {*statement.given}
        sign, factors = _parts(statement.body)
        steps = [
            Step((f"if {bound[name]} is not None:",), opens=True)
            for name in sorted(statement.given, key=lambda n: self.places[n])
            if self._may_be_null(name)
        ]
        left = [each for each in factors if each not in filtered]
        left.sort(key=lambda each: -counted[each])
        left = [folded(each) for each in left]
        numbers: list[Number] = []
        while left:
            factor = min(left, key=lambda each: self._rank(each, bound))
            left.remove(factor)
            loops = sum(each.is_loop for each in steps)
            step = self._step(factor, bound, nullable, numbers, loops)
            if step is not None:
                steps.append(step)
        node = self.root
        for step in steps:
            inside = node.in_loop or step.is_loop
            node = node.children.setdefault(step.lines, Node(step, inside))
        key = key_text([self._as_key(name, bound) for name in statement.keys])
        node.added.append(Added(statement.map, key, self._product(numbers), sign))

    def _rank(self, factor: Expr, bound: Mapping[str, str]) -> tuple[int, int]:
        """What comes first: conditions and values, lookups, loops over slices, over whole maps."""
        if not isinstance(factor, Atom):
            return (0 if needs(factor) <= bound.keys() else 9, 0)
        held = [a.name in bound for a in factor.arguments if isinstance(a, Variable)]
        return (1 if all(held) else 2 if any(held) else 3, held.count(False))

    def _step(
        self,
        factor: Expr,
        bound: dict[str, str],
        nullable: set[str],
        numbers: list[Number],
        loops: int,
    ) -> Step | None:
        """The step of a factor, which is in so many loops."""
        match factor:
            case Atom():
                return self._lookup(factor, bound, nullable, numbers, loops)
            case Comparison():
                condition = self._condition(factor, bound, nullable)
                return Step((f"if {condition}:",), opens=True, computes=_computes(factor))
            case Assignment(variable, value):
                text = native(self._value(value, bound, nullable))
                there = self._is_there(value, bound, nullable)
                if variable.name in bound:
                    equal = f"{bound[variable.name]} == {text}"
                    line = f"if {' and '.join(filter(None, (there, equal)))}:"
                    return Step((line,), opens=True, computes=_computes(value))
                if there:
                    text = f"{text} if {there} else None"
                    nullable.add(variable.name)
                bound[variable.name] = self._local("x", variable.name, text)
                return Step((f"{bound[variable.name]} = {text}",), opens=False)
            case _:
                numbers.append(self._number(factor, bound, nullable))
                return None

    def _lookup(
        self,
        atom: Atom,
        bound: dict[str, str],
        nullable: set[str],
        numbers: list[Number],
        loops: int,
    ) -> Step:
        map_ = f"m{self.shared.numbers[atom.relation]}"
        arguments = [each for each in atom.arguments if isinstance(each, Variable)]
        names = [each.name for each in arguments]
        scale = 0 if atom.relation in self.shared.integral else NATIVE
        if all(name in bound for name in names):
            key = key_text([self._as_key(name, bound) for name in names])
            value = self._local("w", map_, key)
            numbers.append(Number(value, scale))
            return Step((f"{value} = {map_}.get({key})", f"if {value} is not None:"), opens=True)
        held = tuple(at for at, name in enumerate(names) if name in bound)
        key = key_text([self._as_key(names[at], bound) for at in held])
        # A loop in a loop over the same entries has locals of its own.
        entry = self._local("e", map_, str(held), key, str(loops))
        value = self._local("w", map_, entry)
        numbers.append(Number(value, scale))
        lines: list[str] = []
        deeper = 0
        if held:
            index = self.shared.index(Index(atom.relation, held))
            lines += [
                f"for {entry} in i{index}.get({key}, ()):",
                f"{INDENT}{value} = {map_}[{entry}]",
            ]
        else:
            lines.append(f"for {entry}, {value} in {map_}.items():")
        seen: set[str] = set()
        for at, argument in enumerate(arguments):
            part = entry if len(names) == 1 else f"{entry}[{at}]"
            name = argument.name
            if name not in bound:
                bound[name] = self._local("x", entry, str(at))
                seen.add(name)
                if argument.nullable:
                    nullable.add(name)
                lines.append(f"{INDENT * (deeper + 1)}{bound[name]} = {part}")
            elif at not in held:
                lines.append(f"{INDENT * (deeper + 1)}if {bound[name]} == {part}:")
                deeper += 1
        return Step(tuple(lines), opens=True, is_loop=True, deeper=deeper)

    def _local(self, letter: str, *what: str) -> str:
        """A local variable for what is found so: the same wherever it is found the same way."""
        return self.locals.setdefault((letter, *what), f"{letter}{len(self.locals)}")

    # Values

    def _as_key(self, name: str, bound: Mapping[str, str]) -> str:
        """A variable as a part of a key, in the form that maps keep."""
        text = bound[name]
        if not self.typed or name not in self.places or not self._in_units(name):
            return text
        found = native(Number(text, self._scale(name)))
        guard = found != text and self._may_be_null(name)
        return f"({found} if {text} is not None else None)" if guard else found

    def _in_units(self, name: str) -> bool:
        """Whether a column is an int in batches."""
        columns = self.shared.columns
        return columns is not None and columns.has_units(self.trigger.relation, self.places[name])

    def _is_there(self, query: Expr, bound: Mapping[str, str], nullable: Iterable[str]) -> str:
        """The test that what is directly compared is not NULL."""
        if isinstance(query, Extract):
            return self._is_there(query.date, bound, nullable)
        if isinstance(query, Variable) and query.name in nullable:
            return f"{bound[query.name]} is not None"
        return ""

    def _condition(
        self, comparison: Comparison, bound: Mapping[str, str], nullable: set[str]
    ) -> str:
        sides = comparison.left, comparison.right
        guards = dict.fromkeys(self._is_there(each, bound, nullable) for each in sides)
        sign = comparison.operator
        left, right = self.aligned([self._value(each, bound, nullable) for each in sides])
        if "like" in sign:
            text = f"{'not ' if sign != 'like' else ''}M({right}, {left})"
        elif comparison.left == comparison.right and sign in ("=", "<=", ">="):
            text = ""
        else:
            text = f"{left} {_SIGNS.get(sign, sign)} {right}"
        return " and ".join(filter(None, (*guards, text))) or "1"

    def _value(self, query: Expr, bound: Mapping[str, str], nullable: Iterable[str] = ()) -> Number:
        match query:
            case Variable(name):
                if self.typed and name in self.places and self._in_units(name):
                    return Number(bound[name], self._scale(name))
                return Number(bound[name], NATIVE)
            case Constant(Decimal() as value) if self.typed:
                exponent = value.as_tuple().exponent
                assert isinstance(exponent, int)
                scale = max(0, -exponent)
                units = int(value.scaleb(scale, EXACT)) if scale else int(value)
                return Number(self.shared.constant(units), scale)
            case Constant(date() as value) if self.typed:
                return Number(self.shared.constant(days(value)), DAYS)
            case Constant(value):
                return Number(self.shared.constant(value), 0 if self.typed else NATIVE)
            case Negate(body):
                inner = self._number(body, bound, nullable)
                return Number(f"(-{inner.text})", inner.scale)
            case Add((first, *rest)):
                bare = [each.body if isinstance(each, Negate) else each for each in rest]
                numbers = [self._number(each, bound, nullable) for each in (first, *bare)]
                joined, *texts = self.aligned(numbers)
                scales = [each.scale for each in numbers]
                scale = NATIVE if NATIVE in scales else max(scales)
                for each, text in zip(rest, texts, strict=True):
                    joined += f" {'-' if isinstance(each, Negate) else '+'} {text}"
                return Number(f"({joined})", scale)
            case Product(parts):
                found = self._product([self._number(each, bound, nullable) for each in parts])
                return Number(f"({found.text})", found.scale)
            case Sum(body):
                return self._value(body, bound, nullable)
            case Extract(unit, value):
                assert unit in ("year", "month", "day")
                text = native(self._value(value, bound, nullable))
                return Number(f"{text}.{unit}", 0 if self.typed else NATIVE)
            case Comparison():
                condition = self._condition(query, bound, set(nullable))
                return Number(f"(1 if {condition} else 0)", 0 if self.typed else NATIVE)
            case _:
                raise AssertionError(query)

    def _number(self, query: Expr, bound: Mapping[str, str], nullable: Iterable[str]) -> Number:
        """A value that is computed with: NULL is 0."""
        found = self._value(query, bound, nullable)
        there = self._is_there(query, bound, nullable)
        return Number(f"({found.text} if {there} else 0)", found.scale) if there else found

    def aligned(self, numbers: list[Number]) -> list[str]:
        """Numbers in the same units, or all of them as they are."""
        scales = [each.scale for each in numbers]
        if NATIVE in scales or len({each == DAYS for each in scales}) > 1:
            return [native(each) for each in numbers]
        most = max(scales)
        return [
            each.text
            if each.scale == most
            else f"{each.text} * {self.shared.constant(10 ** (most - each.scale))}"
            for each in numbers
        ]

    def _product(self, numbers: list[Number]) -> Number:
        """The product; in units if all are, else as it is."""
        kept = [each for each in numbers if each.text != "1"]
        if not kept:
            return Number("1", 0)
        scales = [each.scale for each in kept]
        if NATIVE not in scales:
            return Number(" * ".join(each.text for each in kept), sum(scales))
        units = [each for each in kept if each.scale > 0]
        texts = [each.text for each in kept if each.scale <= 0]
        if units:
            scale = sum(each.scale for each in units)
            texts.append(f"E({' * '.join(each.text for each in units)}, {scale})")
        return Number(" * ".join(texts), NATIVE)


def folded(query: Expr) -> Expr:
    """An expression with what is computed of constants as one, with all of its digits."""
    value = constant_value(query)
    if isinstance(query, Constant) or value is None:
        return rebuilt(query, folded)
    return constant(value) if isinstance(value, Fraction) else Constant(value)


def _computes(query: Expr) -> bool:
    """Whether an expression adds or multiplies numbers other than the 1 and 0 of conditions."""
    match query:
        case Add() | Product() | Negate():
            return not _is_whole(query)
        case _:
            return any(map(_computes, children(query)))


def _is_whole(query: Expr) -> bool:
    """Whether an expression is computed of conditions and whole constants alone."""
    match query:
        case Comparison():
            return not _computes(query)
        case Constant(value):
            return isinstance(value, int)
        case Add() | Product() | Negate():
            return all(map(_is_whole, children(query)))
        case _:
            return False


def native(number: Number) -> str:
    """A value in the form that maps keep."""
    if number.scale == DAYS:
        return f"D[{number.text}]"
    return number.text if number.scale <= 0 else f"E({number.text}, {number.scale})"


def _parts(body: Expr) -> tuple[int, list[Expr]]:
    """The sign and the factors of the right side of a statement."""
    sign = 1
    while isinstance(body, Negate):
        sign, body = -sign, body.body
    return sign, list(body.factors) if isinstance(body, Product) else [body]


def key_text(parts: list[str]) -> str:
    """The key of an entry: a value alone, or a tuple of several."""
    if len(parts) == 1:
        return parts[0]
    return f"({', '.join(parts)})"
