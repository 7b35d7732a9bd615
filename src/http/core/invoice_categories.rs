//! GET /v1/core/commons/invoice-categories: public. Blank is listed, although no write takes it.

use std::future::{Ready, ready};

use crate::http::envelope::Answer;
use crate::http::views::choice::{Choice, InvoiceCategories};

pub(crate) fn invoice_categories() -> Ready<Answer> {
    let choices = ["Blank", "B2B", "B2C", "B2G"].map(|name| Choice::new(name, name));
    let data = InvoiceCategories { invoice_categories: choices.into() };
    ready(Answer::ok("Invoice categories retrieved successfully", data))
}
