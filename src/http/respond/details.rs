//! The members of a failure's body that only some failures have. The members are plain JSON: the module that knows
//! their meaning creates them, and the failure only carries them.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The optional members of a failure, for both formats of its body.
#[derive(Debug, Default)]
pub(crate) struct Details {
    /// The reasons of a refusal as the envelope shows them, next to `errors`.
    pub(crate) explanations: Vec<Members>,
    /// The same reasons as entries of the problem document's `errors`. They replace the first faults, one fault for
    /// each entry.
    pub(crate) errors: Vec<Value>,
    /// The operations of an RFC 6902 patch that corrects the received body; `None` if the caller requested no patch.
    pub(crate) patch: Option<Vec<Value>>,
    /// True if the patched body is valid; `None` if there is no patch or the authority could not be asked.
    pub(crate) patch_suffices: Option<bool>,
    /// The position in the queue of the run that the request started or joined; `None` if the run does not continue.
    pub(crate) queue: Option<Members>,
}

/// A JSON object that keeps the order of its members. `serde_json::Map` sorts them by name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members(Vec<(&'static str, Value)>);

impl<const N: usize> From<[(&'static str, Value); N]> for Members {
    fn from(members: [(&'static str, Value); N]) -> Self {
        Self(members.into())
    }
}

impl Members {
    /// Adds a member at the end.
    pub(crate) fn push(&mut self, name: &'static str, value: Value) {
        self.0.push((name, value));
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (*name, value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_keep_their_order() {
        let mut members = Members::from([("rule", json!("min")), ("actual", json!(7))]);
        members.push("expected", Value::Null);
        assert_eq!(
            serde_json::to_string(&members).unwrap(),
            r#"{"rule":"min","actual":7,"expected":null}"#
        );
    }
}
