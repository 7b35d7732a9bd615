//! Create Invoice (Standard), Create Invoice (Full) and Create Invoices (Bulk). If the invoice number or the IRN
//! exists, the existing invoice is returned without an error. In a batch, invoices with faults are refused and all
//! others are stored in one transaction.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::web;
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::actors::taxpayer::commands::{CreateBatch, CreateInvoice, CreatedInvoice};
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::batch::{Batch, BatchCandidate};
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::reference::catalog::Catalog;
use crate::http::api::tax_payers::invoices::list::{list_doc, list_invoices};
use crate::http::draft_warnings::{find_draft_warnings, find_excess_warnings};
use crate::http::extract::body::Body;
use crate::http::extract::json;
use crate::http::forms::full_invoice::{self, InvoiceContext};
use crate::http::forms::query::Query;
use crate::http::forms::reader::AcceptedForm;
use crate::http::forms::{batch, calculated, reader, standard_invoice};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paper_texts;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchCreated;
use crate::store::accounts::taxpayers;

/// Error codes for a taxpayer that may not create invoices.
pub(super) const PRECONDITION_ERROR_CODES: [ErrorCode; 3] = [
    ErrorCode::SubscriptionInactive,
    ErrorCode::ProfileIncomplete,
    ErrorCode::TaxpayerUnverified,
];

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices")
            .post(create_invoice, || {
                doc("create_invoice", "Create Invoice (Standard)")
                    .with_note(
                        "Stores an invoice as a draft. If the account has an invoice \
                         with this number, that one is the answer, with 200, and \
                         nothing is stored.",
                    )
                    .with_body(standard_invoice::read, example!("create_invoice"))
                    .with_response::<InvoiceObject<'_>>(201, "Invoice created successfully")
                    .with_response::<InvoiceObject<'_>>(200, "Invoice already exist")
                    .with_duplicate_response()
                    .with_idempotency_key()
                    .with_errors(&PRECONDITION_ERROR_CODES)
                    .with_errors(&[ErrorCode::IrnMalformed, ErrorCode::IrnTaken])
            })
            .get(list_invoices, list_doc),
        path("/v1/tax-payers/invoices/full").post(create_full_invoice, || {
            let context = InvoiceContext {
                today: Date::MAX,
                service_id: None,
            };
            doc("create_full_invoice", "Create Invoice (Full)")
                .with_note(
                    "Stores an invoice as a draft, from the whole document that \
                     the authority will get. If the account has an invoice with \
                     this IRN or number, that one is the answer, with 200, and \
                     nothing is stored.",
                )
                .with_body(
                    |reader| full_invoice::read_with_context(reader, context),
                    example!("create_full_invoice"),
                )
                .with_response::<InvoiceObject<'_>>(201, "Invoice created successfully")
                .with_response::<InvoiceObject<'_>>(200, "Invoice with this IRN already exists")
                .with_duplicate_response()
                .takes_calculate()
                .with_idempotency_key()
                .with_errors(&PRECONDITION_ERROR_CODES)
                .with_errors(&[ErrorCode::IrnMalformed, ErrorCode::IrnServiceIdMismatch])
        }),
        path("/v1/tax-payers/invoices/bulk")
            .takes_many_invoices()
            .post(create_batch, || {
                doc("create_batch", "Create Invoices (Bulk)")
                    .with_note(
                        "Stores up to 1,000 invoices. One that is faulty does \
                         not keep the others out: Get Batch tells the outcome \
                         of each.",
                    )
                    .with_body(batch::read, example!("create_bulk"))
                    .with_response::<BatchCreated<'_>>(201, "Invoices created successfully")
                    .with_idempotency_key()
                    .with_errors(&PRECONDITION_ERROR_CODES)
                    .with_errors(&[ErrorCode::BatchTooLarge])
            }),
    ]
}

/// POST /v1/tax-payers/invoices (Create Invoice (Standard) in spec.md): creates an invoice, whose totals the service
/// computes. Returns the existing invoice if the number exists.
pub(super) async fn create_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let catalog = state.catalog.get();
    let read =
        move |body: &Map<String, Value>| reader::read(body, &catalog, standard_invoice::read);
    let (_, form) = body.object_and_form(read).await?;
    let form = match form {
        Ok(form) => form,
        Err(faults) => return Err(precondition_or_faults_error(&state, id, faults).await),
    };
    let mut warnings = form.warnings;
    warnings.extend(find_draft_warnings(&state, id, &form.value).await?);
    let draft = form.value.draft;
    idempotent
        .answer_once(&state.taxpayers, id, CreateInvoice(draft), move |created| {
            create_response(created, "Invoice already exist").warn(&warnings)
        })
        .await
}

const IRN_EXISTS_MESSAGE: &str = "Invoice with this IRN already exists";

/// POST /v1/tax-payers/invoices/full (Create Invoice (Full) in spec.md): creates an invoice from a whole document.
/// Returns the existing invoice if the IRN or number exists.
pub(super) async fn create_full_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    query: Query,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let calculates = query.flag("calculate")?;
    let catalog = state.catalog.get();
    let today = state.latest_day();
    let context = InvoiceContext {
        today,
        service_id: None,
    };
    let (body, form) = body
        .object_and_form(move |body| {
            calculated::read_full_invoice(body, context, &catalog, calculates)
        })
        .await?;
    let (form, calculation) = match form {
        Ok(form) => form,
        Err(faults) => {
            // The body has faults. Reading it with the taxpayer's service id also finds an IRN with a wrong service id.
            let taxpayer = check_preconditions(&state, id).await?;
            let context = InvoiceContext {
                today,
                service_id: Some(&taxpayer.service_id),
            };
            let catalog = state.catalog.get();
            let all_faults =
                calculated::read_full_invoice(&body, context, &catalog, calculates).err();
            return Err(all_faults.unwrap_or(faults).into());
        }
    };
    drop(body);
    let draft = form.value;
    let mut warnings = form.warnings;
    warnings.extend(paper_texts::unprintable_draft_warning(&draft));
    let excess = find_excess_warnings(&state, id, &[&draft]).await?;
    warnings.extend(excess.into_iter().flatten());
    idempotent
        .answer_once(&state.taxpayers, id, CreateInvoice(draft), move |created| {
            create_response(created, IRN_EXISTS_MESSAGE)
                .with_member("calculated", calculation.as_ref())
                .warn(&warnings)
        })
        .await
}

/// POST /v1/tax-payers/invoices/bulk (Create Invoices (Bulk) in spec.md): creates several invoices in one batch.
/// Refuses invoices with a fault and stores the others.
pub(super) async fn create_batch(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let text = body.text().await?;
    let _turn = text.wait_for_bulk_turn(&state).await?;
    let catalog = state.catalog.get();
    let form = match text
        .read(&state, move |text, _room| read_batch(text, &catalog))
        .await??
    {
        Ok(form) => form,
        Err(faults) => return Err(precondition_or_faults_error(&state, id, faults).await),
    };
    let mut candidates = form.value;
    let mut warnings = form.warnings;
    warnings.extend(add_excess_warnings(&state, id, &mut candidates).await?);
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            CreateBatch(candidates),
            move |batch| batch_response(batch).warn(&warnings),
        )
        .await
}

/// Adds to each credit note the warning that it is over more than is left of its invoice, if it is. Returns a warning
/// about their number.
async fn add_excess_warnings(
    state: &ApiState,
    id: TaxpayerId,
    candidates: &mut [BatchCandidate],
) -> Result<Option<String>, ApiError> {
    let drafts: Vec<_> = candidates
        .iter()
        .filter_map(|candidate| candidate.draft.as_deref().ok())
        .collect();
    let found = find_excess_warnings(state, id, &drafts).await?;
    let count = found.iter().flatten().count();
    let faultless = candidates.iter_mut().filter(|one| one.draft.is_ok());
    for (candidate, warning) in faultless.zip(found) {
        if let Some(warning) = warning {
            // It comes first, because the batch keeps only the first warnings of an item.
            candidate.warnings.insert(0, warning);
        }
    }
    Ok((count > 0).then(|| {
        format!(
            "{count} of the credit notes come to more than is left of their invoices: the batch names them"
        )
    }))
}

fn batch_response(batch: &Batch) -> ApiResponse {
    let location = format!("/v1/tax-payers/invoices/batches/{}", batch.batch_no);
    let message = "Invoices created successfully";
    ApiResponse::with_status(StatusCode::CREATED, message, BatchCreated::from(batch))
        .with_location(&location)
        .warn(differing_invoices_warning(batch).as_slice())
}

/// Returns a warning if existing invoices differ from the sent invoices, because the sender may believe that the
/// existing ones were changed.
fn differing_invoices_warning(batch: &Batch) -> Option<String> {
    let count = batch.count_different_duplicates();
    (count > 0).then(|| {
        format!(
            "{count} of the invoices exist with other contents, which stay as they are: the batch names them"
        )
    })
}

type BatchForm = Result<AcceptedForm<Vec<BatchCandidate>>, Faults>;

fn read_batch(text: &[u8], catalog: &Catalog) -> Result<BatchForm, ApiError> {
    let body = json::parse_batch(text)?;
    let mut read = reader::read(&body.object, catalog, batch::read);
    if let Ok(form) = &mut read {
        batch::refuse_items_with_key_faults(&mut form.value, body.key_faults);
    }
    Ok(read)
}

/// Returns the error for a body with faults. If the taxpayer may not create invoices at all, the error says only that.
async fn precondition_or_faults_error(
    state: &ApiState,
    id: TaxpayerId,
    faults: Faults,
) -> ApiError {
    check_preconditions(state, id)
        .await
        .map_or_else(|refused| refused, |_| faults.into())
}

/// Returns the taxpayer if it may create invoices. The taxpayer actor checks this too; this check makes a failed
/// precondition, such as an inactive subscription, come before faults of the body.
async fn check_preconditions(state: &ApiState, id: TaxpayerId) -> Result<Taxpayer, ApiError> {
    let taxpayer = taxpayers::find_by_id(state.store.reader(), id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    taxpayer.check_may_create_invoices(state.settings.verification)?;
    Ok(taxpayer)
}

/// The response header that says whether an existing invoice has the same content as the received one: `identical` or
/// `different`.
const DUPLICATE_HEADER: HeaderName = HeaderName::from_static("x-duplicate");

/// Returns 201 with the new invoice, or 200 with the existing invoice and with `exists_message` as the message.
fn create_response(created: &CreatedInvoice, exists_message: &'static str) -> ApiResponse {
    let invoice = InvoiceObject::from(&created.invoice);
    let Some(duplicate) = created.duplicate else {
        return ApiResponse::with_status(
            StatusCode::CREATED,
            "Invoice created successfully",
            invoice,
        );
    };
    ApiResponse::ok(exists_message, invoice).with_header(DUPLICATE_HEADER, duplicate.as_str())
}
