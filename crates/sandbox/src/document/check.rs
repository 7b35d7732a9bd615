//! Runs the checks of a document in order, and checks the members that have no module of their own.

use serde_json::Value;

use super::{
    lines,
    node::{Fault, Node},
    parties::{self, NamedParty},
    taxes, totals,
};
use crate::irn::Irn;
use crate::lists;

/// The values that the ledger stores with a signed document.
#[derive(Debug, Clone)]
pub(crate) struct SignedValues {
    pub(crate) business_id: String,
    pub(crate) irn: String,
    pub(crate) invoice_type_code: String,
    pub(crate) issue_date: String,
    pub(crate) due_date: Option<String>,
    pub(crate) payment_status: Option<String>,
    pub(crate) supplier: NamedParty,
    pub(crate) customer: Option<NamedParty>,
}

const PAYMENT_STATUSES: [&str; 4] = ["PENDING", "PARTIAL", "PAID", "REJECTED"];
const INVOICE_KINDS: [&str; 3] = ["B2B", "B2C", "B2G"];
/// The type codes of a credit note and a debit note, which change an earlier invoice and must name that invoice.
const CORRECTING_TYPES: [&str; 2] = ["380", "384"];

/// Checks a document and returns the values to store with it. Fails with the first fault that it finds.
pub(crate) fn check(document: &Value) -> Result<SignedValues, Fault> {
    let root = Node::root("invoicerequest.invoice", document);
    let business_id = root.at("business_id").uuid()?.to_owned();
    let irn = check_irn(&root.at("irn"))?.to_owned();
    let (issue_date, due_date) = check_dates(&root)?;
    let invoice_type_code = root
        .at("invoice_type_code")
        .code_in(&lists::INVOICE_TYPES)?
        .to_owned();
    check_currencies_and_statuses(&root)?;
    let supplier = parties::check(&root.at("accounting_supplier_party"))?;
    let customer = parties::check_customer(&root)?;
    check_references(&root, &invoice_type_code)?;
    check_payment_means(&root)?;
    let tax = taxes::check(&root)?;
    let lines = totals::check(&root.at("legal_monetary_total"), tax)?;
    lines::check(&root, lines)?;
    let payment_status = root
        .at("payment_status")
        .text_if_present()?
        .map(str::to_owned);
    Ok(SignedValues {
        business_id,
        irn,
        invoice_type_code,
        issue_date,
        due_date,
        payment_status,
        supplier,
        customer,
    })
}

/// Checks that the value is a well-formed reference number, and returns it.
pub(crate) fn check_irn<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    let text = node.text()?;
    Irn::parse(text).map_err(|rule| node.fault(rule))?;
    Ok(text)
}

fn check_dates(root: &Node<'_>) -> Result<(String, Option<String>), Fault> {
    let issue = root.at("issue_date").date()?;
    let due = root.at("due_date");
    let due_date = due.check_if_present(Node::date)?;
    if due_date.is_some_and(|due_date| due_date < issue) {
        return Err(due.fault("must not be before issue_date"));
    }
    root.at("tax_point_date").check_if_present(Node::date)?;
    root.at("actual_delivery_date")
        .check_if_present(Node::date)?;
    Ok((issue.to_string(), due_date.map(|date| date.to_string())))
}

fn check_currencies_and_statuses(root: &Node<'_>) -> Result<(), Fault> {
    root.at("document_currency_code")
        .code_in(&lists::CURRENCIES)?;
    root.at("tax_currency_code").code_in(&lists::CURRENCIES)?;
    root.at("payment_status")
        .check_if_present(|node| node.word_in(&PAYMENT_STATUSES))?;
    root.at("invoice_kind")
        .check_if_present(|node| node.word_in(&INVOICE_KINDS))?;
    Ok(())
}

fn check_references(root: &Node<'_>, invoice_type_code: &str) -> Result<(), Fault> {
    let node = root.at("billing_reference");
    if CORRECTING_TYPES.contains(&invoice_type_code) {
        node.items()?;
    }
    for reference in node.items_if_present()? {
        check_irn(&reference.at("irn"))?;
        reference.at("issue_date").date()?;
    }
    Ok(())
}

fn check_payment_means(root: &Node<'_>) -> Result<(), Fault> {
    for means in root.at("payment_means").items_if_present()? {
        means
            .at("payment_means_code")
            .code_in(&lists::PAYMENT_MEANS)?;
        means.at("payment_due_date").check_if_present(Node::date)?;
    }
    Ok(())
}
