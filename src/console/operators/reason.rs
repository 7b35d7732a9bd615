//! The reason that an operator gives for an action. The audit keeps it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::session::operators::OperatorSession;
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::forms::{reason, report};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The fields of a form with which an operator acts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReasonForm {
    pub(crate) reason: String,
}

impl ReasonForm {
    /// Reads the reason as the API does.
    pub(crate) fn read(&self, state: &ApiState) -> Result<Option<String>, ApiError> {
        let form = report::read(&self.body(), &state.catalog.get(), reason::read)?;
        Ok(form.value.0)
    }

    /// Reads the reason of an action that requires one.
    pub(crate) fn read_required(&self, state: &ApiState) -> Result<String, ApiError> {
        Ok(report::read(&self.body(), &state.catalog.get(), reason::read_required)?.value)
    }

    /// Returns the request of an operator, with the reason.
    pub(crate) fn request(
        &self,
        state: &ApiState,
        session: &OperatorSession,
    ) -> Result<OperatorRequest, ApiError> {
        Ok(OperatorRequest { operator_id: session.id, reason: self.read(state)? })
    }

    fn body(&self) -> Map<String, Value> {
        let reason = self.reason.trim();
        let filled = (!reason.is_empty()).then(|| ("reason".to_owned(), Value::from(reason)));
        filled.into_iter().collect()
    }
}
