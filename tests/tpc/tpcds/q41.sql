SELECT DISTINCT i_product_name
FROM item i1
WHERE i_manufact_id BETWEEN 1 AND 1 + 6
  AND (SELECT COUNT(*) AS item_cnt
       FROM item
       WHERE (i_manufact = i1.i_manufact AND i_category = 'Women'
              AND (i_color = 'red' OR i_color = 'pink') AND (i_size = 'medium' OR i_size = 'small'))
          OR (i_manufact = i1.i_manufact AND i_category = 'Men'
              AND (i_color = 'blue' OR i_color = 'slate')
              AND (i_size = 'large' OR i_size = 'small'))) > 0
ORDER BY i_product_name
LIMIT 100
