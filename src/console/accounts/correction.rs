//! Explains in plain words why the authority rejected an invoice, and shows the correction that the service suggests.

use actix_web::{HttpRequest, web};
use serde_json::Value;

use crate::console::accounts::invoice::{self, InvoiceForms};
use crate::console::accounts::invoice_fields::{
    field_label, form_field_for_document_path, replace_path,
};
use crate::console::accounts::timeline::operation_name;
use crate::console::form_values::FormValues;
use crate::console::page::{Answer, Form};
use crate::console::session::accounts::Accountant;
use crate::domain::pipeline::signed_copy::{SIGNED_OTHERWISE_MESSAGE, has_other_signed_document};
use crate::domain::pipeline::{Operation, Run, RunState};
use crate::http::explain::authority;
use crate::http::explain::explanation::Explanation;
use crate::http::respond::details::Details;
use crate::http::respond::error::{ApiError, capitalize};
use crate::http::state::ApiState;
use crate::http::suggest_patch::{self, PatchContext};
use crate::store::accounts::taxpayers;
use crate::store::runs;

/// A run that the authority refused, with the reasons.
pub(super) struct RefusedRun {
    pub(super) name: &'static str,
    pub(super) reasons: Vec<RejectionReason>,
    /// True if a correction of the document can be suggested: the run submits an invoice that is not signed.
    pub(super) is_correctable: bool,
}

/// One reason of a refusal. A text that is not known is empty.
pub(super) struct RejectionReason {
    /// The name of the field in the form that changes the stored invoice.
    pub(super) field: String,
    pub(super) label: String,
    pub(super) message: String,
    pub(super) expected: String,
    pub(super) actual: String,
    /// The original words of the authority; empty if `message` consists of them.
    pub(super) quoted: String,
}

impl RefusedRun {
    /// Returns the reasons of a run; `None` if it was not refused.
    pub(super) fn from_run(run: &Run, field_name: impl Fn(&str) -> String) -> Option<Self> {
        if run.state() != RunState::Refused {
            return None;
        }
        let name = operation_name(run.operation());
        if has_other_signed_document(run) {
            let reasons = vec![RejectionReason::from_message(capitalize(
                SIGNED_OTHERWISE_MESSAGE,
            ))];
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
            .map(|explanation| RejectionReason::new(explanation, &field_name))
            .collect();
        Some(Self {
            name,
            reasons,
            is_correctable: run.operation() == Operation::Submit,
        })
    }
}

impl RefusedRun {
    /// Returns the names of the fields that the reasons are about.
    pub(super) fn field_names(&self) -> impl Iterator<Item = String> {
        self.reasons.iter().map(|reason| reason.field.clone())
    }
}

impl RejectionReason {
    fn from_message(message: String) -> Self {
        let none = String::new;
        Self {
            field: none(),
            label: none(),
            message,
            expected: none(),
            actual: none(),
            quoted: none(),
        }
    }
}

impl RejectionReason {
    fn new(explanation: Explanation, field_name: impl Fn(&str) -> String) -> Self {
        let quoted = explanation
            .authority_message
            .filter(|words| *words != explanation.message)
            .unwrap_or_default();
        let field = explanation
            .path
            .as_deref()
            .map(field_name)
            .unwrap_or_default();
        let label = field_label(&field);
        let message = match &explanation.path {
            Some(path) => replace_path(&explanation.message, path, &label),
            None => explanation.message,
        };
        Self {
            label,
            field,
            expected: explanation.expected.unwrap_or_default(),
            actual: value_text(&explanation.actual),
            message,
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

/// A correction of the rejected document that the service suggests.
pub(super) struct SuggestedCorrection {
    pub(super) changes: Vec<SuggestedChange>,
    /// True if the corrected document is valid; `None` if the authority could not be asked.
    pub(super) suffices: Option<bool>,
    /// The same changes as a JSON Patch.
    pub(super) patch: String,
}

/// A change of one field. A value is an empty text if the document has none.
pub(super) struct SuggestedChange {
    /// The name of the field in the form that changes the stored invoice.
    pub(super) field: String,
    pub(super) label: String,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) why: String,
}

impl SuggestedCorrection {
    /// Returns the names of the fields that the suggestion changes.
    pub(super) fn field_names(&self) -> impl Iterator<Item = String> {
        self.changes.iter().map(|change| change.field.clone())
    }

    /// Returns the new values of the fields.
    pub(super) fn form_values(&self) -> FormValues {
        let changes = self.changes.iter();
        changes
            .map(|change| (change.field.as_str(), change.new.as_str()))
            .collect()
    }
}

impl SuggestedChange {
    /// Reads one operation of the JSON Patch that corrects the document.
    fn from_patch_operation(
        operation: &Value,
        document: &Value,
        field_name: impl Fn(&str) -> String,
    ) -> Self {
        let text = |name: &str| operation.get(name).map(value_text).unwrap_or_default();
        let pointer = text("path");
        let new = match text("op").as_str() {
            "remove" => String::new(),
            "move" => text_at(document, &text("from")),
            _ => text("value"),
        };
        let field = field_name(&pointer.trim_start_matches('/').replace('/', "."));
        Self {
            label: field_label(&field),
            field,
            old: text_at(document, &pointer),
            new,
            why: text("why"),
        }
    }
}

/// Returns the value at a JSON pointer as a text, empty if there is none.
fn text_at(document: &Value, pointer: &str) -> String {
    document
        .pointer(pointer)
        .map(value_text)
        .unwrap_or_default()
}

/// POST …/correction: asks the authority what would make the rejected document valid, and shows the answer on the page
/// of the invoice. Changes nothing.
pub(super) async fn suggest_correction(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    request: HttpRequest,
    _: Form<FormValues>,
) -> Answer {
    let store = &state.store;
    let id = session.taxpayer;
    let invoice = invoice::find(&state, &session, &ids.1).await?;
    let runs = runs::find_owned_by_irn_keys(store.reader(), id, vec![invoice.irn.key()]).await?;
    let mut refused = runs
        .into_iter()
        .filter(|run| run.state() == RunState::Refused);
    let submission = refused.find(|run| run.operation() == Operation::Submit);
    let run = submission.ok_or_else(ApiError::route_not_found)?;
    let taxpayer = taxpayers::find_by_id(store.reader(), id)
        .await?
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let body = run
        .payload
        .submission()
        .ok_or_else(ApiError::route_not_found)?
        .validate_request_body();
    let catalog = state.catalog.get();
    let context = PatchContext {
        catalog: &catalog,
        zone: state.settings.utc_offset,
    };
    let mut details = Details::default();
    suggest_patch::build_patch(&state.authority, context, &taxpayer, &body)
        .await
        .fill_details(&mut details);
    let operations = details.patch.unwrap_or_default();
    let document = Value::Object(body);
    let changes = operations.iter().map(|operation| {
        SuggestedChange::from_patch_operation(operation, &document, |path| {
            form_field_for_document_path(&invoice, &catalog, path)
        })
    });
    let suggestion = SuggestedCorrection {
        changes: changes.collect(),
        suffices: details.patch_suffices,
        patch: format!("{:#}", Value::Array(operations.clone())),
    };
    let forms = InvoiceForms {
        suggestion: Some(suggestion),
        ..InvoiceForms::default()
    };
    invoice::render(&state, &request, &session, invoice, forms).await
}
