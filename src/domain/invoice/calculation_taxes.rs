//! The taxes of a document whose amounts are computed: a tax divided among lines, and the members of `tax_total` that
//! the document leaves out.

use std::collections::BTreeMap;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Map, Value, json};

use crate::domain::invoice::calculation_terms::{amount_member, is_stated, wrong_amount_fault};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX, apportion};

/// The tax of one category.
pub(super) struct CategoryTax {
    pub(super) category: String,
    pub(super) percent: Amount,
    pub(super) base: Amount,
    pub(super) tax: Amount,
}

/// Rounds a tax half up to this number of digits; `None` if it is too large.
pub(crate) fn round_tax(exact: Decimal, digits: u32) -> Option<Amount> {
    let rounded = exact.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero);
    Amount::parse(&rounded.to_string()).ok()
}

/// Divides a tax among its lines, so that their taxes add up to it (largest remainder method). `exact` holds the
/// unrounded tax of each line. Returns `None` if a tax is too large.
pub(crate) fn divide_tax(tax: Amount, exact: &[Decimal], digits: u32) -> Option<Vec<Amount>> {
    let exact = exact.iter().map(|tax| round_tax(*tax, FRACTION_DIGITS_MAX));
    let parts = apportion(tax, &exact.collect::<Option<Vec<_>>>()?, digits)?;
    Some(
        parts
            .into_iter()
            .map(|part| part.with_digits(digits))
            .collect(),
    )
}

/// Returns the tax category of all lines, if the document states its taxes with one category only.
pub(super) fn only_tax_category(document: &Map<String, Value>) -> Option<String> {
    let totals = document.get("tax_total")?.as_array()?;
    let subtotals = totals
        .iter()
        .filter_map(|total| total.get("tax_subtotal")?.as_array())
        .flatten();
    let mut categories = subtotals.filter_map(category_id);
    let first = categories.next()?;
    categories
        .all(|other| other == first)
        .then(|| first.to_owned())
}

/// Returns the subtotal of a tax as a document states it.
pub(super) fn subtotal(part: &CategoryTax) -> Value {
    json!({
        "taxable_amount": part.base,
        "tax_amount": part.tax,
        "tax_category": { "id": part.category, "percent": part.percent },
    })
}

/// Fills in the members that the taxes of a document leave out. A category that several subtotals name stays as it is
/// stated, because nothing says how its tax is divided among them.
pub(super) fn complete_tax_totals(totals: &mut [Value], taxes: &[CategoryTax], digits: u32) {
    let uses = count_subtotals_by_category(totals);
    let is_only = totals.len() == 1;
    for total in totals.iter_mut().filter_map(Value::as_object_mut) {
        if is_only && has_no_subtotal(total) {
            let parts = taxes.iter().map(subtotal);
            total.insert("tax_subtotal".to_owned(), parts.collect());
        }
        let parts = total.get_mut("tax_subtotal").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            let tax = find_tax(part, taxes);
            if let Some(tax) = tax.filter(|tax| uses.get(&tax.category) == Some(&1)) {
                complete_subtotal(part, tax);
            }
        }
        if is_left_out(total, "tax_amount")
            && let Some(sum) = subtotals_sum(total)
        {
            total.insert("tax_amount".to_owned(), json!(sum.with_digits(digits)));
        }
    }
}

/// Returns the faults of stated percents, bases and taxes that are not those of the lines. The amounts of a category
/// that several subtotals name are not compared, because nothing says how they are divided. If the document has charges
/// or allowances of its own (`has_charges`), no base is compared, because a base may include them.
pub(super) fn subtotal_faults(
    totals: &[Value],
    taxes: &[CategoryTax],
    has_charges: bool,
) -> Faults {
    let uses = count_subtotals_by_category(totals);
    let mut faults = Faults::default();
    for (at, total) in totals.iter().enumerate() {
        let parts = total.get("tax_subtotal").and_then(Value::as_array);
        for (index, part) in parts.into_iter().flatten().enumerate() {
            let Some(tax) = find_tax(part, taxes) else {
                continue;
            };
            let path = format!("tax_total.{at}.tax_subtotal.{index}");
            if let Some(fault) = percent_fault(part, tax, &path) {
                faults.push(fault);
            }
            if uses.get(&tax.category) == Some(&1) {
                let base = base_fault(part, tax, &path).filter(|_| !has_charges);
                for fault in base.into_iter().chain(tax_fault(part, tax, &path)) {
                    faults.push(fault);
                }
            }
        }
    }
    faults
}

fn percent_fault(part: &Value, tax: &CategoryTax, path: &str) -> Option<Fault> {
    let stated = amount_member(part.get("tax_category")?, "percent")?;
    let sentence = format!(
        "is off: {stated} ≠ {}, the percent of {}",
        tax.percent, tax.category
    );
    let rule = FieldRule::other("same", sentence);
    (stated != tax.percent).then(|| Fault::field(format!("{path}.tax_category.percent"), rule))
}

fn base_fault(part: &Value, tax: &CategoryTax, path: &str) -> Option<Fault> {
    let stated = amount_member(part, "taxable_amount")?;
    let path = format!("{path}.taxable_amount");
    wrong_amount_fault(path, stated, tax.base.into(), || {
        let base = tax.base.to_grouped_text();
        format!("{base}, the lines of {}", tax.category)
    })
}

fn tax_fault(part: &Value, tax: &CategoryTax, path: &str) -> Option<Fault> {
    let stated = amount_member(part, "tax_amount")?;
    let path = format!("{path}.tax_amount");
    wrong_amount_fault(path, stated, tax.tax.into(), || {
        format!("{} % of {}", tax.percent, tax.base.to_grouped_text())
    })
}

/// Returns the number of subtotals that name each category.
fn count_subtotals_by_category(totals: &[Value]) -> BTreeMap<String, usize> {
    let parts = totals
        .iter()
        .filter_map(|total| total.get("tax_subtotal")?.as_array())
        .flatten();
    let mut uses = BTreeMap::new();
    for id in parts.filter_map(category_id) {
        *uses.entry(id.to_owned()).or_default() += 1;
    }
    uses
}

/// Returns the computed tax of the category that a subtotal names; `None` if no line has that category.
fn find_tax<'t>(part: &Value, taxes: &'t [CategoryTax]) -> Option<&'t CategoryTax> {
    let id = category_id(part)?;
    taxes.iter().find(|tax| tax.category == id)
}

fn category_id(subtotal: &Value) -> Option<&str> {
    let id = subtotal.pointer("/tax_category/id")?;
    id.as_str().map(str::trim)
}

fn is_left_out(object: &Map<String, Value>, name: &str) -> bool {
    !object.get(name).is_some_and(is_stated)
}

fn has_no_subtotal(total: &Map<String, Value>) -> bool {
    let parts = total.get("tax_subtotal").and_then(Value::as_array);
    is_left_out(total, "tax_subtotal") || parts.is_some_and(Vec::is_empty)
}

fn complete_subtotal(subtotal: &mut Value, tax: &CategoryTax) {
    let amounts = [("taxable_amount", tax.base), ("tax_amount", tax.tax)];
    if let Some(subtotal) = subtotal.as_object_mut() {
        fill_in_amounts(subtotal, &amounts);
    }
    let category = subtotal.get_mut("tax_category");
    if let Some(category) = category.and_then(Value::as_object_mut) {
        fill_in_amounts(category, &[("percent", tax.percent)]);
    }
}

/// Writes the amounts that an object does not state.
pub(super) fn fill_in_amounts(object: &mut Map<String, Value>, amounts: &[(&str, Amount)]) {
    for (name, amount) in amounts {
        if is_left_out(object, name) {
            object.insert((*name).to_owned(), json!(amount));
        }
    }
}

/// Returns the sum of the taxes of the subtotals; `None` if one of them states no tax, or if there are none.
fn subtotals_sum(total: &Map<String, Value>) -> Option<Amount> {
    let parts = total.get("tax_subtotal")?.as_array()?;
    let taxes = parts.iter().map(|part| amount_member(part, "tax_amount"));
    let taxes = taxes.collect::<Option<Vec<_>>>()?;
    Amount::sum(taxes.iter().copied()).filter(|_| !taxes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(texts: &[&str]) -> Vec<Decimal> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_taxes_of_lines_add_up_in_every_currency() {
        for (exact, digits, tax, parts) in [
            (&["0.405"][..], 2, "0.41", &["0.41"][..]),
            (&["0.045"], 2, "0.05", &["0.05"]),
            (&["0.075525"], 3, "0.076", &["0.076"]),
            (&["22.501275"], 3, "22.501", &["22.501"]),
            (&["7.575"], 0, "8", &["8"]),
            (&["0.08025"; 3], 2, "0.24", &["0.08"; 3]),
            (&["0.005"; 3], 2, "0.02", &["0.01", "0.01", "0.00"]),
        ] {
            let exact = decimals(exact);
            let rounded = round_tax(exact.iter().sum(), digits).unwrap();
            assert_eq!(rounded.to_string(), tax, "{exact:?}");
            let found = divide_tax(rounded, &exact, digits).unwrap();
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, parts, "{exact:?}");
        }
    }

    fn tax(category: &str, base: &str, tax: &str) -> CategoryTax {
        let amount = |text: &str| Amount::parse(text).unwrap();
        CategoryTax {
            category: category.to_owned(),
            percent: amount("7.5"),
            base: amount(base),
            tax: amount(tax),
        }
    }

    #[test]
    fn blanks_around_a_tax_category_make_no_other_one() {
        for (ids, expected) in [
            (&["VAT"][..], Some("VAT")),
            (&[" VAT "], Some("VAT")),
            (&["VAT", " VAT"], Some("VAT")),
            (&["VAT", "GST"], None),
            (&[], None),
        ] {
            let parts: Vec<_> = ids
                .iter()
                .map(|id| json!({ "tax_category": { "id": id } }))
                .collect();
            let mut document = Map::new();
            document.insert("tax_total".to_owned(), json!([{ "tax_subtotal": parts }]));
            let found = only_tax_category(&document);
            assert_eq!(found.as_deref(), expected, "{ids:?}");
        }
    }

    #[test]
    fn each_member_of_a_tax_total_that_is_left_out_is_filled_in() {
        let vat = r#""tax_category":{"id":"VAT","percent":7.5}"#;
        let whole = format!(
            r#"[{{"tax_amount":7.50,"tax_subtotal":[{{{vat},"tax_amount":7.50,"taxable_amount":100.00}}]}}]"#
        );
        let twice = format!(r#"[{{"tax_subtotal":[{{{vat}}},{{{vat}}}]}}]"#);
        for (sent, expected) in [
            ("[{}]".to_owned(), &whole),
            (r#"[{"tax_amount":null}]"#.to_owned(), &whole),
            (r#"[{"tax_subtotal":[]}]"#.to_owned(), &whole),
            (format!(r#"[{{"tax_subtotal":[{{{vat}}}]}}]"#), &whole),
            (
                r#"[{"tax_subtotal":[{"tax_category":{"id":"VAT"}}]}]"#.to_owned(),
                &whole,
            ),
            (
                format!(r#"[{{"tax_subtotal":[{{{vat},"taxable_amount":100.00}}]}}]"#),
                &whole,
            ),
            (
                format!(r#"[{{"tax_amount":7.50,"tax_subtotal":[{{{vat},"tax_amount":7.50}}]}}]"#),
                &whole,
            ),
            (
                r#"[{"tax_amount":" ","tax_subtotal":""}]"#.to_owned(),
                &whole,
            ),
            // Nothing says how the tax is divided between two subtotals of one category.
            (twice.clone(), &twice),
        ] {
            let mut totals: Vec<Value> = strict_json::from_trusted(&sent).unwrap();
            complete_tax_totals(&mut totals, &[tax("VAT", "100.00", "7.50")], 2);
            let expected: Vec<Value> = strict_json::from_trusted(expected).unwrap();
            assert_eq!(totals, expected, "{sent}");
        }
    }

    #[test]
    fn each_stated_member_that_is_not_of_the_lines_is_a_fault() {
        let part = |percent: &str, base: &str, tax: &str| {
            format!(
                r#"{{"tax_category":{{"id":" VAT ","percent":{percent}}},"taxable_amount":{base},"tax_amount":{tax}}}"#
            )
        };
        let field = |name: &str, sentence: &str| {
            format!("The tax_total.0.tax_subtotal.0.{name} field is off: {sentence}.")
        };
        let percent = field("tax_category.percent", "5 ≠ 7.5, the percent of VAT");
        let base = field("taxable_amount", "50.00 ≠ 100.00, the lines of VAT");
        let due = field("tax_amount", "5.00 ≠ 7.5 % of 100.00");
        let twice = format!("{},{}", part("5", "50", "3"), part("7.50", "50", "3"));
        let odd = r#"{"tax_category":{"id":"ODD","percent":5}}"#.to_owned();
        for (parts, has_charges, expected) in [
            (part("7.50", "100", "7.51"), false, vec![]),
            (part("null", "null", "null"), false, vec![]),
            (part("5", "null", "null"), false, vec![&percent]),
            (part("7.5", "50", "7.5"), false, vec![&base]),
            (part("7.5", "100", "5"), false, vec![&due]),
            (part("5", "50", "5"), false, vec![&percent, &base, &due]),
            (part("5", "50", "5"), true, vec![&percent, &due]),
            // Nothing says how the base and the tax are divided between two subtotals of one category.
            (twice, false, vec![&percent]),
            (odd, false, vec![]),
        ] {
            let totals = format!(r#"[{{"tax_subtotal":[{parts}]}}]"#);
            let totals: Vec<Value> = strict_json::from_trusted(&totals).unwrap();
            let found = subtotal_faults(&totals, &[tax("VAT", "100.00", "7.50")], has_charges);
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            let expected: Vec<_> = expected.into_iter().cloned().collect();
            assert_eq!(found, expected, "{parts}, {has_charges}");
        }
    }
}
