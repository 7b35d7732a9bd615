//! The authority names a field at fault by a lower-cased path of its own structs. The document it refused
//! tells which of the caller's fields that is.

use serde_json::Value;

use crate::domain::fault::Fault;

/// What its paths begin with, by what was asked.
const ROOTS: [&str; 3] = ["invoicerequest.invoice.", "vatpostpaymentrequest.", "updateinvoicerequest."];

/// The fault of the caller's field that a refusal speaks of, if it speaks of one.
pub(crate) fn fault(words: &str, document: &Value) -> Option<Fault> {
    let words = words.trim();
    let (path, rule) = ROOTS.iter().find_map(|root| words.strip_prefix(root))?.split_once(' ')?;
    let path = callers_path(path, document)?;
    let message = format!("The {path} field {}.", rule.trim_end_matches('.'));
    Some(Fault::new(path, "authority", message))
}

/// `taxtotal[0].taxamount` as `tax_total.0.tax_amount`, by the names that the document has.
fn callers_path(path: &str, document: &Value) -> Option<String> {
    let mut steps = Vec::new();
    let mut here = Some(document);
    for segment in path.split('.') {
        let (name, index) = match segment.split_once('[') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(']')?.parse::<usize>().ok()?)),
            None => (segment, None),
        };
        let (key, value) = here?.as_object()?.iter().find(|(key, _)| key.replace('_', "") == name)?;
        // The one field that has another name with the authority.
        steps.push(if key == "invoice_kind" { "invoice_category".to_owned() } else { key.clone() });
        here = Some(value);
        if let Some(index) = index {
            steps.push(index.to_string());
            here = value.get(index);
        }
    }
    Some(steps.join("."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_of_the_authority_becomes_the_callers_own() {
        let document = json!({
            "invoice_kind": "B2B",
            "tax_total": [{ "tax_subtotal": [{ "tax_category": { "id": "VAT" } }] }]
        });
        let said = |words| fault(words, &document).map(|fault| (fault.path, fault.message));
        let (path, message) =
            said("invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id must be a known code")
                .unwrap();
        assert_eq!(path, "tax_total.0.tax_subtotal.0.tax_category.id");
        assert_eq!(message, "The tax_total.0.tax_subtotal.0.tax_category.id field must be a known code.");
        let kind = said("invoicerequest.invoice.invoicekind must be one of B2B").unwrap();
        assert_eq!(kind.0, "invoice_category");
        let report = json!({ "vat_status": "ZERO_VAT" });
        let fault = fault("vatpostpaymentrequest.vatstatus must be one of STANDARD_VAT", &report).unwrap();
        assert_eq!((fault.path.as_str(), fault.rule), ("vat_status", "authority"));
    }

    #[test]
    fn words_about_no_field_of_the_document_are_left_alone() {
        let document = json!({ "irn": "x" });
        for words in
            ["tin is unknown", "invoicerequest.invoice.dueDate[", "invoicerequest.invoice.a.b is odd", ""]
        {
            assert_eq!(fault(words, &document), None, "{words}");
        }
    }
}
