"""What is running and how much is left, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


class Progress:
    """Steps of a run whose number is known."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._about = total, 0, ""
        self._began = perf_counter()

    def about(self, what: str) -> None:
        """Say what the following steps belong to."""
        self._about = what

    @contextmanager
    def step(self, what: str) -> Iterator[Callable[[str], None]]:
        """Tell that a step begins; whatever is told inside is told when it ends."""
        found: list[str] = []
        print(f"{self._about} {what} …", end=" ", file=sys.stderr, flush=True)
        began = perf_counter()
        try:
            yield found.append
        except BaseException:
            print("failed", file=sys.stderr, flush=True)
            raise
        now = perf_counter()
        self._done += 1
        left = (now - self._began) / self._done * max(0, self._total - self._done)
        told = "".join(f", {each}" for each in found)
        place = f"{self._done}/{self._total}, about {left / 60:.0f} min left"
        print(f"{now - began:.1f} s{told} ({place})", file=sys.stderr, flush=True)
