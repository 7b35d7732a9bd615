//! Two laws of plans, after random edits: the original less its credit notes plus its replacement is what was wanted,
//! and each line of a credit note comes to what its quantity, price, discount and fee say.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::amounts::Amounts;
use super::plan::CorrectionWish;
use super::testing::{
    CATEGORIES, amount, become_draft, catalog, draft, full_draft, line, plan, signed,
};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::{Draft, Line, totals};
use crate::domain::money::Amount;

const EDITS: usize = 2_000;
const SEED: u64 = 26;

fn thousandths(value: u32) -> Amount {
    amount(&format!("{}.{:03}", value / 1_000, value % 1_000))
}

/// Fails if a line states another amount than the one that its terms come to.
fn assert_consistent(note: &Draft, edit: &str) {
    let amounts = Breakdown::from_draft(note, &catalog()).unwrap().lines;
    for (line, amount) in note.lines.iter().zip(amounts) {
        let net = totals::net(line).unwrap();
        assert!(
            amount.is_within_tolerance(net),
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
    let part = percent.percent_share(amount).unwrap().round_half_up(3);
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
