//! Completes a body whose caller leaves amounts to this service (`?calculate=true`), before its form reads it.

use serde_json::{Map, Value};

use crate::domain::invoice::Draft;
use crate::domain::invoice::calculation::{self, Calculation, DocumentForm};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::full_invoice::{self, InvoiceContext};
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
    let outcome = calculation::complete(&mut fields, form, catalog);
    ComputedBody { fields, outcome }
}

/// Reads Create Invoice (Full), and computes its amounts first if the caller asks for it.
pub(crate) fn read_full_invoice(
    body: &Map<String, Value>,
    account: InvoiceContext<'_>,
    catalog: &Catalog,
    calculates: bool,
) -> Result<(AcceptedForm<Draft>, Option<Calculation>), Faults> {
    if !calculates {
        return full_invoice::read(body, account, catalog).map(|form| (form, None));
    }
    let ComputedBody { fields, outcome } = compute_amounts(body, DocumentForm::Full, catalog);
    let form = full_invoice::read_completed(body, &fields, account, catalog);
    combine_results(form, Some(outcome))
}

/// Joins what the form found with what was computed; `outcome` is `None` if nothing was to be computed. A missing
/// amount that could not be computed is not reported, because the fault that prevented it already is.
pub(crate) fn combine_results<T>(
    read: Result<AcceptedForm<T>, Faults>,
    outcome: Option<Result<Calculation, Faults>>,
) -> Result<(AcceptedForm<T>, Option<Calculation>), Faults> {
    match (read, outcome.transpose()) {
        (Ok(form), Ok(calculation)) => Ok((form, calculation)),
        (Ok(_), Err(faults)) | (Err(faults), Ok(_)) => Err(faults),
        (Err(of_form), Err(of_sums)) => {
            let is_cause =
                |fault: &&Fault| !(fault.rule() == "required" && is_computed(&fault.path));
            let causes: Vec<_> = of_form.iter().filter(is_cause).collect();
            let is_new = |fault: &&Fault| !causes.iter().any(|known| known.path == fault.path);
            let sums = of_sums.iter().filter(is_new);
            Err(causes.iter().copied().chain(sums).cloned().collect())
        }
    }
}

fn is_computed(path: &str) -> bool {
    path.starts_with("legal_monetary_total")
        || path.starts_with("tax_total")
        || path.ends_with(".line_extension_amount")
        || path.ends_with(".total_tax")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(all: &[(&str, &'static str)]) -> Faults {
        all.iter()
            .map(|(path, rule)| Fault::new(*path, rule, "x"))
            .collect()
    }

    #[test]
    fn only_the_causes_are_told() {
        let form = faults(&[
            ("invoice_line.0.invoiced_quantity", "required"),
            ("invoice_line.0.line_extension_amount", "required"),
            ("legal_monetary_total", "required"),
            ("legal_monetary_total.payable_amount", "type"),
            ("legal_monetary_total.tax_inclusive_amount", "required"),
            ("irn", "required"),
        ]);
        let sums = faults(&[
            ("invoice_line.0.invoiced_quantity", "required"),
            ("legal_monetary_total.tax_inclusive_amount", "sum"),
        ]);
        let joined = combine_results::<()>(Err(form), Some(Err(sums))).unwrap_err();
        let paths: Vec<_> = joined.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "invoice_line.0.invoiced_quantity",
                "legal_monetary_total.payable_amount",
                "irn",
                "legal_monetary_total.tax_inclusive_amount",
            ]
        );
    }
}
