"""Ways to get a derivative or a program wrong, applied wherever the source allows it.

Each way takes an expression and yields what somebody could have written instead of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from types import ModuleType

from mutation.planting import Fault, planted, source

Instead = Iterator[tuple[str, ast.expr]]
Way = Callable[[ast.expr, "Scope"], Instead]


class Scope:
    """What is known of the function an expression stands in."""

    def __init__(self, function: ast.FunctionDef | ast.Lambda):
        parameters = [arg.arg for arg in function.args.args]
        self.node = parameters[0] if parameters else ""
        self.derive = parameters[-1] if parameters and parameters[-1] in ("d", "_d") else ""
        self.changes = dict(_changes(function)) if self.derive else {}


def _changes(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that stand for a change, each with the plan it is the change of."""
    for found in ast.walk(function):
        if isinstance(found, ast.Assign):
            target, value = found.targets[0], found.value
            pairs = (
                zip(target.elts, value.elts, strict=True)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for name, made in pairs:
                if isinstance(name, ast.Name) and _calls(made) == "d":
                    yield name.id, made.args[0]  # type: ignore[attr-defined]


def _calls(node: ast.expr) -> str:
    """The name of the function called, or nothing."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def drop_a_term(node: ast.expr, _: Scope) -> Instead:
    """a + b becomes a, or b."""
    if _calls(node) == "add" and isinstance(node, ast.Call) and len(node.args) > 1:
        for i in range(len(node.args)):
            rest = node.args[:i] + node.args[i + 1 :]
            kept = rest[0] if len(rest) == 1 else ast.Call(node.func, rest, [])
            yield f"drop {ast.unparse(node.args[i])}", kept


def flip_the_sign(node: ast.expr, scope: Scope) -> Instead:
    """−a becomes a; a part of a derivative becomes its opposite."""
    if _calls(node) == "negate" and isinstance(node, ast.Call):
        yield f"do not negate {ast.unparse(node.args[0])}", node.args[0]
    elif scope.derive and _calls(node) in ("join", "filter_", "map_", "totals", "add"):
        negated = ast.Call(ast.Name("negate", ast.Load()), [node], [])
        yield f"negate {ast.unparse(node)}", negated


def forget_an_operator(node: ast.expr, _: Scope) -> Instead:
    """f(a) becomes a."""
    wrappers = (
        "filter_",
        "distinct",
        "positive",
        "restrict",
        "restrict_to_keys",
        "groups",
        "totals",
    )
    if _calls(node) in wrappers and isinstance(node, ast.Call):
        yield f"leave out {_calls(node)} in {ast.unparse(node)}", node.args[0]


def take_the_old_value(node: ast.expr, scope: Scope) -> Instead:
    """Δa becomes a."""
    if _calls(node) == scope.derive != "" and isinstance(node, ast.Call):
        yield f"{ast.unparse(node.args[0])} instead of its change", node.args[0]
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    if is_read and node.id in scope.changes:
        old = scope.changes[node.id]
        yield f"{ast.unparse(old)} instead of {node.id}", old


def take_the_new_value(node: ast.expr, scope: Scope) -> Instead:
    """A becomes a + Δa."""
    if not scope.derive or not isinstance(node, ast.Attribute):
        return
    if node.attr in ("left", "right", "child"):
        change = ast.Call(ast.Name(scope.derive, ast.Load()), [node], [])
        new = ast.Call(ast.Name("add", ast.Load()), [node, change], [])
        yield f"the new {ast.unparse(node)} instead of the old", new


def swap_the_sides(node: ast.expr, _: Scope) -> Instead:
    """f(a, b) becomes f(b, a)."""
    sided = ("_difference", "restrict", "restrict_to_keys")
    if _calls(node) in sided and isinstance(node, ast.Call):
        swapped = [node.args[1], node.args[0], *node.args[2:]]
        yield f"swap the sides of {ast.unparse(node)}", ast.Call(node.func, swapped, [])


def forget_a_condition(node: ast.expr, _: Scope) -> Instead:
    """A join loses its keys, what else it asks for, or that NULL equals NULL."""
    if _calls(node) == "join" and isinstance(node, ast.Call):
        nothings = (ast.Tuple([], ast.Load()), ast.Constant(None), ast.Constant(False))
        for i, nothing in zip(range(2, len(node.args)), nothings, strict=False):
            args = [*node.args[:i], nothing, *node.args[i + 1 :]]
            without = ast.Call(node.func, args, [])
            yield f"forget {ast.unparse(node.args[i])} in {ast.unparse(node)}", without


def forget_a_key(node: ast.expr, _: Scope) -> Instead:
    """Groups by (a, b) become groups by b."""
    if _calls(node) in ("groups", "totals", "partition", "window") and isinstance(node, ast.Call):
        fewer = ast.Subscript(node.args[1], ast.Slice(ast.Constant(1)), ast.Load())
        args = [node.args[0], fewer, *node.args[2:]]
        yield f"forget a key in {ast.unparse(node)}", ast.Call(node.func, args, [])


WAYS: tuple[Way, ...] = (
    drop_a_term,
    flip_the_sign,
    forget_an_operator,
    take_the_old_value,
    take_the_new_value,
    swap_the_sides,
    forget_a_condition,
    forget_a_key,
)


def faults(module: ModuleType) -> list[Fault]:
    """Every way applied to every expression of every function of a module, one at a time."""
    seen = _Planter(None)
    seen.visit(ast.parse(source(module)))
    return [
        Fault(module, where, what, partial(_plant, module, number))
        for number, (where, what) in enumerate(seen.found)
    ]


def _plant(module: ModuleType, number: int) -> AbstractContextManager[None]:
    tree = _Planter(number).visit(ast.parse(source(module)))
    return planted(module, ast.fix_missing_locations(tree))


class _Planter(ast.NodeTransformer):
    """Goes through a module, counts what could be wrong, and makes the one of that number so."""

    def __init__(self, number: int | None):
        self.found: list[tuple[str, str]] = []
        self._number = number
        self._scopes: list[Scope] = []
        self._owners: list[str] = []

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what stands there instead of it."""
        owner = _owner(node)
        if owner:
            self._owners.append(owner)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            self._scopes.append(Scope(node))
        if isinstance(node, ast.expr) and self._scopes:
            for way in WAYS:
                for what, instead in way(node, self._scopes[-1]):
                    self.found.append((".".join(self._owners), self._unique(what)))
                    if len(self.found) - 1 == self._number:
                        return ast.copy_location(deepcopy(instead), node)
        made = node if _names_only(node, self._scopes) else super().visit(node)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            self._scopes.pop()
        if owner:
            self._owners.pop()
        return made

    def _unique(self, what: str) -> str:
        where = ".".join(self._owners)
        same = sum(1 for w, known in self.found if w == where and known.split(" #")[0] == what)
        return f"{what} #{same + 1}" if same else what


def _names_only(node: ast.AST, scopes: list[Scope]) -> bool:
    """Whether what stands below says which plan is meant, and has no value of its own."""
    named = ("columns_of", scopes[-1].derive) if scopes else ()
    return isinstance(node, ast.Call) and _calls(node) != "" and _calls(node) in named


def _owner(node: ast.AST) -> str:
    """What a place in the module is called: a class, a function, the rule of an operator."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Call) and _calls(node) == "Rule":
        return ast.unparse(node.args[0])
    return ""
