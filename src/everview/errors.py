"""What the user can fix: a code, the place in the text, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text, as character offsets."""

    text: str
    start: int
    stop: int

    @property
    def line(self) -> int:
        """The 1-based line on which the stretch begins."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The 1-based column at which the stretch begins."""
        return self.start - self.text.rfind("\n", 0, self.start)

    @property
    def stretch(self) -> str:
        """What stands there, with the brackets closed that it opens.

        >>> Span("SELECT f(g(a)), b", 7, 12).stretch
        'f(g(a))'
        """
        stop = self.stop
        while stop < len(self.text) and _opened(self.text[self.start : stop]):
            stop += 1
        return " ".join(self.text[self.start : stop].split())

    def underline(self) -> str:
        """The line of the stretch with a marker below it.

        >>> print(Span("SELECT a\\nFROM nowhere", 14, 21).underline())
           2 | FROM nowhere
             |      ^^^^^^^
        """
        begin = self.text.rfind("\n", 0, self.start) + 1
        line = self.text[begin:].partition("\n")[0]
        stop = max(min(self.stop, begin + len(line)), self.start + 1)
        marker = " " * (self.start - begin) + "^" * (stop - self.start)
        return f"{self.line:>4} | {line}\n     | {marker}"


def _opened(text: str) -> bool:
    return text.count("(") > text.count(")") or text.count("[") > text.count("]")


class UserError(Exception):
    """Something the user can fix. Anything else is a bug and keeps its traceback.

    It has a `code`, the `problem` in one sentence, a `remedy`, and the `span` of the text that it
    is about, or None.

    >>> print(UserError("C002", "there is no table t", remedy="create it with CREATE TABLE"))
    error[C002]: there is no table t
    help: create it with CREATE TABLE
    """

    def __init__(self, code: str, problem: str, *, remedy: str, span: Span | None = None) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.span = span
        self.remedy = remedy

    def render(self) -> str:
        """The error as a user reads it: what, where, and what now."""
        place = f"\n{self.span.underline()}" if self.span else ""
        return f"error[{self.code}]: {self.problem}{place}\nhelp: {self.remedy}"

    def __str__(self) -> str:
        return self.render()
