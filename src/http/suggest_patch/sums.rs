//! Adds up the lines and taxes of a body. An amount is proven if other amounts of the body give the same value.

use serde_json::Value;

use crate::domain::money::Amount;

/// Returns the amount at a JSON Pointer; `None` if the value there is missing, is not a number or is negative.
pub(super) fn amount_at(value: &Value, pointer: &str) -> Option<Amount> {
    match value.pointer(pointer)? {
        Value::Number(number) => Amount::parse(&number.to_string())
            .ok()
            .filter(|amount| !amount.is_negative()),
        _ => None,
    }
}

pub(super) fn array_at<'b>(value: &'b Value, pointer: &str) -> &'b [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The sum of the amounts of all lines of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineTotals {
    pub(super) sum: Amount,
    /// True if each line's amount equals the line's quantity times its price.
    pub(super) are_proven: bool,
}

impl LineTotals {
    /// Adds up the lines. Returns `None` if there are no lines or a line has no valid amount.
    pub(super) fn from_body(body: &Value) -> Option<Self> {
        let lines = array_at(body, "/invoice_line");
        let amounts: Option<Vec<Amount>> = lines
            .iter()
            .map(|line| amount_at(line, "/line_extension_amount"))
            .collect();
        let amounts = amounts.filter(|amounts| !amounts.is_empty())?;
        let are_proven = lines
            .iter()
            .all(|line| is_quantity_times_price(line).unwrap_or(false));
        Some(Self {
            sum: Amount::sum(amounts)?,
            are_proven,
        })
    }
}

/// Returns true if a line's amount is its quantity times its price. Returns false for a line with a discount or a fee,
/// because the order in which they apply is unknown, and `None` if an amount is missing or invalid.
fn is_quantity_times_price(line: &Value) -> Option<bool> {
    let reductions = [
        "/discount_rate",
        "/discount_amount",
        "/fee_rate",
        "/fee_amount",
    ];
    if reductions
        .iter()
        .any(|name| line.pointer(name).is_some_and(|value| !value.is_null()))
    {
        return Some(false);
    }
    let price =
        amount_at(line, "/invoiced_quantity")?.times(amount_at(line, "/price/price_amount")?)?;
    let stated = amount_at(line, "/line_extension_amount")?
        .times(amount_at(line, "/price/base_quantity")?)?;
    Some(price.is_within_tolerance(stated))
}

/// One part of a tax total: the tax of one tax category (`tax_subtotal`).
#[derive(Debug, Clone, Copy)]
pub(super) struct TaxSubtotal {
    pub(super) base: Amount,
    pub(super) stated: Amount,
    /// The tax calculated from the stated percent and the stated base, rounded to the digits of the currency.
    pub(super) due: Amount,
}

impl TaxSubtotal {
    fn from_part(part: &Value, digits: u32) -> Option<Self> {
        let base = amount_at(part, "/taxable_amount")?;
        let due = amount_at(part, "/tax_category/percent")?
            .percent_share(base)?
            .round_half_up(digits);
        Some(Self {
            base,
            stated: amount_at(part, "/tax_amount")?,
            due,
        })
    }

    pub(super) fn is_proven(&self) -> bool {
        self.stated.is_within_tolerance(self.due)
    }
}

/// Returns the parts of one tax total. Returns `None` if the total has no parts or one part is incomplete.
pub(super) fn tax_subtotals(total: &Value, digits: u32) -> Option<Vec<TaxSubtotal>> {
    let parts: Option<Vec<TaxSubtotal>> = array_at(total, "/tax_subtotal")
        .iter()
        .map(|part| TaxSubtotal::from_part(part, digits))
        .collect();
    parts.filter(|parts| !parts.is_empty())
}
