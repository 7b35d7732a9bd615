//! The meaning of a finished call for the breakers.

/// The evidence of a finished call about the authority's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// The authority answered. A refusal is an answer too.
    Answered,
    Failed,
    /// The answer says nothing about the authority's health.
    Neutral,
}
