//! One safe change of a body.

use serde_json::{Value, json};

/// The change at a pointer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PatchAction {
    /// Sets a member, present or not.
    Set(Value),
    /// Moves the member from this pointer.
    MoveFrom(String),
    Remove,
}

/// A change, its pointer and the reason why it is safe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchOp {
    /// JSON Pointer into the received body.
    pub(crate) pointer: String,
    pub(crate) change: PatchAction,
    pub(crate) why: String,
}

impl PatchOp {
    pub(crate) fn set(pointer: impl Into<String>, value: Value, why: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), change: PatchAction::Set(value), why: why.into() }
    }

    /// Returns the RFC 6902 operation: `add` sets an absent member of an object, `replace` a present one.
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

    /// Applies the change. Returns false if the body stays the same.
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

/// Splits a pointer into the parent's pointer and the unescaped name.
fn last_step(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}
