//! The lines of a signed invoice: those that its credit notes have left, and those that a credit note takes so that the
//! wanted ones are left.

use crate::domain::invoice::Line;
use crate::domain::invoice::totals::net;
use crate::domain::money::Amount;

/// The fields of a line that belong to its item. The amounts of a line and its description do not.
const ITEM_EXTRAS: [&str; 5] = [
    "base_quantity",
    "fee_amount",
    "fee_rate",
    "hsn_code",
    "isic_code",
];

/// True if both lines are about the same goods under the same terms: only quantity, price and amounts may differ.
fn is_same_item(one: &Line, other: &Line) -> bool {
    let terms = |line: &Line| {
        (
            line.item_name.clone(),
            line.item_no.clone(),
            line.item_type,
            line.price_unit.clone(),
            line.discount_rate.unwrap_or_default(),
        )
    };
    let codes = |line: &Line| {
        (
            line.tax_category.clone(),
            line.product_category.clone(),
            line.service_category.clone(),
        )
    };
    let has_same_extras = ITEM_EXTRAS
        .iter()
        .all(|name| one.extras.get(*name) == other.extras.get(*name));
    terms(one) == terms(other) && codes(one) == codes(other) && has_same_extras
}

/// True if both lines have the same description. That of a line of a credit note does not matter.
fn has_same_text(one: &Line, other: &Line) -> bool {
    one.extras.get("description") == other.extras.get("description")
}

fn is_unchanged(line: &Line, wanted: &Line) -> bool {
    is_same_item(line, wanted)
        && line.quantity == wanted.quantity
        && line.unit_price == wanted.unit_price
        && line.discount_amount.unwrap_or_default() == wanted.discount_amount.unwrap_or_default()
}

/// Returns the lines that credit notes have left of an invoice; `None` if a line of a credit note is no part of a line
/// that was left.
pub fn remaining_lines<'a>(
    original: &[Line],
    credited: impl IntoIterator<Item = &'a Line>,
) -> Option<Vec<Line>> {
    let mut left = original.to_vec();
    for credited in credited {
        let at = left.iter().position(|line| is_unchanged(line, credited));
        if let Some(at) = at {
            left.remove(at);
            continue;
        }
        left.iter_mut()
            .find_map(|line| subtract_part(line, credited).map(|less| *line = less))?;
    }
    Some(left)
}

/// Returns a line less a part of its quantity, or less a part of its price; `None` if the credit is neither.
fn subtract_part(line: &Line, credited: &Line) -> Option<Line> {
    if !is_same_item(line, credited) || credited.discount_amount.is_some() {
        return None;
    }
    let is_cheaper = credited.unit_price < line.unit_price;
    let is_fewer = credited.quantity < line.quantity;
    if credited.unit_price == line.unit_price && is_fewer {
        let quantity = line.quantity.minus(credited.quantity)?;
        return Some(Line {
            quantity,
            ..line.clone()
        });
    }
    if credited.quantity == line.quantity && is_cheaper {
        let unit_price = line.unit_price.minus(credited.unit_price)?;
        return Some(Line {
            unit_price,
            ..line.clone()
        });
    }
    None
}

/// True if a line has this tax category.
pub fn has_category(lines: &[Line], category: &str) -> bool {
    lines.iter().any(|line| line.tax_category == category)
}

/// Returns the lines that a credit note takes from `left`, so that `wanted` is left. `None` if `wanted` is no part of
/// `left`: a line is new, or more of it is wanted, or it has other terms.
pub fn credited_lines(left: &[Line], wanted: &[Line]) -> Option<Vec<Line>> {
    let mut rest: Vec<&Line> = left.iter().collect();
    let mut changed = Vec::new();
    // The unchanged lines come first, so that a line is not reduced to another one that is left as it was.
    for line in wanted {
        let is_same = |left: &&Line| is_unchanged(left, line) && has_same_text(left, line);
        match rest.iter().position(is_same) {
            Some(at) => drop(rest.remove(at)),
            None => changed.push(line),
        }
    }
    let mut credited = Vec::new();
    for line in changed {
        let found = (0..rest.len()).find_map(|at| Some((at, difference(rest.get(at)?, line)?)));
        let (at, difference) = found?;
        rest.remove(at);
        credited.extend(difference);
    }
    credited.extend(rest.into_iter().cloned());
    Some(credited)
}

/// Returns what a credit note takes from a line so that a smaller quantity or a lower price is left.
fn difference(line: &Line, wanted: &Line) -> Option<Vec<Line>> {
    let has_same_discount =
        line.discount_amount.unwrap_or_default() == wanted.discount_amount.unwrap_or_default();
    if !is_same_item(line, wanted) || !has_same_text(line, wanted) || !has_same_discount {
        return None;
    }
    let fewer = line.quantity.minus(wanted.quantity)?;
    let cheaper = line.unit_price.minus(wanted.unit_price)?;
    if fewer.is_negative() || cheaper.is_negative() {
        return None;
    }
    let part = |quantity: Amount, unit_price: Amount| Line {
        quantity,
        unit_price,
        discount_amount: None,
        ..line.clone()
    };
    let parts = [part(fewer, line.unit_price), part(wanted.quantity, cheaper)];
    let mut parts = Vec::from(parts);
    parts.retain(|part| !part.quantity.is_zero() && !part.unit_price.is_zero());
    let sum = parts
        .iter()
        .try_fold(Amount::ZERO, |sum, part| sum.plus(net(part)?))?;
    // A discount that takes all of a line leaves no difference to share out.
    let is_exact = net(line)?.minus(net(wanted)?)? == sum;
    (is_exact && !parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(item: &str, quantity: &str, price: &str) -> Line {
        Line {
            item_no: Some(item.to_owned()),
            quantity: Amount::parse(quantity).unwrap(),
            unit_price: Amount::parse(price).unwrap(),
            ..Line::sample()
        }
    }

    fn texts(lines: Option<Vec<Line>>) -> Option<Vec<String>> {
        let text = |line: &Line| {
            let item = line.item_no.clone().unwrap_or_default();
            format!("{item} {}x{}", line.quantity, line.unit_price)
        };
        Some(lines?.iter().map(text).collect())
    }

    #[test]
    fn a_credit_note_takes_what_is_left_out_or_lowered() {
        let original = [
            line("A", "10", "5"),
            line("B", "1", "7"),
            line("A", "2", "5"),
        ];
        let cases: [(&[Line], Option<&[&str]>); 7] = [
            (&original, Some(&[])),
            (&original[..1], Some(&["B 1x7", "A 2x5"])),
            (
                &[line("A", "4", "5"), line("B", "1", "7")],
                Some(&["A 6x5", "A 2x5"]),
            ),
            (
                &[
                    line("A", "10", "3"),
                    line("B", "1", "7"),
                    line("A", "2", "5"),
                ],
                Some(&["A 10x2"]),
            ),
            (
                &[
                    line("A", "6", "3"),
                    line("B", "1", "7"),
                    line("A", "2", "5"),
                ],
                Some(&["A 4x5", "A 6x2"]),
            ),
            (&[line("A", "11", "5")], None),
            (&[line("C", "1", "1")], None),
        ];
        for (wanted, expected) in cases {
            let found = texts(credited_lines(&original, wanted));
            let expected = expected.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
            assert_eq!(found, expected, "{wanted:?}");
        }
    }

    #[test]
    fn other_terms_are_no_part_of_a_line() {
        let original = [line("A", "10", "5")];
        let taxed = Line {
            tax_category: "ZERO_VAT".into(),
            ..line("A", "5", "5")
        };
        let discounted = Line {
            discount_amount: Some(1.into()),
            ..line("A", "10", "5")
        };
        for wanted in [taxed, discounted] {
            assert_eq!(texts(credited_lines(&original, &[wanted])), None);
        }
    }

    #[test]
    fn what_credit_notes_leave_is_what_was_wanted_of_them() {
        let original = [line("A", "10", "5"), line("B", "1", "7")];
        let wanted = [line("A", "6", "3")];
        let credited = credited_lines(&original, &wanted).unwrap();
        let left = remaining_lines(&original, &credited);
        assert_eq!(texts(left), texts(Some(wanted.to_vec())));
        let strange = [line("C", "1", "7")];
        assert_eq!(remaining_lines(&original, &strange), None);
    }
}
