//! Moves the discounts and fees of a document to its lines, for formats that allow them only on lines. The sums do not
//! change.

use rust_decimal::{Decimal, RoundingStrategy};
use trade_document::{Charge, Line, Tax, TradeDocument};

use crate::codes::currency_digits;
use crate::fault::{Cause, Change, Fault};
use crate::read::net_charges;

/// The maximum number of decimal digits of a price (spec.md, "Limits" of the service).
const PRICE_DIGITS: u32 = 6;
/// The maximum work and memory, as one weight, for dividing the discounts and fees of a document among its lines. Each
/// part weighs `PART_WEIGHT` and the bytes of its reason, which are copied. Without the limit, a file of a few MB could
/// take all memory: one with thousands of lines and fees, or with one fee that has a very long reason.
const WEIGHT_MAX: usize = 64 << 20;
const PART_WEIGHT: usize = 200;
/// The weight of comparing the tax of a discount or fee with that of one line.
const COMPARISON_WEIGHT: usize = 8;

/// A document without discounts and fees of its own, and a description of each change that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatedDocument {
    pub document: TradeDocument,
    pub changes: Vec<Change>,
}

/// Divides each discount and fee of the document among the lines that have its tax, in proportion to their amounts. The
/// parts are rounded so that they add up exactly (largest remainder method). A discount or fee that names no tax is
/// divided among all lines. A fee becomes a line of its own if no line has its tax. Fails if a discount is larger than
/// its lines.
pub fn allocate_charges(document: &TradeDocument) -> Result<AllocatedDocument, Vec<Fault>> {
    let mut document = document.clone();
    let mut changes = Vec::new();
    let mut faults = Vec::new();
    let mut of_document = std::mem::take(&mut document.charges);
    // Fees come first: they raise the amounts of the lines, so that a larger discount fits into them.
    of_document.sort_by_key(|charge| !charge.is_fee);
    let mut room = WEIGHT_MAX;
    for charge in of_document {
        let Some(left) = room.checked_sub(allocation_weight(&document, &charge)) else {
            let sentence = "The discounts and fees of the document are too many, or their reasons too long, to be \
                divided among its lines.";
            faults.push(Fault {
                cause: Cause::Allocation,
                path: "/".to_owned(),
                sentence: sentence.to_owned(),
            });
            break;
        };
        room = left;
        match allocate_charge(&mut document, &charge) {
            Ok(sentence) => {
                changes.push(Change {
                    cause: Cause::Allocation,
                    path: "/".to_owned(),
                    sentence,
                });
            }
            Err(sentence) => {
                faults.push(Fault {
                    cause: Cause::Allocation,
                    path: "/".to_owned(),
                    sentence,
                });
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let amounts = document.lines.iter().map(|line| line.amount);
    document.totals.lines = amounts.sum();
    Ok(AllocatedDocument { document, changes })
}

/// Returns the weight of dividing a discount or fee among its lines.
fn allocation_weight(document: &TradeDocument, charge: &Charge) -> usize {
    let lines = document.lines.iter();
    let parts = lines.filter(|line| can_share_charge(line, charge)).count();
    let reason = charge.reason.as_ref().map_or(0, String::len);
    document.lines.len() * COMPARISON_WEIGHT + parts * (PART_WEIGHT + reason)
}

/// True if the line may get a part of this discount or fee.
fn can_share_charge(line: &Line, charge: &Charge) -> bool {
    let tax = charge.tax.as_ref();
    !line.amount.is_zero()
        && tax.is_none_or(|tax| tax.code_and_percent() == line.tax.code_and_percent())
}

fn allocate_charge(document: &mut TradeDocument, charge: &Charge) -> Result<String, String> {
    let word = if charge.is_fee { "fee" } else { "discount" };
    let reason = charge.reason.clone().unwrap_or_else(|| word.to_owned());
    let mut lines: Vec<_> = document
        .lines
        .iter_mut()
        .filter(|line| can_share_charge(line, charge))
        .collect();
    let sum: Decimal = lines.iter().map(|line| line.amount).sum();
    if lines.is_empty() {
        return match (&charge.tax, charge.is_fee) {
            (Some(tax), true) => {
                document.lines.push(fee_line(&reason, charge.amount, tax));
                Ok(format!(
                    "The fee of {} ({reason}) became a line of its own.",
                    charge.amount
                ))
            }
            _ => Err(format!(
                "The {word} of {} ({reason}) has a tax that no line has.",
                charge.amount
            )),
        };
    }
    if !charge.is_fee && charge.amount > sum {
        return Err(format!(
            "The discount of {} ({reason}) is more than the {sum} of the lines of its tax.",
            charge.amount
        ));
    }
    let weights: Vec<_> = lines.iter().map(|line| line.amount).collect();
    let digits = weights
        .iter()
        .chain([&charge.amount])
        .map(|amount| amount.normalize().scale());
    let digits = digits.fold(currency_digits(&document.currency), u32::max);
    let shares = divide_amount(charge.amount, &weights, digits).ok_or_else(|| {
        format!(
            "The {word} of {} is too large to be divided.",
            charge.amount
        )
    })?;
    let count = shares.iter().filter(|share| !share.is_zero()).count();
    for (line, share) in lines.iter_mut().zip(shares) {
        if share.is_zero() {
            continue;
        }
        line.amount += if charge.is_fee { share } else { -share };
        line.charges.push(Charge {
            is_fee: charge.is_fee,
            amount: share,
            rate: None,
            reason: charge.reason.clone(),
            tax: None,
        });
    }
    Ok(format!(
        "The {word} of {} ({reason}) was divided among {count} lines.",
        charge.amount
    ))
}

fn fee_line(name: &str, amount: Decimal, tax: &Tax) -> Line {
    Line {
        name: name.to_owned(),
        description: None,
        item_number: None,
        item_kind: trade_document::ItemKind::Service,
        quantity: Decimal::ONE,
        unit: trade_document::CodeAndName {
            code: crate::codes::EACH.to_owned(),
            name: String::new(),
        },
        price: amount,
        base_quantity: Decimal::ONE,
        charges: Vec::new(),
        amount,
        tax: tax.clone(),
        classification: None,
    }
}

/// Divides an amount in proportion to positive weights. The amount, the weights and the parts have this many decimal
/// digits, and the parts add up to the amount exactly: they are rounded down, and the missing units go to those with
/// the largest remainders, the first of equal ones. If the amount does not exceed the sum of the weights, no part
/// exceeds its weight. `None` if the numbers are too large.
fn divide_amount(amount: Decimal, weights: &[Decimal], digits: u32) -> Option<Vec<Decimal>> {
    let sum: Decimal = weights.iter().sum();
    let unit = Decimal::new(1, digits);
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let exact = amount.checked_mul(*weight)?.checked_div(sum)?;
        let part = exact.round_dp_with_strategy(digits, RoundingStrategy::ToZero);
        remainders.push((exact - part, index));
        parts.push(part);
    }
    remainders.sort_by_key(|(remainder, _)| std::cmp::Reverse(*remainder));
    let mut left = amount - parts.iter().sum::<Decimal>();
    for (_, index) in remainders {
        if left < unit {
            break;
        }
        parts[index] += unit;
        left -= unit;
    }
    left.is_zero().then_some(parts)
}

/// Rewrites each line so that its amount is exactly quantity × price − at most one discount. Fees, base quantities and
/// rounded fractions are folded into the price. If the price has to rise, it becomes the next higher price with six
/// decimal digits.
pub fn fold_fees_into_prices(document: &TradeDocument) -> AllocatedDocument {
    let mut document = document.clone();
    let mut changes = Vec::new();
    for (index, line) in document.lines.iter_mut().enumerate() {
        if is_simple_line(line) {
            continue;
        }
        let before = line.price;
        let reasons: Vec<_> = line
            .charges
            .iter()
            .filter_map(|charge| charge.reason.clone())
            .collect();
        simplify_line(line);
        let sentence = format!(
            "Line {}: price {} became {} and the discount {}; the amount {} stays.",
            index + 1,
            before.normalize(),
            line.price.normalize(),
            net_charges(&line.charges).abs(),
            line.amount
        );
        if let (Some(charge), false) = (line.charges.first_mut(), reasons.is_empty()) {
            charge.reason = Some(reasons.join(", "));
        }
        changes.push(Change {
            cause: Cause::Price,
            path: "/".to_owned(),
            sentence,
        });
    }
    AllocatedDocument { document, changes }
}

/// True if the amount of the line is exactly quantity × price − at most one discount.
fn is_simple_line(line: &Line) -> bool {
    let has_simple_charges = match &*line.charges {
        [] => true,
        [charge] => !charge.is_fee,
        _ => false,
    };
    let product = line.quantity.checked_mul(line.price);
    line.base_quantity == Decimal::ONE
        && has_simple_charges
        && product.is_some_and(|product| product + net_charges(&line.charges) == line.amount)
}

fn simplify_line(line: &mut Line) {
    let price = price_covering_amount(line).unwrap_or_else(|| {
        line.quantity = Decimal::ONE;
        line.amount
    });
    let discount = line.quantity * price - line.amount;
    line.price = price.normalize();
    line.base_quantity = Decimal::ONE;
    line.charges.clear();
    if !discount.is_zero() {
        line.charges.push(Charge {
            is_fee: false,
            amount: discount.normalize(),
            rate: None,
            reason: None,
            tax: None,
        });
    }
}

/// Returns a price with six decimal digits at which quantity × price is at least the amount of the line: the present
/// price if it suffices, otherwise the lowest possible one. `None` if there is none, or if the discount that makes up
/// for the difference would have more than six decimal digits.
fn price_covering_amount(line: &Line) -> Option<Decimal> {
    let round_up =
        |value: Decimal| value.round_dp_with_strategy(PRICE_DIGITS, RoundingStrategy::AwayFromZero);
    let present = round_up(line.price.checked_div(line.base_quantity)?);
    let lowest = round_up(line.amount.checked_div(line.quantity)?);
    let discount = line
        .quantity
        .checked_mul(present.max(lowest))?
        .checked_sub(line.amount)?;
    let is_exact = discount.normalize().scale() <= PRICE_DIGITS;
    is_exact.then(|| present.max(lowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide_texts(amount: &str, weights: &[&str], digits: u32) -> Vec<String> {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        let weights: Vec<_> = weights.iter().map(|weight| decimal(weight)).collect();
        let parts = divide_amount(decimal(amount), &weights, digits).unwrap();
        parts
            .iter()
            .map(|part| part.normalize().to_string())
            .collect()
    }

    #[test]
    fn the_largest_remainders_get_what_rounding_leaves() {
        for (amount, weights, digits, parts) in [
            ("10", &["1", "1", "1"][..], 2, &["3.34", "3.33", "3.33"][..]),
            ("10", &["1", "1", "4"], 2, &["1.67", "1.67", "6.66"]),
            ("100", &["7", "2", "1"], 0, &["70", "20", "10"]),
            ("0.02", &["5", "3", "1"], 2, &["0.01", "0.01", "0"]),
            ("1", &["0.005", "0.995"], 3, &["0.005", "0.995"]),
            ("7", &["7"], 2, &["7"]),
        ] {
            assert_eq!(divide_texts(amount, weights, digits), parts);
        }
    }

    #[test]
    fn numbers_beyond_the_range_are_not_divided() {
        let largest = Decimal::MAX;
        assert_eq!(
            divide_amount(largest, &[Decimal::TEN, Decimal::TEN], 2),
            None
        );
    }
}
