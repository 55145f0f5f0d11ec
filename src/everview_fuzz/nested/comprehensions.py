"""Random functions of comprehensions, and what CPython makes of them over lists of rows."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeAlias

TABLES = {"A": ("a", "b", "c"), "B": ("a", "d", "e"), "C": ("a", "xs", "f")}
"""Tables: `b` and `d` are texts, `xs` is a collection, `f` is true or false, the others are
numbers; any may be null."""
DECLARED = (
    "CREATE TABLE A (a BIGINT, b STRING, c BIGINT); CREATE TABLE B (a BIGINT, d STRING, e BIGINT);"
    "CREATE TABLE C (a BIGINT, xs ARRAY<STRUCT<p: BIGINT, qs: ARRAY<BIGINT>>>, f BOOLEAN)"
)
COMPONENTS = ("_1", "p", "q", "element", "label")
CLASSES = {
    "data class": "@dataclass\nclass {}:\n",
    "named tuple": "class {}(NamedTuple):\n",
}
IMPORTS = "from dataclasses import dataclass\nfrom typing import NamedTuple\n"
ALONE = "# element\n"
"""What the text of a function begins with whose elements are in a column of their own."""
_serial = count()


@dataclass(frozen=True)
class Record:
    """A type with named components: of a class, of a dict, or a row of a `table`."""

    fields: tuple[tuple[str, Any], ...]
    made_by: str = ""
    table: str = ""

    def component(self, name: str) -> str:
        """How a component is written, after the value."""
        by_attribute = self.made_by or (self.table and name.isidentifier())
        return f".{name}" if by_attribute else f"[{name!r}]"


Type: TypeAlias = Any
"""The name of a plain type, a tuple of types, a Record, or a list of the one type of elements."""
Scope: TypeAlias = Mapping[str, Type]
"""The types of variables."""
World: TypeAlias = Mapping[str, Type]
"""What a variable may range over: tables, with the types of their rows."""

_X = Record((("p", "int"), ("qs", ["int"])), table="C.xs")
FLAT: World = {
    "A": Record((("a", "int"), ("b", "str"), ("c", "int")), table="A"),
    "B": Record((("a", "int"), ("d", "str"), ("e", "int")), table="B"),
    "C": Record((("a", "int"), ("xs", [_X]), ("f", "bool")), table="C"),
}


def parts(text: str, type_: Type) -> Iterator[tuple[str, Type]]:
    """A value and its components, as they are written, with their types."""
    yield text, type_
    if isinstance(type_, tuple):
        for place, each in enumerate(type_):
            yield from parts(f"{text}[{place}]", each)
    elif isinstance(type_, Record):
        for name, each in type_.fields:
            yield from parts(f"{text}{type_.component(name)}", each)


def components(scope: Scope, type_: Type) -> list[str]:
    """What has a type among variables and their components."""
    return [t for name, each in scope.items() for t, found in parts(name, each) if found == type_]


def is_record(type_: Type) -> bool:
    """Whether the components of an element are columns."""
    return isinstance(type_, tuple | Record)


def rows_in(type_: Type) -> Iterator[Record]:
    """The rows of tables in the values of a type, outside of collections in it."""
    match type_:
        case Record(fields, _, table):
            yield from (type_,) if table else (r for _, each in fields for r in rows_in(each))
        case tuple():
            yield from (row for each in type_ for row in rows_in(each))


class Missing:
    """A value that compares as null does here: equal to itself, and in no order."""

    def _false(self, _other: object) -> bool:
        return False

    def _self(self, *_others: object) -> Missing:
        return self

    __lt__ = __le__ = __gt__ = __ge__ = _false
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _self
    __floordiv__ = __mod__ = __abs__ = _self
    __getitem__ = upper = lower = strip = lstrip = rstrip = _self
    startswith = endswith = __contains__ = _false

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Missing)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


def _known(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if not isinstance(each, Missing | None)]


AGGREGATES: dict[str, Any] = {
    "sum": lambda values, start=0: sum(_known(values), start),
    "min": lambda values, default=None: min(_known(values), default=MISSING),
    "max": lambda values, default=None: max(_known(values), default=MISSING),
    "any": lambda values: any(each for each in values),
    "all": lambda values: all(each for each in values),
    "sorted": list,
    "flatten": lambda values: [each for inner in values for each in inner],
    "MISSING": MISSING,
}
"""What functions call, as it means here."""


def in_python(text: str) -> str:
    """The text of a function in which None compares as it does here."""
    text = text.replace(" is not None", " != None").replace(" is None", " == None")
    return text.replace("None", "MISSING")


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
        function = defined(in_python(each), **{**(around or {}), **AGGREGATES})
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
    alone = text.startswith(ALONE)
    found = [row[0] if alone else row for row in rows]
    return canonical(found)  # type: ignore[no-any-return]


class Generator:
    """Writes functions of a random type, from the type down."""

    def __init__(
        self, rng: random.Random, tables: Sequence[str] = "ABC", world: World = FLAT
    ) -> None:
        self.rng, self.tables, self.world = rng, tuple(tables), dict(world)
        self.numbers = count()
        self.classes: dict[str, str] = {}
        self.before: list[str] = []
        """The statements of a function before the last one."""

    def function(self) -> str:
        """The text of a function of the tables; a comment says that elements are no tuples."""
        return self.functions(1)[0]

    def functions(self, levels: int) -> tuple[str, ...]:
        """The texts of functions, each but the first over what the one before gives as `v`."""
        texts = [self._function(self.tables)]
        for _ in range(levels - 1):
            texts.append(self._function(("v", *self.tables)))
        return tuple(texts)

    def _function(self, given: Sequence[str]) -> str:
        element, known = max(self.type(3), self.type(3), key=_levels), self.tables
        self.tables, self.before = tuple(given), []
        scope: dict[str, Type] = {}
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            assigned, name = self.type(2), self._fresh("w")
            self.before.append(f"{name} = {self.bag(assigned, scope, 2)}")
            scope[name] = [assigned]
        body = self.bag(element, scope, 3)
        self.tables, self.world["v"] = known, element
        lines = [line for each in (*self.before, f"return {body}") for line in each.splitlines()]
        text = f"def query({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)
        made = "".join(each for name, each in self.classes.items() if f"{name}(" in text)
        return f"{'' if is_record(element) else ALONE}{IMPORTS if made else ''}{made}{text}"

    def _fresh(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def _chance(self, often: float) -> bool:
        return self.rng.random() < often

    # Types

    def type(self, depth: int) -> Type:
        """A type; now and then one of what is inside the elements of the view before."""
        if "v" in self.world and self._chance(0.4):
            return self.rng.choice([each for _, each in parts("", self.world["v"])])
        kinds = ["int", "str", "bool"] + ["tuple", "tuple", "record", "bag", "bag"] * bool(depth)
        match self.rng.choice(kinds):
            case "tuple":
                return tuple(self.type(depth - 1) for _ in range(self.rng.randint(1, 3)))
            case "record":
                return self._record(depth)
            case "bag":
                return [self.type(depth - 1)]
            case plain:
                return plain

    def _record(self, depth: int) -> Record:
        word = self.rng.choice(("", *CLASSES))
        names = self.rng.sample(COMPONENTS[bool(word) :], self.rng.randint(1, 3))
        fields = tuple((name, self.type(depth - 1)) for name in names)
        if not word:
            return Record(fields)
        name = self._fresh("R")
        lines = "".join(f"    {field}: object\n" for field, _ in fields)
        self.classes[name] = CLASSES[word].format(name) + lines
        return Record(fields, name)

    # Values

    def expr(self, type_: Type, scope: Scope, depth: int) -> str:
        """An expression of a type."""
        known = components(scope, type_)
        if known and self._chance(0.5 if depth else 0.8):
            return self.rng.choice(known)
        if isinstance(type_, list):
            return self.bag(type_[0], scope, depth)
        if depth and self._chance(0.08):
            return self._helper(type_, scope, depth)
        if depth and self._chance(0.1):
            one, other = (self.expr(type_, scope, depth - 1) for _ in range(2))
            return f"({one} if {self.test(scope, depth - 1)} else {other})"
        return self._made(type_, scope, depth)

    def _made(self, type_: Type, scope: Scope, depth: int) -> str:
        match type_:
            case Record(fields, name):
                below = [(n, self.expr(each, scope, max(depth - 1, 0))) for n, each in fields]
                if name or self._chance(0.5):
                    return f"{name or 'dict'}({', '.join(f'{n}={e}' for n, e in below)})"
                return f"{{{', '.join(f'{n!r}: {e}' for n, e in below)}}}"
            case tuple():
                return f"({', '.join(self.expr(e, scope, max(depth - 1, 0)) for e in type_)},)"
            case "int":
                return self.number(scope, depth)
            case "str":
                return self.text(scope, depth)
            case "bool":
                return self.truth(scope, depth)
            case _:
                return self.rng.choice((*components(scope, type_), "0.5"))

    def _helper(self, type_: Type, scope: Scope, depth: int) -> str:
        """A call of a function that is defined for it, with some of what is in scope."""
        given = self.rng.sample([*scope], min(len(scope), self.rng.randint(0, 2)))
        name, names = self._fresh("h"), {each: self._fresh("p") for each in given}
        inner = {names[each]: scope[each] for each in given}
        body = self.expr(type_, inner, depth - 1)
        self.before.append(f"def {name}({', '.join(inner)}):\n    return {body}")
        return f"{name}({', '.join(f'{names[each]}={each}' for each in reversed(given))})"

    def bag(self, element: Type, scope: Scope, depth: int) -> str:
        """A collection whose elements have a type."""
        known, below = components(scope, [element]), max(depth - 1, 0)
        if not _can_be_made(element, scope):
            return self._comprehension(element, scope, below)
        if known and self._chance(0.25):
            return self._around(self.rng.choice(known))
        if not depth or self._chance(0.5):
            return self._comprehension(element, scope, below)
        match self.rng.randrange(8):
            case 0:
                return f"({self.bag(element, scope, below)} + {self.bag(element, scope, below)})"
            case 1:
                one, other = self.bag(element, scope, below), self.bag(element, scope, below)
                return f"({one} if {self.test(scope, below)} else {other})"
            case 2:
                inner = self.bag([element], scope, below)
                forms = ("[y for x in {} for y in x]", "flatten({})", "sum({}, [])")
                return self.rng.choice(forms).format(inner)
            case 3:
                fresh = self._fresh("v")
                return f"[{fresh} for {fresh} in {self.bag(element, scope, below)}]"
            case 4:
                return self._around(self.bag(element, scope, below))
            case 5:
                elements = [self.expr(element, scope, below) for _ in range(self.rng.randint(1, 2))]
                return f"[{', '.join(elements)}]"
            case 6 if known:
                fresh = self._fresh("v")
                test = self.test({**scope, fresh: element}, below)
                return f"[{fresh} for {fresh} in {self.rng.choice(known)} if {test}]"
            case _:
                return self._taken_apart(element, scope, below)

    def _around(self, bag: str) -> str:
        return self.rng.choice(("{}", "sorted({})", "list({})")).format(bag)

    def _taken_apart(self, element: Type, scope: Scope, depth: int) -> str:
        """A comprehension over tuples, which are taken apart."""
        types = tuple(self.type(1) for _ in range(2))
        names = self._fresh("v"), self._fresh("v")
        source = self.bag(types, scope, depth)
        inner = {**scope, **dict(zip(names, types, strict=True))}
        return f"[{self.expr(element, inner, depth)} for {', '.join(names)} in {source}]"

    def _comprehension(self, element: Type, scope: Scope, depth: int) -> str:
        clauses, inner = "", dict(scope)
        for _ in range(self.rng.choice((1, 1, 1, 2)) if depth else 1):
            clauses += self._clause(*self.source(inner), inner, depth)
        for row in rows_in(element):
            if not components(inner, row):
                clauses += self._clauses_to(row, inner, depth)
        return f"[{self.expr(element, inner, depth)}{clauses}]"

    def _clauses_to(self, row: Record, scope: dict[str, Type], depth: int) -> str:
        """What brings a row of a table, or of a collection inside one, into scope."""
        for table in self.tables:
            if self.world[table] == row or _way(self.world[table], row):
                break
        type_: Type = self.world[table]
        clauses = self._clause(table, type_, scope, depth)
        for step in _way(type_, row) if type_ != row else ():
            type_ = dict(parts("{}", type_))[step][0]
            clauses += self._clause(step.format([*scope][-1]), type_, scope, depth)
        return clauses

    def _clause(self, source: str, type_: Type, scope: dict[str, Type], depth: int) -> str:
        """`for` with conditions; its variable comes into scope."""
        variable = self._fresh("v")
        scope[variable] = type_
        tests = (f" if {self.test(scope, depth)}" for _ in range(self.rng.choice((0, 0, 1, 1, 2))))
        return f" for {variable} in {source}{''.join(tests)}"

    def source(self, scope: Scope) -> tuple[str, Type]:
        """What a variable ranges over: a table, or a collection in scope."""
        inside = [
            (text, each[0])
            for name, type_ in scope.items()
            for text, each in parts(name, type_)
            if isinstance(each, list)
        ]
        if inside and self._chance(0.6):
            return self.rng.choice(inside)
        table = "v" if "v" in self.tables and self._chance(0.5) else self.rng.choice(self.tables)
        return table, self.world[table]

    def number(self, scope: Scope, depth: int) -> str:
        """A number."""
        known = components(scope, "int")
        match self.rng.randrange(12) if depth else 12:
            case 0 | 1:
                function = self.rng.choice(("sum", "min", "max"))
                default = ", default=None" if function != "sum" else ""
                return f"{function}({self.bag('int', scope, depth - 1)}{default})"
            case 2:
                return f"len({self.bag(self.type(1), scope, depth - 1)})"
            case 3:
                left, right = self.number(scope, depth - 1), self.number(scope, 0)
                return f"({left} {self.rng.choice('+-*')} {right})"
            case 4:
                sign = self.rng.choice(("//", "%"))
                return f"({self.number(scope, depth - 1)} {sign} {self.rng.choice((2, 3, -2))})"
            case 5:
                return f"{self.rng.choice(('abs', '-'))}({self.number(scope, depth - 1)})"
            case 6 if known:
                divisor, left = self.rng.choice(known), self.number(scope, 0)
                safe = f"{divisor} is not None and {divisor} != 0"
                return f"({left} // {divisor} if {safe} else None)"
            case 7:
                return f"({self.number(scope, 0)} if {self.test(scope, depth - 1)} else None)"
            case _:
                return self.rng.choice(known) if known else str(self.rng.randint(-1, 3))

    def text(self, scope: Scope, depth: int) -> str:
        """A text."""
        known = components(scope, "str")
        match self.rng.randrange(10) if depth else 10:
            case 0:
                return f"({self.text(scope, depth - 1)} + {self.text(scope, 0)})"
            case 1 | 2:
                method = self.rng.choice(("upper", "lower", "strip", "lstrip", "rstrip"))
                return f"{self.text(scope, 0)}.{method}()"
            case 3:
                function = self.rng.choice(("min", "max"))
                return f"{function}({self.bag('str', scope, depth - 1)}, default=None)"
            case 4:
                return f"({self.text(scope, 0)} if {self.test(scope, depth - 1)} else None)"
            case _:
                return self.rng.choice(known or [repr(self.rng.choice(("x", "Y", "", " y")))])

    def truth(self, scope: Scope, depth: int) -> str:
        """A value that is true, false or None."""
        known = components(scope, "bool")
        if known and self._chance(0.5):
            return self.rng.choice(known)
        if depth and self._chance(0.2):
            return f"({self.truth(scope, 0)} if {self.test(scope, depth - 1)} else None)"
        return self.test(scope, depth)

    # Conditions

    def test(self, scope: Scope, depth: int) -> str:
        """A condition."""
        match self.rng.randrange(20) if depth else self.rng.randrange(8, 20):
            case 0 | 1:
                word = self.rng.choice(("and", "or"))
                return f"({self.truth(scope, depth - 1)} {word} {self.truth(scope, depth - 1)})"
            case 2:
                return f"(not {self.truth(scope, depth - 1)})"
            case 3 | 4:
                return self._quantified(scope, depth)
            case 5:
                sign = self.rng.choice(("in", "not in"))
                kind = self.rng.choice(("int", "str", ("int", "str")))
                bag = self.bag(kind, scope, depth - 1)
                return f"({self.expr(kind, scope, 0)} {sign} {bag})"
            case 6 if known := components(scope, "int"):
                divisor = self.rng.choice(known)
                left, right = self.number(scope, 0), self.number(scope, 0)
                safe = f"{divisor} is not None and {divisor} != 0"
                return f"({safe} and {left} // {divisor} < {right})"
            case 7:
                pairs = [self.expr(("int", "str"), scope, 0) for _ in range(2)]
                return f"({pairs[0]} {self.rng.choice(('==', '!='))} {pairs[1]})"
            case 8:
                return (
                    f"{self.number(scope, 0)} <= {self.number(scope, 0)} < {self.number(scope, 0)}"
                )
            case 9 if known := components(scope, self.rng.choice(("int", "str", "bool"))):
                return f"({self.rng.choice(known)} {self.rng.choice(('is', 'is not'))} None)"
            case 10:
                sign, kind = self.rng.choice(("in", "not in")), self.rng.choice(("int", "str"))
                constants = {"int": "(0, 2, None)", "str": "('x', None)"}[kind]
                return f"({self.expr(kind, scope, 0)} {sign} {constants})"
            case 11 if known := components(scope, "str"):
                forms = ("{}.startswith('x')", "{}.endswith('y')", "('x' in {})")
                return self.rng.choice(forms).format(self.rng.choice(known))
            case 12 if known := components(scope, "bool"):
                return self.rng.choice(known)
            case 13 | 14 | 15:
                sign = self.rng.choice(("==", "!=", "==", "<"))
                return f"{self.text(scope, 0)} {sign} {self.text(scope, 0)}"
            case _:
                sign = self.rng.choice(("==", "==", "==", "!=", "<", "<=", ">", ">="))
                return f"{self.number(scope, min(depth, 1))} {sign} {self.number(scope, 0)}"

    def _quantified(self, scope: Scope, depth: int) -> str:
        function = self.rng.choice(("any", "all"))
        if self._chance(0.3):
            return f"{function}({self.bag('bool', scope, depth - 1)})"
        variable, (source, type_) = self._fresh("v"), self.source(scope)
        return f"{function}({self.truth({**scope, variable: type_}, 0)} for {variable} in {source})"


def _levels(type_: Type) -> int:
    """How deep the collections of a type are nested."""
    match type_:
        case list():
            return 1 + _levels(type_[0])
        case Record(fields):
            return max(_levels(each) for _, each in fields)
        case tuple():
            return max(map(_levels, type_))
        case _:
            return 0


def _way(type_: Type, row: Record) -> list[str]:
    """The collections, each inside the elements of the one before, that lead to a row."""
    inside = [(text, each[0]) for text, each in parts("{}", type_) if isinstance(each, list)]
    for text, element in inside:
        if element == row:
            return [text]
        if below := _way(element, row):
            return [text, *below]
    return []


def _can_be_made(element: Type, scope: Scope) -> bool:
    """Whether all rows in a value of a type are in scope: no expression makes a row of a table."""
    return all(components(scope, row) for row in rows_in(element))


def random_row(rng: random.Random, table: str) -> tuple[Any, ...]:
    """A row of a table."""
    if table == "C":
        elements = [_random_element(rng) for _ in range(rng.randint(0, 2))]
        return rng.choice((None, 0, 1, 2)), elements, rng.choice((None, False, True))
    return (
        rng.choice((None, 0, 1, 2)),
        rng.choice((None, "x", "y")),
        rng.choice((None, 0, 1, 5)),
    )


def _random_element(rng: random.Random) -> dict[str, Any]:
    numbers = [rng.choice((None, 0, 1)) for _ in range(rng.randint(0, 2))]
    return {"p": rng.choice((None, 0, 1, 5)), "qs": numbers}
