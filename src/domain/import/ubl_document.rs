//! UBL as the body of a create request. Every difference between the file and the body is told in a warning.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::{Map, Number, Value};
use trade_document::{Party, ReferenceKind, Totals, TradeDocument};
use ubl::{Beside, Cause, Change, Limits, ReadDocument, SplitCharges};

use crate::domain::import::profile::{set_at, text_at};
use crate::domain::import::source::{ImportForm, Places, SourceDocument, SourceFile, StatedSums};
use crate::domain::import::{ubl_full, ubl_standard};
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::ubl_parts::UblParts;
use crate::domain::kernel::codes::CREDIT_NOTE_CODE;
use crate::domain::kernel::fault::Fault;
use crate::domain::money::Amount;

/// The maximum number of elements and attributes of a file.
const ELEMENTS_MAX: usize = 200_000;
/// The maximum number of parts without a field that a warning names.
const BESIDE_SHOWN_MAX: usize = 10;

/// Reads an invoice or credit note. `units` maps units of the file to others.
pub fn read(bytes: &[u8], form: ImportForm, units: &BTreeMap<String, String>) -> SourceFile {
    let limits = Limits {
        bytes_max: bytes.len(),
        elements_max: ELEMENTS_MAX,
        ..Limits::default()
    };
    let document = match ubl::read_with_units(bytes, &limits, units) {
        Ok(read) => document(read, form),
        Err(faults) => SourceDocument {
            faults: to_faults(faults),
            places: xml_places("Invoice", 0),
            ..SourceDocument::default()
        },
    };
    SourceFile {
        documents: vec![document],
        ..SourceFile::default()
    }
}

fn document(read: ReadDocument, form: ImportForm) -> SourceDocument {
    let ReadDocument {
        document,
        beside,
        mut changes,
    } = read;
    let has_cause = |wanted: Cause| changes.iter().any(|change| change.cause == wanted);
    let is_credit_note = document.document_type.code == CREDIT_NOTE_CODE;
    let root = if is_credit_note && !has_cause(Cause::NegativeDocument) {
        "CreditNote"
    } else {
        "Invoice"
    };
    // A negative line is a discount now, so that the lines behind it have other numbers than in the file.
    let lines = if has_cause(Cause::NegativeLine) {
        0
    } else {
        document.lines.len()
    };
    let places = xml_places(root, lines);
    let SplitCharges {
        document,
        after_tax,
    } = match form {
        ImportForm::Standard => SplitCharges {
            document,
            after_tax: Vec::new(),
        },
        ImportForm::Full => ubl::split_untaxed(document),
    };
    let allocated = match ubl::allocate(&document) {
        Ok(allocated) => allocated,
        Err(faults) => {
            return SourceDocument {
                faults: to_faults(faults),
                places,
                ..SourceDocument::default()
            };
        }
    };
    changes.extend(allocated.changes);
    let mut warnings = Vec::new();
    let mut imported = allocated.document;
    let body = match form {
        ImportForm::Standard => {
            let folded = ubl::fold_fees(&imported);
            changes.extend(folded.changes);
            imported = folded.document;
            ubl_standard::body(&imported, &mut warnings)
        }
        ImportForm::Full => ubl_full::body(&imported, &after_tax, &mut warnings),
    };
    // The parts of a charge, such as its base, belong to no charge once it was divided.
    let has_same_charges = imported.lines == document.lines && imported.charges == document.charges;
    let (fitting, mut lost): (Vec<_>, Vec<_>) = beside
        .into_iter()
        .partition(|part| has_same_charges || !is_about_charge(part));
    warnings.extend(beside_warning(&fitting, |names| {
        format!("No field takes {names}: kept for the UBL of the invoice.")
    }));
    let parts = ubl::empty_fields(&imported, &empty_fields(form, &imported), &fitting);
    let (ubl_parts, too_large) = UblParts::split_by_room(&imported, parts);
    lost.extend(too_large);
    warnings.extend(beside_warning(&lost, |names| {
        format!("The UBL of the invoice lacks {names}.")
    }));
    let told = changes.iter().map(Change::to_string);
    SourceDocument {
        body: Some(body),
        warnings: told.chain(warnings).collect(),
        places,
        stated: stated_sums(&document.totals),
        ubl_parts: Some(ubl_parts),
        ..SourceDocument::default()
    }
}

fn stated_sums(totals: &Totals) -> Option<StatedSums> {
    Some(StatedSums {
        without_tax: to_amount(totals.tax_exclusive)?,
        with_tax: to_amount(totals.tax_inclusive)?,
    })
}

fn to_amount(sum: Decimal) -> Option<Amount> {
    Amount::parse(&sum.to_string()).ok()
}

fn xml_places(root: &str, lines: usize) -> Places {
    let name = if root == "CreditNote" {
        "cac:CreditNoteLine"
    } else {
        "cac:InvoiceLine"
    };
    Places::Xml {
        root: root.to_owned(),
        lines: (1..=lines)
            .map(|number| format!("/{root}/{name}[{number}]"))
            .collect(),
    }
}

fn to_faults(faults: Vec<ubl::Fault>) -> Vec<Fault> {
    let faults = faults.into_iter().map(|fault| {
        let ubl::Fault {
            cause,
            path,
            sentence,
        } = fault;
        Fault::new(path, cause.as_str(), sentence)
    });
    faults.collect()
}

/// Returns the document without the fields that the form has no place for.
fn empty_fields(form: ImportForm, document: &TradeDocument) -> TradeDocument {
    match form {
        ImportForm::Standard => ubl_standard::empty_fields(document),
        ImportForm::Full => ubl_full::empty_fields(document),
    }
}

fn is_about_charge(part: &Beside) -> bool {
    part.path.contains("/cac:AllowanceCharge") && !part.path.contains("/cac:Price/")
}

/// Returns a warning that names the parts, unless there are none.
fn beside_warning(beside: &[Beside], text: impl Fn(&str) -> String) -> Option<String> {
    let names = beside.iter().take(BESIDE_SHOWN_MAX).map(|part| {
        let tag = part.value.strip_prefix('<');
        let name = tag.and_then(|tag| tag.split(['>', ' ', '/']).next());
        match name {
            Some(name) => format!("{}/{name}", part.path),
            None => part.path.clone(),
        }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match beside.len().saturating_sub(BESIDE_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!beside.is_empty()).then(|| text(&format!("{names}{more}")))
}

/// Fills what UBL has no element for and the profile has not answered either.
pub fn complete(document: &mut SourceDocument, form: ImportForm, service_id: &str) {
    let (Places::Xml { .. }, Some(body)) = (&document.places, &mut document.body) else {
        return;
    };
    let warnings = &mut document.warnings;
    let party = match form {
        ImportForm::Standard => ("customer", "no", "tin", "name"),
        ImportForm::Full => (
            "accounting_customer_party",
            "customer_no",
            "tin",
            "party_name",
        ),
    };
    let (party, no, tin, name) = party;
    let has_tin = text_at(body, &[party, tin]).is_some();
    if text_at(body, &["invoice_category"]).is_none() {
        let (category, why) = if has_tin {
            ("B2B", "has a TIN")
        } else {
            ("B2C", "has no TIN")
        };
        set_at(body, &["invoice_category"], category.to_owned());
        warnings.push(format!(
            "invoice_category became {category}, because the customer {why}."
        ));
    }
    if text_at(body, &[party, no]).is_none() {
        for source in [tin, name] {
            if let Some(text) = text_at(body, &[party, source]).map(str::to_owned) {
                set_at(body, &[party, no], text);
                warnings.push(format!(
                    "{party}.{no} is the {source} of the customer, because the file has no number of it."
                ));
                break;
            }
        }
    }
    match form {
        ImportForm::Standard => {
            let date = text_at(body, &["invoice_date"]).map(str::to_owned);
            if let (None, Some(date)) = (text_at(body, &["due_date"]), date) {
                set_at(body, &["due_date"], date);
                warnings
                    .push("due_date is the invoice_date, because the file has none.".to_owned());
            }
        }
        ImportForm::Full => set_irn(body, warnings, service_id),
    }
}

/// Sets the IRN that this account gives to the invoice, unless the file has one of this account.
fn set_irn(body: &mut Map<String, Value>, warnings: &mut Vec<String>, service_id: &str) {
    let stated = text_at(body, &["irn"]).and_then(|text| Irn::parse(text).ok());
    if stated.is_some_and(|irn| irn.has_service_id(service_id)) {
        return;
    }
    let number = text_at(body, &["invoice_no"]);
    let date = text_at(body, &["issue_date"]).and_then(|text| text.parse().ok());
    let irn = number
        .zip(date)
        .and_then(|(number, date)| Irn::for_invoice(number, service_id, date).ok());
    if let Some(irn) = irn {
        warnings.push(format!("irn became {irn}, from the number and the date."));
        set_at(body, &["irn"], irn.to_string());
    }
}

/// Returns a number of JSON with the digits of the decimal.
pub(super) fn number(value: Decimal) -> Value {
    let number = value.normalize().to_string().parse::<Number>();
    number.map_or(Value::Null, Value::Number)
}

/// Adds the members that have a value.
pub(super) fn add<const N: usize>(
    object: &mut Map<String, Value>,
    members: [(&str, Option<Value>); N],
) {
    for (name, value) in members {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    }
}

/// Returns the text unless it is missing or empty.
pub(super) fn optional_value(text: Option<&str>) -> Option<Value> {
    text.and_then(value_if_filled)
}

/// Returns the text unless it is empty.
pub(super) fn value_if_filled(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| Value::from(text))
}

pub(super) fn party_name(party: &Party) -> Option<Value> {
    value_if_filled(&party.name)
}

/// Returns the id and the kind of the invoice that a document corrects.
pub(super) fn corrected_id(document: &TradeDocument) -> Option<&str> {
    let mut references = document.references.iter();
    let found = references.find(|reference| reference.kind == ReferenceKind::Preceding);
    found.map(|reference| reference.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: [(&str, &str); 4] = [
        (
            "peppol",
            include_str!(
                "../../../crates/ubl/tests/examples/mcp-einvoicing-be-invoice_valid_peppol.xml"
            ),
        ),
        (
            "allowance",
            include_str!(
                "../../../crates/ubl/tests/examples/erechnung-core-de-allowance-charge.xml"
            ),
        ),
        (
            "credit",
            include_str!(
                "../../../crates/ubl/tests/examples/zatca-tools-sdk-credit_note_simplified.xml"
            ),
        ),
        (
            "full",
            include_str!("../../../crates/ubl/tests/examples/erechnung-core-de-full-featured.xml"),
        ),
    ];

    fn read_text(text: &str, form: ImportForm) -> SourceDocument {
        let file = read(text.as_bytes(), form, &BTreeMap::new());
        let mut document = file.documents.into_iter().next().unwrap();
        complete(&mut document, form, "94AD90FB");
        document
    }

    /// Returns the sum of the lines of a standard body, after discounts.
    fn lines_sum(body: &Map<String, Value>) -> Decimal {
        let decimal = |line: &Value, name: &str| {
            let text = line.get(name).map_or("0".to_owned(), ToString::to_string);
            text.parse::<Decimal>().unwrap()
        };
        body["invoice_lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| {
                decimal(line, "unit_price") * decimal(line, "quantity")
                    - decimal(line, "discount_amount")
            })
            .sum()
    }

    #[test]
    fn the_lines_of_a_body_come_to_the_sum_of_the_file() {
        for (name, text) in EXAMPLES {
            let exclusive = ubl::read(text.as_bytes(), &Limits::default())
                .unwrap()
                .document
                .totals
                .tax_exclusive;
            let document = read_text(text, ImportForm::Standard);
            assert_eq!(document.faults, [], "{name}");
            let body = document.body.unwrap();
            assert_eq!(lines_sum(&body), exclusive, "{name}");
            let missing: Vec<_> = [
                "invoice_no",
                "invoice_category",
                "due_date",
                "currency",
                "customer",
            ]
            .iter()
            .filter(|field| !body.contains_key(**field))
            .collect();
            assert_eq!(missing, [&""; 0], "{name}");
            let full = read_text(text, ImportForm::Full).body.unwrap();
            let sum: Decimal = full["invoice_line"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| {
                    line["line_extension_amount"]
                        .to_string()
                        .parse::<Decimal>()
                        .unwrap()
                })
                .sum();
            assert_eq!(sum, exclusive, "{name}");
            assert!(
                full["irn"].as_str().unwrap().contains("-94AD90FB-"),
                "{name}"
            );
        }
    }

    #[test]
    fn hostile_xml_is_refused_with_a_place() {
        let laughs = r#"<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY l2 "&lol;&lol;">]><Invoice>&l2;</Invoice>"#;
        let outside =
            r#"<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><Invoice>&e;</Invoice>"#;
        let deep = "<a>".repeat(10_000);
        for (text, rule) in [
            (laughs, "xml"),
            (outside, "xml"),
            (&deep, "limit"),
            ("<order/>", "format"),
            ("", "xml"),
        ] {
            let document = read_text(text, ImportForm::Standard);
            assert!(document.body.is_none());
            assert_eq!(document.faults[0].rule(), rule, "{text:.20}");
            assert!(
                document.faults[0].path.starts_with('/'),
                "{:?}",
                document.faults
            );
        }
    }

    #[test]
    fn a_unit_of_the_profile_wins() {
        let text = EXAMPLES[0].1;
        let unit = text
            .split("unitCode=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let units = BTreeMap::from([(unit.to_owned(), "KGM".to_owned())]);
        let file = read(text.as_bytes(), ImportForm::Standard, &units);
        let body = file.documents[0].body.as_ref().unwrap();
        assert_eq!(body["invoice_lines"][0]["price_unit"], "KGM");
    }
}
