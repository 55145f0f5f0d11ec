"""The normal form of a rule: every aggregate and generator is the value of a variable.

The variables of the target of an aggregate are local to it, and so are those that do not occur
outside it. The others are its grouping variables. A variable outside a min or max that nothing else
binds is a witness: its values are those for which the extreme is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Body,
    Call,
    Comparison,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
    outside,
    parts,
    rebuilt,
    rebuilt_term,
    variables,
)


def normal_form(rule: Rule) -> Rule:
    """The rule with aggregates, generators and computed arguments as variables of their own."""
    return _Normalizing().rule(rule)


@dataclass(slots=True)
class _Normalizing:
    """One rule on its way to normal form; `numbers` make the names of new variables."""

    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def rule(self, rule: Rule) -> Rule:
        around = {each.name for each in _outside((rule.head, *rule.body))}
        scoped = [self._scoped(literal, around) for literal in rule.body]
        head = self._scoped(rule.head, around)
        assert isinstance(head, Atom)
        body = self._witnessed(tuple(scoped), head)
        taken, body = self._flat((head,), body)
        assert isinstance(taken[0], Atom)
        return replace(rule, head=taken[0], body=body)

    def _fresh(self, name: str) -> str:
        return f"{name.partition(':')[0]}:{next(self.numbers)}"

    # Scopes

    def _scoped(self, node: Literal, around: set[str]) -> Literal:
        """The literal with the variables of its aggregates renamed apart."""
        return rebuilt(node, lambda term: self._with_local_variables(term, around))

    def _with_local_variables(self, term: Term, around: set[str]) -> Term | None:
        if not isinstance(term, Aggregate):
            return None
        target_names = {each.name for each in variables(term.target)} if term.target else set[str]()
        inner = {each.name for body in term.bodies for each in _outside(body)} | target_names
        names = {name: self._fresh(name) for name in sorted(target_names | (inner - around))}
        renamed = rebuilt_term(term, _renamer(names))
        assert isinstance(renamed, Aggregate)
        seen = around | inner.difference(names) | set(names.values())
        bodies = tuple(tuple(self._scoped(each, seen) for each in body) for body in renamed.bodies)
        return replace(renamed, bodies=bodies)

    # Witnesses

    def _witnessed(self, body: Body, head: Atom) -> Body:
        """The body with every min or max that has witnesses split in two.

        One copy gives the extreme, the other binds the witnesses where the extreme is reached.
        """
        for literal in body:
            for term in outside(literal):
                if isinstance(term, Aggregate) and term.function in ("min", "max"):
                    free = self._witnesses(term, body, head)
                    if free and len(term.bodies) == 1 and term.target is not None:
                        again = self._split(body, literal, term, free, head)
                        return self._witnessed(again, head)
        return body

    def _witnesses(self, term: Aggregate, body: Body, head: Atom) -> set[str]:
        """The variables of an aggregate that occur outside it and are bound nowhere else."""
        reached = bound_by(tuple(each for each in body if not _holds(each, term)), set())
        around = shared(term, (*body, head))
        return {name for name in around - reached if name in bound_by(term.bodies[0], reached)}

    def _split(
        self, body: Body, literal: Literal, term: Aggregate, free: set[str], head: Atom
    ) -> Body:
        assert term.target is not None
        value = Variable(self._fresh("extreme"), term.span)
        apart = {name: self._fresh(name) for name in free}
        own = sorted({each.name for part in term.bodies[0] for each in _all(part)} - free)
        kept = shared(term, (*body, head))
        copy = {name: self._fresh(name) for name in own if name not in kept}
        again = tuple(rebuilt(each, _renamer(copy)) for each in term.bodies[0])
        target = rebuilt_term(term.target, _renamer(copy))
        extreme = Comparison("=", value, rebuilt_term(term, _renamer(apart)), term.span)
        reached = Comparison("=", target, value, term.span)
        others = tuple(
            rebuilt(each, lambda found: value if found is term else None)
            if each is literal
            else each
            for each in body
        )
        return (*others, extreme, *again, reached)

    # Flattening

    def _flat(self, heads: Iterable[Literal], body: Body) -> tuple[tuple[Literal, ...], Body]:
        found: list[Literal] = []
        made = tuple(self._lifted(head, found) for head in heads)
        kept = [self._flat_literal(literal, found) for literal in body]
        return made, (*kept, *found)

    def _flat_literal(self, literal: Literal, found: list[Literal]) -> Literal:
        match literal:
            case Atom(relation, arguments, span):
                plain = tuple(self._plain(each, found) for each in arguments)
                return Atom(relation, plain, span)
            case Comparison("=", Variable() as left, Aggregate() as right, span):
                return Comparison("=", left, self._inside(right), span)
            case Comparison("=", Aggregate() as left, Variable() as right, span):
                return Comparison("=", right, self._inside(left), span)
            case Comparison("=", Variable() as left, Call("range") as right, span):
                return Comparison("=", left, self._deep(right, found), span)
            case Comparison("=", Call("range") as left, Variable() as right, span):
                return Comparison("=", right, self._deep(left, found), span)
            case _:
                return self._lifted(literal, found)

    def _lifted(self, node: Literal, found: list[Literal]) -> Literal:
        return rebuilt(node, lambda term: self._value(term, found))

    def _deep(self, call: Call, found: list[Literal]) -> Call:
        inner = tuple(
            rebuilt_term(each, lambda t: self._value(t, found)) for each in call.arguments
        )
        return replace(call, arguments=inner)

    def _plain(self, term: Term, found: list[Literal]) -> Term:
        """A variable for an argument that is computed."""
        if not isinstance(term, Call):
            return rebuilt_term(term, lambda each: self._value(each, found))
        value = Variable(self._fresh("value"), term.span)
        found.append(self._flat_literal(Comparison("=", value, term, term.span), found))
        return value

    def _value(self, term: Term, found: list[Literal]) -> Term | None:
        """A variable for an aggregate or a generator."""
        match term:
            case Aggregate():
                value = Variable(self._fresh("value"), term.span)
                found.append(Comparison("=", value, self._inside(term), term.span))
                return value
            case Call("range"):
                value = Variable(self._fresh("value"), term.span)
                found.append(Comparison("=", value, self._deep(term, found), term.span))
                return value
            case _:
                return None

    def _inside(self, term: Aggregate) -> Aggregate:
        more: list[Literal] = []
        target = term.target and rebuilt_term(term.target, lambda each: self._value(each, more))
        bodies = [(*self._flat((), body)[1], *more) for body in term.bodies]
        return replace(term, target=target, bodies=tuple(bodies))


def shared(term: Aggregate, around: Iterable[Literal]) -> set[str]:
    """The grouping variables of an aggregate: those that it shares with the literals around it."""
    inner = {each.name for body in term.bodies for part in body for each in _all(part)}
    others: set[str] = set()
    for literal in around:
        others |= {each.name for each in _without(literal, term)}
    return inner & others


def bound_by(body: Body, bound: set[str]) -> set[str]:
    """The variables that a body gives values to, when some have values already."""
    reached = set(bound)
    before = -1
    while len(reached) > before:
        before = len(reached)
        for literal in body:
            reached |= _binds(literal, reached, body)
    return reached


def needs(term: Term, around: Iterable[Literal]) -> set[str]:
    """The variables that must have values before a term has one."""
    found = {each.name for each in variables(term)}
    for each in outside(term):
        if isinstance(each, Aggregate):
            found |= shared(each, around)
    return found


def _binds(literal: Literal, reached: set[str], around: Body) -> set[str]:
    match literal:
        case Atom(_, arguments):
            return {each.name for each in arguments if isinstance(each, Variable)}
        case Comparison("=", left, right):
            found: set[str] = set()
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Variable) and needs(other, around) <= reached:
                    found |= {one.name}
            return found
        case _:
            return set()


def _holds(literal: Literal, term: Aggregate) -> bool:
    return any(each is term for each in outside(literal))


def _without(node: Term | Literal, term: Aggregate) -> Iterator[Variable]:
    """The variables of a node that are not inside one of its aggregates."""
    match node:
        case Variable():
            yield node
        case Call(_, inner) | Atom(_, inner):
            for each in inner:
                yield from _without(each, term)
        case Negation(atom):
            yield from _without(atom, term)
        case Comparison(_, left, right):
            yield from _without(left, term)
            yield from _without(right, term)
        case Aggregate() if node is not term:
            yield from _all(node)
        case _:
            return


def _all(node: Term | Literal) -> Iterator[Variable]:
    return (each for each in parts(node) if isinstance(each, Variable))


def _outside(literals: Iterable[Literal]) -> Iterator[Variable]:
    for literal in literals:
        yield from variables(literal)


def _renamer(names: Mapping[str, str]) -> Callable[[Term], Term | None]:
    def rename(term: Term) -> Term | None:
        match term:
            case Variable(name, span):
                return Variable(names.get(name, name), span)
            case Aggregate(function, target, bodies, span):
                inner = tuple(tuple(rebuilt(each, rename) for each in body) for body in bodies)
                target_names = None if target is None else rebuilt_term(target, rename)
                return Aggregate(function, target_names, inner, span)
            case _:
                return None

    return rename
