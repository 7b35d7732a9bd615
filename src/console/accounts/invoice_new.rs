//! Creates an invoice by hand, or one like a stored invoice. The form becomes the call Create Invoice (Standard), so
//! that its rules and warnings are the same. Credit notes are created with the same form (`credit_note`).

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use jiff::civil::Date;

use crate::actors::taxpayer::commands::CreateInvoice;
use crate::console::accounts::invoice::find_stored;
use crate::console::accounts::invoice_body::InvoiceBody;
use crate::console::accounts::invoice_fields::{FormLines, HEADER_FIELDS, LINE_COUNT, NEW_FIELDS};
use crate::console::accounts::invoice_form::{
    InvoiceForm, apply_form_button, check_showable, fill_in_stored_customer, kept_data_sentence,
    load_newest,
};
use crate::console::accounts::invoice_values::{current_values, new_line_value};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::overview::{Obstacle, submission_obstacles};
use crate::console::accounts::profile::load_taxpayer;
use crate::console::accounts::source_list::SourceList;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::codes::{DocumentKind, INVOICE_CODE};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::draft_warnings::find_draft_warnings;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

/// The parameter with the number of the customer of a new invoice.
const CUSTOMER_PARAMETER: &str = "customer";
/// The parameter with the id of the invoice that a new one is to be like.
const LIKE_PARAMETER: &str = "like";
/// The currency of an account's first invoice.
const FIRST_CURRENCY: &str = "NGN";
/// The maximum number of invoice numbers that are tried for a new invoice.
const NUMBERS_TRIED_MAX: u64 = 20;
/// The digits at the end of an invoice number that are counted up, at most.
const COUNTED_DIGITS_MAX: usize = 18;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices/new")
            .page(show_form)
            .form(create_invoice)
            .form_has_lines(),
        path("/dashboard/{taxpayer}/invoices/new/lines")
            .form(change_lines)
            .form_has_lines()
            .allows_form_repeat(),
    ]
}

/// The page of a form for a new invoice or credit note.
#[derive(Template)]
#[template(path = "accounts/invoice_new.html")]
pub(super) struct NewDocumentPage {
    pub(super) frame: Frame,
    pub(super) base: String,
    pub(super) heading: String,
    /// The address of the form.
    pub(super) address: String,
    pub(super) back_address: String,
    pub(super) back_label: &'static str,
    /// The reasons why the account cannot create invoices; empty if it can.
    pub(super) obstacles: Vec<Obstacle>,
    pub(super) invoice_form: InvoiceForm,
    pub(super) faults: Vec<(String, String)>,
    /// The stored document that keeps the form from being saved.
    pub(super) existing: Option<ExistingDocument>,
    /// True if the form has values that somebody typed and that are not stored.
    pub(super) is_typed: bool,
}

/// A stored document, with the sentence that leads to it.
pub(super) struct ExistingDocument {
    pub(super) sentence: &'static str,
    pub(super) address: String,
    pub(super) number: String,
}

/// The outcome of a form for a new document.
pub(super) enum DocumentOutcome {
    /// The document is stored. The notice says so, with the warnings.
    Stored {
        id: InvoiceId,
        notice: String,
    },
    Refused(RefusedDocument),
}

pub(super) struct RefusedDocument {
    pub(super) form: FormState,
    pub(super) existing: Option<ExistingDocument>,
}

async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    query: Query,
) -> Answer {
    let values = match query.text(LIKE_PARAMETER) {
        Some(id) => values_like_stored(&state, &session, id).await?,
        None => blank_values(&state, &session, &query).await?,
    };
    let values = fill_in_stored_customer(&state, &session, values).await?;
    let page = load_page(&state, &session, FormState::new(values)).await?;
    show(&page)
}

/// POST of a button that only changes the form: adds or removes a line, or fills in a stored customer.
async fn change_lines(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let sent = form.0.with_plain_line_breaks();
    let values = apply_form_button(&state, &session, 0, &sent).await?;
    let page = NewDocumentPage {
        is_typed: true,
        ..load_page(&state, &session, FormState::new(values)).await?
    };
    show(&page)
}

/// POST of the form: stores the invoice as a draft, or shows the form again.
async fn create_invoice(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    form: Form<FormValues>,
) -> Answer {
    let sent = form.0.with_plain_line_breaks();
    match create_document(&state, &session, sent).await? {
        DocumentOutcome::Stored { id, notice } => {
            Ok(SourceList::default().go_to_invoice(&session, id, &notice))
        }
        DocumentOutcome::Refused(refused) => {
            let page = NewDocumentPage {
                existing: refused.existing,
                is_typed: true,
                ..load_page(&state, &session, refused.form).await?
            };
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
    }
}

async fn load_page(
    state: &ApiState,
    session: &AccountSession,
    form: FormState,
) -> Result<NewDocumentPage, ApiError> {
    let base = base_path(session);
    let list = format!("{base}/invoices");
    let lines = FormLines::from_form(0, form.values());
    let lines_address = format!("{list}/new/lines");
    let invoice_form = InvoiceForm::load(state, session, lines, form, lines_address).await?;
    Ok(NewDocumentPage {
        frame: Frame::for_account(session, "New invoice").with_section("Invoices"),
        base,
        heading: "New invoice".to_owned(),
        address: format!("{list}/new"),
        back_address: list,
        back_label: "Invoices",
        obstacles: load_obstacles(state, session).await?,
        faults: invoice_form.fault_summary(),
        invoice_form,
        existing: None,
        is_typed: false,
    })
}

/// Returns the reasons why the account cannot create invoices.
pub(super) async fn load_obstacles(
    state: &ApiState,
    session: &AccountSession,
) -> Result<Vec<Obstacle>, ApiError> {
    let taxpayer = load_taxpayer(state, session).await?;
    Ok(submission_obstacles(state, &taxpayer))
}

/// Creates the document of a form, as Create Invoice (Standard) does.
pub(super) async fn create_document(
    state: &ApiState,
    session: &AccountSession,
    sent: FormValues,
) -> Result<DocumentOutcome, ApiError> {
    let values = fill_in_stored_customer(state, session, sent).await?;
    let body = InvoiceBody::for_new_document(&values);
    let refused = |form| {
        DocumentOutcome::Refused(RefusedDocument {
            form,
            existing: None,
        })
    };
    let form = match body.read_draft(&state.catalog.get()) {
        Ok(form) => form,
        Err(faults) => {
            let faults = body.to_form_faults(&faults);
            return Ok(refused(FormState::with_faults(values, faults)));
        }
    };
    let mut warnings = form.warnings;
    warnings.extend(find_draft_warnings(state, session.taxpayer, &form.value).await?);
    let created = match session.send(state, CreateInvoice(form.value.draft)).await {
        Ok(created) => created,
        Err(error) => {
            let mut error = ApiError::from(error);
            error.faults = body.to_form_faults(&error.faults);
            return Ok(refused(FormState::from_refusal(error, values)?));
        }
    };
    if created.duplicate.is_some() {
        let sentence = "An invoice has this number already.";
        let fault = Fault::new("invoice_no", "unique", sentence);
        return Ok(DocumentOutcome::Refused(RefusedDocument {
            form: FormState::with_faults(values, fault.into()),
            existing: Some(ExistingDocument::new(session, &created.invoice, sentence)),
        }));
    }
    let customer = created.invoice.customer.id;
    let parts = [
        "It is saved as a draft.".to_owned(),
        kept_data_sentence(state, session, customer, &values).await?,
        warning_text(&warnings),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(DocumentOutcome::Stored {
        id: created.invoice.id,
        notice: parts.join(" "),
    })
}

impl ExistingDocument {
    pub(super) fn new(session: &AccountSession, invoice: &Invoice, sentence: &'static str) -> Self {
        Self {
            sentence,
            address: format!("{}/invoices/{}", base_path(session), invoice.id),
            number: invoice.invoice_no.clone(),
        }
    }
}

/// Returns the warnings as sentences, with the labels of fields in place of their names; an empty text if there are
/// none.
fn warning_text(warnings: &[String]) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let fields = NEW_FIELDS.iter().chain(&HEADER_FIELDS);
    let fields = fields.filter(|(name, _)| name.contains('_'));
    let text = fields.fold(warnings.join("; "), |text, (name, label)| {
        text.replace(name, label)
    });
    format!("Note: {text}.")
}

/// Returns the values of a form that nobody has filled in yet.
async fn blank_values(
    state: &ApiState,
    session: &AccountSession,
    query: &Query,
) -> Result<FormValues, ApiError> {
    let newest = load_newest(state, session, None).await?;
    let number = propose_number(state, session, &newest).await?;
    let customer_no = query.text(CUSTOMER_PARAMETER).unwrap_or_default();
    let currency = propose_currency(state, session, customer_no, &newest).await?;
    let today = state.today().to_string();
    let catalog = state.catalog.get();
    let is_listed = catalog.has(ReferenceList::InvoiceTypes, INVOICE_CODE) != Some(false);
    let item_type = new_line_value("item_type");
    Ok(FormValues::from([
        ("invoice_no", number.as_str()),
        (
            "invoice_type_code",
            if is_listed { INVOICE_CODE } else { "" },
        ),
        ("invoice_date", today.as_str()),
        ("currency", currency.as_str()),
        ("customer.no", customer_no),
        (LINE_COUNT, "1"),
        ("lines.0.item_type", item_type.as_str()),
    ]))
}

/// Returns the values of a stored invoice for a new one of today: with the next number, and due after as many days.
async fn values_like_stored(
    state: &ApiState,
    session: &AccountSession,
    id: &str,
) -> Result<FormValues, ApiError> {
    let stored = find_stored(state, session, id).await?;
    let invoice = &stored.invoice;
    check_showable(invoice)?;
    let catalog = state.catalog.get();
    let code = type_code(invoice, &catalog).unwrap_or_default();
    let newest = load_newest(state, session, None).await?;
    let number = propose_number(state, session, &newest).await?;
    let due = due_date_like(invoice, state.today()).to_string();
    let today = state.today().to_string();
    let count = invoice.lines.len().to_string();
    Ok(
        current_values(&stored, &catalog).with_fields(FormValues::from([
            ("invoice_no", number.as_str()),
            ("invoice_type_code", code.as_str()),
            ("invoice_date", today.as_str()),
            ("due_date", due.as_str()),
            ("currency", invoice.currency.as_str()),
            (LINE_COUNT, count.as_str()),
        ])),
    )
}

/// Returns the due date of an invoice of today that has as many days to be paid as this one.
fn due_date_like(invoice: &Invoice, today: Date) -> Date {
    let days = invoice
        .due_date
        .and_then(|due| invoice.invoice_date.until(due).ok());
    let due = days.and_then(|days| today.checked_add(days).ok());
    due.map_or(today, |due| due.max(today))
}

/// Returns the currency of the customer's newest invoice. For a customer without one, or if no customer is known yet,
/// returns the most frequent currency of the account's newest invoices.
async fn propose_currency(
    state: &ApiState,
    session: &AccountSession,
    customer_no: &str,
    newest: &[Invoice],
) -> Result<String, ApiError> {
    let of_customer = if customer_no.is_empty() {
        Vec::new()
    } else {
        load_newest(state, session, Some(customer_no)).await?
    };
    let own = of_customer.first().map(|invoice| invoice.currency.as_str());
    let currency = own.or_else(|| most_frequent_currency(newest));
    Ok(currency.unwrap_or(FIRST_CURRENCY).to_owned())
}

/// Returns the most frequent currency of these invoices, which are ordered from the newest to the oldest; of several that
/// are as frequent, the one that was used last.
fn most_frequent_currency(newest: &[Invoice]) -> Option<&str> {
    let oldest_first = newest.iter().rev();
    let currencies = oldest_first.map(|invoice| invoice.currency.as_str());
    currencies.max_by_key(|currency| {
        let with_currency = newest
            .iter()
            .filter(|invoice| invoice.currency == **currency);
        with_currency.count()
    })
}

/// Returns the number that follows the last one of the account; an empty text if it is not easily known.
async fn propose_number(
    state: &ApiState,
    session: &AccountSession,
    newest: &[Invoice],
) -> Result<String, ApiError> {
    let mut numbers = newest.iter().filter(|invoice| {
        let kind = DocumentKind::from_type(&invoice.invoice_type);
        kind == DocumentKind::Invoice && !is_correction_number(&invoice.invoice_no)
    });
    let last = numbers.next().map(|invoice| invoice.invoice_no.as_str());
    let next = last.map(next_numbers).unwrap_or_default();
    let in_use = invoices::numbers_in_use(&state.store, session.taxpayer, &next).await?;
    let mut free = next.into_iter().filter(|number| !in_use.contains(number));
    Ok(free.next().unwrap_or_default())
}

/// True for the number that a correction gives to a credit note or a replacement, such as `INV7CN1` or `INV7R1`.
fn is_correction_number(number: &str) -> bool {
    let stem = number.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let original = stem.strip_suffix("CN").or_else(|| stem.strip_suffix('R'));
    original.is_some_and(|original| original.ends_with(|letter: char| letter.is_ascii_digit()))
}

/// Returns the numbers that follow a number, with as many digits; none if it does not end with digits.
fn next_numbers(last: &str) -> Vec<String> {
    let digits = last.bytes().rev().take_while(u8::is_ascii_digit);
    let (series, digits) = last.split_at(last.len() - digits.take(COUNTED_DIGITS_MAX).count());
    let Ok(number) = digits.parse::<u64>() else {
        return Vec::new();
    };
    let width = digits.len();
    (1..=NUMBERS_TRIED_MAX)
        .map(|step| format!("{series}{:0width$}", number + step))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::correction::testing::{draft, signed};
    use crate::domain::invoice::Line;

    #[test]
    fn an_invoice_like_another_one_has_as_many_days_to_be_paid() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        for (issued, due, expected) in [
            ("2026-01-15", Some("2026-02-14"), "2026-12-30"),
            ("2026-01-15", Some("2026-01-15"), "2026-11-30"),
            ("2026-01-15", Some("2026-01-01"), "2026-11-30"),
            ("2026-01-15", None, "2026-11-30"),
        ] {
            let mut invoice = signed(draft(vec![Line::sample()]));
            invoice.invoice_date = day(issued);
            invoice.due_date = due.map(day);
            let found = due_date_like(&invoice, day("2026-11-30"));
            assert_eq!(found, day(expected), "{issued} {due:?}");
        }
    }

    #[test]
    fn one_invoice_in_another_currency_does_not_change_the_proposed_one() {
        for (newest, expected) in [
            (&["USD", "NGN", "NGN"][..], Some("NGN")),
            (&["USD", "USD", "NGN"][..], Some("USD")),
            (&["USD", "NGN"][..], Some("USD")),
            (&["EUR", "NGN", "USD", "NGN", "EUR"][..], Some("EUR")),
            (&[][..], None),
        ] {
            let invoices = newest.iter().map(|currency| {
                let mut invoice = signed(draft(vec![Line::sample()]));
                (*currency).clone_into(&mut invoice.currency);
                invoice
            });
            let invoices: Vec<_> = invoices.collect();
            assert_eq!(most_frequent_currency(&invoices), expected, "{newest:?}");
        }
    }

    #[test]
    fn the_next_number_of_a_series_has_as_many_digits() {
        for (last, next) in [
            ("INV0009", "INV0010"),
            ("INV9", "INV10"),
            ("2026", "2027"),
            ("A1B", ""),
            ("", ""),
            ("\u{e9}7", "\u{e9}8"),
            (
                "X123456789012345678901234567890",
                "X123456789012345678901234567891",
            ),
        ] {
            let numbers = next_numbers(last);
            assert_eq!(numbers.first().map_or("", String::as_str), next, "{last}");
        }
    }

    #[test]
    fn the_number_of_a_correction_begins_no_series() {
        for (number, is_correction) in [
            ("INV7CN1", true),
            ("INV7R12", true),
            ("INV7", false),
            ("CN1", false),
            ("R1", false),
            ("INVCN1", false),
        ] {
            assert_eq!(is_correction_number(number), is_correction, "{number}");
        }
    }

    #[test]
    fn a_warning_calls_fields_by_their_labels() {
        let warnings = ["due_date is before invoice_date", "a debit note"].map(str::to_owned);
        let text = "Note: Due date is before Issue date; a debit note.";
        assert_eq!(warning_text(&warnings), text);
        assert_eq!(warning_text(&[]), "");
    }
}
