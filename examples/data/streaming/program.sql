CREATE TABLE orders (
    id BIGINT PRIMARY KEY, day DATE NOT NULL, customer STRING NOT NULL, amount DECIMAL(10,2) NOT NULL
);

CREATE MATERIALIZED VIEW daily AS
SELECT day, SUM(amount) AS revenue, COUNT(*) AS n FROM orders GROUP BY day;

CREATE MATERIALIZED VIEW customers AS
SELECT customer, SUM(amount) AS revenue, MAX(day) AS last_seen FROM orders GROUP BY customer;

CREATE MATERIALIZED VIEW best AS
SELECT customer, revenue FROM customers ORDER BY revenue DESC, customer LIMIT 2;
