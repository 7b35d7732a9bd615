//! Access Point Provider API.

use utoipa::openapi::path::HttpMethod::{Get, Patch, Post, Put};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::authority::Confirmation;
use crate::http::code::Code;
use crate::http::forms::outline::Outline;
use crate::http::forms::{submission, transmit};
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::schema;
use crate::http::views::run::{RunView, SubmissionResult, TransmissionResult};

/// What any call may fail with that the authority answers in the end.
const RELAYED: [Code; 2] = [Code::AuthorityUnavailable, Code::AuthorityTimeout];

pub(super) fn operations() -> Vec<Operation> {
    let all = pipeline().into_iter().chain(reads());
    all.map(|operation| operation.by(Key::Either)).collect()
}

fn pipeline() -> Vec<Operation> {
    vec![submit(), transmit(), confirm_receipt()]
}

fn submit() -> Operation {
    let mut submit = Operation::new(Post, "/v1/app/invoices/submit", "submit", "Submit")
        .noted("The result stands under `message` and the sentence under `data`. Sending the same IRN again is safe.");
    let result = submit.refer::<SubmissionResult<'_>>();
    let sentence = ObjectBuilder::new().schema_type(Type::String);
    submit
        .takes(Outline::of(|reader| submission::fields(reader, None)), include_str!("examples/submit.json"))
        .shows(200, "Invoice submitted successfully", schema::swapped(result, sentence))
        .gives::<RunView<'_>>(202, "Accepted: the run, for who prefers `respond-async`")
        .fails(&[
            Code::TaxpayerNotFound,
            Code::IrnContentChanged,
            Code::InvalidTransition,
            Code::AuthorityRejected,
        ])
        .fails_with(503, &[Code::AuthorityUnavailable])
}

fn transmit() -> Operation {
    Operation::new(Post, "/v1/app/invoices/transmit", "transmit", "Transmit")
        .takes(Outline::of(|reader| transmit::read(reader, None)), include_str!("examples/transmit.json"))
        .gives::<TransmissionResult<'_>>(200, "Invoice transmitted successfully")
        .gives::<RunView<'_>>(202, "Accepted: the run, for who prefers `respond-async`")
        .fails(&[Code::InvoiceNotFound, Code::TaxpayerNotFound])
        .fails(&[Code::InvoiceNotSigned, Code::HealthCheckDown, Code::AccessPointOffline])
        .fails_with(500, &[Code::AuthorityRejected, Code::AuthorityUnavailable])
}

fn confirm_receipt() -> Operation {
    Operation::new(
        Patch,
        "/v1/app/invoices/transmit/{irn}/confirm-receipt",
        "confirm_receipt",
        "Confirm Transmission Receipt",
    )
    .also([Post, Put])
    .gives::<Confirmation>(200, "Invoice transmission receipt confirmed")
    .fails(&[Code::InvoiceNotFound, Code::AuthorityRejected])
    .fails(&RELAYED)
}

fn reads() -> Vec<Operation> {
    vec![
        Operation::new(Get, "/v1/app/invoices/{irn}/confirm", "confirm", "Confirm Invoice")
            .also([Post])
            .gives::<Confirmation>(200, "Invoice confirmed successfully")
            .fails(&[Code::InvoiceNotFound])
            .fails(&RELAYED),
        Operation::new(Get, "/v1/app/invoices/{irn}/run", "get_run", "The pipeline run of an invoice")
            .gives::<RunView<'_>>(200, "Pipeline run retrieved successfully")
            .fails(&[Code::RunNotFound, Code::InvoiceNotFound]),
    ]
}
