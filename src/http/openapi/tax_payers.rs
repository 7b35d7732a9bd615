//! Taxpayer API.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post};

use crate::domain::object::InvoiceObject;
use crate::http::code::Code;
use crate::http::forms::outline::Outline;
use crate::http::forms::{payment_update, standard_invoice, unique_no, update_status};
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::parameter::Kind;
use crate::http::views::feed::Feed;

/// What stands before a create.
const GATES: [Code; 2] = [Code::SubscriptionInactive, Code::ProfileIncomplete];

pub(super) fn operations() -> Vec<Operation> {
    let all = [invoices(), changes(), logs()];
    all.into_iter().flatten().map(|operation| operation.by(Key::Taxpayer)).collect()
}

fn invoices() -> Vec<Operation> {
    vec![
        Operation::new(Get, "/v1/tax-payers/invoices", "list_invoices", "List Invoices, newest first")
            .query("page", Kind::Lenient, "from 1, the default")
            .query("per_page", Kind::Lenient, "10 by default, 100 at most")
            .gives_page::<InvoiceObject>("Invoice retrieved successfully"),
        Operation::new(Post, "/v1/tax-payers/invoices", "create_invoice", "Create Invoice (Standard)")
            .takes(Outline::of(standard_invoice::read), include_str!("examples/create_invoice.json"))
            .gives::<InvoiceObject>(201, "Invoice created successfully")
            .gives::<InvoiceObject>(200, "Invoice already exist")
            .fails(&GATES),
        Operation::new(
            Post,
            "/v1/tax-payers/invoices/get-by-unique-no",
            "get_by_unique_no",
            "Get Invoice by Unique Number",
        )
        .takes(Outline::of(unique_no::read), include_str!("examples/unique_no.json"))
        .gives::<InvoiceObject>(200, "Invoice retrieved successfully")
        .fails(&[Code::InvoiceNotFound]),
        Operation::new(Get, "/v1/tax-payers/invoices/{id}", "get_invoice", "Get Invoice by ID")
            .gives::<InvoiceObject>(200, "Invoice retrieved successfully")
            .fails(&[Code::InvoiceNotFound]),
    ]
}

fn changes() -> Vec<Operation> {
    vec![
        Operation::new(
            Patch,
            "/v1/tax-payers/invoices/update-status",
            "update_status",
            "Update Invoice Status",
        )
        .takes(Outline::of(update_status::read), include_str!("examples/update_status.json"))
        .gives::<InvoiceObject>(200, "Invoice status updated successfully")
        .fails(&[Code::InvoiceNotFound, Code::InvoiceLocked, Code::InvalidTransition]),
        Operation::new(
            Patch,
            "/v1/tax-payers/invoices/update-payment-status",
            "update_payment_status",
            "Update Payment Status",
        )
        .takes(Outline::of(payment_update::read), include_str!("examples/update_payment_status.json"))
        .gives::<InvoiceObject>(200, "Invoice payment status updated successfully")
        .fails(&[
            Code::InvoiceNotFound,
            Code::InvoiceNotApproved,
            Code::PaymentExceedsPayable,
            Code::InvalidTransition,
        ]),
    ]
}

fn logs() -> Vec<Operation> {
    vec![
        Operation::new(
            Get,
            "/v1/tax-payers/events",
            "list_events",
            "Event feed: the log that the webhooks come from",
        )
        .query("after", Kind::Whole(0), "the sequence after which to go on; 0 by default")
        .query("limit", Kind::Whole(1), "100 by default, 1,000 at most")
        .gives::<Feed>(200, "Events retrieved successfully")
        .fails(&[Code::ValidationFailed]),
    ]
}
