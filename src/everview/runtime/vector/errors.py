"""The verdict of the vectorized evaluator about what it does not compute."""

from __future__ import annotations


class Unsupported(Exception):  # noqa: N818 - a verdict about a plan, not a failure
    """A plan, or values of it, that the vectorized operators leave to the database."""
