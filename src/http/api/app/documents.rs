//! Submit, Transmit and Report. Each starts a pipeline run, or joins the run that exists for the IRN. If a run of
//! Transmit or Report fails, the status is 500, and the error code tells the cause.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use serde_json::{Map, json};

use crate::actors::taxpayer::commands::{IfUnchanged, OpenRun};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::invoice::calculation::Calculation;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::{Run, RunPayload, RunRequest};
use crate::http::api::app::run_response;
use crate::http::document_body::{DocumentBody, DocumentCall, DocumentComparison, lone_irn};
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer::{self, AppCaller};
use crate::http::extract::body::{Body, JsonObject};
use crate::http::extract::prefer::Prefer;
use crate::http::extract::role::NeedsRole;
use crate::http::forms::document::ValidDocument;
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{calculated, full_sums, reader, submission, transmit, vat_report};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::run::{ReportResult, RunView, SubmissionResult, TransmissionResult};

/// The maximum number of times that one request makes its document from the stored invoice. The document is made again
/// if the invoice was changed meanwhile. If the invoice changes after the last time too, the request fails.
const PREPARATIONS_MAX: usize = 5;

const ACCEPTED_MESSAGE: &str =
    "The request is being processed: the run, for who prefers `respond-async`";

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/app/invoices/submit")
            .waits_for_other_systems()
            .post(submit_invoice, || {
                doc("submit", "Submit")
                    .with_note(
                        "The result stands under `message` and the sentence under \
                     `data`. Sending the same IRN again is safe. `irn` alone \
                     means the stored invoice; faults then name the paths of \
                     its form.",
                    )
                    .with_body(
                        |reader| submission::read_fields(reader, None),
                        example!("submit"),
                    )
                    .with_submit_response::<SubmissionResult<'_>>(
                        200,
                        "Invoice submitted successfully",
                    )
                    .with_response::<RunView<'_>>(202, ACCEPTED_MESSAGE)
                    .takes_calculate()
                    .takes_irn_alone()
                    .takes_taxpayer_header()
                    .prefers_async()
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::TaxpayerUnverified])
                    .with_errors(&[ErrorCode::IrnContentChanged, ErrorCode::InvalidTransition])
                    .with_errors(&[ErrorCode::AuthorityRejected])
                    .with_errors(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch])
                    .with_errors_at(503, &[ErrorCode::AuthorityUnavailable])
            }),
        transmission_path(),
        path("/v1/app/invoices/report")
            .waits_for_other_systems()
            .post(report_invoice, || {
                doc("report", "Report")
                    .with_note("`irn` alone means the stored invoice.")
                    .with_body(
                        |reader| vat_report::read(reader, None, false),
                        example!("report"),
                    )
                    .with_response::<ReportResult<'_>>(200, "Invoice reported successfully")
                    .with_response::<RunView<'_>>(202, ACCEPTED_MESSAGE)
                    .takes_irn_alone()
                    .takes_taxpayer_header()
                    .prefers_async()
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::TaxpayerUnverified])
                    .with_errors(&[ErrorCode::IrnContentChanged, ErrorCode::InvalidTransition])
                    .with_errors(&[ErrorCode::ReportFailed])
                    .with_errors(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch])
                    .with_errors_at(500, &[ErrorCode::AuthorityUnavailable])
            }),
    ]
}

fn transmission_path() -> Path {
    path("/v1/app/invoices/transmit")
        .waits_for_other_systems()
        .post(transmit_invoice, || {
            doc("transmit", "Transmit")
                .with_note(
                    "Sends a signed invoice to its buyer through the \
                     authority.",
                )
                .with_body(|reader| transmit::read(reader, None), example!("transmit"))
                .with_response::<TransmissionResult<'_>>(200, "Invoice transmitted successfully")
                .with_response::<RunView<'_>>(202, ACCEPTED_MESSAGE)
                .takes_taxpayer_header()
                .prefers_async()
                .with_idempotency_key()
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::TaxpayerNotFound])
                .with_errors(&[ErrorCode::TaxpayerUnverified, ErrorCode::InvalidTransition])
                .with_errors(&[ErrorCode::InvoiceNotSigned, ErrorCode::HealthCheckDown])
                .with_errors(&[
                    ErrorCode::AccessPointOffline,
                    ErrorCode::NoCustomerAccessPoint,
                ])
                .with_errors(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch])
                .with_errors_at(
                    500,
                    &[
                        ErrorCode::AuthorityRejected,
                        ErrorCode::AuthorityUnavailable,
                    ],
                )
        })
}

/// The options of a call of Submit, which are outside of the body: the wait for the run, and `?calculate=`.
struct SubmitOptions {
    prefer: Prefer,
    /// True if the amounts that the document leaves out are computed.
    calculates: bool,
}

impl NeedsRole for SubmitOptions {}

impl FromRequest for SubmitOptions {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let query = Query::from_text(request.query_string());
        let prefer = Prefer::from_request(request, payload).into_inner();
        ready(prefer.and_then(|prefer| {
            let calculates = query.flag("calculate")?;
            Ok(Self { prefer, calculates })
        }))
    }
}

/// POST /v1/app/invoices/submit (Submit in spec.md): sends an invoice to the authority to be signed. A repeated call
/// with the same IRN joins the existing run.
async fn submit_invoice(
    state: web::Data<ApiState>,
    caller: AppCaller,
    SubmitOptions { prefer, calculates }: SubmitOptions,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body).await?;
    let irn_only_body = lone_irn(&body).is_some().then(|| body.clone());
    let prepared = prepare_submission(&state, taxpayer.as_ref(), body, calculates).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let prepare_again = async || match &irn_only_body {
        Some(body) => {
            prepare_submission(&state, Some(&taxpayer), body.clone().into(), calculates).await
        }
        None => Err(Refusal::ChangedDuringPreparation.into()),
    };
    let (run, notes) =
        start_run_and_wait(&state, taxpayer.id, prepared, prefer, prepare_again).await?;
    Ok(run_response::submission_response(&state, &run, prefer)
        .await?
        .with_member("calculated", notes.calculation.as_ref())
        .warn(caller.ignored_header_warning(&taxpayer).as_slice())
        .warn(&notes.warnings))
}

/// A document that was read without a fault.
pub(crate) struct PreparedDocument {
    /// The command that starts the run. It is refused if the stored invoice has changed since the document was made
    /// from it or compared with it.
    pub(crate) command: IfUnchanged<OpenRun>,
    notes: DocumentNotes,
}

/// Additions to the response that describe the document and not the outcome of its run.
struct DocumentNotes {
    /// Warnings, such as the fields in which the document differs from the stored invoice.
    warnings: Vec<String>,
    calculation: Option<Calculation>,
}

/// Starts the run of a document, and waits for it. If the stored invoice was changed since the document was prepared,
/// the document is prepared again. Otherwise the authority could sign the content from before a change that has already
/// succeeded.
async fn start_run_and_wait(
    state: &ApiState,
    taxpayer: TaxpayerId,
    prepared: PreparedDocument,
    prefer: Prefer,
    prepare_again: impl AsyncFn() -> Result<PreparedDocument, ApiError>,
) -> Result<(Run, DocumentNotes), ApiError> {
    let mut prepared = prepared;
    for _ in 0..PREPARATIONS_MAX {
        let PreparedDocument { command, notes } = prepared;
        match state
            .pipeline
            .perform_run(taxpayer, command, prefer.wait)
            .await
        {
            Err(TaxpayerError::Refused(Refusal::InvoiceChanged)) => {
                prepared = prepare_again().await?;
            }
            result => return Ok((result?, notes)),
        }
    }
    Err(Refusal::ChangedDuringPreparation.into())
}

/// Prepares the submission of the stored invoice with this IRN, as for a request whose body has only the IRN.
pub(crate) async fn prepare_stored_submission(
    state: &ApiState,
    taxpayer: &Taxpayer,
    irn: &Irn,
) -> Result<PreparedDocument, ApiError> {
    taxpayer.check_verified(state.settings.verification)?;
    let body = Map::from_iter([("irn".to_owned(), json!(irn))]);
    prepare_submission(state, Some(taxpayer), body.into(), false).await
}

/// Reads the document of a body. A body with only an IRN stands for the document of the stored invoice. Frees the
/// memory of the body, because the wait for the run may be long.
async fn prepare_submission(
    state: &ApiState,
    taxpayer: Option<&Taxpayer>,
    body: JsonObject,
    calculates: bool,
) -> Result<PreparedDocument, ApiError> {
    let mut body = DocumentBody::read_or_load(state, DocumentCall::Submit, taxpayer, body).await?;
    let catalog = state.catalog.get();
    let outcome = calculates.then(|| body.calculate(&catalog)).flatten();
    let form = submission::read(body.source(), body.fields(), taxpayer, &catalog)
        .and_then(|form| submission::check_signing_terms(form, state.signing_terms()));
    let form = calculated::combine_results(body.sent_fields(), form, outcome);
    let (mut form, calculation) = form.map_err(|faults| body.refusal_error(faults, &catalog))?;
    form.warnings.extend_from_slice(body.warnings());
    if calculation.is_some() {
        let warning = full_sums::document_surplus_digits_warning(body.fields(), &catalog);
        form.warnings.extend(warning);
    }
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    // The document is compared as the form has read it: with the taxes that the form derives, and without unknown
    // fields.
    let ValidDocument { irn, document } = &form.value;
    let sent_document = document.validate_request_body();
    let DocumentComparison {
        differences,
        source,
    } = body
        .compare_with_stored(state, taxpayer, irn, &sent_document)
        .await?;
    if !differences.is_empty() {
        form.warnings.push(differences.to_string());
    }
    let document = form.value.document.with_differences(differences);
    let request = RunRequest {
        irn: form.value.irn,
        payload: RunPayload::Submit(Box::new(document)),
    };
    Ok(PreparedDocument {
        command: IfUnchanged {
            seen: source,
            command: OpenRun(request),
        },
        notes: DocumentNotes {
            warnings: form.warnings,
            calculation,
        },
    })
}

/// POST /v1/app/invoices/transmit (Transmit in spec.md): sends a signed invoice to its buyer through the authority.
async fn transmit_invoice(
    state: web::Data<ApiState>,
    caller: AppCaller,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body).await?;
    let read = |reader: &mut Reader<'_>| transmit::read(reader, taxpayer.as_ref());
    let form = reader::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| local_faults::refusal_error(faults, &body))?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let request = RunRequest {
        irn: form.value,
        payload: RunPayload::Transmit,
    };
    // The wait for the run may be long, so the memory of the body is freed first.
    drop(body);
    let command = IfUnchanged::without_condition(OpenRun(request));
    let run = state
        .pipeline
        .perform_run(taxpayer.id, command, prefer.wait)
        .await?;
    Ok(run_response::transmission_response(&state, &run, prefer)
        .await?
        .warn(caller.ignored_header_warning(&taxpayer).as_slice())
        .warn(&form.warnings))
}

/// POST /v1/app/invoices/report (Report in spec.md): reports the VAT of an invoice to the authority.
async fn report_invoice(
    state: web::Data<ApiState>,
    caller: AppCaller,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body).await?;
    let names_another_taxpayer =
        acting_taxpayer::names_another_taxpayer(&state, caller, &body).await?;
    let irn_only_body = lone_irn(&body).is_some().then(|| body.clone());
    let prepared = prepare_report(&state, taxpayer.as_ref(), names_another_taxpayer, body).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let prepare_again = async || match &irn_only_body {
        Some(body) => {
            prepare_report(
                &state,
                Some(&taxpayer),
                names_another_taxpayer,
                body.clone().into(),
            )
            .await
        }
        None => Err(Refusal::ChangedDuringPreparation.into()),
    };
    let (run, notes) =
        start_run_and_wait(&state, taxpayer.id, prepared, prefer, prepare_again).await?;
    Ok(run_response::report_response(&state, &run, prefer)
        .await?
        .warn(caller.ignored_header_warning(&taxpayer).as_slice())
        .warn(&notes.warnings))
}

/// Reads the report of a body. A body with only an IRN stands for the report of the stored invoice. Frees the memory of
/// the body, because the wait for the run may be long.
async fn prepare_report(
    state: &ApiState,
    taxpayer: Option<&Taxpayer>,
    names_another_taxpayer: bool,
    body: JsonObject,
) -> Result<PreparedDocument, ApiError> {
    let body = DocumentBody::read_or_load(state, DocumentCall::Report, taxpayer, body).await?;
    let catalog = state.catalog.get();
    let read = |reader: &mut Reader<'_>| vat_report::read(reader, taxpayer, names_another_taxpayer);
    let form = reader::read(body.fields(), &catalog, read);
    let mut form = form.map_err(|faults| body.refusal_error(faults, &catalog))?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    form.warnings.extend(vat_report::future_date_warning(
        &form.value,
        state.latest_day(),
    ));
    let sent_fields = body.fields();
    let DocumentComparison {
        differences,
        source,
    } = body
        .compare_with_stored(state, taxpayer, &form.value.irn, sent_fields)
        .await?;
    if !differences.is_empty() {
        form.warnings.push(differences.to_string());
    }
    Ok(PreparedDocument {
        command: IfUnchanged {
            seen: source,
            command: OpenRun(form.value),
        },
        notes: DocumentNotes {
            warnings: form.warnings,
            calculation: None,
        },
    })
}
