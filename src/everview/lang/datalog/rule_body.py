"""The body of a rule as a plan: one row for every way to satisfy it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from everview.expr import scalar
from everview.expr.types import type_in
from everview.lang.datalog.aggregates import aggregated
from everview.lang.datalog.bindings import UNIT, Bindings, copied
from everview.lang.datalog.check import CheckedProgram
from everview.lang.datalog.functors import SPARK
from everview.lang.datalog.generators import generated
from everview.lang.datalog.scalars import Scalars, is_partial
from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Body,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Term,
    Variable,
    Wildcard,
    parts,
)
from everview.lang.datalog.types import VariableTypes
from everview.plan.build import add, columns_of, distinct, filter_, join, map_, negate
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

_LATER = 7


@dataclass(frozen=True, slots=True)
class BodyLowering:
    """What the bodies of a rule see: relations as plans, types, and a column for each variable."""

    checked: CheckedProgram
    relations: Mapping[str, Plan]
    kinds: VariableTypes
    column: Mapping[str, str]

    def lowered(self, body: Body, wanted: set[str], given: Bindings | None = None) -> Bindings:
        """Every way to satisfy a body, from what is given, with the values that are wanted."""
        found = given or Bindings(UNIT, {})
        seen = wanted | set(found.columns)
        taken_for = {each: _taken_for(each, body, seen) for each in body}
        left = list(body)
        while left:
            literal = self._next(left, found, taken_for)
            left.remove(literal)
            if isinstance(literal, Atom):
                found = self._joined(literal, found, left)
            else:
                found = self._with(literal, found, taken_for[literal])
            found = found.only(wanted | {each for rest in left for each in _names(rest)})
        return found.only(wanted)

    # Order

    def _next(
        self, left: list[Literal], found: Bindings, taken_for: Mapping[Literal, set[str]]
    ) -> Literal:
        """The literal to come next: the first of the cheapest that can."""
        return min(left, key=lambda each: self._rank(each, found, left, taken_for[each]))

    def _rank(
        self, literal: Literal, found: Bindings, left: list[Literal], taken_for: set[str]
    ) -> int:
        """Conditions first, then what is joined by a value, then the rest; last what cannot yet."""
        bound = set(found.columns)
        match literal:
            case Comparison("=", Variable(), Aggregate()):
                return 4 if taken_for <= bound else _LATER
            case Comparison("=", Variable(), Call("range") as call):
                return 5 if _names(call) <= bound else _LATER
            case Comparison():
                return 1 if self._assigned(literal, bound) or _names(literal) <= bound else _LATER
            case Negation():
                return 3 if _names(literal) <= bound else _LATER
            case Atom():
                joined = _names(literal) & bound or self._keys(literal, found, left)
                return 2 if joined or not bound else 6

    def _assigned(self, literal: Comparison, bound: set[str]) -> tuple[Variable, Term] | None:
        """The variable that an equation gives a value to."""
        if literal.operator != "=":
            return None
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(one, Variable) and one.name not in bound and _names(other) <= bound:
                return one, other
        return None

    # Literals

    def _with(self, literal: Literal, found: Bindings, taken_for: set[str]) -> Bindings:
        match literal:
            case Negation(atom):
                return self._without(atom, found)
            case Comparison("=", Variable() as variable, Aggregate() as term):
                made = aggregated(self, term, variable, found, taken_for)
                return self._equal(variable, made, found)
            case Comparison("=", Variable() as variable, Call("range") as call):
                texts = self.scalars(found)
                type_ = self.kinds.settled(variable)
                rows, column = generated(found.plan, call, type_, texts)
                return self._equal(variable, (rows, scalar.column(column)), found)
            case Comparison():
                assigned = self._assigned(literal, set(found.columns))
                if assigned is None:
                    return replace(
                        found, plan=filter_(found.plan, self.scalars(found).condition(literal))
                    )
                return self._defined(*assigned, found)
            case _:
                raise AssertionError(literal)

    def scalars(self, found: Bindings) -> Scalars:
        """How terms are written over the bindings there are."""
        return Scalars(self.kinds, found.columns)

    def _equal(self, variable: Variable, made: tuple[Plan, str], found: Bindings) -> Bindings:
        """A variable has a value computed beside the bindings."""
        plan, text = made
        if variable.name in found.columns:
            held = scalar.column(found.columns[variable.name])
            return replace(found, plan=filter_(plan, scalar.canonical(f"{held} = {text}")))
        column = self.column[variable.name]
        output = Output(column, SPARK[self.kinds.settled(variable)], text)
        mapped = map_(plan, (*copied(plan, found.columns.values()), output))
        return Bindings(mapped, {**found.columns, variable.name: column})

    def _defined(self, variable: Variable, term: Term, found: Bindings) -> Bindings:
        type_ = self.kinds.settled(variable)
        text = self.scalars(found).text(term, type_)
        plan = filter_(found.plan, f"NOT {text} IS NULL") if is_partial(term) else found.plan
        return self._equal(variable, (plan, text), found)

    # Relations

    def _joined(self, atom: Atom, found: Bindings, left: list[Literal]) -> Bindings:
        """The bindings with those of a relation, equal where they have variables in common."""
        rows, held = self._rows(atom)
        keys: list[tuple[str, str, str]] = []
        for name in held:
            if name in found.columns:
                keys.append(
                    (scalar.column(found.columns[name]), held[name], SPARK[self._type(name)])
                )
        equations = self._keys(atom, found, left)
        for literal in equations:
            left.remove(literal)
        ours, theirs = list(copied(found.plan, found.columns.values())), list(copied(rows))
        on: list[tuple[str, str]] = []
        for at, (text, column, type_) in enumerate(keys):
            plain = scalar.as_column(text)
            ours += [] if plain else [Output(f"key {at}", type_, text)]
            on.append((plain or f"key {at}", column))
        for at, literal in enumerate(equations):
            mine, other = self._sides(literal, set(found.columns))
            type_ = self._together(literal)
            ours.append(Output(f"left {at}", SPARK[type_], self.scalars(found).text(mine, type_)))
            text = Scalars(self.kinds, held).text(other, type_)
            theirs.append(Output(f"right {at}", SPARK[type_], text))
            on.append((f"left {at}", f"right {at}"))
        if found.plan == UNIT:
            made, columns = rows, held
        else:
            made = join(map_(found.plan, tuple(ours)), map_(rows, tuple(theirs)), tuple(on))
            columns = {**held, **found.columns}
        outputs = tuple(
            Output(self.column[name], type_in(schema_of(made), column), scalar.column(column))
            for name, column in columns.items()
        )
        return Bindings(map_(made, outputs), {name: self.column[name] for name in columns})

    def _keys(self, atom: Atom, found: Bindings, left: list[Literal]) -> list[Comparison]:
        """The equations between what is bound and what the relation binds."""
        bound = set(found.columns)
        new = _names(atom) - bound
        return [
            each
            for each in left
            if isinstance(each, Comparison)
            and each.operator == "="
            and not _special(each)
            and any(
                _names(one) and _names(one) <= bound and _names(other) and _names(other) <= new
                for one, other in ((each.left, each.right), (each.right, each.left))
            )
        ]

    def _sides(self, literal: Comparison, bound: set[str]) -> tuple[Term, Term]:
        ours = _names(literal.left) <= bound
        sides = (literal.left, literal.right)
        return sides if ours else (sides[1], sides[0])

    def _together(self, literal: Comparison) -> str:
        kinds = (self.kinds.type_of(each) for each in (literal.left, literal.right))
        return next((each for each in kinds if each is not None), "number")

    def _type(self, name: str) -> str:
        return self.kinds.known[name]

    def _rows(self, atom: Atom) -> tuple[Plan, dict[str, str]]:
        """The rows of a relation that satisfy an atom, and the column of each of its variables."""
        plan, conditions, held = self.relations[atom.relation], list[str](), dict[str, str]()
        names = columns_of(plan)
        types = self.checked.columns[atom.relation]
        for column, argument, type_ in zip(names, atom.arguments, types, strict=False):
            here = scalar.column(column)
            match argument:
                case Variable(name) if name in held:
                    conditions.append(f"{here} = {scalar.column(held[name])}")
                case Variable(name):
                    held[name] = column
                case Wildcard():
                    pass
                case Constant():
                    conditions.append(f"{here} = {Scalars(self.kinds, {}).text(argument, type_)}")
                case _:
                    raise AssertionError(argument)
        schema = schema_of(plan)
        plan = filter_(plan, scalar.conjunction(conditions))
        outputs = tuple(
            Output(
                f"{column} of {self.column[name]}", type_in(schema, column), scalar.column(column)
            )
            for name, column in held.items()
        )
        return map_(plan, outputs), {n: f"{c} of {self.column[n]}" for n, c in held.items()}

    def _without(self, atom: Atom, found: Bindings) -> Bindings:
        """The bindings for which a relation does not hold: L − L ⋉ R."""
        rows, ours, theirs, on = self.relations[atom.relation], [], [], []
        names = columns_of(rows)
        types = self.checked.columns[atom.relation]
        for at, argument in enumerate(atom.arguments):
            if isinstance(argument, Wildcard):
                continue
            text = self.scalars(found).text(argument, types[at])
            ours.append(Output(f"left {at}", SPARK[types[at]], text))
            theirs.append(Output(f"right {at}", SPARK[types[at]], scalar.column(names[at])))
            on.append((f"left {at}", f"right {at}"))
        theirs = theirs or [Output("right", "boolean", "TRUE")]
        held = copied(found.plan, found.columns.values())
        left = map_(found.plan, (*held, *ours))
        both = join(left, distinct(map_(rows, tuple(theirs))), tuple(on))
        kept = map_(both, copied(both, found.columns.values()))
        return replace(found, plan=add(map_(found.plan, held), negate(kept)))


def _names(node: Term | Literal) -> set[str]:
    """The variables of a node, those inside aggregates too."""
    return {each.name for each in parts(node) if isinstance(each, Variable)}


def _special(literal: Comparison) -> bool:
    return any(
        isinstance(each, Aggregate) or (isinstance(each, Call) and each.name == "range")
        for each in (literal.left, literal.right)
    )


def _taken_for(literal: Literal, body: Body, seen: set[str]) -> set[str]:
    """The variables of a literal's aggregate that are seen around it."""
    if not (isinstance(literal, Comparison) and isinstance(literal.right, Aggregate)):
        return set()
    others = {name for each in body if each is not literal for name in _names(each)}
    return _names(literal.right) & (others | seen | _names(literal.left))
