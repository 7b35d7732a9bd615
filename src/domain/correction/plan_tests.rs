//! The plans, and two laws: the original less its credit notes plus its replacement is what was wanted, and each line of
//! a credit note comes to what its quantity, price, discount and fee say.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::amounts::Amounts;
use super::plan::{CorrectionWish, Plan, PlanError};
use super::testing::{CATEGORIES, become_draft, catalog, draft, full_draft, line, plan, signed};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::{Draft, Line, totals};
use crate::domain::money::Amount;

const EDITS: usize = 2_000;
const SEED: u64 = 26;

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

fn thousandths(value: u32) -> Amount {
    amount(&format!("{}.{:03}", value / 1_000, value % 1_000))
}

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

/// Fails if a line states another amount than the one that its terms come to.
fn assert_consistent(note: &Draft, edit: &str) {
    let amounts = Breakdown::from_draft(note, &catalog()).unwrap().lines;
    for (line, amount) in note.lines.iter().zip(amounts) {
        let net = totals::net(line).unwrap();
        assert!(
            amount.is_about(net),
            "{edit}: {amount} is not {net}: {line:?}"
        );
    }
}

/// Gives some of the lines a fee or a price for several pieces, as only a full invoice can have.
fn add_full_terms(lines: &mut [Line], chance: &mut StdRng) {
    for line in lines {
        if chance.random_bool(0.4) {
            let base = thousandths(chance.random_range(10..=100_000) / 10 * 10);
            line.extras.insert("base_quantity".into(), json!(base));
        }
        for (name, max) in [("fee_rate", 50_000), ("fee_amount", 90_000)] {
            if chance.random_bool(0.3) {
                let fee = thousandths(chance.random_range(0..=max));
                line.extras.insert(name.into(), json!(fee));
            }
        }
    }
}

fn random_lines(chance: &mut StdRng) -> Vec<Line> {
    let count = chance.random_range(1..=5);
    (0..count)
        .map(|item| {
            let quantity = if chance.random_bool(0.5) {
                chance.random_range(1_u32..=20) * 1_000
            } else {
                chance.random_range(1_u32..=20_000)
            };
            let price = chance.random_range(1_u32..=900_000);
            let category = CATEGORIES[chance.random_range(0..CATEGORIES.len())];
            let rate = chance
                .random_bool(0.3)
                .then(|| thousandths(chance.random_range(0..=50_000)));
            let discount = chance
                .random_bool(0.2)
                .then(|| thousandths(chance.random_range(0..=90_000)));
            Line {
                discount_rate: rate,
                discount_amount: discount,
                ..line(item, thousandths(quantity), thousandths(price), category)
            }
        })
        .collect()
}

/// Returns a part of an amount, which is never zero.
fn fraction(amount: Amount, chance: &mut StdRng) -> Amount {
    let percent = Amount::from(chance.random_range(1_i64..=120));
    let part = percent.to_percent(amount).unwrap().round_half_up(3);
    if part.is_zero() { amount } else { part }
}

/// Changes some lines as a person would: fewer or more of them, cheaper or dearer, another tax, gone or new.
fn edit(lines: &[Line], chance: &mut StdRng) -> Vec<Line> {
    let mut edited = lines.to_vec();
    for line in &mut edited {
        match chance.random_range(0..8) {
            0 | 1 => line.quantity = fraction(line.quantity, chance),
            2 | 3 => line.unit_price = fraction(line.unit_price, chance),
            4 if chance.random_bool(0.2) => {
                CATEGORIES[chance.random_range(0..CATEGORIES.len())]
                    .clone_into(&mut line.tax_category);
            }
            _ => {}
        }
    }
    if edited.len() > 1 && chance.random_bool(0.3) {
        edited.remove(chance.random_range(0..edited.len()));
    }
    if chance.random_bool(0.1) {
        edited.extend(random_lines(chance).pop());
    }
    edited
}

fn amounts(draft: &Draft) -> Amounts {
    Amounts::from(Breakdown::from_draft(draft, &catalog()).unwrap())
}

#[test]
fn the_documents_of_random_edits_come_to_what_was_wanted() {
    let mut chance = StdRng::seed_from_u64(SEED);
    let mut seen = [0_usize; 4];
    for number in 0..EDITS {
        let mut lines = random_lines(&mut chance);
        let is_full = chance.random_bool(0.5);
        if is_full {
            add_full_terms(&mut lines, &mut chance);
        }
        let make = |lines: Vec<Line>| {
            if is_full {
                full_draft(lines)
            } else {
                draft(lines)
            }
        };
        let original = signed(make(lines.clone()));
        let mut notes = Vec::new();
        let mut now = lines;
        for round in 0..3 {
            let wish = if chance.random_bool(0.1) {
                CorrectionWish::Cancel
            } else {
                now = edit(&now, &mut chance);
                become_draft(make(now.clone()))
            };
            let found = plan(&original, &notes, &wish).unwrap();
            let mut sum = Amounts::from(Breakdown::from_invoice(&original, &catalog()).unwrap());
            for note in &notes {
                let credited = Amounts::from(Breakdown::from_invoice(note, &catalog()).unwrap());
                sum = sum.minus(&credited).unwrap();
            }
            if let Some(note) = &found.credit_note {
                assert!(!note.lines.is_empty() && !amounts(note).is_negative());
                assert_consistent(note, &format!("edit {number}, round {round}"));
                sum = sum.minus(&amounts(note)).unwrap();
            }
            if let Some(replacement) = &found.replacement {
                sum = sum.plus(&amounts(replacement)).unwrap();
            }
            let wanted = match &wish {
                CorrectionWish::Cancel => Amounts::zero(),
                CorrectionWish::Become(draft) => amounts(draft),
            };
            assert_eq!(sum.totals, wanted.totals, "edit {number}, round {round}");
            let parts = |amounts: &Amounts| -> Vec<_> {
                let parts = amounts.taxes.iter();
                parts
                    .map(|(category, part)| (category.clone(), part.base, part.tax))
                    .collect()
            };
            assert_eq!(parts(&sum), parts(&wanted), "edit {number}, round {round}");
            seen[usize::from(found.credit_note.is_some())
                + 2 * usize::from(found.replacement.is_some())] += 1;
            if found.is_whole || found.replacement.is_some() {
                break;
            }
            notes.extend(found.credit_note.map(signed));
        }
    }
    let [none, credit, _, both] = seen;
    assert!(none > 100 && credit > 500 && both > 500, "{seen:?}");
}
