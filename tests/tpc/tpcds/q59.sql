WITH wss AS (
    SELECT d_week_seq, ss_store_sk,
           SUM(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE NULL END) AS sun_sales,
           SUM(CASE WHEN d_day_name = 'Thursday' THEN ss_sales_price ELSE NULL END) AS thu_sales
    FROM store_sales, date_dim
    WHERE d_date_sk = ss_sold_date_sk
    GROUP BY d_week_seq, ss_store_sk)
SELECT s_store_name1, s_store_id1, d_week_seq1, sun_sales1 / sun_sales2 AS sun_ratio,
       thu_sales1 / thu_sales2 AS thu_ratio
FROM (SELECT s_store_name AS s_store_name1, wss.d_week_seq AS d_week_seq1,
             s_store_id AS s_store_id1, sun_sales AS sun_sales1, thu_sales AS thu_sales1
      FROM wss, store, date_dim d
      WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk
        AND d_month_seq BETWEEN 1188 AND 1188 + 11) y,
     (SELECT s_store_name AS s_store_name2, wss.d_week_seq AS d_week_seq2,
             s_store_id AS s_store_id2, sun_sales AS sun_sales2, thu_sales AS thu_sales2
      FROM wss, store, date_dim d
      WHERE d.d_week_seq = wss.d_week_seq AND ss_store_sk = s_store_sk
        AND d_month_seq BETWEEN 1188 + 12 AND 1188 + 23) x
WHERE s_store_id1 = s_store_id2 AND d_week_seq1 = d_week_seq2 - 52
