//! Lists the fields of a stored invoice that the values of a form would change.

use crate::console::accounts::invoice_fields::{LINES_MAX, field_groups, line_fields};
use crate::console::form_values::FormValues;
use crate::domain::invoice::Invoice;

/// A field with another value than the stored one.
pub(super) struct FieldChange {
    pub(super) label: String,
    pub(super) old: String,
    pub(super) new: String,
}

/// Returns the fields whose values in the form differ from the stored invoice, and the lines that the form removes.
pub(super) fn list_changes(
    invoice: &Invoice,
    present: &FormValues,
    values: &FormValues,
) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for group in field_groups(invoice) {
        if !group.removal.is_empty() && !values.text(&group.removal).is_empty() {
            changes.push(FieldChange {
                label: group.title,
                old: "on the invoice".to_owned(),
                new: "removed".to_owned(),
            });
            continue;
        }
        for field in group.fields {
            let old = present.text(&field.name);
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

/// Returns the values in a form for lines that the invoice no longer has.
pub(super) fn list_lost_lines(invoice: &Invoice, values: &FormValues) -> Vec<FieldChange> {
    let fields = (invoice.lines.len()..LINES_MAX).flat_map(line_fields);
    let filled = fields.filter(|field| !values.text(&field.name).is_empty());
    filled
        .map(|field| FieldChange {
            new: values.text(&field.name).to_owned(),
            label: field.label,
            old: "no such line any more".to_owned(),
        })
        .collect()
}
