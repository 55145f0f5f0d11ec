"""Aggregation pushed below joins: totals of a join become products of totals of what it joins.

Σₖ(R ⋈ S) = Σₖ(Σⱼ(R) ⋈ Σⱼ(S)), where j are the join keys and the group keys of each side (eager
aggregation). A measure is split into products whose factors are measures of one relation each, and
each relation has the number of its rows among its totals. Relations that a measure, a group key or
a condition other than an equality of columns ties together stay one (ring-of-databases Ex. 1.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.expr.types import Schema, Type, decimal_parts, is_exact, names, type_in
from everview.plan.build import columns_of, filter_, fresh, groups, join, map_, total_type
from everview.plan.nodes import Filter, Groups, Join, Map, Measure, Output, Plan, Source, Totals
from everview.plan.products import Edge, joined_by, product_name, product_plan, product_type
from everview.plan.traverse import schema_of, transform
from everview.rewrite.normalize import normalize
from everview.rewrite.polynomial import Case, Monomial, Splitting, cannot_raise

MAX_SCALE = 6
"""More places than these are cut off by Spark in a product of 38 digits."""
_NAME_MAX_LENGTH = 60


def factorize(plan: Plan, *, overflow: bool = False) -> Plan:
    """Every grouped join of a plan as products of totals, where it can be split.

    With `overflow`, products of integers are summed exactly, whether or not each would have fitted
    its type.
    """

    def split(node: Plan) -> Plan:
        match node:
            case Groups(Totals(child, keys, measures), _) if _is_join(child):
                return _factorized(node, child, keys, measures, overflow) or node
            case _:
                return node

    return normalize(transform(plan, split))


def _is_join(plan: Plan) -> bool:
    """Whether a plan is filters and maps over a join."""
    match plan:
        case Filter(child, _) | Map(child, _):
            return _is_join(child)
        case Join(nulls=nulls):
            return not nulls
        case _:
            return False


class _UnsplitError(Exception):
    """A join that cannot be split."""


def _factorized(
    node: Plan, child: Plan, keys: tuple[str, ...], measures: tuple[Measure, ...], overflow: bool
) -> Plan | None:
    graph = _Graph()
    try:
        columns = graph.flatten(child)
        split = Splitting(graph.schema, graph.block, overflow)
        graph.tie_conditions()
        for key in keys:
            graph.tie([columns[key]])
        values = {m.column: columns[m.column] for m in measures if m.column is not None}
        for text in values.values():
            if split.cases(text) is None:
                graph.tie([text])
        # Relations that were tied together split their values in another way.
        split = Splitting(graph.schema, graph.block, overflow)
        if len(set(graph.blocks)) < 2:
            return None
        factors = _Factors(graph, split)
        made = [factors.key(columns[key]) for key in keys]
        terms = [factors.terms(m, values.get(m.column or "")) for m in measures]
        products = tuple(dict.fromkeys(factors.product(term) for each in terms for term in each))
        plan = product_plan(factors.plans(), factors.edges(), tuple(made), products)
    except _UnsplitError:
        return None
    shown = schema_of(node)
    kept = [
        Output(key, type_in(shown, key), scalar.column(name))
        for key, name in zip(keys, made, strict=True)
    ]
    summed = [
        Output(m.name, m.type, factors.total(term, m.type))
        for m, term in zip(measures, terms, strict=True)
    ]
    return map_(groups(plan, tuple(made)), (*kept, *summed))


@dataclass(slots=True)
class _Graph:
    """A join as relations, equalities of columns, and other conditions; blocks are tied relations.

    Columns are named after the sources they come from, so that equal parts of different queries
    are equal plans.
    """

    leaves: list[Plan] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    equalities: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        """The columns of all relations."""
        return tuple(column for leaf in self.leaves for column in schema_of(leaf))

    def flatten(self, plan: Plan) -> dict[str, str]:
        """The columns of a plan as texts over those of the relations, which are gathered."""
        match plan:
            case Join(left, right, on, residual, False):
                ours = self.flatten(left)
                theirs = self.flatten(right)
                self.equalities += ((ours[a], theirs[b]) for a, b in on)
                both = ours | theirs
                parts = scalar.conjuncts(residual) if residual else ()
                self.conditions += (scalar.substitute(part, both) for part in parts)
                return both
            case Filter(child, predicate) if _is_join(child):
                columns = self.flatten(child)
                parts = scalar.conjuncts(predicate)
                self.conditions += (scalar.substitute(part, columns) for part in parts)
                return columns
            case Map(child, outputs) if _is_join(child):
                below = schema_of(child)
                if any(type_of(o.scalar, below) != o.type for o in outputs):
                    raise _UnsplitError
                columns = self.flatten(child)
                return {o.name: scalar.substitute(o.scalar, columns) for o in outputs}
            case _:
                return self._leaf(plan)

    def _leaf(self, plan: Plan) -> dict[str, str]:
        taken = names(self.schema)
        label = fresh(_label(plan), tuple(self.labels))
        outputs, columns = list[Output](), dict[str, str]()
        for column in schema_of(plan):
            name = fresh(_origin(plan, column.name) or f"{label}.{column.name}", taken)
            taken = (*taken, name)
            outputs.append(Output(name, column.type, scalar.column(column.name)))
            columns[column.name] = scalar.column(name)
        self.leaves.append(map_(plan, tuple(outputs)))
        self.labels.append(label)
        self.blocks.append(len(self.blocks))
        return columns

    def leaf(self, column: str) -> int:
        """The relation that a column is of."""
        return next(i for i, leaf in enumerate(self.leaves) if column in columns_of(leaf))

    def block(self, column: str) -> int:
        """The block that a column is of."""
        return self.blocks[self.leaf(column)]

    def tie(self, texts: Iterable[str]) -> None:
        """Make one block of all that the texts are computed of; it must be able to compute them."""
        for text in texts:
            found = sorted({self.block(column) for column in scalar.columns(text)})
            if not cannot_raise(scalar.parse(text), self.schema) or not found:
                raise _UnsplitError
            self.blocks = [found[0] if block in found else block for block in self.blocks]

    def tie_conditions(self) -> None:
        """Make one block of all that a condition looks at, but for equalities of two columns."""
        for sides in self.equalities:
            self.tie(sides)
        for text in self.conditions:
            found = sorted({self.block(column) for column in scalar.columns(text)})
            if not found:
                raise _UnsplitError
            self.blocks = [found[0] if block in found else block for block in self.blocks]

    def across(self) -> list[tuple[str, str]]:
        """The equalities between different blocks."""
        return [pair for pair in self.equalities if not self._same_block(pair)]

    def _same_block(self, pair: tuple[str, str]) -> bool:
        return len({self.block(c) for text in pair for c in scalar.columns(text)}) == 1

    def plan(self, block: int) -> Plan:
        """The join of the relations of a block, under its conditions."""
        members = [i for i, own in enumerate(self.blocks) if own == block]
        within = [pair for pair in self.equalities if self._same_block(pair)]
        pairs = [(scalar.as_column(a), scalar.as_column(b)) for a, b in within]
        on = tuple((a, b) for a, b in pairs if a is not None and b is not None)
        computed = [
            f"{a} = {b}" for (a, b), pair in zip(within, pairs, strict=True) if None in pair
        ]
        plan = self.leaves[members[0]]
        for member in members[1:]:
            plan = join(plan, self.leaves[member], joined_by(plan, self.leaves[member], on))
        known = set(columns_of(plan))
        conditions = map(scalar.canonical, _within([*computed, *self.conditions], known))
        return filter_(plan, scalar.conjunction(conditions))


def _within(conditions: Iterable[str], known: set[str]) -> list[str]:
    return [text for text in conditions if scalar.columns(text) <= known]


def _label(plan: Plan) -> str:
    """The source that a relation is made from, or what stands for one."""
    match plan:
        case Source(name):
            return name
        case Filter(child, _) | Map(child, _):
            return _label(child)
        case _:
            return "part"


def _origin(plan: Plan, column: str) -> str | None:
    """A column by the name it has in its source, None where it is computed."""
    match plan:
        case Source(name):
            return f"{name}.{column}"
        case Filter(child, _):
            return _origin(child, column)
        case Map(child, outputs):
            inner = next(scalar.as_column(o.scalar) for o in outputs if o.name == column)
            return _origin(child, inner) if inner is not None else None
        case _:
            return None


Term = tuple[bool, tuple[str, ...]]
"""A product of totals, one of each block, by their names; and whether it is subtracted."""


@dataclass(slots=True)
class _Factors:
    """The totals of each block, gathered while keys and measures ask for them."""

    graph: _Graph
    split: Splitting
    keys: dict[int, dict[str, str]] = field(default_factory=dict)
    values: dict[int, dict[str, str]] = field(default_factory=dict)
    measures: dict[int, dict[str, Measure]] = field(default_factory=dict)
    _types: dict[str, Type] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.blocks:
            self.keys[block], self.values[block], self.measures[block] = {}, {}, {}
        for pair in self.graph.across():
            for text in pair:
                self.key(text)

    @property
    def blocks(self) -> list[int]:
        """The blocks, in order."""
        return sorted(set(self.graph.blocks))

    def key(self, text: str) -> str:
        """The column of a block that holds a key."""
        (block,) = self.split.places(text)
        return self.keys[block].setdefault(text, self._name(text, block))

    def _name(self, text: str, block: int) -> str:
        """A column by its own name, a value by its text, which is shortened where it is long."""
        plain = scalar.as_column(text)
        if plain is not None:
            return self._unique(plain, text)
        shown = text.replace("`", "")
        if "=" in shown or len(shown) > _NAME_MAX_LENGTH or not scalar.columns(text):
            return f"{self.graph.labels[block]}.{_mark(text)}"
        return self._unique(shown, text)

    def _unique(self, name: str, meaning: str) -> str:
        """The name, marked if it is that of something else; case does not tell names apart."""
        first = self._named.setdefault(name.lower(), meaning)
        return name if first == meaning else f"{name}.{_mark(meaning)}"

    def _type(self, text: str) -> Type:
        type_ = type_of(text, self.graph.schema)
        if type_ is None:
            raise _UnsplitError
        return type_

    def edges(self) -> list[Edge]:
        """What joins the blocks."""
        return [(self.key(a), self.key(b)) for a, b in self.graph.across()]

    def plans(self) -> list[Totals]:
        """The totals of all blocks."""
        return [self._plan(block) for block in self.blocks]

    def _plan(self, block: int) -> Totals:
        wanted = self.keys[block] | self.values[block]
        outputs = tuple(Output(name, self._type(text), text) for text, name in wanted.items())
        rows = map_(self.graph.plan(block), outputs)
        kept = tuple(sorted(self.keys[block].values()))
        return Totals(rows, kept, tuple(self.measures[block].values()))

    def _count(self, block: int) -> str:
        label = self.graph.labels[block]
        name = self._unique(f"count({label})", f"rows of {label}")
        self.measures[block].setdefault(name, Measure(name, "bigint", "count"))
        self._types[name] = "bigint"
        return name

    def _measure(self, block: int, function: str, text: str) -> str:
        column = self.values[block].setdefault(text, self._name(text, block))
        type_ = "bigint" if function == "count" else total_type(self._type(text))
        if function == "sum" and not is_exact(self._type(text)):
            raise _UnsplitError
        name = self._unique(f"{function}({column})", f"{function} of {column}")
        made = Measure(name, type_, "sum" if function == "sum" else "count", column)
        self.measures[block].setdefault(name, made)
        self._types[name] = type_
        return name

    def terms(self, measure: Measure, text: str | None) -> list[Term]:
        """The products that a measure is the sum of."""
        if text is None:
            return [(False, tuple(map(self._count, self.blocks)))]
        if measure.function == "count" and len(self.split.places(text)) == 1:
            operand = ((next(iter(self.split.places(text))), text),)
            return [(False, self._counted(Case((), operand)))]
        cases = self.split.cases(text)
        if cases is None:
            raise _UnsplitError
        if measure.function == "count":
            return [(False, self._counted(case)) for case in cases]
        return [
            (m.negative, self._summed(case, m))
            for case in cases
            for m in case.monomials
            if not any(_is(literal, 0) for literal in m.literals)
        ]

    def _counted(self, case: Case) -> tuple[str, ...]:
        """How many rows of each block are in a case."""
        return tuple(self._counted_in(case, block) for block in self.blocks)

    def _counted_in(self, case: Case, block: int) -> str:
        operands = [text for place, text in case.operands if place == block]
        conditions = [text for place, text in case.conditions if place == block]
        if not operands and not conditions:
            return self._count(block)
        if len(operands) == 1 and not conditions:
            return self._measure(block, "count", operands[0])
        return self._measure(block, "count", _when(conditions, operands, "1"))

    def _summed(self, case: Case, monomial: Monomial) -> tuple[str, ...]:
        """The sums of each block that a product is made of; literals go with the first of them."""
        named = [place for place, _ in monomial.texts]
        first = min(named, default=self.blocks[0])
        found = []
        for block in self.blocks:
            own = [text for place, text in monomial.texts if place == block]
            literals = [each for each in monomial.literals if not _is(each, 1)]
            own += literals if block == first else ()
            found.append(self._summed_in(case, block, own))
        return tuple(found)

    def _summed_in(self, case: Case, block: int, texts: list[str]) -> str:
        if not texts:
            return self._counted_in(case, block)
        operands = [text for place, text in case.operands if place == block]
        conditions = [text for place, text in case.conditions if place == block]
        value = texts[0]
        for text in texts[1:]:
            value = scalar.canonical(f"({value}) * ({text})")
        if len(texts) > 1 and not cannot_raise(scalar.parse(value), self.graph.schema):
            raise _UnsplitError
        if conditions or not {*operands} <= {*texts}:
            value = _when(conditions, operands, value)
        return self._measure(block, "sum", value)

    def product(self, term: Term) -> Measure:
        """The measure that holds a product."""
        type_ = product_type([self._types[name] for name in term[1]])
        parts = decimal_parts(type_)
        if parts is not None and parts[1] > MAX_SCALE:
            raise _UnsplitError
        return Measure(product_name(term[1]), type_, "product", None, term[1])

    def total(self, terms: Sequence[Term], type_: Type) -> str:
        """A measure as the sum of its products."""
        if len(terms) == 1 and not terms[0][0] and self.product(terms[0]).type == type_:
            return scalar.column(product_name(terms[0][1]))
        summed = "".join(self._signed(terms, type_)) or "0"
        return scalar.canonical(f"CAST({summed} AS {type_})")

    def _signed(self, terms: Sequence[Term], type_: Type) -> Iterator[str]:
        for place, (negative, factors) in enumerate(terms):
            plus = " + " if place else ""
            own = scalar.column(product_name(factors))
            same = self.product((negative, factors)).type == type_
            yield f"{' - ' if negative else plus}{own if same else f'CAST({own} AS {type_})'}"


def _mark(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _is(literal: str, number: int) -> bool:
    return Decimal(literal) == number


def _when(conditions: Sequence[str], operands: Sequence[str], value: str) -> str:
    """A value where conditions hold and operands are not null, else null."""
    tests = [f"({text})" for text in conditions] + [f"({text}) IS NOT NULL" for text in operands]
    return scalar.canonical(f"CASE WHEN {' AND '.join(tests)} THEN {value} END")
