//! Lists the fields of a stored invoice that the values of a form would change.

use crate::console::accounts::invoice_fields::{FormLines, field_groups};
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;

/// A field with another value than the stored one.
pub(super) struct FieldChange {
    pub(super) label: String,
    pub(super) old: String,
    pub(super) new: String,
}

/// Returns the fields whose values in the form differ from the stored invoice, also those of added lines, and the lines
/// that the form removes.
pub(super) fn list_changes(
    invoice: &Invoice,
    current: &FormValues,
    values: &FormValues,
) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for group in field_groups(FormLines::from_form(invoice.lines.len(), values)) {
        if !group.removal_field.is_empty() && !values.text(&group.removal_field).is_empty() {
            let removed = (!group.is_added).then(|| FieldChange {
                label: group.title,
                old: "on the invoice".to_owned(),
                new: "removed".to_owned(),
            });
            changes.extend(removed);
            continue;
        }
        for field in group.fields {
            let old = current.text(&field.name);
            let new = values.text(&field.name);
            if old != new {
                changes.push(FieldChange {
                    label: field.label,
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
        }
    }
    changes
}
