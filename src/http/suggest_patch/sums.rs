//! What the lines and the taxes of a body come to, and whether they are proven: an amount is, where it follows from
//! others that were sent beside it.

use serde_json::Value;

use crate::domain::money::Amount;

/// The amount at a pointer, where it is one.
pub(super) fn amount(value: &Value, pointer: &str) -> Option<Amount> {
    match value.pointer(pointer)? {
        Value::Number(number) => {
            Amount::parse(&number.to_string()).ok().filter(|amount| !amount.is_negative())
        }
        _ => None,
    }
}

pub(super) fn items<'b>(value: &'b Value, pointer: &str) -> &'b [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The lines of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineTotals {
    pub(super) sum: Amount,
    /// Whether each is its quantity times its price.
    pub(super) are_proven: bool,
}

impl LineTotals {
    /// None where a line has no amount.
    pub(super) fn of(body: &Value) -> Option<Self> {
        let lines = items(body, "/invoice_line");
        let amounts: Option<Vec<Amount>> =
            lines.iter().map(|line| amount(line, "/line_extension_amount")).collect();
        let amounts = amounts.filter(|amounts| !amounts.is_empty())?;
        let are_proven = lines.iter().all(|line| is_product(line).unwrap_or(false));
        Some(Self { sum: Amount::sum(amounts)?, are_proven })
    }
}

/// Without discounts and fees, whose order is not said.
fn is_product(line: &Value) -> Option<bool> {
    let reductions = ["/discount_rate", "/discount_amount", "/fee_rate", "/fee_amount"];
    if reductions.iter().any(|name| line.pointer(name).is_some_and(|value| !value.is_null())) {
        return Some(false);
    }
    let price = amount(line, "/invoiced_quantity")?.times(amount(line, "/price/price_amount")?)?;
    let stated = amount(line, "/line_extension_amount")?.times(amount(line, "/price/base_quantity")?)?;
    Some(price.about(stated))
}

/// A part of a tax.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaxPart {
    pub(super) base: Amount,
    pub(super) stated: Amount,
    /// The percent of the base, as the document states them.
    pub(super) due: Amount,
}

impl TaxPart {
    fn of(part: &Value, digits: u32) -> Option<Self> {
        let base = amount(part, "/taxable_amount")?;
        let due = amount(part, "/tax_category/percent")?.percent_of(base)?.round_half_up(digits);
        Some(Self { base, stated: amount(part, "/tax_amount")?, due })
    }

    pub(super) fn is_proven(&self) -> bool {
        self.stated.about(self.due)
    }
}

/// The parts of one tax total; none where one of them cannot be read.
pub(super) fn parts(total: &Value, digits: u32) -> Option<Vec<TaxPart>> {
    let parts: Option<Vec<TaxPart>> =
        items(total, "/tax_subtotal").iter().map(|part| TaxPart::of(part, digits)).collect();
    parts.filter(|parts| !parts.is_empty())
}
