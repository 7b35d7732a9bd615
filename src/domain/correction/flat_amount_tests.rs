//! The flat discounts and fees of lines in credit notes: each is credited once, and each line comes to what it says.

use serde_json::{Value, json};

use super::plan::CorrectionWish;
use super::testing::{CATEGORIES, become_draft, catalog, full_draft, line, plan, signed};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::line_terms::LineTerms;
use crate::domain::invoice::{Draft, Invoice, Line};

/// Returns the lines of a credit note as `quantity x price / base_quantity - discount + fee = amount`.
fn line_sums(note: &Draft) -> Vec<String> {
    let amounts = Breakdown::from_draft(note, &catalog()).unwrap().lines;
    let lines = note.lines.iter().zip(amounts);
    lines
        .map(|(line, amount)| {
            let LineTerms {
                quantity,
                price,
                base_quantity,
                discount,
                fee,
            } = LineTerms::from(line);
            let discount = discount.amount;
            let fee = fee.amount;
            format!("{quantity} x {price} / {base_quantity} - {discount} + {fee} = {amount}")
        })
        .collect()
}

/// Returns the terms of a line of ten pieces for ten, and the lines of the credit notes that lead to eight pieces, then
/// to a price of seven, and then to nothing.
fn flat_amount_cases() -> [(Value, [&'static str; 3]); 6] {
    [
        (
            json!({ "fee_amount": 10 }),
            [
                "2 x 10 / 1 - 0 + 0 = 20.00",
                "8 x 3 / 1 - 0 + 0 = 24.00",
                "8 x 7 / 1 - 0 + 10 = 66.00",
            ],
        ),
        (
            json!({ "discount_amount": 5 }),
            [
                "2 x 10 / 1 - 0 + 0 = 20.00",
                "8 x 3 / 1 - 0 + 0 = 24.00",
                "8 x 7 / 1 - 5 + 0 = 51.00",
            ],
        ),
        (
            json!({ "discount_amount": 5, "fee_amount": 10, "base_quantity": 2 }),
            [
                "2 x 10 / 2 - 0 + 0 = 10.00",
                "8 x 3 / 2 - 0 + 0 = 12.00",
                "8 x 7 / 2 - 5 + 10 = 33.00",
            ],
        ),
        (
            json!({ "fee_amount": 10, "base_quantity": 3 }),
            [
                "2 x 10 / 3 - 0 + 0 = 6.66",
                "8 x 3 / 3 - 0 + 0 = 8.00",
                "8 x 7 / 3 - 0 + 10 = 28.67",
            ],
        ),
        (
            json!({ "fee_rate": 10 }),
            [
                "2 x 10 / 1 - 0 + 0 = 22.00",
                "8 x 3 / 1 - 0 + 0 = 26.40",
                "8 x 7 / 1 - 0 + 0 = 61.60",
            ],
        ),
        (
            json!({ "fee_rate": 10, "fee_amount": 10, "base_quantity": 2 }),
            [
                "2 x 10 / 2 - 0 + 0 = 11.00",
                "8 x 3 / 2 - 0 + 0 = 13.20",
                "8 x 7 / 2 - 0 + 10 = 40.80",
            ],
        ),
    ]
}

#[test]
fn a_flat_discount_and_a_flat_fee_are_credited_once() {
    let with_terms = |quantity: i64, price: i64, terms: &Value| {
        let mut line = line(1, quantity.into(), price.into(), CATEGORIES[2]);
        line.extras = terms.as_object().cloned().unwrap();
        line.discount_amount = line.extras.remove("discount_amount").map(|_| 5.into());
        line
    };
    for (terms, expected) in &flat_amount_cases() {
        let original = signed(full_draft(vec![with_terms(10, 10, terms)]));
        let wishes = [
            become_draft(full_draft(vec![with_terms(8, 10, terms)])),
            become_draft(full_draft(vec![with_terms(8, 7, terms)])),
            CorrectionWish::Cancel,
        ];
        let mut notes = Vec::new();
        for (wish, expected) in wishes.iter().zip(expected) {
            let found = plan(&original, &notes, wish).unwrap();
            assert!(found.replacement.is_none(), "{terms}");
            let note = found.credit_note.unwrap();
            assert_eq!(line_sums(&note), [*expected], "{terms}");
            notes.push(signed(note));
        }
    }
}

/// Returns a credit note as another system makes it, with one line and this amount.
fn foreign_credit_note(original: &Invoice, line: &Line, amount: i64) -> Invoice {
    let mut note = full_draft(vec![line.clone()]);
    note.invoice_type = "380".into();
    note.payable = amount.into();
    note.extras.insert(
        "legal_monetary_total".into(),
        json!({
            "line_extension_amount": amount, "tax_exclusive_amount": amount, "tax_inclusive_amount": amount,
            "payable_amount": amount,
        }),
    );
    note.lines[0]
        .extras
        .insert("line_extension_amount".into(), json!(amount));
    let reference = json!(original.irn);
    note.extras
        .insert("original_invoice_reference".into(), reference);
    signed(note)
}

#[test]
fn the_rest_of_credit_notes_of_other_systems_is_credited_with_consistent_lines() {
    let line = |quantity: i64, fee: i64| {
        let mut line = line(1, quantity.into(), 10.into(), CATEGORIES[2]);
        line.extras.insert("fee_amount".into(), json!(fee));
        line.extras.insert("base_quantity".into(), json!(1));
        line
    };
    let original = signed(full_draft(vec![line(10, 10)]));
    let cases = [
        // The whole fee or a part of it was credited with a part of the quantity.
        (line(2, 10), 30, "8 x 10 / 1 - 0 + 0 = 80.00"),
        (line(2, 2), 22, "8 x 10 / 1 - 0 + 8 = 88.00"),
        // A line that contradicts its amount says nothing about the lines that are left.
        (line(2, 10), 20, "1 x 90.00 / 1 - 0 + 0 = 90.00"),
        (line(2, 11), 31, "1 x 79.00 / 1 - 0 + 0 = 79.00"),
    ];
    for (credited, amount, expected) in cases {
        let note = foreign_credit_note(&original, &credited, amount);
        let found = plan(&original, &[note], &CorrectionWish::Cancel).unwrap();
        assert_eq!(line_sums(&found.credit_note.unwrap()), [expected]);
    }
}
