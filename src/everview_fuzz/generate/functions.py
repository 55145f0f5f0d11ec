"""SQL functions: which ones a case declares, and how queries call them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from everview.expr.types import Column, Type
from everview.lang.sql.parse.functions import Function
from everview_fuzz.generate.expressions import SPARK
from everview_fuzz.generate.query_context import QueryContext
from everview_fuzz.generate.scalars import Atom, Palette, family_of

TAKEN: tuple[Type, ...] = ("int", "bigint", "string", "decimal(10,2)", "date", "boolean", "double")


def functions(rng: Random) -> tuple[Function, ...]:
    """One or two functions of one or two arguments."""
    return tuple(_function(rng, f"f{number}") for number in range(1, rng.randint(2, 3)))


def _function(rng: Random, name: str) -> Function:
    takes = tuple(Column(each, rng.choice(TAKEN)) for each in "mn"[: rng.randint(1, 2)])
    palette = Palette(rng, [Atom(column.name, column.type) for column in takes], SPARK)
    body = palette.draw(family_of(rng.choice(takes).type), 2)
    if "->" in body.text:  # an argument may not stand inside a lambda
        return _function(rng, name)
    return Function(name, takes, body.type, body.text)


def function_call(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    """A call of one of the functions there are, over these columns."""
    function, palette = w.rng.choice(w.functions), w.palette(atoms)
    given = []
    for column in function.takes:
        scalar = palette.draw(family_of(column.type), w.rng.choice((0, 0, 1)))
        if scalar.wild:
            given.append(f"CAST(NULL AS {column.type.upper()})")
        elif scalar.type == column.type:
            given.append(scalar.text)
        else:
            given.append(f"CAST({scalar.text} AS {column.type.upper()})")
    return Atom(f"{function.name}({', '.join(given)})", function.gives, exact=False)
