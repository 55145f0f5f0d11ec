WITH ws AS (
    SELECT d_year AS ws_sold_year, ws_item_sk, ws_bill_customer_sk AS ws_customer_sk,
           SUM(ws_quantity) AS ws_qty, SUM(ws_sales_price) AS ws_sp
    FROM web_sales
    LEFT JOIN web_returns ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk
    JOIN date_dim ON ws_sold_date_sk = d_date_sk
    WHERE wr_order_number IS NULL
    GROUP BY d_year, ws_item_sk, ws_bill_customer_sk),
ss AS (
    SELECT d_year AS ss_sold_year, ss_item_sk, ss_customer_sk, SUM(ss_quantity) AS ss_qty,
           SUM(ss_sales_price) AS ss_sp
    FROM store_sales
    LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk
    JOIN date_dim ON ss_sold_date_sk = d_date_sk
    WHERE sr_ticket_number IS NULL
    GROUP BY d_year, ss_item_sk, ss_customer_sk)
SELECT ss_item_sk, ss_customer_sk, ROUND(ss_qty / (COALESCE(ws_qty, 0) + 1), 2) AS ratio,
       ss_qty AS store_qty, ss_sp, COALESCE(ws_qty, 0) AS other_qty, COALESCE(ws_sp, 0) AS other_sp
FROM ss
LEFT JOIN ws ON ws_sold_year = ss_sold_year AND ws_item_sk = ss_item_sk
            AND ws_customer_sk = ss_customer_sk
WHERE COALESCE(ws_qty, 0) > 0 AND ss_sold_year = 2000
