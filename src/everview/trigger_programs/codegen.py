"""A trigger program as Python: functions for one row and for batches, over a dict for each map.

The text is built from the program as data. Names in it are numbers with a letter, and constants are
handed over as values, so nothing that a user wrote is in it. A function first computes what it
adds, reading old values, and then adds it. Statements of a trigger share conditions and lookups: it
is a tree of them, with what is added at its nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, getcontext, setcontext
from itertools import repeat
from typing import Any, TypeAlias

from everview.lang.agca.evaluate import matches
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
    names_in,
    walk,
)
from everview.trigger_programs.columns import (
    DATES,
    EXACT,
    Columns,
    days,
    is_text,
    unscaled_decimal,
)
from everview.trigger_programs.program import Statement, Trigger, TriggerProgram

Key: TypeAlias = Any
"""The key of an entry: a value for one variable, else a tuple."""
Event: TypeAlias = tuple[str, int]
"""A relation, and 1 for the insertion of a row or −1 for its deletion."""
_SIGNS = {"=": "==", "<>": "!="}
_INDENT = "    "


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


@dataclass(frozen=True, slots=True)
class Batch:
    """How rows of an event are handed over in batches: which columns, filtered before."""

    columns: tuple[int, ...]
    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of a program, by relation and sign: for one row, and for columns of many."""

    row: Mapping[Event, Callable[..., None]]
    batch: Mapping[Event, Callable[..., None]]


@dataclass(frozen=True, slots=True)
class Generated:
    """Python for a program: a function for each event, for one row and for a batch if it can be.

    Beside it are how batches are handed over, the constants, and the indexes that it reads.
    """

    rows: Mapping[Event, str]
    batches: Mapping[Event, str]
    filtered: Mapping[Event, Batch]
    constants: tuple[Any, ...]
    indexes: tuple[Index, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join((*self.rows.values(), *self.batches.values()))

    def functions(
        self,
        program: TriggerProgram,
        maps: dict[str, dict[Key, Any]],
        indexes: dict[Index, dict[Key, dict[Key, None]]],
        checked: Callable[[str, Any], Any],
    ) -> Functions:
        """The functions over the maps and indexes that they change.

        `checked` gives a row of a relation as it should be, where it is not, or raises.
        """
        scope: dict[str, Any] = {"M": matches, "D": DATES, "E": unscaled_decimal}
        scope |= {"__builtins__": {}, "type": type, "int": int, "Decimal": Decimal}
        scope |= {"str": str, "bool": bool, "date": date, "reversed": reversed}
        scope |= {"BaseException": BaseException, "X": restoring(program, maps, indexes)}
        scope |= {"zip": zip, "B": checked, "range": range, "map": map, "L": list, "Z": repeat(0)}
        scope |= {"len": len, "G": getcontext, "S": setcontext, "C": EXACT}
        scope |= {"T": is_text, "tuple": tuple, "list": list}
        scope |= {f"m{at}": maps[each.name] for at, each in enumerate(program.maps)}
        scope |= {f"i{at}": indexes[each] for at, each in enumerate(self.indexes)}
        scope |= {f"c{at}": each for at, each in enumerate(self.constants)}
        names = list(dict.fromkeys(each.relation for each in program.triggers))
        scope |= {f"n{at}": each for at, each in enumerate(names)}
        return Functions(_Compiled(self.rows, scope), _Compiled(self.batches, scope))


class _Compiled(dict[Event, Callable[..., None]]):
    """Functions by relation and sign, each compiled when it is first asked for."""

    def __init__(self, texts: Mapping[Event, str], scope: dict[str, Any]) -> None:
        super().__init__()
        self._texts = texts
        self._scope = scope

    def __missing__(self, event: Event) -> Callable[..., None]:
        made: dict[str, Any] = {}
        exec(compile(self._texts[event], "<triggers>", "exec"), self._scope, made)
        [self[event]] = made.values()
        return self[event]


def restoring(
    program: TriggerProgram,
    maps: dict[str, dict[Key, Any]],
    indexes: dict[Index, dict[Key, dict[Key, None]]],
) -> Callable[[int, Key, Any], None]:
    """What gives an entry of a map its old value back, whatever was done to it."""
    names = [each.name for each in program.maps]

    def restore(number: int, key: Key, old: Any) -> None:
        name = names[number]
        if old:
            maps[name][key] = old
        else:
            maps[name].pop(key, None)
        for index, entries in indexes.items():
            if index.map != name:
                continue
            parts = key if isinstance(key, tuple) else (key,)
            held = [parts[at] for at in index.positions]
            part = held[0] if len(held) == 1 else tuple(held)
            if old:
                entries.setdefault(part, {})[key] = None
            elif part in entries:
                entries[part].pop(key, None)
                if not entries[part]:
                    del entries[part]

    return restore


def generate(program: TriggerProgram, columns: Columns | None = None) -> Generated:
    """The Python of a program; for batches too, where the types of columns are known."""
    numbers = {each.name: at for at, each in enumerate(program.maps)}
    arity = {each.name: len(each.keys) for each in program.maps}
    shared = _Shared(numbers, arity, columns)
    relations = list(dict.fromkeys(each.relation for each in program.triggers))
    trees = [_Tree(each, shared, typed=False) for each in program.triggers]
    batch_trees: dict[int, _Tree] = {}
    if columns is not None:
        shared.integral = {each.name for each in program.maps if columns.is_integral(each.body)}
        for at, trigger in enumerate(program.triggers):
            if _reads_what_it_writes(trigger):
                continue
            batch_trees[at] = _Tree(trigger, shared, typed=True)
    rows: dict[Event, str] = {}
    for at, tree in enumerate(trees):
        lines = _row_function(at, tree, shared, relations.index(tree.trigger.relation))
        rows[tree.event] = "\n".join(lines) + "\n"
    batches = {
        tree.event: "\n".join(_batch_function(at, tree, shared)) + "\n"
        for at, tree in batch_trees.items()
    }
    filtered = {tree.event: Batch(tree.columns, tree.filters) for tree in batch_trees.values()}
    return Generated(rows, batches, filtered, tuple(shared.constants), tuple(shared.indexes))


def _reads_what_it_writes(trigger: Trigger) -> bool:
    """Whether an event sees what the one before it did, so that they cannot be added up first."""
    read = {q.relation for s in trigger.statements for q in walk(s.body) if isinstance(q, Atom)}
    return bool(read & {each.map for each in trigger.statements})


@dataclass(slots=True)
class _Shared:
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
            (at, _key([key] if plain else [f"{key}[{p}]" for p in each.positions]))
            for at, each in enumerate(self.indexes)
            if each.map == map_
        ]


NATIVE = -1
"""The scale of a value that is not in units of its last digit, but an int or Decimal as it is."""
DAYS = -2
"""The scale of a date that is a number of days."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A value as Python, and how many of its digits are decimal places, or NATIVE."""

    text: str
    scale: int


@dataclass(slots=True)
class _Step:
    """Lines that bind or test something, after which the rest is indented, or not."""

    lines: tuple[str, ...]
    opens: bool
    is_loop: bool = False
    deeper: int = 0


@dataclass(slots=True)
class _Added:
    """What is added to a map at a node: the key, the number, and the sign."""

    map: str
    key: str
    value: _Number
    sign: int


@dataclass(slots=True)
class _Node:
    """A step, and what is under it: other nodes, and what is added where they are all passed."""

    step: _Step | None
    in_loop: bool = False
    children: dict[tuple[str, ...], _Node] = field(default_factory=dict)
    added: list[_Added] = field(default_factory=list)

    def walk(self) -> Iterable[_Node]:
        """It and all nodes under it."""
        yield self
        for each in self.children.values():
            yield from each.walk()


class _Tree:
    """The statements of a trigger as a tree of steps; `typed` with numbers in units."""

    def __init__(self, trigger: Trigger, shared: _Shared, *, typed: bool) -> None:
        self.trigger = trigger
        self.event = trigger.relation, trigger.sign
        self.shared = shared
        self.typed = typed
        self.places = {name: at for at, name in enumerate(trigger.row)}
        self.locals: dict[tuple[str, ...], str] = {}
        self.root = _Node(None)
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
            _Step((f"if {bound[name]} is not None:",), opens=True)
            for name in sorted(statement.given, key=lambda n: self.places[n])
            if self._may_be_null(name)
        ]
        left = [each for each in factors if each not in filtered]
        left.sort(key=lambda each: -counted[each])
        numbers: list[_Number] = []
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
            node = node.children.setdefault(step.lines, _Node(step, inside))
        key = _key([self._as_key(name, bound) for name in statement.keys])
        node.added.append(_Added(statement.map, key, self._product(numbers), sign))

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
        numbers: list[_Number],
        loops: int,
    ) -> _Step | None:
        """The step of a factor, which is in so many loops."""
        match factor:
            case Atom():
                return self._lookup(factor, bound, nullable, numbers, loops)
            case Comparison():
                condition = self._condition(factor, bound, nullable)
                return _Step((f"if {condition}:",), opens=True)
            case Assignment(variable, value):
                text = _native(self._value(value, bound, nullable))
                there = self._is_there(value, bound, nullable)
                if variable.name in bound:
                    equal = f"{bound[variable.name]} == {text}"
                    return _Step((f"if {' and '.join(filter(None, (there, equal)))}:",), opens=True)
                if there:
                    text = f"{text} if {there} else None"
                    nullable.add(variable.name)
                bound[variable.name] = self._local("x", variable.name, text)
                return _Step((f"{bound[variable.name]} = {text}",), opens=False)
            case _:
                numbers.append(self._number(factor, bound, nullable))
                return None

    def _lookup(
        self,
        atom: Atom,
        bound: dict[str, str],
        nullable: set[str],
        numbers: list[_Number],
        loops: int,
    ) -> _Step:
        map_ = f"m{self.shared.numbers[atom.relation]}"
        arguments = [each for each in atom.arguments if isinstance(each, Variable)]
        names = [each.name for each in arguments]
        scale = 0 if atom.relation in self.shared.integral else NATIVE
        if all(name in bound for name in names):
            key = _key([self._as_key(name, bound) for name in names])
            value = self._local("w", map_, key)
            numbers.append(_Number(value, scale))
            return _Step((f"{value} = {map_}.get({key})", f"if {value} is not None:"), opens=True)
        held = tuple(at for at, name in enumerate(names) if name in bound)
        key = _key([self._as_key(names[at], bound) for at in held])
        # A loop in a loop over the same entries has locals of its own.
        entry = self._local("e", map_, str(held), key, str(loops))
        value = self._local("w", map_, entry)
        numbers.append(_Number(value, scale))
        lines: list[str] = []
        deeper = 0
        if held:
            index = self.shared.index(Index(atom.relation, held))
            lines += [
                f"for {entry} in i{index}.get({key}, ()):",
                f"{_INDENT}{value} = {map_}[{entry}]",
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
                lines.append(f"{_INDENT * (deeper + 1)}{bound[name]} = {part}")
            elif at not in held:
                lines.append(f"{_INDENT * (deeper + 1)}if {bound[name]} == {part}:")
                deeper += 1
        return _Step(tuple(lines), opens=True, is_loop=True, deeper=deeper)

    def _local(self, letter: str, *what: str) -> str:
        """A local variable for what is found so: the same wherever it is found the same way."""
        return self.locals.setdefault((letter, *what), f"{letter}{len(self.locals)}")

    # Values

    def _as_key(self, name: str, bound: Mapping[str, str]) -> str:
        """A variable as a part of a key, in the form that maps keep."""
        text = bound[name]
        if not self.typed or name not in self.places or not self._in_units(name):
            return text
        found = _native(_Number(text, self._scale(name)))
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
        left, right = self._aligned([self._value(each, bound, nullable) for each in sides])
        if "like" in sign:
            text = f"{'not ' if sign != 'like' else ''}M({right}, {left})"
        elif comparison.left == comparison.right and sign in ("=", "<=", ">="):
            text = ""
        else:
            text = f"{left} {_SIGNS.get(sign, sign)} {right}"
        return " and ".join(filter(None, (*guards, text))) or "1"

    def _value(
        self, query: Expr, bound: Mapping[str, str], nullable: Iterable[str] = ()
    ) -> _Number:
        match query:
            case Variable(name):
                if self.typed and name in self.places and self._in_units(name):
                    return _Number(bound[name], self._scale(name))
                return _Number(bound[name], NATIVE)
            case Constant(Decimal() as value) if self.typed:
                exponent = value.as_tuple().exponent
                assert isinstance(exponent, int)
                scale = max(0, -exponent)
                units = int(value.scaleb(scale)) if scale else int(value)
                return _Number(self.shared.constant(units), scale)
            case Constant(date() as value) if self.typed:
                return _Number(self.shared.constant(days(value)), DAYS)
            case Constant(value):
                return _Number(self.shared.constant(value), 0 if self.typed else NATIVE)
            case Negate(body):
                inner = self._number(body, bound, nullable)
                return _Number(f"(-{inner.text})", inner.scale)
            case Add((first, *rest)):
                bare = [each.body if isinstance(each, Negate) else each for each in rest]
                numbers = [self._number(each, bound, nullable) for each in (first, *bare)]
                joined, *texts = self._aligned(numbers)
                scales = [each.scale for each in numbers]
                scale = NATIVE if NATIVE in scales else max(scales)
                for each, text in zip(rest, texts, strict=True):
                    joined += f" {'-' if isinstance(each, Negate) else '+'} {text}"
                return _Number(f"({joined})", scale)
            case Product(parts):
                found = self._product([self._number(each, bound, nullable) for each in parts])
                return _Number(f"({found.text})", found.scale)
            case Sum(body):
                return self._value(body, bound, nullable)
            case Extract(unit, value):
                assert unit in ("year", "month", "day")
                text = _native(self._value(value, bound, nullable))
                return _Number(f"{text}.{unit}", 0 if self.typed else NATIVE)
            case Comparison():
                condition = self._condition(query, bound, set(nullable))
                return _Number(f"(1 if {condition} else 0)", 0 if self.typed else NATIVE)
            case _:
                raise AssertionError(query)

    def _number(self, query: Expr, bound: Mapping[str, str], nullable: Iterable[str]) -> _Number:
        """A value that is computed with: NULL is 0."""
        found = self._value(query, bound, nullable)
        there = self._is_there(query, bound, nullable)
        return _Number(f"({found.text} if {there} else 0)", found.scale) if there else found

    def _aligned(self, numbers: list[_Number]) -> list[str]:
        """Numbers in the same units, or all of them as they are."""
        scales = [each.scale for each in numbers]
        if NATIVE in scales or len({each == DAYS for each in scales}) > 1:
            return [_native(each) for each in numbers]
        most = max(scales)
        return [
            each.text
            if each.scale == most
            else f"{each.text} * {self.shared.constant(10 ** (most - each.scale))}"
            for each in numbers
        ]

    def _product(self, numbers: list[_Number]) -> _Number:
        """The product; in units if all are, else as it is."""
        kept = [each for each in numbers if each.text != "1"]
        if not kept:
            return _Number("1", 0)
        scales = [each.scale for each in kept]
        if NATIVE not in scales:
            return _Number(" * ".join(each.text for each in kept), sum(scales))
        units = [each for each in kept if each.scale > 0]
        texts = [each.text for each in kept if each.scale <= 0]
        if units:
            scale = sum(each.scale for each in units)
            texts.append(f"E({' * '.join(each.text for each in units)}, {scale})")
        return _Number(" * ".join(texts), NATIVE)


def _native(number: _Number) -> str:
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


# One row


def _row_function(at: int, tree: _Tree, shared: _Shared, relation: int) -> list[str]:
    """One row: what it adds is computed, then added; what fails while adding is taken back."""
    typed = shared.columns is not None
    width = len(tree.trigger.row)
    lines = [f"def f{at}(row):"]
    if typed:
        kind = "(type(row) is not tuple and type(row) is not list)"
        lines += [f"{_INDENT}if {kind} or len(row) != {width}:"]
        lines += [f"{_INDENT * 2}row = B(n{relation}, row)"]
    root, known = tree.root, set[int]()

    def loaded(wanted: Iterable[int]) -> list[str]:
        """Columns of the row, as they must be."""
        new = [each for each in wanted if each not in known]
        known.update(new)
        made = [f"{_INDENT}r{each} = row[{each}]" for each in new]
        if typed and new and shared.columns is not None:
            name = tree.trigger.relation
            tests = (shared.columns.test(name, e, f"r{e}", shared.constant) for e in new)
            made.append(f"{_INDENT}if not ({' and '.join(tests)}):")
            made.append(f"{_INDENT * 2}row = B(n{relation}, row)")
            made += [f"{_INDENT * 2}r{each} = row[{each}]" for each in new]
        return made

    # What all statements need first: a row without it is left at once.
    while not root.added and len(root.children) == 1:
        [child] = root.children.values()
        if child.step is None or not child.step.opens or child.step.is_loop:
            break
        *before, test = child.step.lines
        lines += loaded(int(each) for line in child.step.lines for each in _ROW.findall(line))
        lines += [f"{_INDENT}{line}" for line in before]
        lines += [f"{_INDENT}if not ({test[3:-1]}):", f"{_INDENT * 2}return"]
        root = child
    lines += loaded(tree.columns)
    body = _changes(tree, shared, root)
    if not typed:
        return lines + body
    before_ = [f"{_INDENT}b = G()", f"{_INDENT}S(C)", f"{_INDENT}try:"]
    return [
        *lines,
        *before_,
        *(f"{_INDENT}{line}" for line in body),
        f"{_INDENT}finally:",
        f"{_INDENT * 2}S(b)",
    ]


_ROW = re.compile(r"\br(\d+)\b")


def _changes(tree: _Tree, shared: _Shared, root: _Node) -> list[str]:
    """What a row adds: all of it computed, then added."""
    lines: list[str] = []
    # Loops are last, so that what fails is taken back in the reverse order: their entries first.
    nodes = sorted((n for n in root.walk() if n.added), key=lambda each: each.in_loop)
    numbers = {id(added): n for n, added in enumerate(a for node in nodes for a in node.added)}
    flags = {id(node): n for n, node in enumerate(nodes)}
    plain = [a for node in nodes if not node.in_loop for a in node.added]
    guarded = [node for node in nodes if not node.in_loop and node is not root]
    keys: dict[int, str] = {}
    if plain:
        lines.append(_INDENT + "".join(f"o{numbers[id(a)]} = " for a in plain) + "None")
    if guarded:
        lines.append(_INDENT + "".join(f"l{flags[id(n)]} = " for n in guarded) + "False")
    lines += [
        f"{_INDENT}a{numbers[id(a)]} = []" for node in nodes if node.in_loop for a in node.added
    ]

    def computed(node: _Node, depth: int) -> list[str]:
        indent = _INDENT * depth
        made: list[str] = []
        known: dict[str, str] = {}
        for added in node.added:
            number = numbers[id(added)]
            if node.in_loop:
                made.append(f"{indent}a{number}.append(({added.key}, {added.value.text}))")
            else:
                made.append(f"{indent}d{number} = {added.value.text}")
                if added.key not in known:
                    known[added.key] = f"k{number}"
                    made.append(f"{indent}k{number} = {added.key}")
                keys[number] = known[added.key]
        if node.added and not node.in_loop and node is not root:
            made.append(f"{indent}l{flags[id(node)]} = True")
        for child in node.children.values():
            made += _entered(child, depth, computed)
        return made

    lines += computed(root, 1)
    looped = any(each.in_loop for each in nodes)
    lines += [f"{_INDENT}u = []"] * looped + [f"{_INDENT}try:"]
    for node in nodes:
        depth = 2
        if node in guarded:
            lines.append(f"{_INDENT * depth}if l{flags[id(node)]}:")
            depth += 1
        for added in node.added:
            number, map_ = numbers[id(added)], shared.numbers[added.map]
            if node.in_loop:
                lines += [
                    f"{_INDENT * depth}for k, d in a{number}:",
                    f"{_INDENT * (depth + 1)}o = m{map_}.get(k, 0)",
                    f"{_INDENT * (depth + 1)}u.append(({map_}, k, o))",
                ]
                lines += _stored(added.map, ("k", "d", "o"), added.sign, shared, depth + 1)
            else:
                names = keys[number], f"d{number}", f"o{number}"
                lines.append(f"{_INDENT * depth}{names[2]} = m{map_}.get({names[0]}, 0)")
                lines += _stored(added.map, names, added.sign, shared, depth)
    lines += [f"{_INDENT * 2}pass"] * (not nodes) + [f"{_INDENT}except BaseException:"]
    if looped:
        lines += [f"{_INDENT * 2}for each in reversed(u):", f"{_INDENT * 3}X(*each)"]
    for added in reversed(plain):
        number = numbers[id(added)]
        lines += [
            f"{_INDENT * 2}if o{number} is not None:",
            f"{_INDENT * 3}X({shared.numbers[added.map]}, {keys[number]}, o{number})",
        ]
    lines.append(f"{_INDENT * 2}raise")
    return lines


def _entered(child: _Node, depth: int, computed: Callable[[_Node, int], list[str]]) -> list[str]:
    """The lines of a step, and of what is under it."""
    step = child.step
    assert step is not None
    lines = [f"{_INDENT * depth}{line}" for line in step.lines]
    return lines + computed(child, depth + step.opens + step.deeper)


def _stored(
    map_: str, names: tuple[str, str, str], sign: int, shared: _Shared, depth: int
) -> list[str]:
    """Add a number to the entry of a map at a key, which has an old value, and keep its indexes."""
    indent, name = _INDENT * depth, f"m{shared.numbers[map_]}"
    key, number, old = names
    mine = shared.indexes_of(map_, key)
    lines = [f"{indent}v = {old} {'+' if sign > 0 else '-'} {number}", f"{indent}if v:"]
    lines.append(f"{indent}{_INDENT}{name}[{key}] = v")
    for at, part in mine:
        lines += [
            f"{indent}{_INDENT}if not {old}:",
            f"{indent}{_INDENT * 2}e = i{at}.get({part})",
            f"{indent}{_INDENT * 2}if e is None:",
            f"{indent}{_INDENT * 3}i{at}[{part}] = {{{key}: None}}",
            f"{indent}{_INDENT * 2}else:",
            f"{indent}{_INDENT * 3}e[{key}] = None",
        ]
    lines += [f"{indent}elif {old}:", f"{indent}{_INDENT}del {name}[{key}]"]
    for at, part in mine:
        lines += [
            f"{indent}{_INDENT}del i{at}[{part}][{key}]",
            f"{indent}{_INDENT}if not i{at}[{part}]:",
            f"{indent}{_INDENT * 2}del i{at}[{part}]",
        ]
    return lines


# Many rows


def _batch_function(at: int, tree: _Tree, shared: _Shared) -> list[str]:
    """Many rows: what they add is added up by key, and then added to the maps, with a log."""
    nodes = [each for each in tree.root.walk() if each.added]
    maps: dict[str, list[_Number]] = {}
    for node in nodes:
        for added in node.added:
            maps.setdefault(added.map, []).append(added.value)
    scales: dict[str, int] = {}
    for name, values in maps.items():
        found = [each.scale for each in values]
        scales[name] = NATIVE if NATIVE in found else max(found)
    lines = [f"def b{at}(columns, u, n):"]
    for name in maps:
        number = shared.numbers[name]
        if shared.arity[name]:
            lines += [f"{_INDENT}d{number} = {{}}", f"{_INDENT}g{number} = d{number}.get"]
        else:
            lines.append(f"{_INDENT}d{number} = 0")
    row = ", ".join(f"r{each}" for each in tree.columns)
    each_row = f"for {row}, in zip(*columns):" if row else "for _ in range(n):"
    lines.append(f"{_INDENT}{each_row}")

    def computed(node: _Node, depth: int) -> list[str]:
        indent = _INDENT * depth
        made: list[str] = []
        keys: dict[str, str] = {}
        for added in node.added:
            number, scale = shared.numbers[added.map], scales[added.map]
            [value, _] = tree._aligned([added.value, _Number("0", scale)])
            sign = "+" if added.sign > 0 else "-"
            if not shared.arity[added.map]:
                made.append(f"{indent}d{number} {sign}= {value}")
                continue
            key = added.key
            if not key.isidentifier():
                if key not in keys:
                    keys[key] = f"k{len(keys)}"
                    made.append(f"{indent}{keys[key]} = {key}")
                key = keys[key]
            made.append(f"{indent}d{number}[{key}] = g{number}({key}, 0) {sign} {value}")
        for child in node.children.values():
            made += _entered(child, depth, computed)
        return made

    lines += computed(tree.root, 2) or [f"{_INDENT * 2}pass"]
    for name in maps:
        number = shared.numbers[name]
        if not shared.arity[name]:
            lines.append(f"{_INDENT}d{number} = {{(): d{number}}}")
        lines += [
            f"{_INDENT}olds = L(map(m{number}.get, d{number}, Z))",
            f"{_INDENT}u.append(({number}, d{number}, olds))",
            f"{_INDENT}for (k, d), o in zip(d{number}.items(), olds):",
        ]
        indent = _INDENT * 2
        if scales[name] > 0:
            lines.append(f"{indent}d = E(d, {scales[name]})")
        lines += _stored(name, ("k", "d", "o"), 1, shared, 2)
    return lines


def _key(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"({', '.join(parts)})"
