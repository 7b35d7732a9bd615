//! The files of a taxpayer's own invoices: PDF, UBL, JSON and the pictures of the QR code.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::extract::path_ids;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::openapi::invoice_file;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::accounts::taxpayers;
use crate::store::invoices;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/{id}/pdf").get(get_file, || {
            invoice_file("get_invoice_pdf", "The invoice on paper", "application/pdf")
        }),
        path("/v1/tax-payers/invoices/{id}/ubl.xml").get(get_file, || {
            invoice_file(
                "get_invoice_ubl",
                "The invoice as UBL 2.1",
                "application/xml",
            )
        }),
        path("/v1/tax-payers/invoices/{id}/json").get(get_file, || {
            invoice_file(
                "get_invoice_json",
                "The document as canonical JSON",
                "application/json",
            )
        }),
        path("/v1/tax-payers/invoices/{id}/qr.svg").get(get_file, || {
            invoice_file("get_invoice_qr_svg", "The QR code as SVG", "image/svg+xml")
        }),
        path("/v1/tax-payers/invoices/{id}/qr.png").get(get_file, || {
            invoice_file("get_invoice_qr_png", "The QR code as PNG", "image/png")
        }),
    ]
}

/// GET `/v1/tax-payers/invoices/{id}/pdf`, `/ubl.xml`, `/json`, `/qr.svg` and `/qr.png`: returns a file of an invoice.
async fn get_file(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
    request: HttpRequest,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(request.path()).ok_or_else(ApiError::route_not_found)?;
    let id = path_ids::parse_invoice_id(&id)?;
    let invoice = invoices::find_owned_by_id(&state.store, taxpayer, id).await?;
    let invoice = invoice.ok_or_else(ApiError::invoice_not_found)?;
    let supplier = taxpayers::find_by_id(state.store.reader(), taxpayer).await?;
    let supplier = supplier.ok_or_else(ApiError::taxpayer_not_found)?;
    let stored_invoice = StoredInvoice::load(&state.store, supplier, invoice).await?;
    let origin = state.origin(&request);
    invoice_files::make_file(&state, origin.as_deref(), &stored_invoice, file).await
}
