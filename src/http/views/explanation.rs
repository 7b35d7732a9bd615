//! One reason for which the authority refused the document of a run.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationView {
    /// Dot path of the field in the document that was sent; null if the words name no field.
    pub(crate) path: Option<String>,
    /// Id of the broken rule, by which programs can decide; `authority` if the words are not understood.
    pub(crate) rule: &'static str,
    /// The expected value, in words; null if it is unknown.
    pub(crate) expected: Option<String>,
    /// The value that was sent, shortened; null if there was none.
    pub(crate) actual: Value,
    /// The reason as a sentence about the field.
    pub(crate) message: String,
    /// `authority` or `einvoice`, whose rule was broken.
    pub(crate) source: &'static str,
    /// The authority's own words; null if this service refused.
    pub(crate) authority_message: Option<String>,
}
