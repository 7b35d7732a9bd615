//! One line of a document whose amounts are computed: the values that the caller states, and the amounts that follow.

use std::fmt::Write as _;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::domain::invoice::calculation_terms::{amount_member, is_stated, read_amount};
use crate::domain::invoice::line_terms::{LineTerms, RateAndAmount};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};

/// The values that the caller states for a line.
pub(super) struct LineInput {
    pub(super) path: String,
    terms: LineTerms,
    /// True if the price in `terms` includes tax, so that the amount of the line includes it, too.
    is_with_tax: bool,
    pub(super) category: String,
    pub(super) percent: Amount,
    pub(super) stated_net: Option<Amount>,
    pub(super) stated_tax: Option<Amount>,
}

/// The amounts of a line.
pub(super) struct LineSums {
    pub(super) net: Amount,
    pub(super) tax_before_rounding: Decimal,
    /// The line's part of the rounded tax of its category.
    pub(super) tax: Amount,
    pub(super) price_before_tax: Option<Amount>,
    pub(super) category: String,
    pub(super) percent: Amount,
    pub(super) stated_tax: Option<Amount>,
}

impl LineInput {
    /// Reads a line. A fault names the value that is missing to compute the line.
    pub(super) fn read(
        line: &Value,
        at: usize,
        only_tax: Option<&str>,
        catalog: &Catalog,
    ) -> Result<Self, Fault> {
        let path = format!("invoice_line.{at}");
        let Some(quantity) = amount_member(line, "invoiced_quantity") else {
            let name = format!("{path}.invoiced_quantity");
            return Err(Fault::field(name, FieldRule::Required));
        };
        let price = StatedPrice::read(line, &path)?;
        let base_quantity = line
            .get("price")
            .and_then(|price| amount_member(price, "base_quantity"))
            .unwrap_or(1.into());
        if base_quantity.is_zero() {
            let rule = FieldRule::Above(Amount::ZERO);
            return Err(Fault::field(format!("{path}.price.base_quantity"), rule));
        }
        let (category, percent) = tax_category(line, &path, only_tax, catalog)?;
        let part = |kind: &str| RateAndAmount {
            rate: amount_member(line, &format!("{kind}_rate")).unwrap_or_default(),
            amount: amount_member(line, &format!("{kind}_amount")).unwrap_or_default(),
        };
        let input = Self {
            terms: LineTerms {
                quantity,
                price: price.amount,
                base_quantity,
                discount: part("discount"),
                fee: part("fee"),
            },
            is_with_tax: price.is_with_tax,
            category,
            percent,
            stated_net: amount_member(line, "line_extension_amount"),
            stated_tax: amount_member(line, "total_tax"),
            path,
        };
        input.check_flat_amounts()?;
        Ok(input)
    }

    /// Refuses flat amounts together with a price that includes tax: the document states flat amounts without tax, so
    /// the two cannot be added.
    fn check_flat_amounts(&self) -> Result<(), Fault> {
        let flat = [
            ("discount_amount", self.terms.discount.amount),
            ("fee_amount", self.terms.fee.amount),
        ];
        let found = flat.into_iter().find(|(_, amount)| !amount.is_zero());
        match found {
            Some((name, _)) if self.is_with_tax => {
                let sentence = "must not stand beside price_amount_with_tax: send a rate, or the price before tax";
                let rule = FieldRule::other("prohibited", sentence);
                Err(Fault::field(format!("{}.{name}", self.path), rule))
            }
            _ => Ok(()),
        }
    }

    /// Returns 1 plus the tax rate.
    fn tax_factor(&self) -> Option<Decimal> {
        Decimal::from(self.percent)
            .checked_div(Decimal::ONE_HUNDRED)?
            .checked_add(Decimal::ONE)
    }

    pub(super) fn exact_net(&self) -> Option<Decimal> {
        let net = Decimal::from(self.terms.net()?);
        if self.is_with_tax {
            net.checked_div(self.tax_factor()?)
        } else {
            Some(net)
        }
    }

    /// Returns the price before tax if the line states a price with tax, otherwise `None`.
    pub(super) fn exact_price_before_tax(&self) -> Option<Decimal> {
        let price = self.is_with_tax.then_some(self.terms.price)?;
        Decimal::from(price).checked_div(self.tax_factor()?)
    }

    /// Returns the unrounded tax of a line whose rounded amount before tax is `net`. If the price includes tax, the tax
    /// is the rest of the amount with tax, so that amount and tax add up to what the caller stated.
    pub(super) fn tax_before_rounding(&self, net: Amount, digits: u32) -> Option<Decimal> {
        if !self.is_with_tax {
            return Decimal::from(net)
                .checked_mul(self.percent.into())?
                .checked_div(Decimal::ONE_HUNDRED);
        }
        let whole = self.terms.net()?.round_half_up(digits);
        let tax = Decimal::from(whole).checked_sub(net.into())?;
        Some(tax.max(Decimal::ZERO))
    }

    /// Describes how the amount of the line is computed, such as `2 × 500.00 - 10 %`.
    pub(super) fn computation_text(&self) -> String {
        let terms = &self.terms;
        let plain = |amount: Amount| Decimal::from(amount).normalize();
        let mut text = format!(
            "{} × {}",
            plain(terms.quantity),
            terms.price.to_grouped_text()
        );
        if terms.base_quantity != 1.into() {
            // Writing into a string never fails.
            let _ = write!(text, " / {}", plain(terms.base_quantity));
        }
        for (sign, part) in [('-', terms.discount), ('+', terms.fee)] {
            if !part.rate.is_zero() {
                let _ = write!(text, " {sign} {} %", plain(part.rate));
            }
            if !part.amount.is_zero() {
                let _ = write!(text, " {sign} {}", plain(part.amount));
            }
        }
        if self.is_with_tax {
            let _ = write!(text, " without {} % tax", self.percent);
        }
        text
    }
}

/// The price that a line states.
struct StatedPrice {
    amount: Amount,
    is_with_tax: bool,
}

impl StatedPrice {
    /// Reads the price, before tax or with it. A fault names the one of the two fields that was sent.
    fn read(line: &Value, path: &str) -> Result<Self, Fault> {
        let in_price = |name: &str| {
            line.get("price")?
                .get(name)
                .filter(|value| is_stated(value))
        };
        let before_tax = in_price("price_amount");
        let with_tax = in_price("price_amount_with_tax");
        let before_tax_path = format!("{path}.price.price_amount");
        let with_tax_path = format!("{before_tax_path}_with_tax");
        match (before_tax, with_tax) {
            (Some(price), None) => match read_amount(price) {
                Ok(amount) => Ok(Self {
                    amount,
                    is_with_tax: false,
                }),
                Err(rule) => Err(Fault::field(before_tax_path, rule)),
            },
            (None, Some(price)) => match read_amount(price) {
                // The form checks the price before tax only, which the caller has not sent.
                Ok(amount) if amount.is_negative() => {
                    let rule = FieldRule::AtLeast(Amount::ZERO);
                    Err(Fault::field(with_tax_path, rule))
                }
                Ok(amount) => Ok(Self {
                    amount,
                    is_with_tax: true,
                }),
                Err(rule) => Err(Fault::field(with_tax_path, rule)),
            },
            (None, None) => Err(Fault::field(before_tax_path, FieldRule::Required)),
            (Some(_), Some(_)) => {
                let sentence = "must not stand beside price_amount: send one of the two";
                let rule = FieldRule::other("prohibited", sentence);
                Err(Fault::field(with_tax_path, rule))
            }
        }
    }
}

/// Returns a tax category and its percent. The category is the one that the line states, or else `only_tax`, which is
/// set if the document states all its taxes with one category. Fails if there is neither, or if the catalog does not
/// list the category.
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
