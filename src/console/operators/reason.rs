//! The reason that an operator gives for an action. The audit keeps it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::session::operators::OperatorSession;
use crate::domain::kernel::audit::OperatorRequest;
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
    pub(crate) fn request(
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
    pub(crate) fn required_request(
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
