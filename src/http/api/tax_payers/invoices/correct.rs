//! Corrects a signed invoice, returns the progress of a correction, and undoes a batch.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::{FromRequest, HttpRequest, web};

use crate::actors::taxpayer::commands::IfUnchanged;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::access::payer::PayingAccount;
use crate::domain::correction::record::Correction;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::kernel::refusal::Refusal;
use crate::http::api::tax_payers::invoices::create::PRECONDITION_ERROR_CODES;
use crate::http::api::tax_payers::invoices::update::check_if_match_header;
use crate::http::corrections::{
    ComparedOriginal, Undo, UndoAct, make_correction_command, read_body, read_standard_wish,
    undo_batch_invoices, with_received_amount,
};
use crate::http::extract::auth;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::role::NeedsRole;
use crate::http::forms::query::Query;
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::correction::{CorrectionView, MoneyView, UndoItemView, UndoView};
use crate::store::invoices;
use crate::store::invoices::corrections::{self, CorrectionKey};

/// The note about the body of a correction in the API document.
const BODY_NOTE: &str = "`cancel: true` alone, or the invoice as it should have been, with all required fields of its \
    create request: those of Standard, which are listed here, or those of Full";
const PREVIEW_NOTE: &str = "true to change nothing and see what would happen";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/{id}/correct").post(correct_invoice, || {
            doc("correct_invoice", "Correct a signed invoice")
                .with_note(
                    "The body is that of the create request of the invoice \
                     (Standard or Full), as it should have been and with its \
                     own number, or `cancel: true` alone. The smallest set of \
                     documents leads there: nothing, a credit note over a \
                     part, or a credit note and a replacement with a number \
                     of its own. They are signed one after the other in the \
                     background; the Location of the 202 tells the progress.",
                )
                .query("preview", PREVIEW_NOTE)
                .with_body(read_standard_wish, example!("create_invoice"))
                .may_omit_all_but("cancel", BODY_NOTE)
                .with_response::<CorrectionView<'_>>(202, "Correction started")
                .with_response::<CorrectionView<'_>>(200, "Correction previewed successfully")
                .with_response::<CorrectionView<'_>>(200, "Nothing has to be corrected")
                .with_idempotency_key()
                .with_if_match()
                .with_errors(&PRECONDITION_ERROR_CODES)
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvalidTransition])
                .with_errors(&[ErrorCode::IrnMalformed])
        }),
        path("/v1/tax-payers/invoices/corrections/{correction_no}").get(get_correction, || {
            doc("get_correction", "How far a correction has come")
                .with_note(
                    "A correction goes on by itself; this tells which of \
                     its documents are signed, or why it stopped.",
                )
                .with_response::<CorrectionView<'_>>(200, "Correction retrieved successfully")
                .with_errors(&[ErrorCode::CorrectionNotFound])
        }),
        path("/v1/tax-payers/invoices/batches/{batch_no}/undo").post(undo_batch, || {
            doc("undo_batch", "Undo a batch")
                .with_note(
                    "Signed invoices of the batch get a credit note over all \
                     that is left of them, drafts and approved ones are \
                     cancelled, and any other is kept, with the reason. At \
                     most 1,000 invoices at a time: `left` says how many the \
                     same call again looks at. While an import still adds \
                     invoices to the batch, the answer is 409.",
                )
                .query("preview", PREVIEW_NOTE)
                .with_response::<UndoView<'_>>(202, "The batch is being undone")
                .with_response::<UndoView<'_>>(200, "Undo previewed successfully")
                .with_idempotency_key()
                .with_errors(&PRECONDITION_ERROR_CODES)
                .with_errors(&[ErrorCode::BatchNotFound, ErrorCode::ValidationFailed])
                .with_errors(&[ErrorCode::InvalidTransition])
        }),
    ]
}

/// The parts of a request for a correction, except its body.
struct CorrectionRequest {
    invoice: InvoiceId,
    /// True if the caller only wants the plan of the correction.
    is_preview: bool,
    /// The whole request. The handler reads the header `If-Match` from it.
    request: HttpRequest,
}

impl NeedsRole for CorrectionRequest {}

impl FromRequest for CorrectionRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let invoice = path_ids::parse_invoice_id(request.match_info().query("id"));
        ready(invoice.and_then(|invoice| {
            let query = Query::from_text(request.query_string());
            Ok(Self {
                invoice,
                is_preview: query.flag("preview")?,
                request: request.clone(),
            })
        }))
    }
}

/// POST `/v1/tax-payers/invoices/{id}/correct`: starts the correction of a signed invoice, or returns the plan of a
/// preview.
async fn correct_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    CorrectionRequest {
        invoice,
        is_preview,
        request,
    }: CorrectionRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let original = invoices::find_owned_by_id(&state.store, id, invoice).await?;
    let original = original.ok_or_else(ApiError::invoice_not_found)?;
    let comparison = ComparedOriginal::new(&original, state.latest_day());
    let catalog = state.catalog.get();
    let (_, form) = body
        .object_and_form(move |body| read_body(body, &comparison, &catalog))
        .await?;
    let form = form?;
    let invoice_ref = InvoiceRef {
        kind: UniqueNoType::PortalId,
        text: invoice.to_string(),
    };
    let command = IfUnchanged {
        seen: check_if_match_header(&state, &request, id, &invoice_ref).await?,
        command: make_correction_command(&state, &original, form.value, is_preview).await?,
    };
    let warnings = form.warnings;
    if is_preview {
        let plan = state.taxpayers.send(id, command).await?;
        let message = "Correction previewed successfully";
        return Ok(ApiResponse::ok(message, CorrectionView::from(&plan)).warn(&warnings));
    }
    idempotent
        .answer_once(&state.taxpayers, id, command, move |correction| {
            started_response(correction).warn(&warnings)
        })
        .await
}

fn started_response(correction: &Correction) -> ApiResponse {
    let view = CorrectionView::from(correction);
    if correction.documents.is_empty() {
        return ApiResponse::ok("Nothing has to be corrected", view);
    }
    let location = format!(
        "/v1/tax-payers/invoices/corrections/{}",
        correction.correction_no
    );
    ApiResponse::with_status(StatusCode::ACCEPTED, "Correction started", view)
        .with_location(&location)
}

/// GET `/v1/tax-payers/invoices/corrections/{correction_no}`: returns the progress of a correction.
async fn get_correction(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    correction_no: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let not_found = || ApiError::from(Refusal::CorrectionNotFound);
    if correction_no.chars().any(char::is_control) {
        return Err(not_found());
    }
    let key = CorrectionKey {
        taxpayer,
        correction_no: &correction_no,
    };
    let found = corrections::find_owned_by_number(&state.store, key).await?;
    let stored = found.ok_or_else(not_found)?;
    let correction = with_received_amount(&state.store, taxpayer, stored.correction).await?;
    let message = "Correction retrieved successfully";
    Ok(ApiResponse::ok(message, CorrectionView::from(&correction)))
}

/// POST `/v1/tax-payers/invoices/batches/{batch_no}/undo`: undoes a batch. A preview only returns what would be done.
async fn undo_batch(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    batch_no: web::Path<String>,
    query: Query,
    request: HttpRequest,
) -> Result<ApiResponse, ApiError> {
    let is_preview = query.flag("preview")?;
    let payer = auth::paying_account(&request).map(PayingAccount::payer);
    let undo = undo_batch_invoices(&state, id, payer, &batch_no, is_preview).await?;
    let view = undo_view(&batch_no, &undo);
    if is_preview {
        return Ok(ApiResponse::ok("Undo previewed successfully", view));
    }
    let has_work = undo.left > 0 || undo.items.iter().any(|item| item.act != UndoAct::None);
    let message = if has_work {
        "The batch is being undone"
    } else {
        "Nothing of the batch is left to undo"
    };
    Ok(ApiResponse::with_status(
        StatusCode::ACCEPTED,
        message,
        view,
    ))
}

fn undo_view<'a>(batch_no: &'a str, undo: &'a Undo) -> UndoView<'a> {
    let money = undo.sums_by_currency().into_iter();
    UndoView {
        batch_no,
        credited: undo.count(UndoAct::Credit),
        cancelled: undo.count(UndoAct::Cancel),
        kept: undo.count(UndoAct::None),
        done_before: undo.done_before,
        left: undo.left,
        money: money
            .map(|(currency, amount)| MoneyView { currency, amount })
            .collect(),
        items: undo
            .items
            .iter()
            .map(|item| UndoItemView {
                id: item.id,
                invoice_no: &item.invoice_no,
                act: item.act.as_str(),
                currency: &item.currency,
                payable: item.payable,
                correction_no: item.correction_no.as_deref(),
                message: item.message.as_deref(),
            })
            .collect(),
    }
}
