//! One reason of a refusal, as the answer shows it beside `errors`.

use serde::Serialize;
use serde_json::Value;

use crate::domain::kernel::fault::{Fault, Faults};

/// The rule of a sentence that nothing is known about.
pub(crate) const UNTRANSLATED: &str = "authority";
/// Whose rule was broken.
pub(crate) const AUTHORITY: &str = "authority";
pub(crate) const EINVOICE: &str = "einvoice";

/// Why, in the caller's own names.
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

/// What a refusal adds to its answer.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) explanations: Vec<Explanation>,
    /// Where it was asked for.
    pub(crate) patch: Option<Patch>,
}

/// An RFC 6902 patch of the body as it was sent.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Each with the reason beside it, a member that the RFC has readers ignore.
    pub(crate) operations: Vec<Value>,
    /// Whether the body passes with it; none where nobody could be asked.
    pub(crate) suffices: Option<bool>,
}

/// The faults of those that are about a field.
pub(crate) fn faults(explanations: &[Explanation]) -> Faults {
    let fault = |why: &Explanation| Some(Fault::new(why.path.clone()?, why.rule, why.message.clone()));
    explanations.iter().filter_map(fault).collect()
}
