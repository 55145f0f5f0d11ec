SELECT SUBSTR(r_reason_desc, 1, 20) AS reason, AVG(ws_quantity) AS q, AVG(wr_refunded_cash) AS c,
       AVG(wr_fee) AS f
FROM web_sales, web_returns, customer_demographics cd1, customer_demographics cd2,
     customer_address, date_dim, reason
WHERE ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number
  AND ws_sold_date_sk = d_date_sk AND d_year >= 2000 AND cd1.cd_demo_sk = wr_refunded_cdemo_sk
  AND cd2.cd_demo_sk = wr_returning_cdemo_sk AND ca_address_sk = wr_refunded_addr_sk
  AND r_reason_sk = wr_reason_sk
  AND ((cd1.cd_marital_status = cd2.cd_marital_status AND ws_sales_price BETWEEN 1.00 AND 150.00)
    OR (cd1.cd_education_status = cd2.cd_education_status
        AND ws_sales_price BETWEEN 5.00 AND 200.00))
  AND ((ca_country = 'United States' AND ca_state IN ('TN', 'OH', 'GA')
        AND ws_net_profit BETWEEN -100 AND 2000)
    OR (ca_country = 'United States' AND ca_state IN ('CA', 'TX')
        AND ws_net_profit BETWEEN -150 AND 3000))
GROUP BY r_reason_desc
ORDER BY reason, q, c, f
LIMIT 100
