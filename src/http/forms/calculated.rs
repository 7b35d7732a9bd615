//! Computes the amounts that the caller leaves out of a body (`?calculate=true`), before the form reads the body.

use serde_json::{Map, Value};

use crate::domain::invoice::Draft;
use crate::domain::invoice::calculation::{self, Calculation, DocumentForm};
use crate::domain::kernel::fault::{Fault, Faults, json_pointer};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::full_invoice::{self, InvoiceContext};
use crate::http::forms::json_path::{is_absent, is_blank};
use crate::http::forms::reader::AcceptedForm;

/// A body with the amounts that could be computed.
#[derive(Debug)]
pub(crate) struct ComputedBody {
    pub(crate) fields: Map<String, Value>,
    pub(crate) outcome: Result<Calculation, Faults>,
}

pub(crate) fn compute_amounts(
    body: &Map<String, Value>,
    form: DocumentForm,
    catalog: &Catalog,
) -> ComputedBody {
    let mut fields = body.clone();
    let outcome = calculation::complete_amounts(&mut fields, form, catalog);
    ComputedBody { fields, outcome }
}

/// Reads Create Invoice (Full), and computes its amounts first if the caller asks for it.
pub(crate) fn read_full_invoice(
    body: &Map<String, Value>,
    context: InvoiceContext<'_>,
    catalog: &Catalog,
    calculates: bool,
) -> Result<(AcceptedForm<Draft>, Option<Calculation>), Faults> {
    if !calculates {
        return full_invoice::read(body, context, catalog).map(|form| (form, None));
    }
    let ComputedBody { fields, outcome } = compute_amounts(body, DocumentForm::Full, catalog);
    let form = full_invoice::read_completed(body, &fields, context, catalog);
    combine_results(body, form, Some(outcome))
}

/// Combines the result of the form with the outcome of the computation, which is `None` if the caller did not request a
/// computation. `sent` is the body without the computed amounts.
pub(crate) fn combine_results<T>(
    sent: &Map<String, Value>,
    form: Result<AcceptedForm<T>, Faults>,
    outcome: Option<Result<Calculation, Faults>>,
) -> Result<(AcceptedForm<T>, Option<Calculation>), Faults> {
    match (form, outcome.transpose()) {
        (Ok(form), Ok(calculation)) => Ok((form, calculation)),
        (Ok(_), Err(faults)) | (Err(faults), Ok(None)) => Err(faults),
        (Err(form_faults), Ok(Some(_))) => Err(join_faults(sent, &form_faults, None)),
        (Err(form_faults), Err(sum_faults)) => {
            Err(join_faults(sent, &form_faults, Some(&sum_faults)))
        }
    }
}

/// Joins the faults of the form (`form_faults`) with the faults of the computation (`sum_faults`; `None` if everything
/// was computed). Leaves out faults of computed fields that only follow from faults of the fields that the caller sent.
fn join_faults(
    sent: &Map<String, Value>,
    form_faults: &Faults,
    sum_faults: Option<&Faults>,
) -> Faults {
    let mut causes: Vec<_> = form_faults
        .iter()
        .filter(|fault| !is_left_to_compute(sent, &fault.path))
        .collect();
    let new_sum_faults = sum_faults.into_iter().flat_map(Faults::iter);
    let new_sum_faults: Vec<_> = new_sum_faults
        .filter(|fault| !causes.iter().any(|known| makes_redundant(known, fault)))
        .collect();
    causes.extend(&new_sum_faults);
    let reported = form_faults.iter().filter(|fault| {
        let is_cause = !is_left_to_compute(sent, &fault.path);
        is_cause || !follows_from_other_fault(fault, &causes, sum_faults.is_some())
    });
    reported.chain(new_sum_faults).cloned().collect()
}

/// Returns true if the fault of a computed field only follows from another fault: the field is missing because the
/// computation failed, or the field was computed from a line that has a fault.
fn follows_from_other_fault(
    fault: &Fault,
    causes: &[&Fault],
    has_computation_failed: bool,
) -> bool {
    if fault.rule() == "required" {
        return has_computation_failed;
    }
    line_path_prefix(&fault.path)
        .is_some_and(|line| causes.iter().any(|cause| cause.path.starts_with(line)))
}

/// Returns the part of a path that names its line, such as `invoice_line.0.`; `None` if the path is not within a line.
fn line_path_prefix(path: &str) -> Option<&str> {
    let after_list = path.strip_prefix("invoice_line.")?;
    let (_, path_in_line) = after_list.split_once('.')?;
    path.strip_suffix(path_in_line)
}

/// Returns true if `other` adds nothing to the fault `known`: both are faults of the same field, or `known` says that
/// the object around the field of `other` is missing or is no object.
fn makes_redundant(known: &Fault, other: &Fault) -> bool {
    let is_missing = matches!(known.rule(), "required" | "type");
    let rest = other.path.strip_prefix(known.path.as_str());
    rest.is_some_and(|rest| rest.is_empty() || is_missing && rest.starts_with('.'))
}

/// Returns true if the caller leaves the field at this path to the computation.
fn is_left_to_compute(sent: &Map<String, Value>, path: &str) -> bool {
    let is_computed = path.starts_with("legal_monetary_total")
        || path.starts_with("tax_total")
        || path.ends_with(".line_extension_amount")
        || path.ends_with(".total_tax")
        || path.ends_with(".price.price_amount") && has_price_with_tax(sent, path);
    is_computed && value_at(sent, path).is_none_or(is_absent)
}

/// Returns true if the line of this price states the price with tax.
fn has_price_with_tax(sent: &Map<String, Value>, price_path: &str) -> bool {
    let price_with_tax = value_at(sent, &format!("{price_path}_with_tax"));
    price_with_tax.is_some_and(|price| !price.is_null() && !is_blank(price))
}

fn value_at<'v>(sent: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    match path.split_once('.') {
        Some((name, rest)) => sent.get(name)?.pointer(&json_pointer(rest)),
        None => sent.get(path),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{catalog, full_invoice, number, object, with_member};

    fn faults(all: &[(&str, &'static str)]) -> Faults {
        all.iter()
            .map(|(path, rule)| Fault::new(*path, rule, "x"))
            .collect()
    }

    #[test]
    fn only_the_causes_are_reported() {
        let form_faults = faults(&[
            ("invoice_line.0.invoiced_quantity", "required"),
            ("invoice_line.0.line_extension_amount", "required"),
            ("invoice_line.1", "type"),
            ("legal_monetary_total.payable_amount", "type"),
            ("legal_monetary_total.tax_inclusive_amount", "required"),
            ("irn", "required"),
        ]);
        let sum_faults = faults(&[
            ("invoice_line.0.invoiced_quantity", "required"),
            ("invoice_line.1.invoiced_quantity", "required"),
            ("legal_monetary_total.tax_exclusive_amount", "sum"),
        ]);
        let sent =
            json!({ "legal_monetary_total": { "payable_amount": "1" }, "invoice_line": [{}, 7] });
        let joined = combine_results::<()>(&object(sent), Err(form_faults), Some(Err(sum_faults)))
            .unwrap_err();
        let paths: Vec<_> = joined.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "invoice_line.0.invoiced_quantity",
                "invoice_line.1",
                "legal_monetary_total.payable_amount",
                "irn",
                "legal_monetary_total.tax_exclusive_amount",
            ]
        );
    }

    /// Reads the sample without its amounts and with these members changed, and returns the violated rules.
    fn broken_rules(changes: &[(&str, Value)]) -> Vec<String> {
        let mut body = full_invoice();
        for path in [
            "/legal_monetary_total",
            "/invoice_line/0/line_extension_amount",
            "/invoice_line/0/total_tax",
        ] {
            body = with_member(&body, path, None);
        }
        for (path, value) in changes {
            body = with_member(&body, path, Some(value.clone()));
        }
        let context = InvoiceContext {
            today: "2026-11-21".parse().unwrap(),
            service_id: None,
        };
        let form = read_full_invoice(&object(body), context, &catalog(), true);
        let faults = form.err().unwrap_or_default();
        let rules = faults.iter();
        rules
            .map(|fault| format!("{}: {}", fault.path, fault.rule()))
            .collect()
    }

    #[test]
    fn a_fault_of_a_sent_field_hides_the_faults_that_follow_from_it() {
        const PRICE: &str = "/invoice_line/0/price";
        let price = |name: &str, value: Value| {
            let mut price = json!({ "base_quantity": 1, "price_unit": "KGM" });
            price[name] = value;
            (PRICE, price)
        };
        let with_tax = |value: Value| price("price_amount_with_tax", value);
        let line_rule = |name: &str, rule: &str| format!("invoice_line.0.{name}: {rule}");
        let flat = ("/invoice_line/0/fee_amount", json!(1));
        let rate = ("/invoice_line/0/discount_rate", json!(101));
        let both = ("/invoice_line/0/price/price_amount_with_tax", json!(107.5));
        let part = json!({ "tax_category": { "id": "STANDARD_VAT", "percent": 5 } });
        let taxes = ("/tax_total", json!([{ "tax_subtotal": [part] }]));
        let price_rule = |rule: &str| line_rule("price.price_amount_with_tax", rule);
        let percent = "tax_total.0.tax_subtotal.0.tax_category.percent: same";
        for (changes, expected) in [
            (vec![], vec![]),
            (vec![with_tax(number("107.50"))], vec![]),
            (vec![with_tax(json!("107.50"))], vec![price_rule("type")]),
            (
                vec![with_tax(number("1.1234567"))],
                vec![price_rule("digits")],
            ),
            (vec![with_tax(json!(-1))], vec![price_rule("min")]),
            (vec![both], vec![price_rule("prohibited")]),
            (
                vec![with_tax(json!(" "))],
                vec![line_rule("price.price_amount", "required")],
            ),
            (
                vec![price("price_amount", json!("1"))],
                vec![line_rule("price.price_amount", "type")],
            ),
            (vec![(PRICE, json!("1"))], vec![line_rule("price", "type")]),
            (
                vec![with_tax(json!(100)), flat.clone()],
                vec![line_rule("fee_amount", "prohibited")],
            ),
            (
                vec![with_tax(json!("1")), flat, ("/irn", json!("x"))],
                vec!["irn: irn_malformed".to_owned(), price_rule("type")],
            ),
            (vec![rate], vec![line_rule("discount_rate", "max")]),
            // No sent field breaks a rule, so the fault of the computed amount is reported.
            (
                vec![price("price_amount", json!(0))],
                vec![line_rule("line_extension_amount", "min")],
            ),
            (
                vec![("/invoice_line/0/line_extension_amount", json!("200"))],
                vec![line_rule("line_extension_amount", "type")],
            ),
            (
                vec![("/invoice_line/0/total_tax", json!("15"))],
                vec![line_rule("total_tax", "type")],
            ),
            (
                vec![("/legal_monetary_total", json!("215"))],
                vec!["legal_monetary_total: type".to_owned()],
            ),
            (
                vec![("/tax_total", json!({}))],
                vec!["tax_total: type".to_owned()],
            ),
            (vec![taxes], vec![percent.to_owned()]),
        ] {
            assert_eq!(broken_rules(&changes), expected, "{changes:?}");
        }
    }
}
