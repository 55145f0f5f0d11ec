"""A stored collection of nested type: its relation, and those of the collections inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.expr.types import Column, Schema
from everview.lang.nested.types import Type


@dataclass(frozen=True, slots=True)
class Stored:
    """A flat relation, or the dictionary of a collection: what its columns are, and its elements.

    The columns of the `label` come first to a dictionary, as it calls them. A flat relation has no
    label.
    """

    relation: str
    label: Schema
    columns: Schema
    element: Type
    inside: tuple[Inside, ...] = ()

    def at(self, path: str) -> Inside | None:
        """The collection at a path of its elements; None for an array in its column."""
        return next((each for each in self.inside if each.path == path), None)

    def walk(self) -> Iterator[Stored]:
        """This and all that is inside it."""
        yield self
        for each in self.inside:
            yield from each.dictionary.walk()


@dataclass(frozen=True, slots=True)
class Inside:
    """A collection inside the elements of another: the columns there that have its label."""

    path: str
    label: tuple[str, ...]
    dictionary: Stored

    @property
    def columns(self) -> Schema:
        """The columns of its label there."""
        label = zip(self.label, self.dictionary.label, strict=True)
        return tuple(Column(name, column.type) for name, column in label)
