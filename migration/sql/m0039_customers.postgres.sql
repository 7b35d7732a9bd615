UPDATE customers SET search_text = left(lower(details::json ->> 'name') || chr(10) || lower(no) || chr(10) ||
    lower(COALESCE(tin, '')), 300);
