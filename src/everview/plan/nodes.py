"""The operators of a plan: a closed union of small frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.expr.interning import Interned
from everview.expr.types import Column, Schema, Type


class Node(Interned):
    """An operator."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Empty(Node):
    """The relation without rows: 0."""

    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Values(Node):
    """Constant rows, each a tuple of scalar texts: {r, …}."""

    schema: Schema
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Source(Node):
    """A stored relation, as it stood before the transaction: R. `key` is unique where given."""

    name: str
    schema: Schema
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Change(Node):
    """What the transaction adds to a stored relation: ΔR."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Ref(Node):
    """A relation that an earlier step of the program fetched or computed: @name."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Node):
    """The rows of `child` that satisfy `predicate`: σₚ(Q)."""

    child: Plan
    predicate: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column computed from a row: its name, its type and its scalar text."""

    name: str
    type: Type
    scalar: str


@dataclass(frozen=True, slots=True, eq=False)
class Map(Node):
    """Each row replaced by one computed from it: π(Q)."""

    child: Plan
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unnest(Node):
    """Each row once for every element of an array computed from it, with the element: μ(Q).

    `position`, where it is named, counts the elements from zero. With `outer`, a row without
    elements stays once, with null for both.
    """

    child: Plan
    array: str
    element: Column
    position: str = ""
    outer: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Add(Node):
    """Weights added row by row: L + R."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Negate(Node):
    """Every weight with its sign changed: −Q."""

    child: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Join(Node):
    """Pairs of rows equal on `on` that satisfy `residual`, weights multiplied: L ⋈ R.

    With `nulls`, NULL equals NULL.
    """

    left: Plan
    right: Plan
    on: tuple[tuple[str, str], ...] = ()
    residual: str | None = None
    nulls: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(Node):
    """The rows of positive weight, once each: δ(Q)."""

    child: Plan


@dataclass(frozen=True, slots=True, eq=False)
class Positive(Node):
    """The rows of positive weight, as often as it says: Q⁺."""

    child: Plan


@dataclass(frozen=True, slots=True)
class Measure:
    """A total kept for each group: the number of non-null values of a column, or their sum.

    Without a column, the number of rows. A sum is exact; no value at all sums to zero. A `product`
    is over totals: in each row `factors`, totals of the relations joined, are multiplied, and the
    products are added up as they are. The weights are in them already.
    """

    name: str
    type: Type
    function: Literal["count", "sum", "product"]
    column: str | None = None
    factors: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it is a function of."""
        return self.factors if self.column is None else (self.column,)


@dataclass(frozen=True, slots=True, eq=False)
class Totals(Node):
    """A finite map from group keys to a product of rings, summed over the rows: Σₖ(Q)."""

    child: Plan
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Node):
    """The groups that have rows, once each with their totals; without keys, always one: γ(T)."""

    child: Plan
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A column that rows are put in order by."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A value computed from all rows of a group, or from the values that occur in it.

    `more` are the columns of further arguments, `order` is the order of the rows where the function
    depends on it, and `fixed` the argument that is the same for all rows, a literal.
    """

    name: str
    type: Type
    function: str
    column: str | None = None
    distinct: bool = False
    more: tuple[str, ...] = ()
    order: tuple[Order, ...] = ()
    fixed: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns it is a function of."""
        return (self.column, *self.more) if self.column is not None else ()


@dataclass(frozen=True, slots=True, eq=False)
class Partition(Node):
    """Every key group by itself replaced by one row computed from the whole of it: Φₖ(Q)."""

    child: Plan
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """A function over the rows of a group in an order; the frame as SQL writes it, if it has one.

    Arguments are columns or literals. With `skip_nulls`, rows without a value are passed over.
    """

    name: str
    type: Type
    function: str
    arguments: tuple[str, ...] = ()
    order: tuple[Order, ...] = ()
    frame: str = ""
    skip_nulls: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Window(Node):
    """Every row with values computed from its place in its whole key group: Ωₖ(Q)."""

    child: Plan
    keys: tuple[str, ...]
    columns: tuple[Over, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Restrict(Node):
    """The rows of `child` whose key columns occur in `to`, null-safe: Q ⋉ K."""

    child: Plan
    to: Plan
    on: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Recursive(Node):
    """What the fixpoint around it has reached so far of one of its relations: X."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Fixpoint(Node):
    """The relation `result` when Xₙ₊₁ = B(Xₙ) = Xₙ, from X₀ = 0, all equations at once: fix B.

    A `limit` above zero bounds the iterations. When `traced`, every row has the iteration n at
    which it comes, and the weight it comes with: those of Xₙ − Xₙ₋₁.
    """

    result: str
    equations: tuple[tuple[str, Plan], ...]
    limit: int = 0
    traced: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The relations that are defined."""
        return tuple(name for name, _ in self.equations)

    def body(self, name: str) -> Plan:
        """What one of the relations is equal to."""
        return dict(self.equations)[name]


Plan: TypeAlias = (
    Empty
    | Values
    | Source
    | Change
    | Ref
    | Filter
    | Map
    | Unnest
    | Add
    | Negate
    | Join
    | Distinct
    | Positive
    | Totals
    | Groups
    | Partition
    | Window
    | Restrict
    | Recursive
    | Fixpoint
)
