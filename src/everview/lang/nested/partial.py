"""Partial shredding: which collections of a query have a dictionary, and arrays for the others.

A collection that reads no relation changes with its row alone: `auto` keeps it in the row, as an
array. So what is inside an array is in it too, and none of it is shared with another view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from everview.expr.types import names
from everview.lang.nested.dictionaries import Dictionaries
from everview.lang.nested.normal_form import (
    Call,
    Collection,
    ColumnOf,
    Comprehension,
    Head,
    Part,
    Total,
    Tuple,
)
from everview.lang.nested.rebuild import packed_element, spark_type
from everview.lang.nested.shred import Shredded
from everview.lang.nested.syntax import Const
from everview.lang.nested.types import Bag
from everview.lang.sql.lower.collections import collected, with_arrays
from everview.plan.build import distinct, project
from everview.plan.nodes import Output, Plan


def stored_relations(relations: Mapping[str, Shredded], mode: str) -> dict[str, Shredded]:
    """The relations that are stored, each after the one above it."""
    found: dict[str, Shredded] = {}
    for path, each in relations.items():
        own = mode == "shredded" or (mode == "auto" and _reads(path, relations))
        if not path or (each.above in found and (own or each.shared is not None)):
            found[path] = each
    return found


def _reads(path: str, relations: Mapping[str, Shredded]) -> bool:
    return any(_part_reads(member.part) for member in relations[path].members)


def _part_reads(part: Comprehension) -> bool:
    sources = [each.source for each in part.generators]
    if any(isinstance(each, str) for each in sources):
        return True
    inside = (*(each for each in sources if not isinstance(each, str)), *part.conditions)
    return any(map(_head_reads, inside)) or _head_reads(part.head)


def _head_reads(head: Head) -> bool:
    """Whether the value of a head changes when a relation does."""
    match head:
        case ColumnOf() | Const():
            return False
        case Part(child):
            return _head_reads(child)
        case Call(_, args):
            return any(map(_head_reads, args))
        case Tuple(fields):
            return any(_head_reads(each) for _, each in fields)
        case Total(_, collection):
            return _head_reads(collection)
        case Collection(parts):
            return any(map(_part_reads, parts))
        case _:
            assert_never(head)


@dataclass(frozen=True, slots=True)
class Partial:
    """The relations of a query, of which some are stored, over what is stored already."""

    dictionaries: Dictionaries
    apart: Mapping[str, Shredded]

    def plan(self, path: str) -> Plan:
        """The plan of a relation, with arrays in the place of collections without a dictionary."""
        plan = labelled = self._labelled(path)
        relations = self.dictionaries.relations
        shown = [*names(relations[path].labels)]
        for leaf in relations[path].leaves:
            if not isinstance(leaf.type, Bag):
                shown.append(leaf.path)
                continue
            below = relations[path].below(leaf)
            keys = names(relations[below].labels)
            if below in self.apart:
                shown += keys
                continue
            item = Output(
                leaf.path, spark_type(leaf.type.element), packed_element(leaf.type.element)
            )
            support = distinct(project(labelled, keys))
            arrays = collected(self.plan(below), support, keys, item)
            plan = with_arrays(plan, arrays, tuple((key, key) for key in keys), leaf.path)
            shown.append(leaf.path)
        return project(plan, tuple(shown))

    def _labelled(self, path: str) -> Plan:
        """The same with labels for all collections."""
        if not path or path in self.apart:
            return self.dictionaries.plan(path)
        above = self.dictionaries.relations[path].above
        stored = {**self.dictionaries.stored, above: self._labelled(above)}
        return replace(self.dictionaries, stored=stored).plan(path)
