"""Random queries of tables with collections in SQL, and what they mean as Python comprehensions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from everview_fuzz.nested.collections import Bag, Element, quoted
from everview_fuzz.nested.comprehensions import Missing

CONSTANTS = {"INT": ("0", "1", "2"), "STRING": ("''", "'a'", "'p'")}
WALKED = 0.5
"""How often one more collection is walked through in FROM."""


@dataclass(frozen=True)
class Value:
    """A value as SQL and as Python, and its type."""

    sql: str
    python: str
    type: Element


@dataclass(frozen=True)
class Query:
    """A query in SQL, the same as a Python function of all that it may read, and its columns."""

    sql: str
    python: str
    columns: Mapping[str, Element]


class Queries:
    """Draws queries over tables: by name, what SQL calls them, and their columns."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.numbers = rng, count()
        self.tables: dict[str, tuple[str, Mapping[str, Element]]] = {}

    def add(self, name: str, called: str, columns: Mapping[str, Element]) -> None:
        """One more table, or view over the others."""
        self.tables[name] = called, columns

    def query(self) -> Query:
        """A random query with its meaning."""
        source, loops, scope = self._source([*self.tables][-1] if self._chance(0.5) else "T")
        where = [self.condition(scope)] if self._chance(0.5) else []
        scalars = self._scalars(scope)
        if scalars and self._chance(0.25):
            key, item = self.rng.choice(scalars), self._item(scalars)
            sql = f"SELECT {key.sql} AS c0, COUNT(*) AS c1, collect_list({item.sql}) AS c2"
            sql += f" FROM {source}{_where(where)} GROUP BY {key.sql}"
            python = f"grouped([({key.python}, {item.python}){loops}{_ifs(where)}])"
            return self._made(sql, python, {"c0": key.type, "c1": "INT", "c2": Bag(item.type)})
        values = [self.value(scope, 3) for _ in range(self.rng.randint(1, 3))]
        shown = ", ".join(f"{each.sql} AS c{at}" for at, each in enumerate(values))
        parts = ", ".join(each.python for each in values)
        columns = {f"c{at}": each.type for at, each in enumerate(values)}
        sql = f"SELECT {shown} FROM {source}{_where(where)}"
        return self._made(sql, f"[({parts},){loops}{_ifs(where)}]", columns)

    def _item(self, scalars: list[Value]) -> Value:
        """What a group collects: a value, or a struct of two."""
        one, other = self.rng.choice(scalars), self.rng.choice(scalars)
        if self._chance(0.5):
            return one
        return Value(
            f"struct({one.sql} AS x, {other.sql} AS y)",
            f"Row(x={one.python}, y={other.python})",
            {"x": one.type, "y": other.type},
        )

    def _made(self, sql: str, python: str, columns: Mapping[str, Element]) -> Query:
        given = ", ".join(self.tables)
        return Query(sql, f"def query({given}):\n    return {python}\n", columns)

    def _chance(self, often: float) -> bool:
        return self.rng.random() < often

    def _fresh(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def _source(self, table: str) -> tuple[str, str, list[Value]]:
        """A table in FROM with some of its collections walked through, and what that binds."""
        called, columns = self.tables[table]
        alias = self._fresh("t")
        scope = [Value(alias, alias, dict(columns))]
        sql, loops = f"{quoted(called)} AS {alias}", f" for {alias} in {table}"
        views = self._chance(0.5)
        while (inside := self._collections(scope)) and self._chance(WALKED):
            chosen, name = self.rng.choice(inside), self._fresh("e")
            assert isinstance(chosen.type, Bag)
            element = Value(name, name, chosen.type.element)
            call, walked = f"explode({chosen.sql})", self._fresh("f")
            outer = views and not isinstance(element.type, Bag) and self._chance(0.3)
            if outer:
                element = replace(element, type=_plain(element.type))
                loops += f" for {name} in ({chosen.python} or [MISSING])"
            else:
                loops += f" for {name} in {chosen.python}"
            if views:
                sql += f" LATERAL VIEW {'OUTER ' * outer}{call} {walked} AS {name}"
            elif self._chance(0.5):
                sql += f", LATERAL {call} AS {walked}({name})"
            else:
                test = self.condition([*scope, element])
                sql += f" JOIN LATERAL {call} AS {walked}({name}) ON {test.sql}"
                loops += f" if {test.python}"
            scope.append(element)
            if not views and self._chance(0.3):
                joined, more = self._joined(scope)
                sql, loops = sql + joined, loops + more
        return sql, loops, scope

    def _joined(self, scope: list[Value]) -> tuple[str, str]:
        """The table once more, joined by what is equal."""
        called, columns = self.tables["T"]
        alias = self._fresh("t")
        other = Value(alias, alias, dict(columns))
        pairs = [
            (a, b) for a in self._scalars(scope) for b in self._scalars([other]) if a.type == b.type
        ]
        scope.append(other)
        a, b = self.rng.choice(pairs) if pairs else (Value("1", "1", "INT"),) * 2
        sql = f" JOIN {quoted(called)} AS {alias} ON {a.sql} <=> {b.sql}"
        return sql, f" for {alias} in T if {a.python} == {b.python}"

    def _parts(self, scope: Iterable[Value]) -> list[Value]:
        """The components of records in scope, and what is no record."""
        found = []
        for each in scope:
            if isinstance(each.type, dict):
                found += [
                    Value(f"{each.sql}.{quoted(name)}", f"{each.python}[{name!r}]", type_)
                    for name, type_ in each.type.items()
                ]
            else:
                found.append(each)
        return found

    def _collections(self, scope: Iterable[Value]) -> list[Value]:
        return [each for each in self._parts(scope) if isinstance(each.type, Bag)]

    def _scalars(self, scope: Iterable[Value]) -> list[Value]:
        return [each for each in self._parts(scope) if each.type in ("INT", "STRING")]

    def collection(self, scope: list[Value], type_: Element) -> Value:
        """A value for a collection: one in scope of its type, some of its elements, or none."""
        alike = [each for each in self._collections(scope) if each.type == type_]
        if not alike or self._chance(0.2):
            return Value("ARRAY()", "[]", type_)
        chosen, name = self.rng.choice(alike), self._fresh("e")
        assert isinstance(chosen.type, Bag)
        if self._chance(0.3):
            return chosen
        test = self.condition([Value(name, name, chosen.type.element)])
        return Value(
            f"ARRAY(SELECT {name} FROM explode({chosen.sql}) AS {self._fresh('f')}({name}) "
            f"WHERE {test.sql})",
            f"[{name} for {name} in {chosen.python} if {test.python}]",
            type_,
        )

    def condition(self, scope: list[Value]) -> Value:
        """A condition, for WHERE alone: what is unknown to SQL is false here."""
        scalars, bags = self._scalars(scope), self._collections(scope)
        if bags and (not scalars or self._chance(0.4)):
            return self._condition_inside(self.rng.choice(bags))
        if not scalars:
            return Value("1 = 1", "True", "BOOLEAN")
        left = self.rng.choice(scalars)
        others = [each for each in scalars if each.type == left.type and each != left]
        constant = self.rng.choice(CONSTANTS[str(left.type)])
        right = Value(constant, constant, left.type)
        right = self.rng.choice(others) if others and self._chance(0.4) else right
        signs = (
            (("<=>", "=="), ("<", "<"), (">=", ">=")) if left.type == "INT" else (("<=>", "=="),)
        )
        sql, python = self.rng.choice(signs)
        return Value(
            f"{left.sql} {sql} {right.sql}", f"{left.python} {python} {right.python}", "BOOLEAN"
        )

    def _condition_inside(self, bag: Value) -> Value:
        """A condition on the size or the elements of a collection."""
        assert isinstance(bag.type, Bag)
        if self._chance(0.5):
            size = self.rng.randint(0, 2)
            return Value(f"size({bag.sql}) > {size}", f"len({bag.python}) > {size}", "BOOLEAN")
        name, alias = self._fresh("e"), self._fresh("f")
        test = self.condition([Value(name, name, bag.type.element)])
        rows = f"SELECT 1 FROM explode({bag.sql}) AS {alias}({name}) WHERE {test.sql}"
        return Value(
            f"EXISTS ({rows})", f"any({test.python} for {name} in {bag.python})", "BOOLEAN"
        )

    def value(self, scope: list[Value], depth: int) -> Value:
        """A column: a component, how many elements there are, a collection, or one made here."""
        kind, parts, bags = self.rng.random(), self._parts(scope), self._collections(scope)
        if depth and kind < 0.35:
            return self._array(scope, depth - 1)
        if bags and kind < 0.55:
            chosen = self.rng.choice(bags)
            return Value(f"size({chosen.sql})", f"len({chosen.python})", "INT")
        elements = [each for each in scope[1:] if isinstance(each.type, dict)]
        if elements and kind < 0.65:
            return self.rng.choice(elements)
        return self.rng.choice(parts)

    def _array(self, scope: list[Value], depth: int) -> Value:
        """ARRAY(SELECT …) over a table, or over the elements of a collection in scope."""
        bags = self._collections(scope)
        if bags and self._chance(0.4):
            chosen, name = self.rng.choice(bags), self._fresh("e")
            assert isinstance(chosen.type, Bag)
            source = f"explode({chosen.sql}) AS {self._fresh('f')}({name})"
            loops, inner = (
                f" for {name} in {chosen.python}",
                [Value(name, name, chosen.type.element)],
            )
        else:
            table = "T" if self._chance(0.6) else self.rng.choice([*self.tables])
            source, loops, inner = self._source(table)
        where = [self.condition(inner)]
        own, outer = self._scalars(inner), self._scalars(scope)
        pairs = [(a, b) for a in own for b in outer if a.type == b.type]
        if pairs:
            a, b = self.rng.choice(pairs)
            where.append(Value(f"{a.sql} <=> {b.sql}", f"{a.python} == {b.python}", "BOOLEAN"))
        values = [self.value(inner, depth) for _ in range(self.rng.choice((1, 1, 2)))]
        shown = ", ".join(f"{each.sql} AS d{at}" for at, each in enumerate(values))
        element: Element = values[0].type
        python = values[0].python
        if len(values) > 1:
            element = {f"d{at}": each.type for at, each in enumerate(values)}
            python = f"Row({', '.join(f'd{at}={v.python}' for at, v in enumerate(values))})"
        word = self.rng.choice(("ARRAY", "MULTISET"))
        return Value(
            f"{word}(SELECT {shown} FROM {source}{_where(where)})",
            f"[{python}{loops}{_ifs(where)}]",
            Bag(element),
        )


def _plain(element: Element) -> Element:
    """A type without the collections inside it, which are NULL where there is no element."""
    if not isinstance(element, dict):
        return element
    return {name: each for name, each in element.items() if not isinstance(each, Bag)}


def _where(conditions: list[Value]) -> str:
    return f" WHERE {' AND '.join(each.sql for each in conditions)}" if conditions else ""


def _ifs(conditions: list[Value]) -> str:
    return "".join(f" if {each.python}" for each in conditions)


def grouped(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, int, list[Any]]]:
    """Each key with how often it is there, and the values that are there with it."""
    found: list[tuple[Any, list[Any]]] = []
    for key, value in pairs:
        group = next((each for each in found if each[0] == key), None)
        if group is None:
            group = key, []
            found.append(group)
        group[1].append(value)
    return [
        (key, len(values), [each for each in values if not isinstance(each, Missing | None)])
        for key, values in found
    ]
