"""Shredding: a query of nested type as one flat relation and a dictionary for each nested bag.

An inner bag is replaced by its label ⟨ι, ε⟩: ι counts the occurrences of `sng` at a place of the
result, and ε are the values that the bag depends on, which are columns of the variables around it.
So equal labels have equal bags. The dictionary of a place maps labels to bags, as rows of label and
element. Its support are the labels in the relation above it: a label without rows has the empty
bag (nested-collections §5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everview.errors import UserError
from everview.expr.types import Column, Schema, storable_type, unusable_name
from everview.lang.nested.normal_form import (
    Collection,
    ColumnOf,
    Comprehension,
    Head,
    Lookup,
    Tuple,
    free_columns,
)
from everview.lang.nested.stored import Inside, Stored
from everview.lang.nested.types import ELEMENT, Bag, Base, Product, Type, shown

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A component of an element that is no tuple: where it is, and its type."""

    path: str
    type: Base | Bag

    def of(self, head: Head) -> Head:
        """The component of the head of a comprehension."""
        for name in self.path.split("."):
            if isinstance(head, Tuple):
                head = dict(head.fields)[name]
        return head


def leaves(element: Type) -> tuple[Leaf, ...]:
    """The components of an element; one that is no tuple is its only component."""
    if not isinstance(element, Product):
        return (Leaf(ELEMENT, element),)
    return tuple(_leaves(element, ()))


def _leaves(type_: Product, above: tuple[str, ...]) -> Iterator[Leaf]:
    for name, each in type_.fields:
        if isinstance(each, Product):
            yield from _leaves(each, (*above, name))
        else:
            yield Leaf(".".join((*above, name)), each)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A bag in the head of a comprehension: its number ι, and the columns ε that it depends on.

    `member` is the number of the comprehension in the relation above.
    """

    number: int
    member: int
    columns: tuple[Column, ...]
    values: tuple[ColumnOf, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A comprehension that gives rows of a relation, under an occurrence in a dictionary."""

    part: Comprehension
    under: Occurrence | None = None


@dataclass(frozen=True, slots=True)
class Shredded:
    """One relation of a shredded query: the flat one, at no path, or the dictionary at a path.

    A dictionary that is `shared` is that of a collection which is stored already. It has no
    occurrence here if the relation above is shared too.
    """

    path: str
    above: str
    element: Type
    occurrences: tuple[Occurrence, ...]
    members: tuple[Member, ...]
    shared: Inside | None = None

    @property
    def branch(self) -> str:
        """The column with the number of the occurrence, where there is one."""
        if self.shared is not None:
            return ""
        several = len(self.occurrences) > 1
        return f"{self.path}#" if several or any(not o.columns for o in self.occurrences) else ""

    @property
    def labels(self) -> Schema:
        """The columns of the label, as the relation above calls them."""
        if self.shared is not None:
            return self.shared.columns
        branch = (Column(self.branch, "int"),) if self.branch else ()
        return branch + tuple(dict.fromkeys(c for each in self.occurrences for c in each.columns))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The components of its elements."""
        return leaves(self.element)

    def below(self, leaf: Leaf) -> str:
        """The path of the dictionary of a component that is a bag."""
        return f"{self.path}.{leaf.path}" if self.path else leaf.path


def shred(collection: Collection, element: Type, *, shares: bool = True) -> tuple[Shredded, ...]:
    """The relations of a query in normal form, each after the one above it.

    Where it `shares`, a collection that is stored already keeps its dictionary.
    """
    _must_be_storable(element)
    flat = Shredded("", "", element, (), tuple(map(Member, collection.parts)))
    return (flat, *_dictionaries(flat, {}, shares=shares))


def relation_of(view: str, part: Shredded) -> str:
    """The name of the relation that holds a part of a view."""
    if part.shared is not None:
        return part.shared.dictionary.relation
    return f"{view}.{part.path}" if part.path else view


def _dictionaries(
    relation: Shredded, types: dict[ColumnOf, str], *, shares: bool
) -> Iterator[Shredded]:
    for member in relation.members:
        for each in member.part.generators:
            types |= {ColumnOf(each.variable, c.name): c.type for c in each.columns}
    for leaf in relation.leaves:
        if isinstance(leaf.type, Bag) and not _is_array(relation, leaf):
            found = _dictionary(relation, leaf, leaf.type, types, shares=shares)
            yield found
            yield from _dictionaries(found, types, shares=shares)


def _is_array(relation: Shredded, leaf: Leaf) -> bool:
    """Whether a collection is an array in the elements of a dictionary that is shared."""
    return relation.shared is not None and relation.shared.dictionary.at(leaf.path) is None


def _dictionary(
    relation: Shredded, leaf: Leaf, type_: Bag, types: dict[ColumnOf, str], *, shares: bool
) -> Shredded:
    path = relation.below(leaf)
    if relation.shared is not None:
        inside = relation.shared.dictionary.at(leaf.path)
        return Shredded(path, relation.path, type_.element, (), (), inside)
    if shares and (lookups := _lookups(relation, leaf)):
        inside = _shared(path, lookups[0].dictionary)
        labels = (each.label for each in lookups)
        references = (Occurrence(n, n, inside.columns, each) for n, each in enumerate(labels))
        return Shredded(path, relation.path, type_.element, tuple(references), (), inside)
    occurrences: list[Occurrence] = []
    members: list[Member] = []
    for number, member in enumerate(relation.members):
        bag = leaf.of(member.part.head)
        assert isinstance(bag, Collection)
        free = free_columns(bag)
        values = tuple(column for column in types if column in free)
        columns = (Column(f"{path}#{c.variable}.{c.name}", types[c]) for c in values)
        found = Occurrence(len(occurrences), number, tuple(columns), values)
        occurrences.append(found)
        members += (Member(part, found) for part in bag.parts)
    return Shredded(path, relation.path, type_.element, tuple(occurrences), tuple(members))


def _lookups(relation: Shredded, leaf: Leaf) -> list[Lookup]:
    """The bags at a place, if all of them are in one stored dictionary."""
    bags = [leaf.of(member.part.head) for member in relation.members]
    lookups = [b.lookup for b in bags if isinstance(b, Collection) and b.lookup is not None]
    stored = {each.dictionary.relation for each in lookups}
    return lookups if len(lookups) == len(bags) and len(stored) == 1 else []


def _shared(path: str, dictionary: Stored) -> Inside:
    """A stored dictionary at a path, the columns of its label called after that."""
    own = (c.name.partition("#")[2] if "#" in c.name else c.name for c in dictionary.label)
    return Inside(path, tuple(f"{path}#{name}" for name in own), dictionary)


def _must_be_storable(type_: Type) -> None:
    match type_:
        case Base(name):
            if storable_type(name) is None:
                problem = "the elements of an empty collection" if name == "?" else "a value"
                raise UserError(
                    "N005",
                    f"{problem} of the result may have any type: {shown(type_)}",
                    remedy="leave it out, or give it a value of the type that is meant",
                )
        case Bag(element):
            _must_be_storable(element)
        case Product(fields):
            seen: set[str] = set()
            for name, each in fields:
                if not _PLAIN.fullmatch(name) or name.lower() in seen or unusable_name(name):
                    raise UserError(
                        "N006",
                        f"the result has a component called {name!r}",
                        remedy="give every component a plain name of its own: dict(name=…)",
                    )
                seen.add(name.lower())
                _must_be_storable(each)
            if not fields:
                raise UserError(
                    "N005",
                    "the result has a tuple without components",
                    remedy="give it a component",
                )
