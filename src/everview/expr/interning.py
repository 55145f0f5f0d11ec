"""Interning (hash-consing): of equal records there is one object (docs/decisions/0011)."""

from __future__ import annotations

from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

_INTERNED: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_INTERNING = Lock()


class _Interning(type):
    """The one metaclass: a call of the class returns the record that is known already."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        record = super().__call__(*args, **kwargs)
        content = record.__reduce__()
        known = _INTERNED.get(content)
        if known is not None:
            return known
        with _INTERNING:  # two threads must not intern twins
            return _INTERNED.setdefault(content, record)


class Interned(metaclass=_Interning):
    """A frozen record that is interned: equality is identity, and hashing takes no walk."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Its class and fields, which make it again: a copy is the same object."""
        fields: tuple[str, ...] = self.__match_args__  # type: ignore[attr-defined]
        return type(self), tuple(getattr(self, name) for name in fields)
