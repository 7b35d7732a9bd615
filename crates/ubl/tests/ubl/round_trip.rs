//! What is written is read again as the same document.

use crate::test_set::{self, charge, coded, documents, line, plain, sum_up, tax};
use proptest::prelude::*;
use rust_decimal::Decimal;
use trade_document::{
    Charge, ItemKind, Line, PaymentMeans, Period, Reference, ReferenceKind, TradeDocument,
};
use ubl::{Limits, Unwritable, read, write};

/// Asserts that a document comes back, with nothing beside it and no change.
fn assert_comes_back(name: &str, document: &TradeDocument) {
    let xml = write(document).unwrap_or_else(|error| panic!("{name}: {error}"));
    let read = read(xml.as_bytes(), &Limits::default())
        .unwrap_or_else(|faults| panic!("{name}: {faults:?}\n{xml}"));
    assert_eq!(&read.document, document, "{name}");
    assert_eq!(read.beside, [], "{name}");
    assert_eq!(read.changes, [], "{name}");
}

#[test]
fn the_test_set_comes_back() {
    for (name, document) in documents() {
        assert_comes_back(name, &document);
    }
}

#[test]
fn every_tax_category_of_the_authority_comes_back() {
    let list = include_str!("../../../sandbox/data/tax-categories.json");
    let codes: Vec<_> = list
        .split("\"code\":\"")
        .skip(1)
        .filter_map(|row| row.split('"').next())
        .collect();
    assert_eq!(codes.len(), 27);
    for code in codes {
        for percent in ["0", "7.5"] {
            let mut document = plain();
            document.lines[0].tax = tax(code, percent);
            document.lines[0].tax.category.name = format!("Tax {code}");
            sum_up(&mut document);
            assert_comes_back(code, &document);
        }
    }
}

#[test]
fn every_document_type_of_the_authority_comes_back_or_is_no_invoice() {
    let list = include_str!("../../../sandbox/data/invoice-types.json");
    let rows = list.lines().filter_map(|row| {
        let mut parts = row.split('"');
        Some((parts.nth(3)?, parts.nth(3)?))
    });
    let mut refused = Vec::new();
    for (code, name) in rows {
        let mut document = plain();
        document.document_type = coded(code, name);
        match write(&document) {
            Ok(_) => assert_comes_back(code, &document),
            Err(Unwritable::DocumentType { .. }) => refused.push(code),
            Err(other) => panic!("{code}: {other}"),
        }
    }
    assert_eq!(
        refused,
        [
            "388", "389", "395", "396", "399", "400", "402", "404", "406", "408"
        ]
    );
}

#[test]
fn every_payment_means_of_the_authority_comes_back() {
    let list = include_str!("../../../sandbox/data/payment-means.json");
    let codes: Vec<_> = list
        .split("\"code\":\"")
        .skip(1)
        .filter_map(|row| row.split('"').next())
        .collect();
    assert_eq!(codes.len(), 12);
    for code in codes {
        let mut document = plain();
        document.payment_means = vec![PaymentMeans {
            means: coded(code, ""),
            due_date: None,
        }];
        assert_comes_back(code, &document);
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let with = |change: fn(&mut TradeDocument)| {
        let mut document = plain();
        change(&mut document);
        write(&document).unwrap_err().to_string()
    };
    assert_eq!(
        with(|document| document.document_type = coded("399", "Bill of Lading")),
        "UBL has no invoice for the document type 399 (Bill of Lading)"
    );
    assert_eq!(
        with(|document| document.notes = vec!["a\u{1}b".to_owned()]),
        "cbc:Note has the character U+0001, which XML cannot carry"
    );
    assert_eq!(
        with(|document| document.lines.clear()),
        "a document without lines cannot be written"
    );
    assert_eq!(
        with(|document| document.lines[0].tax = tax("FEUDAL_DUE", "1")),
        "UBL has no tax category for FEUDAL_DUE"
    );
    assert_eq!(
        with(|document| {
            let order = |id: &str| Reference {
                kind: ReferenceKind::Order,
                id: id.to_owned(),
                issue_date: None,
            };
            document.references = vec![order("1"), order("2")];
        }),
        "UBL has room for one order reference; this document has 2"
    );
}

/// Texts with folded white space, in several scripts and with the characters that XML escapes.
fn text() -> impl Strategy<Value = String> {
    "[!-~À-ÿẸọ漢ع]{1,9}( [!-~À-ÿẸọ漢ع]{1,9}){0,2}"
}

fn maybe_text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(text())
}

fn decimal(digits: u32) -> impl Strategy<Value = Decimal> {
    (1_i64..1_000_000_000).prop_map(move |number| Decimal::new(number, digits))
}

fn day() -> impl Strategy<Value = jiff::civil::Date> {
    (2000_i16..2100, 1_i8..=12, 1_i8..=28)
        .prop_map(|(year, month, day)| jiff::civil::date(year, month, day))
}

/// The tax of one of a few categories.
fn any_tax() -> impl Strategy<Value = trade_document::Tax> {
    prop::sample::select(vec![
        tax("STANDARD_VAT", "7.5"),
        tax("ZERO_VAT", "0"),
        tax("EXEMPTED", "0"),
        tax("REDUCED_VAT", "5"),
    ])
}

fn any_line() -> impl Strategy<Value = Line> {
    let item = (text(), maybe_text(), maybe_text(), any::<bool>());
    let unit = prop::sample::select(vec!["EA", "KGM", "HUR", "C62", "MON"]);
    let numbers = (
        decimal(3),
        decimal(4),
        prop::sample::select(vec!["1", "100", "0.5"]),
    );
    let charges = prop::collection::vec((any::<bool>(), 1_i64..500, maybe_text()), 0..3);
    (item, unit, numbers, charges, any_tax()).prop_map(|(item, unit, numbers, charges, tax)| {
        let (name, description, item_number, is_service) = item;
        let mut line = line(&name, "1", "1", tax);
        line.description = description;
        line.item_number = item_number;
        line.item_kind = if is_service {
            ItemKind::Service
        } else {
            ItemKind::Product
        };
        line.unit = coded(unit, "");
        line.quantity = numbers.0;
        line.price = numbers.1 + Decimal::from(1000);
        line.base_quantity = test_set::decimal(numbers.2);
        // A discount of at most 2 × 5.00 must not make the line negative.
        line.quantity += Decimal::ONE_HUNDRED;
        line.charges = charges
            .into_iter()
            .map(|(is_fee, cents, reason)| Charge {
                amount: Decimal::new(cents, 2),
                ..charge(is_fee, "0", reason.as_deref(), None)
            })
            .collect();
        line
    })
}

prop_compose! {
    fn any_charges()(charges in prop::collection::vec((any::<bool>(), 1_i64..500, maybe_text(), any_tax()), 0..3)) -> Vec<Charge> {
        charges.into_iter().map(|(is_fee, cents, reason, tax)| Charge {
            amount: Decimal::new(cents, 2),
            ..charge(is_fee, "0", reason.as_deref(), Some(tax))
        }).collect()
    }
}

prop_compose! {
    fn any_document()(
        texts in (text(), maybe_text(), maybe_text(), maybe_text(), prop::collection::vec(text(), 0..3)),
        party in (maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text()),
        dates in (day(), prop::option::of(day()), prop::option::of(day()), prop::option::of(day())),
        references in prop::collection::vec((text(), prop::option::of(day())), 0..3),
        kind in prop::sample::select(vec![("381", "Commercial Invoice"), ("380", "Credit Note"), ("384", "Debit Note")]),
        means in prop::sample::select(vec!["10", "30", "42", "58", "97"]),
        sums in (0_i64..100, -99_i64..100),
        lines in prop::collection::vec(any_line(), 1..6),
        charges in any_charges(),
    ) -> TradeDocument {
        let mut document = plain();
        (document.number, document.irn, document.buyer_reference, document.payment_terms, document.notes) = texts;
        document.customer.number = party.0;
        document.customer.tin = party.1;
        document.customer.telephone = party.2;
        document.customer.registration = party.3;
        document.customer.address.street = party.4;
        document.customer.email = party.5;
        (document.issue_date, document.due_date, document.delivery_date, _) = dates;
        document.period = dates.3.map(|start| Period { start: Some(start), end: dates.1 });
        document.payment_means = vec![PaymentMeans { means: coded(means, ""), due_date: None }];
        document.references = references.into_iter().map(|(id, issue_date)| {
            Reference { kind: ReferenceKind::Preceding, id, issue_date }
        }).collect();
        document.document_type = coded(kind.0, kind.1);
        document.totals.prepaid = Decimal::new(sums.0, 2);
        document.totals.rounding = Decimal::new(sums.1, 2);
        document.lines = lines;
        document.charges = charges;
        sum_up(&mut document);
        document
    }
}

proptest! {
    #[test]
    fn any_document_comes_back(document in any_document()) {
        assert_comes_back("any", &document);
    }

    #[test]
    fn allocation_keeps_every_sum(document in any_document()) {
        // A fee without a line of its tax becomes a line, but a discount without one is refused.
        prop_assume!(document.charges.iter().all(|charge| {
            charge.is_fee || document.lines.iter().any(|line| charge.tax.as_ref() == Some(&line.tax))
        }));
        let allocated = ubl::allocate(&document).unwrap().document;
        prop_assert!(allocated.charges.is_empty());
        for subtotal in &document.taxes {
            let of_tax = allocated.lines.iter().filter(|line| line.tax == subtotal.tax);
            prop_assert_eq!(of_tax.map(|line| line.amount).sum::<Decimal>(), subtotal.base);
        }
        prop_assert_eq!(allocated.totals.lines, document.totals.tax_exclusive);
        assert_comes_back("allocated", &allocated);
        let simple = ubl::fold_fees(&allocated).document;
        for line in &simple.lines {
            prop_assert!(line.charges.len() <= 1 && line.charges.iter().all(|charge| !charge.is_fee));
            let discount: Decimal = line.charges.iter().map(|charge| charge.amount).sum();
            prop_assert_eq!(line.quantity * line.price - discount, line.amount);
            prop_assert!(discount >= Decimal::ZERO);
        }
        prop_assert_eq!(&simple.totals, &allocated.totals);
    }
}
