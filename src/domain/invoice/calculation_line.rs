//! One line of a document whose amounts are computed: what the caller states of it, and what follows.

use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

use crate::domain::invoice::calculation_terms::member;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};

/// What a line states.
pub(super) struct LineInput {
    pub(super) path: String,
    quantity: Decimal,
    price: Price,
    base_quantity: Decimal,
    /// What is taken off and added, as rates in percent and as amounts.
    discount: RateAndAmount,
    fee: RateAndAmount,
    pub(super) category: String,
    pub(super) percent: Amount,
    pub(super) stated_net: Option<Amount>,
    pub(super) stated_tax: Option<Amount>,
}

#[derive(Clone, Copy)]
enum Price {
    BeforeTax(Amount),
    WithTax(Amount),
}

#[derive(Clone, Copy)]
struct RateAndAmount {
    rate: Decimal,
    amount: Decimal,
}

/// What a line comes to.
pub(super) struct LineSums {
    pub(super) net: Amount,
    pub(super) exact_tax: Decimal,
    /// The line's part of the rounded tax of its category.
    pub(super) tax: Amount,
    pub(super) price_before_tax: Option<Amount>,
    pub(super) category: String,
    pub(super) percent: Amount,
    pub(super) stated_tax: Option<Amount>,
}

impl LineInput {
    /// Reads a line. A fault names what is missing to compute it.
    pub(super) fn read(
        line: &Value,
        at: usize,
        only_tax: Option<&str>,
        catalog: &Catalog,
    ) -> Result<Self, Fault> {
        let path = format!("invoice_line.{at}");
        let in_price = |name: &str| member(line.get("price")?, name);
        let Some(quantity) = member(line, "invoiced_quantity").map(Decimal::from) else {
            let name = format!("{path}.invoiced_quantity");
            return Err(Fault::field(name, FieldRule::Required));
        };
        let price = match (in_price("price_amount"), in_price("price_amount_with_tax")) {
            (Some(price), None) => Price::BeforeTax(price),
            (None, Some(price)) => Price::WithTax(price),
            (None, None) => {
                let name = format!("{path}.price.price_amount");
                return Err(Fault::field(name, FieldRule::Required));
            }
            (Some(_), Some(_)) => {
                let name = format!("{path}.price.price_amount_with_tax");
                let sentence = "must not stand beside price_amount: send one of the two";
                return Err(Fault::field(name, FieldRule::other("prohibited", sentence)));
            }
        };
        let base_quantity = in_price("base_quantity").map_or(Decimal::ONE, Decimal::from);
        if base_quantity.is_zero() {
            let rule = FieldRule::Above(Amount::ZERO);
            return Err(Fault::field(format!("{path}.price.base_quantity"), rule));
        }
        let (category, percent) = tax_category(line, &path, only_tax, catalog)?;
        let part = |kind: &str| RateAndAmount {
            rate: member(line, &format!("{kind}_rate")).map_or(Decimal::ZERO, Decimal::from),
            amount: member(line, &format!("{kind}_amount")).map_or(Decimal::ZERO, Decimal::from),
        };
        let input = Self {
            quantity,
            price,
            base_quantity,
            discount: part("discount"),
            fee: part("fee"),
            category,
            percent,
            stated_net: member(line, "line_extension_amount"),
            stated_tax: member(line, "total_tax"),
            path,
        };
        input.check_flat_amounts()?;
        Ok(input)
    }

    /// Refuses flat amounts beside a price with tax: they would have to be with tax too, and the document states them
    /// without.
    fn check_flat_amounts(&self) -> Result<(), Fault> {
        let flat = [
            ("discount_amount", self.discount.amount),
            ("fee_amount", self.fee.amount),
        ];
        let found = flat.into_iter().find(|(_, amount)| !amount.is_zero());
        match (self.price, found) {
            (Price::WithTax(_), Some((name, _))) => {
                let sentence = "must not stand beside price_amount_with_tax: send a rate, or the price before tax";
                let rule = FieldRule::other("prohibited", sentence);
                Err(Fault::field(format!("{}.{name}", self.path), rule))
            }
            _ => Ok(()),
        }
    }

    /// Returns the line with the tax that its price has: quantity × price, less discounts, plus fees.
    fn exact_amount(&self, price: Amount) -> Option<Decimal> {
        let gross = self
            .quantity
            .checked_mul(price.into())?
            .checked_div(self.base_quantity)?;
        let part = |part: RateAndAmount| {
            let rate = gross
                .checked_mul(part.rate)?
                .checked_div(Decimal::ONE_HUNDRED)?;
            rate.checked_add(part.amount)
        };
        let amount = gross
            .checked_sub(part(self.discount)?)?
            .checked_add(part(self.fee)?)?;
        Some(amount.max(Decimal::ZERO))
    }

    /// Returns 1 plus the tax rate.
    fn tax_factor(&self) -> Option<Decimal> {
        Decimal::from(self.percent)
            .checked_div(Decimal::ONE_HUNDRED)?
            .checked_add(Decimal::ONE)
    }

    pub(super) fn exact_net(&self) -> Option<Decimal> {
        match self.price {
            Price::BeforeTax(price) => self.exact_amount(price),
            Price::WithTax(price) => self.exact_amount(price)?.checked_div(self.tax_factor()?),
        }
    }

    /// Returns the price before tax of a line whose price is stated with tax; `None` if it is stated before tax.
    pub(super) fn exact_price_before_tax(&self) -> Option<Decimal> {
        match self.price {
            Price::BeforeTax(_) => None,
            Price::WithTax(price) => Decimal::from(price).checked_div(self.tax_factor()?),
        }
    }

    /// Returns the tax of the line. What a price with tax comes to is kept to the last digit: the tax is what is left
    /// of it after the rounded amount before tax.
    pub(super) fn exact_tax(&self, net: Amount, digits: u32) -> Option<Decimal> {
        match self.price {
            Price::BeforeTax(_) => Decimal::from(net)
                .checked_mul(self.percent.into())?
                .checked_div(Decimal::ONE_HUNDRED),
            Price::WithTax(price) => {
                let whole = self.exact_amount(price)?;
                let whole =
                    whole.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero);
                Some(whole.checked_sub(net.into())?.max(Decimal::ZERO))
            }
        }
    }

    /// Describes how the amount of the line comes about, such as `2 × 500.00 - 10 %`.
    pub(super) fn describe(&self) -> String {
        let (price, tax) = match self.price {
            Price::BeforeTax(price) => (price, String::new()),
            Price::WithTax(price) => (price, format!(" without {} % tax", self.percent)),
        };
        let mut text = format!(
            "{} × {}",
            self.quantity.normalize(),
            price.to_grouped_text()
        );
        if self.base_quantity != Decimal::ONE {
            // Writing into a string never fails.
            let _ = write!(text, " / {}", self.base_quantity.normalize());
        }
        for (sign, part) in [('-', self.discount), ('+', self.fee)] {
            if !part.rate.is_zero() {
                let _ = write!(text, " {sign} {} %", part.rate.normalize());
            }
            if !part.amount.is_zero() {
                let _ = write!(text, " {sign} {}", part.amount.normalize());
            }
        }
        text + &tax
    }
}

/// Returns the tax category of a line, and its percent.
fn tax_category(
    line: &Value,
    path: &str,
    only_tax: Option<&str>,
    catalog: &Catalog,
) -> Result<(String, Amount), Fault> {
    let own = line.get("tax_category").and_then(Value::as_str);
    let own = own.map(str::trim).filter(|code| !code.is_empty());
    let name = format!("{path}.tax_category");
    let Some(code) = own.or(only_tax) else {
        let rule = FieldRule::other("required", "is required to compute the amounts");
        return Err(Fault::field(name, rule));
    };
    match catalog.has(ReferenceList::TaxCategories, code) {
        Some(true) => Ok((code.to_owned(), catalog.tax_percent(code))),
        Some(false) => {
            let list = ReferenceList::TaxCategories.as_str();
            Err(Fault::field(name, FieldRule::Listed { list, meant: None }))
        }
        None => {
            let sentence = "cannot be computed with: the list of tax categories has not been fetched yet, so send the amounts";
            Err(Fault::field(name, FieldRule::other("unlisted", sentence)))
        }
    }
}
