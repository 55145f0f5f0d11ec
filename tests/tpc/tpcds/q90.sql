SELECT CAST(amc AS DECIMAL(15,4)) / CAST(pmc AS DECIMAL(15,4)) AS am_pm_ratio
FROM (SELECT COUNT(*) AS amc
      FROM web_sales, household_demographics, time_dim, web_page
      WHERE ws_sold_time_sk = time_dim.t_time_sk
        AND ws_ship_hdemo_sk = household_demographics.hd_demo_sk
        AND ws_web_page_sk = web_page.wp_web_page_sk AND time_dim.t_hour BETWEEN 8 AND 8 + 1
        AND household_demographics.hd_dep_count <= 4
        AND web_page.wp_char_count BETWEEN 4000 AND 6200) morning,
     (SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE COUNT(*) END AS pmc
      FROM web_sales, household_demographics, time_dim, web_page
      WHERE ws_sold_time_sk = time_dim.t_time_sk
        AND ws_ship_hdemo_sk = household_demographics.hd_demo_sk
        AND ws_web_page_sk = web_page.wp_web_page_sk AND time_dim.t_hour BETWEEN 19 AND 19 + 1
        AND household_demographics.hd_dep_count <= 4
        AND web_page.wp_char_count BETWEEN 4000 AND 6200) evening
ORDER BY am_pm_ratio
LIMIT 100
