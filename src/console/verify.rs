//! The public page that the link on a printed invoice leads to. It says that the tax authority has signed the invoice,
//! and shows no more than the QR code does. It needs no session.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web;
use askama::Template;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, show_with_status};
use crate::domain::kernel::invisible::is_invisible;
use crate::http::invoice_files;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::accounts::taxpayers;
use crate::store::invoices;
use crate::store::invoices::verify_links;

/// Tells search engines not to list the page.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

pub(super) fn paths() -> Vec<Path> {
    vec![path("/verify/{token}").page(show_verified)]
}

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    frame: Frame,
    /// `None` if the link leads to no signed invoice.
    signed: Option<SignedInvoice>,
}

/// The facts of an invoice that the page shows, as they were signed.
struct SignedInvoice {
    irn: String,
    seller: String,
    issued: Date,
    total: Decimal,
    currency: String,
}

/// GET /verify/{token}. All invalid tokens get the same answer.
async fn show_verified(state: web::Data<ApiState>, token: web::Path<String>) -> Answer {
    // An address that was copied from a document may contain invisible characters at which a line may end.
    let token: String = token.chars().filter(|c| !is_invisible(*c)).collect();
    let signed = find_signed_invoice(&state, &token).await?;
    let (status, title) = match signed {
        Some(_) => (StatusCode::OK, "Signed invoice"),
        None => (StatusCode::NOT_FOUND, "No signed invoice"),
    };
    let frame = Frame::for_visitor(title);
    let mut answer = show_with_status(status, &VerifyPage { frame, signed })?;
    let not_listed = HeaderValue::from_static("noindex, nofollow");
    answer.headers_mut().insert(ROBOTS, not_listed);
    Ok(answer)
}

async fn find_signed_invoice(
    state: &ApiState,
    token: &str,
) -> Result<Option<SignedInvoice>, ApiError> {
    if token.chars().any(char::is_control) {
        return Ok(None);
    }
    let store = &state.store;
    let Some((taxpayer, invoice)) = verify_links::find_invoice_by_token(store, token).await? else {
        return Ok(None);
    };
    let invoice = invoices::find_owned_by_id(store, taxpayer, invoice).await?;
    let supplier = taxpayers::find_by_id(store.reader(), taxpayer).await?;
    let Some((invoice, supplier)) = invoice.zip(supplier) else {
        return Ok(None);
    };
    if !invoice.authority.signed {
        return Ok(None);
    }
    let stored = StoredInvoice::load(store, supplier, invoice).await?;
    let document = invoice_files::shown_trade_document(state, &stored).await?;
    let mut total = document.totals.payable;
    let digits = state.catalog.get().currency_digits(&document.currency);
    total.rescale(digits.max(total.scale()));
    Ok(Some(SignedInvoice {
        irn: stored.invoice.irn.to_string(),
        seller: document.supplier.name,
        issued: document.issue_date,
        total,
        currency: document.currency,
    }))
}
