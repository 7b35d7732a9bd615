//! The words of a printed invoice: the name of a tax, and the texts that a file of an invoice cannot show. The PDF
//! shows a mark in the place of each letter that none of its fonts has, and the caller gets a warning. A text with a
//! character that XML forbids is refused, with its path.

use serde_json::Value;
use trade_document::{Party, Tax, TradeDocument};

use crate::domain::invoice::Draft;
use crate::domain::invoice::trade::find_tax;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// Returns the tax of a category in words, such as "VAT 7.5 %". Without `percent`, the authority's list decides.
pub(crate) fn tax_words(category: &str, percent: Option<Amount>, catalog: &Catalog) -> String {
    let listed = find_tax(category, &[], catalog);
    invoice_pdf::tax_label(&Tax {
        percent: percent.map(Into::into).or(listed.percent),
        ..listed
    })
}

/// Returns the paths of the texts that cannot be printed, with the field names of the authority's document.
pub(crate) fn unprintable_paths(document: &TradeDocument) -> Vec<String> {
    let mut texts = vec![(
        "payment_terms_note".to_owned(),
        text_or_empty(document.payment_terms.as_ref()),
    )];
    let notes = document.notes.iter();
    texts.extend(notes.map(|note| ("note".to_owned(), note.as_str())));
    push_party_texts(&mut texts, "accounting_supplier_party", &document.supplier);
    push_party_texts(&mut texts, "accounting_customer_party", &document.customer);
    for (index, line) in document.lines.iter().enumerate() {
        let item = format!("invoice_line.{index}.item");
        texts.push((format!("{item}.name"), &line.name));
        texts.push((
            format!("{item}.description"),
            text_or_empty(line.description.as_ref()),
        ));
    }
    unprintable_text_paths(texts)
}

fn push_party_texts<'a>(texts: &mut Vec<(String, &'a str)>, name: &str, party: &'a Party) {
    let address = &party.address;
    for (field, value) in [
        ("party_name", party.name.as_str()),
        (
            "business_description",
            text_or_empty(party.description.as_ref()),
        ),
        (
            "postal_address.street_name",
            text_or_empty(address.street.as_ref()),
        ),
        (
            "postal_address.city_name",
            text_or_empty(address.city.as_ref()),
        ),
    ] {
        texts.push((format!("{name}.{field}"), value));
    }
}

/// Returns a warning about the texts of a new invoice that the PDF cannot print. The warning uses the field names of
/// the create request that the invoice came in.
pub(crate) fn unprintable_draft_warning(draft: &Draft) -> Option<String> {
    let is_full = draft.extras.contains_key("legal_monetary_total");
    let form = if is_full { FULL_NAMES } else { STANDARD_NAMES };
    let address = &draft.customer.address;
    let values = [&draft.customer.name, &address.street_name, &address.city];
    let customer_texts = form.customer.into_iter().zip(values);
    let mut texts: Vec<_> = customer_texts
        .map(|(name, value)| (name.to_owned(), value.as_str()))
        .collect();
    for name in ["note", "payment_terms_note"] {
        let text = draft.extras.get(name).and_then(Value::as_str);
        texts.extend(text.map(|text| (name.to_owned(), text)));
    }
    for (index, line) in draft.lines.iter().enumerate() {
        let path = format!("{}.{index}.{}", form.lines, form.item);
        texts.push((path, &line.item_name));
        // Only a full invoice has descriptions.
        let description = line.extras.get("description").and_then(Value::as_str);
        let path = format!("{}.{index}.item.description", form.lines);
        texts.extend(description.map(|text| (path, text)));
    }
    unprintable_warning(&unprintable_text_paths(texts))
}

/// The names of the texts in a create request.
struct TextNames {
    /// The customer's name, street and city.
    customer: [&'static str; 3],
    lines: &'static str,
    item: &'static str,
}

const STANDARD_NAMES: TextNames = TextNames {
    customer: [
        "customer.name",
        "customer.address_street_name",
        "customer.address_city",
    ],
    lines: "invoice_lines",
    item: "item_name",
};

const FULL_NAMES: TextNames = TextNames {
    customer: [
        "accounting_customer_party.party_name",
        "accounting_customer_party.postal_address.street_name",
        "accounting_customer_party.postal_address.city_name",
    ],
    lines: "invoice_line",
    item: "item.name",
};

/// Returns a warning that the PDF cannot print the texts at these paths; `None` if there are no paths.
pub(crate) fn unprintable_warning(paths: &[String]) -> Option<String> {
    let first = paths.first()?;
    let others = match paths.len() {
        1 => String::new(),
        count => format!(" and of {} more texts", count - 1),
    };
    Some(format!(
        "the PDF cannot print all letters of {first}{others}: it has fonts for Latin, Greek, Cyrillic, Arabic and Hebrew"
    ))
}

/// Returns a warning if the QR code with this text is left out of the PDF; `None` if it is printed.
pub(crate) fn unprintable_qr_warning(text: &str) -> Option<String> {
    let message =
        "the QR code has too many squares to be scanned from paper, so the PDF does not have it";
    (!invoice_pdf::can_print_qr(text)).then(|| message.to_owned())
}

/// Returns the dot path of the first text in a document that has this character.
pub(crate) fn find_text_with_character(letter: char, value: &Value) -> Option<String> {
    let below = |name: String, value: &Value| {
        let rest = find_text_with_character(letter, value)?;
        Some(if rest.is_empty() {
            name
        } else {
            format!("{name}.{rest}")
        })
    };
    match value {
        Value::String(text) => text.contains(letter).then(String::new),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| below(at.to_string(), item))
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.find_map(|(name, value)| below(name.clone(), value))
        }
        _ => None,
    }
}

fn unprintable_text_paths(texts: Vec<(String, &str)>) -> Vec<String> {
    let texts = texts.into_iter();
    let unprintable = texts.filter(|(_, text)| !invoice_pdf::can_print(text));
    unprintable.map(|(path, _)| path).collect()
}

fn text_or_empty(text: Option<&String>) -> &str {
    text.map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_character_is_found_where_it_stands() {
        let document = json!({
            "note": "x", "invoice_line": [{ "item": { "name": "a" } }, { "item": { "name": "b\u{ffff}" } }],
            "irn": 7,
        });
        let path = find_text_with_character('\u{ffff}', &document);
        assert_eq!(path.as_deref(), Some("invoice_line.1.item.name"));
        assert_eq!(find_text_with_character('\u{fffe}', &document), None);
    }

    #[test]
    fn texts_without_a_font_are_counted() {
        let texts = [
            "Adé Ọbí & Sons, 7.5 %",
            "Ελλάς Москва شركة שלום",
            "日本",
            "한국",
            "ไทย",
            "हिन्दी",
            "ok 🙂",
        ];
        let numbered_texts = texts.iter().zip(0..);
        let named_texts: Vec<_> = numbered_texts
            .map(|(text, index)| (format!("t{index}"), *text))
            .collect();
        let found = unprintable_text_paths(named_texts);
        assert_eq!(found, ["t2", "t3", "t4", "t5", "t6"]);
        let warning = unprintable_warning(&found).unwrap();
        assert!(
            warning.contains("letters of t2 and of 4 more texts"),
            "{warning}"
        );
        assert_eq!(unprintable_warning(&[]), None);
    }

    #[test]
    fn a_warning_names_a_qr_code_that_is_left_out() {
        for (length, has_warning) in [(344, false), (1_368, true)] {
            assert_eq!(
                unprintable_qr_warning(&"x".repeat(length)).is_some(),
                has_warning,
                "{length}"
            );
        }
    }
}
