SELECT *
FROM (SELECT COUNT(*) AS h8_30_to_9
      FROM store_sales, household_demographics, time_dim, store
      WHERE ss_sold_time_sk = time_dim.t_time_sk AND ss_hdemo_sk = hd_demo_sk
        AND ss_store_sk = s_store_sk AND time_dim.t_hour = 8 AND time_dim.t_minute >= 30
        AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
          OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2))
        AND store.s_store_name = 'ese') s1,
     (SELECT COUNT(*) AS h9_to_9_30
      FROM store_sales, household_demographics, time_dim, store
      WHERE ss_sold_time_sk = time_dim.t_time_sk AND ss_hdemo_sk = hd_demo_sk
        AND ss_store_sk = s_store_sk AND time_dim.t_hour = 9 AND time_dim.t_minute < 30
        AND ((hd_dep_count = 4 AND hd_vehicle_count <= 4 + 2)
          OR (hd_dep_count = 2 AND hd_vehicle_count <= 2 + 2))
        AND store.s_store_name = 'ese') s2
