//! Reads of invoices: one invoice, the timeline of an invoice, and the outcome of a batch.

use actix_web::{HttpRequest, HttpResponse, Responder as _, web};

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::timeline::ENTRIES_MAX;
use crate::domain::kernel::ids::InvoiceId;
use crate::http::api::tax_payers::invoices::invoice_answer::RequestedParts;
use crate::http::exports::{self, TableFormat, vary_by_accept};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, unique_no};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchView;
use crate::http::views::invoice::InvoiceView;
use crate::http::views::timeline::TimelineView;
use crate::store::invoices;
use crate::store::invoices::timeline;

const INCLUDE_NOTE: &str = "lines, ledger, credits and verify_link, with commas between them";

/// A segment below the list of invoices that a number of another kind follows. There is no list of these numbers.
struct NumberedPath {
    segment: &'static str,
    noun: &'static str,
    parameter: &'static str,
}

const NUMBERED_PATHS: [NumberedPath; 3] = [
    NumberedPath {
        segment: "batches",
        noun: "batch",
        parameter: "{batch_no}",
    },
    NumberedPath {
        segment: "corrections",
        noun: "correction",
        parameter: "{correction_no}",
    },
    NumberedPath {
        segment: "imports",
        noun: "import",
        parameter: "{import_no}",
    },
];

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/batches/{batch_no}").get(get_batch, || {
            doc("get_batch", "What became of a batch")
                .with_note(
                    "With `Accept: text/csv`, `application/x-ndjson` or the \
                     type of XLSX, the answer is a file.",
                )
                .with_response::<BatchView<'_>>(200, "Batch retrieved successfully")
                .with_answer_files(&TableFormat::MEDIA_TYPES)
                .with_errors(&[ErrorCode::BatchNotFound])
        }),
        path("/v1/tax-payers/invoices/get-by-unique-no")
            .never_writes()
            .post(get_by_unique_no, || {
                doc("get_by_unique_no", "Get Invoice by Unique Number")
                    .with_note("Finds an invoice by its id, its IRN or its number.")
                    .query("include", INCLUDE_NOTE)
                    .with_body(unique_no::read, example!("unique_no"))
                    .with_response::<InvoiceView<'_>>(200, "Invoice retrieved successfully")
                    .with_errors(&[ErrorCode::InvoiceNotFound])
            }),
        path("/v1/tax-payers/invoices/{id}").get(get_invoice, || {
            doc("get_invoice", "Get Invoice by ID")
                .with_note(
                    "The Invoice object, with its status and its payment \
                     status; with `include=credits` also its credit notes and \
                     corrections, and what they leave to pay.",
                )
                .query("include", INCLUDE_NOTE)
                .with_response::<InvoiceView<'_>>(200, "Invoice retrieved successfully")
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::RouteNotFound])
        }),
        path("/v1/tax-payers/invoices/{id}/timeline").get(get_timeline, || {
            doc("get_timeline", "What happened to an invoice")
                .with_note(
                    "The newest 1,000 events, calls to the authority and \
                     deliveries of webhooks, in the order of time.",
                )
                .with_response::<TimelineView<'_>>(200, "Timeline retrieved successfully")
                .with_errors(&[ErrorCode::InvoiceNotFound])
        }),
    ]
}

/// GET /v1/tax-payers/invoices/{id} (Get Invoice by ID in spec.md): returns an invoice. `include` names further parts:
/// the lines, the payment ledger, the credit notes and corrections, and the address of the public page of a signed
/// invoice.
pub(super) async fn get_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
    query: Query,
    request: HttpRequest,
) -> Result<ApiResponse, ApiError> {
    let id = parse_id_or_suggest_path(&id)?;
    let invoice = invoices::find_owned_by_id(&state.store, taxpayer, id).await?;
    let invoice = invoice.ok_or_else(ApiError::invoice_not_found)?;
    let include = query.text("include").unwrap_or_default();
    let parts = RequestedParts::load(&state, &request, &invoice, include).await?;
    let tag = parts.tag(&invoice)?;
    Ok(parts.into_response(&invoice).with_tag(&tag))
}

/// Returns the id of an invoice in a path. If the text is a segment that a number has to follow, the error says so.
fn parse_id_or_suggest_path(text: &str) -> Result<InvoiceId, ApiError> {
    let mut numbered = NUMBERED_PATHS.iter();
    let Some(path) = numbered.find(|path| path.segment == text) else {
        return path_ids::parse_invoice_id(text);
    };
    let NumberedPath {
        segment,
        noun,
        parameter,
    } = path;
    let message = format!(
        "No such path: a single {noun} is at /v1/tax-payers/invoices/{segment}/{parameter}, and there is no list of them"
    );
    Err(ApiError::new(ErrorCode::RouteNotFound, message))
}

/// POST /v1/tax-payers/invoices/get-by-unique-no (Get Invoice by Unique Number in spec.md): returns the invoice with
/// the number, IRN or id in the body.
pub(super) async fn get_by_unique_no(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    query: Query,
    request: HttpRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        unique_no::read,
    )?;
    let invoice_ref = path_ids::check_invoice_ref(form.value)?;
    let invoice = invoices::find_owned_by_unique_no(
        &state.store,
        taxpayer,
        invoice_ref.kind,
        &invoice_ref.text,
    )
    .await?;
    let invoice = invoice.ok_or_else(ApiError::invoice_not_found)?;
    let include = query.text("include").unwrap_or_default();
    let parts = RequestedParts::load(&state, &request, &invoice, include).await?;
    Ok(parts.into_response(&invoice).warn(&form.warnings))
}

/// GET /v1/tax-payers/invoices/{id}/timeline: lists what happened to an invoice, ordered by time.
pub(super) async fn get_timeline(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let id = path_ids::parse_invoice_id(&id)?;
    let invoice = invoices::find_owned_by_id(&state.store, taxpayer, id).await?;
    let irn = invoice.ok_or_else(ApiError::invoice_not_found)?.irn;
    let timeline = timeline::find_owned_by_irn(&state.store, taxpayer, &irn).await?;
    let cut_message = format!("only the newest {ENTRIES_MAX} entries are shown");
    let warning = timeline.is_cut.then_some(cut_message);
    let answer = ApiResponse::ok(
        "Timeline retrieved successfully",
        TimelineView::new(&irn, &timeline),
    );
    Ok(answer.warn(warning.as_slice()))
}

/// GET `/v1/tax-payers/invoices/batches/{batch_no}`: returns the outcome of each invoice in a batch, also as a file.
pub(super) async fn get_batch(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(id): TaxpayerCaller,
    batch_no: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let batch = path_ids::find_batch(&state, id, &batch_no).await?;
    if let Some(format) = TableFormat::from_accept_header(&request) {
        let file = exports::batch_file(&state, batch, format).await?;
        return Ok(vary_by_accept(file.respond_to(&request)));
    }
    let answer = ApiResponse::ok("Batch retrieved successfully", BatchView::from(&batch));
    Ok(vary_by_accept(answer.into()))
}
