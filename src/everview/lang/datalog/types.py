"""Types of a program: declared types resolved to base types, and inferred types of variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from everview.errors import Span, UserError
from everview.lang.datalog.functors import FLOAT, FUNCTORS, NUMBER, SAME, SPARK, SYMBOL, UNSIGNED
from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    DatalogProgram,
    Literal,
    Rule,
    Term,
    TypeDeclaration,
    Variable,
    parts,
)

_LIMITS = {NUMBER: (-(2**31), 2**31 - 1), UNSIGNED: (-(2**31), 2**32 - 1)}
_TESTS = ("match", "contains", "!match", "!contains")


def base_types(program: DatalogProgram) -> dict[str, str]:
    """The base type, of the four there are, of every declared type."""
    bases = {name: name for name in SPARK}
    declared = {each.name: each for each in program.types}

    def base(name: str, span: Span, under: tuple[str, ...] = ()) -> str:
        if name in bases:
            return bases[name]
        if name in under or name not in declared:
            raise unknown_type(name, span, declared)
        each = declared[name]
        kinds = {base(parent, each.span, (*under, name)) for parent in each.parents}
        kinds |= {SYMBOL} if each.constructors else set()
        if len(kinds) != 1:
            raise UserError(
                "D005",
                f"the type {name} is made of {' and '.join(sorted(kinds))}",
                span=each.span,
                remedy="make it of types that come to the same one",
            )
        bases[name] = kinds.pop()
        return bases[name]

    for each in program.types:
        base(each.name, each.span)
    return bases


def unknown_type(name: str, span: Span, known: Mapping[str, TypeDeclaration]) -> UserError:
    """The error for a type that nothing declares."""
    return UserError(
        "D003",
        f"there is no type {name}",
        span=span,
        remedy=f"declare it, or choose among {', '.join((*SPARK, *known))}",
    )


Columns = Mapping[str, tuple[str, ...]]
"""The types of the columns of every relation."""


@dataclass(slots=True)
class VariableTypes:
    """The types of the variables of one rule, inferred by propagation until nothing changes."""

    columns: Columns
    types: Mapping[str, str]
    known: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: Rule, columns: Columns, types: Mapping[str, str]) -> VariableTypes:
        """The types in a rule, or an error where two contradict each other."""
        inferred = cls(columns, types)
        before = -1
        while len(inferred.known) > before:
            before = len(inferred.known)
            inferred._propagate(rule)
        for variable in _variables(rule):
            inferred.known.setdefault(variable.name, NUMBER)
        inferred._propagate(rule, check=True)
        return inferred

    def _propagate(self, rule: Rule, *, check: bool = False) -> None:
        for literal in (rule.head, *rule.body):
            for node in parts(literal):
                self._visit(node, check)

    def _visit(self, node: Term | Literal, check: bool) -> None:
        match node:
            case Atom(relation, arguments):
                for argument, type_ in zip(arguments, self.columns[relation], strict=True):
                    self._unify(argument, type_, check)
            case Comparison(operator, left, right):
                together = self.type_of(left) or self.type_of(right)
                shared = SYMBOL if operator in _TESTS else together or (NUMBER if check else None)
                if shared is not None:
                    self._unify(left, shared, check)
                    self._unify(right, shared, check)
            case Aggregate("mean", target, _) if target is not None and check:
                self._unify(target, self.type_of(target) or NUMBER, check)
            case Call("as", _) | Call("range", _):
                pass
            case Call() if check:
                self._unify(node, self.type_of(node) or NUMBER, check)

    def _unify(self, term: Term, type_: str, check: bool) -> None:
        """Give a term a type, and with it the variables that must have the same."""
        match term:
            case Variable(name):
                self.known.setdefault(name, type_)
                if self.known[name] != type_:
                    raise _mismatch(f"{name} is a {self.known[name]}", type_, term.span)
            case Constant():
                if check:
                    _fits(term, type_)
            case Call("as", (inner, _)):
                if check:
                    self._unify(inner, self.type_of(inner) or type_, check)
            case Call(name, arguments, span):
                functor = FUNCTORS[name]
                gives = type_ if functor.gives == SAME else functor.gives
                if gives != type_:
                    raise _mismatch(f"{name} gives a {gives}", type_, span)
                same = type_ if functor.gives == SAME else self._same(term)
                if same is not None and same not in functor.among and SAME in functor.takes:
                    raise _mismatch(f"{name} takes {' or '.join(functor.among)}", same, span)
                for index, argument in enumerate(arguments):
                    wanted = functor.parameter(index)
                    wanted = (same or (NUMBER if check else "")) if wanted == SAME else wanted
                    if wanted:
                        self._unify(argument, wanted, check)
            case Aggregate(function, target, _, span):
                if function == "count" and type_ not in (NUMBER, UNSIGNED):
                    raise _mismatch("count gives a number", type_, span)
                if function == "mean" and type_ != FLOAT:
                    raise _mismatch("mean gives a float", type_, span)
                if function in ("sum", "min", "max") and target is not None:
                    self._unify(target, type_, check)
            case _:
                pass

    def _same(self, call: Call) -> str | None:
        """The type that the arguments of a functor share, where one is known."""
        functor = FUNCTORS[call.name]
        shared = (
            self.type_of(argument)
            for index, argument in enumerate(call.arguments)
            if functor.parameter(index) == SAME
        )
        return next((type_ for type_ in shared if type_ is not None), None)

    def type_of(self, term: Term) -> str | None:
        """The type of a term as far as it is known; None for a number of any type."""
        match term:
            case Variable(name):
                return self.known.get(name)
            case Constant(_, kind):
                return None if kind == NUMBER else kind
            case Call("as", (_, Constant(value=str() as named, span=span))):
                if named not in self.types:
                    raise unknown_type(named, span, {})
                return self.types[named]
            case Call(name, _):
                gives = FUNCTORS[name].gives
                return self._same(term) if gives == SAME else gives
            case Aggregate("mean"):
                return FLOAT
            case Aggregate(_, target, _):
                return None if target is None else self.type_of(target)
            case _:
                return None

    def final_type(self, term: Term) -> str:
        """The type of a term after inference: a number where nothing says otherwise."""
        return self.type_of(term) or NUMBER


def _variables(rule: Rule) -> Iterator[Variable]:
    for literal in (rule.head, *rule.body):
        yield from (each for each in parts(literal) if isinstance(each, Variable))


def _fits(constant: Constant, type_: str) -> None:
    if (constant.kind == SYMBOL) != (type_ == SYMBOL) or (
        constant.kind == FLOAT and type_ != FLOAT
    ):
        raise _mismatch(f"{constant.value!r} is a {constant.kind}", type_, constant.span)
    if type_ in _LIMITS and isinstance(constant.value, int):
        low, high = _LIMITS[type_]
        if not low <= constant.value <= high:
            raise UserError(
                "D005",
                f"{constant.value} does not fit a {type_} of 32 bits",
                span=constant.span,
                remedy=f"use a value from {low} to {high}, or a float",
            )


def _mismatch(what: str, type_: str, span: Span) -> UserError:
    return UserError(
        "D005",
        f"{what}, not {type_}" if " takes " in what else f"{what}, and a {type_} is wanted here",
        span=span,
        remedy="use terms of one type, or convert one: to_string, to_number, itof and their kin",
    )
