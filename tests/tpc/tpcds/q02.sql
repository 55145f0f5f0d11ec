WITH wscs AS (
    SELECT sold_date_sk, sales_price
    FROM (SELECT ws_sold_date_sk AS sold_date_sk, ws_ext_sales_price AS sales_price FROM web_sales
          UNION ALL
          SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales) x),
wswscs AS (
    SELECT d_week_seq,
           SUM(CASE WHEN d_day_name = 'Sunday' THEN sales_price ELSE NULL END) AS sun_sales,
           SUM(CASE WHEN d_day_name = 'Wednesday' THEN sales_price ELSE NULL END) AS wed_sales,
           SUM(CASE WHEN d_day_name = 'Saturday' THEN sales_price ELSE NULL END) AS sat_sales
    FROM wscs, date_dim
    WHERE d_date_sk = sold_date_sk
    GROUP BY d_week_seq)
SELECT d_week_seq1, ROUND(sun_sales1 / sun_sales2, 2) AS sun_ratio,
       ROUND(wed_sales1 / wed_sales2, 2) AS wed_ratio,
       ROUND(sat_sales1 / sat_sales2, 2) AS sat_ratio
FROM (SELECT wswscs.d_week_seq AS d_week_seq1, sun_sales AS sun_sales1, wed_sales AS wed_sales1,
             sat_sales AS sat_sales1
      FROM wswscs, date_dim
      WHERE date_dim.d_week_seq = wswscs.d_week_seq AND d_year = 2000) y,
     (SELECT wswscs.d_week_seq AS d_week_seq2, sun_sales AS sun_sales2, wed_sales AS wed_sales2,
             sat_sales AS sat_sales2
      FROM wswscs, date_dim
      WHERE date_dim.d_week_seq = wswscs.d_week_seq AND d_year = 2000 + 1) z
WHERE d_week_seq1 = d_week_seq2 - 53
