"""Declares the views of an AGCA text."""

from __future__ import annotations

from everview.database.catalog.definitions import ViewDefinition
from everview.database.commit import install
from everview.database.ddl import CatalogChange
from everview.database.error_context import with_span
from everview.database.handle import Handle
from everview.errors import Span
from everview.lang.agca.views import declared_views
from everview.lang.front_end import AGCA


def declare(db: Handle, text: str) -> tuple[str, ...]:
    """Declare the views of a text in one epoch, all or none, and return their names.

    The caller writes exclusively.
    """
    with with_span(Span(text, 0, len(text))):
        views, catalog = declared_views(text), db.catalog
        for each in views:
            catalog = catalog.with_view(ViewDefinition(each.name, each.text, language=AGCA))
        install(db, CatalogChange(catalog))
        return tuple(each.name for each in views)
