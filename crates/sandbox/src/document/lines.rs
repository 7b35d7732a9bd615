//! Checks the invoice lines: classification codes, prices, and the sum of the line amounts.

use rust_decimal::Decimal;

use super::node::{Fault, Node};
use crate::decimal;

pub(super) fn check(root: &Node<'_>, expected: Decimal) -> Result<(), Fault> {
    let node = root.at("invoice_line");
    let amounts: Result<Vec<Decimal>, Fault> = node.items()?.iter().map(check_line).collect();
    let summed = decimal::sum(amounts?.into_iter()).ok_or_else(|| node.fault("is too large"))?;
    if decimal::are_within_tolerance(summed, expected) {
        return Ok(());
    }
    Err(node.fault("must add up to legalmonetarytotal.lineextensionamount"))
}

fn check_line(line: &Node<'_>) -> Result<Decimal, Fault> {
    check_either(line, "hsn_code", "isic_code")?;
    check_either(line, "product_category", "service_category")?;
    line.at("invoiced_quantity").amount_above_zero()?;
    for rate in ["discount_rate", "fee_rate"] {
        line.at(rate).check_if_present(check_percentage)?;
    }
    for amount in ["discount_amount", "fee_amount"] {
        line.at(amount).check_if_present(Node::amount_from_zero)?;
    }
    let item = line.at("item");
    item.check_object()?;
    item.at("name").text()?;
    check_price(&line.at("price"))?;
    line.at("line_extension_amount").amount_from_zero()
}

/// Checks that a line has the member named `service` or, without it, the member named `product`.
fn check_either(line: &Node<'_>, product: &str, service: &str) -> Result<(), Fault> {
    let service = line.at(service);
    let node = if service.is_absent() {
        line.at(product)
    } else {
        service
    };
    node.text().map(|_| ())
}

fn check_percentage(node: &Node<'_>) -> Result<(), Fault> {
    if node.amount_from_zero()? > Decimal::ONE_HUNDRED {
        return Err(node.fault("must not be greater than 100"));
    }
    Ok(())
}

fn check_price(price: &Node<'_>) -> Result<(), Fault> {
    price.check_object()?;
    price.at("price_amount").amount_from_zero()?;
    price.at("base_quantity").amount_above_zero()?;
    let unit = price.at("price_unit");
    if unit.text()?.len() > 3 {
        return Err(unit.fault("must be a maximum of 3 characters"));
    }
    Ok(())
}
