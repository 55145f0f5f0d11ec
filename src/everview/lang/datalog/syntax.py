"""What a Datalog text says: declarations, directives and rules, as small frozen records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from everview.errors import Span


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that stands for a value."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Any value: `_`."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value in the text; `kind` is its type, where a plain number may stand for any."""

    value: int | float | str
    kind: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A functor or an operator applied to terms."""

    name: str
    arguments: tuple[Term, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A value computed from all ways to satisfy a body, which is a choice of conjunctions."""

    function: str
    target: Term | None
    bodies: tuple[Body, ...]
    span: Span = field(compare=False)


Term: TypeAlias = Variable | Wildcard | Constant | Call | Aggregate


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation that holds of terms."""

    relation: str
    arguments: tuple[Term, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """A relation that does not hold of terms."""

    atom: Atom

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.atom.span


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two terms compared: by a sign, or by `match` or `contains`."""

    operator: str
    left: Term
    right: Term
    span: Span = field(compare=False)


Literal: TypeAlias = Atom | Negation | Comparison
Body: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A head that holds whenever its body does; a fact has no body."""

    head: Atom
    body: Body
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a relation: its name and the name of its type."""

    name: str
    type: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A relation and its columns; a qualifier says how it is meant to be evaluated."""

    name: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """A type that is part of another one, or made of several, or of constructors."""

    name: str
    parents: tuple[str, ...]
    constructors: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input`, `.output` or `.printsize` of one relation, with its parameters."""

    kind: str
    relation: str
    parameters: Mapping[str, str]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class DatalogProgram:
    """A whole text: what it declares, in the order in which it says so."""

    text: str
    types: tuple[TypeDeclaration, ...]
    declarations: tuple[Declaration, ...]
    directives: tuple[Directive, ...]
    rules: tuple[Rule, ...]


OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""What holds when a comparison does not."""


def negated(literal: Literal) -> Literal:
    """The literal that holds when this one does not."""
    match literal:
        case Atom():
            return Negation(literal)
        case Negation(atom):
            return atom
        case Comparison(operator, left, right, span):
            opposite = OPPOSITE.get(operator) or operator.removeprefix("!")
            opposite = f"!{operator}" if opposite == operator else opposite
            return Comparison(opposite, left, right, span)


def parts(node: Term | Literal) -> Iterator[Term | Literal]:
    """The node and everything in it, aggregates included."""
    yield node
    match node:
        case Call(_, inner) | Atom(_, inner):
            for each in inner:
                yield from parts(each)
        case Negation(atom):
            yield from parts(atom)
        case Comparison(_, left, right):
            yield from parts(left)
            yield from parts(right)
        case Aggregate(_, target, bodies):
            if target is not None:
                yield from parts(target)
            for body in bodies:
                for literal in body:
                    yield from parts(literal)


def outside(node: Term | Literal) -> Iterator[Term | Literal]:
    """The node and everything in it, without what is inside an aggregate."""
    yield node
    match node:
        case Call(_, inner) | Atom(_, inner):
            for each in inner:
                yield from outside(each)
        case Negation(atom):
            yield from outside(atom)
        case Comparison(_, left, right):
            yield from outside(left)
            yield from outside(right)
        case _:
            return


def variables(node: Term | Literal) -> tuple[Variable, ...]:
    """The variables of a node in order, those inside aggregates left out."""
    return tuple(each for each in outside(node) if isinstance(each, Variable))


Change: TypeAlias = Callable[[Term], Term | None]
"""What is to stand for a term; None where the term stays and its parts are looked at."""


def rebuilt(literal: Literal, change: Change) -> Literal:
    """The literal with other terms in it, aggregates taken as a whole."""
    match literal:
        case Atom(relation, arguments, span):
            return Atom(relation, tuple(rebuilt_term(each, change) for each in arguments), span)
        case Negation(atom):
            made = rebuilt(atom, change)
            assert isinstance(made, Atom)
            return Negation(made)
        case Comparison(operator, left, right, span):
            return Comparison(
                operator, rebuilt_term(left, change), rebuilt_term(right, change), span
            )


def rebuilt_term(term: Term, change: Change) -> Term:
    """The term with other terms in it, aggregates taken as a whole."""
    made = change(term)
    if made is None and isinstance(term, Call):
        inner = tuple(rebuilt_term(each, change) for each in term.arguments)
        return Call(term.name, inner, term.span)
    return term if made is None else made
