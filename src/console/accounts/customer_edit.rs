//! The page on which a person changes a stored customer. It is the only way to do so: a request that creates an invoice
//! uses the stored data.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;

use crate::actors::taxpayer::commands::ChangeCustomer;
use crate::console::accounts::customers::find_customer;
use crate::console::accounts::field_changes::FieldChange;
use crate::console::accounts::navigation::base_path;
use crate::console::form_values::{FormState, FormValues, unlink_unshown_fields};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::{AccountSession, Accountant};
use crate::domain::kernel::digest;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::Customer;
use crate::http::forms::{customer as customer_form, reader};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/customers/{customer}/edit")
            .page(show_form)
            .form(save_customer),
    ]
}

/// The hidden field with the digest of the data that the form showed.
const SEEN: &str = "seen";
const TIN: &str = "tin";
/// The fields of the form, with the names of the API: each with its label and the type of its input.
const FIELDS: [(&str, &str, &str); 10] = [
    ("name", "Name", "text"),
    ("email", "Email", "email"),
    (TIN, "TIN", "text"),
    ("telephone", "Telephone", "tel"),
    ("business_description", "Business", "text"),
    ("address_street_name", "Street and number", "text"),
    ("address_city", "City", "text"),
    ("address_state", "State", "text"),
    ("address_postal_code", "Postal code", "text"),
    ("address_country", "Country", "text"),
];

#[derive(Template)]
#[template(path = "accounts/customer_edit.html")]
struct EditPage {
    frame: Frame,
    /// The address of the customer's page.
    address: String,
    name: String,
    number: String,
    /// The tax number, which cannot be changed; `None` if the customer has none, so that the form asks for it.
    tin: Option<String>,
    inputs: Vec<CustomerInput>,
    form: FormState,
    faults: Vec<(String, String)>,
    seen: String,
    /// True if the form has values that somebody typed and that are not stored.
    is_typed: bool,
    /// If the customer was changed while the form was open: the typed values that differ from the stored ones.
    conflicts: Option<Vec<FieldChange>>,
}

struct CustomerInput {
    name: String,
    label: &'static str,
    kind: &'static str,
}

impl EditPage {
    fn new(session: &AccountSession, customer: &Customer, form: FormState) -> Self {
        let details = &customer.details;
        let inputs = shown_fields(customer).map(|(name, label, kind)| CustomerInput {
            name: name.to_owned(),
            label,
            kind,
        });
        let summary = form.summary().into_iter();
        let is_shown = |name: &str| shown_fields(customer).any(|(shown, ..)| shown == name);
        Self {
            frame: Frame::for_account(session, &format!("Edit {}", details.name))
                .with_section("Customers"),
            address: customer_address(session, customer),
            name: details.name.clone(),
            number: details.no.clone(),
            tin: details.tin.clone(),
            inputs: inputs.collect(),
            faults: unlink_unshown_fields(summary, is_shown),
            seen: seen_text(customer),
            is_typed: form.is_refused(),
            conflicts: None,
            form,
        }
    }
}

/// Returns the fields that the form for this customer has: a tax number is only filled in, never replaced.
fn shown_fields(
    customer: &Customer,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let has_tin = customer.details.tin.is_some();
    let fields = FIELDS.into_iter();
    fields.filter(move |(name, ..)| !has_tin || *name != TIN)
}

fn customer_address(session: &AccountSession, customer: &Customer) -> String {
    format!("{}/customers/{}", base_path(session), customer.id)
}

/// Returns the digest of the customer's data, by which the command knows what the sender of the form saw.
fn seen_text(customer: &Customer) -> String {
    // Serialization cannot fail: the details are texts.
    let document = serde_json::to_value(&customer.details).unwrap_or_default();
    digest::document_digest(&document)
}

fn stored_values(customer: &Customer) -> FormValues {
    let details = &customer.details;
    let address = &details.address;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    FormValues::from([
        ("name", details.name.as_str()),
        ("email", &details.email),
        (TIN, &text(&details.tin)),
        ("telephone", &text(&details.telephone)),
        ("business_description", &text(&details.business_description)),
        ("address_street_name", &address.street_name),
        ("address_city", &address.city),
        ("address_state", &text(&address.state)),
        ("address_postal_code", &address.postal_code),
        ("address_country", &address.country),
    ])
}

/// GET /dashboard/{taxpayer}/customers/{customer}/edit: shows the form with the stored data.
async fn show_form(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
) -> Answer {
    let customer = find_customer(&state, &session, &ids.1).await?;
    let form = FormState::new(stored_values(&customer));
    show(&EditPage::new(&session, &customer, form))
}

/// POST of the form: changes the customer, unless it was changed since the form was opened.
async fn save_customer(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let customer = find_customer(&state, &session, &ids.1).await?;
    let sent = form.0.with_plain_line_breaks();
    match change_customer(&state, &session, &customer, &sent).await {
        Ok(notice) => Ok(go_to(&customer_address(&session, &customer), &notice)),
        Err(error) if error.status == StatusCode::PRECONDITION_FAILED => {
            let customer = find_customer(&state, &session, &ids.1).await?;
            let page = EditPage {
                conflicts: Some(list_differences(&customer, &sent)),
                is_typed: true,
                ..EditPage::new(&session, &customer, FormState::new(sent))
            };
            show_with_status(StatusCode::PRECONDITION_FAILED, &page)
        }
        Err(error) => {
            let form = FormState::from_refusal(error, sent)?;
            let page = EditPage::new(&session, &customer, form);
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
    }
}

/// Changes the customer. Returns the notice for the sender of the form.
async fn change_customer(
    state: &ApiState,
    session: &AccountSession,
    customer: &Customer,
    sent: &FormValues,
) -> Result<String, ApiError> {
    if sent.text(SEEN) != seen_text(customer) {
        return Err(Refusal::CustomerChanged.into());
    }
    let names: Vec<_> = shown_fields(customer).map(|(name, ..)| name).collect();
    let body = sent.to_object(&names);
    let read = reader::read(&body, &state.catalog.get(), |reader| {
        customer_form::read_change(reader, customer)
    });
    let accepted = read?;
    if accepted.value == customer.details {
        return Ok("Nothing was changed: the customer was like this already.".to_owned());
    }
    let command = ChangeCustomer {
        seen: customer.clone(),
        details: accepted.value,
        by: session.by,
    };
    session.send(state, command).await?;
    let warnings = accepted.warnings.iter();
    let notes: Vec<_> = warnings
        .map(|warning| format!(" Note: {warning}."))
        .collect();
    Ok(format!(
        "The customer was changed. Later invoices get the new data.{}",
        notes.concat()
    ))
}

/// Returns the fields whose typed values differ from the stored ones.
fn list_differences(customer: &Customer, sent: &FormValues) -> Vec<FieldChange> {
    let stored = stored_values(customer);
    let differing =
        shown_fields(customer).filter(|(name, ..)| stored.text(name) != sent.text(name));
    let changes = differing.map(|(name, label, _)| FieldChange {
        label: label.to_owned(),
        old: stored.text(name).to_owned(),
        new: sent.text(name).to_owned(),
    });
    changes.collect()
}
