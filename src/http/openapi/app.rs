//! Access Point Provider API, and the path for the authority's notices.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::authority::Confirmation;
use crate::http::forms::form_schema::FormSchema;
use crate::http::forms::notice;
use crate::http::forms::relayed_payment;
use crate::http::forms::submission;
use crate::http::forms::transmit;
use crate::http::forms::validation;
use crate::http::forms::vat_report;
use crate::http::openapi::operation::{OperationDoc, RequiredKey};
use crate::http::openapi::parameter::QueryKind;
use crate::http::openapi::schema;
use crate::http::respond::code::ErrorCode;
use crate::http::views::inbox::NoticeView;
use crate::http::views::run::{PaymentResult, ReportResult, RunView, SubmissionResult, TransmissionResult};
use crate::http::views::validated::Validated;

/// Failures of every call that is relayed to the authority.
const RELAYED: [ErrorCode; 2] = [ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout];
/// Failures of a body with a malformed IRN, or with an IRN of another taxpayer.
const OWN_IRN: [ErrorCode; 2] = [ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch];
const ACCEPTED: &str = "The request is being processed: the run, for who prefers `respond-async`";

pub(super) fn operations() -> Vec<OperationDoc> {
    let all = [validate(), submit(), transmit(), confirm_receipt(), report(), update_payment_status()];
    let ours =
        |operation: OperationDoc| operation.by(RequiredKey::Either).fails(&[ErrorCode::TaxpayerUnverified]);
    let all = all.into_iter().chain(reads()).map(ours);
    all.chain([notifications()]).collect()
}

/// Every fault of the payload is 400 here.
fn validate() -> OperationDoc {
    OperationDoc::new(Post, "/v1/app/invoices/validate", "validate", "Validate")
        .takes(
            FormSchema::of(|reader| validation::validation(reader, None)),
            include_str!("examples/validate.json"),
        )
        .query(
            "explain",
            QueryKind::Text,
            "`patch`: a refusal also tells what would mend the body, as far as that is safe",
        )
        .gives::<Validated<'_>>(200, "Invoice validated successfully")
        .fails_with(
            400,
            &[
                ErrorCode::ValidationFailed,
                ErrorCode::IrnMalformed,
                ErrorCode::IrnServiceIdMismatch,
                ErrorCode::AuthorityRejected,
            ],
        )
        .fails(&[ErrorCode::TaxpayerNotFound])
        .fails(&RELAYED)
}

fn submit() -> OperationDoc {
    let mut submit = OperationDoc::new(Post, "/v1/app/invoices/submit", "submit", "Submit").noted(
        "The result stands under `message` and the sentence under `data`. Sending the same IRN again is safe.",
    );
    let result = submit.refer::<SubmissionResult<'_>>();
    let sentence = ObjectBuilder::new().schema_type(Type::String);
    submit
        .takes(
            FormSchema::of(|reader| submission::fields(reader, None)),
            include_str!("examples/submit.json"),
        )
        .shows(200, "Invoice submitted successfully", schema::swapped(result, sentence))
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            ErrorCode::TaxpayerNotFound,
            ErrorCode::IrnContentChanged,
            ErrorCode::InvalidTransition,
            ErrorCode::AuthorityRejected,
        ])
        .fails(&OWN_IRN)
        .fails_with(503, &[ErrorCode::AuthorityUnavailable])
}

fn transmit() -> OperationDoc {
    OperationDoc::new(Post, "/v1/app/invoices/transmit", "transmit", "Transmit")
        .takes(FormSchema::of(|reader| transmit::read(reader, None)), include_str!("examples/transmit.json"))
        .gives::<TransmissionResult<'_>>(200, "Invoice transmitted successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerNotFound, ErrorCode::InvalidTransition])
        .fails(&[ErrorCode::InvoiceNotSigned, ErrorCode::HealthCheckDown, ErrorCode::AccessPointOffline])
        .fails(&OWN_IRN)
        .fails_with(500, &[ErrorCode::AuthorityRejected, ErrorCode::AuthorityUnavailable])
}

fn confirm_receipt() -> OperationDoc {
    let path = "/v1/app/invoices/transmit/{irn}/confirm-receipt";
    OperationDoc::new(Patch, path, "confirm_receipt", "Confirm Transmission Receipt")
        .also([Post, Put])
        .gives::<Confirmation>(200, "Invoice transmission receipt confirmed")
        .writes()
        .fails(&[ErrorCode::InvoiceNotFound, ErrorCode::AuthorityRejected])
        .fails(&RELAYED)
}

fn report() -> OperationDoc {
    OperationDoc::new(Post, "/v1/app/invoices/report", "report", "Report")
        .takes(
            FormSchema::of(|reader| vat_report::read(reader, None, false)),
            include_str!("examples/report.json"),
        )
        .gives::<ReportResult<'_>>(200, "Invoice reported successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            ErrorCode::TaxpayerNotFound,
            ErrorCode::IrnContentChanged,
            ErrorCode::InvalidTransition,
            ErrorCode::ReportFailed,
        ])
        .fails(&OWN_IRN)
        .fails_with(500, &[ErrorCode::AuthorityUnavailable])
}

fn update_payment_status() -> OperationDoc {
    let path = "/v1/app/invoices/{irn}/update-payment-status";
    OperationDoc::new(Patch, path, "relay_payment_status", "Update Payment Status")
        .also([Post, Put])
        .takes(FormSchema::of(relayed_payment::read), include_str!("examples/relay_payment_status.json"))
        .gives::<PaymentResult<'_>>(200, "Invoice payment status updated successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            ErrorCode::InvoiceNotFound,
            ErrorCode::InvoiceNotApproved,
            ErrorCode::InvalidTransition,
            ErrorCode::AuthorityRejected,
        ])
        .fails(&RELAYED)
        .fails_with(503, &[ErrorCode::AuthorityUnavailable])
}

fn reads() -> Vec<OperationDoc> {
    vec![
        OperationDoc::new(Get, "/v1/app/invoices/{irn}/confirm", "confirm", "Confirm Invoice")
            .also([Post])
            .gives::<Confirmation>(200, "Invoice confirmed successfully")
            .fails(&[ErrorCode::InvoiceNotFound])
            .fails(&RELAYED),
        OperationDoc::new(Get, "/v1/app/invoices/{irn}/download", "download", "Download Invoice")
            .also([Post])
            .shows(200, "Invoice downloaded successfully", schema::envelope(ObjectBuilder::new()))
            .fails(&[
                ErrorCode::InvoiceNotFound,
                ErrorCode::InvoiceFileNotFound,
                ErrorCode::AuthorityDocumentUnreadable,
            ])
            .fails(&RELAYED),
        OperationDoc::new(Get, "/v1/app/invoices/{irn}/run", "get_run", "The pipeline run of an invoice")
            .query("operation", QueryKind::Text, "submit, transmit, report or update-payment-status")
            .gives::<RunView<'_>>(200, "Pipeline run retrieved successfully")
            .fails(&[ErrorCode::RunNotFound, ErrorCode::InvoiceNotFound, ErrorCode::ValidationFailed]),
    ]
}

/// The token in the path authorizes the call.
fn notifications() -> OperationDoc {
    OperationDoc::new(
        Post,
        "/authority/notifications/{token}",
        "notifications",
        "The authority's notice of an invoice",
    )
    .takes(FormSchema::of(notice::read), include_str!("examples/notification.json"))
    .gives::<NoticeView>(200, "Notification received successfully")
    .fails(&[ErrorCode::RouteNotFound, ErrorCode::InvoiceNotFound, ErrorCode::IrnMalformed])
    .fails_with(503, &[ErrorCode::AuthorityUnavailable])
}
