//! The lines of a signed invoice: those that its credit notes have left, and those that a new credit note must credit
//! so that the wanted lines are left. A flat discount or fee belongs to the whole line, so a part of the line has none.
//! A line is compared only with lines that sell the same item, because an invoice and each of its credit notes may have
//! ten thousand lines.

use std::collections::HashMap;
use std::hash::Hash;

use serde_json::json;

use crate::domain::invoice::Line;
use crate::domain::invoice::line_terms::LineTerms;
use crate::domain::kernel::codes::ItemType;
use crate::domain::money::Amount;

/// The field of a line that holds its flat fee.
const FEE_AMOUNT: &str = "fee_amount";
/// The extra fields of a line that help to identify its item. Its amounts and its description do not identify it.
const ITEM_EXTRAS: [&str; 2] = ["hsn_code", "isic_code"];

/// The item that a line sells, and its terms. Quantity, price, flat amounts and description are not among them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ItemKey<'a> {
    texts: [Option<&'a str>; 6],
    item_type: ItemType,
    rates: [Amount; 3],
    codes: [Option<String>; 2],
}

impl<'a> From<&'a Line> for ItemKey<'a> {
    fn from(line: &'a Line) -> Self {
        let terms = LineTerms::from(line);
        Self {
            texts: [
                Some(line.item_name.as_str()),
                line.item_no.as_deref(),
                Some(line.price_unit.as_str()),
                Some(line.tax_category.as_str()),
                line.product_category.as_deref(),
                line.service_category.as_deref(),
            ],
            item_type: line.item_type,
            rates: [terms.base_quantity, terms.discount.rate, terms.fee.rate],
            codes: ITEM_EXTRAS.map(|name| extra_text(line, name)),
        }
    }
}

/// Returns the key of a line together with its description. A wanted line must equal a line of the invoice in both. A
/// line of a credit note must equal it in the key only.
fn item_key_and_description(line: &Line) -> (ItemKey<'_>, Option<String>) {
    (ItemKey::from(line), extra_text(line, "description"))
}

fn extra_text(line: &Line, name: &str) -> Option<String> {
    line.extras.get(name).map(ToString::to_string)
}

/// Returns for each key the indexes of the lines that have it, in ascending order.
fn indexes_by_key<'a, K: Eq + Hash>(
    lines: &'a [Line],
    key: impl Fn(&'a Line) -> K,
) -> HashMap<K, Vec<usize>> {
    let mut places: HashMap<K, Vec<usize>> = HashMap::new();
    for (place, line) in lines.iter().enumerate() {
        places.entry(key(line)).or_default().push(place);
    }
    places
}

/// Returns the indexes that are left in the map, in ascending order.
fn remaining_indexes<K>(places: HashMap<K, Vec<usize>>) -> Vec<usize> {
    let mut left: Vec<usize> = places.into_values().flatten().collect();
    left.sort_unstable();
    left
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
    fn line_with_amounts(self, line: &Line) -> Line {
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

/// The amounts in which two lines of the same item may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineAmounts {
    quantity: Amount,
    unit_price: Amount,
    flat: FlatAmounts,
}

impl From<&Line> for LineAmounts {
    fn from(line: &Line) -> Self {
        Self {
            quantity: line.quantity,
            unit_price: line.unit_price,
            flat: FlatAmounts::from(line),
        }
    }
}

impl LineAmounts {
    /// Returns what is left of these amounts if `credited` is a part of the quantity at the same price, or a part of
    /// the price for the same quantity; `None` if it is neither. A credit note of another system may also credit flat
    /// amounts.
    fn minus_credited_part(self, credited: Self) -> Option<Self> {
        let is_fewer = credited.unit_price == self.unit_price && credited.quantity < self.quantity;
        let is_cheaper =
            credited.quantity == self.quantity && credited.unit_price < self.unit_price;
        if !is_fewer && !is_cheaper {
            return None;
        }
        let flat = self.flat.minus(credited.flat)?;
        if is_fewer {
            let quantity = self.quantity.minus(credited.quantity)?;
            return Some(Self {
                quantity,
                flat,
                ..self
            });
        }
        let unit_price = self.unit_price.minus(credited.unit_price)?;
        Some(Self {
            unit_price,
            flat,
            ..self
        })
    }

    /// Returns the line with these amounts; unchanged if it already has them.
    fn line_with_amounts(self, line: &Line) -> Line {
        if self == Self::from(line) {
            return line.clone();
        }
        Line {
            quantity: self.quantity,
            unit_price: self.unit_price,
            ..self.flat.line_with_amounts(line)
        }
    }
}

/// Returns the lines of an invoice less those of its credit notes; `None` if a credited line is not a part of any line
/// that the credit notes before it have left.
pub fn remaining_lines<'a>(
    original: &[Line],
    credited: impl IntoIterator<Item = &'a Line>,
) -> Option<Vec<Line>> {
    let mut left: Vec<_> = original.iter().map(LineAmounts::from).collect();
    let mut places = indexes_by_key(original, ItemKey::from);
    for line in credited {
        let credited = LineAmounts::from(line);
        let same_item = places.get_mut(&ItemKey::from(line))?;
        let at = same_item
            .iter()
            .position(|place| left.get(*place) == Some(&credited));
        if let Some(at) = at {
            same_item.remove(at);
            continue;
        }
        let (place, less) = same_item.iter().find_map(|place| {
            let less = left.get(*place)?.minus_credited_part(credited)?;
            Some((*place, less))
        })?;
        *left.get_mut(place)? = less;
    }
    let kept = remaining_indexes(places).into_iter();
    let kept =
        kept.filter_map(|place| Some(left.get(place)?.line_with_amounts(original.get(place)?)));
    Some(kept.collect())
}

/// Returns for each wanted line the line of the original with the same item; `None` if there is none. Lines with the
/// same quantity and price are matched first, then the others in their order. A line of the original is used again only
/// if no other one is left.
pub fn match_original_lines<'a>(original: &'a [Line], wanted: &[Line]) -> Vec<Option<&'a Line>> {
    let all = indexes_by_key(original, item_number_and_name);
    let mut unused = all.clone();
    let mut found: Vec<Option<&Line>> = vec![None; wanted.len()];
    for (line, known) in wanted.iter().zip(&mut found) {
        let Some(places) = unused.get_mut(&item_number_and_name(line)) else {
            continue;
        };
        let at = places.iter().position(|place| {
            let unused = original.get(*place);
            unused.is_some_and(|unused| has_same_quantity_and_price(unused, line))
        });
        *known = at.and_then(|at| original.get(places.remove(at)));
    }
    for (line, known) in wanted.iter().zip(&mut found) {
        if known.is_none() {
            let places = unused.get_mut(&item_number_and_name(line));
            let places = places.filter(|places| !places.is_empty());
            *known = places.and_then(|places| original.get(places.remove(0)));
        }
    }
    for (line, known) in wanted.iter().zip(&mut found) {
        let places = all.get(&item_number_and_name(line));
        let first = places.and_then(|places| original.get(*places.first()?));
        *known = known.or(first);
    }
    found
}

/// Returns the number and the name of the item of a line.
fn item_number_and_name(line: &Line) -> (Option<&str>, &str) {
    (line.item_no.as_deref(), line.item_name.as_str())
}

fn has_same_quantity_and_price(first: &Line, second: &Line) -> bool {
    first.quantity == second.quantity && first.unit_price == second.unit_price
}

/// True if at least one of the lines has this tax category.
pub fn has_category(lines: &[Line], category: &str) -> bool {
    lines.iter().any(|line| line.tax_category == category)
}

/// A line of an invoice or of its correction, with the amounts by which it is compared with other lines.
struct ComparedLine<'a> {
    line: &'a Line,
    amounts: LineAmounts,
    /// True if the discount is larger than quantity × price plus the fee. The amount of such a line is zero, so the
    /// amounts of its parts would not add up to it.
    is_negative: bool,
}

impl<'a> From<&'a Line> for ComparedLine<'a> {
    fn from(line: &'a Line) -> Self {
        let net = LineTerms::from(line).net_without_minimum();
        Self {
            line,
            amounts: LineAmounts::from(line),
            is_negative: net.is_none_or(Amount::is_negative),
        }
    }
}

/// Returns the lines that a credit note must credit to reduce `left` to `wanted`. `None` if `wanted` is not a part of
/// `left`: a line is new, has other terms, or has a higher quantity or price.
pub fn lines_to_credit(left: &[Line], wanted: &[Line]) -> Option<Vec<Line>> {
    let rest: Vec<_> = left.iter().map(ComparedLine::from).collect();
    let mut places = indexes_by_key(left, item_key_and_description);
    let mut changed = Vec::new();
    // Unchanged lines are matched first. Otherwise a changed line could be matched with a line that another wanted line
    // keeps.
    for line in wanted {
        let wanted = ComparedLine::from(line);
        let same_item = places.get_mut(&item_key_and_description(line))?;
        let at = same_item.iter().position(|place| {
            let left = rest.get(*place);
            left.is_some_and(|left| left.amounts == wanted.amounts)
        });
        if let Some(at) = at {
            same_item.remove(at);
        } else {
            changed.push(wanted);
        }
    }
    let mut credited = Vec::new();
    for wanted in changed {
        let same_item = places.get_mut(&item_key_and_description(wanted.line))?;
        let (at, difference) = same_item.iter().enumerate().find_map(|(at, place)| {
            let difference = lines_crediting_difference(rest.get(*place)?, &wanted)?;
            Some((at, difference))
        })?;
        same_item.remove(at);
        credited.extend(difference);
    }
    let kept = remaining_indexes(places).into_iter();
    credited.extend(kept.filter_map(|place| left.get(place)).cloned());
    Some(credited)
}

/// Returns the lines that credit the difference between a line and the wanted line of the same item, which has a
/// smaller quantity or a lower price. The flat discount and fee stay with the part that is left. `None` if `wanted` is
/// not a part of `left`; no line is copied to find this out, because many pairs of lines may be tried.
fn lines_crediting_difference(
    left: &ComparedLine<'_>,
    wanted: &ComparedLine<'_>,
) -> Option<Vec<Line>> {
    let line = left.line;
    let amounts = wanted.amounts;
    if left.amounts.flat != amounts.flat || left.is_negative || wanted.is_negative {
        return None;
    }
    let fewer = line.quantity.minus(amounts.quantity)?;
    let cheaper = line.unit_price.minus(amounts.unit_price)?;
    if fewer.is_negative() || cheaper.is_negative() {
        return None;
    }
    let mut parts = vec![(fewer, line.unit_price), (amounts.quantity, cheaper)];
    parts.retain(|(quantity, unit_price)| !quantity.is_zero() && !unit_price.is_zero());
    if parts.is_empty() {
        return None;
    }
    let bare = FlatAmounts::default().line_with_amounts(line);
    let lines = parts.into_iter().map(|(quantity, unit_price)| Line {
        unit_price,
        quantity,
        ..bare.clone()
    });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

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
            let found = texts(lines_to_credit(&original, wanted));
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
            assert_eq!(texts(lines_to_credit(&original, &[wanted])), None);
        }
    }

    #[test]
    fn what_credit_notes_leave_is_what_was_wanted_of_them() {
        let original = [line("A", "10", "5"), line("B", "1", "7")];
        let wanted = [line("A", "6", "3")];
        let credited = lines_to_credit(&original, &wanted).unwrap();
        let left = remaining_lines(&original, &credited);
        assert_eq!(texts(left), texts(Some(wanted.to_vec())));
        let strange = [line("C", "1", "7")];
        assert_eq!(remaining_lines(&original, &strange), None);
    }

    /// The first case has as many lines as an invoice may have, which took minutes; the second one has one item only.
    #[test]
    fn many_lines_are_compared_in_any_order() {
        let items: Vec<_> = (1..=10_000)
            .map(|at| line(&at.to_string(), "3", "5"))
            .collect();
        let counts: Vec<_> = (1..=300)
            .map(|at| line("A", &(2 * at).to_string(), "5"))
            .collect();
        let begun = Instant::now();
        for original in [items, counts] {
            let mut backwards = original.clone();
            backwards.reverse();
            let mut fewer = backwards.clone();
            for line in &mut fewer {
                line.quantity = line.quantity.minus(1.into()).unwrap();
            }
            assert_eq!(remaining_lines(&original, &backwards), Some(Vec::new()));
            assert_eq!(lines_to_credit(&original, &backwards), Some(Vec::new()));
            let credited = lines_to_credit(&original, &fewer).unwrap();
            assert_eq!(credited.len(), original.len());
            assert!(credited.iter().all(|line| line.quantity == 1.into()));
            let known = match_original_lines(&original, &backwards);
            assert!(known.into_iter().eq(original.iter().rev().map(Some)));
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
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
            let found = match_original_lines(&original, &lines).into_iter();
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
