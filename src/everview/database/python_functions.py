"""Checks the Python functions that a user gives for queries to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview import arguments
from everview.errors import UserError
from everview.expr.types import Type, storable_type
from everview.lang.sql.parse.functions import must_be_free


def checked_functions(given: object) -> list[tuple[str, Callable[..., Any], Type]]:
    """Functions by name, each with the type it returns; the user says that they are pure."""
    checked = []
    for name, each in arguments.mapping("functions", given).items():
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise UserError(
                "X002",
                f"functions has {arguments.shown(each)} for {arguments.named(name)}",
                remedy="give each as (function, 'type'), such as (len, 'int')",
            )
        function, gives = each
        checked.append(
            (name, function, checked_function(name, function, gives, deterministic=True))
        )
    return checked


def checked_function(
    name: str, function: Callable[..., Any], gives: str, *, deterministic: bool
) -> Type:
    """The type that a function of the user's gives, if it is one and may have the name."""
    arguments.text("name", name)
    if not deterministic:
        raise UserError(
            "Q021",
            f"{arguments.named(name)} may give another answer every time: "
            "no view can stay equal to it",
            remedy="pass deterministic=True if its answer depends on its arguments alone",
        )
    must_be_free(name)
    if not callable(function):
        raise UserError(
            "X002",
            f"{name} is to be {arguments.shown(function)}, which cannot be called",
            remedy="give a Python function",
        )
    type_ = storable_type(arguments.text("gives", gives))
    if type_ is None:
        raise UserError(
            "Q005",
            f"{name} is to give {arguments.shown(gives)}, which is no type of a column",
            remedy="name a type of SQL, such as 'int' or 'decimal(12,2)'",
        )
    return type_
