//! Explanations of a refusal, one for each reason, and a patch that corrects the body.

use serde::Serialize;
use serde_json::Value;

use crate::domain::kernel::fault::{Fault, Faults};

/// The rule id of an explanation if the meaning of the authority's sentence is unknown.
pub(crate) const UNTRANSLATED: &str = "authority";
/// The possible values of `Explanation::source`: the authority refused, or this service refused.
pub(crate) const AUTHORITY: &str = "authority";
pub(crate) const EINVOICE: &str = "einvoice";

/// The explanation of one reason. Fields are named as the caller named them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Explanation {
    /// Dotted path of the field, from the root of the body; `None` if the reason does not concern a field.
    pub(crate) path: Option<String>,
    /// Id of the violated rule, or `authority` if the meaning of the authority's sentence is unknown. Ids never change.
    pub(crate) rule: &'static str,
    pub(crate) expected: Option<String>,
    /// The received value, shortened; null if no value was received.
    pub(crate) actual: Value,
    pub(crate) message: String,
    /// Tells who refused: `authority` or `einvoice`.
    pub(crate) source: &'static str,
    /// The sentence as the authority wrote it; absent if this service refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) authority_message: Option<String>,
}

/// All explanations of one refusal.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) explanations: Vec<Explanation>,
    /// The patch of the body, if the caller requested one.
    pub(crate) patch: Option<Patch>,
}

/// An RFC 6902 patch that corrects the received body.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Each operation has an additional member `why`, which RFC 6902 makes readers ignore.
    pub(crate) operations: Vec<Value>,
    /// True if the patched body is valid; `None` if the authority could not be asked.
    pub(crate) suffices: Option<bool>,
}

/// Returns one fault for each explanation that names a field.
pub(crate) fn faults(explanations: &[Explanation]) -> Faults {
    let fault = |why: &Explanation| Some(Fault::new(why.path.clone()?, why.rule, why.message.clone()));
    explanations.iter().filter_map(fault).collect()
}
