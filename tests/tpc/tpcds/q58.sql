WITH ss_items AS (
    SELECT i_item_id AS item_id, SUM(ss_ext_sales_price) AS ss_item_rev
    FROM store_sales, item, date_dim
    WHERE ss_item_sk = i_item_sk
      AND d_date IN (SELECT d_date FROM date_dim
                     WHERE d_month_seq = (SELECT d_month_seq FROM date_dim
                                          WHERE d_date = DATE '2000-01-02'))
      AND ss_sold_date_sk = d_date_sk
    GROUP BY i_item_id),
cs_items AS (
    SELECT i_item_id AS item_id, SUM(cs_ext_sales_price) AS cs_item_rev
    FROM catalog_sales, item, date_dim
    WHERE cs_item_sk = i_item_sk
      AND d_date IN (SELECT d_date FROM date_dim
                     WHERE d_month_seq = (SELECT d_month_seq FROM date_dim
                                          WHERE d_date = DATE '2000-01-02'))
      AND cs_sold_date_sk = d_date_sk
    GROUP BY i_item_id)
SELECT ss_items.item_id, ss_item_rev, ss_item_rev / ((ss_item_rev + cs_item_rev) / 2) * 100 AS dev,
       cs_item_rev, (ss_item_rev + cs_item_rev) / 2 AS average
FROM ss_items, cs_items
WHERE ss_items.item_id = cs_items.item_id
  AND ss_item_rev BETWEEN 0.1 * cs_item_rev AND 9.9 * cs_item_rev
ORDER BY item_id, ss_item_rev
LIMIT 100
