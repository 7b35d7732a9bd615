//! The explanation of one reason for which a body was refused, and its JSON in both formats of an error response: the
//! envelope and the problem document.

use serde_json::{Value, json};

use crate::domain::kernel::fault::{Fault, Faults};
use crate::http::respond::details::{Details, Members};
use crate::http::respond::render::uri_pointer;
use crate::http::views::explanation::ExplanationView;

/// The rule id of an explanation if the meaning of the authority's sentence is unknown.
pub(crate) const UNTRANSLATED_RULE: &str = "authority";
/// The possible values of `Explanation::source`: the authority refused, or this service refused.
pub(crate) const AUTHORITY_SOURCE: &str = "authority";
pub(crate) const EINVOICE_SOURCE: &str = "einvoice";

/// The explanation of one reason. Fields are named as the caller named them.
#[derive(Debug, Clone, PartialEq)]
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
    /// The sentence as the authority wrote it; `None` if this service refused.
    pub(crate) authority_message: Option<String>,
}

impl Explanation {
    /// Returns the explanation as an entry of the envelope's `explanations`.
    fn to_envelope_entry(&self) -> Members {
        let mut members = Members::from([
            ("path", json!(self.path)),
            ("rule", json!(self.rule)),
            ("expected", json!(self.expected)),
            ("actual", self.actual.clone()),
            ("message", json!(self.message)),
            ("source", json!(self.source)),
        ]);
        if let Some(sentence) = &self.authority_message {
            members.push("authority_message", json!(sentence));
        }
        members
    }

    /// Returns the explanation as an entry of the problem document's `errors`.
    fn to_problem_entry(&self) -> Value {
        let mut entry = json!({
            // If an explanation names no field, it concerns the whole body.
            "pointer": self.path.as_deref().map_or_else(|| "#".to_owned(), uri_pointer),
            "rule": self.rule, "detail": self.message, "expected": self.expected, "actual": self.actual,
            "source": self.source,
        });
        if let Some(sentence) = &self.authority_message {
            entry["authority_message"] = json!(sentence);
        }
        entry
    }
}

impl From<Explanation> for ExplanationView {
    fn from(explanation: Explanation) -> Self {
        Self {
            path: explanation.path,
            rule: explanation.rule,
            expected: explanation.expected,
            actual: explanation.actual,
            message: explanation.message,
            source: explanation.source,
            authority_message: explanation.authority_message,
        }
    }
}

/// Returns the details of a failure with these explanations.
pub(super) fn to_details(explanations: &[Explanation]) -> Details {
    Details {
        explanations: explanations
            .iter()
            .map(Explanation::to_envelope_entry)
            .collect(),
        errors: explanations
            .iter()
            .map(Explanation::to_problem_entry)
            .collect(),
        ..Details::default()
    }
}

/// Returns one fault for each explanation that names a field.
pub(super) fn to_faults(explanations: &[Explanation]) -> Faults {
    explanations
        .iter()
        .filter_map(|explanation| {
            let path = explanation.path.clone()?;
            Some(Fault::new(
                path,
                explanation.rule,
                explanation.message.clone(),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_has_its_members_in_the_same_order_each_time() {
        let mut explanation = Explanation {
            path: Some("lines.0.quantity".into()),
            rule: "min",
            expected: Some("at least 1".into()),
            actual: json!(0),
            message: "The quantity is too small.".into(),
            source: AUTHORITY_SOURCE,
            authority_message: Some("quantity is odd".into()),
        };
        let text = |explanation: &Explanation| {
            serde_json::to_string(&explanation.to_envelope_entry()).unwrap()
        };
        insta::assert_snapshot!(text(&explanation), @r#"{"path":"lines.0.quantity","rule":"min","expected":"at least 1","actual":0,"message":"The quantity is too small.","source":"authority","authority_message":"quantity is odd"}"#);
        insta::assert_snapshot!(explanation.to_problem_entry(), @r##"{"actual":0,"authority_message":"quantity is odd","detail":"The quantity is too small.","expected":"at least 1","pointer":"#/lines/0/quantity","rule":"min","source":"authority"}"##);
        explanation = Explanation {
            path: None,
            authority_message: None,
            ..explanation
        };
        assert_eq!(explanation.to_problem_entry()["pointer"], "#");
        assert!(
            text(&explanation).starts_with(r#"{"path":null,"#)
                && text(&explanation).ends_with(r#""source":"authority"}"#)
        );
    }
}
