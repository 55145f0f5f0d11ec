SELECT *
FROM (SELECT i_manufact_id, SUM(ss_sales_price) AS sum_sales,
             AVG(SUM(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS avg_quarterly_sales
      FROM item, store_sales, date_dim, store
      WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND d_month_seq IN (1200, 1201, 1202, 1203, 1204, 1205, 1206, 1207)
        AND ((i_category IN ('Books', 'Home') AND i_class IN ('personal', 'portable'))
          OR (i_category IN ('Women', 'Music', 'Men') AND i_class IN ('accessories', 'classical')))
      GROUP BY i_manufact_id, d_qoy) tmp1
WHERE CASE WHEN avg_quarterly_sales > 0
           THEN ABS(sum_sales - avg_quarterly_sales) / avg_quarterly_sales ELSE NULL END > 0.1
ORDER BY avg_quarterly_sales, sum_sales, i_manufact_id
LIMIT 100
