CREATE TABLE orders (
    id BIGINT PRIMARY KEY, day DATE NOT NULL, product STRING NOT NULL, amount DECIMAL(10,2) NOT NULL
);
CREATE TABLE returns (
    order_id BIGINT PRIMARY KEY, day DATE NOT NULL, amount DECIMAL(10,2) NOT NULL
);

-- What each day brought, with returns taken off on the day they come back.
CREATE MATERIALIZED VIEW daily AS
SELECT day, SUM(amount) AS revenue, COUNT(*) AS bookings
FROM (SELECT day, amount FROM orders UNION ALL SELECT day, -amount FROM returns) AS booked
GROUP BY day;

-- The same with the sum of the last three days: a window over a view.
CREATE MATERIALIZED VIEW trend AS
SELECT day, revenue,
    SUM(revenue) OVER (
        ORDER BY day RANGE BETWEEN INTERVAL '2' DAY PRECEDING AND CURRENT ROW
    ) AS last_three_days
FROM daily;

-- The two products that earn the most.
CREATE MATERIALIZED VIEW best_sellers AS
SELECT product, SUM(o.amount - COALESCE(r.amount, 0)) AS earned
FROM orders AS o LEFT JOIN returns AS r ON r.order_id = o.id
GROUP BY product
ORDER BY earned DESC, product LIMIT 2;
