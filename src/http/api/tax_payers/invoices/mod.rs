//! `/v1/tax-payers/invoices`: create, read and update a taxpayer's own invoices.

mod correct;
mod create;
mod files;
mod import;
mod list;
mod read;
mod summary;
mod update;

use std::sync::Arc;

use jiff::civil::Date;

use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::codes::{Category, PaymentStatus, WorkflowStatus};
use crate::domain::reference::catalog::Catalog;
use crate::http::endpoint::{Path, path};
use crate::http::exports::TableFormat;
use crate::http::forms::full_invoice::{self, FormAccount};
use crate::http::forms::{
    batch, payment_update, standard_invoice, unique_no, update_invoice, update_status,
};
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::respond::code::ErrorCode;
use crate::http::views::batch::{BatchCreated, BatchView};
use crate::http::views::invoice::InvoiceView;
use crate::http::views::timeline::TimelineView;

/// Error codes for a taxpayer that may not create invoices.
const PRECONDITION_ERROR_CODES: [ErrorCode; 3] = [
    ErrorCode::SubscriptionInactive,
    ErrorCode::ProfileIncomplete,
    ErrorCode::TaxpayerUnverified,
];

pub(crate) fn endpoints() -> Vec<Path> {
    [
        create_and_list_endpoints(),
        import::endpoints(),
        correct::endpoints(),
        read_endpoints(),
        files::endpoints(),
        summary::endpoints(),
        update_endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn create_and_list_endpoints() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices")
            .post(create::create_invoice, || {
                doc("create_invoice", "Create Invoice (Standard)")
                    .with_note(
                        "Stores an invoice as a draft. If the account has an invoice \
                         with this number, that one is the answer, with 200, and \
                         nothing is stored.",
                    )
                    .takes(standard_invoice::read, example!("create_invoice"))
                    .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
                    .gives::<InvoiceObject<'_>>(200, "Invoice already exist")
                    .writes()
                    .fails(&PRECONDITION_ERROR_CODES)
                    .fails(&[ErrorCode::IrnMalformed, ErrorCode::IrnTaken])
            })
            .get(list::list_invoices, list_doc),
        path("/v1/tax-payers/invoices/full").post(create::create_full_invoice, || {
            let account = FormAccount {
                today: Date::MAX,
                service_id: None,
            };
            doc("create_full_invoice", "Create Invoice (Full)")
                .with_note(
                    "Stores an invoice as a draft, from the whole document that \
                     the authority will get. If the account has an invoice with \
                     this number, that one is the answer, with 200, and nothing \
                     is stored.",
                )
                .takes(
                    |reader| full_invoice::full_invoice(reader, account),
                    example!("create_full_invoice"),
                )
                .gives::<InvoiceObject<'_>>(201, "Invoice created successfully")
                .gives::<InvoiceObject<'_>>(200, "Invoice with this IRN already exists")
                .calculates()
                .writes()
                .fails(&PRECONDITION_ERROR_CODES)
                .fails(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch])
        }),
        path("/v1/tax-payers/invoices/bulk")
            .bulk()
            .post(create::create_batch, || {
                doc("create_batch", "Create Invoices (Bulk)")
                    .with_note(
                        "Stores up to 1,000 invoices. One that is faulty does \
                         not keep the others out: Get Batch tells the outcome \
                         of each.",
                    )
                    .takes(batch::read, example!("create_bulk"))
                    .gives::<BatchCreated<'_>>(201, "Invoices created successfully")
                    .writes()
                    .fails(&PRECONDITION_ERROR_CODES)
                    .fails(&[ErrorCode::BatchTooLarge])
            }),
    ]
}

fn list_doc() -> OperationDoc {
    doc("list_invoices", "List Invoices, newest first")
        .with_note(
            "The next cursor comes in `x-next-cursor` and `Link`. \
             With `Accept: text/csv`, `application/x-ndjson` or the \
             type of XLSX, the answer is a file of the whole list, \
             whatever the page.",
        )
        .with_paging("10 by default, 100 at most")
        .query("batch_no", "of a batch number from Bulk")
        .query_word(
            "status",
            WorkflowStatus::allowed_words,
            "of a workflow status",
        )
        .query_word(
            "payment_status",
            PaymentStatus::allowed_words,
            "of a payment status",
        )
        .query(
            "authority_status",
            "of a status at the authority, or of one of several with \
             commas between them",
        )
        .query_word(
            "invoice_category",
            Category::allowed_words,
            "of a kind of customer",
        )
        .query("date_from", "issued on this day or later, YYYY-MM-DD")
        .query("date_to", "issued on this day or before, YYYY-MM-DD")
        .query("due_before", "due before this day, YYYY-MM-DD")
        .query("due_after", "due after this day, YYYY-MM-DD")
        .query("overdue", "true: due before today, not paid, not cancelled")
        .query("amount_min", "with at least this payable amount")
        .query("amount_max", "with at most this payable amount")
        .query("customer_no", "of a customer, by the number that was sent")
        .query("q", "part of a number, an IRN or a customer's name")
        .query("updated_since", "changed at this moment or later, RFC 3339")
        .query(
            "sort",
            "created_at, invoice_date, due_date or payable; - before \
             it for descending; -created_at by default",
        )
        .query(
            "cursor",
            "where to go on: the x-next-cursor of the page before, with the same sort",
        )
        .gives_page::<InvoiceObject<'_>>("Invoice retrieved successfully")
        .also_as_file(&TableFormat::MEDIA_TYPES)
        .fails(&[ErrorCode::ValidationFailed])
}

fn read_endpoints() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/batches/{batch_no}").get(read::get_batch, || {
            doc("get_batch", "What became of a batch")
                .with_note(
                    "With `Accept: text/csv`, `application/x-ndjson` or the \
                     type of XLSX, the answer is a file.",
                )
                .gives::<BatchView<'_>>(200, "Batch retrieved successfully")
                .also_as_file(&TableFormat::MEDIA_TYPES)
                .fails(&[ErrorCode::BatchNotFound])
        }),
        path("/v1/tax-payers/invoices/get-by-unique-no")
            .reads()
            .post(read::get_by_unique_no, || {
                doc("get_by_unique_no", "Get Invoice by Unique Number")
                    .with_note("Finds an invoice by its id, its IRN or its number.")
                    .takes(unique_no::read, example!("unique_no"))
                    .gives::<InvoiceObject<'_>>(200, "Invoice retrieved successfully")
                    .fails(&[ErrorCode::InvoiceNotFound])
            }),
        path("/v1/tax-payers/invoices/{id}").get(read::get_invoice, || {
            doc("get_invoice", "Get Invoice by ID")
                .with_note(
                    "The Invoice object, with its status and its payment \
                     status.",
                )
                .query(
                    "include",
                    "lines, ledger and verify_link, with commas between them",
                )
                .gives::<InvoiceView<'_>>(200, "Invoice retrieved successfully")
                .fails(&[ErrorCode::InvoiceNotFound])
        }),
        path("/v1/tax-payers/invoices/{id}/timeline").get(read::get_timeline, || {
            doc("get_timeline", "What happened to an invoice")
                .with_note(
                    "The newest 1,000 events, calls to the authority and \
                     deliveries of webhooks, in the order of time.",
                )
                .gives::<TimelineView<'_>>(200, "Timeline retrieved successfully")
                .fails(&[ErrorCode::InvoiceNotFound])
        }),
    ]
}

fn update_endpoints() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/update").put(update::update_invoice, || {
            let catalog = Arc::new(Catalog::default());
            doc("update_invoice", "Update Invoice")
                .with_note(
                    "Replaces the customer, the lines and the details of an \
                     invoice that is not yet under way to the authority.",
                )
                .takes(
                    |reader| update_invoice::read(reader, &catalog),
                    example!("update_invoice"),
                )
                .gives::<InvoiceObject<'_>>(200, "Invoice updated successfully")
                .writes()
                .if_unchanged()
                .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked])
                .fails(&[ErrorCode::InvalidTransition, ErrorCode::CategoryConflict])
                .fails(&[ErrorCode::PaymentExceedsPayable])
        }),
        path("/v1/tax-payers/invoices/update-status").patch(update::update_status, || {
            doc("update_status", "Update Invoice Status")
                .with_note(
                    "Sets the status to draft, approved or cancelled, unless the \
                     pipeline has locked the invoice.",
                )
                .takes(update_status::read, example!("update_status"))
                .gives::<InvoiceObject<'_>>(200, "Invoice status updated successfully")
                .writes()
                .if_unchanged()
                .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceLocked])
                .fails(&[ErrorCode::InvalidTransition])
        }),
        path("/v1/tax-payers/invoices/update-payment-status").patch(
            update::update_payment_status,
            || {
                doc("update_payment_status", "Update Payment Status")
                    .with_note(
                        "Records a payment, or that the payment is pending or \
                         rejected. Partial payments add up; more than is \
                         payable is refused.",
                    )
                    .takes(payment_update::read, example!("update_payment_status"))
                    .gives::<InvoiceObject<'_>>(200, "Invoice payment status updated successfully")
                    .writes()
                    .if_unchanged()
                    .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::InvoiceNotApproved])
                    .fails(&[
                        ErrorCode::PaymentExceedsPayable,
                        ErrorCode::InvalidTransition,
                    ])
            },
        ),
    ]
}
