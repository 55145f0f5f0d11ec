"""The statements that make a small shop, and how answers about it are read."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result

SHOP = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2), day DATE);
CREATE MATERIALIZED VIEW revenue AS
  SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer;
INSERT INTO orders VALUES (1, 7, 10.00, DATE'2024-02-29'), (2, 7, 5.50, NULL);
INSERT INTO orders VALUES (3, 8, 1.25, NULL);
"""


def lines(result: Result) -> list[Any]:
    """The JSON objects a command printed, one a line."""
    return [json.loads(line) for line in result.stdout.splitlines()]
