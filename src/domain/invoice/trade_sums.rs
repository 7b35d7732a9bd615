//! Reads the charges, taxes and totals of a document in the shape of Submit, for its PDF and its other files.
//!
//! The authority applies discounts and fees on the whole document after the tax, so they change the payable amount
//! only. EN 16931 has no discounts after the tax. So they become discounts and fees that are exempt from tax: the
//! payable amount and the tax do not change, and the totals before and with tax include them.

use rust_decimal::{Decimal, RoundingStrategy};
use trade_document::{Charge, CodeAndName, ROUNDING, Tax, TaxSubtotal, Totals};

use crate::domain::invoice::trade::DocumentNode;
use crate::domain::money::{Amount, TOLERANCE};
use crate::domain::reference::catalog::{Catalog, ReferenceList};

/// The authority's tax category for items without tax.
const EXEMPT: &str = "EXEMPTED";

/// The sums of a document.
pub(super) struct DocumentSums {
    pub(super) charges: Vec<Charge>,
    pub(super) taxes: Vec<TaxSubtotal>,
    pub(super) totals: Totals,
}

impl DocumentNode<'_> {
    /// Returns charges, taxes and totals of the document. `taxes` are the taxes that it states; charges that apply
    /// after the tax are added to them as exempt. `None` if a total is missing, or if a sum is too large.
    pub(super) fn document_sums(self, mut taxes: Vec<TaxSubtotal>) -> Option<DocumentSums> {
        let stated = self.member("legal_monetary_total")?;
        let payable = stated.amount("payable_amount")?;
        let lines = stated.amount("line_extension_amount")?;
        let mut tax_exclusive = stated.amount("tax_exclusive_amount")?;
        let mut tax_inclusive = stated.amount("tax_inclusive_amount").unwrap_or(payable);
        let charges = self
            .items("allowance_charge")
            .filter_map(DocumentNode::charge);
        let mut charges: Vec<_> = charges.collect();
        let added = net_charges(&charges)?;
        if !added.is_zero() && lines.checked_add(added)? != tax_exclusive {
            let exempt = listed_tax(EXEMPT.to_owned(), Some(Decimal::ZERO), self.catalog);
            for charge in &mut charges {
                charge.tax = Some(exempt.clone());
            }
            tax_exclusive = tax_exclusive.checked_add(added)?;
            tax_inclusive = tax_inclusive.checked_add(added)?;
            add_base(&mut taxes, exempt, added)?;
        }
        check_tax_sum(&taxes)?;
        let UnpaidDifference { prepaid, rounding } =
            UnpaidDifference::explain(tax_inclusive.checked_sub(payable)?);
        Some(DocumentSums {
            charges,
            taxes,
            totals: Totals {
                lines,
                tax_exclusive,
                tax_inclusive,
                prepaid,
                rounding,
                payable,
            },
        })
    }

    fn charge(self) -> Option<Charge> {
        Some(Charge {
            is_fee: self.value.get("charge_indicator")?.as_bool()?,
            amount: self.amount("amount")?,
            rate: None,
            reason: None,
            tax: None,
        })
    }

    /// Returns the discounts and fees of a line. Each is stated as a percentage, an amount, or both. They are changed
    /// so that the line adds up to its amount (`fit_charges_to_line_amount`).
    pub(super) fn line_charges(self, digits: u32) -> Vec<Charge> {
        let gross = self.gross();
        let names = [
            (false, "discount_rate", "discount_amount"),
            (true, "fee_rate", "fee_amount"),
        ];
        let mut charges = Vec::new();
        for (is_fee, rate_name, amount_name) in names {
            let part = |amount: Decimal, rate: Option<Decimal>| Charge {
                is_fee,
                amount,
                rate,
                reason: None,
                tax: None,
            };
            if let Some(rate) = self.amount(rate_name).filter(|rate| !rate.is_zero()) {
                let amount = gross.and_then(|gross| gross.checked_mul(rate));
                let amount = amount.and_then(|amount| amount.checked_div(Decimal::ONE_HUNDRED));
                charges.extend(amount.map(|amount| part(amount, Some(rate))));
            }
            if let Some(amount) = self.amount(amount_name).filter(|amount| !amount.is_zero()) {
                charges.push(part(amount, None));
            }
        }
        let amount = self.amount("line_extension_amount");
        if let Some((gross, amount)) = gross.zip(amount) {
            fit_charges_to_line_amount(&mut charges, gross, amount, digits);
        }
        charges
    }

    /// Returns quantity × price / base quantity of a line, unrounded.
    fn gross(self) -> Option<Decimal> {
        let price = self.member("price")?;
        let base = price.amount("base_quantity").unwrap_or(Decimal::ONE);
        let count = self.amount("invoiced_quantity")?.checked_div(base)?;
        count.checked_mul(price.amount("price_amount")?)
    }

    pub(super) fn taxes(self) -> Vec<TaxSubtotal> {
        let subtotals = self
            .items("tax_total")
            .flat_map(|total| total.items("tax_subtotal"));
        subtotals
            .filter_map(|subtotal| {
                let category = subtotal.member("tax_category");
                let code = category
                    .and_then(|category| category.text("id"))
                    .unwrap_or_default();
                let percent = category.and_then(|category| category.amount("percent"));
                Some(TaxSubtotal {
                    tax: listed_tax(code, percent, self.catalog),
                    base: subtotal.amount("taxable_amount")?,
                    amount: subtotal.amount("tax_amount")?,
                })
            })
            .collect()
    }
}

/// Returns a tax category with its name. If the document states no percentage, it is taken from the authority's list.
pub(super) fn listed_tax(code: String, percent: Option<Decimal>, catalog: &Catalog) -> Tax {
    let listed = || {
        let known = catalog.has(ReferenceList::TaxCategories, &code) == Some(true);
        known.then(|| catalog.tax_percent(&code).into())
    };
    Tax {
        percent: percent.or_else(listed),
        category: CodeAndName {
            name: tax_name(&code, catalog),
            code,
        },
    }
}

/// Returns the fees less the discounts; `None` if the sum is too large.
fn net_charges(charges: &[Charge]) -> Option<Decimal> {
    let mut charges = charges.iter();
    charges.try_fold(Decimal::ZERO, |sum, charge| {
        if charge.is_fee {
            sum.checked_add(charge.amount)
        } else {
            sum.checked_sub(charge.amount)
        }
    })
}

/// Returns `None` if the sum of the taxes is too large. `TradeDocument::tax` would panic on such a sum.
fn check_tax_sum(taxes: &[TaxSubtotal]) -> Option<()> {
    let mut amounts = taxes.iter().map(|tax| tax.amount);
    amounts.try_fold(Decimal::ZERO, Decimal::checked_add)?;
    Some(())
}

/// Adds an amount to the base of a tax of zero percent. Returns `None` if the sum is too large.
fn add_base(taxes: &mut Vec<TaxSubtotal>, tax: Tax, base: Decimal) -> Option<()> {
    let same = taxes.iter_mut().find(|one| {
        let is_zero = one.tax.percent.unwrap_or_default().is_zero();
        is_zero && one.tax.category.code == tax.category.code
    });
    match same {
        Some(same) => same.base = same.base.checked_add(base)?,
        None => taxes.push(TaxSubtotal {
            tax,
            base,
            amount: Decimal::ZERO,
        }),
    }
    Some(())
}

/// The difference between the total with tax and the payable amount: the total less `prepaid`, plus `rounding`, is the
/// payable amount.
struct UnpaidDifference {
    prepaid: Decimal,
    rounding: Decimal,
}

impl UnpaidDifference {
    /// Explains `difference`, the total with tax less the payable amount. One unit of the currency or more was prepaid;
    /// a smaller or negative difference is a rounding.
    fn explain(difference: Decimal) -> Self {
        if difference >= Decimal::ONE {
            Self {
                prepaid: difference,
                rounding: Decimal::ZERO,
            }
        } else {
            Self {
                prepaid: Decimal::ZERO,
                rounding: -difference,
            }
        }
    }
}

/// Changes the charges of a line so that the rounded `gross` and the charges add up to `line_amount`. Each charge is
/// rounded to the digits of the currency, or to those of the amount if it has more. A discount that is larger than the
/// rest of the line is lowered. The first charge that was rounded absorbs the rounding difference. A difference that
/// remains because the amounts of all lines were rounded together becomes a charge of its own. A difference that is
/// larger than rounding stays.
fn fit_charges_to_line_amount(
    charges: &mut Vec<Charge>,
    gross: Decimal,
    line_amount: Decimal,
    digits: u32,
) {
    let tolerance = Decimal::from(TOLERANCE.max(Amount::smallest_amount(digits)));
    let digits = digits.max(line_amount.normalize().scale());
    let round =
        |sum: Decimal| sum.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero);
    let gross = round(gross);
    let mut first = None;
    for (index, charge) in charges.iter_mut().enumerate() {
        let rounded = round(charge.amount);
        if rounded != charge.amount {
            first = first.or(Some(index));
            charge.amount = rounded;
        }
    }
    if line_amount.is_zero() {
        limit_discounts(charges, gross);
    }
    let unit = Decimal::new(1, digits) * Decimal::from(charges.len() + 1);
    let missing = missing_amount(charges, gross, line_amount);
    let charge = first.and_then(|index| charges.get_mut(index));
    if let (Some(charge), Some(missing)) = (charge, missing)
        && missing.abs() <= unit
    {
        let taken = if charge.is_fee { missing } else { -missing };
        let whole = charge.amount.checked_add(taken);
        charge.amount = whole.unwrap_or(charge.amount).max(Decimal::ZERO);
    }
    charges.retain(|charge| charge.rate.is_some() || !charge.amount.is_zero());
    let rest = missing_amount(charges, gross, line_amount);
    if let Some(rest) = rest.filter(|rest| !rest.is_zero() && rest.abs() <= tolerance) {
        charges.push(Charge {
            is_fee: rest > Decimal::ZERO,
            amount: rest.abs(),
            rate: None,
            reason: Some(ROUNDING.to_owned()),
            tax: None,
        });
    }
}

/// Lowers discounts that are larger than the rest of the line, because the amount of a line is at least zero. Discounts
/// without a rate are lowered first, so that the amount of one with a rate still follows from its rate.
fn limit_discounts(charges: &mut [Charge], gross: Decimal) {
    let Some(mut excess) = missing_amount(charges, gross, Decimal::ZERO) else {
        return;
    };
    for has_rate in [false, true] {
        let discounts = charges.iter_mut().filter(|charge| !charge.is_fee);
        for discount in discounts.filter(|charge| charge.rate.is_some() == has_rate) {
            let cut = excess.min(discount.amount).max(Decimal::ZERO);
            discount.amount -= cut;
            excess -= cut;
        }
    }
}

/// Returns the amount of the line less `gross` with these charges: what a further charge would have to add. `None` if a
/// sum is too large.
fn missing_amount(charges: &[Charge], gross: Decimal, line_amount: Decimal) -> Option<Decimal> {
    let whole = gross.checked_add(net_charges(charges)?)?;
    line_amount.checked_sub(whole)
}

/// Returns the usual name of a tax: `VAT` or `GST` for their categories, otherwise the name in the authority's list.
fn tax_name(code: &str, catalog: &Catalog) -> String {
    for short in ["VAT", "GST"] {
        if code.ends_with(&format!("_{short}")) {
            return short.to_owned();
        }
    }
    let listed = catalog.name(ReferenceList::TaxCategories, code);
    listed.unwrap_or(code).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::invoice::trade::read_document;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    /// A document of one line of 100 with 7.5 % tax, these charges and this payable amount.
    fn document(exclusive: &str, charges: &Value, payable: &str) -> Value {
        let number = |text: &str| Value::Number(text.parse().unwrap());
        json!({
            "invoice_reference": "INV1", "issue_date": "2026-01-15", "document_currency_code": "NGN",
            "allowance_charge": charges,
            "invoice_line": [{
                "item": { "name": "Rice" }, "price": { "price_amount": 100 }, "invoiced_quantity": 1,
                "line_extension_amount": 100,
            }],
            "tax_total": [{ "tax_subtotal": [{
                "taxable_amount": 100, "tax_amount": 7.5, "tax_category": { "id": "STANDARD_VAT", "percent": 7.5 },
            }] }],
            "legal_monetary_total": {
                "line_extension_amount": 100, "tax_exclusive_amount": number(exclusive),
                "tax_inclusive_amount": decimal(exclusive) + decimal("7.5"), "payable_amount": number(payable),
            },
        })
    }

    #[test]
    fn taxes_whose_sum_is_too_large_are_refused() {
        let mut document = document("100", &json!([]), "107.5");
        let mut huge = document["tax_total"][0]["tax_subtotal"][0].clone();
        huge["tax_amount"] = Value::Number("7e28".parse().unwrap());
        for (count, is_readable) in [(1, true), (2, false)] {
            document["tax_total"][0]["tax_subtotal"] = json!(vec![huge.clone(); count]);
            let found = read_document(&document, &Catalog::default());
            assert_eq!(found.is_ok(), is_readable, "{count}");
        }
    }

    #[test]
    fn the_sums_lead_from_the_lines_to_the_payable() {
        let both = json!([
            { "charge_indicator": false, "amount": 10.01 }, { "charge_indicator": true, "amount": 3.33 },
        ]);
        let fee = json!([{ "charge_indicator": true, "amount": 5 }]);
        let even = json!([
            { "charge_indicator": false, "amount": 5 }, { "charge_indicator": true, "amount": 5 },
        ]);
        let none = json!([]);
        // The total without tax, the charges and the payable; then the total without tax on paper, what was prepaid,
        // the rounding, and the base that is exempt.
        let cases = [
            ("100", &none, "107.5", "100", "0", "0", None),
            ("100", &none, "57.5", "100", "50", "0", None),
            ("100", &none, "107.51", "100", "0", "0.01", None),
            ("100", &none, "107", "100", "0", "-0.5", None),
            ("100", &none, "120", "100", "0", "12.5", None),
            ("100", &both, "100.82", "93.32", "0", "0", Some("-6.68")),
            ("100", &both, "50.82", "93.32", "50", "0", Some("-6.68")),
            ("100", &both, "107.5", "93.32", "0", "6.68", Some("-6.68")),
            ("105", &fee, "112.5", "105", "0", "0", None),
            ("100", &even, "107.5", "100", "0", "0", None),
        ];
        for (stated, charges, payable, exclusive, prepaid, rounding, exempt) in cases {
            let name = format!("{stated} {charges} {payable}");
            let document = document(stated, charges, payable);
            let found = read_document(&document, &Catalog::default()).unwrap();
            let totals = found.totals;
            assert_eq!(totals.tax_exclusive, decimal(exclusive), "{name}");
            assert_eq!(totals.prepaid, decimal(prepaid), "{name}");
            assert_eq!(totals.rounding, decimal(rounding), "{name}");
            let bases = found
                .taxes
                .iter()
                .filter(|one| one.tax.category.code == EXEMPT);
            let bases: Vec<_> = bases.map(|one| one.base).collect();
            assert_eq!(
                bases,
                exempt.map(decimal).into_iter().collect::<Vec<_>>(),
                "{name}"
            );
            // The rules BR-CO-13, BR-CO-15 and BR-CO-16 of EN 16931.
            let added = net_charges(&found.charges).unwrap();
            assert_eq!(totals.tax_exclusive, totals.lines + added, "{name}");
            assert_eq!(
                totals.tax_inclusive,
                totals.tax_exclusive + found.tax(),
                "{name}"
            );
            let paid = totals.tax_inclusive - totals.prepaid + totals.rounding;
            assert_eq!(totals.payable, paid, "{name}");
            assert_eq!(found.lines[0].tax.category.code, "STANDARD_VAT", "{name}");
        }
    }

    #[test]
    fn a_total_that_is_off_gets_no_exempt_tax_without_a_charge() {
        let document = document("90", &json!([]), "97.5");
        let found = read_document(&document, &Catalog::default()).unwrap();
        assert_eq!(found.taxes.len(), 1, "{:?}", found.taxes);
        assert_eq!(found.totals.tax_exclusive, decimal("90"));
    }

    /// Returns the charges of a line with these members, such as `-3.75`, and `-0.01 Rounding`.
    fn line_charges(digits: u32, members: &[(&str, &str)]) -> Vec<String> {
        let mut line = json!({ "price": {} });
        for (name, text) in members {
            let number = Value::Number(text.parse().unwrap());
            match name.strip_prefix("price.") {
                Some(name) => line["price"][name] = number,
                None => line[*name] = number,
            }
        }
        let node = DocumentNode {
            value: &line,
            catalog: &Catalog::default(),
        };
        let charges = node.line_charges(digits).into_iter().map(|charge| {
            let sign = if charge.is_fee { "+" } else { "-" };
            let reason = charge.reason.map(|reason| format!(" {reason}"));
            let amount = charge.amount.normalize();
            format!("{sign}{amount}{}", reason.unwrap_or_default())
        });
        charges.collect()
    }

    #[test]
    fn the_charges_of_a_line_have_the_digits_of_the_currency() {
        let (rate, flat, fee) = ("discount_rate", "discount_amount", "fee_amount");
        // 10.01 × 1.125 is 11.26125; less 33.3333 percent, which are 3.75374624625, it is 7.50750375375.
        for (charges, amount, expected) in [
            (&[(rate, "33.3333")][..], "7.51", &["-3.75"][..]),
            // The line got a unit less, because the lines together are rounded.
            (&[(rate, "33.3333")], "7.50", &["-3.76"]),
            (&[(rate, "33.3333")], "7.508", &["-3.753"]),
            (
                &[(rate, "33.3333"), (fee, "1.5")],
                "9.01",
                &["-3.75", "+1.5"],
            ),
            (&[(flat, "1.255")], "10.01", &["-1.25"]),
            // A charge that was not rounded stays; a difference beyond rounding stays too.
            (&[(flat, "1")], "10.25", &["-1", "-0.01 Rounding"]),
            (&[(fee, "1")], "12.27", &["+1", "+0.01 Rounding"]),
            (&[(flat, "1")], "9", &["-1"]),
            (&[], "9", &[]),
        ] {
            let gross = [
                ("price.price_amount", "10.01"),
                ("invoiced_quantity", "1.125"),
            ];
            let members = [&gross[..], charges, &[("line_extension_amount", amount)]].concat();
            assert_eq!(line_charges(2, &members), expected, "{charges:?} {amount}");
        }
    }

    #[test]
    fn a_line_without_a_rounded_charge_says_what_the_rounding_left() {
        for (digits, price, quantity, amount, expected) in [
            (2, "0.005", "1", "0.00", &["-0.01 Rounding"][..]),
            (2, "0.005", "1", "0.01", &[]),
            (2, "4.756819", "1", "4.75", &["-0.01 Rounding"]),
            (2, "4.756819", "1", "4.76", &[]),
            (2, "4.753", "1", "4.76", &["+0.01 Rounding"]),
            (2, "4.753", "1", "4.77", &[]),
            (2, "4.753", "1", "4.7", &[]),
            // An amount with more digits than the currency is compared with all of them.
            (2, "4.7568", "1", "4.757", &[]),
            (2, "4.7568", "1", "4.755", &["-0.002 Rounding"]),
            (0, "37.072", "4", "149", &["+1 Rounding"]),
            (0, "37.072", "4", "148", &[]),
            (0, "37.072", "4", "150", &[]),
            (3, "0.0005", "1", "0", &["-0.001 Rounding"]),
        ] {
            let members = [
                ("price.price_amount", price),
                ("invoiced_quantity", quantity),
                ("line_extension_amount", amount),
            ];
            let found = line_charges(digits, &members);
            assert_eq!(found, expected, "{quantity} × {price} = {amount}");
        }
    }

    #[test]
    fn a_discount_is_stated_as_far_as_it_takes_effect() {
        let (rate, flat, fee) = ("discount_rate", "discount_amount", "fee_amount");
        for (charges, expected) in [
            (&[(flat, "15")][..], &["-10"][..]),
            (&[(flat, "10")], &["-10"]),
            (&[(flat, "15"), (fee, "3")], &["-13", "+3"]),
            (&[(rate, "50"), (flat, "15")], &["-5", "-5"]),
            (&[(rate, "100"), (flat, "15")], &["-10"]),
            (&[(rate, "33.3333"), (flat, "15")], &["-3.33", "-6.67"]),
            (&[(flat, "15.005")], &["-10"]),
        ] {
            let gross = [("price.price_amount", "10"), ("invoiced_quantity", "1")];
            let members = [&gross[..], charges, &[("line_extension_amount", "0")]].concat();
            assert_eq!(line_charges(2, &members), expected, "{charges:?}");
        }
    }

    #[test]
    fn taxes_have_the_names_that_people_use() {
        let mut catalog = Catalog::default();
        let list = json!([{ "code": "STAMP_DUTY", "value": "Stamp Duty", "percent": 0 }]);
        catalog.load(ReferenceList::TaxCategories, &list);
        let cases = [
            ("ZERO_VAT", "VAT"),
            ("REDUCED_GST", "GST"),
            ("STAMP_DUTY", "Stamp Duty"),
            ("NEW", "NEW"),
        ];
        for (code, name) in cases {
            assert_eq!(tax_name(code, &catalog), name);
        }
    }
}
