//! Documents by chance.

use proptest::prelude::*;
use rust_decimal::Decimal;
use trade_document::{
    Charge, ItemKind, Line, PaymentMeans, Period, Reference, ReferenceKind, TradeDocument,
};

use crate::test_set::{self, charge, coded, line, plain, sum_up, tax};

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
    fn any_charges()(
        charges in prop::collection::vec((any::<bool>(), 1_i64..500, maybe_text(), any_tax()), 0..3),
    ) -> Vec<Charge> {
        charges.into_iter().map(|(is_fee, cents, reason, tax)| Charge {
            amount: Decimal::new(cents, 2),
            ..charge(is_fee, "0", reason.as_deref(), Some(tax))
        }).collect()
    }
}

prop_compose! {
    /// A document whose sums are right.
    pub fn any_document()(
        texts in (text(), maybe_text(), maybe_text(), maybe_text(), prop::collection::vec(text(), 0..3)),
        party in (maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text()),
        dates in (day(), prop::option::of(day()), prop::option::of(day()), prop::option::of(day())),
        references in prop::collection::vec((text(), prop::option::of(day())), 0..3),
        kind in prop::sample::select(vec![
            ("381", "Commercial Invoice"), ("380", "Credit Note"), ("384", "Debit Note"),
        ]),
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
        document.period = dates.3.map(|start| Period { start: Some(start), end: dates.1.filter(|end| *end >= start) });
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
