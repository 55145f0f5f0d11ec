"""Hash-consing: equal records are one object, so comparing and hashing them takes constant time."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

_INTERNED: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


class _Interning(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        record = super().__call__(*args, **kwargs)
        return _INTERNED.setdefault(record.__reduce__(), record)


class Shared(metaclass=_Interning):
    """A frozen record that is compared by identity: an equal one is the same object."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """The constructor and its arguments, so that copies and unpickled records are interned."""
        fields: tuple[str, ...] = self.__match_args__  # type: ignore[attr-defined]
        return type(self), tuple(getattr(self, name) for name in fields)
