"""The body of a rule as a plan: one row for every binding of its variables that satisfies it."""

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

_NOT_READY = 7
"""The rank of a literal whose inputs are not bound yet."""


@dataclass(frozen=True, slots=True)
class BodyLowering:
    """Lowers the bodies of a rule: over relations, types, and a column for each variable."""

    checked: CheckedProgram
    relations: Mapping[str, Plan]
    types: VariableTypes
    column: Mapping[str, str]

    def lowered(self, body: Body, wanted: set[str], given: Bindings | None = None) -> Bindings:
        """All bindings that satisfy a body, starting from `given`, with the variables `wanted`."""
        bindings = given or Bindings(UNIT, {})
        seen = wanted | set(bindings.columns)
        grouping = {each: _grouping_variables(each, body, seen) for each in body}
        left = list(body)
        while left:
            literal = self._next(left, bindings, grouping)
            left.remove(literal)
            if isinstance(literal, Atom):
                bindings = self._joined(literal, bindings, left)
            else:
                bindings = self._with(literal, bindings, grouping[literal])
            bindings = bindings.only(wanted | {each for rest in left for each in _names(rest)})
        return bindings.only(wanted)

    # Order

    def _next(
        self, left: list[Literal], bindings: Bindings, grouping: Mapping[Literal, set[str]]
    ) -> Literal:
        """The next literal to join: the first of those with the lowest rank."""
        return min(left, key=lambda each: self._rank(each, bindings, left, grouping[each]))

    def _rank(
        self, literal: Literal, bindings: Bindings, left: list[Literal], grouping: set[str]
    ) -> int:
        """Join order: conditions, then joins by key, negations and generators, then products.

        A literal whose inputs are not bound yet comes last.
        """
        bound = set(bindings.columns)
        match literal:
            case Comparison("=", Variable(), Aggregate()):
                return 4 if grouping <= bound else _NOT_READY
            case Comparison("=", Variable(), Call("range") as call):
                return 5 if _names(call) <= bound else _NOT_READY
            case Comparison():
                return (
                    1 if self._assigned(literal, bound) or _names(literal) <= bound else _NOT_READY
                )
            case Negation():
                return 3 if _names(literal) <= bound else _NOT_READY
            case Atom():
                joined = _names(literal) & bound or self._keys(literal, bindings, left)
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

    def _with(self, literal: Literal, bindings: Bindings, grouping: set[str]) -> Bindings:
        match literal:
            case Negation(atom):
                return self._without(atom, bindings)
            case Comparison("=", Variable() as variable, Aggregate() as term):
                computed = aggregated(self, term, variable, bindings, grouping)
                return self._equal(variable, computed, bindings)
            case Comparison("=", Variable() as variable, Call("range") as call):
                texts = self.scalars(bindings)
                type_ = self.types.final_type(variable)
                rows, column = generated(bindings.plan, call, type_, texts)
                return self._equal(variable, (rows, scalar.column(column)), bindings)
            case Comparison():
                assigned = self._assigned(literal, set(bindings.columns))
                if assigned is None:
                    return replace(
                        bindings,
                        plan=filter_(bindings.plan, self.scalars(bindings).condition(literal)),
                    )
                return self._defined(*assigned, bindings)
            case _:
                raise AssertionError(literal)

    def scalars(self, bindings: Bindings) -> Scalars:
        """Terms as scalars over the columns of the bindings."""
        return Scalars(self.types, bindings.columns)

    def _equal(
        self, variable: Variable, computed: tuple[Plan, str], bindings: Bindings
    ) -> Bindings:
        """Bind a variable to a computed value; a bound one must be equal to it."""
        plan, text = computed
        if variable.name in bindings.columns:
            held = scalar.column(bindings.columns[variable.name])
            return replace(bindings, plan=filter_(plan, scalar.canonical(f"{held} = {text}")))
        column = self.column[variable.name]
        output = Output(column, SPARK[self.types.final_type(variable)], text)
        mapped = map_(plan, (*copied(plan, bindings.columns.values()), output))
        return Bindings(mapped, {**bindings.columns, variable.name: column})

    def _defined(self, variable: Variable, term: Term, bindings: Bindings) -> Bindings:
        type_ = self.types.final_type(variable)
        text = self.scalars(bindings).text(term, type_)
        plan = filter_(bindings.plan, f"NOT {text} IS NULL") if is_partial(term) else bindings.plan
        return self._equal(variable, (plan, text), bindings)

    # Relations

    def _joined(self, atom: Atom, bindings: Bindings, left: list[Literal]) -> Bindings:
        """The natural join of the bindings with a relation, and by equations between the two."""
        rows, held = self._rows(atom)
        keys: list[tuple[str, str, str]] = []
        for name in held:
            if name in bindings.columns:
                keys.append(
                    (scalar.column(bindings.columns[name]), held[name], SPARK[self._type(name)])
                )
        equations = self._keys(atom, bindings, left)
        for literal in equations:
            left.remove(literal)
        ours, theirs = list(copied(bindings.plan, bindings.columns.values())), list(copied(rows))
        on: list[tuple[str, str]] = []
        for at, (text, column, type_) in enumerate(keys):
            plain = scalar.as_column(text)
            ours += [] if plain else [Output(f"key {at}", type_, text)]
            on.append((plain or f"key {at}", column))
        for at, literal in enumerate(equations):
            mine, other = self._sides(literal, set(bindings.columns))
            type_ = self._type_of_comparison(literal)
            ours.append(
                Output(f"left {at}", SPARK[type_], self.scalars(bindings).text(mine, type_))
            )
            text = Scalars(self.types, held).text(other, type_)
            theirs.append(Output(f"right {at}", SPARK[type_], text))
            on.append((f"left {at}", f"right {at}"))
        if bindings.plan == UNIT:
            joined, columns = rows, held
        else:
            joined = join(map_(bindings.plan, tuple(ours)), map_(rows, tuple(theirs)), tuple(on))
            columns = {**held, **bindings.columns}
        outputs = tuple(
            Output(self.column[name], type_in(schema_of(joined), column), scalar.column(column))
            for name, column in columns.items()
        )
        return Bindings(map_(joined, outputs), {name: self.column[name] for name in columns})

    def _keys(self, atom: Atom, bindings: Bindings, left: list[Literal]) -> list[Comparison]:
        """The equations between bound variables and those that the relation binds."""
        bound = set(bindings.columns)
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

    def _type_of_comparison(self, literal: Comparison) -> str:
        kinds = (self.types.type_of(each) for each in (literal.left, literal.right))
        return next((each for each in kinds if each is not None), "number")

    def _type(self, name: str) -> str:
        return self.types.known[name]

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
                    conditions.append(f"{here} = {Scalars(self.types, {}).text(argument, type_)}")
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

    def _without(self, atom: Atom, bindings: Bindings) -> Bindings:
        """The bindings for which a relation does not hold: L − L ⋉ R."""
        rows, ours, theirs, on = self.relations[atom.relation], [], [], []
        names = columns_of(rows)
        types = self.checked.columns[atom.relation]
        for at, argument in enumerate(atom.arguments):
            if isinstance(argument, Wildcard):
                continue
            text = self.scalars(bindings).text(argument, types[at])
            ours.append(Output(f"left {at}", SPARK[types[at]], text))
            theirs.append(Output(f"right {at}", SPARK[types[at]], scalar.column(names[at])))
            on.append((f"left {at}", f"right {at}"))
        theirs = theirs or [Output("right", "boolean", "TRUE")]
        held = copied(bindings.plan, bindings.columns.values())
        left = map_(bindings.plan, (*held, *ours))
        both = join(left, distinct(map_(rows, tuple(theirs))), tuple(on))
        kept = map_(both, copied(both, bindings.columns.values()))
        return replace(bindings, plan=add(map_(bindings.plan, held), negate(kept)))


def _names(node: Term | Literal) -> set[str]:
    """The variables of a node, those inside aggregates too."""
    return {each.name for each in parts(node) if isinstance(each, Variable)}


def _special(literal: Comparison) -> bool:
    return any(
        isinstance(each, Aggregate) or (isinstance(each, Call) and each.name == "range")
        for each in (literal.left, literal.right)
    )


def _grouping_variables(literal: Literal, body: Body, seen: set[str]) -> set[str]:
    """The grouping variables of a literal's aggregate: those that occur outside it too."""
    if not (isinstance(literal, Comparison) and isinstance(literal.right, Aggregate)):
        return set()
    others = {name for each in body if each is not literal for name in _names(each)}
    return _names(literal.right) & (others | seen | _names(literal.left))
