//! One safe change of a body.

use serde_json::{Value, json};

/// What is done at a place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PatchAction {
    /// Sets a member, whether it is there or not.
    Set(Value),
    /// Takes the member from there to here.
    MoveFrom(String),
    Remove,
}

/// A change, where, and why it is safe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchOp {
    /// JSON Pointer into the body as it was sent.
    pub(crate) pointer: String,
    pub(crate) change: PatchAction,
    pub(crate) why: String,
}

impl PatchOp {
    pub(crate) fn set(pointer: impl Into<String>, value: Value, why: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), change: PatchAction::Set(value), why: why.into() }
    }

    /// The operation of RFC 6902. `add` sets a member of an object that is missing, `replace` one that is there.
    pub(crate) fn operation(&self, was_there: bool) -> Value {
        let (path, why) = (&self.pointer, &self.why);
        match &self.change {
            PatchAction::Set(value) if was_there => {
                json!({ "op": "replace", "path": path, "value": value, "why": why })
            }
            PatchAction::Set(value) => json!({ "op": "add", "path": path, "value": value, "why": why }),
            PatchAction::MoveFrom(from) => json!({ "op": "move", "from": from, "path": path, "why": why }),
            PatchAction::Remove => json!({ "op": "remove", "path": path, "why": why }),
        }
    }

    /// Carries it out; false where it changes nothing.
    pub(crate) fn apply(&self, body: &mut Value) -> bool {
        match &self.change {
            PatchAction::Set(value) => set(body, &self.pointer, value.clone()),
            PatchAction::Remove => take(body, &self.pointer).is_some(),
            PatchAction::MoveFrom(from) => match take(body, from) {
                Some(value) => set(body, &self.pointer, value),
                None => false,
            },
        }
    }
}

fn set(body: &mut Value, pointer: &str, value: Value) -> bool {
    if body.pointer(pointer) == Some(&value) {
        return false;
    }
    let Some((parent, name)) = last_step(pointer) else { return false };
    match body.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(name, value);
            true
        }
        _ => false,
    }
}

fn take(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, name) = last_step(pointer)?;
    body.pointer_mut(parent)?.as_object_mut()?.remove(&name)
}

/// The pointer of the parent, and the name in it.
fn last_step(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}
