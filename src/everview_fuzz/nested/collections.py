"""Random tables with collections, random changes of them, and what plain lists say."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from everview_fuzz.nested.comprehensions import Record, Type, World, canonical

HOSTILE = ("plain", "Ünï cöde", "a;b", "x.y", "select", "label", "_digest")
FIELDS = ("x", "label", "k", "element", "_digest", "T")
ARRAYS = {"ARRAY<STRING>": (None, [], ["b", "a"]), "STRUCT<x: ARRAY<INT>>": (None, {"x": [1]})}
"""Columns that are no collections, and values of them."""
SCALARS = {
    "INT": (None, 0, 1, 2),
    "STRING": (None, "", "a", "it's", "é"),
    "DOUBLE": (0.0, -0.0, 1.5),
}


@dataclass(frozen=True)
class Bag:
    """A collection: of scalars, of records with fields, or of collections."""

    element: str | dict[str, Any] | Bag

    def declared(self, word: str) -> str:
        """Its type in SQL."""
        return f"{word}<{type_text(self.element, word)}>"


Element = str | dict[str, Any] | Bag


def type_text(element: Element, word: str) -> str:
    """A type in SQL."""
    if isinstance(element, Bag):
        return element.declared(word)
    if isinstance(element, str):
        return element
    fields = (f"{name}: {type_text(each, word)}" for name, each in element.items())
    return f"STRUCT<{', '.join(fields)}>"


@dataclass
class Schema:
    """A table: its name, its key, and its collections by column."""

    rng: random.Random
    name: str = ""
    key: tuple[str, ...] = ("k",)
    bags: dict[str, Bag] = field(default_factory=dict)
    plain: str = ""
    """The type of the column `z`, which there is if it is given."""
    marked: bool = True
    """Whether collections are declared one by one, as BAG."""

    def __post_init__(self) -> None:
        rng = self.rng
        self.name = rng.choice(("T", "a;b", "tab.le", "Größe"))
        self.key = rng.choice((("k",), ("k", "k 2")))
        for name in rng.sample(HOSTILE, rng.randint(1, 2)):
            self.bags[name] = Bag(self._element(rng.randint(0, 2)))
        self.marked = rng.random() < 0.5
        self.plain = rng.choice(("", *ARRAYS)) if self.marked else ""

    def _element(self, below: int) -> Element:
        rng = self.rng
        kind = rng.random()
        if not below and kind < 0.5:
            return rng.choice(tuple(SCALARS))
        if below and kind < 0.25:
            return Bag(self._element(below - 1))
        names = rng.sample(FIELDS, rng.randint(1 + bool(below), 3))
        fields: dict[str, Any] = {name: rng.choice(tuple(SCALARS)) for name in names}
        if below:
            fields[names[-1]] = Bag(self._element(below - 1))
        return fields

    @property
    def columns(self) -> dict[str, Element]:
        """What functions and queries may read of a row, by name."""
        keys = dict(zip(self.key, ("INT", "STRING"), strict=False))
        return {**keys, "v": "STRING", **self.bags}

    @property
    def world(self) -> World:
        """What comprehensions may range over: the table `T`, and what is inside its rows."""
        return {"T": _type_of(self.columns)}

    @property
    def declared(self) -> str:
        """CREATE TABLE."""
        word, options = ("BAG", "") if self.marked else ("ARRAY", " WITH (nested = 'shredded')")
        columns = [
            f"{quoted(each)} {type_}"
            for each, type_ in zip(self.key, ("INT", "STRING"), strict=False)
        ]
        columns += ["v STRING", *([f"z {self.plain}"] if self.plain else [])]
        columns += [f"{quoted(name)} {bag.declared(word)}" for name, bag in self.bags.items()]
        key = ", ".join(map(quoted, self.key))
        return (
            f"CREATE TABLE {quoted(self.name)} ({', '.join(columns)}, PRIMARY KEY ({key})){options}"
        )

    def row(self, number: int) -> dict[str, Any]:
        """A random row."""
        keys = dict(zip(self.key, (number % 3, "ab"[number % 2]), strict=False))
        found = {**keys, "v": self.rng.choice((None, "p", "q"))}
        found |= {"z": self.rng.choice(ARRAYS[self.plain])} if self.plain else {}
        return found | {name: self.values(bag) for name, bag in self.bags.items()}

    def values(self, bag: Bag) -> list[Any]:
        """Random elements of a collection; some occur twice."""
        return [self.value(bag.element) for _ in range(self.rng.choice((0, 1, 2, 4)))]

    def value(self, element: Element) -> Any:
        """A random element."""
        if isinstance(element, Bag):
            return self.values(element)
        if isinstance(element, str):
            return self.rng.choice(SCALARS[element])
        return {name: self.value(each) for name, each in element.items()}

    def functions(self) -> Iterator[str]:
        """Functions over the table: one as nested as the table, and one per collection."""
        parts = ", ".join(
            f"len(t[{n!r}]), {_walk(b, f't[{n!r}]', 0)}" for n, b in self.bags.items()
        )
        yield f"[(t['k'], t['v'], {parts}) for t in T]"
        for name, bag in self.bags.items():
            loops, heads = _flat(bag, f"t[{name!r}]", 0)
            yield f"[({', '.join(('t[' + repr('v') + ']', *heads))},) for t in T{loops}]"


def _type_of(element: Element | dict[str, Element]) -> Type:
    """What functions see of elements of a type."""
    if isinstance(element, Bag):
        return [_type_of(element.element)]
    if isinstance(element, dict):
        fields = tuple((name, _type_of(each)) for name, each in element.items())
        return Record(fields, table="T")
    return {"INT": "int", "STRING": "str"}.get(element, "double")


def quoted(name: str) -> str:
    """A name in SQL."""
    return f"`{name.replace('`', '``')}`"


def _walk(bag: Bag, source: str, depth: int) -> str:
    e, element = f"e{depth}", bag.element
    if isinstance(element, str):
        return (
            f"[{e} for {e} in {source} if {e} != 1]"
            if element == "INT"
            else f"[{e} for {e} in {source}]"
        )
    if isinstance(element, Bag):
        return f"[(len({e}), {_walk(element, e, depth + 1)}) for {e} in {source}]"
    heads = [
        _walk(each, f"{e}[{name!r}]", depth + 1) if isinstance(each, Bag) else f"{e}[{name!r}]"
        for name, each in element.items()
    ]
    return f"[({', '.join(heads)},) for {e} in {source}]"


def _flat(bag: Bag, source: str, depth: int) -> tuple[str, list[str]]:
    e, element = f"e{depth}", bag.element
    loop = f" for {e} in {source}"
    if isinstance(element, str):
        return loop, [e]
    if isinstance(element, Bag):
        more, heads = _flat(element, e, depth + 1)
        return loop + more, heads
    heads = [f"{e}[{n!r}]" for n, each in element.items() if not isinstance(each, Bag)]
    for name, each in element.items():
        if isinstance(each, Bag):
            more, below = _flat(each, f"{e}[{name!r}]", depth + 1)
            return loop + more, [*heads, *below]
    return loop, heads


@dataclass
class Deep:
    """One deep update: where, what comes and what goes; `error` is the code of what is refused."""

    key: tuple[Any, ...]
    path: list[Any]
    insert: list[Any]
    delete: list[Any]
    error: str = ""


def deep_update(schema: Schema, rows: dict[tuple[Any, ...], dict[str, Any]]) -> Deep:
    """A random deep update of some row, which is made in the lists unless it is refused."""
    rng = schema.rng
    key = rng.choice([*rows])
    column = rng.choice([*schema.bags])
    bag, values, path = schema.bags[column], rows[key][column], [column]
    while values and (inner := _inner(bag)) is not None and rng.random() < 0.7:
        at = rng.randrange(len(values))
        below, name = inner
        element = values[at]
        if isinstance(bag.element, Bag):
            step, alike = copy.deepcopy(element), 1
            deeper = element
        else:
            step = {n: v for n, v in element.items() if n != name}
            alike = sum(same(step, {n: v for n, v in e.items() if n != name}) for e in values)
            deeper = element[name]
            step = tuple(step.values()) if rng.random() < 0.5 else step
        path += [step, name]
        if alike > 1:
            return Deep(key, path, [], [], "T017")
        bag, values = below, deeper
    insert = schema.values(bag)
    delete = rng.sample(values, min(len(values), rng.choice((0, 1, 2))))
    if rng.random() < 0.1:
        missing = schema.value(bag.element)
        if not any(same(missing, each) for each in values):
            return Deep(key, path, insert, [*delete, missing], "T011")
    for gone in delete:
        del values[next(at for at, each in enumerate(values) if each is gone or same(each, gone))]
    values += insert
    return Deep(key, path, insert, [*delete])


@dataclass
class Call:
    """A call of a transaction; `error` is the code of what is refused."""

    method: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def text(self) -> str:
        """The call as Python."""
        options = (f"{name}={value!r}" for name, value in self.options.items())
        refused = f"  # is refused: {self.error}" if self.error else ""
        return f"tx.{self.method}({', '.join([*map(repr, self.args), *options])}){refused}"


def random_call(schema: Schema, rows: dict[tuple[Any, ...], dict[str, Any]]) -> Call:
    """A random change of the table, which is made in the rows unless it is refused."""
    rng, row = schema.rng, schema.row(schema.rng.randrange(6))
    key, kind = tuple(row[name] for name in schema.key), schema.rng.random()
    if not rows or (key not in rows and kind < 0.3):
        rows[key] = row
        return Call("insert", (schema.name, [row]))
    if kind < 0.2:
        rows[key] = row
        return Call("upsert", (schema.name, [row]))
    if kind < 0.35:
        key = rng.choice([*rows])
        del rows[key]
        return Call("delete", (schema.name,), {"keys": [_one(key)]})
    if kind < 0.4:
        return Call("delete", (schema.name, [rows.pop(rng.choice([*rows]))]))
    deep = deep_update(schema, rows)
    path = deep.path if len(deep.path) > 1 else deep.path[0]
    given = {"insert": deep.insert, "delete": deep.delete}
    return Call("update_inner", (schema.name, _one(deep.key), path), given, deep.error)


def _one(key: tuple[Any, ...]) -> Any:
    return key if len(key) > 1 else key[0]


def same(left: Any, right: Any) -> bool:
    """Whether two elements are equal, as collections."""
    return bool(repr(canonical(_plain(left))) == repr(canonical(_plain(right))))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {n: _plain(v) for n, v in value.items()} if isinstance(value, dict) else value


def in_order(rows: Any) -> str:
    """Rows as a text that equal ones share."""
    return repr(canonical(_deep_plain(list(rows))))


def _deep_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_deep_plain, value))
    if isinstance(value, dict):
        return tuple(map(_deep_plain, value.values()))
    if isinstance(value, list):
        return list(map(_deep_plain, value))
    return value + 0.0 if isinstance(value, float) else value


def _inner(bag: Bag) -> tuple[Bag, str] | None:
    if isinstance(bag.element, Bag):
        return bag.element, "element"
    if isinstance(bag.element, dict):
        found = [(each, name) for name, each in bag.element.items() if isinstance(each, Bag)]
        return found[0] if found else None
    return None
