"""Records of which equal ones are one object: to compare and to hash them costs nothing."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

_KNOWN: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


class _One(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        return _KNOWN.setdefault(made.__reduce__(), made)


class Shared(metaclass=_One):
    """A frozen record without an equality of its own; however deep it is, it is itself."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """What makes it again: a copy of it is the same object."""
        fields: tuple[str, ...] = self.__match_args__  # type: ignore[attr-defined]
        return type(self), tuple(getattr(self, name) for name in fields)
