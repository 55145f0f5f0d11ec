SELECT cc_call_center_id AS call_center, cc_name AS call_center_name, cc_manager AS manager,
       SUM(cr_net_loss) AS returns_loss
FROM call_center, catalog_returns, date_dim, customer, customer_address, customer_demographics,
     household_demographics
WHERE cr_call_center_sk = cc_call_center_sk AND cr_returned_date_sk = d_date_sk
  AND cr_returning_customer_sk = c_customer_sk AND cd_demo_sk = c_current_cdemo_sk
  AND hd_demo_sk = c_current_hdemo_sk AND ca_address_sk = c_current_addr_sk AND d_year = 2000
  AND ((cd_marital_status = 'M' AND cd_education_status = 'College')
    OR (cd_marital_status = 'W' AND cd_education_status = 'Advanced Degree')
    OR (cd_marital_status = 'S' AND cd_education_status = 'College'))
  AND hd_buy_potential LIKE '%0%' AND ca_gmt_offset IN (-5, -6)
GROUP BY cc_call_center_id, cc_name, cc_manager, cd_marital_status, cd_education_status
