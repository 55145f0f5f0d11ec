"""The normal form of a query: sums of comprehensions over stored relations, computed by evaluation.

Variables are replaced by what they stand for, so that no intermediate collection is left: bags
occur in the heads of comprehensions, as inner collections of the result, and under aggregates.
This is normalisation by evaluation with the laws of NRC, such as

    for x in (for y in e union e') union e'' = for y in e union for x in e' union e''
    for x in sng(t) union e = e[x := t]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias, assert_never

from everview.expr.types import Column, Schema, element_of, fields_of
from everview.lang.nested.stored import Stored
from everview.lang.nested.syntax import (
    Aggregate,
    AggregateName,
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
from everview.lang.nested.types import ELEMENT, Bag, Product, Type, place


@dataclass(frozen=True, slots=True)
class ColumnOf:
    """A column of the element that a generator ranges over."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a struct of the database."""

    child: Term
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A primitive of base values; `if` is one too."""

    function: str
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate of a collection."""

    function: AggregateName
    collection: Collection


Term: TypeAlias = ColumnOf | Part | Const | Call | Total
"""A base value."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A variable that ranges over the rows of a relation, or over the elements of an array."""

    variable: str
    source: str | Term
    columns: Schema


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple in the head of a comprehension."""

    fields: tuple[tuple[str, Head], ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """The heads for all values of the generators that satisfy the conditions."""

    generators: tuple[Generator, ...]
    conditions: tuple[Term, ...]
    head: Head
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a stored dictionary has under a label."""

    dictionary: Stored
    label: tuple[ColumnOf, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """The sum of comprehensions; `lookup` says so where it is the whole of a stored collection."""

    parts: tuple[Comprehension, ...]
    lookup: Lookup | None = None


Head: TypeAlias = Term | Tuple | Collection


def normal_form(
    expr: Expr,
    element: Type,
    relations: Mapping[str, Schema],
    nested: Mapping[str, Stored] | None = None,
) -> Collection:
    """The normal form of an expression that has the type of a bag of such elements.

    The relations that are `nested` have collections inside, in relations of their own.
    """
    evaluation = _Evaluation(relations, nested or {}, {})
    found = evaluation.typed(evaluation.value(expr, {}), Bag(element))
    assert isinstance(found, Collection)
    return found


Around: TypeAlias = Mapping[str, Callable[[], Head]]
"""What variables stand for, made where they are used, with new variables each time."""


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """Evaluates symbolically; `types` are those of the columns of all variables made so far."""

    relations: Mapping[str, Schema]
    nested: Mapping[str, Stored]
    types: dict[ColumnOf, str]

    def value(self, expr: Expr, around: Around) -> Head:
        match expr:
            case Rel(name):
                return Collection((self._over_relation(name, name),))
            case Var(name):
                return around[name]()
            case Const():
                return expr
            case Let(name, bound, body):
                return self.value(body, {**around, name: lambda: self.value(bound, around)})
            case For():
                return self._for(expr, around)
            case Sng(item):
                return Collection((Comprehension((), (), self.value(item, around)),))
            case Empty():
                return Collection(())
            case Union(left, right):
                return Collection(self.parts(left, around) + self.parts(right, around))
            case Negate(child):
                parts = self.parts(child, around)
                return Collection(tuple(replace(p, negative=not p.negative) for p in parts))
            case Times(left, right):
                return self._times(left, right, around)
            case Flatten(child):
                outer = self.parts(child, around)
                inner = (_within(each, part) for each in outer for part in self._bag(each.head))
                return Collection(tuple(inner))
            case Record(fields):
                return Tuple(tuple((name, self.value(each, around)) for name, each in fields))
            case Field(child, name):
                return _component(self.value(child, around), name)
            case Apply(function, args):
                return Call(function, tuple(self.term(each, around) for each in args))
            case Choice(test, then, otherwise):
                condition = self.term(test, around)
                heads = self.value(then, around), self.value(otherwise, around)
                return self._choice(condition, *heads)
            case Aggregate(function, child):
                return Total(function, Collection(self.parts(child, around)))
            case _:
                assert_never(expr)

    def parts(self, expr: Expr, around: Around) -> tuple[Comprehension, ...]:
        """The comprehensions of a bag; an array of the database is unnested."""
        return self._bag(self.value(expr, around))

    def term(self, expr: Expr, around: Around) -> Term:
        """A base value."""
        found = self.value(expr, around)
        assert not isinstance(found, Tuple | Collection)
        return found

    def typed(self, head: Head, type_: Type) -> Head:
        """A value in which what the type says is a bag or tuple is one, and no array or struct."""
        match type_, head:
            case Product(fields), Tuple(parts):
                known = dict(parts)
                return Tuple(tuple((n, self.typed(known[n], each)) for n, each in fields))
            case Bag(element), Collection(parts, lookup):
                if lookup is not None:
                    return head
                return Collection(
                    tuple(replace(each, head=self.typed(each.head, element)) for each in parts)
                )
            case ((Product() | Bag()), _):
                assert not isinstance(head, Tuple | Collection)
                return self._inside(head, type_)
        return head

    def _choice(self, test: Term, then: Head, otherwise: Head) -> Head:
        """if of base values, component by component; of bags, the sum of both under conditions."""
        if isinstance(then, Tuple) or isinstance(otherwise, Tuple):
            named = then if isinstance(then, Tuple) else otherwise
            assert isinstance(named, Tuple)
            parts = (
                (name, self._choice(test, _component(then, name), _component(otherwise, name)))
                for name, _ in named.fields
            )
            return Tuple(tuple(parts))
        if isinstance(then, Collection) or isinstance(otherwise, Collection):
            holds, fails = conjuncts(test), (negation(test),)
            first = (replace(p, conditions=holds + p.conditions) for p in self._bag(then))
            second = (replace(p, conditions=fails + p.conditions) for p in self._bag(otherwise))
            return Collection((*first, *second))
        return Call("if", (test, then, otherwise))

    def _bag(self, head: Head, variable: str = ELEMENT) -> tuple[Comprehension, ...]:
        if isinstance(head, Collection):
            return head.parts
        assert not isinstance(head, Tuple)
        if head == Const(None):
            return ()
        if isinstance(head, Call) and head.function == "if":
            test, then, otherwise = head.args
            sides = (
                Collection(self._bag(then, variable)),
                Collection(self._bag(otherwise, variable)),
            )
            found = self._choice(test, *sides)
            assert isinstance(found, Collection)
            return found.parts
        columns = (Column(ELEMENT, element_of(self._type(head)) or "void"),)
        generator = self._generator(variable, head, columns)
        return (Comprehension((generator,), (), ColumnOf(generator.variable, ELEMENT)),)

    def _for(self, expr: For, around: Around) -> Collection:
        if expr.where is None and expr.body == Sng(Var(expr.name)):
            return Collection(*self._whole(expr, around))
        found: list[Comprehension] = []
        for each in self._generated(expr, around):
            inner = {**around, expr.name: self._again(each.head)}
            test = () if expr.where is None else conjuncts(self.term(expr.where, inner))
            tested = replace(each, conditions=each.conditions + test)
            found += (_within(tested, part) for part in self.parts(expr.body, inner))
        return Collection(tuple(found))

    def _whole(self, expr: For, around: Around) -> tuple[tuple[Comprehension, ...], Lookup | None]:
        """for x in e union sng(x) is e."""
        if isinstance(expr.source, Rel):
            return self._generated(expr, around), None
        found = self.value(expr.source, around)
        lookup = found.lookup if isinstance(found, Collection) else None
        return self._bag(found, expr.name), lookup

    def _generated(self, expr: For, around: Around) -> tuple[Comprehension, ...]:
        """What a `for` ranges over; a new variable is called as the text calls it."""
        if isinstance(expr.source, Rel):
            return (self._over_relation(expr.source.name, expr.name),)
        return self._bag(self.value(expr.source, around), expr.name)

    def _times(self, left: Expr, right: Expr, around: Around) -> Collection:
        found: list[Comprehension] = []
        for each in self.parts(left, around):
            for other in self.parts(right, around):
                head = Tuple(((place(0), each.head), (place(1), other.head)))
                found.append(_within(each, replace(other, head=head)))
        return Collection(tuple(found))

    def _over_relation(self, name: str, variable: str) -> Comprehension:
        if name in self.nested:
            return self._over_stored(self.nested[name], variable, ())
        generator = self._generator(variable, name, self.relations[name])
        row = (ColumnOf(generator.variable, column.name) for column in generator.columns)
        return Comprehension((generator,), (), Tuple(tuple((each.name, each) for each in row)))

    def _over_stored(
        self, stored: Stored, variable: str, label: tuple[ColumnOf, ...]
    ) -> Comprehension:
        """The elements of a stored collection that have a label; a flat relation has none."""
        generator = self._generator(variable, stored.relation, stored.columns)
        own = (ColumnOf(generator.variable, each.name) for each in stored.label)
        conditions = (Call("==", pair) for pair in zip(own, label, strict=True))
        head = self._element(stored, stored.element, generator.variable, "")
        return Comprehension((generator,), tuple(conditions), head)

    def _element(self, stored: Stored, type_: Type, variable: str, path: str) -> Head:
        """An element of a stored collection, or the component of it at a path."""
        match type_:
            case Product(fields):
                below = ((name, f"{path}.{name}" if path else name) for name, _ in fields)
                parts = zip(below, (each for _, each in fields), strict=True)
                made = ((n, self._element(stored, t, variable, p)) for (n, p), t in parts)
                return Tuple(tuple(made))
            case Bag(element):
                inside = stored.at(path or ELEMENT)
                if inside is None:
                    return self._array(ColumnOf(variable, path or ELEMENT), element)
                label = tuple(ColumnOf(variable, each) for each in inside.label)
                name = inside.path.rpartition(".")[2]
                rows = self._over_stored(inside.dictionary, name, label)
                return Collection((rows,), Lookup(inside.dictionary, label))
            case _:
                return ColumnOf(variable, path or ELEMENT)

    def _array(self, array: Term, element: Type) -> Collection:
        """The elements of an array that a stored relation has in the place of a collection."""
        (part,) = self._bag(array)
        assert not isinstance(part.head, Tuple | Collection)
        return Collection((replace(part, head=self._inside(part.head, element)),))

    def _inside(self, value: Term, type_: Type) -> Head:
        """A value inside an array, of which structs are tuples and arrays are collections."""
        match type_:
            case Product(fields):
                parts = ((name, self._inside(Part(value, name), each)) for name, each in fields)
                return Tuple(tuple(parts))
            case Bag(element):
                return self._array(value, element)
            case _:
                return value

    def _generator(self, variable: str, source: str | Term, columns: Schema) -> Generator:
        """A generator with a variable of its own, whatever the case of its letters."""
        used = {column.variable.lower() for column in self.types}
        fresh, count = variable, 1
        while fresh.lower() in used:
            count += 1
            fresh = f"{variable}_{count}"
        self.types.update({ColumnOf(fresh, each.name): each.type for each in columns})
        return Generator(fresh, source, columns)

    def _again(self, head: Head) -> Callable[[], Head]:
        """A head for each use of a variable: bags inside it range over variables of their own."""
        return lambda: self._renamed(head, {})

    def _renamed(self, head: Head, names: Mapping[str, str]) -> Head:
        match head:
            case ColumnOf(variable, name):
                return ColumnOf(names.get(variable, variable), name)
            case Const():
                return head
            case Tuple(fields):
                return Tuple(tuple((name, self._renamed(each, names)) for name, each in fields))
            case Part(child, name):
                return Part(self._term(child, names), name)
            case Call(function, args):
                return Call(function, tuple(self._term(each, names) for each in args))
            case Total(function, collection):
                return Total(function, Collection(self._parts(collection, names)))
            case Collection(_, lookup):
                if lookup is not None:
                    label = tuple(
                        ColumnOf(names.get(c.variable, c.variable), c.name) for c in lookup.label
                    )
                    lookup = replace(lookup, label=label)
                return Collection(self._parts(head, names), lookup)
            case _:
                assert_never(head)

    def _term(self, term: Term, names: Mapping[str, str]) -> Term:
        found = self._renamed(term, names)
        assert not isinstance(found, Tuple | Collection)
        return found

    def _parts(self, collection: Collection, names: Mapping[str, str]) -> tuple[Comprehension, ...]:
        return tuple(self._comprehension(each, names) for each in collection.parts)

    def _comprehension(self, part: Comprehension, names: Mapping[str, str]) -> Comprehension:
        generators: list[Generator] = []
        for each in part.generators:
            source = each.source
            source = source if isinstance(source, str) else self._term(source, names)
            generators.append(self._generator(each.variable, source, each.columns))
            names = {**names, each.variable: generators[-1].variable}
        conditions = tuple(self._term(each, names) for each in part.conditions)
        head = self._renamed(part.head, names)
        return Comprehension(tuple(generators), conditions, head, part.negative)

    def _type(self, term: Term) -> str:
        """The type of a term that is an array or a struct of the database."""
        match term:
            case ColumnOf():
                return self.types[term]
            case Part(child, name):
                return dict(fields_of(self._type(child))).get(name, "")
            case Call("if", (_, then, otherwise)):
                return self._type(otherwise if then == Const(None) else then)
            case _:
                return ""


def _within(outer: Comprehension, inner: Comprehension) -> Comprehension:
    """What `inner` gives for each element of `outer`."""
    return Comprehension(
        outer.generators + inner.generators,
        outer.conditions + inner.conditions,
        inner.head,
        outer.negative != inner.negative,
    )


def _component(head: Head, name: str) -> Head:
    if isinstance(head, Tuple):
        return dict(head.fields)[name]
    assert not isinstance(head, Collection)
    return Part(head, name)


def negation(test: Term) -> Term:
    """The opposite of a condition: every condition is true or false, so this is exact."""
    return Call("not", (test,))


def guarded(conditions: tuple[Term, ...]) -> tuple[Term, ...]:
    """Conditions of which one that may fail is computed only where those before it hold.

    An engine may compute the sides of AND in any order, but not those of CASE.
    """
    return tuple(
        Call("if", (reduce(_both, conditions[:at]), each, Const(False)))
        if at and may_fail(each)
        else each
        for at, each in enumerate(conditions)
    )


def _both(left: Term, right: Term) -> Term:
    return Call("and", (left, right))


def may_fail(term: Term) -> bool:
    """Whether a value divides by something that may be zero."""
    match term:
        case Call("/" | "//" | "%", (_, divisor)) if not isinstance(divisor, Const):
            return True
        case Call(_, args):
            return any(map(may_fail, args))
        case _:
            return False


def conjuncts(test: Term) -> tuple[Term, ...]:
    """The conditions that must all hold."""
    if isinstance(test, Call) and test.function == "and":
        return tuple(part for each in test.args for part in conjuncts(each))
    return (test,)


def free_columns(head: Head, bound: frozenset[str] = frozenset()) -> frozenset[ColumnOf]:
    """The columns of variables that are not bound inside: what a value depends on."""
    match head:
        case ColumnOf(variable):
            return frozenset() if variable in bound else frozenset({head})
        case Const():
            return frozenset()
        case Part(child):
            return free_columns(child, bound)
        case Call(_, args):
            return frozenset().union(*(free_columns(each, bound) for each in args))
        case Tuple(fields):
            return frozenset().union(*(free_columns(each, bound) for _, each in fields))
        case Total(_, collection):
            return free_columns(collection, bound)
        case Collection(parts):
            return frozenset().union(*(_free_in(each, bound) for each in parts))
        case _:
            assert_never(head)


def _free_in(part: Comprehension, bound: frozenset[str]) -> frozenset[ColumnOf]:
    found: frozenset[ColumnOf] = frozenset()
    for each in part.generators:
        if not isinstance(each.source, str):
            found |= free_columns(each.source, bound)
        bound |= {each.variable}
    for term in part.conditions:
        found |= free_columns(term, bound)
    return found | free_columns(part.head, bound)


def totals_in(term: Term) -> tuple[Total, ...]:
    """The aggregates in a base value, outermost only."""
    match term:
        case Total():
            return (term,)
        case Part(child):
            return totals_in(child)
        case Call(_, args):
            return tuple(each for arg in args for each in totals_in(arg))
        case _:
            return ()
