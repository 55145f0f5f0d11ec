"""A definition of AGCA to a plan: the value of each group, summed over its monomials.

A monomial is a join of its relations, filtered by its conditions, with the product of its values
as one column. The row of a group is there if some monomial has a binding for it. A Sum inside a
condition or an assignment is a value for each binding around it, zero where nothing is summed:
with J the variables it shares with them, it is γ_J of its own bindings, to which each value of J
adds a row with the value 0, joined back on J.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.types import Type, names, type_in
from everview.lang.agca.normal_form import Monomial, constant, monomials
from everview.lang.agca.printer import print_name, print_query
from everview.lang.agca.scalars import (
    Typed,
    arithmetic,
    cast,
    column,
    common_type,
    literal,
    number,
    types_differ,
)
from everview.lang.agca.scope import binds, in_order
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Extract,
    Negate,
    Product,
    Sum,
    Variable,
    names_in,
    walk,
)
from everview.lang.correlation import CorrelatedNode
from everview.lang.stored_relation import StoredRelation
from everview.plan.build import add, distinct, filter_, group_by, identity, join, map_
from everview.plan.nodes import Aggregate, Output, Plan, Values
from everview.plan.traverse import schema_of

VALUE = "value"
"""The column of a view that has the value of its groups."""
UNIT = Values((), ((),))
"""One row without columns: the bindings before any factor is joined."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Bindings of variables: a row for each, and the column that holds each variable."""

    plan: Plan
    columns: Mapping[str, str]

    def value(self, name: str) -> Typed:
        """The value of a variable."""
        held = self.columns[name]
        return column(held, type_in(schema_of(self.plan), held))

    def filtered(self, condition: str) -> Bindings:
        """The bindings that satisfy a condition."""
        return Bindings(filter_(self.plan, condition), self.columns)


NO_BINDINGS = Bindings(UNIT, {})


def lower_definition(definition: Definition, known: Mapping[str, StoredRelation]) -> Plan:
    """The plan of a view: its group variables and the value, for each group that has bindings."""
    return _lowering(definition, known).definition(definition)


def correlated_nodes(
    definition: Definition, known: Mapping[str, StoredRelation]
) -> tuple[CorrelatedNode, ...]:
    """The sums of a definition that read variables bound outside of them, each once."""
    lowering = _lowering(definition, known)
    lowering.definition(definition)
    return tuple(dict.fromkeys(lowering.correlated))


def _lowering(definition: Definition, known: Mapping[str, StoredRelation]) -> _Lowering:
    atoms = (each for each in walk(definition.body) if isinstance(each, Atom))
    held = (each for atom in atoms for each in atom.arguments if isinstance(each, Variable))
    return _Lowering(known, frozenset(each.name for each in held if each.nullable))


class _Lowering:
    """Lowers one definition; the columns that it makes up are numbered."""

    def __init__(self, known: Mapping[str, StoredRelation], nullable: frozenset[str]) -> None:
        self.known = known
        self.nullable = nullable
        self.numbers = count(1)
        self.correlated: list[CorrelatedNode] = []

    def definition(self, definition: Definition) -> Plan:
        """The plan of a whole definition."""
        keys = definition.key_names
        terms = monomials(definition.body, frozenset(keys), whole_terms=True)
        rows = [self.rows(each, keys, NO_BINDINGS) for each in terms]
        return self.totals(rows, keys)

    def totals(self, rows: list[Plan], columns: tuple[str, ...]) -> Plan:
        """Rows of keys and a value, added up for each key; without keys, zero for no rows."""
        schemas = [schema_of(each) for each in rows]
        types = [
            common_type((schema[at].type for schema in schemas), f"the values of {name}")
            for at, name in enumerate((*columns, VALUE))
        ]
        cast_rows = (
            map_(
                each,
                tuple(
                    Output(name, type_, cast(column(held.name, held.type), type_))
                    for name, type_, held in zip(
                        (*columns, VALUE), types, schema_of(each), strict=True
                    )
                ),
            )
            for each in rows
        )
        total = result_type("sum", types[-1])
        assert total is not None, types
        grouped = group_by(add(*cast_rows), columns, (Aggregate(VALUE, total, "sum", VALUE),))
        text = scalar.column(VALUE)
        if not columns:
            text = scalar.canonical(f"COALESCE({text}, CAST(0 AS {total}))")
        return map_(grouped, (*_copied(grouped, columns), Output(VALUE, total, text)))

    def rows(self, term: Monomial, keys: tuple[str, ...], given: Bindings) -> Plan:
        """The keys and the value for each binding of a monomial, from those that are given."""
        bindings, values = given, [literal(constant(term.coefficient))]
        ordered = in_order(term.factors, frozenset(given.columns))
        assert ordered is not None, term
        for each in ordered:
            match each:
                case Atom():
                    bindings = self._joined(each, bindings)
                case Comparison():
                    bindings, condition = self._condition(each, bindings)
                    bindings = bindings.filtered(condition)
                case Assignment(variable, value):
                    bindings = self._assigned(variable, value, bindings)
                case _:
                    bindings, value_ = self._value(each, bindings)
                    values.append(self._number(value_, each))
        if len(values) > 1 and term.coefficient == 1:
            values = values[1:]
        product = values[0]
        for each_value in values[1:]:
            product = arithmetic("*", product, each_value, term.as_query())
        outputs = [
            Output(f"key {at}", held.type, held.text)
            for at, held in enumerate(map(bindings.value, keys))
        ]
        return map_(bindings.plan, (*outputs, Output(VALUE, product.type, product.text)))

    # Relations

    def _joined(self, atom: Atom, bindings: Bindings) -> Bindings:
        """The natural join of the bindings with a relation."""
        theirs = self._atom(atom)
        if bindings.plan == UNIT:
            return theirs
        on: list[tuple[str, str]] = []
        left, right = bindings, theirs
        for name in (each for each in theirs.columns if each in bindings.columns):
            sides = left.value(name), right.value(name)
            if sides[0].type == sides[1].type:
                on.append((left.columns[name], right.columns[name]))
                continue
            what = f"the values of {print_name(name)}"
            type_ = common_type((each.type for each in sides), what, atom)
            left, mine = self._with(left, cast(sides[0], type_), type_)
            right, other = self._with(right, cast(sides[1], type_), type_)
            on.append((mine, other))
        nulls = any(name in self.nullable for name in theirs.columns if name in bindings.columns)
        joined = join(left.plan, right.plan, tuple(on), nulls=nulls)
        columns = {**theirs.columns, **bindings.columns}
        return Bindings(map_(joined, _copied(joined, columns.values())), columns)

    def _with(self, bindings: Bindings, text: str, type_: Type) -> tuple[Bindings, str]:
        """The bindings with one more column, and its name."""
        name, plan = self._column(), bindings.plan
        wider = map_(plan, (*identity(schema_of(plan)), Output(name, type_, text)))
        return Bindings(wider, bindings.columns), name

    def _column(self) -> str:
        return f"v{next(self.numbers)}"

    def _atom(self, atom: Atom) -> Bindings:
        """The rows of a relation that have a value for each variable."""
        relation = self.known.get(atom.relation.lower())
        if relation is None:
            raise UserError(
                "G002",
                f"there is no table or view {atom.relation}",
                span=atom.span,
                remedy="declare it first, or correct the name",
            )
        schema = relation.source.schema
        if len(schema) != len(atom.arguments):
            raise UserError(
                "G002",
                f"{relation.source.name} has {len(schema)} columns, not {len(atom.arguments)}",
                span=atom.span,
                remedy=f"name each, or write _ for it: {', '.join(names(schema))}",
            )
        first: dict[str, str] = {}
        conditions: list[str] = []
        for each, argument in zip(schema, atom.arguments, strict=True):
            if not isinstance(argument, Variable):
                continue
            held = scalar.column(each.name)
            if relation.nulls and not argument.nullable:
                conditions.append(f"NOT {held} IS NULL")
            if argument.name in first:
                other = first[argument.name]
                sides = column(each.name, each.type), column(other, type_in(schema, other))
                equal = _compared("=", *sides, atom)
                if argument.nullable:
                    equal = f"({equal} OR {held} IS NULL AND {scalar.column(other)} IS NULL)"
                conditions.append(equal)
            else:
                first[argument.name] = each.name
        columns = {name: self._column() for name in first}
        outputs = (
            Output(columns[name], type_in(schema, held), scalar.column(held))
            for name, held in first.items()
        )
        filtered = filter_(relation.source, scalar.conjunction(conditions))
        return Bindings(map_(filtered, tuple(outputs)), columns)

    # Values

    def _assigned(self, variable: Variable, value: Expr, bindings: Bindings) -> Bindings:
        bindings, typed = self._value(value, bindings)
        if variable.name in bindings.columns:
            return bindings.filtered(_compared("=", bindings.value(variable.name), typed, value))
        bindings, held = self._with(bindings, typed.text, typed.type)
        return Bindings(bindings.plan, {**bindings.columns, variable.name: held})

    def _condition(self, comparison: Comparison, bindings: Bindings) -> tuple[Bindings, str]:
        bindings, left = self._value(comparison.left, bindings)
        bindings, right = self._value(comparison.right, bindings)
        return bindings, _compared(comparison.operator, left, right, comparison)

    def _value(self, query: Expr, bindings: Bindings) -> tuple[Bindings, Typed]:
        """The value of an expression for each binding; a Sum in it becomes a column."""
        match query:
            case Constant():
                return bindings, literal(query)
            case Variable(name):
                return bindings, bindings.value(name)
            case Sum(body):
                return self._nested(body, bindings)
            case Comparison():
                bindings, condition = self._condition(query, bindings)
                one, zero = (literal(Constant(each)).text for each in (1, 0))
                text = scalar.canonical(f"CASE WHEN {condition} THEN {one} ELSE {zero} END")
                return bindings, Typed(text, "bigint")
            case Extract(unit, value):
                bindings, typed = self._value(value, bindings)
                if typed.type != "date":
                    problem = f"{print_query(value)} is {typed.type}, which is no date"
                    raise types_differ(query, problem, "extract it from a date")
                text = scalar.canonical(f"EXTRACT({unit.upper()} FROM {typed.text})")
                return bindings, Typed(text, "int")
            case Negate(body):
                bindings, typed = self._value(body, bindings)
                zero_ = literal(Constant(0))
                return bindings, arithmetic("-", zero_, self._number(typed, body), query)
            case Add((first, *rest)):
                return self._folded("+", first, rest, bindings)
            case Product((first, *rest)):
                return self._folded("*", first, rest, bindings)
            case _:
                raise AssertionError(query)

    def _folded(
        self, sign: str, first: Expr, rest: list[Expr], bindings: Bindings
    ) -> tuple[Bindings, Typed]:
        bindings, typed = self._value(first, bindings)
        found = self._number(typed, first)
        for each in rest:
            bindings, typed = self._value(each, bindings)
            found = arithmetic(sign, found, self._number(typed, each), each)
        return bindings, found

    def _number(self, value: Typed, place: Expr) -> Typed:
        """A value as a factor or a summand, where NULL is 0."""
        found = number(value, place)
        if not names_in(place) & self.nullable or isinstance(place, Sum | Comparison):
            return found
        zero = cast(literal(Constant(0)), found.type)
        return Typed(scalar.canonical(f"COALESCE({found.text}, {zero})"), found.type)

    def _nested(self, body: Expr, bindings: Bindings) -> tuple[Bindings, Typed]:
        """The value of a Sum for each binding, joined to the bindings as a column."""
        terms = monomials(body, frozenset(bindings.columns), whole_terms=True)
        used = {name for term in terms for each in term.factors for name in names_in(each)}
        shared = tuple(name for name in bindings.columns if name in used)
        held = {name: bindings.columns[name] for name in shared}
        domain = distinct(map_(bindings.plan, _copied(bindings.plan, held.values())))
        keys = tuple(f"key {at}" for at in range(len(shared)))
        rows = [
            self.rows(each, shared, NO_BINDINGS if _binds(each, shared) else Bindings(domain, held))
            for each in terms
        ]
        if shared:
            text = print_query(Sum(body))
            self.correlated.append(CorrelatedNode(text, shared, (VALUE,), domain))
            zero = literal(Constant(0))
            copies = zip(keys, _copied(domain), strict=True)
            zeros = tuple(Output(key, each.type, each.scalar) for key, each in copies)
            rows.append(map_(domain, (*zeros, Output(VALUE, zero.type, zero.text))))
        grouped = self.totals(rows, keys)
        theirs = [self._column() for _ in keys]
        value = self._column()
        renamed = tuple(
            Output(new, each.type, each.scalar)
            for new, each in zip((*theirs, value), _copied(grouped), strict=True)
        )
        mine, around = list[str](), bindings
        for name, each in zip(shared, renamed, strict=False):
            text = cast(bindings.value(name), each.type)
            if bindings.value(name).type == each.type:
                mine.append(held[name])
            else:
                around, wider = self._with(around, text, each.type)
                mine.append(wider)
        on = tuple(zip(mine, theirs, strict=True))
        nulls = any(name in self.nullable for name in shared)
        joined = join(around.plan, map_(grouped, renamed), on, nulls=nulls)
        # The values of Sums before this one, of the same condition, are columns too.
        kept = _copied(joined, (*names(schema_of(bindings.plan)), value))
        return Bindings(map_(joined, kept), bindings.columns), column(value, renamed[-1].type)


def _binds(term: Monomial, shared: tuple[str, ...]) -> bool:
    """Whether a monomial binds the variables it shares with the bindings around it by itself."""
    bound = frozenset[str]().union(*map(binds, term.factors))
    return {*shared} <= bound and in_order(term.factors, frozenset()) is not None


def _compared(sign: str, left: Typed, right: Typed, place: Expr) -> str:
    if "like" in sign:
        if (left.type, right.type) != ("string", "string"):
            problem = f"{sign} compares {left.type} with {right.type}"
            raise types_differ(place, problem, "compare two texts")
        return scalar.canonical(f"{left.text} {sign.upper()} {right.text}")
    type_ = common_type((left.type, right.type), "the two sides", place)
    return scalar.canonical(f"{cast(left, type_)} {sign} {cast(right, type_)}")


def _copied(plan: Plan, columns: Iterable[str] | None = None) -> tuple[Output, ...]:
    """Columns as they are: those named, or all."""
    schema = schema_of(plan)
    wanted = names(schema) if columns is None else columns
    return tuple(Output(each, type_in(schema, each), scalar.column(each)) for each in wanted)
