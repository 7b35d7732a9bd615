//! Sets the status of one invoice and records its payments for an accountant, as the JSON API does. If an action is
//! refused, the page of the invoice is shown again with the values and the faults of its form.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::actors::taxpayer::commands::{
    ChangePayment, IfUnchanged, InvoiceAfterPayment, RecordRefund, SeenInvoice, SetStatus,
};
use crate::console::accounts::invoice::{InvoiceForms, find, render};
use crate::console::accounts::invoice_head::find_credit_notes;
use crate::console::accounts::invoice_payments::payment_day;
use crate::console::accounts::refund_share::load_refund_share;
use crate::console::accounts::seen_invoice;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::page::{Answer, Form};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::console::typed_amount;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{PaymentStatus, UniqueNoType};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::payment::{LedgerEntry, PaymentChange, PaymentUpdate};
use crate::http::approval;
use crate::http::forms::update_status::{self, UpdateStatus};
use crate::http::forms::{payment_update, reader};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::payments;

/// The form field with which a person confirms that the same payment is to be recorded again.
const CONFIRMATION_FIELD: &str = "again";
/// If the same payment was recorded within this time, the page asks before it records the payment again.
const SAME_PAYMENT_WITHIN: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/{id}/status").form(set_status),
        path("/dashboard/{taxpayer}/invoices/{id}/payment").form(set_payment),
    ]
}

/// POST of the status form: sets the workflow status, as the API call Update Invoice Status does.
async fn set_status(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    match change_status(&state, &session, &invoice, &form.0).await {
        Ok(changed) => {
            let notes = changed.warnings.iter();
            let notes = notes.map(|warning| format!(" Note: {warning}."));
            let notice = format!("The status was changed.{}", notes.collect::<String>());
            let source = SourceList::from_request(&request, &state);
            Ok(source.go_to_invoice(&session, changed.invoice.id, &notice))
        }
        Err(error) => {
            let forms = InvoiceForms {
                is_stale: error.status == StatusCode::PRECONDITION_FAILED,
                status: FormState::from_refusal(error, form.0)?,
                ..InvoiceForms::default()
            };
            render(&state, &request, &session, invoice, forms).await
        }
    }
}

/// An invoice with its new status, and the warnings for its approver.
struct ChangedStatus {
    invoice: Invoice,
    warnings: Vec<String>,
}

async fn change_status(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    form: &FormValues,
) -> Result<ChangedStatus, ApiError> {
    let seen = seen_invoice::read_seen_version(form, invoice)?;
    let body = with_invoice_id(invoice, form.to_object(&["status", "remark"]));
    let UpdateStatus {
        invoice: invoice_ref,
        status,
        remark,
    } = reader::read(&body, &state.catalog.get(), update_status::read)?.value;
    let approval =
        approval::prepare_approval(state, session.taxpayer, &invoice_ref, status).await?;
    let command = IfUnchanged {
        seen: Some(seen),
        command: SetStatus {
            invoice: invoice_ref,
            status,
            remark,
            submission: approval.submission,
        },
    };
    Ok(ChangedStatus {
        invoice: session.send(state, command).await?,
        warnings: approval.warnings,
    })
}

/// POST of the payment form: records a payment, as the API call Update Payment Status does.
async fn set_payment(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    form: Form<FormValues>,
) -> Answer {
    let invoice = find(&state, &session, &ids.1).await?;
    match record_payment(&state, &session, &invoice, &form.0).await {
        Ok(paid) => {
            let notes = paid.warnings.iter();
            let notes = notes.map(|warning| format!(" Note: {warning}."));
            let status = paid.invoice.payment.status;
            let sentence = payment_notice(form.0.text("payment_status"), status);
            let notice = format!("{sentence}{}", notes.collect::<String>());
            let source = SourceList::from_request(&request, &state);
            Ok(source.go_to_invoice(&session, paid.invoice.id, &notice))
        }
        Err(error) => {
            let forms = InvoiceForms {
                is_stale: error.status == StatusCode::PRECONDITION_FAILED,
                payment: FormState::from_refusal(error, form.0)?,
                ..InvoiceForms::default()
            };
            render(&state, &request, &session, invoice, forms).await
        }
    }
}

/// Returns the notice after a payment. "Not paid" and "Payment rejected" change only the word. `status` is the payment
/// status after it.
fn payment_notice(sent_status: &str, status: PaymentStatus) -> &'static str {
    match PaymentStatus::parse(sent_status) {
        Some(PaymentStatus::Pending | PaymentStatus::Rejected) => "The payment status was changed.",
        Some(PaymentStatus::Partial) if status == PaymentStatus::Paid => {
            "The payment was recorded. It was the last part: now all is paid."
        }
        Some(PaymentStatus::Paid | PaymentStatus::Partial) | None => "The payment was recorded.",
    }
}

async fn record_payment(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    form: &FormValues,
) -> Result<InvoiceAfterPayment, ApiError> {
    let catalog = state.catalog.get();
    let digits = catalog.currency_digits(&invoice.currency);
    check_payable_seen(form, invoice.payment.payable_as_signed(), digits)?;
    let amount = payment_amount(form, digits)?;
    let fields = form.to_object(&["payment_status", "payment_date", "reference", "remark"]);
    let mut body = with_invoice_id(invoice, fields);
    if let Some(amount) = amount {
        body.insert("amount".to_owned(), json!(amount));
    }
    let latest_day = state.latest_day();
    let read = reader::read(&body, &catalog, |reader| {
        payment_update::read(reader, latest_day)
    });
    let update = read.map_err(reword_payment_faults)?.value;
    if form.text(CONFIRMATION_FIELD) != "yes" {
        check_not_repeated(state, session, invoice, &update).await?;
    }
    let share = load_refund_share(state, session, invoice).await?;
    if let Some(share) = &share {
        // The command checks this again. Here, the fault names the field that was filled in.
        share.check_payment(update.change, digits)?;
    }
    let sent = update.change;
    let update = complete_payment(state, invoice, update).await?;
    // The credited invoice and the completion hold for the document as it was read.
    let is_decided_here = share.is_some() || update.change != sent;
    let seen = is_decided_here.then(|| SeenInvoice::from(invoice));
    let payment = ChangePayment(update);
    let recorded = if let Some(share) = share {
        let credited = share.invoice_id;
        let command = RecordRefund { payment, credited };
        session.send(state, IfUnchanged { seen, command }).await?
    } else {
        let command = payment;
        session.send(state, IfUnchanged { seen, command }).await?
    };
    Ok(recorded)
}

/// Returns the payment as one in full if it is the last part, so that nobody has to say this again. An invoice with
/// signed credit notes keeps the part: a payment in full would set them off.
async fn complete_payment(
    state: &ApiState,
    invoice: &Invoice,
    update: PaymentUpdate,
) -> Result<PaymentUpdate, ApiError> {
    let PaymentChange::Partial(amount) = update.change else {
        return Ok(update);
    };
    if amount != invoice.payment.amount_left() {
        return Ok(update);
    }
    let credits = find_credit_notes(state, invoice).await?;
    if !credits.signed.is_empty() {
        return Ok(update);
    }
    Ok(PaymentUpdate {
        change: PaymentChange::Paid,
        unused_amount: Some(amount),
        ..update
    })
}

/// Refuses "paid in full" if the amount of the invoice has changed since the page of the form was rendered: it would
/// record an amount that nobody has seen.
fn check_payable_seen(
    form: &FormValues,
    payable: Amount,
    currency_digits: u32,
) -> Result<(), Fault> {
    let seen = form.text("payable");
    let is_in_full = PaymentStatus::parse(form.text("payment_status")) == Some(PaymentStatus::Paid);
    if !is_in_full || seen.is_empty() || Amount::parse(seen).ok() == Some(payable) {
        return Ok(());
    }
    let current = payable.to_currency_text(currency_digits);
    let message = format!(
        "The amount of the invoice has changed: it is {current} now. Nothing was recorded; record the payment again."
    );
    Err(Fault::new("payment_status", "changed", message))
}

/// Reads the amount of a part payment; `None` if none was typed. Fails if an amount was typed for another kind of
/// payment, which would ignore it.
fn payment_amount(form: &FormValues, currency_digits: u32) -> Result<Option<Amount>, Fault> {
    let typed = form.text("amount");
    if typed.is_empty() {
        return Ok(None);
    }
    let status = PaymentStatus::parse(form.text("payment_status"));
    if status.is_some_and(|status| status != PaymentStatus::Partial) {
        let message =
            "Only a part payment takes an amount. Leave it empty, or choose \"A part was paid\".";
        return Err(Fault::new("amount", "unexpected", message));
    }
    let amount = typed_amount::parse_money(typed, currency_digits);
    amount
        .map(Some)
        .map_err(|rule| Fault::field("amount", rule))
}

/// Replaces the fault of a missing payment status by a sentence that fits the page, and the name of the date by its
/// label. The API's sentences name fields that the page does not have.
fn reword_payment_faults(faults: Faults) -> Faults {
    faults.map(|fault| {
        if fault.path == "payment_status" && fault.rule() == "required" {
            return Fault::new(fault.path, "required", "Choose a payment.");
        }
        fault.with_labels(|name| (name == "payment_date").then_some("Paid on"))
    })
}

/// Refuses a payment if the same one was recorded within `SAME_PAYMENT_WITHIN`: it may have been sent twice by mistake.
async fn check_not_repeated(
    state: &ApiState,
    session: &AccountSession,
    invoice: &Invoice,
    update: &PaymentUpdate,
) -> Result<(), ApiError> {
    let entries =
        payments::find_owned_by_invoice(&state.store, session.taxpayer, invoice.id).await?;
    let since = state
        .now()
        .saturating_sub(SAME_PAYMENT_WITHIN)
        .unwrap_or(Timestamp::MIN);
    let zone = state.settings.utc_offset;
    let today = state.today();
    let mut recent = entries.iter().filter(|entry| entry.at >= since);
    if !recent.any(|entry| is_same_payment(entry, update, today, zone)) {
        return Ok(());
    }
    let message = "You recorded the same payment a moment ago. Record it again?";
    Err(Fault::new(CONFIRMATION_FIELD, "repeated", message).into())
}

/// True if a recorded payment is the same as the one that `update` records. The reference and the day must be the same,
/// too. `zone` decides the day of an entry that has none.
fn is_same_payment(entry: &LedgerEntry, update: &PaymentUpdate, today: Date, zone: Offset) -> bool {
    let posting = entry.posting;
    let is_same_kind = match update.change {
        PaymentChange::Pending => posting.status == PaymentStatus::Pending,
        PaymentChange::Rejected => posting.status == PaymentStatus::Rejected,
        PaymentChange::Paid => posting.status == PaymentStatus::Paid,
        PaymentChange::Partial(amount) => {
            posting.status == PaymentStatus::Partial && posting.amount == amount
        }
    };
    let day = update.payment_date.unwrap_or(today);
    is_same_kind && entry.reference == update.reference && payment_day(entry, zone) == day
}

/// Adds the members that identify the invoice to a body.
fn with_invoice_id(invoice: &Invoice, mut body: Map<String, Value>) -> Map<String, Value> {
    body.insert("unique_no".to_owned(), invoice.id.to_string().into());
    body.insert(
        "unique_no_type".to_owned(),
        UniqueNoType::PortalId.as_str().into(),
    );
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::invoice::invoice_ref::InvoiceRef;
    use crate::domain::kernel::field_rule::FieldRule;
    use crate::domain::payment::Posting;

    #[test]
    fn only_a_part_payment_takes_an_amount_and_it_is_written_exactly() {
        for (status, typed, expected) in [
            ("partial", "1,075.50", Ok(Some("1075.50"))),
            ("partial", "", Ok(None)),
            ("paid", "", Ok(None)),
            ("partial", "1,5", Err("number")),
            ("partial", "1.000,50", Err("number")),
            ("partial", "1,2,3", Err("number")),
            ("partial", "0.001", Err("digits")),
            ("paid", "5", Err("unexpected")),
            ("rejected", "5", Err("unexpected")),
        ] {
            let form = FormValues::from([("payment_status", status), ("amount", typed)]);
            let read = payment_amount(&form, 2);
            let found = read.map_err(|fault| fault.rule());
            let expected = expected.map(|text| text.and_then(|text| Amount::parse(text).ok()));
            assert_eq!(found, expected, "{status} {typed}");
        }
    }

    #[test]
    fn a_payment_of_an_amount_that_nobody_has_seen_is_refused() {
        for (status, seen, payable, expected) in [
            ("paid", "1075", "1075", None),
            ("paid", "1075.00", "1075", None),
            ("paid", "", "1075", None),
            ("paid", "100", "1075.5", Some("it is 1,075.50 now")),
            ("paid", "odd", "7", Some("it is 7.00 now")),
            ("partial", "100", "1075.5", None),
            ("rejected", "100", "1075.5", None),
            ("", "100", "1075.5", None),
        ] {
            let form = FormValues::from([("payment_status", status), ("payable", seen)]);
            let checked = check_payable_seen(&form, Amount::parse(payable).unwrap(), 2);
            let sentence = checked.err().map(|fault| fault.to_string());
            match (sentence, expected) {
                (None, None) => {}
                (Some(sentence), Some(part)) => assert!(sentence.contains(part), "{sentence}"),
                (sentence, _) => panic!("{status} {seen} of {payable}: {sentence:?}"),
            }
        }
    }

    #[test]
    fn only_money_is_called_a_payment() {
        use PaymentStatus::{Paid, Partial, Pending, Rejected};
        for (sent, after, expected) in [
            ("paid", Paid, "The payment was recorded."),
            ("partial", Partial, "The payment was recorded."),
            (
                "partial",
                Paid,
                "The payment was recorded. It was the last part: now all is paid.",
            ),
            ("pending", Pending, "The payment status was changed."),
            ("REJECTED", Rejected, "The payment status was changed."),
        ] {
            assert_eq!(payment_notice(sent, after), expected, "{sent} {after}");
        }
    }

    #[test]
    fn another_amount_reference_or_day_is_another_payment() {
        let today = Date::constant(1970, 1, 1);
        let yesterday = Date::constant(1969, 12, 31);
        let amount = |number: i64| Amount::from(number);
        let entry = LedgerEntry {
            at: Timestamp::UNIX_EPOCH,
            posting: Posting {
                status: PaymentStatus::Partial,
                amount: amount(7),
            },
            payment_date: None,
            reference: Some("R-1".to_owned()),
            remark: None,
            actor: None,
        };
        let seven = PaymentChange::Partial(amount(7));
        let eight = PaymentChange::Partial(amount(8));
        // The payment, its reference and its day, the recorded day, and whether both are the same payment.
        for (change, reference, payment_date, recorded, expected) in [
            (seven, Some("R-1"), None, None, true),
            (seven, Some("R-1"), Some(today), None, true),
            (seven, Some("R-1"), None, Some(today), true),
            (seven, Some("R-1"), Some(yesterday), Some(yesterday), true),
            (seven, Some("R-1"), Some(yesterday), None, false),
            (seven, Some("R-1"), None, Some(yesterday), false),
            (eight, Some("R-1"), None, None, false),
            (seven, Some("R-2"), None, None, false),
            (seven, None, None, None, false),
            (PaymentChange::Paid, Some("R-1"), None, None, false),
        ] {
            let update = PaymentUpdate {
                invoice: InvoiceRef {
                    kind: UniqueNoType::PortalId,
                    text: "1".to_owned(),
                },
                change,
                unused_amount: None,
                payment_date,
                reference: reference.map(str::to_owned),
                remark: "a part".to_owned(),
            };
            let entry = LedgerEntry {
                payment_date: recorded,
                ..entry.clone()
            };
            let found = is_same_payment(&entry, &update, today, Offset::UTC);
            let name = format!("{change:?} {reference:?} {payment_date:?} {recorded:?}");
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_missing_choice_of_a_payment_is_named_in_the_words_of_the_page() {
        let faults = [
            Fault::new("payment_status", "required", "Two names."),
            Fault::field("payment_date", FieldRule::NOT_IN_FUTURE),
            Fault::field("remark", FieldRule::Required),
        ];
        let named = reword_payment_faults(faults.into_iter().collect());
        let texts: Vec<_> = named.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "Choose a payment.",
                "The Paid on field must not be in the future.",
                "The remark field is required."
            ]
        );
    }
}
