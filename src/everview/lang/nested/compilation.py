"""One compilation of a function: its variables with their types, the places and sizes of parts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from everview.errors import UserError
from everview.lang.nested.check import Checker, Context, IllTypedError
from everview.lang.nested.python_source import Source
from everview.lang.nested.syntax import Expr, Var, children
from everview.lang.nested.text import print_expr
from everview.lang.nested.types import Type

_DEPTH_MAX, _SIZE_MAX = 200, 10_000
"""How deep a query may be nested and how many parts it may have, with its functions written out."""


@dataclass(slots=True)
class Compilation:
    """One compilation: the variables in use with their types, and where expressions stand."""

    checker: Checker
    taken: set[str]
    types: dict[str, Type] = field(default_factory=dict)
    places: dict[int, tuple[Expr, Source, ast.AST]] = field(default_factory=dict)
    measured: dict[int, tuple[Expr, int, int]] = field(default_factory=dict)
    depth: int = 0

    def placed(self, expr: Expr, source: Source, node: ast.AST) -> Expr:
        """An expression with the place where it is written; one that is too large is refused."""
        self.places.setdefault(id(expr), (expr, source, node))
        size, depth = self.measure(expr)
        if size > _SIZE_MAX or depth > _DEPTH_MAX:
            raise self.too_large(source, node)
        return expr

    def measure(self, expr: Expr) -> tuple[int, int]:
        """How many parts an expression has, and how deep they are nested."""
        if id(expr) not in self.measured:
            below = [self.measure(each) for each in children(expr)]
            size = 1 + sum(each for each, _ in below)
            depth = 1 + max((each for _, each in below), default=0)
            self.measured[id(expr)] = (expr, size, depth)
        return self.measured[id(expr)][1:]

    @contextmanager
    def deeper(self, source: Source, node: ast.AST) -> Iterator[None]:
        """Refuse a source that is nested too deep to be read."""
        self.depth += 1
        try:
            if self.depth > _DEPTH_MAX:
                raise self.too_large(source, node)
            yield
        finally:
            self.depth -= 1

    def too_large(self, source: Source, node: ast.AST) -> UserError:
        """The error about a part of a function that makes too much."""
        remedy = "make a part of it a view of its own, and long lists of constants tables"
        return source.refusal(node, "this is too large, with all that it calls written out", remedy)

    def type_of(self, expr: Expr) -> Type:
        """The type of an expression; an error says where it stands."""
        return self._checked_at(expr, self.checker.type)

    def _checked_at(self, expr: Expr, check: Callable[[Expr, Context], Type]) -> Type:
        try:
            return check(expr, self.types)
        except IllTypedError as problem:
            found = self.places.get(id(problem.expr)) or self.places.get(id(expr))
            if found is None:
                raise
            _, source, node = found
            written = problem.problem
            if id(problem.expr) in self.places and isinstance(node, ast.expr):
                # The function is quoted as it is written, and not as what it is compiled to.
                meant, said = print_expr(problem.expr), ast.unparse(node)
                written = (
                    said + written.removeprefix(meant) if written.startswith(meant) else written
                )
            raise source.refusal(node, written, problem.remedy, problem.code) from None

    def element_of(self, expr: Expr) -> Type:
        """The type of the elements of a collection."""
        return self._checked_at(expr, self.checker.bag)

    def variable(self, name: str, type_: Type) -> Var:
        """A variable that no other has the name of, so that writing out a call captures none."""
        fresh, count = name, 1
        while fresh in self.taken:
            count += 1
            fresh = f"{name}_{count}"
        self.taken.add(fresh)
        self.types[fresh] = type_
        return Var(fresh)
