//! A field of a refused body that breaks a rule.

use crate::domain::kernel::fault::Fault;
use crate::http::explain::explanation::Explanation;

/// A field of the body, and the rule that the field violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) rule: &'static str,
}

impl From<&Fault> for Violation {
    fn from(fault: &Fault) -> Self {
        Self {
            path: fault.path.clone(),
            rule: fault.rule(),
        }
    }
}

impl Violation {
    pub(crate) fn from_explanation(explanation: &Explanation) -> Option<Self> {
        Some(Self {
            path: explanation.path.clone()?,
            rule: explanation.rule,
        })
    }
}
