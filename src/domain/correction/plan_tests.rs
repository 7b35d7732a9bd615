//! The plan of each wish.

use serde_json::{Value, json};

use super::plan::{CorrectionWish, Plan, PlanError};
use super::testing::{
    CATEGORIES, amount, become_draft, catalog, draft, full_draft, line, plan, signed,
};
use crate::domain::invoice::{Draft, Line, totals};

/// Returns what a plan is, in words.
fn words(plan: &Plan) -> Vec<String> {
    let total = |draft: &Draft| draft.payable.with_digits(2).to_string();
    let credit_note = plan.credit_note.as_ref().map(|draft| {
        let kind = if plan.is_whole { "whole" } else { "part" };
        format!("{kind} {}", total(draft))
    });
    let replacement = plan.replacement.as_ref();
    let replacement = replacement.map(|draft| format!("replacement {}", total(draft)));
    credit_note.into_iter().chain(replacement).collect()
}

#[test]
fn each_wish_has_the_smallest_plan() {
    let vat = CATEGORIES[0];
    let lines = vec![
        line(1, 10.into(), 100.into(), vat),
        line(2, 1.into(), amount("0.07"), CATEGORIES[2]),
    ];
    let original = signed(draft(lines.clone()));
    let changed = |change: fn(&mut Draft)| {
        let mut draft = draft(lines.clone());
        change(&mut draft);
        draft.payable = totals::payable_amount(&draft.lines, &draft.currency, &catalog()).unwrap();
        become_draft(draft)
    };
    let cases: [(CorrectionWish, &[&str]); 14] = [
        (CorrectionWish::Cancel, &["whole 1075.07"]),
        (changed(|_| {}), &[]),
        (
            changed(|draft| draft.customer.name = "Other spelling".into()),
            &[],
        ),
        (
            changed(|draft| draft.lines[0].quantity = 6.into()),
            &["part 430.00"],
        ),
        (
            changed(|draft| draft.lines[0].unit_price = 99.into()),
            &["part 10.75"],
        ),
        (
            changed(|draft| drop(draft.lines.remove(0))),
            &["part 1075.00"],
        ),
        (changed(|draft| drop(draft.lines.remove(1))), &["part 0.07"]),
        (
            changed(|draft| draft.lines[0].quantity = 11.into()),
            &["whole 1075.07", "replacement 1182.57"],
        ),
        (
            changed(|draft| draft.lines[0].tax_category = CATEGORIES[1].into()),
            &["whole 1075.07", "replacement 1050.07"],
        ),
        (
            changed(|draft| draft.customer.no = "C2".into()),
            &["whole 1075.07", "replacement 1075.07"],
        ),
        (
            changed(|draft| draft.currency = "USD".into()),
            &["whole 1075.07", "replacement 1075.07"],
        ),
        (
            changed(|draft| draft.invoice_date = "2026-01-16".parse().unwrap()),
            &["whole 1075.07", "replacement 1075.07"],
        ),
        (
            changed(|draft| drop(draft.extras.insert("note".into(), json!("late")))),
            &["whole 1075.07", "replacement 1075.07"],
        ),
        (
            // A thousandth less comes to the same amounts, of which no credit note can be made.
            changed(|draft| draft.lines[1].unit_price = amount("0.069")),
            &["whole 1075.07", "replacement 1075.07"],
        ),
    ];
    for (wish, expected) in &cases {
        assert_eq!(
            words(&plan(&original, &[], wish).unwrap()),
            *expected,
            "{wish:?}"
        );
    }
}

#[test]
fn another_spelling_of_a_number_is_no_difference() {
    let full = |allowance: &str| {
        let mut draft = full_draft(vec![line(1, 10.into(), 100.into(), CATEGORIES[0])]);
        let charge = json!([{ "charge_indicator": false, "amount": amount(allowance) }]);
        draft.extras.insert("allowance_charge".into(), charge);
        draft
    };
    let original = signed(full("75.00"));
    let cases: [(&str, &[&str]); 4] = [
        ("75.00", &[]),
        ("75", &[]),
        ("75.000", &[]),
        ("74.99", &["whole 1075.00", "replacement 1075.00"]),
    ];
    for (allowance, expected) in cases {
        let found = plan(&original, &[], &become_draft(full(allowance))).unwrap();
        assert_eq!(words(&found), expected, "{allowance}");
    }
}

/// Returns a line with a description; null is one that the caller has cleared.
fn described(quantity: i64, description: Option<Value>) -> Line {
    let mut line = line(1, quantity.into(), 100.into(), CATEGORIES[0]);
    let description = description.map(|text| ("description".to_owned(), text));
    line.extras.extend(description);
    line
}

#[test]
fn each_line_keeps_its_own_description_unless_it_is_cleared() {
    let with_note = |lines: Vec<Line>, note: Option<Value>| {
        let mut draft = draft(lines);
        let note = note.map(|text| ("note".to_owned(), text));
        draft.extras.extend(note);
        draft
    };
    let lines = vec![
        described(2, Some(json!("March"))),
        described(3, Some(json!("April"))),
    ];
    let original = signed(with_note(lines, Some(json!("As agreed"))));
    let plain = || vec![described(2, None), described(3, None)];
    let cleared = vec![
        described(2, Some(json!("March"))),
        described(3, Some(Value::Null)),
    ];
    // The wanted invoice, the documents, and the note and the descriptions of the replacement.
    let cases: [(Draft, &[&str], &[&str]); 5] = [
        (with_note(plain(), None), &[], &[]),
        (
            with_note(vec![described(2, None), described(1, None)], None),
            &["part 215.00"],
            &[],
        ),
        (
            with_note(vec![described(4, None), described(2, None)], None),
            &["whole 537.50", "replacement 645.00"],
            &["As agreed", "April", "March"],
        ),
        (
            with_note(plain(), Some(Value::Null)),
            &["whole 537.50", "replacement 537.50"],
            &["", "March", "April"],
        ),
        (
            with_note(cleared, None),
            &["whole 537.50", "replacement 537.50"],
            &["As agreed", "March", ""],
        ),
    ];
    for (wanted, documents, expected) in cases {
        let name = format!("{wanted:?}");
        let found = plan(&original, &[], &become_draft(wanted)).unwrap();
        assert_eq!(words(&found), documents, "{name}");
        let Some(replacement) = &found.replacement else {
            continue;
        };
        let lines = replacement
            .lines
            .iter()
            .map(|line| line.extras.get("description"));
        let texts = [replacement.extras.get("note")].into_iter().chain(lines);
        let texts: Vec<_> = texts
            .map(|text| text.map_or("", |text| text.as_str().unwrap()))
            .collect();
        assert_eq!(texts, expected, "{name}");
    }
}

#[test]
fn earlier_credit_notes_count() {
    let vat = CATEGORIES[0];
    let lines = |quantity: i64| vec![line(1, quantity.into(), 100.into(), vat)];
    let original = signed(draft(lines(10)));
    let first = plan(&original, &[], &become_draft(draft(lines(6)))).unwrap();
    let first = [signed(first.credit_note.unwrap())];
    let cases: [(CorrectionWish, &[&str]); 5] = [
        (CorrectionWish::Cancel, &["whole 645.00"]),
        (become_draft(draft(lines(6))), &[]),
        (become_draft(draft(lines(5))), &["part 107.50"]),
        (
            become_draft(draft(lines(10))),
            &["whole 645.00", "replacement 1075.00"],
        ),
        (
            become_draft(draft(vec![line(2, 1.into(), 1.into(), vat)])),
            &["whole 645.00", "replacement 1.08"],
        ),
    ];
    for (wish, expected) in &cases {
        let found = plan(&original, &first, wish).unwrap();
        assert_eq!(words(&found), *expected, "{wish:?}");
        assert_eq!(found.before.totals.payable_amount, amount("645"));
    }
    let all = signed(
        plan(&original, &[], &CorrectionWish::Cancel)
            .unwrap()
            .credit_note
            .unwrap(),
    );
    let cancelled = plan(
        &original,
        std::slice::from_ref(&all),
        &CorrectionWish::Cancel,
    )
    .unwrap();
    assert_eq!(words(&cancelled), [""; 0]);
    let anew = plan(
        &original,
        std::slice::from_ref(&all),
        &become_draft(draft(lines(1))),
    )
    .unwrap();
    assert_eq!(words(&anew), ["replacement 107.50"]);
    let [part] = first;
    assert_eq!(
        plan(&original, &[all, part], &CorrectionWish::Cancel),
        Err(PlanError::OverCredited)
    );
}

#[test]
fn a_credit_note_refers_to_its_original_and_has_a_number_of_its_own() {
    let original = signed(full_draft(vec![line(
        1,
        2.into(),
        500.into(),
        CATEGORIES[0],
    )]));
    let note = plan(&original, &[], &CorrectionWish::Cancel)
        .unwrap()
        .credit_note;
    let note = note.unwrap();
    assert_eq!((note.invoice_no.as_str(), note.irn), ("1CN1", None));
    assert_eq!(note.invoice_type, "380");
    let text = |name: &str| note.extras.get(name).and_then(Value::as_str).unwrap();
    assert_eq!(text("original_invoice_reference"), original.irn.as_str());
    assert_eq!(text("original_invoice_reference_type"), "IRN");
    assert_eq!(note.invoice_date.to_string(), "2026-03-01");
    assert_eq!(
        note.extras.get("legal_monetary_total"),
        original.extras.get("legal_monetary_total")
    );
}
