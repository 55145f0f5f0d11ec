WITH ssr AS (
    SELECT s_store_id, SUM(sales_price) AS sales, SUM(profit) AS profit,
           SUM(return_amt) AS returned, SUM(net_loss) AS profit_loss
    FROM (SELECT ss_store_sk AS store_sk, ss_sold_date_sk AS date_sk,
                 ss_ext_sales_price AS sales_price, ss_net_profit AS profit,
                 CAST(0 AS DECIMAL(7,2)) AS return_amt, CAST(0 AS DECIMAL(7,2)) AS net_loss
          FROM store_sales
          UNION ALL
          SELECT sr_store_sk, sr_returned_date_sk, CAST(0 AS DECIMAL(7,2)),
                 CAST(0 AS DECIMAL(7,2)), sr_return_amt, sr_net_loss
          FROM store_returns) salesreturns, date_dim, store
    WHERE date_sk = d_date_sk AND store_sk = s_store_sk
      AND d_date BETWEEN CAST('2000-08-23' AS DATE)
                     AND CAST('2000-08-23' AS DATE) + INTERVAL 60 DAYS
    GROUP BY s_store_id),
wsr AS (
    SELECT web_name, SUM(ws_ext_sales_price) AS sales, SUM(ws_net_profit) AS profit
    FROM web_sales, date_dim, web_site
    WHERE ws_sold_date_sk = d_date_sk AND ws_web_site_sk = web_site_sk
      AND d_date BETWEEN CAST('2000-08-23' AS DATE)
                     AND CAST('2000-08-23' AS DATE) + INTERVAL 60 DAYS
    GROUP BY web_name)
SELECT channel, id, SUM(sales) AS sales, SUM(returned) AS returned, SUM(profit) AS profit
FROM (SELECT 'store channel' AS channel, 'store' || s_store_id AS id, sales, returned,
             profit - profit_loss AS profit
      FROM ssr
      UNION ALL
      SELECT 'web channel', 'web_site' || web_name, sales, 0, profit FROM wsr) x
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id
LIMIT 100
