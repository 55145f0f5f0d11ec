"""Exceptions that come from outside, at a chosen call of Everview's own code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from types import FrameType
from typing import Any

import everview

LOCKS = (type(Lock()), type(RLock()))
OURS = str(Path(everview.__file__).parent)
Site = tuple[str, int, int, str]
"""A place from which something is called, or a function that is: file, line, instruction, kind."""


def _site(frame: FrameType, event: str, called: Any) -> Site | None:
    """Where a call happens, if it is one of Everview's functions or is made by one.

    The interpreter raises nothing between the end of a block and the release of its lock: there
    it does not look for signals, and nothing is allocated.
    """
    code = frame.f_code
    if event not in ("call", "c_call") or not code.co_filename.startswith(OURS):
        return None
    name, of = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    if name == "__exit__" and isinstance(of, LOCKS):
        return None
    return code.co_filename, code.co_firstlineno, frame.f_lasti, event


@contextmanager
def recorded() -> Iterator[list[Site]]:
    """The calls that a block makes, in order."""
    found: list[Site] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        site = _site(frame, event, called)
        if site is not None:
            found.append(site)

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def raising(
    work: Callable[[], Any], error: type[BaseException], at: int | tuple[Site, int]
) -> bool:
    """Do some work, and raise an error at a call: by its number, or at the n-th of its place.

    Whether the error came; the place may not have been reached.
    """
    left = at if isinstance(at, int) else at[1]
    wanted = None if isinstance(at, int) else at[0]
    raised = False

    def strike(frame: FrameType, event: str, called: Any) -> None:
        nonlocal left, raised
        site = _site(frame, event, called)
        if raised or site is None or (wanted is not None and site != wanted):
            return
        left -= 1
        if left < 0:
            raised = True
            sys.setprofile(None)
            raise error

    sys.setprofile(strike)
    try:
        work()
    except error:
        pass
    except BaseException as problem:
        if not raised:
            raise
        chain: BaseException | None = problem
        while chain is not None and not isinstance(chain, error):
            chain = chain.__cause__ or chain.__context__
        if chain is None:
            raise
    finally:
        sys.setprofile(None)
    return raised
