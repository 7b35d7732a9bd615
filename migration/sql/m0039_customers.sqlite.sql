UPDATE customers SET search_text = substr(lower(json_extract(details, '$.name')) || char(10) || lower(no) || char(10) ||
    lower(COALESCE(tin, '')), 1, 300);
