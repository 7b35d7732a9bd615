//! Converts UBL to the body of a create request. Each difference between the file and the body leads to a warning.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use trade_document::{Tax, Totals, TradeDocument};
use ubl::{Cause, Change, Limits, ReadDocument, SplitCharges};

use crate::domain::import::body_members::to_amount;
use crate::domain::import::profile::{set_at, text_at};
use crate::domain::import::source::{
    CUSTOMER_ELEMENT, ImportForm, Places, SUPPLIER_ELEMENT, SourceDocument, SourceFile,
};
use crate::domain::import::stated_sums::StatedSums;
use crate::domain::import::ubl_beside::{self, DocumentStages};
use crate::domain::import::ubl_parties::{ImportAccount, UblParties};
use crate::domain::import::{ubl_full, ubl_standard};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::is_self_billed;
use crate::domain::kernel::fault::Fault;
use crate::domain::reference::catalog::Catalog;

/// The maximum number of elements and attributes of a file.
const ELEMENTS_MAX: usize = 200_000;

/// The stable id of the rule that a document breaks if another party issued it to the account.
const PURCHASE_RULE: &str = "purchase";
/// The prefix of the authority's standard tax categories. The kind of the tax, such as `VAT`, follows it.
const STANDARD_TAX: &str = "STANDARD_";

/// Reads an invoice or a credit note. `units` maps units of the file to ours; the catalog provides the tax rates.
pub fn read(
    bytes: &[u8],
    form: ImportForm,
    units: &BTreeMap<String, String>,
    catalog: &Catalog,
) -> SourceFile {
    let limits = Limits {
        bytes_max: bytes.len(),
        elements_max: ELEMENTS_MAX,
        ..Limits::default()
    };
    let document = match ubl::read_with_units(bytes, &limits, units) {
        Ok(read) => source_document(read, form, catalog),
        Err(faults) => SourceDocument {
            faults: to_faults(faults),
            places: xml_places("Invoice", CUSTOMER_ELEMENT, 0),
            ..SourceDocument::default()
        },
    };
    SourceFile {
        documents: vec![document],
        ..SourceFile::default()
    }
}

fn source_document(read: ReadDocument, form: ImportForm, catalog: &Catalog) -> SourceDocument {
    let ReadDocument {
        mut document,
        root,
        beside,
        mut changes,
    } = read;
    choose_listed_taxes(&mut document, catalog);
    let places = document_places(&root, &document, &changes);
    let SplitCharges {
        document,
        after_tax,
    } = match form {
        ImportForm::Standard => SplitCharges {
            document,
            after_tax: Vec::new(),
        },
        ImportForm::Full => ubl::split_untaxed_charges(document),
    };
    let allocated = match ubl::allocate_charges(&document) {
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
            let folded = ubl::fold_fees_into_prices(&imported);
            changes.extend(folded.changes);
            imported = folded.document;
            ubl_standard::standard_invoice_body(&imported, &mut warnings)
        }
        ImportForm::Full => {
            ubl_full::full_invoice_body(&imported, &after_tax, catalog, &mut warnings)
        }
    };
    let stages = DocumentStages {
        read: &document,
        imported: &imported,
        emptied: &without_unsent_data(form, &imported),
        has_charges_after_tax: !after_tax.is_empty(),
    };
    let kept = ubl_beside::keep_fitting_parts(beside, &stages);
    warnings.extend(kept.warnings);
    // The warnings about money come first, because only the first ones are kept.
    let (money, other): (Vec<_>, Vec<_>) = changes
        .iter()
        .partition(|change| change.cause.is_about_money());
    let told = money.into_iter().map(Change::to_string);
    let told = told
        .chain(payment_warnings(form, &document.totals))
        .chain(other.into_iter().map(Change::to_string));
    SourceDocument {
        body: Some(body),
        warnings: told.chain(warnings).collect(),
        places,
        stated: stated_sums(&document, catalog),
        parties: Some(UblParties::new(&document)),
        ubl_parts: Some(kept.parts),
        ..SourceDocument::default()
    }
}

fn document_places(root: &str, document: &TradeDocument, changes: &[Change]) -> Places {
    // A negative line becomes a discount, so the following lines have other numbers than in the file.
    let has_negative_line = changes
        .iter()
        .any(|change| change.cause == Cause::NegativeLine);
    let lines = if has_negative_line {
        0
    } else {
        document.lines.len()
    };
    let customer = if is_self_billed(&document.document_type.code) {
        SUPPLIER_ELEMENT
    } else {
        CUSTOMER_ELEMENT
    };
    xml_places(root, customer, lines)
}

/// Replaces a standard tax category whose percent differs from the one in the file by the category of the same kind
/// that has this percent, if there is exactly one. For example, 5 percent of VAT become the reduced rate.
fn choose_listed_taxes(document: &mut TradeDocument, catalog: &Catalog) {
    let charges = document.charges.iter_mut();
    let of_charges = charges.filter_map(|charge| charge.tax.as_mut());
    let of_lines = document.lines.iter_mut().flat_map(|line| {
        let charges = line.charges.iter_mut();
        let of_charges = charges.filter_map(|charge| charge.tax.as_mut());
        of_charges.chain([&mut line.tax])
    });
    let of_sums = document.taxes.iter_mut().map(|sum| &mut sum.tax);
    for tax in of_charges.chain(of_lines).chain(of_sums) {
        if let Some(code) = listed_category(tax, catalog) {
            tax.category.code = code;
        }
    }
}

fn listed_category(tax: &Tax, catalog: &Catalog) -> Option<String> {
    let own = tax.category.code.as_str();
    let kind = own.strip_prefix(STANDARD_TAX)?;
    let percent = to_amount(tax.percent?)?;
    if catalog.tax_percent(own) == percent {
        return None;
    }
    let listed = catalog.tax_percents_by_category().into_iter();
    let mut fitting = listed.filter(|(code, listed)| {
        let is_same_kind = code.rsplit_once('_').is_some_and(|(_, end)| end == kind);
        is_same_kind && *listed == percent
    });
    let (code, _) = fitting.next()?;
    fitting.next().is_none().then(|| code.to_owned())
}

/// Returns a warning for the prepaid amount and one for the rounding, because the body has no field for them. There is
/// no warning for an amount of zero.
fn payment_warnings(form: ImportForm, totals: &Totals) -> Vec<String> {
    let end = match form {
        ImportForm::Standard => "left out",
        ImportForm::Full => "left out; payable_amount has it",
    };
    let parts = [
        ("What was paid before", totals.prepaid),
        ("The rounding of the amount to pay", totals.rounding),
    ];
    let parts = parts.into_iter().filter(|(_, amount)| !amount.is_zero());
    let warnings = parts.map(|(name, amount)| format!("{name}, {amount}, has no field: {end}."));
    warnings.collect()
}

fn stated_sums(document: &TradeDocument, catalog: &Catalog) -> Option<StatedSums> {
    let lines = document.lines.iter();
    let of_lines = lines.filter(|line| !line.amount.is_zero());
    let of_sums = document.taxes.iter().filter(|sum| !sum.base.is_zero());
    let mut taxes = of_lines
        .map(|line| &line.tax)
        .chain(of_sums.map(|sum| &sum.tax));
    Some(StatedSums {
        without_tax: to_amount(document.totals.tax_exclusive)?,
        with_tax: to_amount(document.totals.tax_inclusive)?,
        has_other_rates: taxes.any(|tax| {
            let listed = catalog.tax_percent(&tax.category.code);
            tax.percent
                .is_some_and(|percent| percent != Decimal::from(listed))
        }),
    })
}

fn xml_places(root: &str, customer: &'static str, lines: usize) -> Places {
    let name = if root == "CreditNote" {
        "cac:CreditNoteLine"
    } else {
        "cac:InvoiceLine"
    };
    Places::Xml {
        root: root.to_owned(),
        customer,
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

/// Returns the document without the data for which the create request has no field.
fn without_unsent_data(form: ImportForm, document: &TradeDocument) -> TradeDocument {
    match form {
        ImportForm::Standard => ubl_standard::without_unsent_data(document),
        ImportForm::Full => ubl_full::without_unsent_data(document),
    }
}

/// Compares the parties of the file with the account. Then fills in values that UBL has no element for and that the
/// profile did not give.
pub fn fill_from_account(document: &mut SourceDocument, form: ImportForm, account: &ImportAccount) {
    let (Places::Xml { .. }, Some(body)) = (&document.places, &mut document.body) else {
        return;
    };
    let compared = document
        .parties
        .as_ref()
        .map(|parties| parties.compare(account));
    match compared {
        Some(Ok(warning)) => drop(document.warnings.splice(0..0, warning)),
        Some(Err(message)) => {
            let path = document.places.field_place(match form {
                ImportForm::Standard => "customer",
                ImportForm::Full => "accounting_customer_party",
            });
            document
                .faults
                .push(Fault::new(path, PURCHASE_RULE, message));
        }
        None => {}
    }
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
        ImportForm::Full => set_irn(body, warnings, &account.service_id),
    }
}

/// Sets the IRN that this account gives to the invoice, unless the file states an IRN of this account.
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

#[cfg(test)]
mod tests {
    use trade_document::CodeAndName;

    use trade_document::Party;

    use super::*;
    use crate::domain::import::ubl_parties;
    use crate::domain::reference::catalog::ReferenceList;

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

    fn account() -> ImportAccount {
        ImportAccount {
            service_id: "94AD90FB".to_owned(),
            tin: "12345678-0001".to_owned(),
            name: "Dangoyaro Mills".to_owned(),
        }
    }

    fn read_text(text: &str, form: ImportForm) -> SourceDocument {
        let file = read(text.as_bytes(), form, &BTreeMap::new(), &Catalog::default());
        let mut document = file.documents.into_iter().next().unwrap();
        fill_from_account(&mut document, form, &account());
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

    /// Returns the first example as a document of this type, in the XML of our own export.
    fn own_document(code: &str) -> TradeDocument {
        let example = EXAMPLES[0].1.as_bytes();
        let mut document = ubl::read(example, &Limits::default()).unwrap().document;
        document.document_type = CodeAndName {
            code: code.to_owned(),
            name: String::new(),
        };
        document
    }

    #[test]
    fn the_customer_is_the_other_party_also_of_what_the_buyer_issued() {
        let own = |party: &mut Party| {
            party.name = "Dangoyaro Mills".to_owned();
            party.tin = Some("12345678-0001".to_owned());
        };
        for (code, is_self_billed) in [
            ("381", false),
            ("380", false),
            ("394", true),
            ("385", true),
            ("393", true),
        ] {
            let mut document = own_document(code);
            let (issuer, other) = if is_self_billed {
                (&mut document.customer, &document.supplier)
            } else {
                (&mut document.supplier, &document.customer)
            };
            own(issuer);
            let other = other.name.clone();
            let xml = ubl::write(&document).unwrap();
            for (form, party, name) in [
                (ImportForm::Standard, "customer", "name"),
                (ImportForm::Full, "accounting_customer_party", "party_name"),
            ] {
                let imported = read_text(&xml, form);
                assert_eq!(imported.faults, [], "{code} {form}");
                let body = imported.body.unwrap();
                assert_eq!(body[party][name], other.as_str(), "{code} {form}");
                assert_eq!(body["invoice_type_code"], code, "{form}");
                let told = imported.warnings.iter();
                let is_stranger = told.clone().any(|one| one.contains("not this account"));
                assert!(!is_stranger, "{code} {form}: {:?}", imported.warnings);
            }
            // Another account is told whose file it is, and the other party's own account is refused.
            let document = UblParties::new(&document);
            let stranger = ImportAccount {
                name: "Bello Foods".to_owned(),
                tin: "5".to_owned(),
                ..account()
            };
            let warning = document.compare(&stranger).unwrap().unwrap();
            assert!(
                warning.contains("Dangoyaro Mills (TIN 12345678-0001)"),
                "{warning}"
            );
        }
        let mut purchase = own_document("381");
        own(&mut purchase.customer);
        let refused = read_text(&ubl::write(&purchase).unwrap(), ImportForm::Standard);
        assert_eq!(refused.faults[0].rule(), PURCHASE_RULE);
        assert_eq!(
            refused.faults[0].path,
            "/Invoice/cac:AccountingCustomerParty/cac:Party"
        );
    }

    #[test]
    fn a_field_that_the_form_lacks_is_told_and_what_can_be_kept_is() {
        for code in ["381", "394"] {
            let mut document = own_document(code);
            document.issue_date = jiff::civil::date(2018, 4, 12);
            document.issue_time = Some(jiff::civil::time(10, 15, 30, 0));
            document.tax_point_date = Some(jiff::civil::date(2018, 4, 13));
            document.accounting_cost = Some("4500".to_owned());
            document.lines[0].description = Some("As ordered".to_owned());
            let customer = ubl_parties::counterparty_mut(&mut document);
            customer.registration = Some("HRB 7".to_owned());
            customer.telephone = Some("+491234567".to_owned());
            customer.address.state = Some("Bayern".to_owned());
            let xml = ubl::write(&document).unwrap();
            let standard = [
                "the time of issue",
                "the tax point date, 2018-04-13: it became the invoice date, 2018-04-12",
                "the customer's registration",
                "the customer's telephone",
                "the descriptions of lines",
                "the accounting cost",
            ];
            let full = [
                "the customer's registration",
                "the customer's state",
                "the accounting cost",
            ];
            for (form, told, kept) in [
                (
                    ImportForm::Standard,
                    &standard[..],
                    &["10:15:30", "HRB 7", "+491234567", "As ordered"][..],
                ),
                (ImportForm::Full, &full[..], &["HRB 7", "Bayern"][..]),
            ] {
                let imported = read_text(&xml, form);
                let warnings = imported.warnings.join(" ");
                for name in told {
                    assert!(warnings.contains(name), "{code} {form} {name}: {warnings}");
                }
                let parts = format!("{:?}", imported.ubl_parts);
                for text in kept {
                    assert!(parts.contains(text), "{code} {form} {text}: {parts}");
                }
                assert!(!parts.contains("2018-04-13"), "{code} {form}: {parts}");
            }
        }
    }

    #[test]
    fn what_was_paid_and_the_rounding_are_told_before_all_that_is_no_money() {
        let mut document = own_document("381");
        document.totals.prepaid = Decimal::TEN;
        document.totals.rounding = Decimal::new(1, 2);
        document.totals.payable += document.totals.rounding - document.totals.prepaid;
        document.notes.push("A note".to_owned());
        for unit in ["XBX", "PCE"] {
            document.lines[0].unit.code = unit.to_owned();
            let xml = ubl::write(&document).unwrap();
            for (form, end) in [
                (ImportForm::Standard, "left out."),
                (ImportForm::Full, "left out; payable_amount has it."),
            ] {
                let warnings = read_text(&xml, form).warnings;
                let place = |part: &str| warnings.iter().position(|one| one.contains(part));
                let paid = place("What was paid before, 10.00, has no field").unwrap();
                let rounding = place("The rounding of the amount to pay, 0.01,").unwrap();
                assert!(warnings[paid].ends_with(end), "{warnings:?}");
                assert!(
                    paid < rounding && rounding < place("The unit").unwrap(),
                    "{warnings:?}"
                );
            }
        }
    }

    #[test]
    fn a_standard_rate_becomes_the_listed_category_with_its_percent() {
        let rates = r#"[{"code":"STANDARD_VAT","percent":7.5},{"code":"REDUCED_VAT","percent":5},
            {"code":"ZERO_VAT","percent":0},{"code":"STANDARD_GST","percent":5},{"code":"SUGAR_TAX","percent":5},
            {"code":"ODD_VAT","percent":9},{"code":"STRANGE_VAT","percent":9}]"#;
        let mut catalog = Catalog::default();
        catalog.load(
            ReferenceList::TaxCategories,
            &strict_json::from_trusted(rates).unwrap(),
        );
        for (own, percent, expected) in [
            ("STANDARD_VAT", Some("7.50"), "STANDARD_VAT"),
            ("STANDARD_VAT", Some("5"), "REDUCED_VAT"),
            ("STANDARD_VAT", Some("5.00"), "REDUCED_VAT"),
            ("STANDARD_VAT", Some("0"), "ZERO_VAT"),
            ("STANDARD_VAT", Some("19"), "STANDARD_VAT"),
            ("STANDARD_VAT", Some("9"), "STANDARD_VAT"),
            ("STANDARD_VAT", None, "STANDARD_VAT"),
            ("STANDARD_GST", Some("7.5"), "STANDARD_GST"),
            ("EXEMPTED", Some("5"), "EXEMPTED"),
            ("REDUCED_VAT", Some("7.5"), "REDUCED_VAT"),
        ] {
            let mut document = own_document("381");
            let tax = Tax {
                category: CodeAndName {
                    code: own.to_owned(),
                    name: "VAT".to_owned(),
                },
                percent: percent.map(|percent| percent.parse().unwrap()),
            };
            document.lines[0].tax = tax.clone();
            document.taxes[0].tax = tax;
            choose_listed_taxes(&mut document, &catalog);
            let found =
                [&document.lines[0].tax, &document.taxes[0].tax].map(|tax| &*tax.category.code);
            assert_eq!(found, [expected; 2], "{own} {percent:?}");
            let mut none = document.clone();
            choose_listed_taxes(&mut none, &Catalog::default());
            assert_eq!(none, document);
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
        let catalog = Catalog::default();
        let file = read(text.as_bytes(), ImportForm::Standard, &units, &catalog);
        let body = file.documents[0].body.as_ref().unwrap();
        assert_eq!(body["invoice_lines"][0]["price_unit"], "KGM");
    }
}
