//! Reads of invoices: one invoice, the timeline of an invoice, and the outcome of a batch.

use actix_web::http::header::EntityTag;
use actix_web::{HttpRequest, HttpResponse, Responder as _, web};

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::timeline::ENTRIES_MAX;
use crate::http::endpoint::{Path, path};
use crate::http::exports::{self, TableFormat, vary_by_accept};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, unique_no};
use crate::http::invoice_files;
use crate::http::openapi::{doc, example};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::entity_tag::entity_tag;
use crate::http::respond::envelope::{ApiResponse, success_text};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchView;
use crate::http::views::invoice::{IncludedParts, InvoiceView};
use crate::http::views::timeline::TimelineView;
use crate::store::invoices;
use crate::store::invoices::{payments, timeline};

const RETRIEVED_MESSAGE: &str = "Invoice retrieved successfully";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/batches/{batch_no}").get(get_batch, || {
            doc("get_batch", "What became of a batch")
                .with_note(
                    "With `Accept: text/csv`, `application/x-ndjson` or the \
                     type of XLSX, the answer is a file.",
                )
                .gives::<BatchView<'_>>(200, "Batch retrieved successfully")
                .may_give_files(&TableFormat::MEDIA_TYPES)
                .fails(&[ErrorCode::BatchNotFound])
        }),
        path("/v1/tax-payers/invoices/get-by-unique-no")
            .never_writes()
            .post(get_by_unique_no, || {
                doc("get_by_unique_no", "Get Invoice by Unique Number")
                    .with_note("Finds an invoice by its id, its IRN or its number.")
                    .takes(unique_no::read, example!("unique_no"))
                    .gives::<InvoiceObject<'_>>(200, "Invoice retrieved successfully")
                    .fails(&[ErrorCode::InvoiceNotFound])
            }),
        path("/v1/tax-payers/invoices/{id}").get(get_invoice, || {
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
        path("/v1/tax-payers/invoices/{id}/timeline").get(get_timeline, || {
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

/// Returns the entity tag of an invoice, the same for every `include`. The tag also covers the exact time of the last
/// change: two versions may look the same in a response, which shows only whole seconds and no paid amount.
pub(super) fn invoice_tag(invoice: &Invoice) -> Result<EntityTag, ApiError> {
    let view = InvoiceView::new(invoice, &IncludedParts::default(), None);
    let answer = success_text(RETRIEVED_MESSAGE, view)?;
    let changed_at = invoice.updated_at.as_microsecond();
    Ok(entity_tag(format!("{answer} {changed_at}").as_bytes()))
}

/// GET /v1/tax-payers/invoices/{id} (Get Invoice by ID in spec.md): returns an invoice.
/// `include=lines,ledger,verify_link` adds the lines, the payment ledger and the address of the public page of a signed
/// invoice.
pub(super) async fn get_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
    query: Query,
    request: HttpRequest,
) -> Result<ApiResponse, ApiError> {
    let id = path_ids::parse_invoice_id(&id)?;
    let included = IncludedParts::from_text(query.text("include").unwrap_or_default());
    let found = invoices::find_owned_by_id(&state.store, taxpayer, id).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    let entries = if included.ledger {
        Some(payments::find_owned_by_invoice(&state.store, taxpayer, id).await?)
    } else {
        None
    };
    let verify_link = if included.verify_link {
        invoice_files::public_page_url(&state, &request, &invoice).await?
    } else {
        None
    };
    let view = InvoiceView::new(&invoice, &included, entries).with_verify_link(verify_link);
    let unknown = included
        .unknown
        .iter()
        .map(|word| format!("include knows lines, ledger and verify_link, not {word}"));
    let answer = ApiResponse::ok(RETRIEVED_MESSAGE, view).with_tag(&invoice_tag(&invoice)?);
    Ok(answer.warn(&unknown.take(20).collect::<Vec<_>>()))
}

/// POST /v1/tax-payers/invoices/get-by-unique-no (Get Invoice by Unique Number in spec.md): returns the invoice with
/// the number, IRN or id in the body.
pub(super) async fn get_by_unique_no(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        unique_no::read,
    )?;
    let which = path_ids::check_invoice_ref(form.value)?;
    let found =
        invoices::find_owned_by_unique_no(&state.store, taxpayer, which.kind, &which.text).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    let answer = ApiResponse::ok(RETRIEVED_MESSAGE, InvoiceObject::from(&invoice));
    Ok(answer.warn(&form.warnings))
}

/// GET /v1/tax-payers/invoices/{id}/timeline: lists what happened to an invoice, ordered by time.
pub(super) async fn get_timeline(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let id = path_ids::parse_invoice_id(&id)?;
    let found = invoices::find_owned_by_id(&state.store, taxpayer, id).await?;
    let irn = found.ok_or_else(ApiError::invoice_not_found)?.irn;
    let timeline = timeline::find_owned_by_irn(&state.store, taxpayer, &irn).await?;
    let cut = format!("only the newest {ENTRIES_MAX} entries are shown");
    let warning = timeline.is_cut.then_some(cut);
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
