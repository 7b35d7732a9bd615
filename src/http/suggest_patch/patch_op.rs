//! One safe change of a body, and the RFC 6902 operation that describes the change.

use serde_json::{Value, json};

/// The way in which a patch changes one member of a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PatchAction {
    /// Adds or replaces the member.
    Set(Value),
    /// Moves the value from this other JSON Pointer to the member.
    MoveFrom(String),
    Remove,
}

/// A change of a body, the place of the change, and the reason why the change is safe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PatchOperation {
    /// The changed member, as a JSON Pointer into the body.
    pub(crate) pointer: String,
    pub(crate) change: PatchAction,
    pub(crate) why: String,
}

impl PatchOperation {
    pub(crate) fn set(pointer: impl Into<String>, value: Value, why: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            change: PatchAction::Set(value),
            why: why.into(),
        }
    }

    /// Returns the RFC 6902 operation. `Set` becomes `replace` if `is_replacement`, else `add`.
    pub(crate) fn to_json_operation(&self, is_replacement: bool) -> Value {
        let path = &self.pointer;
        let why = &self.why;
        match &self.change {
            PatchAction::Set(value) if is_replacement => {
                json!({ "op": "replace", "path": path, "value": value, "why": why })
            }
            PatchAction::Set(value) => {
                json!({ "op": "add", "path": path, "value": value, "why": why })
            }
            PatchAction::MoveFrom(from) => {
                json!({ "op": "move", "from": from, "path": path, "why": why })
            }
            PatchAction::Remove => json!({ "op": "remove", "path": path, "why": why }),
        }
    }

    /// Applies the change to a body. Returns false if the body stays the same.
    pub(crate) fn apply(&self, body: &mut Value) -> bool {
        match &self.change {
            PatchAction::Set(value) => set_member(body, &self.pointer, value.clone()),
            PatchAction::Remove => remove_member(body, &self.pointer).is_some(),
            PatchAction::MoveFrom(from) => match remove_member(body, from) {
                Some(value) => set_member(body, &self.pointer, value),
                None => false,
            },
        }
    }
}

fn set_member(body: &mut Value, pointer: &str, value: Value) -> bool {
    if body.pointer(pointer) == Some(&value) {
        return false;
    }
    let Some((parent, name)) = split_last_step(pointer) else {
        return false;
    };
    match body.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(name, value);
            true
        }
        _ => false,
    }
}

fn remove_member(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, name) = split_last_step(pointer)?;
    body.pointer_mut(parent)?.as_object_mut()?.remove(&name)
}

/// Splits a JSON Pointer into the parent's pointer and the last step, which is unescaped.
fn split_last_step(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}
