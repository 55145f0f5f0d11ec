"""What the shop declares: four tables, and the views that its reports read."""

from __future__ import annotations

TABLES = {
    "customers": "id BIGINT PRIMARY KEY, name STRING, region STRING, since DATE",
    "products": "id BIGINT PRIMARY KEY, name STRING, category STRING, price DECIMAL(10,2)",
    "orders": "id BIGINT PRIMARY KEY, customer_id BIGINT, day DATE, status STRING",
    "lines": (
        "order_id BIGINT, line_no INT, product_id BIGINT, quantity INT, price DECIMAL(10,2), "
        "PRIMARY KEY (order_id, line_no)"
    ),
}

VIEWS = {
    "customer_revenue": """
        SELECT o.customer_id, SUM(l.quantity * l.price) AS revenue, COUNT(*) AS n
        FROM lines AS l JOIN orders AS o ON l.order_id = o.id
        GROUP BY o.customer_id""",
    "region_sales": """
        SELECT c.region, p.category, SUM(l.quantity) AS pieces,
               SUM(l.quantity * l.price) AS revenue,
               SUM(l.quantity * (p.price - l.price)) AS discount
        FROM lines AS l
        JOIN orders AS o ON l.order_id = o.id
        JOIN customers AS c ON o.customer_id = c.id
        JOIN products AS p ON l.product_id = p.id
        GROUP BY c.region, p.category""",
    "daily_orders": """
        SELECT day, status, COUNT(*) AS n FROM orders GROUP BY day, status""",
    "totals": """
        SELECT COUNT(*) AS n, SUM(quantity) AS pieces, SUM(quantity * price) AS revenue
        FROM lines""",
    "tastes": """
        SELECT DISTINCT o.customer_id, p.category
        FROM lines AS l
        JOIN orders AS o ON l.order_id = o.id
        JOIN products AS p ON l.product_id = p.id""",
    "big_spenders": """
        SELECT c.id, c.name, c.region, r.revenue
        FROM customer_revenue AS r JOIN customers AS c ON r.customer_id = c.id
        WHERE r.revenue >= 10000""",
    "region_average": """
        SELECT c.region, AVG(CAST(r.revenue AS DECIMAL(14,2))) AS revenue, COUNT(*) AS customers
        FROM customer_revenue AS r JOIN customers AS c ON r.customer_id = c.id
        GROUP BY c.region""",
    "contacts": """
        SELECT id, region, 'big spender' AS reason FROM big_spenders
        UNION ALL
        SELECT id, region, 'newcomer' AS reason FROM customers WHERE since >= DATE '2025-10-01'""",
}
"""In order of declaration: a view reads tables and the views above it.

The average is over 14 digits because a sum has 31 here, and an average of more than 20 digits is
taken from all rows of its group: right, but not cheap.
"""
