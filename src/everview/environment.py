"""Whether what is installed beside Everview can be used."""

from __future__ import annotations

import sys

from everview.errors import UserError

_COMPILED = (".so", ".pyd")


def must_be_interpreted(parser: type) -> None:
    """Refuse a parser that is compiled: ours inherits from it, which Python then does not allow."""
    for base in parser.__mro__:
        place = str(getattr(sys.modules.get(base.__module__), "__file__", None) or "")
        if place.endswith(_COMPILED):
            raise UserError(
                "E003",
                "sqlglot is installed in its compiled form, sqlglot[c], whose parser Everview"
                " cannot extend",
                remedy="remove it with `pip uninstall sqlglotc`; sqlglot itself stays",
            )
