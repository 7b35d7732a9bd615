//! Why the authority refused an invoice, in plain words, and the correction that the service suggests.

use actix_web::web;
use askama::Template;
use serde_json::Value;

use crate::console::accounts::timeline::operation_name;
use crate::console::accounts::{base, invoice};
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, show};
use crate::console::session::accounts::Accountant;
use crate::domain::pipeline::signed_copy::{SIGNED_OTHERWISE_MESSAGE, is_signed_otherwise};
use crate::domain::pipeline::{Operation, Run, RunState};
use crate::http::explain::authority;
use crate::http::explain::explanation::Explanation;
use crate::http::respond::details::Details;
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::state::ApiState;
use crate::http::suggest_patch::{self, PatchContext};
use crate::store::accounts::taxpayers;
use crate::store::runs;

/// A run that was refused, with its reasons.
pub(super) struct RefusedRun {
    pub(super) name: &'static str,
    pub(super) reasons: Vec<Reason>,
    /// True if a correction of the document can be suggested: it is an invoice and not signed.
    pub(super) is_correctable: bool,
}

/// One reason of a refusal. A text is empty if there is nothing to say.
pub(super) struct Reason {
    pub(super) field: String,
    pub(super) message: String,
    pub(super) expected: String,
    pub(super) actual: String,
    /// The words of the authority, if the message is a translation of them.
    pub(super) quoted: String,
}

impl RefusedRun {
    /// Returns the reasons of a run; `None` if it was not refused.
    pub(super) fn from_run(run: &Run) -> Option<Self> {
        if run.state() != RunState::Refused {
            return None;
        }
        let name = operation_name(run.operation());
        if is_signed_otherwise(run) {
            let reasons = vec![Reason::from_message(capitalize(SIGNED_OTHERWISE_MESSAGE))];
            return Some(Self {
                name,
                reasons,
                is_correctable: false,
            });
        }
        let words = run
            .last_error
            .as_deref()
            .unwrap_or("The authority gave no reason.");
        let reasons = authority::explain(words, &run.document())
            .into_iter()
            .map(Reason::from)
            .collect();
        Some(Self {
            name,
            reasons,
            is_correctable: run.operation() == Operation::Submit,
        })
    }
}

impl Reason {
    fn from_message(message: String) -> Self {
        let none = String::new;
        Self {
            field: none(),
            message,
            expected: none(),
            actual: none(),
            quoted: none(),
        }
    }
}

impl From<Explanation> for Reason {
    fn from(why: Explanation) -> Self {
        let quoted = why
            .authority_message
            .filter(|words| *words != why.message)
            .unwrap_or_default();
        Self {
            field: why.path.unwrap_or_default(),
            expected: why.expected.unwrap_or_default(),
            actual: value_text(&why.actual),
            message: why.message,
            quoted,
        }
    }
}

/// Returns a JSON value as text: a string without its quotes, and an empty text for null.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[derive(Template)]
#[template(path = "accounts/correction.html")]
struct CorrectionPage {
    frame: Frame,
    /// The address of the invoice, and its number.
    invoice: String,
    number: String,
    changes: Vec<Change>,
    /// True if the corrected document is valid; `None` if the authority could not be asked.
    suffices: Option<bool>,
    patch: String,
}

struct Change {
    field: String,
    action: &'static str,
    value: String,
    why: String,
}

impl Change {
    fn from_operation(operation: &Value) -> Self {
        let text = |name: &str| operation.get(name).map(value_text).unwrap_or_default();
        let (action, value) = match text("op").as_str() {
            "remove" => ("Remove it", String::new()),
            "move" => ("Take it from", text("from")),
            "add" => ("Add", text("value")),
            _ => ("Change it to", text("value")),
        };
        Self {
            field: text("path"),
            action,
            value,
            why: text("why"),
        }
    }
}

/// POST …/correction: asks the authority what would make the refused document valid. Changes nothing.
pub(super) async fn suggest(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let invoice = invoice::find(&state, &session, &ids.1).await?;
    let runs = runs::owned_by_with_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let mut refused = runs
        .into_iter()
        .filter(|run| run.state() == RunState::Refused);
    let submission = refused.find(|run| run.operation() == Operation::Submit);
    let run = submission.ok_or_else(ApiError::route_not_found)?;
    let taxpayer = taxpayers::with_id(store.reader(), id)
        .await?
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let body = run
        .payload
        .submission()
        .ok_or_else(ApiError::route_not_found)?
        .callers_body();
    let catalog = state.catalog.get();
    let context = PatchContext {
        catalog: &catalog,
        zone: state.settings.utc_offset,
    };
    let mut details = Details::default();
    suggest_patch::build_patch(&state.authority, context, &taxpayer, &body)
        .await
        .add_to(&mut details);
    let operations = details.patch.unwrap_or_default();
    show(&CorrectionPage {
        frame: Frame::for_account(&session, "Suggested correction"),
        invoice: format!("{}/invoices/{}", base(&session), invoice.id),
        number: invoice.invoice_no,
        changes: operations.iter().map(Change::from_operation).collect(),
        suffices: details.patch_suffices,
        patch: format!("{:#}", Value::Array(operations)),
    })
}
