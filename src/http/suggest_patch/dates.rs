//! Corrects dates that are not written as YYYY-MM-DD.

use jiff::tz::Offset;
use serde_json::{Value, json};

use crate::domain::kernel::fault::json_pointer;
use crate::domain::reference::lenient_date;
use crate::http::suggest_patch::patch_op::PatchOperation;
use crate::http::suggest_patch::violation::Violation;

/// Returns the operation that writes the date as YYYY-MM-DD. Returns `None` if the text can mean more than one date.
pub(super) fn find_fix(
    body: &Value,
    violation: &Violation,
    zone: Offset,
) -> Option<PatchOperation> {
    if violation.rule != "date" {
        return None;
    }
    let pointer = json_pointer(&violation.path);
    let text = body.pointer(&pointer)?.as_str()?;
    let date = lenient_date::parse_day(text, zone)?.to_string();
    let why = format!("can be read as {date} only");
    Some(PatchOperation::set(pointer, json!(date), why))
}
