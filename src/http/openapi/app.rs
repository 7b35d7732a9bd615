//! Access Point Provider API, and the door for the authority's notices.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::authority::Confirmation;
use crate::http::code::Code;
use crate::http::forms::outline::Outline;
use crate::http::forms::{notice, relayed_payment, submission, transmit, validation, vat_report};
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::parameter::Kind;
use crate::http::openapi::schema;
use crate::http::views::inbox::NoticeView;
use crate::http::views::run::{PaymentResult, ReportResult, RunView, SubmissionResult, TransmissionResult};
use crate::http::views::validated::Validated;

/// What any call may fail with that the authority answers in the end.
const RELAYED: [Code; 2] = [Code::AuthorityUnavailable, Code::AuthorityTimeout];
/// What a body fails with whose IRN is none, or not the taxpayer's.
const OWN_IRN: [Code; 2] = [Code::IrnMalformed, Code::IrnServiceIdMismatch];
const ACCEPTED: &str = "The request is being processed: the run, for who prefers `respond-async`";

pub(super) fn operations() -> Vec<Operation> {
    let all = [validate(), submit(), transmit(), confirm_receipt(), report(), update_payment_status()];
    let ours = |operation: Operation| operation.by(Key::Either).fails(&[Code::TaxpayerUnverified]);
    let all = all.into_iter().chain(reads()).map(ours);
    all.chain([notifications()]).collect()
}

/// Whatever is wrong is 400 here.
fn validate() -> Operation {
    Operation::new(Post, "/v1/app/invoices/validate", "validate", "Validate")
        .takes(
            Outline::of(|reader| validation::validation(reader, None)),
            include_str!("examples/validate.json"),
        )
        .query(
            "explain",
            Kind::Text,
            "`patch`: a refusal also tells what would mend the body, as far as that is safe",
        )
        .gives::<Validated<'_>>(200, "Invoice validated successfully")
        .fails_with(
            400,
            &[
                Code::ValidationFailed,
                Code::IrnMalformed,
                Code::IrnServiceIdMismatch,
                Code::AuthorityRejected,
            ],
        )
        .fails(&[Code::TaxpayerNotFound])
        .fails(&RELAYED)
}

fn submit() -> Operation {
    let mut submit = Operation::new(Post, "/v1/app/invoices/submit", "submit", "Submit").noted(
        "The result stands under `message` and the sentence under `data`. Sending the same IRN again is safe.",
    );
    let result = submit.refer::<SubmissionResult<'_>>();
    let sentence = ObjectBuilder::new().schema_type(Type::String);
    submit
        .takes(Outline::of(|reader| submission::fields(reader, None)), include_str!("examples/submit.json"))
        .shows(200, "Invoice submitted successfully", schema::swapped(result, sentence))
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            Code::TaxpayerNotFound,
            Code::IrnContentChanged,
            Code::InvalidTransition,
            Code::AuthorityRejected,
        ])
        .fails(&OWN_IRN)
        .fails_with(503, &[Code::AuthorityUnavailable])
}

fn transmit() -> Operation {
    Operation::new(Post, "/v1/app/invoices/transmit", "transmit", "Transmit")
        .takes(Outline::of(|reader| transmit::read(reader, None)), include_str!("examples/transmit.json"))
        .gives::<TransmissionResult<'_>>(200, "Invoice transmitted successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[Code::InvoiceNotFound, Code::TaxpayerNotFound, Code::InvalidTransition])
        .fails(&[Code::InvoiceNotSigned, Code::HealthCheckDown, Code::AccessPointOffline])
        .fails(&OWN_IRN)
        .fails_with(500, &[Code::AuthorityRejected, Code::AuthorityUnavailable])
}

fn confirm_receipt() -> Operation {
    let path = "/v1/app/invoices/transmit/{irn}/confirm-receipt";
    Operation::new(Patch, path, "confirm_receipt", "Confirm Transmission Receipt")
        .also([Post, Put])
        .gives::<Confirmation>(200, "Invoice transmission receipt confirmed")
        .writes()
        .fails(&[Code::InvoiceNotFound, Code::AuthorityRejected])
        .fails(&RELAYED)
}

fn report() -> Operation {
    Operation::new(Post, "/v1/app/invoices/report", "report", "Report")
        .takes(
            Outline::of(|reader| vat_report::read(reader, None, false)),
            include_str!("examples/report.json"),
        )
        .gives::<ReportResult<'_>>(200, "Invoice reported successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            Code::TaxpayerNotFound,
            Code::IrnContentChanged,
            Code::InvalidTransition,
            Code::ReportFailed,
        ])
        .fails(&OWN_IRN)
        .fails_with(500, &[Code::AuthorityUnavailable])
}

fn update_payment_status() -> Operation {
    let path = "/v1/app/invoices/{irn}/update-payment-status";
    Operation::new(Patch, path, "relay_payment_status", "Update Payment Status")
        .also([Post, Put])
        .takes(Outline::of(relayed_payment::read), include_str!("examples/relay_payment_status.json"))
        .gives::<PaymentResult<'_>>(200, "Invoice payment status updated successfully")
        .gives::<RunView<'_>>(202, ACCEPTED)
        .writes()
        .fails(&[
            Code::InvoiceNotFound,
            Code::InvoiceNotApproved,
            Code::InvalidTransition,
            Code::AuthorityRejected,
        ])
        .fails(&RELAYED)
        .fails_with(503, &[Code::AuthorityUnavailable])
}

fn reads() -> Vec<Operation> {
    vec![
        Operation::new(Get, "/v1/app/invoices/{irn}/confirm", "confirm", "Confirm Invoice")
            .also([Post])
            .gives::<Confirmation>(200, "Invoice confirmed successfully")
            .fails(&[Code::InvoiceNotFound])
            .fails(&RELAYED),
        Operation::new(Get, "/v1/app/invoices/{irn}/download", "download", "Download Invoice")
            .also([Post])
            .shows(200, "Invoice downloaded successfully", schema::envelope(ObjectBuilder::new()))
            .fails(&[Code::InvoiceNotFound, Code::InvoiceFileNotFound, Code::AuthorityDocumentUnreadable])
            .fails(&RELAYED),
        Operation::new(Get, "/v1/app/invoices/{irn}/run", "get_run", "The pipeline run of an invoice")
            .query("operation", Kind::Text, "submit, transmit, report or update-payment-status")
            .gives::<RunView<'_>>(200, "Pipeline run retrieved successfully")
            .fails(&[Code::RunNotFound, Code::InvoiceNotFound, Code::ValidationFailed]),
    ]
}

/// The token in the path is the right to call.
fn notifications() -> Operation {
    Operation::new(
        Post,
        "/authority/notifications/{token}",
        "notifications",
        "The authority's notice of an invoice",
    )
    .takes(Outline::of(notice::read), include_str!("examples/notification.json"))
    .gives::<NoticeView>(200, "Notification received successfully")
    .fails(&[Code::RouteNotFound, Code::InvoiceNotFound, Code::IrnMalformed])
    .fails_with(503, &[Code::AuthorityUnavailable])
}
