//! Option lists (spec.md, "Option lists"). A client shows the label of an option and sends the value.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SelectOption {
    label: String,
    value: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvoiceCategoryList)]
pub(crate) struct InvoiceCategories {
    pub(crate) invoice_categories: Vec<SelectOption>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Enums {
    pub(crate) erp_systems: Vec<SelectOption>,
    pub(crate) auth_types: Vec<SelectOption>,
    pub(crate) data_formats: Vec<SelectOption>,
}

impl SelectOption {
    pub(crate) fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
        }
    }
}

/// Returns the label of an option, for the API and the dashboard: usually its value in upper case with spaces for
/// underscores.
pub(crate) fn option_label(value: &str) -> String {
    match value {
        "custom" => "BESPOKE".to_owned(),
        "jsonrpc" => "JSON RPC".to_owned(),
        other => other.to_uppercase().replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_written_for_people() {
        for (value, label) in [
            ("custom", "BESPOKE"),
            ("jsonrpc", "JSON RPC"),
            ("dynamics_fo", "DYNAMICS FO"),
            ("sap", "SAP"),
        ] {
            assert_eq!(option_label(value), label);
        }
    }
}
