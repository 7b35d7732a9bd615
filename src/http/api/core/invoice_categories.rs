//! GET /v1/core/commons/invoice-categories: public. Blank is listed, although no write takes it.

use std::future::{Ready, ready};

use crate::http::respond::envelope::ApiResponse;
use crate::http::views::choice::{Choice, InvoiceCategories};

pub(crate) fn invoice_categories() -> Ready<ApiResponse> {
    let choices = ["Blank", "B2B", "B2C", "B2G"].map(|name| Choice::new(name, name));
    let data = InvoiceCategories { invoice_categories: choices.into() };
    ready(ApiResponse::ok("Invoice categories retrieved successfully", data))
}
