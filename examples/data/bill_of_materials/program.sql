CREATE TABLE uses (assembly STRING, part STRING, quantity INT, PRIMARY KEY (assembly, part));
CREATE TABLE price (part STRING PRIMARY KEY, cents INT);

-- Every way from a product down to a part, with the quantities multiplied along it.
CREATE MATERIALIZED VIEW needs AS
WITH RECURSIVE ways (product, part, quantity) AS (
    SELECT assembly, part, CAST(quantity AS BIGINT) FROM uses
    UNION ALL
    SELECT ways.product, uses.part, ways.quantity * uses.quantity
    FROM ways JOIN uses ON uses.assembly = ways.part
)
SELECT product, part, SUM(quantity) AS quantity FROM ways GROUP BY product, part;

CREATE MATERIALIZED VIEW cost AS
SELECT product, SUM(quantity * cents) AS cents
FROM needs JOIN price ON price.part = needs.part
GROUP BY product
