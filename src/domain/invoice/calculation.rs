//! Computes what a caller may leave out of a document: the amount and the tax of each line, the taxes and the totals.
//! Sums are exact. Each rounding, half up to the digits of the currency, is reported to the caller. An amount that the
//! caller states is kept. If it is off by more than the tolerance of spec.md, a fault shows it and the computed terms.

use std::collections::BTreeMap;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::domain::invoice::calculation_line::{LineInput, LineSums};
use crate::domain::invoice::calculation_taxes::{
    CategoryTax, complete_tax_totals, divide_tax, fill_in_amounts, only_tax_category, subtotal,
    subtotal_faults,
};
use crate::domain::invoice::calculation_terms::{
    amount_member, document_charges, has_charges, is_rounding_of, is_stated, join_terms, to_amount,
    wrong_amount_fault,
};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX};
use crate::domain::reference::catalog::Catalog;

/// The shape of the document that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentForm {
    /// Create Invoice (Full): each line has its tax category and its tax.
    Full,
    /// Submit and Validate: lines have neither tax category nor tax. A tax category in a line is used and then removed.
    Authority,
}

/// The computed amounts, for the response to the caller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calculation {
    pub invoice_line: Vec<CalculatedLine>,
    pub tax_total: Value,
    pub legal_monetary_total: Value,
    pub roundings: Vec<Rounding>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalculatedLine {
    /// The price before tax, if the caller stated the price with tax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_amount: Option<Amount>,
    pub line_extension_amount: Amount,
    pub total_tax: Amount,
}

/// An amount that had to be rounded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounding {
    /// The dot path of the field in the document.
    pub path: String,
    /// The amount before rounding, as text, because it may have more digits than an `Amount` can hold.
    pub exact: String,
    pub rounded: Amount,
}

/// Fills in the amounts that the document leaves out. The faults report each stated amount that differs from the
/// computed one by more than the tolerance, and each line that cannot be computed.
pub fn complete_amounts(
    document: &mut Map<String, Value>,
    form: DocumentForm,
    catalog: &Catalog,
) -> Result<Calculation, Faults> {
    let currency = document.get("document_currency_code");
    let currency = currency.and_then(Value::as_str).unwrap_or_default();
    let mut work = CalculationWork {
        digits: catalog.currency_digits(currency.trim()),
        roundings: Vec::new(),
        faults: Faults::default(),
    };
    let only_tax = only_tax_category(document);
    let lines = document.get_mut("invoice_line");
    let lines = lines.and_then(Value::as_array_mut).map(Vec::as_mut_slice);
    let lines = lines.unwrap_or_default();
    let mut computed = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter_mut().enumerate() {
        let input = LineInput::read(line, at, only_tax.as_deref(), catalog);
        let sums = input.and_then(|input| work.compute_line(&input));
        match sums {
            Ok(sums) => computed.push(sums),
            Err(fault) => work.faults.push(fault),
        }
    }
    if computed.len() < lines.len() || lines.is_empty() {
        return Err(work.faults);
    }
    let too_large = || {
        Fault::new(
            "invoice_line",
            "max",
            "The lines come to a total that is too large.",
        )
    };
    let taxes = work.compute_taxes(&mut computed).ok_or_else(too_large)?;
    for (at, (line, sums)) in lines.iter_mut().zip(&computed).enumerate() {
        work.write_line(line, at, sums, form);
    }
    let tax = work.write_taxes(document, &taxes).ok_or_else(too_large)?;
    let totals = work
        .write_totals(document, &computed, tax)
        .ok_or_else(too_large)?;
    if !work.faults.is_empty() {
        return Err(work.faults);
    }
    Ok(Calculation {
        invoice_line: computed.iter().map(CalculatedLine::from).collect(),
        tax_total: document.get("tax_total").cloned().unwrap_or_default(),
        legal_monetary_total: totals,
        roundings: work.roundings,
    })
}

impl From<&LineSums> for CalculatedLine {
    fn from(sums: &LineSums) -> Self {
        Self {
            price_amount: sums.price_before_tax,
            line_extension_amount: sums.net,
            total_tax: sums.tax,
        }
    }
}

struct CalculationWork {
    digits: u32,
    roundings: Vec<Rounding>,
    faults: Faults,
}

impl CalculationWork {
    /// Rounds an amount to the digits of the currency. Reports the rounding if it changes the amount.
    fn round_to_currency(&mut self, path: &str, exact: Decimal) -> Option<Amount> {
        self.round_to_digits(self.digits, path, exact)
    }

    fn round_to_digits(&mut self, digits: u32, path: &str, exact: Decimal) -> Option<Amount> {
        let rounded = exact.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero);
        let amount = Amount::parse(&rounded.to_string()).ok()?;
        let amount = amount.with_digits(digits.min(self.digits));
        if rounded != exact {
            self.roundings.push(Rounding {
                path: path.to_owned(),
                exact: exact.normalize().to_string(),
                rounded: amount,
            });
        }
        Some(amount)
    }

    /// Computes the amount of a line. A stated amount is used, after it was checked.
    fn compute_line(&mut self, input: &LineInput) -> Result<LineSums, Fault> {
        let too_large = || {
            let rule = FieldRule::other("max", "comes to an amount that is too large");
            Fault::field(input.path.clone(), rule)
        };
        let path = format!("{}.line_extension_amount", input.path);
        let exact = input.exact_net().ok_or_else(too_large)?;
        let net = match input.stated_net {
            Some(stated) => {
                if !is_rounding_of(stated, exact, self.digits) {
                    self.check_stated_amount(&path, stated, exact, || input.computation_text());
                }
                stated
            }
            None => self.round_to_currency(&path, exact).ok_or_else(too_large)?,
        };
        let price_before_tax = match input.exact_price_before_tax() {
            Some(exact) => {
                let path = format!("{}.price.price_amount", input.path);
                let price = self.round_to_digits(FRACTION_DIGITS_MAX, &path, exact);
                Some(price.ok_or_else(too_large)?)
            }
            None => None,
        };
        Ok(LineSums {
            net,
            tax_before_rounding: input
                .tax_before_rounding(net, self.digits)
                .ok_or_else(too_large)?,
            tax: Amount::ZERO,
            price_before_tax,
            category: input.category.clone(),
            percent: input.percent,
            stated_tax: input.stated_tax,
        })
    }

    /// Rounds the tax of each category, and divides it among the lines of the category so that their taxes add up to
    /// it.
    fn compute_taxes(&mut self, lines: &mut [LineSums]) -> Option<Vec<CategoryTax>> {
        let mut by_category: BTreeMap<String, Vec<&mut LineSums>> = BTreeMap::new();
        for line in lines {
            by_category
                .entry(line.category.clone())
                .or_default()
                .push(line);
        }
        let mut taxes = Vec::with_capacity(by_category.len());
        for (at, (category, mut lines)) in by_category.into_iter().enumerate() {
            let exact: Vec<_> = lines.iter().map(|line| line.tax_before_rounding).collect();
            let sum = exact
                .iter()
                .try_fold(Decimal::ZERO, |sum, tax| sum.checked_add(*tax))?;
            let path = format!("tax_total.0.tax_subtotal.{at}.tax_amount");
            let tax = self.round_to_currency(&path, sum)?;
            for (line, part) in lines.iter_mut().zip(divide_tax(tax, &exact, self.digits)?) {
                line.tax = part;
            }
            taxes.push(CategoryTax {
                percent: lines.first()?.percent,
                base: Amount::sum(lines.iter().map(|line| line.net))?,
                category,
                tax,
            });
        }
        Some(taxes)
    }

    /// Writes the amounts that a line leaves out. A stated amount stays as it is, so that the form, which reads the
    /// document afterwards, reports one that is not a number.
    fn write_line(&mut self, line: &mut Value, index: usize, sums: &LineSums, form: DocumentForm) {
        let Some(line) = line.as_object_mut() else {
            return;
        };
        fill_in_amounts(line, &[("line_extension_amount", sums.net)]);
        let price = line.get_mut("price").and_then(Value::as_object_mut);
        if let Some((price, before_tax)) = price.zip(sums.price_before_tax) {
            price.insert("price_amount".to_owned(), json!(before_tax));
            price.remove("price_amount_with_tax");
        }
        match form {
            DocumentForm::Full => match sums.stated_tax {
                Some(stated) => {
                    let path = format!("invoice_line.{index}.total_tax");
                    if !is_rounding_of(stated, sums.tax_before_rounding, self.digits) {
                        self.check_stated_amount(&path, stated, sums.tax.into(), || {
                            format!("{} % of {}", sums.percent, sums.net.to_grouped_text())
                        });
                    }
                }
                None => fill_in_amounts(line, &[("total_tax", sums.tax)]),
            },
            DocumentForm::Authority => {
                line.remove("tax_category");
                line.remove("total_tax");
            }
        }
    }

    /// Writes the taxes that the document leaves out, and checks those that it states, and their sum. Returns the sum
    /// of the taxes.
    fn write_taxes(
        &mut self,
        document: &mut Map<String, Value>,
        taxes: &[CategoryTax],
    ) -> Option<Amount> {
        let computed = Amount::sum(taxes.iter().map(|part| part.tax))?;
        let has_charges = has_charges(document);
        let stated = document.get_mut("tax_total").and_then(Value::as_array_mut);
        if let Some(totals) = stated.filter(|totals| !totals.is_empty()) {
            complete_tax_totals(totals, taxes, self.digits);
            let off = subtotal_faults(totals, taxes, has_charges);
            for fault in off.iter() {
                self.faults.push(fault.clone());
            }
            let amounts = totals
                .iter()
                .map(|total| amount_member(total, "tax_amount"));
            // The form, which reads the document afterwards, reports an amount that is missing or not a number.
            let Some(amounts) = amounts.collect::<Option<Vec<_>>>() else {
                return Some(computed);
            };
            let sum = Amount::sum(amounts)?;
            let parts: Vec<_> = taxes
                .iter()
                .map(|part| format!("{} % of {}", part.percent, part.base.to_grouped_text()))
                .collect();
            // The fault of a wrong part is more precise than that of the sum, which is wrong because of the part.
            if !off.iter().any(|fault| fault.path.ends_with(".tax_amount")) {
                self.check_stated_amount("tax_total", sum, computed.into(), || join_terms(&parts));
            }
            return Some(sum);
        }
        let stated = document.get("tax_total").filter(|value| is_stated(value));
        // The form, which reads the document afterwards, reports a value that is not a list.
        if stated.is_some_and(|value| !value.is_array()) {
            return Some(computed);
        }
        let total = json!([{
            "tax_amount": computed.with_digits(self.digits),
            "tax_subtotal": taxes.iter().map(subtotal).collect::<Vec<_>>(),
        }]);
        document.insert("tax_total".to_owned(), total);
        Some(computed)
    }

    /// Writes the totals that the document leaves out, and checks the others. Returns all of them.
    fn write_totals(
        &mut self,
        document: &mut Map<String, Value>,
        lines: &[LineSums],
        tax: Amount,
    ) -> Option<Value> {
        let charges = document_charges(document)?;
        let stated = document.get("legal_monetary_total");
        let stated = stated.filter(|value| is_stated(value));
        let is_object = stated.is_none_or(Value::is_object);
        let stated = stated.and_then(Value::as_object).cloned();
        let mut totals = Totals {
            stated: stated.unwrap_or_default(),
            digits: self.digits,
        };
        let nets: Vec<_> = lines
            .iter()
            .map(|line| line.net.to_grouped_text())
            .collect();
        let sum = Amount::sum(lines.iter().map(|line| line.net))?;
        let sum =
            totals.check_or_write_total(self, "line_extension_amount", sum, || join_terms(&nets));
        let exclusive = totals
            .check_or_write_total(self, "tax_exclusive_amount", sum, || sum.to_grouped_text());
        let inclusive = exclusive.plus(tax)?;
        let inclusive =
            totals.check_or_write_total(self, "tax_inclusive_amount", inclusive, || {
                format!(
                    "{} + {}",
                    exclusive.to_grouped_text(),
                    tax.to_grouped_text()
                )
            });
        let payable = inclusive.plus(charges.sum)?;
        let sums = format!("{}{}", inclusive.to_grouped_text(), charges.terms);
        if payable.is_negative() && !totals.has_total("payable_amount") {
            let sentence = format!("would be negative: {} = {sums}", payable.to_grouped_text());
            let rule = FieldRule::other("min", sentence);
            let path = "legal_monetary_total.payable_amount";
            self.faults.push(Fault::field(path, rule));
        } else {
            totals.check_or_write_total(self, "payable_amount", payable, || sums);
        }
        let totals = Value::Object(totals.stated);
        // The form, which reads the document afterwards, reports a value that is not an object.
        if is_object {
            document.insert("legal_monetary_total".to_owned(), totals.clone());
        }
        Some(totals)
    }

    /// Reports a stated amount that is off by more than the tolerance. The fault shows the terms of the correct sum.
    fn check_stated_amount(
        &mut self,
        path: &str,
        stated: Amount,
        exact: Decimal,
        terms: impl FnOnce() -> String,
    ) {
        if let Some(fault) = wrong_amount_fault(path, stated, exact, terms) {
            self.faults.push(fault);
        }
    }
}

/// The totals of a document, as far as they are stated or computed.
struct Totals {
    stated: Map<String, Value>,
    digits: u32,
}

impl Totals {
    fn has_total(&self, name: &str) -> bool {
        self.stated.get(name).is_some_and(is_stated)
    }

    /// Returns the stated total, after checking it. If there is none, writes and returns the computed total.
    fn check_or_write_total(
        &mut self,
        work: &mut CalculationWork,
        name: &str,
        computed: Amount,
        terms: impl FnOnce() -> String,
    ) -> Amount {
        if let Some(stated) = self.stated.get(name).filter(|value| is_stated(value)) {
            // The form, which reads the document afterwards, reports a value that is not an amount.
            let Some(stated) = to_amount(stated) else {
                return computed;
            };
            let path = format!("legal_monetary_total.{name}");
            work.check_stated_amount(&path, stated, computed.into(), terms);
            return stated;
        }
        let computed = computed.with_digits(self.digits);
        self.stated.insert(name.to_owned(), json!(computed));
        computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reference::catalog::ReferenceList;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let categories = json!([
            { "code": "STANDARD_VAT", "value": "VAT", "percent": number("7.5") },
            { "code": "ZERO_VAT", "value": "VAT", "percent": 0 },
        ]);
        catalog.load(ReferenceList::TaxCategories, &categories);
        catalog
    }

    fn number(digits: &str) -> Value {
        json!(Amount::parse(digits).unwrap())
    }

    fn line(quantity: &str, price: &str) -> Value {
        json!({
            "invoiced_quantity": number(quantity), "tax_category": "STANDARD_VAT",
            "price": { "price_amount": number(price), "base_quantity": 1 },
        })
    }

    fn document(lines: &[Value]) -> Map<String, Value> {
        let document = json!({ "document_currency_code": "NGN", "invoice_line": lines });
        document.as_object().cloned().unwrap()
    }

    fn texts(faults: &Faults) -> Vec<String> {
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_left_out_is_computed() {
        let mut document = document(&[line("2", "500"), line("3", "33.335")]);
        let found = complete_amounts(&mut document, DocumentForm::Full, &catalog()).unwrap();
        let totals = &document["legal_monetary_total"];
        let shown = [
            "line_extension_amount",
            "tax_exclusive_amount",
            "tax_inclusive_amount",
            "payable_amount",
        ]
        .map(|name| totals[name].to_string());
        assert_eq!(shown, ["1100.01", "1100.01", "1182.51", "1182.51"]);
        assert_eq!(document["tax_total"][0]["tax_amount"].to_string(), "82.50");
        assert_eq!(
            document["invoice_line"][1]["line_extension_amount"].to_string(),
            "100.01"
        );
        let taxes: Vec<_> = found
            .invoice_line
            .iter()
            .map(|line| line.total_tax.to_string())
            .collect();
        assert_eq!(taxes, ["75.00", "7.50"]);
        let roundings: Vec<_> = found
            .roundings
            .iter()
            .map(|one| format!("{} {} {}", one.path, one.exact, one.rounded))
            .collect();
        let expected = [
            "invoice_line.1.line_extension_amount 100.005 100.01",
            "tax_total.0.tax_subtotal.0.tax_amount 82.50075 82.50",
        ];
        assert_eq!(roundings, expected);
    }

    #[test]
    fn a_price_with_tax_comes_to_itself() {
        let priced = json!({
            "invoiced_quantity": 3, "tax_category": "STANDARD_VAT",
            "price": { "price_amount_with_tax": 1000, "base_quantity": 1 },
        });
        let mut document = document(&[priced]);
        complete_amounts(&mut document, DocumentForm::Authority, &catalog()).unwrap();
        let line = &document["invoice_line"][0];
        assert_eq!(line["line_extension_amount"].to_string(), "2790.70");
        assert_eq!(line["price"]["price_amount"].to_string(), "930.232558");
        assert_eq!(line["price"].get("price_amount_with_tax"), None);
        assert_eq!(
            line.get("tax_category"),
            None,
            "the authority's lines have none"
        );
        assert_eq!(
            document["legal_monetary_total"]["payable_amount"].to_string(),
            "3000.00"
        );
    }

    #[test]
    fn discounts_fees_and_charges_count() {
        let mut priced = line("10", "100");
        priced["discount_rate"] = json!(10);
        priced["discount_amount"] = json!(50);
        priced["fee_rate"] = json!(5);
        priced["fee_amount"] = json!(1);
        priced["price"]["base_quantity"] = json!(2);
        let mut document = document(&[priced]);
        let charges = json!([{ "charge_indicator": true, "amount": 7 }, { "charge_indicator": false, "amount": 2 }]);
        document.insert("allowance_charge".to_owned(), charges);
        complete_amounts(&mut document, DocumentForm::Full, &catalog()).unwrap();
        let totals = &document["legal_monetary_total"];
        assert_eq!(totals["line_extension_amount"].to_string(), "426.00");
        assert_eq!(totals["tax_inclusive_amount"].to_string(), "457.95");
        assert_eq!(totals["payable_amount"].to_string(), "462.95");
    }

    #[test]
    fn an_amount_that_is_off_is_shown_with_its_sum() {
        let mut one = line("2", "500");
        one["line_extension_amount"] = json!(900);
        one["total_tax"] = json!(70);
        let mut document = document(&[one]);
        let refused = complete_amounts(&mut document, DocumentForm::Full, &catalog()).unwrap_err();
        let expected = [
            "The invoice_line.0.line_extension_amount field is off: 900.00 ≠ 2 × 500.00.",
            "The invoice_line.0.total_tax field is off: 70.00 ≠ 7.5 % of 900.00.",
        ];
        assert_eq!(texts(&refused), expected);
    }

    #[test]
    fn an_amount_that_is_rounded_to_the_currency_is_not_off() {
        let mut catalog = catalog();
        let currencies =
            json!([{ "code": "JPY", "decimal_digits": 0 }, { "code": "NGN", "decimal_digits": 2 }]);
        catalog.load(ReferenceList::Currencies, &currencies);
        // Each of two lines comes to 3 × 11.111 = 33.333. In JPY the tax of both is 5, of which the first line gets 3.
        let cases: [(&str, &str, &str, &[&str]); 7] = [
            ("JPY", "33", "2", &[]),
            ("JPY", "33", "3", &["invoice_line.1.total_tax"]),
            (
                "JPY",
                "33",
                "4",
                &["invoice_line.0.total_tax", "invoice_line.1.total_tax"],
            ),
            (
                "JPY",
                "32",
                "2",
                &[
                    "invoice_line.0.line_extension_amount",
                    "invoice_line.1.line_extension_amount",
                ],
            ),
            ("NGN", "33.33", "2.50", &[]),
            ("NGN", "33.34", "2.50", &[]),
            (
                "NGN",
                "33.35",
                "2.50",
                &[
                    "invoice_line.0.line_extension_amount",
                    "invoice_line.1.line_extension_amount",
                ],
            ),
        ];
        for (currency, net, tax, expected) in cases {
            let mut stated = line("3", "11.111");
            stated["line_extension_amount"] = number(net);
            stated["total_tax"] = number(tax);
            let mut document = document(&[stated.clone(), stated]);
            document.insert("document_currency_code".to_owned(), json!(currency));
            let found = complete_amounts(&mut document, DocumentForm::Full, &catalog);
            let faults = found.err().unwrap_or_default();
            let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
            assert_eq!(paths, expected, "{currency} {net} {tax}");
        }
    }

    #[test]
    fn totals_that_are_off_say_which() {
        let mut document = document(&[line("2", "500")]);
        let totals =
            json!({ "line_extension_amount": number("1000.00"), "tax_inclusive_amount": 1057 });
        document.insert("legal_monetary_total".to_owned(), totals);
        let refused = complete_amounts(&mut document, DocumentForm::Full, &catalog()).unwrap_err();
        let expected = [
            "The legal_monetary_total.tax_inclusive_amount field is off: 1,057.00 ≠ 1,000.00 + 75.00.",
        ];
        assert_eq!(texts(&refused), expected);
    }

    #[test]
    fn allowances_above_the_total_are_a_fault_and_no_payable_of_zero() {
        let negative = "The legal_monetary_total.payable_amount field would be negative: -925.00 = 1,075.00 - 2,000.00.";
        let off = |stated: &str| {
            format!(
                "The legal_monetary_total.payable_amount field is off: {stated} ≠ 1,075.00 - 2,000.00."
            )
        };
        let cases = [
            (2_000, None, vec![negative.to_owned()]),
            (2_000, Some(0), vec![off("0.00")]),
            (2_000, Some(1_075), vec![off("1,075.00")]),
            (1_075, None, vec![]),
            (1_075, Some(0), vec![]),
        ];
        for (allowance, stated, expected) in cases {
            for form in [DocumentForm::Full, DocumentForm::Authority] {
                let mut document = document(&[line("2", "500")]);
                let charge = json!([{ "charge_indicator": false, "amount": allowance }]);
                document.insert("allowance_charge".to_owned(), charge);
                if let Some(stated) = stated {
                    let totals = json!({ "payable_amount": stated });
                    document.insert("legal_monetary_total".to_owned(), totals);
                }
                let found = complete_amounts(&mut document, form, &catalog());
                let faults = found.err().map(|faults| texts(&faults));
                assert_eq!(
                    faults.unwrap_or_default(),
                    expected,
                    "{allowance}, {stated:?}"
                );
            }
        }
    }

    #[test]
    fn a_base_is_that_of_the_lines_unless_the_document_has_charges_of_its_own() {
        let off = "The tax_total.0.tax_subtotal.0.taxable_amount field is off: 90.00 ≠ 100.00, the lines of ZERO_VAT.";
        let charge = |is_charge: bool| json!([{ "charge_indicator": is_charge, "amount": 10 }]);
        for (charges, base, expected) in [
            (charge(false), 90, vec![]),
            (charge(true), 110, vec![]),
            (charge(false), 100, vec![]),
            (json!([]), 90, vec![off]),
            (Value::Null, 90, vec![off]),
            (Value::Null, 100, vec![]),
        ] {
            let mut exempt = line("1", "100");
            exempt["tax_category"] = json!("ZERO_VAT");
            let mut document = document(&[exempt]);
            let subtotal = json!({
                "taxable_amount": base, "tax_amount": 0,
                "tax_category": { "id": "ZERO_VAT", "percent": 0 },
            });
            let totals = json!([{ "tax_amount": 0, "tax_subtotal": [subtotal] }]);
            document.insert("tax_total".to_owned(), totals);
            document.insert("allowance_charge".to_owned(), charges);
            let found = complete_amounts(&mut document, DocumentForm::Full, &catalog());
            let faults = found.err().map(|faults| texts(&faults));
            let charges = &document["allowance_charge"];
            assert_eq!(faults.unwrap_or_default(), expected, "{charges}, {base}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_computed_is_named() {
        let cases = [
            ("tax_category", Value::Null, "required"),
            ("tax_category", json!("ODD"), "exists"),
            ("invoiced_quantity", json!("2"), "required"),
            ("price", json!({}), "required"),
            ("price", json!({ "price_amount": "1" }), "type"),
            (
                "price",
                json!({ "price_amount": 1, "price_amount_with_tax": 1 }),
                "prohibited",
            ),
            (
                "price",
                json!({ "price_amount": "1", "price_amount_with_tax": 1 }),
                "prohibited",
            ),
            ("price", json!({ "price_amount_with_tax": "" }), "required"),
            ("price", json!({ "price_amount_with_tax": "1" }), "type"),
            ("price", json!({ "price_amount_with_tax": -1 }), "min"),
            (
                "price",
                json!({ "price_amount": 1, "base_quantity": 0 }),
                "greater_than",
            ),
        ];
        for (name, value, rule) in cases {
            let mut odd = line("1", "1");
            odd[name] = value;
            let mut document = document(&[line("1", "1"), odd]);
            let refused =
                complete_amounts(&mut document, DocumentForm::Full, &catalog()).unwrap_err();
            let rules: Vec<_> = refused
                .iter()
                .map(|fault| (fault.path.clone(), fault.rule()))
                .collect();
            assert_eq!(rules.len(), 1, "{name}");
            assert!(
                rules[0].0.starts_with(&format!("invoice_line.1.{name}")),
                "{rules:?}"
            );
            assert_eq!(rules[0].1, rule);
        }
        let mut flat = line("1", "1");
        flat["price"] = json!({ "price_amount_with_tax": 1 });
        flat["discount_amount"] = json!(1);
        let refused = complete_amounts(&mut document(&[flat]), DocumentForm::Full, &catalog());
        assert_eq!(
            refused.unwrap_err().iter().next().unwrap().rule(),
            "prohibited"
        );
    }

    #[test]
    fn the_one_tax_of_the_document_is_the_tax_of_its_lines() {
        let mut bare = line("2", "500");
        bare.as_object_mut().unwrap().remove("tax_category");
        let mut document = document(&[bare]);
        let taxes = json!([{ "tax_amount": 75, "tax_subtotal": [{
            "taxable_amount": 1000, "tax_amount": 75, "tax_category": { "id": "STANDARD_VAT", "percent": number("7.5") },
        }] }]);
        document.insert("tax_total".to_owned(), taxes.clone());
        complete_amounts(&mut document, DocumentForm::Authority, &catalog()).unwrap();
        assert_eq!(document["tax_total"], taxes, "what is stated stays");
        assert_eq!(
            document["legal_monetary_total"]["payable_amount"].to_string(),
            "1075.00"
        );
    }

    #[test]
    fn a_tax_total_without_amounts_gets_them_and_one_with_a_wrong_amount_is_off() {
        let category = json!({ "id": "STANDARD_VAT", "percent": number("7.5") });
        let off = "The tax_total field is off: 10.00 ≠ 7.5 % of 1,000.00.";
        let off_part =
            "The tax_total.0.tax_subtotal.0.tax_amount field is off: 10.00 ≠ 7.5 % of 1,000.00.";
        let off_percent = "The tax_total.0.tax_subtotal.0.tax_category.percent field is off: 5 ≠ 7.5, the percent of STANDARD_VAT.";
        let other = json!({ "id": "STANDARD_VAT", "percent": 5 });
        for (subtotal, tax, faults) in [
            (json!({ "tax_category": category }), None, &[][..]),
            (
                json!({ "tax_category": category, "taxable_amount": 1_000 }),
                None,
                &[],
            ),
            (
                json!({ "tax_category": category, "tax_amount": 75 }),
                None,
                &[],
            ),
            (json!({ "tax_category": category }), Some(75), &[]),
            (json!({ "tax_category": category }), Some(10), &[off]),
            (
                json!({ "tax_category": category, "tax_amount": 10 }),
                None,
                &[off_part],
            ),
            (json!({ "tax_category": other }), None, &[off_percent]),
            (
                json!({ "tax_category": other, "taxable_amount": 1_000, "tax_amount": 75 }),
                Some(75),
                &[off_percent],
            ),
        ] {
            for form in [DocumentForm::Full, DocumentForm::Authority] {
                let mut document = document(&[line("2", "500")]);
                let total = json!([{ "tax_amount": tax, "tax_subtotal": [subtotal] }]);
                document.insert("tax_total".to_owned(), total);
                let refused = complete_amounts(&mut document, form, &catalog()).err();
                let refused = refused.map(|faults| texts(&faults)).unwrap_or_default();
                assert_eq!(refused, faults, "{subtotal} {tax:?}");
                let amounts =
                    ["tax_amount", "tax_subtotal"].map(|name| &document["tax_total"][0][name]);
                assert!(amounts[0].is_number(), "{amounts:?}");
                let parts = ["taxable_amount", "tax_amount"].map(|name| &amounts[1][0][name]);
                assert!(parts.iter().all(|part| part.is_number()), "{parts:?}");
            }
        }
    }

    #[test]
    fn amounts_beyond_all_bounds_are_refused() {
        let huge = line("999999999999999", "999999999999999");
        let refused = complete_amounts(&mut document(&[huge]), DocumentForm::Full, &catalog());
        assert_eq!(refused.unwrap_err().iter().next().unwrap().rule(), "max");
    }
}
