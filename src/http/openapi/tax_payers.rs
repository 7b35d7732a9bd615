//! Taxpayer API.

use std::sync::Arc;

use jiff::civil::Date;
use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};
use utoipa::openapi::schema::ObjectBuilder;

use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::reference::catalog::Catalog;
use crate::http::code::Code;
use crate::http::forms::full_invoice::Account;
use crate::http::forms::outline::Outline;
use crate::http::forms::{
    batch, full_invoice, payment_update, standard_invoice, supplier_irn, unique_no, update_invoice,
    update_status,
};
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::parameter::Kind;
use crate::http::openapi::schema;
use crate::http::views::batch::{BatchCreated, BatchView};
use crate::http::views::delivery::DeadLetter;
use crate::http::views::feed::Feed;
use crate::http::views::inbox::{Acknowledgement, InboxLine};
use crate::http::views::invoice::InvoiceView;
use crate::http::views::replay::ReplayView;
use crate::http::views::timeline::TimelineView;

/// What stands before a create.
const GATES: [Code; 3] = [Code::SubscriptionInactive, Code::ProfileIncomplete, Code::TaxpayerUnverified];
/// What any call may fail with that the authority answers in the end.
const RELAYED: [Code; 2] = [Code::AuthorityUnavailable, Code::AuthorityTimeout];

pub(super) fn operations() -> Vec<Operation> {
    let all = [creates(), reads(), changes(), supplier_invoices(), logs()];
    all.into_iter().flatten().map(|operation| operation.by(Key::Taxpayer)).collect()
}

fn creates() -> Vec<Operation> {
    let full = Outline::of(|reader| {
        full_invoice::full_invoice(reader, Account { today: Date::MAX, service_id: None })
    });
    vec![
        Operation::new(Post, "/v1/tax-payers/invoices", "create_invoice", "Create Invoice (Standard)")
            .takes(Outline::of(standard_invoice::read), include_str!("examples/create_invoice.json"))
            .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
            .gives::<InvoiceObject<'_>>(200, "Invoice already exist")
            .writes()
            .fails(&GATES),
        Operation::new(Post, "/v1/tax-payers/invoices/full", "create_full_invoice", "Create Invoice (Full)")
            .takes(full, include_str!("examples/create_full_invoice.json"))
            .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
            .gives::<InvoiceObject<'_>>(200, "Invoice with this IRN already exists")
            .writes()
            .fails(&GATES)
            .fails(&[Code::IrnMalformed, Code::IrnServiceIdMismatch]),
        Operation::new(Post, "/v1/tax-payers/invoices/bulk", "create_batch", "Create Invoices (Bulk)")
            .takes(Outline::of(batch::read), include_str!("examples/create_bulk.json"))
            .gives::<BatchCreated<'_>>(201, "Invoices created successfully")
            .writes()
            .fails(&GATES)
            .fails(&[Code::BatchTooLarge]),
    ]
}

fn reads() -> Vec<Operation> {
    vec![
        Operation::new(
            Get,
            "/v1/tax-payers/invoices/batches/{batch_no}",
            "get_batch",
            "What became of a batch",
        )
        .gives::<BatchView<'_>>(200, "Batch retrieved successfully")
        .fails(&[Code::BatchNotFound]),
        list_invoices(),
        Operation::new(
            Post,
            "/v1/tax-payers/invoices/get-by-unique-no",
            "get_by_unique_no",
            "Get Invoice by Unique Number",
        )
        .takes(Outline::of(unique_no::read), include_str!("examples/unique_no.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice retrieved successfully")
        .fails(&[Code::InvoiceNotFound]),
        Operation::new(Get, "/v1/tax-payers/invoices/{id}", "get_invoice", "Get Invoice by ID")
            .query("include", Kind::Text, "lines, ledger or both, with a comma between them")
            .gives::<InvoiceView<'_>>(200, "Invoice retrieved successfully")
            .fails(&[Code::InvoiceNotFound]),
        Operation::new(
            Get,
            "/v1/tax-payers/invoices/{id}/timeline",
            "get_timeline",
            "What happened to an invoice",
        )
        .gives::<TimelineView<'_>>(200, "Timeline retrieved successfully")
        .fails(&[Code::InvoiceNotFound]),
    ]
}

fn list_invoices() -> Operation {
    Operation::new(Get, "/v1/tax-payers/invoices", "list_invoices", "List Invoices, newest first")
        .noted("The next cursor comes in `x-next-cursor` and `Link`.")
        .query("page", Kind::Lenient, "from 1, the default")
        .query("per_page", Kind::Lenient, "10 by default, 100 at most")
        .query("batch_no", Kind::Text, "of a batch number from Bulk")
        .query("status", Kind::Text, "of a workflow status")
        .query("payment_status", Kind::Text, "of a payment status")
        .query("invoice_category", Kind::Text, "B2B, B2C or B2G")
        .query("date_from", Kind::Text, "issued on this day or later, YYYY-MM-DD")
        .query("date_to", Kind::Text, "issued on this day or before, YYYY-MM-DD")
        .query("customer_no", Kind::Text, "of a customer, by the number that was sent")
        .query("q", Kind::Text, "part of a number, an IRN or a customer's name")
        .query("updated_since", Kind::Text, "changed at this moment or later, RFC 3339")
        .query("cursor", Kind::Text, "where to go on: the x-next-cursor of the page before")
        .gives_page::<InvoiceObject<'_>>("Invoice retrieved successfully")
        .fails(&[Code::ValidationFailed])
}

fn changes() -> Vec<Operation> {
    let update = Outline::of(|reader| update_invoice::read(reader, &Arc::new(Catalog::default())));
    vec![
        Operation::new(Put, "/v1/tax-payers/invoices/update", "update_invoice", "Update Invoice")
            .takes(update, include_str!("examples/update_invoice.json"))
            .gives::<InvoiceObject<'_>>(200, "Invoice updated successfully")
            .writes()
            .fails(&[Code::InvoiceNotFound, Code::InvoiceLocked, Code::InvalidTransition])
            .fails(&[Code::CategoryConflict, Code::PaymentExceedsPayable]),
        Operation::new(
            Patch,
            "/v1/tax-payers/invoices/update-status",
            "update_status",
            "Update Invoice Status",
        )
        .takes(Outline::of(update_status::read), include_str!("examples/update_status.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice status updated successfully")
        .writes()
        .fails(&[Code::InvoiceNotFound, Code::InvoiceLocked, Code::InvalidTransition]),
        Operation::new(
            Patch,
            "/v1/tax-payers/invoices/update-payment-status",
            "update_payment_status",
            "Update Payment Status",
        )
        .takes(Outline::of(payment_update::read), include_str!("examples/update_payment_status.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice payment status updated successfully")
        .writes()
        .fails(&[Code::InvoiceNotFound, Code::InvoiceNotApproved])
        .fails(&[Code::PaymentExceedsPayable, Code::InvalidTransition]),
    ]
}

fn supplier_invoices() -> Vec<Operation> {
    let irn = || Outline::of(supplier_irn::read);
    let example = include_str!("examples/supplier_irn.json");
    vec![
        Operation::new(
            Get,
            "/v1/tax-payers/supplier-invoices",
            "list_supplier_invoices",
            "Inbox: the supplier invoices the caller was notified about",
        )
        .query("page", Kind::Lenient, "from 1, the default")
        .query("per_page", Kind::Lenient, "10 by default, 100 at most")
        .gives_page::<InboxLine>("Supplier invoices retrieved successfully"),
        Operation::new(
            Post,
            "/v1/tax-payers/invoices/get-supplier-invoice",
            "get_supplier_invoice",
            "Get Supplier Invoice",
        )
        .takes(irn(), example)
        .shows(200, "Supplier invoice retrieved successfully", schema::envelope(ObjectBuilder::new()))
        .fails(&[Code::NotAddressedToCaller, Code::IrnMalformed]),
        Operation::new(
            Post,
            "/v1/tax-payers/invoices/acknowledge-supplier-invoice",
            "acknowledge_supplier_invoice",
            "Acknowledge Supplier Invoice",
        )
        .takes(irn(), example)
        .gives::<Acknowledgement>(200, "Supplier invoice acknowledged successfully")
        .writes()
        .fails(&[Code::NotAddressedToCaller, Code::AlreadyAcknowledged, Code::AuthorityRejected])
        .fails(&[Code::IrnMalformed])
        .fails(&RELAYED),
    ]
}

fn logs() -> Vec<Operation> {
    vec![
        Operation::new(
            Get,
            "/v1/tax-payers/webhook/dead-letters",
            "list_own_dead_letters",
            "Notifications that could not be delivered, why, and what to do",
        )
        .query("page", Kind::Lenient, "from 1, the default")
        .query("per_page", Kind::Lenient, "10 by default, 100 at most")
        .gives_page::<DeadLetter<'_>>("Dead letters retrieved successfully"),
        Operation::new(
            Post,
            "/v1/tax-payers/webhook/dead-letters/{delivery_id}/replay",
            "replay_own_dead_letter",
            "Deliver one of them again",
        )
        .gives::<ReplayView>(200, "Webhook delivery queued successfully")
        .writes()
        .fails(&[Code::DeliveryNotFound, Code::WebhookNotConfigured, Code::InvalidTransition]),
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
