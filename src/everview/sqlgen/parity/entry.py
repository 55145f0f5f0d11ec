"""A row of the parity table: a construct, the operands it is shown equal for, its spelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.types import Type
from everview.sqlgen.parity.type_classes import is_kind
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
    """A construct, the kinds of operands it is shown equal for, and how DuckDB spells it.

    Kinds are separated by blanks; a last kind with a star stands for any number of operands.
    A spelling is a template over the operands, or a function of the use.
    """

    name: str
    operands: str
    spelling: Spelling

    def accepts(self, name: str, types: tuple[Type, ...]) -> bool:
        """Whether the entry speaks of this construct with operands of these types."""
        kinds = self.operands.split()
        if kinds and kinds[-1].endswith("*"):
            last = kinds.pop().removesuffix("*")
            kinds += [last] * (len(types) - len(kinds))
        fits = len(kinds) == len(types)
        return self.name == name and fits and all(map(is_kind, types, kinds))

    def spell(self, site: Site) -> str:
        """The SQL of one use."""
        if isinstance(self.spelling, str):
            return self.spelling.format(*site.args, to=spark_type_to_duckdb(site.result))
        return self.spelling(site)
