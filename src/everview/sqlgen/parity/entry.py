"""An entry of the parity table: a construct, the operands it is shown equal for, its SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.types import Type
from everview.sqlgen.parity.type_classes import is_in_class
from everview.sqlgen.types import spark_type_to_duckdb


@dataclass(frozen=True, slots=True)
class Site:
    """One use of a construct: the SQL of its operands, their types, and what the text fixes."""

    name: str
    args: tuple[str, ...]
    types: tuple[Type, ...]
    result: Type
    literals: tuple[str | None, ...]
    value: str | None


Spelling: TypeAlias = str | Callable[[Site], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A construct, the type classes of the operands it is shown equal for, and its DuckDB SQL.

    Classes are separated by blanks; a last one with a star stands for any number of operands.
    A spelling is a template over the operands, or a function of the use.
    """

    name: str
    operands: str
    spelling: Spelling

    def accepts(self, name: str, types: tuple[Type, ...]) -> bool:
        """Whether the entry speaks of this construct with operands of these types."""
        classes = self.operands.split()
        if classes and classes[-1].endswith("*"):
            last = classes.pop().removesuffix("*")
            classes += [last] * (len(types) - len(classes))
        fits = len(classes) == len(types)
        return self.name == name and fits and all(map(is_in_class, types, classes))

    def spell(self, site: Site) -> str:
        """The SQL of one use."""
        if isinstance(self.spelling, str):
            return self.spelling.format(*site.args, to=spark_type_to_duckdb(site.result))
        return self.spelling(site)
