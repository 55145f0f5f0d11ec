"""Random functions of comprehensions, and what CPython makes of them over lists of rows."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

TABLES = {"A": ("a", "b", "c"), "B": ("a", "d", "e"), "C": ("a", "xs")}
"""Tables: `b` and `d` are texts, `xs` is a collection, the others are numbers; any may be null."""
DECLARED = (
    "CREATE TABLE A (a BIGINT, b STRING, c BIGINT); CREATE TABLE B (a BIGINT, d STRING, e BIGINT);"
    "CREATE TABLE C (a BIGINT, xs ARRAY<STRUCT<p: BIGINT, qs: ARRAY<BIGINT>>>)"
)
_serial = count()


@dataclass(frozen=True)
class Kind:
    """What is inside the elements of a collection: numbers, texts, and collections of a kind.

    Each is written for a variable that stands in the place of `{}`.
    """

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    inside: tuple[tuple[str, str], ...] = ()


World = Mapping[str, Kind]
"""What a variable may range over, by name: the tables, and the collections inside their rows."""

FLAT: World = {
    "A": Kind(("{}.a", "{}.c"), ("{}.b",)),
    "B": Kind(("{}.a", "{}.e"), ("{}.d",)),
    "C": Kind(("{}.a",), (), (("{}.xs", "x"),)),
    "x": Kind(("{}.p",), (), (("{}.qs", "q"),)),
    "q": Kind(("{}",)),
}


class Missing:
    """A value that compares as null does here: equal to itself, and in no order."""

    def _false(self, _other: object) -> bool:
        return False

    def _self(self, *_others: object) -> Missing:
        return self

    __lt__ = __le__ = __gt__ = __ge__ = _false
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _self
    __getitem__ = upper = lower = strip = lstrip = rstrip = _self

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Missing)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


def _known(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if not isinstance(each, Missing | None)]


AGGREGATES: dict[str, Callable[..., Any]] = {
    "sum": lambda values, start=0: sum(_known(values), start),
    "min": lambda values, default=None: min(_known(values), default=MISSING),
    "max": lambda values, default=None: max(_known(values), default=MISSING),
    "any": lambda values: any(each for each in values),
    "all": lambda values: all(each for each in values),
}


def defined(text: str, **around: Any) -> Callable[..., Any]:
    """A function from its text, which can be read back as if it were in a file."""
    file = f"<comprehension {next(_serial)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = dict(around)
    exec(compile(text, file, "exec"), names)
    return names["query"]  # type: ignore[no-any-return]


def expected(
    text: str,
    tables: Mapping[str, Iterable[tuple[Any, ...]]],
    around: Mapping[str, Any] | None = None,
    *over: str,
) -> list[Any]:
    """What CPython answers, over rows whose nulls compare as they do here.

    Each of the functions `over` is called with what the one before gives, and with the tables.
    """
    named = {
        name: [dict(zip(TABLES[name], row, strict=True)) for row in found]
        for name, found in tables.items()
    }
    return meant(named, text, *over, around=around)


def meant(
    tables: Mapping[str, Iterable[Mapping[str, Any]]],
    text: str,
    *over: str,
    around: Mapping[str, Any] | None = None,
) -> list[Any]:
    """The same over tables whose rows name their components."""
    rows: dict[str, list[Any]] = {name: [*map(record, found)] for name, found in tables.items()}
    for each in (text, *over):
        function = defined(each, **{**(around or {}), **AGGREGATES})
        given = function.__code__.co_varnames[: function.__code__.co_argcount]
        rows["v"] = function(*(rows[name] for name in given))
    return canonical(rows["v"])  # type: ignore[no-any-return]


class Row(SimpleNamespace):
    """A row or record, whose components are read by attribute and by name."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


def record(row: Mapping[str, Any]) -> Row:
    """A row as CPython sees it, its nulls comparing as they do here."""
    return Row(**{name: _value(value) for name, value in row.items()})


def _value(value: Any) -> Any:
    """A value of a row as CPython sees it: an array that is null has no elements."""
    if isinstance(value, list):
        return [record(each) if isinstance(each, dict) else _value(each) for each in value]
    return MISSING if value is None else value


def given(value: Any) -> Any:
    """A value that CPython has seen, as rows give it."""
    if isinstance(value, Row):
        return {name: given(each) for name, each in vars(value).items()}
    if isinstance(value, list):
        return [given(each) for each in value]
    return None if isinstance(value, Missing) else value


def canonical(value: Any) -> Any:
    """A value in which collections have an order, and tuples no names."""
    if isinstance(value, Missing):
        return None
    if isinstance(value, SimpleNamespace) or is_dataclass(value):
        return tuple(canonical(each) for each in vars(value).values())
    if isinstance(value, dict):
        return tuple(canonical(each) for each in value.values())
    if isinstance(value, tuple):
        return tuple(canonical(each) for each in value)
    if isinstance(value, list):
        return sorted((canonical(each) for each in value), key=repr)
    return value + 0.0 if isinstance(value, float) else value


def answered(rows: Iterable[tuple[Any, ...]], text: str) -> list[Any]:
    """The rows of a view as CPython's elements; one that is no tuple is in a column of its own."""
    alone = text.startswith("# element\n")
    found = [row[0] if alone else row for row in rows]
    return canonical(found)  # type: ignore[no-any-return]


class Generator:
    """Writes functions of a random type, from the type down."""

    def __init__(
        self, rng: random.Random, tables: Sequence[str] = "ABC", world: World = FLAT
    ) -> None:
        self.rng, self.tables, self.world = rng, tables, world
        self.variables = count()

    def function(self) -> str:
        """The text of a function of both tables; a comment says that elements are no tuples."""
        return self.functions(1)[0]

    def functions(self, levels: int) -> tuple[str, ...]:
        """The texts of functions, each but the first over what the one before gives as `v`."""
        type_ = self.type(3)
        tables = ", ".join(self.tables)
        texts = [_text(type_, tables, self.bag(type_, {}, 3))]
        for _ in range(levels - 1):
            found, body = self.over(type_)
            type_ = found
            texts.append(_text(type_, f"v, {tables}", body))
        return tuple(texts)

    def over(self, type_: Any) -> tuple[Any, str]:
        """A collection over `v`, whose elements have a type, and the type of its elements."""
        parts = [self.part("x", type_, 3) for _ in range(self.rng.randint(1, 3))]
        texts = ", ".join(text for _, text in parts)
        test = self.rng.choice(("", "", f" if {self.test({}, 1)}"))
        body = f"[({texts},) for x in v{test}]"
        if self.rng.random() < 0.3:
            table = self.rng.choice(self.tables)
            body = (
                f"{body} + [({texts},) for x in v for a in {table} if {self.test({'a': table}, 0)}]"
            )
        return tuple(found for found, _ in parts), body

    def part(self, text: str, type_: Any, depth: int) -> tuple[Any, str]:
        """A value made from one of some type: itself, a component, or what is inside it."""
        kind = self.rng.random()
        if isinstance(type_, tuple) and kind < 0.65:
            place = self.rng.randrange(len(type_))
            return self.part(f"{text}[{place}]", type_[place], depth)
        if isinstance(type_, list) and depth and kind < 0.5:
            variable = f"y{next(self.variables)}"
            found, inner = self.part(variable, type_[0], depth - 1)
            test = self.rng.choice(("", f" if {self.test({}, 0)}"))
            return [found], f"[{inner} for {variable} in {text}{test}]"
        if isinstance(type_, list) and kind < 0.65:
            return self.rng.choice((("int", f"len({text})"), (type_, f"({text} + {text})")))
        return type_, text

    def type(self, depth: int) -> Any:
        """A type: "int", "str", a tuple of types, or a list of one."""
        kinds = ["int", "str"] + (["tuple", "tuple", "bag", "bag"] if depth else [])
        kind = self.rng.choice(kinds)
        if kind == "tuple":
            return tuple(self.type(depth - 1) for _ in range(self.rng.randint(1, 3)))
        return [self.type(depth - 1)] if kind == "bag" else kind

    def expr(self, type_: Any, scope: dict[str, str], depth: int) -> str:
        """An expression of a type."""
        if isinstance(type_, tuple):
            return f"({', '.join(self.expr(each, scope, depth) for each in type_)},)"
        if isinstance(type_, list):
            return self.bag(type_[0], scope, depth)
        return self.number(scope, depth) if type_ == "int" else self.text(scope, depth)

    def bag(self, type_: Any, scope: dict[str, str], depth: int) -> str:
        """A collection whose elements have a type."""
        kind = self.rng.random()
        if depth and kind < 0.12:
            return f"({self.bag(type_, scope, depth - 1)} + {self.bag(type_, scope, depth - 1)})"
        if depth and kind < 0.2:
            test, one = self.test(scope, depth - 1), self.bag(type_, scope, depth - 1)
            return f"({one} if {test} else {self.bag(type_, scope, depth - 1)})"
        if depth and kind < 0.3:
            inner = self.bag([type_], scope, depth - 1)
            return f"[y for x in {inner} for y in x]"
        if depth and kind < 0.4 and not isinstance(type_, str):
            fresh = f"v{next(self.variables)}"
            return f"[{fresh} for {fresh} in {self.bag(type_, scope, depth - 1)}]"
        clauses, inner_scope = "", dict(scope)
        for _ in range(self.rng.choice((1, 1, 1, 2)) if depth else 1):
            variable = f"v{next(self.variables)}"
            source, inner_scope[variable] = self.source(inner_scope)
            clauses += f" for {variable} in {source}"
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                clauses += f" if {self.test(inner_scope, max(depth - 1, 0))}"
        return f"[{self.expr(type_, inner_scope, max(depth - 1, 0))}{clauses}]"

    def source(self, scope: dict[str, str]) -> tuple[str, str]:
        """What a variable ranges over: a table, or a collection of a variable in scope."""
        inside = [
            (text.format(v), kind)
            for v, of in scope.items()
            for text, kind in self.world[of].inside
        ]
        if inside and self.rng.random() < 0.6:
            return self.rng.choice(inside)
        table = self.rng.choice(self.tables)
        return table, table

    def component(self, found: Iterable[tuple[str, Sequence[str]]]) -> str | None:
        """One of some components of variables; None where there are none."""
        written = [text.format(variable) for variable, texts in found for text in texts]
        return self.rng.choice(written) if written else None

    def number(self, scope: dict[str, str], depth: int) -> str:
        """A number."""
        kind = self.rng.random()
        if depth and kind < 0.2:
            function = self.rng.choice(("sum", "len", "min", "max"))
            default = ", default=None" if function in ("min", "max") else ""
            return f"{function}({self.bag('int', scope, depth - 1)}{default})"
        if depth and kind < 0.3:
            left, right = self.number(scope, depth - 1), self.number(scope, 0)
            return f"({left} {self.rng.choice('+-*')} {right})"
        if depth and kind < 0.4:
            test = self.test(scope, depth - 1)
            return f"({self.number(scope, 0)} if {test} else {self.number(scope, 0)})"
        found = self.component((v, self.world[of].numbers) for v, of in scope.items())
        return found or str(self.rng.randint(0, 3))

    def text(self, scope: dict[str, str], depth: int) -> str:
        """A text."""
        kind = self.rng.random()
        if depth and kind < 0.15:
            return f"({self.text(scope, depth - 1)} + {self.text(scope, 0)})"
        if depth and kind < 0.3:
            return f"{self.text(scope, 0)}.{self.rng.choice(('upper', 'lower', 'strip'))}()"
        found = self.component((v, self.world[of].texts) for v, of in scope.items())
        return found or repr(self.rng.choice(("x", "Y", "")))

    def test(self, scope: dict[str, str], depth: int) -> str:
        """A condition."""
        kind = self.rng.random()
        if depth and kind < 0.15:
            word = self.rng.choice(("and", "or"))
            return f"({self.test(scope, depth - 1)} {word} {self.test(scope, depth - 1)})"
        if depth and kind < 0.25:
            return f"(not {self.test(scope, depth - 1)})"
        if depth and kind < 0.35:
            variable, table = f"v{next(self.variables)}", self.rng.choice(self.tables)
            inner = {**scope, variable: table}
            function = self.rng.choice(("any", "all"))
            return f"{function}({self.test(inner, 0)} for {variable} in {table})"
        if kind < 0.5:
            return f"{self.text(scope, 0)} {self.rng.choice(('==', '!='))} {self.text(scope, 0)}"
        sign = self.rng.choice(("==", "==", "!=", "<", "<=", ">", ">="))
        return f"{self.number(scope, min(depth, 1))} {sign} {self.number(scope, 0)}"


def _text(type_: Any, parameters: str, body: str) -> str:
    note = "" if isinstance(type_, tuple) else "# element\n"
    return f"{note}def query({parameters}):\n    return {body}\n"


def random_row(rng: random.Random, table: str) -> tuple[Any, ...]:
    """A row of a table."""
    if table == "C":
        return rng.choice((None, 0, 1, 2)), [_random_element(rng) for _ in range(rng.randint(0, 2))]
    return (
        rng.choice((None, 0, 1, 2)),
        rng.choice((None, "x", "y")),
        rng.choice((None, 0, 1, 5)),
    )


def _random_element(rng: random.Random) -> dict[str, Any]:
    numbers = [rng.choice((None, 0, 1)) for _ in range(rng.randint(0, 2))]
    return {"p": rng.choice((None, 0, 1, 5)), "qs": numbers}
