SELECT *
FROM (SELECT AVG(ss_list_price) AS b1_lp, COUNT(ss_list_price) AS b1_cnt,
             COUNT(DISTINCT ss_list_price) AS b1_cntd
      FROM store_sales
      WHERE ss_quantity BETWEEN 0 AND 5
        AND (ss_list_price BETWEEN 8 AND 18 OR ss_coupon_amt BETWEEN 5 AND 45
             OR ss_wholesale_cost BETWEEN 57 AND 77)) b1,
     (SELECT AVG(ss_list_price) AS b2_lp, COUNT(ss_list_price) AS b2_cnt,
             COUNT(DISTINCT ss_list_price) AS b2_cntd
      FROM store_sales
      WHERE ss_quantity BETWEEN 6 AND 10
        AND (ss_list_price BETWEEN 90 AND 100 OR ss_coupon_amt BETWEEN 2 AND 33
             OR ss_wholesale_cost BETWEEN 31 AND 51)) b2,
     (SELECT AVG(ss_list_price) AS b3_lp, COUNT(ss_list_price) AS b3_cnt,
             COUNT(DISTINCT ss_list_price) AS b3_cntd
      FROM store_sales
      WHERE ss_quantity BETWEEN 11 AND 15
        AND (ss_list_price BETWEEN 42 AND 152 OR ss_coupon_amt BETWEEN 12 AND 42
             OR ss_wholesale_cost BETWEEN 79 AND 99)) b3
ORDER BY b1_lp
LIMIT 100
