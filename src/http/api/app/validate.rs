//! POST /v1/app/invoices/validate: Validate, which changes nothing. A body that violates a rule of this service or of
//! the authority gets 400. `?explain=patch` adds a patch that corrects the body.

use actix_web::http::StatusCode;
use actix_web::web;
use authority_client::AuthorityFailure;

use crate::domain::invoice::calculation::Calculation;
use crate::domain::kernel::fault::Faults;
use crate::domain::party::Taxpayer;
use crate::domain::reference::catalog::Catalog;
use crate::http::document_body::{DocumentBody, DocumentCall};
use crate::http::explain::authority;
use crate::http::extract::acting_taxpayer::{self, AppCaller};
use crate::http::extract::body::Body;
use crate::http::forms::calculated;
use crate::http::forms::document::ValidDocument;
use crate::http::forms::full_sums;
use crate::http::forms::query::Query;
use crate::http::forms::reader::AcceptedForm;
use crate::http::forms::submission::{self, DocumentSource};
use crate::http::forms::validation;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::suggest_patch::{self, PatchContext};
use crate::http::views::validated::ValidationResult;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/app/invoices/validate")
            .never_writes()
            .waits_for_other_systems()
            .post(validate, || {
                doc("validate", "Validate")
            .with_body(|reader| validation::read_fields(reader, None), example!("validate"))
            .with_note(
                "`irn` alone means the stored invoice; faults then name the paths of its form.",
            )
            .query_word(
                "explain",
                ExplainWithPatch::allowed_words,
                "`patch`: a refusal also tells what would mend the body, as far as that is safe",
            )
            .with_response::<ValidationResult<'_>>(200, "Invoice validated successfully")
            .takes_calculate()
            .takes_irn_alone()
            .takes_taxpayer_header()
            .with_errors_at(400, &[ErrorCode::ValidationFailed, ErrorCode::IrnMalformed])
            .with_errors_at(400, &[ErrorCode::IrnServiceIdMismatch, ErrorCode::AuthorityRejected])
            .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::TaxpayerUnverified])
            .with_errors(&[ErrorCode::IrnContentChanged])
            .with_errors(&[ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout])
            }),
    ]
}

/// The parameter `explain=patch`, which requests a patch that corrects the body.
struct ExplainWithPatch;

impl ExplainWithPatch {
    const WORD: &str = "patch";

    fn parse(word: &str) -> Option<Self> {
        word.eq_ignore_ascii_case(Self::WORD).then_some(Self)
    }

    fn allowed_words() -> String {
        Self::WORD.to_owned()
    }
}

async fn validate(
    state: web::Data<ApiState>,
    caller: AppCaller,
    query: Query,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let explain = query.word(
        "explain",
        ExplainWithPatch::parse,
        ExplainWithPatch::allowed_words,
    );
    let parameters = explain.and_then(|explain| Ok((explain, query.flag("calculate")?)));
    let answer = match parameters {
        Ok((explain, calculates)) => {
            let options = ValidateOptions {
                explain,
                calculates,
            };
            validate_body(&state, caller, options, body).await
        }
        Err(fault) => Err(fault.into()),
    };
    answer.map_err(|error| match error.status {
        StatusCode::UNPROCESSABLE_ENTITY => error.with_status(StatusCode::BAD_REQUEST),
        _ => error,
    })
}

/// The options in the query string of Validate.
struct ValidateOptions {
    explain: Option<ExplainWithPatch>,
    /// True if the amounts that the document leaves out are computed.
    calculates: bool,
}

/// The reasons for which Validate does not accept a body.
enum Rejection {
    /// The body violates a rule. A patch may correct it.
    Invalid(ApiError),
    /// The body could not be checked, for example because the authority did not answer.
    NotChecked(ApiError),
}

async fn validate_body(
    state: &ApiState,
    caller: AppCaller,
    options: ValidateOptions,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(state, caller, &body).await?;
    let mut body =
        DocumentBody::read_or_load(state, DocumentCall::Validate, taxpayer.as_ref(), body).await?;
    let catalog = state.catalog.get();
    let outcome = options
        .calculates
        .then(|| body.calculate(&catalog))
        .flatten();
    let form = read_form(&body, taxpayer.as_ref(), &catalog)
        .and_then(|form| submission::check_signing_terms(form, state.signing_terms()));
    let form = calculated::combine_results(body.sent_fields(), form, outcome);
    let mut form = form.map_err(|faults| Rejection::Invalid(body.refusal_error(faults, &catalog)));
    if let Ok((form, Some(_))) = &mut form {
        let warning = full_sums::document_surplus_digits_warning(body.fields(), &catalog);
        form.warnings.extend(warning);
    }
    if let (Ok((form, _)), Some(taxpayer)) = (&mut form, &taxpayer) {
        let irn = &form.value.irn;
        let comparison = body
            .compare_with_stored(state, taxpayer, irn, body.fields())
            .await?;
        if !comparison.differences.is_empty() {
            form.warnings.push(comparison.differences.to_string());
        }
    }
    // Keeps the body only if a patch was requested. Otherwise the memory of the body is freed before the authority is
    // called.
    let body_to_patch = options.explain.map(|ExplainWithPatch| body);
    let ignored_header = taxpayer
        .as_ref()
        .and_then(|taxpayer| caller.ignored_header_warning(taxpayer));
    let mut error = match validate_form(state, taxpayer.as_ref(), form).await {
        Ok(valid) => return Ok(valid.warn(ignored_header.as_slice())),
        Err(Rejection::NotChecked(error)) => return Err(error),
        Err(Rejection::Invalid(error)) => error,
    };
    if let (Some(body), Some(taxpayer)) = (body_to_patch, taxpayer) {
        let context = PatchContext {
            catalog: &state.catalog.get(),
            zone: state.settings.utc_offset,
        };
        let patch =
            suggest_patch::build_patch(&state.authority, context, &taxpayer, body.fields()).await;
        patch.fill_details(&mut error.details);
    }
    Err(error)
}

/// Reads the document. A document that the caller sent is read with the form of Validate. A document that was made from
/// a stored invoice is read with the form of Submit, because Submit would send it.
fn read_form(
    body: &DocumentBody,
    taxpayer: Option<&Taxpayer>,
    catalog: &Catalog,
) -> Result<AcceptedForm<ValidDocument>, Faults> {
    match body.source() {
        DocumentSource::Caller => validation::read(body.fields(), taxpayer, catalog),
        source @ DocumentSource::StoredInvoice => {
            submission::read(source, body.fields(), taxpayer, catalog)
        }
    }
}

async fn validate_form(
    state: &ApiState,
    taxpayer: Option<&Taxpayer>,
    form: Result<(AcceptedForm<ValidDocument>, Option<Calculation>), Rejection>,
) -> Result<ApiResponse, Rejection> {
    let (form, calculation) = form?;
    let taxpayer = taxpayer.ok_or_else(|| Rejection::NotChecked(ApiError::taxpayer_not_found()))?;
    let document = form.value.document.as_json();
    let authority = state.authority.for_account(taxpayer.into());
    authority
        .validate(document)
        .await
        .map_err(|failure| match failure {
            AuthorityFailure::Refused { message, .. } | AuthorityFailure::NotFound { message } => {
                Rejection::Invalid(authority::refusal_error(&message, document))
            }
            other => Rejection::NotChecked(other.into()),
        })?;
    let view = ValidationResult::new(&form.value.irn, &form.warnings);
    Ok(ApiResponse::ok("Invoice validated successfully", view)
        .with_member("calculated", calculation.as_ref())
        .warn(&form.warnings))
}
