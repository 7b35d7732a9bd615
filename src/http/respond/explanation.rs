//! One reason of a refusal, shown beside `errors`.

use serde::Serialize;
use serde_json::Value;

use crate::domain::kernel::fault::{Fault, Faults};

/// The rule of a sentence that is not understood.
pub(crate) const UNTRANSLATED: &str = "authority";
/// The origin of the violated rule.
pub(crate) const AUTHORITY: &str = "authority";
pub(crate) const EINVOICE: &str = "einvoice";

/// An explanation, in the caller's field names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Explanation {
    /// Dot path from the root of the body; none where the words are about no field.
    pub(crate) path: Option<String>,
    /// Stable id of the rule: those of the forms, and `authority` where the words are not understood.
    pub(crate) rule: &'static str,
    pub(crate) expected: Option<String>,
    /// What was sent, shortened; null where nothing was.
    pub(crate) actual: Value,
    pub(crate) message: String,
    /// `authority` or `einvoice`.
    pub(crate) source: &'static str,
    /// The authority's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) authority_message: Option<String>,
}

/// The explanations of a refusal.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) explanations: Vec<Explanation>,
    /// Present if it was asked for.
    pub(crate) patch: Option<Patch>,
}

/// An RFC 6902 patch of the body as it was sent.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Each with the reason beside it, a member that the RFC has readers ignore.
    pub(crate) operations: Vec<Value>,
    /// True if the body passes with it; none if the authority could not be asked.
    pub(crate) suffices: Option<bool>,
}

/// Returns the faults of the explanations that name a field.
pub(crate) fn faults(explanations: &[Explanation]) -> Faults {
    let fault = |why: &Explanation| Some(Fault::new(why.path.clone()?, why.rule, why.message.clone()));
    explanations.iter().filter_map(fault).collect()
}
