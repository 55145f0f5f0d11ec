"""Labels and dictionaries as values: shredding, rebuilding, and queries over shredded values.

Nested-collections §5 and App. C. A shredded value is a flat one, in which labels stand for bags,
and a dictionary that maps labels to flat bags. The support of a dictionary are its labels: one that
is mapped to the empty bag is not one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from everview.algebra.zset import ZSet
from everview.errors import UserError
from everview.lang.nested.evaluate import Inner, aggregate, apply, bag_of, component, times
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Let,
    Negate,
    Record,
    Rel,
    Sng,
    Times,
    Union,
    Var,
)
from everview.lang.nested.types import Bag, Product, Type


@dataclass(frozen=True, slots=True)
class Label:
    """⟨ι, ε⟩: a static index, and the values that the bag depends on."""

    index: str
    values: tuple[Any, ...]


Dictionary: TypeAlias = Mapping[Label, Inner]
"""Labels and their flat bags; the keys are the support."""


def label_union(left: Dictionary, right: Dictionary) -> dict[Label, Inner]:
    """d ∪ d': the definitions of both, which must agree where both define a label (§5.2)."""
    for label in left.keys() & right.keys():
        if left[label] != right[label]:
            raise UserError(
                "N009",
                f"{label} has two definitions",
                remedy="add changes of a dictionary with ⊎: ∪ changes no definition",
            )
    return {**left, **right}


def add_dictionaries(left: Dictionary, right: Dictionary) -> dict[Label, Inner]:
    """d ⊎ d': the bags of each label added; the only way to change a definition."""
    labels = [*left, *(label for label in right if label not in left)]
    return {
        each: _add(left.get(each, frozenset()), right.get(each, frozenset())) for each in labels
    }


ShreddedBag: TypeAlias = tuple[ZSet[Any], Dictionary]
"""A flat bag, and the dictionary of its labels."""


def must_be_consistent(bags: Sequence[ShreddedBag]) -> None:
    """Def. 1: every label in use is defined, and equal labels are defined equally."""
    every: dict[Label, Inner] = {}
    for flat, dictionary in bags:
        every = label_union(every, dictionary)
        if undefined := undefined_labels(flat, dictionary):
            raise _inconsistent(f"{min(map(str, undefined))} has no definition")


def must_keep_consistency(updates: Sequence[ShreddedBag], bags: Sequence[ShreddedBag]) -> None:
    """Def. 2: a label of several bags is updated in all of them or none, and new labels are fresh.

    The first update is that of the first bag, and so on.
    """
    must_be_consistent(bags)
    must_be_consistent(updates)
    defined = [dictionary.keys() for _, dictionary in bags]
    changed = [dictionary.keys() for _, dictionary in updates]
    for own, update in zip(defined, changed, strict=True):
        for other, other_update in zip(defined, changed, strict=True):
            if half := (update & own & other) - other_update:
                raise _inconsistent(f"{min(map(str, half))} is updated in one bag of several")
            if taken := (update - own) & other:
                raise _inconsistent(f"{min(map(str, taken))} is the label of another bag")


def _inconsistent(problem: str) -> UserError:
    remedy = "update a label wherever it is defined, and give new bags labels that nothing has"
    return UserError("N009", problem, remedy=remedy)


def shred_value(bag: ZSet[Any], element: Type, path: str) -> tuple[ZSet[Any], dict[Label, Inner]]:
    """A bag with a label for every inner bag that is met, and their dictionary: s^F and s^Γ.

    Labels go by occurrence, not by value: a deep update of one bag changes no other that happens to
    be equal.
    """
    found: dict[Label, Inner] = {}
    flat = _shred_bag(frozenset(bag), element, path, (), found)
    return ZSet(flat), found


def _shred_bag(
    bag: Inner, element: Type, path: str, place_: tuple[int, ...], found: dict[Label, Inner]
) -> Inner:
    rows = enumerate(sorted(bag, key=repr))
    flat = [(_shred(value, element, path, (*place_, n), found), w) for n, (value, w) in rows]
    return bag_of(flat)


def _shred(
    value: Any, type_: Type, path: str, place_: tuple[int, ...], found: dict[Label, Inner]
) -> Any:
    match type_:
        case Product(fields):
            known = dict(value)
            return tuple(
                (name, _shred(known[name], each, f"{path}.{name}", place_, found))
                for name, each in fields
            )
        case Bag(element):
            label = Label(path, place_)
            found[label] = _shred_bag(value, element, f"{path}.", place_, found)
            return label
        case _:
            return value


def nest(flat: ZSet[Any], element: Type, dictionary: Dictionary) -> ZSet[Any]:
    """The nested form of a shredded bag: u of §5.1. Nesting after shredding is the identity."""
    return ZSet(_nest_bag(frozenset(flat), element, dictionary))


def _nest_bag(bag: Inner, element: Type, dictionary: Dictionary) -> Inner:
    return bag_of([(_nest(value, element, dictionary), w) for value, w in bag])


def _nest(value: Any, type_: Type, dictionary: Dictionary) -> Any:
    match type_:
        case Product(fields):
            known = dict(value)
            return tuple((name, _nest(known[name], each, dictionary)) for name, each in fields)
        case Bag(element):
            return _nest_bag(dictionary[value], element, dictionary)
        case _:
            return value


def undefined_labels(flat: ZSet[Any], dictionary: Dictionary) -> frozenset[Label]:
    """The labels in use that have no definition: a shredded value without any is consistent."""
    waiting, seen = [value for value, _ in flat], set[Label]()
    while waiting:
        for label in _labels(waiting.pop()):
            if label not in seen:
                seen.add(label)
                waiting += (value for value, _ in dictionary.get(label, ()))
    return frozenset(seen - dictionary.keys())


def _labels(value: Any) -> Iterator[Label]:
    if isinstance(value, Label):
        yield value
    elif isinstance(value, tuple):
        for _, each in value:
            yield from _labels(each)


def evaluate_shredded(
    expr: Expr, flat: Mapping[str, ZSet[Any]], dictionary: Dictionary
) -> tuple[ZSet[Any], dict[Label, Inner]]:
    """A query over shredded relations: its flat bag, and a definition for every label in it.

    This is Fig. 6, as an evaluation. An inner bag becomes ⟨ι, ε⟩, with one ι for each place where
    one is built, and all element variables around it in ε.
    """
    run = _Shredding(flat, dictionary)
    found = run.bag(expr, {}, ())
    return ZSet(found), run.definitions_of(found)


Environment: TypeAlias = Mapping[str, Any]
Place: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class _Shredding:
    """One evaluation; `made` has the expression and the variables of each label."""

    relations: Mapping[str, ZSet[Any]]
    dictionary: Dictionary
    made: dict[Label, tuple[Expr, Environment, Place]] = field(default_factory=dict)

    def definitions_of(self, flat: Inner) -> dict[Label, Inner]:
        found: dict[Label, Inner] = {}
        waiting = [value for value, _ in flat]
        while waiting:
            for label in _labels(waiting.pop()):
                if label not in found:
                    found[label] = self.lookup(label)
                    waiting += (value for value, _ in found[label])
        return found

    def lookup(self, label: Label) -> Inner:
        if label in self.dictionary:
            return self.dictionary[label]
        expr, env, place_ = self.made[label]
        return self.bag(expr, env, place_)

    def bag(self, expr: Expr, env: Environment, at: Place) -> Inner:
        """The flat bag of an expression; a label in the place of a bag is looked up."""
        match expr:
            case Rel(name):
                return frozenset(self.relations[name])
            case Let(name, bound, body):
                return self.bag(body, {**env, name: self.bag(bound, env, (*at, 0))}, (*at, 1))
            case For(name, source, where, body):
                found: list[tuple[Any, int]] = []
                for each, weight in self.bag(source, env, (*at, 0)):
                    inner = {**env, name: each}
                    if where is None or self.element(where, inner, (*at, 1)):
                        found += ((v, w * weight) for v, w in self.bag(body, inner, (*at, 2)))
                return bag_of(found)
            case Var(name) if isinstance(env[name], frozenset):
                return env[name]  # type: ignore[no-any-return]
            case Sng(item):
                return frozenset([(self.element(item, env, (*at, 0)), 1)])
            case Empty():
                return frozenset()
            case Union(left, right):
                return _add(self.bag(left, env, (*at, 0)), self.bag(right, env, (*at, 1)))
            case Negate(child):
                return frozenset((v, -w) for v, w in self.bag(child, env, (*at, 0)))
            case Times(left, right):
                return times(self.bag(left, env, (*at, 0)), self.bag(right, env, (*at, 1)))
            case Flatten(child):
                outer = self.bag(child, env, (*at, 0))
                return bag_of([(v, x * w) for label, w in outer for v, x in self.lookup(label)])
            case Choice(test, then, otherwise):
                holds = self.element(test, env, (*at, 0))
                branch = (then, (*at, 1)) if holds else (otherwise, (*at, 2))
                return self.bag(branch[0], env, branch[1])
            case _:
                value = self.element(expr, env, at)
                return self.lookup(value) if isinstance(value, Label) else value

    def element(self, expr: Expr, env: Environment, at: Place) -> Any:
        """The flat value of an element; a bag that is built here becomes a label."""
        match expr:
            case Var(name) if not isinstance(env[name], frozenset):
                return env[name]
            case Const(value):
                return value
            case Field(child, name):
                return component(self.element(child, env, (*at, 0)), name)
            case Record(fields):
                parts = enumerate(fields)
                return tuple((n, self.element(each, env, (*at, i))) for i, (n, each) in parts)
            case Apply(function, args):
                below = enumerate(args)
                return apply(
                    function, [partial(self.element, each, env, (*at, i)) for i, each in below]
                )
            case Aggregate(function, child):
                return aggregate(function, self.bag(child, env, (*at, 0)))
            case Choice(test, then, otherwise):
                holds = self.element(test, env, (*at, 0))
                branch = (then, (*at, 1)) if holds else (otherwise, (*at, 2))
                return self.element(branch[0], env, branch[1])
            case _:
                elements = (e for e in env.items() if not isinstance(e[1], frozenset))
                label = Label(f"ι{at}", tuple(sorted(elements, key=lambda e: e[0])))
                self.made[label] = (expr, env, at)
                return label


def _add(left: Inner, right: Inner) -> Inner:
    return bag_of([*left, *right])
