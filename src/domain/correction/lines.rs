//! The lines of a signed invoice: those that its credit notes have left, and those that a new credit note must credit
//! so that the wanted lines are left. A flat discount or fee belongs to the whole line, so a part of the line has none.

use serde_json::json;

use crate::domain::invoice::Line;
use crate::domain::invoice::line_terms::LineTerms;
use crate::domain::money::Amount;

/// The field of a line that holds its flat fee.
const FEE_AMOUNT: &str = "fee_amount";
/// The fields of a line that identify its item. Its amounts and its description do not.
const ITEM_EXTRAS: [&str; 2] = ["hsn_code", "isic_code"];

/// True if both lines sell the same item under the same terms. Quantity, price, flat amounts and description may
/// differ.
fn is_same_item(one: &Line, other: &Line) -> bool {
    let item = |line: &Line| {
        (
            line.item_name.clone(),
            line.item_no.clone(),
            line.item_type,
            line.price_unit.clone(),
        )
    };
    let codes = |line: &Line| {
        (
            line.tax_category.clone(),
            line.product_category.clone(),
            line.service_category.clone(),
        )
    };
    let rates = |line: &Line| {
        let terms = LineTerms::from(line);
        (terms.base_quantity, terms.discount.rate, terms.fee.rate)
    };
    let has_same_extras = ITEM_EXTRAS
        .iter()
        .all(|name| one.extras.get(*name) == other.extras.get(*name));
    item(one) == item(other)
        && codes(one) == codes(other)
        && rates(one) == rates(other)
        && has_same_extras
}

/// True if both lines have the same description. For a line of a credit note, the description does not matter.
fn has_same_text(one: &Line, other: &Line) -> bool {
    one.extras.get("description") == other.extras.get("description")
}

fn is_unchanged(line: &Line, wanted: &Line) -> bool {
    is_same_item(line, wanted)
        && line.quantity == wanted.quantity
        && line.unit_price == wanted.unit_price
        && FlatAmounts::from(line) == FlatAmounts::from(wanted)
}

/// The flat discount and the flat fee of a line, which do not depend on quantity and price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FlatAmounts {
    discount: Amount,
    fee: Amount,
}

impl From<&Line> for FlatAmounts {
    fn from(line: &Line) -> Self {
        let terms = LineTerms::from(line);
        Self {
            discount: terms.discount.amount,
            fee: terms.fee.amount,
        }
    }
}

impl FlatAmounts {
    /// Returns these amounts less the credited ones; `None` if more was credited than there is.
    fn minus(self, credited: Self) -> Option<Self> {
        let discount = self.discount.minus(credited.discount)?;
        let fee = self.fee.minus(credited.fee)?;
        let is_part = !discount.is_negative() && !fee.is_negative();
        is_part.then_some(Self { discount, fee })
    }

    /// Returns the line with these amounts in place of its own.
    fn put_into(self, line: &Line) -> Line {
        let mut line = line.clone();
        let Self { discount, fee } = self;
        line.discount_amount = (!discount.is_zero()).then_some(discount);
        if fee.is_zero() {
            line.extras.remove(FEE_AMOUNT);
        } else {
            line.extras.insert(FEE_AMOUNT.to_owned(), json!(fee));
        }
        line
    }
}

/// Returns the lines of an invoice less those of its credit notes; `None` if a credited line is not a part of a line
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

/// Returns the line less the credited part of its quantity or of its price; `None` if `credited` is neither. A credit
/// note of another system may also credit flat amounts.
fn subtract_part(line: &Line, credited: &Line) -> Option<Line> {
    if !is_same_item(line, credited) {
        return None;
    }
    let flat = FlatAmounts::from(line).minus(FlatAmounts::from(credited))?;
    let line = flat.put_into(line);
    let is_cheaper = credited.unit_price < line.unit_price;
    let is_fewer = credited.quantity < line.quantity;
    if credited.unit_price == line.unit_price && is_fewer {
        let quantity = line.quantity.minus(credited.quantity)?;
        return Some(Line { quantity, ..line });
    }
    if credited.quantity == line.quantity && is_cheaper {
        let unit_price = line.unit_price.minus(credited.unit_price)?;
        return Some(Line { unit_price, ..line });
    }
    None
}

/// Returns for each wanted line the line of the original with the same item; `None` if there is none. Lines with the
/// same quantity and price are matched first, then the others in their order. A line of the original is used again only
/// if no other one is left.
pub fn find_known_lines<'a>(original: &'a [Line], wanted: &[Line]) -> Vec<Option<&'a Line>> {
    let mut unused: Vec<&Line> = original.iter().collect();
    let mut found: Vec<Option<&Line>> = vec![None; wanted.len()];
    let conditions: [fn(&Line, &Line) -> bool; 2] = [is_same_amount, is_named_alike];
    for is_match in conditions {
        for (line, known) in wanted.iter().zip(&mut found) {
            if known.is_none() {
                let at = unused.iter().position(|unused| is_match(unused, line));
                *known = at.map(|at| unused.remove(at));
            }
        }
    }
    for (line, known) in wanted.iter().zip(&mut found) {
        let mut lines = original.iter();
        *known = known.or_else(|| lines.find(|original| is_named_alike(original, line)));
    }
    found
}

fn is_named_alike(one: &Line, other: &Line) -> bool {
    one.item_no == other.item_no && one.item_name == other.item_name
}

fn is_same_amount(one: &Line, other: &Line) -> bool {
    let is_equal = one.quantity == other.quantity && one.unit_price == other.unit_price;
    is_equal && is_named_alike(one, other)
}

/// True if a line has this tax category.
pub fn has_category(lines: &[Line], category: &str) -> bool {
    lines.iter().any(|line| line.tax_category == category)
}

/// Returns the lines that a credit note must credit so that of `left` only `wanted` is left. `None` if `wanted` is not
/// a part of `left`: a line is new, has other terms, or has a higher quantity or price.
pub fn credited_lines(left: &[Line], wanted: &[Line]) -> Option<Vec<Line>> {
    let mut rest: Vec<&Line> = left.iter().collect();
    let mut changed = Vec::new();
    // Unchanged lines are matched first. Otherwise a changed line could be matched with a line that another wanted line
    // keeps.
    for line in wanted {
        let is_same = |left: &&Line| is_unchanged(left, line) && has_same_text(left, line);
        match rest.iter().position(is_same) {
            Some(at) => drop(rest.remove(at)),
            None => changed.push(line),
        }
    }
    let mut credited = Vec::new();
    for line in changed {
        let found =
            (0..rest.len()).find_map(|at| Some((at, crediting_lines(rest.get(at)?, line)?)));
        let (at, difference) = found?;
        rest.remove(at);
        credited.extend(difference);
    }
    credited.extend(rest.into_iter().cloned());
    Some(credited)
}

/// Returns the lines that credit the difference between `line` and `wanted`, which has a smaller quantity or a lower
/// price. The flat discount and fee stay with the part that is left. `None` if `wanted` is not a part of `line`.
fn crediting_lines(line: &Line, wanted: &Line) -> Option<Vec<Line>> {
    let has_same_flat_amounts = FlatAmounts::from(line) == FlatAmounts::from(wanted);
    if !is_same_item(line, wanted) || !has_same_text(line, wanted) || !has_same_flat_amounts {
        return None;
    }
    let fewer = line.quantity.minus(wanted.quantity)?;
    let cheaper = line.unit_price.minus(wanted.unit_price)?;
    if fewer.is_negative() || cheaper.is_negative() {
        return None;
    }
    // The amount of a line is at least zero, even if its discount exceeds it. The parts of such a line do not add up to
    // it.
    let nets = [line, wanted].map(|line| LineTerms::from(line).signed_net());
    if nets.iter().any(|net| net.is_none_or(Amount::is_negative)) {
        return None;
    }
    let bare = FlatAmounts::default().put_into(line);
    let part = |quantity: Amount, unit_price: Amount| Line {
        unit_price,
        quantity,
        ..bare.clone()
    };
    let parts = [part(fewer, line.unit_price), part(wanted.quantity, cheaper)];
    let mut parts = Vec::from(parts);
    parts.retain(|part| !part.quantity.is_zero() && !part.unit_price.is_zero());
    (!parts.is_empty()).then_some(parts)
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

    /// The wanted lines, and the places of the original lines.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [Option<usize>]);

    #[test]
    fn a_wanted_line_is_matched_with_the_line_that_it_was() {
        let original = [
            line("A", "2", "5"),
            line("B", "1", "7"),
            line("A", "3", "5"),
        ];
        let cases: [Case<'_>; 7] = [
            (
                &[("A", "2"), ("B", "1"), ("A", "3")],
                &[Some(0), Some(1), Some(2)],
            ),
            (&[("A", "2"), ("A", "1")], &[Some(0), Some(2)]),
            (&[("A", "1"), ("A", "3")], &[Some(0), Some(2)]),
            (&[("A", "1"), ("A", "2")], &[Some(2), Some(0)]),
            (&[("A", "3")], &[Some(2)]),
            (
                &[("A", "9"), ("A", "9"), ("A", "9")],
                &[Some(0), Some(2), Some(0)],
            ),
            (&[("C", "1")], &[None]),
        ];
        for (wanted, expected) in cases {
            let lines = wanted.iter();
            let lines: Vec<_> = lines.map(|(item, count)| line(item, count, "5")).collect();
            let found = find_known_lines(&original, &lines).into_iter();
            let places: Vec<_> = found
                .map(|known| {
                    let known = known?;
                    original.iter().position(|one| std::ptr::eq(one, known))
                })
                .collect();
            assert_eq!(places, expected, "{wanted:?}");
        }
    }
}
