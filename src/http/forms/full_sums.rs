//! Warnings about the amounts that a document states. Create Invoice (Full) stores amounts as they were sent, even if
//! they do not agree with each other. Submit passes on amounts even if they have more digits than the currency. In both
//! cases the caller gets a warning.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::invoice::Draft;
use crate::domain::money::{Amount, TOLERANCE};
use crate::domain::reference::catalog::Catalog;

/// The members of the document that hold amounts.
const AMOUNT_MEMBERS: [&str; 3] = ["legal_monetary_total", "tax_total", "allowance_charge"];

/// The fields within `AMOUNT_MEMBERS` that hold an amount.
const AMOUNT_FIELDS: [&str; 7] = [
    "line_extension_amount",
    "tax_exclusive_amount",
    "tax_inclusive_amount",
    "payable_amount",
    "taxable_amount",
    "tax_amount",
    "amount",
];

/// Returns the warnings about a draft. `sent` is the body without the amounts that were computed for it.
pub(crate) fn warnings(draft: &Draft, sent: &Map<String, Value>, catalog: &Catalog) -> Vec<String> {
    let payable_warning = payable_warning(draft).filter(|_| states_payable_amount(sent));
    let warnings = [
        payable_warning,
        tax_warning(draft, catalog),
        percent_warning(draft, catalog).or_else(|| subtotal_warning(draft, catalog)),
        surplus_digits_warning(draft, catalog),
    ];
    warnings.into_iter().flatten().collect()
}

fn states_payable_amount(body: &Map<String, Value>) -> bool {
    let totals = body.get("legal_monetary_total");
    let payable = totals.and_then(|totals| totals.get("payable_amount"));
    payable.is_some_and(|payable| !payable.is_null())
}

/// Returns a warning if the payable amount is not the amount with tax plus the charges on the whole document.
fn payable_warning(draft: &Draft) -> Option<String> {
    let inclusive = stated_total(draft, "tax_inclusive_amount")?;
    let charges = charges_less_allowances(draft)?;
    let payable = draft.payable;
    let expected = inclusive.plus(charges)?;
    let with_charges = if charges.is_zero() {
        String::new()
    } else {
        format!(" and with allowance_charge {expected}")
    };
    (payable != expected).then(|| {
        format!(
            "legal_monetary_total.payable_amount is {payable}, but tax_inclusive_amount is {inclusive}{with_charges}; \
             the invoice is stored as sent"
        )
    })
}

/// Returns a warning if the tax of the lines, or the tax in `tax_total`, is not the difference of the totals with and
/// without tax.
fn tax_warning(draft: &Draft, catalog: &Catalog) -> Option<String> {
    let inclusive = stated_total(draft, "tax_inclusive_amount")?;
    let tax = inclusive.minus(stated_total(draft, "tax_exclusive_amount")?)?;
    let tax_of_lines = Amount::sum(
        draft
            .lines
            .iter()
            .filter_map(|line| parse_amount(line.extras.get("total_tax"))),
    )?;
    let stated_taxes = [
        (
            "the total_tax of the lines",
            Some(tax_of_lines),
            rounding_tolerance(draft, catalog)?,
        ),
        ("tax_total", stated_tax_sum(draft), Amount::HUNDREDTH),
    ];
    let deviation = stated_taxes
        .into_iter()
        .find_map(|(name, sum, tolerance)| {
            let sum = sum.filter(|sum| !sum.is_within(tolerance, tax))?;
            Some(format!("{name} comes to {sum}"))
        })?;
    Some(format!(
        "{deviation}, but legal_monetary_total.tax_inclusive_amount less tax_exclusive_amount is {tax}; \
         the invoice is stored as sent"
    ))
}

/// Returns the largest difference that may come from rounding, because the tax of each line may be rounded by itself.
fn rounding_tolerance(draft: &Draft, catalog: &Catalog) -> Option<Amount> {
    let lines = i64::try_from(draft.lines.len()).ok()?;
    let unit = Amount::smallest_amount(catalog.currency_digits(&draft.currency).min(2));
    unit.times(lines.into())
}

/// Returns a warning about the first subtotal in `tax_total` whose tax is not the stated percent of the taxable amount.
fn percent_warning(draft: &Draft, catalog: &Catalog) -> Option<String> {
    let tolerance = rounding_tolerance(draft, catalog)?;
    let digits = catalog.currency_digits(&draft.currency);
    let totals = draft.extras.get("tax_total")?.as_array()?;
    totals.iter().enumerate().find_map(|(total_index, total)| {
        let subtotals = total.get("tax_subtotal")?.as_array()?;
        subtotals
            .iter()
            .enumerate()
            .find_map(|(subtotal_index, subtotal)| {
                let percent = parse_amount(subtotal.get("tax_category")?.get("percent"))?;
                let base = parse_amount(subtotal.get("taxable_amount"))?;
                let tax = parse_amount(subtotal.get("tax_amount"))?;
                let expected_tax = percent.percent_share(base)?;
                let shown = expected_tax.round_half_up(digits).with_digits(digits);
                (!tax.is_within(tolerance, expected_tax)).then(|| {
                format!(
                    "tax_total.{total_index}.tax_subtotal.{subtotal_index}.tax_amount is {tax}, \
                     but {percent} % of {base} is {shown}; the invoice is stored as sent"
                )
            })
            })
    })
}

/// Returns a warning about the first tax total whose subtotals do not add up to it.
fn subtotal_warning(draft: &Draft, catalog: &Catalog) -> Option<String> {
    let digits = catalog.currency_digits(&draft.currency);
    let tolerance = TOLERANCE.max(Amount::smallest_amount(digits));
    let totals = draft.extras.get("tax_total")?.as_array()?;
    totals.iter().enumerate().find_map(|(total_index, total)| {
        let subtotals = total.get("tax_subtotal")?.as_array()?;
        let taxes = subtotals
            .iter()
            .map(|subtotal| parse_amount(subtotal.get("tax_amount")));
        let sum = Amount::sum(taxes.collect::<Option<Vec<_>>>()?)?;
        let stated = parse_amount(total.get("tax_amount"))?;
        let adds_up = subtotals.is_empty() || sum.is_within(tolerance, stated);
        (!adds_up).then(|| {
            format!(
                "tax_total.{total_index}.tax_amount is {stated}, but its tax_subtotal comes to {sum}; \
                 the invoice is stored as sent, and its taxes are those of the lines"
            )
        })
    })
}

/// Returns the sum of the tax totals that the document states; `None` if it states none.
fn stated_tax_sum(draft: &Draft) -> Option<Amount> {
    let tax_totals = draft.extras.get("tax_total")?.as_array()?;
    let amounts: Vec<_> = tax_totals
        .iter()
        .filter_map(|tax_total| parse_amount(tax_total.get("tax_amount")))
        .collect();
    let has_amounts = !amounts.is_empty();
    Amount::sum(amounts).filter(|_| has_amounts)
}

/// Returns the charges on the whole document less its allowances; `None` if the sum is too large.
fn charges_less_allowances(draft: &Draft) -> Option<Amount> {
    let entries = draft
        .extras
        .get("allowance_charge")
        .and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .try_fold(Amount::ZERO, |sum, entry| {
            let amount = parse_amount(entry.get("amount")).unwrap_or_default();
            if entry.get("charge_indicator") == Some(&Value::Bool(true)) {
                sum.plus(amount)
            } else {
                sum.minus(amount)
            }
        })
}

/// Returns a warning if amounts of an invoice to be stored have more digits after the point than the currency has.
fn surplus_digits_warning(draft: &Draft, catalog: &Catalog) -> Option<String> {
    let digits = catalog.currency_digits(&draft.currency);
    let lines = draft.lines.iter().map(|line| &line.extras);
    let warning_start = surplus_digits_warning_start(&draft.extras, lines, digits)?;
    let currency = &draft.currency;
    Some(format!(
        "{warning_start} more digits after the point than {currency} has ({digits}); \
         the invoice is stored as sent"
    ))
}

/// Returns a warning if amounts of a document for the authority have more digits after the point than the currency has.
pub(crate) fn document_surplus_digits_warning(
    document: &Map<String, Value>,
    catalog: &Catalog,
) -> Option<String> {
    let currency = document.get("document_currency_code")?.as_str()?.trim();
    let digits = catalog.currency_digits(currency);
    let lines = document.get("invoice_line").and_then(Value::as_array);
    let lines = lines.into_iter().flatten().filter_map(Value::as_object);
    let warning_start = surplus_digits_warning_start(document, lines, digits)?;
    Some(format!(
        "{warning_start} more digits after the point than {currency} has ({digits}); \
         the document is passed on like that"
    ))
}

/// Returns the start of a warning about the amounts with more than `digits` digits after the point: the name of the
/// first one, the number of the others, and the verb `has`. The caller appends the rest. `None` if there are no such
/// amounts.
fn surplus_digits_warning_start<'a>(
    document: &Map<String, Value>,
    lines: impl Iterator<Item = &'a Map<String, Value>>,
    digits: u32,
) -> Option<String> {
    let mut paths = Vec::new();
    for name in AMOUNT_MEMBERS {
        if let Some(value) = document.get(name) {
            push_paths_with_surplus_digits(value, name, digits, &mut paths);
        }
    }
    for (index, line) in lines.enumerate() {
        for name in ["line_extension_amount", "total_tax"] {
            if parse_amount(line.get(name)).is_some_and(|sum| sum.has_more_digits(digits)) {
                paths.push(format!("invoice_line.{index}.{name}"));
            }
        }
    }
    let first = paths.first()?;
    let others_text = match paths.len() {
        1 => String::new(),
        count => format!(", like {} more amounts,", count - 1),
    };
    Some(format!("{first}{others_text} has"))
}

/// Adds to `paths` the path of each amount within `value` that has more than `digits` digits after the point.
fn push_paths_with_surplus_digits(value: &Value, path: &str, digits: u32, paths: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{name}");
                let is_amount = AMOUNT_FIELDS.contains(&name.as_str());
                let sum = parse_amount(Some(value)).filter(|_| is_amount);
                if sum.is_some_and(|sum| sum.has_more_digits(digits)) {
                    paths.push(path);
                } else if !is_amount {
                    push_paths_with_surplus_digits(value, &path, digits, paths);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                push_paths_with_surplus_digits(item, &format!("{path}.{index}"), digits, paths);
            }
        }
        _ => {}
    }
}

fn stated_total(draft: &Draft, name: &str) -> Option<Amount> {
    parse_amount(draft.extras.get("legal_monetary_total")?.get(name))
}

fn parse_amount(value: Option<&Value>) -> Option<Amount> {
    Amount::deserialize(value?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::domain::reference::catalog::ReferenceList;
    use crate::http::forms::full_invoice::{self, InvoiceContext};
    use crate::http::forms::testing::{self, catalog, number, object, with_member};

    use super::*;

    /// Reads the sample of 200 and 15 of tax with these members changed, and returns the warnings.
    fn read_warnings(changes: &[(&str, Value)]) -> Vec<String> {
        let mut body = testing::full_invoice();
        for (path, value) in changes {
            body = with_member(&body, path, Some(value.clone()));
        }
        let context = InvoiceContext {
            today: "2026-11-21".parse().unwrap(),
            service_id: None,
        };
        let form = full_invoice::read(&object(body), context, &catalog());
        form.unwrap().warnings
    }

    const PAYABLE: &str = "/legal_monetary_total/payable_amount";
    const INCLUSIVE: &str = "/legal_monetary_total/tax_inclusive_amount";
    const LINE_TAX: &str = "/invoice_line/0/total_tax";

    #[test]
    fn sums_that_do_not_add_up_get_a_warning() {
        let allowance = |amount| json!([{ "charge_indicator": false, "amount": amount }]);
        let charge = json!([{ "charge_indicator": true, "amount": 5 }]);
        let tax = |amount| json!([{ "tax_amount": amount, "tax_subtotal": [] }]);
        let part = |percent: &str, amount: &str| {
            let category = json!({ "id": "STANDARD_VAT", "percent": number(percent) });
            let part = json!({ "taxable_amount": 200, "tax_amount": number(amount), "tax_category": category });
            vec![(
                "/tax_total",
                json!([{ "tax_amount": 15, "tax_subtotal": [part] }]),
            )]
        };
        // A tax total whose only subtotal covers half of the lines.
        let with_half_subtotal = |tax: &str| {
            let category = json!({ "id": "STANDARD_VAT", "percent": number("7.5") });
            let part = json!({ "taxable_amount": 100, "tax_amount": number("7.5"), "tax_category": category });
            vec![(
                "/tax_total",
                json!([{ "tax_amount": number(tax), "tax_subtotal": [part] }]),
            )]
        };
        let cases = [
            (vec![], ""),
            (
                vec![("/allowance_charge", allowance(100)), (PAYABLE, json!(115))],
                "",
            ),
            (
                vec![("/allowance_charge", allowance(100))],
                "payable_amount is 215",
            ),
            (
                vec![("/allowance_charge", charge.clone()), (PAYABLE, json!(220))],
                "",
            ),
            (vec![("/allowance_charge", charge)], "allowance_charge 220"),
            (vec![(PAYABLE, json!(200))], "tax_inclusive_amount is 215"),
            (vec![(PAYABLE, number("215.00"))], ""),
            (
                vec![(PAYABLE, number("215.01"))],
                "payable_amount is 215.01",
            ),
            (
                vec![(PAYABLE, number("214.99"))],
                "payable_amount is 214.99",
            ),
            (
                vec![(INCLUSIVE, json!(216)), (PAYABLE, json!(216))],
                "lines comes to 15",
            ),
            (vec![(LINE_TAX, json!(500))], "lines comes to 500"),
            (vec![("/tax_total", tax(15))], ""),
            (vec![("/tax_total", json!([]))], ""),
            (vec![("/tax_total", tax(14))], "tax_total comes to 14"),
            (part("7.5", "15"), ""),
            (part("7.5", "15.01"), ""),
            (
                part("5", "15"),
                "tax_total.0.tax_subtotal.0.tax_amount is 15, but 5 % of 200 is 10.00",
            ),
            (part("7.5", "15.02"), "but 7.5 % of 200 is 15.00"),
            (
                with_half_subtotal("15"),
                "tax_total.0.tax_amount is 15, but its tax_subtotal comes to 7.5;",
            ),
            (with_half_subtotal("7.51"), "tax_total comes to 7.51"),
        ];
        for (changes, expected) in cases {
            let warnings = read_warnings(&changes);
            assert_eq!(
                warnings.len(),
                usize::from(!expected.is_empty()),
                "{warnings:?}"
            );
            let is_expected = warnings.iter().all(|warning| warning.contains(expected));
            assert!(is_expected, "{expected}: {warnings:?}");
        }
    }

    #[test]
    fn amounts_with_more_digits_than_the_currency_get_a_warning() {
        let long = number("15.004");
        let changes = [
            (LINE_TAX, long.clone()),
            (INCLUSIVE, number("215.004")),
            (PAYABLE, number("215.004")),
        ];
        let expected = "legal_monetary_total.payable_amount, like 2 more amounts, has more digits after the point \
                        than NGN has (2)";
        let warnings = read_warnings(&changes);
        assert!(warnings[0].starts_with(expected), "{warnings:?}");
        let warnings = read_warnings(&[(LINE_TAX, long)]);
        assert!(
            warnings[0].starts_with("invoice_line.0.total_tax has more"),
            "{warnings:?}"
        );
        assert_eq!(read_warnings(&[(LINE_TAX, number("15.000"))]), [""; 0]);
    }

    #[test]
    fn amounts_of_a_document_are_compared_with_the_digits_of_its_currency() {
        let mut catalog = catalog();
        let list = json!([
            { "code": "JPY", "decimal_digits": 0 }, { "code": "NGN", "decimal_digits": 2 },
            { "code": "KWD", "decimal_digits": 3 },
        ]);
        catalog.load(ReferenceList::Currencies, &list);
        for (currency, net, expected) in [
            ("NGN", "10.009", "(2); the document is passed on like that"),
            ("NGN", "10.00", ""),
            ("KWD", "10.009", ""),
            ("KWD", "10.0091", "than KWD has (3)"),
            ("JPY", "10.5", "than JPY has (0)"),
            ("JPY", "10.0", ""),
        ] {
            let document = json!({
                "document_currency_code": currency, "invoice_line": [{ "line_extension_amount": number(net) }],
                "legal_monetary_total": { "line_extension_amount": number(net), "payable_amount": 10 },
            });
            let warning = document_surplus_digits_warning(&object(document), &catalog);
            let warning = warning.unwrap_or_default();
            assert_eq!(warning.is_empty(), expected.is_empty(), "{currency} {net}");
            assert!(warning.contains(expected), "{warning}");
            let names = "legal_monetary_total.line_extension_amount, like 1 more amounts, has";
            assert!(
                warning.is_empty() || warning.starts_with(names),
                "{warning}"
            );
        }
    }
}
