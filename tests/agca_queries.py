"""Random AGCA: expressions whose variables are bound, over small relations r(a, b) and s(a, b)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from everview.lang.agca.normal_form import monomials
from everview.lang.agca.scope import binds
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    Wildcard,
    bound_variables,
    rebuilt,
)

NAMES = ("x", "y", "z")
SIGNS = ("=", "<>", "<", "<=", ">", ">=")
values = st.integers(0, 2)
rows = st.lists(st.tuples(st.tuples(values, values), st.integers(-2, 2)), max_size=4)
databases = st.fixed_dictionaries({"r": rows, "s": rows})


@dataclass(frozen=True)
class Shape:
    """What random expressions may have in them."""

    nested: bool = True
    depth: int = 2


@st.composite
def factors(draw, bound: frozenset[str], shape: Shape) -> tuple[Expr, frozenset[str]]:
    """One factor, and the variables bound after it."""
    kinds = ["atom", "atom", "constant"]
    if bound:
        kinds += ["comparison", "assignment", "term"]
    if shape.depth:
        kinds += ["sum", "add"]
    match draw(st.sampled_from(kinds)):
        case "atom":
            arguments = st.sampled_from([*map(Variable, NAMES), Wildcard()])
            pair = draw(st.tuples(arguments, arguments))
            made = Atom(draw(st.sampled_from(["r", "s"])), pair)
            return made, bound | binds(made)
        case "constant":
            return Constant(draw(st.integers(-2, 2))), bound
        case "comparison":
            left, right = draw(terms(bound, shape)), draw(terms(bound, shape))
            return Comparison(draw(st.sampled_from(SIGNS)), left, right), bound
        case "assignment":
            name = draw(st.sampled_from(NAMES))
            return Assignment(Variable(name), draw(terms(bound, shape))), bound | {name}
        case "term":
            return draw(terms(bound, shape)), bound
        case "sum":
            inner = Shape(shape.nested, shape.depth - 1)
            return Sum(draw(products(bound, inner))[0]), bound
        case _:
            inner = Shape(shape.nested, shape.depth - 1)
            sides = [draw(products(bound, inner)) for _ in range(2)]
            made = Add((sides[0][0], Negate(sides[1][0])))
            return made, sides[0][1] & sides[1][1]


@st.composite
def products(draw, bound: frozenset[str], shape: Shape) -> tuple[Expr, frozenset[str]]:
    """A product of one to three factors, and the variables bound after it."""
    found: list[Expr] = []
    for _ in range(draw(st.integers(1, 3))):
        factor, bound = draw(factors(bound, shape))
        found.append(factor)
    return (found[0] if len(found) == 1 else Product(tuple(found))), bound


@st.composite
def terms(draw, bound: frozenset[str], shape: Shape) -> Expr:
    """A value: a variable, a constant, their sum or product, or a Sum."""
    kinds = ["constant", *(["variable", "arithmetic"] if bound else [])]
    if shape.nested and shape.depth:
        kinds.append("sum")
    match draw(st.sampled_from(kinds)):
        case "constant":
            return Constant(draw(st.integers(-2, 2)))
        case "variable":
            return Variable(draw(st.sampled_from(sorted(bound))))
        case "sum":
            return Sum(draw(products(bound, Shape(shape.nested, 0)))[0])
        case _:
            one, other = (Variable(draw(st.sampled_from(sorted(bound)))) for _ in range(2))
            kind = draw(st.sampled_from([Add, Product]))
            return kind((one, draw(st.sampled_from([other, Constant(1), Negate(other)]))))


def queries(*, nested: bool = True, bound: frozenset[str] = frozenset()):
    """Expressions that are range-restricted, where some variables are bound outside."""
    return products(bound, Shape(nested=nested)).map(lambda made: made[0])


@st.composite
def definitions(draw, name: str = "q", *, nested: bool = True) -> Definition:
    """Views: some of the variables that every term binds are the group variables."""
    body = draw(queries(nested=nested))
    bound = [
        frozenset[str]().union(*map(binds, term.factors)) for term in monomials(body, frozenset())
    ]
    common = sorted(frozenset.intersection(*bound) & {*NAMES})
    keys = draw(st.lists(st.sampled_from(common), unique=True)) if common else []
    counted = Counter(each.name for each in bound_variables(body))
    once = sorted(name for name, number in counted.items() if number == 1)
    nullable = draw(st.lists(st.sampled_from(once), unique=True)) if once else []
    return Definition(name, tuple(map(Variable, keys)), with_nullable(body, frozenset(nullable)))


def with_nullable(query: Expr, names: frozenset[str]) -> Expr:
    """An expression whose relations bind some variables to NULL too."""
    if not isinstance(query, Atom):
        return rebuilt(query, lambda part: with_nullable(part, names))
    arguments = (
        replace(each, nullable=each.name in names) if isinstance(each, Variable) else each
        for each in query.arguments
    )
    return replace(query, arguments=tuple(arguments))
