//! Takes back a payment that was recorded by mistake.

use actix_web::{HttpRequest, web};

use crate::actors::taxpayer::commands::{IfUnchanged, TakePaymentBack};
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::codes::UniqueNoType;
use crate::http::api::tax_payers::invoices::update::{
    check_if_match_header, surplus_digits_warning,
};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::{reader, take_back};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/{id}/payments/take-back").post(take_payment_back, || {
            doc("take_payment_back", "Take a payment back")
                .with_note(
                    "Takes back an amount that was recorded as paid by \
                     mistake, or all of it without `amount`: the ledger gets \
                     an entry below zero, and the invoice is owed again. What \
                     credit notes set off stays, and so does a payment that \
                     the authority knows as PAID.",
                )
                .with_body(take_back::read, example!("take_payment_back"))
                .with_response::<InvoiceObject<'_>>(200, "Payment taken back successfully")
                .with_idempotency_key()
                .with_if_match()
                .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::InvalidTransition])
        }),
    ]
}

/// POST `/v1/tax-payers/invoices/{id}/payments/take-back`: takes back a payment of an invoice.
async fn take_payment_back(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let invoice = path_ids::parse_invoice_id(request.match_info().query("id"))?;
    let catalog = state.catalog.get();
    let form = reader::read(&*body.object().await?, &catalog, take_back::read)?;
    let invoice_ref = InvoiceRef {
        kind: UniqueNoType::PortalId,
        text: invoice.to_string(),
    };
    let seen = check_if_match_header(&state, &request, id, &invoice_ref).await?;
    let amount = form.value.amount;
    let command = TakePaymentBack {
        invoice,
        take_back: form.value,
    };
    let warnings = form.warnings;
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            IfUnchanged { seen, command },
            move |invoice| {
                let digits_warning =
                    amount.and_then(|amount| surplus_digits_warning(amount, invoice, &catalog));
                let view = InvoiceObject::from(invoice);
                ApiResponse::ok("Payment taken back successfully", view)
                    .warn(&warnings)
                    .warn(digits_warning.as_slice())
            },
        )
        .await
}
