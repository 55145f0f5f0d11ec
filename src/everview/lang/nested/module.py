"""A Python module as a program of nested views: its text is read, and it is not imported or run."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import decimal
import itertools
import math
import operator
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from everview.errors import Span, UserError
from everview.lang.nested.python_source import MISSING, Source, Unread

MARK = "everview.nested"
"""The decorator of the functions that are views."""


def _public(module: ModuleType) -> ModuleType:
    """A module with what it has for others, and not what it needs itself."""
    found = ModuleType(module.__name__)
    own = {name: each for name, each in vars(module).items() if not name.startswith("_")}
    vars(found).update((n, each) for n, each in own.items() if not isinstance(each, ModuleType))
    return found


_MODULES = {each.__name__: _public(each) for each in (datetime, decimal, itertools, math)}
"""What a module may import values from: they are part of Python, and do nothing."""
_MADE: dict[object, Callable[..., Any]] = {
    datetime.date: datetime.date,
    decimal.Decimal: decimal.Decimal,
    frozenset: frozenset,
    tuple: tuple,
}
"""What a constant may be made by."""
_RECORD_OPTIONS = frozenset({"eq", "frozen", "kw_only", "match_args", "order", "repr", "slots"})
"""Options of a data class that leave its components what they are given."""
_MAKING = frozenset({"__init__", "__new__", "__post_init__"})
_NO_COMPONENTS = ("ClassVar", "InitVar", "KW_ONLY")
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def read_module(text: str, file: str) -> tuple[Source, ...]:
    """The functions of a module that are marked as views, in the order in which they stand."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as problem:
        line = getattr(problem, "lineno", None) or 1
        told = getattr(problem, "msg", None) or str(problem)
        raise UserError(
            "N001", f"{file}:{line}: {told}", span=_line(text, line), remedy="correct the text"
        ) from None
    module = _Module(text, file, tree)
    module.define()
    found = tuple(each for each in module.functions() if module.is_marked(each.tree))
    if not found:
        raise UserError(
            "N010",
            f"{file} has no function that is marked as a view",
            remedy="write @ev.nested above each function that is one, and import everview as ev",
        )
    return found


def _line(text: str, number: int) -> Span:
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: number - 1]))
    return Span(text, start, start + len(lines[number - 1].rstrip()) if lines else start)


@dataclass(slots=True)
class _Module:
    """The names of a module, each with what it stands for as far as the text alone tells."""

    text: str
    file: str
    tree: ast.Module
    names: dict[str, Any] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    """Names that are imported, each with the dotted name of what it stands for."""

    def define(self) -> None:
        """Find what each name stands for; one that is bound twice stands for nothing known."""
        bound = Counter(_bound(self.tree))
        if "*" in bound:
            raise UserError(
                "N010",
                f"{self.file}: import * brings names that are not known",
                remedy="import each name",
            )
        changed = {*_changed(self.tree)}
        for statement in self.tree.body:
            for name, value in self._defined(statement):
                if bound[name] > 1:
                    value = Unread(f"{name} is defined more than once in the module")
                elif name in changed and not isinstance(value, ModuleType):
                    value = Unread(f"{name} is changed in the module, which is not run")
                self.names[name] = value
        for name in bound:
            computed = f"{name} is computed when the module runs, and it is not run"
            self.names.setdefault(name, Unread(computed))

    def _defined(self, statement: ast.stmt) -> Iterator[tuple[str, Any]]:
        match statement:
            case ast.Import(aliases):
                for each in aliases:
                    name = each.asname or each.name.partition(".")[0]
                    yield name, self._imported(name, each.name if each.asname else name)
            case ast.ImportFrom(module, aliases, level):
                for each in aliases:
                    name = each.asname or each.name
                    dotted = f"{'.' * level}{module or ''}.{each.name}"
                    yield name, self._imported(name, dotted)
            case ast.FunctionDef(name):
                yield name, self._function(statement)
            case ast.ClassDef(name):
                yield name, self._record(statement)
            case ast.Assign([ast.Name(name)], ast.Call(called) as call) if (
                self._dotted(called) == "collections.namedtuple"
            ):
                yield name, self._named_tuple(name, call)
            case ast.Assign([ast.Name(name)], value):
                yield name, self._folded(name, value)
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                for target, part in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name):
                        yield target.id, self._folded(target.id, part)
            case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
                yield name, self._folded(name, value)

    def _imported(self, name: str, dotted: str) -> object:
        self.imports[name] = dotted
        module, _, attribute = dotted.partition(".")
        if module in _MODULES:
            found = getattr(_MODULES[module], attribute, MISSING) if attribute else _MODULES[module]
            return Unread(f"there is no {dotted}") if found is MISSING else found
        return Unread(f"{name} is imported, and {dotted.rpartition('.')[0] or dotted} is not read")

    def _function(self, tree: ast.FunctionDef) -> object:
        others = [each for each in tree.decorator_list if self._dotted(each) != MARK]
        if others:
            return Unread(f"{tree.name} is decorated: what it gives is not what is written")
        return Source(tree, self.text, self.file, 1, self.names)

    def _record(self, tree: ast.ClassDef) -> object:
        """A data class or a named tuple, as a data class of the same components."""
        by = [d.func if isinstance(d, ast.Call) else d for d in tree.decorator_list]
        is_data_class = [*map(self._dotted, by)] == ["dataclasses.dataclass"] and not tree.bases
        is_named_tuple = [*map(self._dotted, tree.bases)] == ["typing.NamedTuple"] and not by
        if not (is_data_class or is_named_tuple):
            return Unread(f"{tree.name} is no data class and no named tuple")
        calls = (each for each in tree.decorator_list if isinstance(each, ast.Call))
        options = {each.arg: each.value for call in calls for each in call.keywords}
        components = [each for each in tree.body if isinstance(each, ast.AnnAssign)]
        special = any(w in ast.unparse(c.annotation) for c in components for w in _NO_COMPONENTS)
        methods = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
        if special or methods & _MAKING or {*options} - _RECORD_OPTIONS:
            return Unread(f"{tree.name} computes its components when one is made, and is not run")
        try:
            fields = [(ast.unparse(c.target), object, self._component(c)) for c in components]
            named_only = "kw_only" in options and bool(self._constant(options["kw_only"]))
            return dataclasses.make_dataclass(tree.name, fields, kw_only=named_only)
        except (TypeError, ValueError) as problem:
            return Unread(f"{tree.name} cannot be read: {problem}")

    def _component(self, component: ast.AnnAssign) -> Any:
        """A component with its default; one that is computed is no constant, and not known."""
        name, value = ast.unparse(component.target), component.value
        if isinstance(value, ast.Call) and self._dotted(value.func) == "dataclasses.field":
            given = {each.arg: each.value for each in value.keywords}
            if {*given} - {"default", "default_factory"}:
                raise ValueError(f"{name} is more than a component and its default")
            value = given.get("default")
            if "default_factory" in given:
                return dataclasses.field(default=Unread(f"the default of {name} is computed"))
        if value is None:
            return dataclasses.field()
        return dataclasses.field(default=self._folded(f"the default of {name}", value))

    def _named_tuple(self, name: str, call: ast.Call) -> object:
        """What `namedtuple` makes of constants."""
        try:
            given = {str(each.arg): self._constant(each.value) for each in call.keywords}
            return namedtuple(*map(self._constant, call.args), **given)
        except (TypeError, ValueError) as problem:
            return Unread(f"{name} is no named tuple of constants: {problem}")

    def _dotted(self, node: ast.expr) -> str | None:
        """The dotted name of what is imported; None for anything else."""
        match node:
            case ast.Name(name):
                return self.imports.get(name)
            case ast.Attribute(value, name):
                around = self._dotted(value)
                return around and f"{around}.{name}"
        return None

    def _folded(self, name: str, node: ast.expr) -> object:
        try:
            return self._constant(node)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            return Unread(f"{name} is computed when the module runs, and it is not run")

    def _constant(self, node: ast.expr) -> Any:
        """The value of a constant expression; a ValueError for any other."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name) if not isinstance(self.names.get(name, MISSING), Unread | Source):
                if name in self.names:
                    return self.names[name]
            case ast.List(items) | ast.Tuple(items):
                return tuple(map(self._constant, items))
            case ast.Set(items):
                return frozenset(map(self._constant, items))
            case ast.UnaryOp(ast.USub(), operand):
                return -self._constant(operand)
            case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
                values = self._constant(left), self._constant(right)
                numbers = all(isinstance(each, int | float | decimal.Decimal) for each in values)
                texts = all(isinstance(each, str) for each in values)
                if numbers or (texts and isinstance(sign, ast.Add)):
                    return _ARITHMETIC[type(sign)](*values)
            case ast.Call(function, args, []):
                made = _MADE.get(self._callee(function))
                if made is not None:
                    return made(*map(self._constant, args))
        raise ValueError

    def _callee(self, node: ast.expr) -> object:
        match node:
            case ast.Name("frozenset" | "tuple" as name) if name not in self.names:
                return {"frozenset": frozenset, "tuple": tuple}[name]
            case ast.Name(name):
                found = self.names.get(name, MISSING)
            case ast.Attribute(ast.Name(module), name) if self.imports.get(module) in _MODULES:
                found = getattr(self.names[module], name, MISSING)
            case _:
                raise ValueError
        return found if isinstance(found, type) else MISSING

    def is_marked(self, tree: ast.FunctionDef) -> bool:
        """Whether a function is a view."""
        return any(self._dotted(each) == MARK for each in tree.decorator_list)

    def functions(self) -> Iterator[Source]:
        """The functions of the module; a marked one that cannot be read is an error."""
        for tree in self.tree.body:
            if isinstance(tree, ast.FunctionDef):
                found = self.names[tree.name]
                source = Source(tree, self.text, self.file, 1, self.names)
                if isinstance(found, Unread) and self.is_marked(tree):
                    remedy = "define it once, with no decorator but @ev.nested"
                    raise source.refusal(tree, found.problem, remedy)
                yield source


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names that the module binds, once for each place, wherever in its statements."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
                shared = (each for each in ast.walk(node) if isinstance(each, ast.Global))
                yield from (name for each in shared for name in each.names * 2)
                continue
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp()
            ):
                inside = (each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
                yield from (each.target.id for each in inside)
                continue
            case ast.Name(name, ast.Store() | ast.Del()):
                yield name
            case ast.alias(name, other):
                yield other or name.partition(".")[0]
            case ast.ExceptHandler(_, str(name), _):
                yield name
        waiting += ast.iter_child_nodes(node)


def _changed(tree: ast.Module) -> Iterator[str]:
    """The names with a method that is called, or a part that is assigned, outside functions."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Call(ast.Attribute(ast.Name(name), _)):
                    yield name
                case ast.Subscript(ast.Name(name), _, ast.Store() | ast.Del()):
                    yield name
