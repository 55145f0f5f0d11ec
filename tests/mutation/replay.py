"""A law's examples, drawn once by Hypothesis and tried again under every fault."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings

LAWS = Path(__file__).parent.parent / "laws"
NOT_A_CATCH = (ImportError, NameError, SyntaxError)
"""What a fault raises that was not planted well."""


@dataclass
class Draws:
    """What a law drew while it ran, to be drawn again in the same order."""

    data: Any = None
    drawn: list[Any] = field(default_factory=list)

    def draw(self, strategy: Any) -> Any:
        """The next value; laws may change what they draw, so they are given a copy."""
        if self.data is None:
            return self.drawn.pop(0)
        self.drawn.append(self.data.draw(strategy))
        return deepcopy(self.drawn[-1])


@dataclass
class Law:
    """A property and the examples it is tried on."""

    holds: Callable[..., None]
    examples: list[dict[str, Any]]

    @classmethod
    def of(cls, file: str, name: str, examples: int) -> Law:
        """A law with so many examples on which it holds, always the same ones.

        The module is loaded again: the law of the suite keeps its settings.
        """
        spec = spec_from_file_location(f"replayed_{Path(file).stem}_{name}", LAWS / file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        test = getattr(module, name)
        law = cls(test.hypothesis.inner_test, [])
        test.hypothesis.inner_test = law._recorded
        settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(test)()
        return law

    def _recorded(self, **given: Any) -> None:
        if "data" in given:
            given["data"] = Draws(given["data"])
        self.holds(**given)
        self.examples.append(given)

    def is_broken(self) -> bool:
        """Whether an example fails; the one that does is tried first from now on."""
        for number, example in enumerate(self.examples):
            try:
                self.holds(**_again(example))
            except NOT_A_CATCH:
                raise
            except Exception:
                self.examples.insert(0, self.examples.pop(number))
                return True
        return False


def _again(example: dict[str, Any]) -> dict[str, Any]:
    if "data" not in example:
        return example
    return example | {"data": Draws(None, deepcopy(example["data"].drawn))}
