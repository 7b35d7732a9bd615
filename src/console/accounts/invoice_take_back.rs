//! Takes back a payment of an invoice for an accountant, as the JSON API does. If it is refused, the page of the invoice
//! is shown again with the values and the faults of the form.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use serde_json::json;

use crate::actors::taxpayer::commands::{IfUnchanged, TakePaymentBack};
use crate::console::accounts::invoice::{InvoiceForms, find, render};
use crate::console::accounts::seen_invoice;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::page::{Answer, Form};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::console::typed_amount;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::fault::Fault;
use crate::domain::money::Amount;
use crate::http::forms::{reader, take_back};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(super) fn paths() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}/invoices/{id}/payment/take-back").form(take_payment_back)]
}

/// POST of the form that takes a payment back, as the API call does.
async fn take_payment_back(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    match send_command(&state, &session, &invoice, &form.0).await {
        Ok(changed) => {
            let source = SourceList::from_request(&request, &state);
            let notice = "The payment was taken back.";
            Ok(source.go_to_invoice(&session, changed.id, notice))
        }
        Err(error) => {
            let forms = InvoiceForms {
                is_stale: error.status == StatusCode::PRECONDITION_FAILED,
                take_back: FormState::from_refusal(error, form.0)?,
                ..InvoiceForms::default()
            };
            render(&state, &request, &session, invoice, forms).await
        }
    }
}

async fn send_command(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    form: &FormValues,
) -> Result<Invoice, ApiError> {
    let seen = seen_invoice::read_seen_version(form, invoice)?;
    let catalog = state.catalog.get();
    let digits = catalog.currency_digits(&invoice.currency);
    let mut body = form.to_object(&["reference", "remark"]);
    let amount = amount_to_take_back(form, invoice.payment.paid, digits)?;
    body.insert("amount".to_owned(), json!(amount));
    let read = reader::read(&body, &catalog, take_back::read)?;
    let command = IfUnchanged {
        seen: Some(seen),
        command: TakePaymentBack {
            invoice: invoice.id,
            take_back: read.value,
        },
    };
    Ok(session.send(state, command).await?)
}

/// Reads the amount to take back. Fails if none was typed: the API would take back all that was paid. A payment may have
/// been recorded with more digits than the currency has, so the amount paid itself is always accepted.
fn amount_to_take_back(
    form: &FormValues,
    paid: Amount,
    currency_digits: u32,
) -> Result<Amount, Fault> {
    let typed = form.text("amount");
    if typed.is_empty() {
        let message = "Say the amount that is taken back.";
        return Err(Fault::new("amount", "required", message));
    }
    if typed_amount::parse(typed).ok() == Some(paid) {
        return Ok(paid);
    }
    let amount = typed_amount::parse_money(typed, currency_digits);
    amount.map_err(|rule| Fault::field("amount", rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_exactly_and_is_not_left_out() {
        for (typed, expected) in [
            ("", Err("required")),
            (" ", Err("required")),
            ("1,075.50", Ok("1075.50")),
            ("0.005", Ok("0.005")),
            ("0.004", Err("digits")),
            ("1,5", Err("number")),
        ] {
            let form = FormValues::from([("amount", typed)]);
            let paid = Amount::parse("0.005").unwrap();
            let read = amount_to_take_back(&form, paid, 2);
            let found = read.map_err(|fault| fault.rule());
            let expected = expected.map(|text| Amount::parse(text).unwrap());
            assert_eq!(found, expected, "{typed}");
        }
    }
}
