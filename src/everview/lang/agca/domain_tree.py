"""The domains of all nodes of an expression: computed in one traversal, and kept under changes.

Algorithms 1, 2, 4 and 5 of domains-and-arities, in a version that works: each node keeps its own
domain for the values of its inputs, apart from the joint domain with what stands left of it. So a
change on the left reaches a node only through the inputs that it has from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from everview.algebra.relation import Record
from everview.algebra.ring import Semiring
from everview.errors import UserError
from everview.lang.agca.domains import (
    Condition,
    Database,
    Domain,
    everything,
    extended,
    inputs_in,
    of_condition,
    of_records,
)
from everview.lang.agca.printer import print_query
from everview.lang.agca.scope import Names, check_scope, span_of
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Definition,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    children,
    names_in,
    relations,
    substituted,
)

A = TypeVar("A")
NOTHING: Names = frozenset()


@dataclass(slots=True, eq=False)
class Node(Generic[A]):
    """A node of the parse tree, with InputVars (24-28), OutputVars (29-33) and Rel (34-38)."""

    query: Expr
    parts: tuple[Node[A], ...]
    inputs: Names
    outputs: Names
    reads: frozenset[str]
    bound: Names = NOTHING
    """What is bound to the left of it."""
    is_map: bool = False
    arities: Counter[Record] = field(default_factory=Counter)
    """Of a relation: its records over the variables that it binds, as GROUP BY counts them."""
    given: Domain[A] = field(init=False)
    """The values that the inputs have outside: of a map the domain of its input variables."""
    own: Domain[A] = field(init=False)
    """The domain of the node for the values that its inputs are given."""

    @property
    def asked(self) -> Names:
        """Its inputs, and those of the maps in it that have values to the left of it too.

        By its inputs alone, a map behind a relation that binds the same would have entries for
        values that occur nowhere around.
        """
        maps = (each.inputs for each in self.walk() if each.is_map)
        return self.inputs | (self.bound & frozenset[str]().union(*maps))

    def walk(self) -> Iterator[Node[A]]:
        """The node and all below it."""
        yield self
        for each in self.parts:
            yield from each.walk()

    @property
    def reads_values(self) -> bool:
        """Whether its domain depends on sums: then every change of what is summed counts."""
        return isinstance(self.query, Comparison | Assignment) and bool(self.reads)


class DomainTree(Generic[A]):
    """The domains of an expression over tables, or with ℕ as the ring, its arities.

    An atom of `maps` stands for the map M[x][y] of that name: its arguments are the output
    variables y, and what it shares with the expressions around it are its input variables x.
    """

    def __init__(
        self,
        query: Expr,
        tables: Database,
        ring: Semiring[A],
        maps: Mapping[str, Definition] | None = None,
    ) -> None:
        self.rows = {name: Counter(dict(rows)) for name, rows in tables.items()}
        tables = {name: rows.items() for name, rows in self.rows.items()}
        self.whole: Domain[A] = everything(ring, tables)
        self._maps = maps or {}
        self.visits = 0
        self.recomputed = 0
        self.root: Node[A] = self._node(query, NOTHING, NOTHING)
        self._compute(self.root, self.whole)

    @property
    def domain(self) -> Domain[A]:
        """The domain of the whole expression."""
        return self.root.own

    # The tree

    def _node(self, query: Expr, bound: Names, perhaps: Names) -> Node[A]:
        """A node, where `bound` is bound to the left, and `perhaps` in some summand there."""
        match query:
            case Add(terms) | Product(terms) if not terms:
                raise AssertionError(query)
            case Add(terms):
                return reduce(_union, (self._node(each, bound, perhaps) for each in terms))
            case Product(factors):
                return self._product(factors, bound, perhaps)
            case Negate(body):
                part = self._node(body, bound, perhaps)
                return Node(query, (part,), part.inputs, part.outputs, part.reads, bound)
            case Atom(relation) if relation in self._maps:
                return self._map(query, self._body(query), names_in(query), bound, perhaps)
            case Atom():
                return Node(query, (), NOTHING, names_in(query), frozenset({query.relation}))
            case Sum(body):
                return self._map(query, body, NOTHING, bound, perhaps)
            case Comparison() | Assignment():
                return self._condition(query, bound, perhaps)
            case Variable(name):
                return Node(query, (), frozenset({name}), NOTHING, frozenset())
            case _:
                return Node(query, (), NOTHING, NOTHING, frozenset())

    def _product(self, factors: tuple[Expr, ...], bound: Names, perhaps: Names) -> Node[A]:
        node = self._node(factors[0], bound, perhaps)
        for each in factors[1:]:
            right = self._node(each, bound | node.outputs, perhaps | _perhaps(node))
            inputs = node.inputs | (right.inputs - node.outputs)
            both = Product((node.query, right.query))
            outputs, reads = node.outputs | right.outputs, node.reads | right.reads
            node = Node(both, (node, right), inputs, outputs, reads, bound)
        return node

    def _body(self, atom: Atom) -> Expr:
        definition = self._maps[atom.relation]
        given = zip(definition.key_names, atom.arguments, strict=True)
        return substituted(definition.body, {k: a for k, a in given if isinstance(a, Variable)})

    def _map(
        self, query: Expr, body: Expr, outputs: Names, bound: Names, perhaps: Names
    ) -> Node[A]:
        """A map: what it shares with its surroundings is input, and none of it may stay free."""
        check_scope(body, bound)
        shared = names_in(body) - outputs
        for name in sorted(shared & (perhaps - bound)):
            raise UserError(
                "G003",
                f"the variable {name} is bound in some terms only, before {print_query(query)}",
                span=span_of(query),
                remedy="bind it in each of the terms, or use another name",
            )
        part = self._node(body, bound, perhaps)
        return Node(query, (part,), shared & bound, outputs, part.reads, bound, is_map=True)

    def _condition(self, query: Comparison | Assignment, bound: Names, perhaps: Names) -> Node[A]:
        """A comparison or an assignment, with the maps whose values it looks at."""
        parts = tuple(self._node(each, bound, perhaps) for each in _sums(query))
        plain = frozenset(name for side in children(query) for name in _plain_names(side))
        inputs = plain.union(*(each.inputs for each in parts))
        outputs = frozenset({query.variable.name} if isinstance(query, Assignment) else ())
        return Node(query, parts, inputs, outputs, frozenset(relations(query)), bound)

    # Algorithms 1 and 2

    def _compute(self, node: Node[A], given: Domain[A]) -> None:
        """The domains of a node and of all below it, each of which is visited once (Thm 3.1)."""
        self.visits += 1
        for part, inside in self._below(node, given):
            self._compute(part, inside)
        if isinstance(node.query, Atom) and not node.is_map:
            for row, n in self.rows[node.query.relation].items():
                self._count(node, row, n)
        node.given, node.own = given, self._own(node, given)

    def _below(self, node: Node[A], given: Domain[A]) -> Iterator[tuple[Node[A], Domain[A]]]:
        """The parts from left to right, with the values of their inputs.

        A sum gives the same to both of its sides (4-13); a product gives its right side what its
        left side has, which therefore must be computed before it is asked for the next.
        """
        for place, part in enumerate(node.parts):
            if place and isinstance(node.query, Product):
                given = given * node.parts[0].own
            yield part, inputs_in(given, part.asked)

    def _own(self, node: Node[A], given: Domain[A]) -> Domain[A]:
        """The domain of a node from those of its parts (2-9), (17-20)."""
        parts = [each.own for each in node.parts]
        if node.is_map:
            return extended(given * parts[0], node.inputs | node.outputs)
        match node.query:
            case Atom():
                return of_records(self.whole, node.arities.items())
            case Add():
                return parts[0] + parts[1]
            case Product():
                return parts[0] * parts[1]
            case Negate():
                return parts[0]
            case Comparison() | Assignment():
                return given * of_condition(self.whole, Condition(node.query, node.inputs))
            case _:
                return self.whole

    def _count(self, node: Node[A], row: tuple[Any, ...], n: int) -> bool:
        """Add to the arity of a row; whether its record comes into the domain or leaves it."""
        assert isinstance(node.query, Atom)
        pairs = {
            (argument.name, value)
            for argument, value in zip(node.query.arguments, row, strict=True)
            if isinstance(argument, Variable)
        }
        if len(pairs) > len(node.outputs) or any(value is None for _, value in pairs):
            return False
        key = frozenset(pairs)
        before = node.arities[key]
        node.arities[key] = before + n
        if not node.arities[key]:
            del node.arities[key]
        return self._is_counted or not before or not before + n

    @property
    def _is_counted(self) -> bool:
        ring = self.whole.ring
        return ring.add(ring.one, ring.one) != ring.one

    # Algorithms 4 and 5

    def insert(self, relation: str, row: tuple[Any, ...]) -> bool:
        """One more of a row; whether any domain changed."""
        return self._change(relation, row, 1)

    def delete(self, relation: str, row: tuple[Any, ...]) -> bool:
        """One less of a row, which must be there; whether any domain changed."""
        if not self.rows[relation][row]:
            raise UserError(
                "T011",
                f"{row} is not in {relation}",
                remedy="delete only rows that are there",
            )
        return self._change(relation, row, -1)

    def _change(self, relation: str, row: tuple[Any, ...], n: int) -> bool:
        self.rows[relation][row] += n
        if not self.rows[relation][row]:
            del self.rows[relation][row]
        # Only a change from 0 to 1 or from 1 to 0 does work, or one of a value that is compared.
        moved = {
            leaf
            for leaf in self.root.walk()
            if (isinstance(leaf.query, Atom) and relation in leaf.reads and not leaf.is_map)
            and self._count(leaf, row, n)
        }
        moved |= {n for n in self.root.walk() if n.reads_values and relation in n.reads}
        return bool(moved) and self._maintain(self.root, moved, self.root.given)

    def _maintain(self, node: Node[A], moved: set[Node[A]], given: Domain[A]) -> bool:
        """Bring a node up to date; whether its own domain changed."""
        self.visits += 1
        is_stale = given != node.given
        changed = node in moved
        for part in node.parts:
            inside = self._inside(node, part, given, stale=is_stale or changed)
            if inside != part.given or any(each in moved for each in part.walk()):
                changed |= self._maintain(part, moved, inside)
        if not changed and not is_stale:
            return False
        self.recomputed += 1
        before = node.own
        node.given, node.own = given, self._own(node, given)
        return node.own != before

    def _inside(self, node: Node[A], part: Node[A], given: Domain[A], *, stale: bool) -> Domain[A]:
        """CheckRightNode: what a part is given, as it was unless something that it reads changed.

        The right side of a product needs what comes from the left through its inputs only.
        """
        is_right = isinstance(node.query, Product) and part is not node.parts[0]
        if not stale or not part.asked:
            return part.given
        return inputs_in(given * node.parts[0].own if is_right else given, part.asked)


def _union(left: Node[A], right: Node[A]) -> Node[A]:
    """A sum binds what both of its sides bind (31)."""
    both = Add((left.query, right.query))
    inputs, outputs = left.inputs | right.inputs, left.outputs & right.outputs
    reads = left.reads | right.reads
    return Node(both, (left, right), inputs, outputs, reads, left.bound)


def _perhaps(node: Node[A]) -> Names:
    """What a node binds in some summand."""
    if node.is_map or not isinstance(node.query, Add | Product | Negate):
        return node.outputs
    return frozenset[str]().union(*map(_perhaps, node.parts))


def _sums(query: Expr) -> Iterable[Sum]:
    """The outermost sums of an expression, from left to right."""
    for each in children(query):
        if isinstance(each, Sum):
            yield each
        else:
            yield from _sums(each)


def _plain_names(query: Expr) -> Iterable[str]:
    """The variables of a value outside of its sums."""
    match query:
        case Variable(name):
            yield name
        case Sum():
            return
        case _:
            for each in children(query):
                yield from _plain_names(each)
