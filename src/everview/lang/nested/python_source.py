"""The source of a Python function: its syntax tree, its names, and places in its text."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from everview.arguments import shown
from everview.errors import Span, UserError

MISSING = object()
"""What a name stands for that nothing defines."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A name of a module whose value its text does not tell, and why."""

    problem: str


@dataclass(frozen=True, slots=True)
class Source:
    """A function as it is written: its definition, the text around that, and its file."""

    tree: ast.FunctionDef
    text: str
    file: str
    first_line: int
    names: Mapping[str, Any]

    def span(self, node: ast.AST) -> Span:
        """Where a part of the function stands in its text."""
        lines = self.text.splitlines(keepends=True)
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", line) or line
        end_column = getattr(node, "end_col_offset", column) or column
        return Span(self.text, _offset(lines, line, column), _offset(lines, end_line, end_column))

    def refusal(self, node: ast.AST, problem: str, remedy: str, code: str = "N010") -> UserError:
        """The error about a part of the function, with its file and line."""
        line = self.first_line + getattr(node, "lineno", 1) - 1
        told = f"{self.file}:{line}: {problem}"
        return UserError(code, told, span=self.span(node), remedy=remedy)

    def static(self, node: ast.AST) -> Any:
        """What a name, or a name in a module, stands for outside the function; else MISSING."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, getattr(builtins, node.id, MISSING))
        if isinstance(node, ast.Attribute):
            module = self.static(node.value)
            if isinstance(module, Unread):
                return module
            if isinstance(module, ModuleType):
                return getattr(module, node.attr, MISSING)
        return MISSING


def word_of(node: ast.AST) -> str:
    """What a construct begins with or is called, as Python's users say it."""
    name = type(node).__name__
    return _WORDS.get(name, name.lower())


_WORDS = {
    "AnnAssign": "an annotation without a value",
    "Assign": "an assignment to more than a name",
    "AsyncFor": "async for",
    "AsyncFunctionDef": "async def",
    "AsyncWith": "async with",
    "AugAssign": "an assignment like +=",
    "ClassDef": "class",
    "Delete": "del",
    "Expr": "an expression by itself",
    "ImportFrom": "import",
    "Return": "return without a value",
    "TryStar": "try",
    "YieldFrom": "yield from",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "Invert": "~",
    "LShift": "<<",
    "MatMult": "@",
    "Pow": "**",
    "RShift": ">>",
}
"""Constructs whose class in `ast` is not called as Python writes them."""


def _offset(lines: list[str], line: int, column: int) -> int:
    """The offset of a place; Python counts columns in bytes."""
    before = sum(map(len, lines[: line - 1]))
    here = lines[line - 1] if line <= len(lines) else ""
    return before + len(here.encode()[:column].decode(errors="ignore"))


def source_of(function: object) -> Source:
    """The source of a function that was written with `def`, or that was read already."""
    if isinstance(function, Source):
        return function
    if not isinstance(function, FunctionType):
        raise UserError(
            "N010",
            f"{shown(function)} is no Python function",
            remedy="write a function with def",
        )
    if hasattr(function, "__wrapped__"):
        raise UserError(
            "N010",
            f"{function.__qualname__} is decorated: what it gives is not what is written",
            remedy="write a function without a decorator",
        )
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text).body[0]
    except (OSError, SyntaxError, IndexError):
        tree, text = None, ""
    if isinstance(tree, ast.AsyncFunctionDef):
        told = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}: "
        raise UserError(
            "N010",
            f"{told}{tree.name} is async, and a view waits for nothing",
            span=Span(text, 0, len(text)),
            remedy="write def, and for in the place of async for",
        )
    if not isinstance(tree, ast.FunctionDef):
        raise UserError(
            "N010",
            f"the source of {function.__qualname__} is not there to be read",
            remedy="write it with def, in a file",
        )
    bound = inspect.getclosurevars(function)
    names = {**bound.globals, **bound.nonlocals}
    # Names that only inner comprehensions use are among the globals of the function.
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and each.id not in names:
            found = function.__globals__.get(each.id, MISSING)
            if found is not MISSING:
                names[each.id] = found
    code = function.__code__
    return Source(tree, text, code.co_filename, code.co_firstlineno, names)
