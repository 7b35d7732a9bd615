//! The reason that an operator gives for an action. The audit keeps it.

use actix_web::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::form_values::{FormState, FormValues};
use crate::console::session::operators::OperatorSession;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::fault::Faults;
use crate::http::forms::{reader, reason};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The field that each form for an operator's action has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReasonForm {
    pub(crate) reason: String,
}

impl ReasonForm {
    /// Returns the reason, checked as the API checks it; `None` if it is blank.
    pub(crate) fn read(&self, state: &ApiState) -> Result<Option<String>, ApiError> {
        let form = reader::read(&self.body(), &state.catalog.get(), reason::read)?;
        Ok(form.value.0)
    }

    /// Returns the reason of an action that requires one. Fails if it is blank.
    pub(crate) fn read_required(&self, state: &ApiState) -> Result<String, ApiError> {
        Ok(reader::read(&self.body(), &state.catalog.get(), reason::read_required)?.value)
    }

    /// Returns the operator and the reason of a requested action.
    pub(crate) fn to_operator_request(
        &self,
        state: &ApiState,
        session: &OperatorSession,
    ) -> Result<OperatorRequest, ApiError> {
        Ok(OperatorRequest {
            operator_id: session.id,
            reason: self.read(state)?,
        })
    }

    /// Returns the operator and the reason of a requested action. Fails if there is no reason.
    pub(crate) fn to_request_with_reason(
        &self,
        state: &ApiState,
        session: &OperatorSession,
    ) -> Result<OperatorRequest, ApiError> {
        Ok(OperatorRequest {
            operator_id: session.id,
            reason: Some(self.read_required(state)?),
        })
    }

    fn body(&self) -> Map<String, Value> {
        let reason = self.reason.trim();
        let filled = (!reason.is_empty()).then(|| ("reason".to_owned(), Value::from(reason)));
        filled.into_iter().collect()
    }
}

impl From<&FormValues> for ReasonForm {
    fn from(values: &FormValues) -> Self {
        Self {
            reason: values.text("reason").to_owned(),
        }
    }
}

/// Returns the status of a page with a form: 422 if the form was refused, otherwise 200.
pub(super) fn form_page_status(form: &FormState) -> StatusCode {
    if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    }
}

/// The refused form of a page with several forms, with its values and faults.
#[derive(Debug, Default)]
pub(super) struct RefusedForm {
    /// The last word of the path that the form was sent to; empty if no form was refused.
    action: &'static str,
    pub(super) sent_form: FormState,
    empty_form: FormState,
}

impl RefusedForm {
    pub(super) fn new(action: &'static str, values: FormValues, faults: Faults) -> Self {
        Self {
            action,
            sent_form: FormState::with_faults(values, faults),
            empty_form: FormState::default(),
        }
    }

    /// Returns the refused form if it was sent to this action; else an empty form.
    pub(super) fn form(&self, action: &str) -> &FormState {
        if self.action == action {
            &self.sent_form
        } else {
            &self.empty_form
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::domain::kernel::fault::Fault;

    #[test]
    fn only_the_refused_form_of_a_page_has_its_values_and_faults() {
        let values = FormValues::from([("reason", " typed ")]);
        let fault = Fault::new("reason", "max", "Too long.");
        let refused = RefusedForm::new("pause", values, Faults::from(fault));
        for (page, action, value, fault) in [
            (&refused, "pause", "typed", Some("Too long.")),
            (&refused, "verify", "", None),
            (&RefusedForm::default(), "pause", "", None),
        ] {
            let form = page.form(action);
            assert_eq!(form.value("reason"), value, "{action}");
            assert_eq!(form.fault("reason").as_deref(), fault, "{action}");
        }
        assert_eq!(form_page_status(&refused.sent_form), 422);
        assert_eq!(form_page_status(&RefusedForm::default().sent_form), 200);
    }

    /// The browser takes blanks for an answer unless a pattern forbids them.
    #[test]
    fn each_required_reason_is_refused_by_the_browser_if_it_is_blank() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates/operators");
        let mut required = 0;
        for entry in fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let inputs = text.split("<input ").skip(1);
            for input in inputs.filter_map(|input| input.split('>').next()) {
                if input.contains("name=\"reason\"") && input.contains(" required") {
                    let pattern = r#" pattern=".*\S.*""#;
                    assert!(input.contains(pattern), "{}: {input}", path.display());
                    required += 1;
                }
            }
        }
        assert!(required > 10, "{required}");
    }
}
