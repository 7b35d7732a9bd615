//! The files of the invoices of an integrator's taxpayers: PDF, UBL, JSON and the pictures of the QR code.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::path_ids;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::openapi::invoice_file;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::invoices;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/pdf").get(
            get_file,
            || {
                invoice_file(
                    "get_taxpayers_pdf",
                    "A taxpayer's invoice on paper",
                    "application/pdf",
                )
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
        path("/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/ubl.xml").get(
            get_file,
            || {
                invoice_file(
                    "get_taxpayers_ubl",
                    "A taxpayer's invoice as UBL 2.1",
                    "application/xml",
                )
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
        path("/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/json").get(
            get_file,
            || {
                invoice_file(
                    "get_taxpayers_json",
                    "A taxpayer's document as canonical JSON",
                    "application/json",
                )
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
        path("/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/qr.svg").get(
            get_file,
            || {
                invoice_file(
                    "get_taxpayers_qr_svg",
                    "A taxpayer's QR code as SVG",
                    "image/svg+xml",
                )
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
        path("/v1/system-integrators/taxpayers/{id}/invoices/{invoice_id}/qr.png").get(
            get_file,
            || {
                invoice_file(
                    "get_taxpayers_qr_png",
                    "A taxpayer's QR code as PNG",
                    "image/png",
                )
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            },
        ),
    ]
}

/// GET `…/taxpayers/{id}/invoices/{invoice_id}/pdf`, `/ubl.xml`, `/json`, `/qr.svg` and `/qr.png`: returns a file of an
/// invoice.
async fn get_file(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(request.path()).ok_or_else(ApiError::route_not_found)?;
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &ids.0).await?;
    let id = path_ids::parse_invoice_id(&ids.1)?;
    let invoice = invoices::find_owned_by_id(&state.store, taxpayer.id, id).await?;
    let invoice = invoice.ok_or_else(ApiError::invoice_not_found)?;
    let stored_invoice = StoredInvoice::load(&state.store, taxpayer, invoice).await?;
    let origin = state.origin(&request);
    invoice_files::make_file(&state, origin.as_deref(), &stored_invoice, file).await
}
