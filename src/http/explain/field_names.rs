//! Translates the authority's field names to the caller's, for example `taxtotal` to `tax_total`. A field that the
//! refused document lacks is looked up in the forms.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::http::forms::form_schema::{FieldType, FormSchema};
use crate::http::forms::relayed_payment;
use crate::http::forms::submission;
use crate::http::forms::transmit;
use crate::http::forms::validation;
use crate::http::forms::vat_report;

/// The category field's name in the authority's documents and in requests of callers.
const CATEGORY_NAMES: (&str, &str) = ("invoicekind", "invoice_category");

/// All field names in the forms of `/v1/app`.
static KNOWN_NAMES: LazyLock<FieldNames> = LazyLock::new(FieldNames::from_forms);

#[derive(Debug, Default)]
struct FieldNames {
    /// The names by their comparable form.
    by_comparable_name: HashMap<String, &'static str>,
    top_level: HashSet<&'static str>,
}

impl FieldNames {
    fn from_forms() -> Self {
        let forms = [
            FormSchema::for_form(|reader| validation::read_fields(reader, None)),
            FormSchema::for_form(|reader| submission::read_fields(reader, None)),
            FormSchema::for_form(|reader| vat_report::read(reader, None, false)),
            FormSchema::for_form(relayed_payment::read),
            FormSchema::for_form(|reader| transmit::read(reader, None)),
        ];
        let mut names = Self::default();
        names
            .by_comparable_name
            .insert(CATEGORY_NAMES.0.to_owned(), CATEGORY_NAMES.1);
        for form in &forms {
            let top_level = form.0.iter().map(|property| property.name);
            names.top_level.extend(top_level);
            names.add(form);
        }
        names
    }

    fn add(&mut self, form: &FormSchema) {
        for property in &form.0 {
            self.by_comparable_name
                .insert(comparable_name(property.name), property.name);
            match &property.shape {
                FieldType::Object(inner) | FieldType::Objects { item: inner, .. } => {
                    self.add(inner);
                }
                _ => {}
            }
        }
    }
}

/// Translates a path of the authority to the caller's: `taxtotal[0].taxamount` becomes `tax_total.0.tax_amount`.
/// Returns `None` if the text is not a path or the field is unknown.
pub(crate) fn caller_path(authority_path: &str, document: &Value) -> Option<String> {
    let authority_path = authority_path.to_ascii_lowercase();
    let mut segments = authority_path.split('.').peekable();
    let is_rooted = segments
        .next_if(|first| first.ends_with("request"))
        .is_some();
    segments.next_if(|next| is_rooted && *next == "invoice");
    let mut steps = Vec::new();
    let mut current_value = Some(document);
    for segment in segments {
        let (name, index) = split_index(segment)?;
        current_value = match name.parse::<usize>() {
            Ok(index) if !steps.is_empty() => current_value.and_then(|items| items.get(index)),
            _ => {
                let (key, value) = caller_name(name, current_value)?;
                steps.push(key);
                value
            }
        };
        if name.parse::<usize>().is_ok() {
            steps.push(name.to_owned());
        }
        if let Some(index) = index {
            steps.push(index.to_string());
            current_value = current_value.and_then(|items| items.get(index));
        }
    }
    let is_field = is_rooted
        || steps.len() > 1
        || steps
            .first()
            .is_some_and(|name| is_top_level(name, document));
    (is_field && !steps.is_empty()).then(|| steps.join("."))
}

fn is_top_level(name: &str, document: &Value) -> bool {
    KNOWN_NAMES.top_level.contains(name) || document.get(name).is_some()
}

/// Splits a step of a path, such as `taxtotal[0]`, into the name and the index.
fn split_index(segment: &str) -> Option<(&str, Option<usize>)> {
    let Some((name, rest)) = segment.split_once('[') else {
        return Some((segment, None));
    };
    Some((name, Some(rest.strip_suffix(']')?.parse().ok()?)))
}

/// Returns the caller's name of a field, and the field's value if `current_value` is an object with this field. Returns
/// `None` if neither this object nor any form has the field.
fn caller_name<'d>(
    name: &str,
    current_value: Option<&'d Value>,
) -> Option<(String, Option<&'d Value>)> {
    let name = comparable_name(name);
    let fields = current_value.and_then(Value::as_object);
    if let Some((key, value)) =
        fields.and_then(|fields| fields.iter().find(|(key, _)| comparable_name(key) == name))
    {
        let key = if name == CATEGORY_NAMES.0 {
            CATEGORY_NAMES.1.to_owned()
        } else {
            key.clone()
        };
        return Some((key, Some(value)));
    }
    KNOWN_NAMES
        .by_comparable_name
        .get(&name)
        .map(|known| ((*known).to_owned(), None))
}

fn comparable_name(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// Replaces each of the authority's paths in a sentence by the caller's path of the same field.
pub(crate) fn translate_paths(sentence: &str, document: &Value) -> String {
    let words = sentence.split(' ');
    let words: Vec<_> = words.map(|word| translate_word(word, document)).collect();
    words.join(" ")
}

fn translate_word(word: &str, document: &Value) -> String {
    let trimmed = word.trim_end_matches(['.', ',', ';', ':']);
    let path = trimmed
        .contains('.')
        .then(|| caller_path(trimmed, document))
        .flatten();
    path.map_or_else(
        || word.to_owned(),
        |path| format!("{path}{}", &word[trimmed.len()..]),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_of_the_authority_becomes_the_callers_own() {
        let document = json!({
            "invoice_kind": "B2B", "vat_status": "ZERO_VAT",
            "tax_total": [{ "tax_subtotal": [{ "tax_category": { "id": "VAT" } }] }]
        });
        for (authority_path, expected) in [
            (
                "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id",
                "tax_total.0.tax_subtotal.0.tax_category.id",
            ),
            (
                "taxtotal.0.taxsubtotal.0.taxamount",
                "tax_total.0.tax_subtotal.0.tax_amount",
            ),
            (
                "InvoiceRequest.Invoice.TaxTotal[0].TaxAmount",
                "tax_total.0.tax_amount",
            ),
            ("invoicerequest.invoice.invoicekind", "invoice_category"),
            ("vatpostpaymentrequest.vatstatus", "vat_status"),
            ("updateinvoicerequest.paymentstatus", "payment_status"),
            ("irnrequest.irn", "irn"),
            ("invoicerequest.invoice.issuedate", "issue_date"),
            (
                "invoicerequest.invoice.invoiceline[3].price.priceunit",
                "invoice_line.3.price.price_unit",
            ),
            ("issue_date", "issue_date"),
            ("irn", "irn"),
        ] {
            assert_eq!(
                caller_path(authority_path, &document).as_deref(),
                Some(expected),
                "{authority_path}"
            );
        }
    }

    #[test]
    fn words_about_no_field_are_left_alone() {
        let document = json!({ "irn": "x" });
        for authority_path in [
            "tin",
            "invoicerequest.invoice.duedate[",
            "invoicerequest.invoice.a.b",
            "",
            "e.g",
            "0",
            "[0]",
            ".",
        ] {
            assert_eq!(
                caller_path(authority_path, &document),
                None,
                "{authority_path}"
            );
        }
    }

    #[test]
    fn paths_within_a_sentence_are_the_callers_too() {
        let sentence = "must add up to legalmonetarytotal.lineextensionamount, e.g. 5";
        let expected = "must add up to legal_monetary_total.line_extension_amount, e.g. 5";
        assert_eq!(translate_paths(sentence, &Value::Null), expected);
    }
}
