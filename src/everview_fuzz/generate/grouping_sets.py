"""ROLLUP, CUBE and GROUPING SETS in every way they are written, and what tells the sets apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from everview_fuzz.generate.query_context import Field, QueryContext
from everview_fuzz.generate.scalars import Atom, Scalar


def sets_clause(w: QueryContext, keys: Sequence[Scalar]) -> str:
    """Several groupings; Spark alone has no row for the whole of nothing."""
    texts = list(dict.fromkeys(key.text for key in keys))
    swapped = [_swapped(text) for text in texts]
    joined, kind = ", ".join(texts), w.rng.choice(("ROLLUP", "CUBE"))
    if w.chance(0.3):
        return f" GROUP BY {kind}({joined})"
    if w.chance(0.4):
        return f" GROUP BY {joined} WITH {kind}"
    if len(texts) > 1 and w.chance(0.3):
        return f" GROUP BY {texts[0]}, {kind}({', '.join(texts[1:])})"
    sets = [w.rng.sample(texts, w.rng.randint(0, len(texts))) for _ in range(w.rng.randint(1, 3))]
    other = [swapped] if swapped != texts and w.chance(0.8) else []
    shown = ", ".join(f"({', '.join(each)})" for each in [texts, *sets, *other])
    return f" GROUP BY GROUPING SETS ({shown})"


def _swapped(key: str) -> str:
    """A sum the other way round: the same key."""
    found = re.fullmatch(r"\(([\w.`]+) \+ ([\w.`]+)\)", key)
    return f"({found[2]} + {found[1]})" if found else key


def grouping_bits(w: QueryContext, keys: Sequence[Atom]) -> list[tuple[str, Field]]:
    """GROUPING of a key, or of all of them."""
    texts = list(dict.fromkeys(key.text for key in keys))
    if w.chance(0.5):
        return [(f"GROUPING({w.rng.choice(texts)})", Field("g4", "tinyint"))]
    return [(f"GROUPING_ID({', '.join(texts)})", Field("g4", "bigint"))]
