//! What is written is read again as the same document.

use crate::random::any_document;
use crate::test_set::{coded, decimal, documents, plain, sum_up, tax};
use proptest::prelude::*;

use rust_decimal::Decimal;
use trade_document::{PaymentMeans, Reference, ReferenceKind, TradeDocument};
use ubl::{Limits, UnwritableDocument, read, write};

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
fn the_tax_is_the_sum_that_the_totals_state() {
    for (currency, lines, tax, inclusive, stated) in [
        ("NGN", "1000", "75.004", "1075.004", "75.004"),
        ("NGN", "1000", "75.004", "1075.00", "75.00"),
        ("NGN", "1000", "75", "1075", "75.00"),
        ("JPY", "33.4", "2.51", "35.91", "2.51"),
        ("JPY", "33.4", "2.51", "36.4", "3"),
    ] {
        let mut document = plain();
        document.currency = currency.to_owned();
        document.taxes[0].base = decimal(lines);
        document.taxes[0].amount = decimal(tax);
        document.totals.lines = decimal(lines);
        document.totals.tax_exclusive = decimal(lines);
        document.totals.tax_inclusive = decimal(inclusive);
        document.totals.payable = decimal(inclusive);
        let xml = write(&document).unwrap();
        let total = xml.split("<cac:TaxTotal>").nth(1).unwrap();
        let amount = total.split(['<', '>']).nth(2).unwrap();
        assert_eq!(amount, stated, "{currency} {tax} {inclusive}");
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
            Err(UnwritableDocument::DocumentType { .. }) => refused.push(code),
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
        with(|document| document.document_type = coded("", "")),
        "UBL has no invoice for a document without a document type"
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
        let allocated = ubl::allocate_charges(&document).unwrap().document;
        prop_assert!(allocated.charges.is_empty());
        for subtotal in &document.taxes {
            let of_tax = allocated.lines.iter().filter(|line| line.tax == subtotal.tax);
            prop_assert_eq!(of_tax.map(|line| line.amount).sum::<Decimal>(), subtotal.base);
        }
        prop_assert_eq!(allocated.totals.lines, document.totals.tax_exclusive);
        assert_comes_back("allocated", &allocated);
        let simple = ubl::fold_fees_into_prices(&allocated).document;
        for line in &simple.lines {
            prop_assert!(line.charges.len() <= 1 && line.charges.iter().all(|charge| !charge.is_fee));
            let discount: Decimal = line.charges.iter().map(|charge| charge.amount).sum();
            prop_assert_eq!(line.quantity * line.price - discount, line.amount);
            prop_assert!(discount >= Decimal::ZERO);
        }
        prop_assert_eq!(&simple.totals, &allocated.totals);
    }
}
