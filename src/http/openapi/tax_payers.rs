//! Taxpayer API.

use std::sync::Arc;

use jiff::civil::Date;
use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};
use utoipa::openapi::schema::ObjectBuilder;

use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::batch;
use crate::http::forms::form_schema::FormSchema;
use crate::http::forms::full_invoice;
use crate::http::forms::full_invoice::Account;
use crate::http::forms::payment_update;
use crate::http::forms::standard_invoice;
use crate::http::forms::supplier_irn;
use crate::http::forms::unique_no;
use crate::http::forms::update_invoice;
use crate::http::forms::update_status;
use crate::http::openapi::operation::{OperationDoc, RequiredKey};
use crate::http::openapi::parameter::QueryKind;
use crate::http::openapi::schema;
use crate::http::respond::code::ErrorCode;
use crate::http::views::batch::{BatchCreated, BatchView};
use crate::http::views::delivery::DeadLetter;
use crate::http::views::feed::Feed;
use crate::http::views::inbox::{Acknowledgement, InboxLine};
use crate::http::views::invoice::InvoiceView;
use crate::http::views::replay::ReplayView;
use crate::http::views::timeline::TimelineView;

/// Failed preconditions of a create.
const GATES: [ErrorCode; 3] =
    [ErrorCode::SubscriptionInactive, ErrorCode::ProfileIncomplete, ErrorCode::TaxpayerUnverified];
/// Failures of every call that is relayed to the authority.
const RELAYED: [ErrorCode; 2] = [ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout];

pub(super) fn operations() -> Vec<OperationDoc> {
    let all = [creates(), reads(), changes(), supplier_invoices(), logs()];
    all.into_iter().flatten().map(|operation| operation.by(RequiredKey::Taxpayer)).collect()
}

fn creates() -> Vec<OperationDoc> {
    let full = FormSchema::of(|reader| {
        full_invoice::full_invoice(reader, Account { today: Date::MAX, service_id: None })
    });
    vec![
        OperationDoc::new(Post, "/v1/tax-payers/invoices", "create_invoice", "Create Invoice (Standard)")
            .takes(FormSchema::of(standard_invoice::read), include_str!("examples/create_invoice.json"))
            .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
            .gives::<InvoiceObject<'_>>(200, "Invoice already exist")
            .writes()
            .fails(&GATES),
        OperationDoc::new(
            Post,
            "/v1/tax-payers/invoices/full",
            "create_full_invoice",
            "Create Invoice (Full)",
        )
        .takes(full, include_str!("examples/create_full_invoice.json"))
        .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
        .gives::<InvoiceObject<'_>>(200, "Invoice with this IRN already exists")
        .writes()
        .fails(&GATES)
        .fails(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch]),
        OperationDoc::new(Post, "/v1/tax-payers/invoices/bulk", "create_batch", "Create Invoices (Bulk)")
            .takes(FormSchema::of(batch::read), include_str!("examples/create_bulk.json"))
            .gives::<BatchCreated<'_>>(201, "Invoices created successfully")
            .writes()
            .fails(&GATES)
            .fails(&[ErrorCode::BatchTooLarge]),
    ]
}

fn reads() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(
            Get,
            "/v1/tax-payers/invoices/batches/{batch_no}",
            "get_batch",
            "What became of a batch",
        )
        .gives::<BatchView<'_>>(200, "Batch retrieved successfully")
        .fails(&[ErrorCode::BatchNotFound]),
        list_invoices(),
        OperationDoc::new(
            Post,
            "/v1/tax-payers/invoices/get-by-unique-no",
            "get_by_unique_no",
            "Get Invoice by Unique Number",
        )
        .takes(FormSchema::of(unique_no::read), include_str!("examples/unique_no.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice retrieved successfully")
        .fails(&[ErrorCode::InvoiceNotFound]),
        OperationDoc::new(Get, "/v1/tax-payers/invoices/{id}", "get_invoice", "Get Invoice by ID")
            .query("include", QueryKind::Text, "lines, ledger or both, with a comma between them")
            .gives::<InvoiceView<'_>>(200, "Invoice retrieved successfully")
            .fails(&[ErrorCode::InvoiceNotFound]),
        OperationDoc::new(
            Get,
            "/v1/tax-payers/invoices/{id}/timeline",
            "get_timeline",
            "What happened to an invoice",
        )
        .gives::<TimelineView<'_>>(200, "Timeline retrieved successfully")
        .fails(&[ErrorCode::InvoiceNotFound]),
    ]
}

fn list_invoices() -> OperationDoc {
    OperationDoc::new(Get, "/v1/tax-payers/invoices", "list_invoices", "List Invoices, newest first")
        .noted("The next cursor comes in `x-next-cursor` and `Link`.")
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "10 by default, 100 at most")
        .query("batch_no", QueryKind::Text, "of a batch number from Bulk")
        .query("status", QueryKind::Text, "of a workflow status")
        .query("payment_status", QueryKind::Text, "of a payment status")
        .query("invoice_category", QueryKind::Text, "B2B, B2C or B2G")
        .query("date_from", QueryKind::Text, "issued on this day or later, YYYY-MM-DD")
        .query("date_to", QueryKind::Text, "issued on this day or before, YYYY-MM-DD")
        .query("customer_no", QueryKind::Text, "of a customer, by the number that was sent")
        .query("q", QueryKind::Text, "part of a number, an IRN or a customer's name")
        .query("updated_since", QueryKind::Text, "changed at this moment or later, RFC 3339")
        .query("cursor", QueryKind::Text, "where to go on: the x-next-cursor of the page before")
        .gives_page::<InvoiceObject<'_>>("Invoice retrieved successfully")
        .fails(&[ErrorCode::ValidationFailed])
}

fn changes() -> Vec<OperationDoc> {
    let update = FormSchema::of(|reader| update_invoice::read(reader, &Arc::new(Catalog::default())));
    vec![
        OperationDoc::new(Put, "/v1/tax-payers/invoices/update", "update_invoice", "Update Invoice")
            .takes(update, include_str!("examples/update_invoice.json"))
            .gives::<InvoiceObject<'_>>(200, "Invoice updated successfully")
            .writes()
            .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked, ErrorCode::InvalidTransition])
            .fails(&[ErrorCode::CategoryConflict, ErrorCode::PaymentExceedsPayable]),
        OperationDoc::new(
            Patch,
            "/v1/tax-payers/invoices/update-status",
            "update_status",
            "Update Invoice Status",
        )
        .takes(FormSchema::of(update_status::read), include_str!("examples/update_status.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice status updated successfully")
        .writes()
        .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked, ErrorCode::InvalidTransition]),
        OperationDoc::new(
            Patch,
            "/v1/tax-payers/invoices/update-payment-status",
            "update_payment_status",
            "Update Payment Status",
        )
        .takes(FormSchema::of(payment_update::read), include_str!("examples/update_payment_status.json"))
        .gives::<InvoiceObject<'_>>(200, "Invoice payment status updated successfully")
        .writes()
        .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceNotApproved])
        .fails(&[ErrorCode::PaymentExceedsPayable, ErrorCode::InvalidTransition]),
    ]
}

fn supplier_invoices() -> Vec<OperationDoc> {
    let irn = || FormSchema::of(supplier_irn::read);
    let example = include_str!("examples/supplier_irn.json");
    vec![
        OperationDoc::new(
            Get,
            "/v1/tax-payers/supplier-invoices",
            "list_supplier_invoices",
            "Inbox: the supplier invoices the caller was notified about",
        )
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "10 by default, 100 at most")
        .gives_page::<InboxLine>("Supplier invoices retrieved successfully"),
        OperationDoc::new(
            Post,
            "/v1/tax-payers/invoices/get-supplier-invoice",
            "get_supplier_invoice",
            "Get Supplier Invoice",
        )
        .takes(irn(), example)
        .shows(200, "Supplier invoice retrieved successfully", schema::envelope(ObjectBuilder::new()))
        .fails(&[ErrorCode::NotAddressedToCaller, ErrorCode::IrnMalformed]),
        OperationDoc::new(
            Post,
            "/v1/tax-payers/invoices/acknowledge-supplier-invoice",
            "acknowledge_supplier_invoice",
            "Acknowledge Supplier Invoice",
        )
        .takes(irn(), example)
        .gives::<Acknowledgement>(200, "Supplier invoice acknowledged successfully")
        .writes()
        .fails(&[
            ErrorCode::NotAddressedToCaller,
            ErrorCode::AlreadyAcknowledged,
            ErrorCode::AuthorityRejected,
        ])
        .fails(&[ErrorCode::IrnMalformed])
        .fails(&RELAYED),
    ]
}

fn logs() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(
            Get,
            "/v1/tax-payers/webhook/dead-letters",
            "list_own_dead_letters",
            "Notifications that could not be delivered, why, and what to do",
        )
        .query("page", QueryKind::Lenient, "from 1, the default")
        .query("per_page", QueryKind::Lenient, "10 by default, 100 at most")
        .gives_page::<DeadLetter<'_>>("Dead letters retrieved successfully"),
        OperationDoc::new(
            Post,
            "/v1/tax-payers/webhook/dead-letters/{delivery_id}/replay",
            "replay_own_dead_letter",
            "Deliver one of them again",
        )
        .gives::<ReplayView>(200, "Webhook delivery queued successfully")
        .writes()
        .fails(&[
            ErrorCode::DeliveryNotFound,
            ErrorCode::WebhookNotConfigured,
            ErrorCode::InvalidTransition,
        ]),
        OperationDoc::new(
            Get,
            "/v1/tax-payers/events",
            "list_events",
            "Event feed: the log that the webhooks come from",
        )
        .query("after", QueryKind::Whole(0), "the sequence after which to go on; 0 by default")
        .query("limit", QueryKind::Whole(1), "100 by default, 1,000 at most")
        .gives::<Feed>(200, "Events retrieved successfully")
        .fails(&[ErrorCode::ValidationFailed]),
    ]
}
