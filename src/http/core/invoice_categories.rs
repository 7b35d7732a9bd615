//! GET /v1/core/commons/invoice-categories: public. Blank is listed, although no write takes it.

use std::future::{Ready, ready};

use serde_json::json;

use crate::http::envelope::Answer;

pub(crate) fn invoice_categories() -> Ready<Answer> {
    let options = ["Blank", "B2B", "B2C", "B2G"].map(|name| json!({ "label": name, "value": name }));
    let data = json!({ "invoice_categories": options });
    ready(Answer::ok("Invoice categories retrieved successfully", data))
}
