"""An expression with types: what is known of every part of it."""

from __future__ import annotations

from dataclasses import dataclass

from everview.expr.types import Type


@dataclass(frozen=True, slots=True)
class Typed:
    """A construct with its arguments, the types Spark casts those to, and its result type.

    `value` is what the text fixes: a column's name, a literal, a unit, the escape of a LIKE.
    An unknown construct has no result type and no operands.
    """

    name: str
    args: tuple[Typed, ...]
    operands: tuple[Type, ...]
    type: Type | None
    value: str | None = None

    @property
    def literal(self) -> str | None:
        """The text of a literal, None for anything else, and for NULL, which has none."""
        return self.value if self.name == "literal" and self.type != "void" else None

    @property
    def literals(self) -> tuple[str | None, ...]:
        """The text of each argument that is a literal, None for any other."""
        return tuple(arg.literal for arg in self.args)
