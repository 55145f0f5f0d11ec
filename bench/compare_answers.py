"""Whether two bags of rows are one answer, as plain engines and views give it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]


def unequal(expected: Iterable[Row], found: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of either bag that the other lacks; a double equals what is close to it.

    DuckDB answers with a double where Spark rounds a decimal, so a decimal is close to a double
    when it differs by no more than its last digit.

    >>> unequal([(1, 0.333333), (2, 0.5)], [(1, Decimal("0.3333")), (2, Decimal("0.7"))])
    ([(2, 0.5)], [(2, Decimal('0.7'))])
    """
    missing, surplus = Counter(expected), Counter(found)
    missing, surplus = missing - surplus, surplus - missing
    left = list(surplus.elements())
    lacking = []
    for row in missing.elements():
        partner = next((other for other in left if all(map(_close, row, other))), None)
        if partner is None:
            lacking.append(row)
        else:
            left.remove(partner)
    return lacking, left


def _close(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float | Decimal):
        last = 10.0 ** int(found.as_tuple().exponent) if isinstance(found, Decimal) else 0.0
        return math.isclose(expected, found, rel_tol=1e-9, abs_tol=last)
    return bool(expected == found)
