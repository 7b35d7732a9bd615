//! Accepts VAT reports. The invoice need not be signed. A new report replaces the old one of the same invoice.

use super::answer::{OperationResult, body};
use crate::call::Call;
use crate::decimal;
use crate::document::Node;
use crate::reply::Refusal;
use crate::state::State;

const TEXT_FIELDS: [&str; 8] = [
    "agent_tin",
    "beneficiary_tin",
    "irn",
    "currency",
    "item_description",
    "transaction_date",
    "integrator_service_id",
    "vat_status",
];
const NUMBER_FIELDS: [&str; 4] = ["base_amount", "vat_rate", "vat_calculated", "total_amount"];
const VAT_STATUSES: [&str; 5] = [
    "STANDARD_VAT",
    "REDUCED_VAT",
    "ZERO_VAT",
    "EXEMPT",
    "NON_VATABLE",
];

pub(super) fn report(call: &Call, state: &State) -> OperationResult {
    let root = Node::root("vatpostpaymentrequest", body(call)?);
    check(&root).map_err(Refusal::document)?;
    let irn = call.irn().unwrap_or_default();
    let report = call.body.to_string();
    state.ledger.lock().add_report(irn, report);
    Ok(serde_json::json!({ "ok": true, "irn": irn }))
}

fn check(root: &Node<'_>) -> Result<(), String> {
    for name in TEXT_FIELDS {
        root.at(name).text()?;
    }
    for name in NUMBER_FIELDS {
        check_number(&root.at(name))?;
    }
    root.at("other_taxes").check_if_present(check_number)?;
    root.at("transaction_date").date()?;
    root.at("vat_status").word_in(&VAT_STATUSES)?;
    Ok(())
}

fn check_number(node: &Node<'_>) -> Result<(), String> {
    match decimal::from_text(node.text()?) {
        Some(_) => Ok(()),
        None => Err(node.fault("must be a number in a string")),
    }
}
