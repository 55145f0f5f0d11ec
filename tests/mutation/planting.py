"""Planting a fault: functions of a loaded module run the code of a faulty copy of its source.

Whoever has imported a function keeps the same function object, so the fault is felt everywhere.
"""

from __future__ import annotations

import ast
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, ModuleType


@dataclass(frozen=True)
class Fault:
    """Something wrong: in which module, where in it, what; and how to put it into force."""

    module: ModuleType
    where: str
    what: str
    plant: Callable[[], AbstractContextManager[None]]

    @property
    def name(self) -> str:
        """Module, place and fault: what a test of it is called."""
        return f"{self.module.__name__.removeprefix('everview.')} {self.where}: {self.what}"


@cache
def source(module: ModuleType) -> str:
    """The text of a module."""
    return inspect.getsource(module)


@contextmanager
def planted(module: ModuleType, faulty: str | ast.Module) -> Iterator[None]:
    """The functions of `module` run the code of a faulty copy; afterwards, their own again."""
    codes = _codes(compile(faulty, inspect.getfile(module), "exec"))
    sound = {function: function.__code__ for function in _functions(module)}
    changed = {f: codes[_place(code)] for f, code in sound.items() if codes[_place(code)] != code}
    assert changed, "the fault changes no function"
    try:
        for function, code in changed.items():
            function.__code__ = code
        forget_results()
        yield
    finally:
        for function in changed:
            function.__code__ = sound[function]
        forget_results()


def _place(code: CodeType) -> tuple[str, int]:
    """The name of a function and the line it begins in: the same in a faulty copy."""
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {_place(code): code}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= _codes(part)
    return found


def _functions(module: ModuleType) -> list[FunctionType]:
    """The functions written in a module, wherever they are kept."""
    path = inspect.getfile(module)
    gc.unfreeze()
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, FunctionType)
        and found.__globals__ is vars(module)
        and found.__code__.co_filename == path
        and "<locals>" not in found.__qualname__
    ]


def forget_results() -> None:
    """Results remembered under one code are not those of another.

    What is remembered of plans and scalars stays: no fault is planted below them.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("everview.") and not name.startswith("everview.plan."):
            for found in vars(module).values():
                if hasattr(found, "cache_clear"):
                    found.cache_clear()
