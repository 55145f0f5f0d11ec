"""The answer of whoever does not compute something: the database is asked."""

from __future__ import annotations


class Unknown(Exception):  # noqa: N818 - a verdict about a plan, not a failure
    """A plan, or values of it, that are not computed on columns."""
