"""∇ and Δ evaluated from changes and slices: membership tests instead of mod(S) (§IV).

Evaluation begins at the rows of a change. Of any other set it asks for the slice that has the keys
of rows found so far, so that sub(S) and mod(S) are never made: x is in mod(S) if it is in ΔS, or in
S and not in ∇S. Only S × ∇T reads a set whole, since every row of it is in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, assert_never

from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    Mod,
    NaturalJoin,
    Nothing,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
)

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = frozenset[Row]
Names: TypeAlias = tuple[str, ...]
Holds: TypeAlias = Callable[[str, Mapping[str, Any]], bool]
"""Whether a condition is true of a row, given by the names of its columns."""


class StoredSets(Protocol):
    """The relations before a transaction, looked up by key, and what it changes in each."""

    def columns(self, name: str) -> Names:
        """The columns of a relation."""

    def slice(self, name: str, on: Names, keys: Collection[Row]) -> Rows:
        """The rows of a relation whose columns `on` have one of the keys; all, where on is ()."""

    def deleted(self, name: str) -> Rows:
        """∇R."""

    def inserted(self, name: str) -> Rows:
        """ΔR."""


@dataclass(slots=True)
class Slices:
    """Evaluates expressions over stored sets."""

    stored: StoredSets
    holds: Holds
    known: dict[int, tuple[Expression, Rows]] = field(default_factory=dict)
    """The rows of expressions, which may occur more than once, by identity."""

    def rows(self, expression: Expression) -> Rows:
        """All rows of an expression, found from the changes in it where there are some."""
        if id(expression) not in self.known:
            self.known[id(expression)] = expression, self._rows(expression)
        return self.known[id(expression)][1]

    def _rows(self, expression: Expression) -> Rows:
        match expression:
            case Nothing():
                return frozenset()
            case Relation(name):
                return self.stored.slice(name, (), {()})
            case Deleted(name):
                return self.stored.deleted(name)
            case Inserted(name):
                return self.stored.inserted(name)
            case Select(child, condition):
                return self._where(condition, child, self.rows(child))
            case Project(child, columns):
                return _picked(self.rows(child), self.columns(child), [own for own, _ in columns])
            case Union(left, right) | Add(left, right):
                return self.rows(left) | self.rows(right)
            case Difference(left, right) | Sub(left, right):
                return self.rows(left) - self._among(right, self.rows(left))
            case Mod(child, deleted, inserted):
                return (self.rows(child) - self.rows(deleted)) | self.rows(inserted)
            case Intersection(left, right) if is_driven(left) or not is_driven(right):
                return self._among(right, self.rows(left))
            case Intersection(left, right):
                return self._among(left, self.rows(right))
            case Product(left, right) | NaturalJoin(left, right):
                first, second = (left, right) if is_driven(left) else (right, left)
                common = self._common(left, right)
                found = self.rows(first)
                keys = _picked(found, self.columns(first), common)
                others = self.slice(second, common, keys) if found else frozenset()
                return self._paired(expression, {id(first): found, id(second): others})
            case _:
                assert_never(expression)

    def slice(self, expression: Expression, on: Names, keys: Collection[Row]) -> Rows:
        """The rows of an expression whose columns `on` have one of the keys."""
        if not on:
            return self.rows(expression) if keys else frozenset()
        match expression:
            case Nothing():
                return frozenset()
            case Relation(name):
                return self.stored.slice(name, on, keys)
            case Deleted() | Inserted():
                rows = self.rows(expression)
                return self._with_keys(rows, self.columns(expression), on, keys)
            case Select(child, condition):
                return self._where(condition, child, self.slice(child, on, keys))
            case Project(child, columns):
                own = {given: own for own, given in columns}
                found = self.slice(child, tuple(own[name] for name in on), keys)
                return _picked(found, self.columns(child), [each for each, _ in columns])
            case Union(left, right) | Add(left, right):
                return self.slice(left, on, keys) | self.slice(right, on, keys)
            case Difference(left, right) | Sub(left, right):
                found = self.slice(left, on, keys)
                return found - self._among(right, found)
            case Mod(child, deleted, inserted):
                found = self.slice(child, on, keys)
                return (found - self._among(deleted, found)) | self.slice(inserted, on, keys)
            case Intersection(left, right):
                return self._among(right, self.slice(left, on, keys))
            case Product() | NaturalJoin():
                return self._join_slice(expression, on, keys)
            case _:
                assert_never(expression)

    def columns(self, expression: Expression) -> Names:
        """The columns of an expression that has rows."""
        match expression:
            case Relation(name) | Deleted(name) | Inserted(name):
                return self.stored.columns(name)
            case Project(_, columns):
                return tuple(given for _, given in columns)
            case Product(left, right) | NaturalJoin(left, right):
                ours = self.columns(left)
                return (*ours, *(name for name in self.columns(right) if name not in ours))
            case Select(child) | Mod(child) | Add(child) | Sub(child):
                return self.columns(child)
            case Union(left) | Intersection(left) | Difference(left):
                return self.columns(left)
            case Nothing():
                return ()
            case _:
                assert_never(expression)

    def _common(self, left: Expression, right: Expression) -> Names:
        theirs = self.columns(right)
        return tuple(name for name in self.columns(left) if name in theirs)

    def _where(self, condition: str, child: Expression, rows: Rows) -> Rows:
        names = self.columns(child)
        return frozenset(r for r in rows if self.holds(condition, dict(zip(names, r, strict=True))))

    def _among(self, expression: Expression, rows: Rows) -> Rows:
        """Those of some rows that an expression has."""
        return self.slice(expression, self.columns(expression), rows) if rows else rows

    def _with_keys(self, rows: Rows, names: Names, on: Names, keys: Collection[Row]) -> Rows:
        places = [names.index(name) for name in on]
        return frozenset(row for row in rows if tuple(row[at] for at in places) in keys)

    def _join_slice(self, node: Product | NaturalJoin, on: Names, keys: Collection[Row]) -> Rows:
        """A slice of the side that has columns of the key, then what joins with it."""
        ours = self.columns(node.left)
        first, second = node.left, node.right
        if not any(name in ours for name in on):
            first, second = second, first
        names = self.columns(first)
        mine = tuple(name for name in on if name in names)
        found = self.slice(first, mine, _picked(keys, on, mine))
        common = self._common(node.left, node.right)
        others = self._partners(second, common, _picked(found, names, common), on, keys)
        paired = self._paired(node, {id(first): found, id(second): others})
        return self._with_keys(paired, self.columns(node), on, keys)

    def _partners(
        self, side: Expression, common: Names, found: Rows, on: Names, keys: Collection[Row]
    ) -> Rows:
        """The rows that join by the common columns; without such, those with the key."""
        if common or not found:
            return self.slice(side, common, found)
        names = self.columns(side)
        theirs = tuple(name for name in on if name in names)
        return self.slice(side, theirs, _picked(keys, on, theirs))

    def _paired(self, node: Product | NaturalJoin, rows: Mapping[int, Rows]) -> Rows:
        """The rows of both sides that are equal in common columns, side by side."""
        ours, theirs = self.columns(node.left), self.columns(node.right)
        common = self._common(node.left, node.right)
        kept = [at for at, name in enumerate(theirs) if name not in common]
        by_key: dict[Row, list[Row]] = {}
        for row in rows[id(node.right)]:
            key = tuple(row[theirs.index(name)] for name in common)
            by_key.setdefault(key, []).append(tuple(row[at] for at in kept))
        places = [ours.index(name) for name in common]
        return frozenset(
            (*row, *rest)
            for row in rows[id(node.left)]
            for rest in by_key.get(tuple(row[at] for at in places), ())
        )


def is_driven(expression: Expression) -> bool:
    """Whether all rows of an expression follow from the rows of changes, and are as few."""
    match expression:
        case Deleted() | Inserted() | Nothing():
            return True
        case Relation() | Mod() | Add():
            return False
        case Select(child) | Project(child) | Sub(child) | Difference(child):
            return is_driven(child)
        case Union(left, right):
            return is_driven(left) and is_driven(right)
        case Intersection(left, right) | NaturalJoin(left, right) | Product(left, right):
            return is_driven(left) or is_driven(right)
        case _:
            assert_never(expression)


def _picked(rows: Collection[Row], names: Names, wanted: Collection[str]) -> Rows:
    places = [names.index(name) for name in wanted]
    return frozenset(tuple(row[at] for at in places) for row in rows)
