//! Checks supplier and customer. A customer is required only in B2B and B2G invoices.

use super::node::{Fault, Node};

#[derive(Debug, Clone)]
pub(crate) struct NamedParty {
    pub(crate) tin: String,
    pub(crate) name: String,
}

pub(super) fn check(party: &Node<'_>) -> Result<NamedParty, Fault> {
    party.check_object()?;
    let name = party.at("party_name").text()?.to_owned();
    let tin = party.at("tin").text()?.to_owned();
    let email = party.at("email");
    if !email.text()?.contains('@') {
        return Err(email.fault("must be a valid email"));
    }
    party.at("telephone").check_if_present(check_telephone)?;
    check_address(&party.at("postal_address"))?;
    Ok(NamedParty { tin, name })
}

pub(super) fn check_customer(root: &Node<'_>) -> Result<Option<NamedParty>, Fault> {
    let customer = root.at("accounting_customer_party");
    match root.at("invoice_kind").text_if_present()? {
        Some("B2B" | "B2G") => check(&customer).map(Some),
        _ => customer.check_if_present(check),
    }
}

fn check_telephone(node: &Node<'_>) -> Result<(), Fault> {
    let text = node.text()?;
    let digits = text.strip_prefix('+').unwrap_or_default();
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits && (6..=15).contains(&digits.len()) {
        return Ok(());
    }
    Err(node.fault("must start with + and hold the country code"))
}

fn check_address(address: &Node<'_>) -> Result<(), Fault> {
    address.check_object()?;
    address.at("street_name").text()?;
    address.at("city_name").text()?;
    address.at("postal_zone").text_if_present()?;
    let country = address.at("country");
    let code = country.text()?;
    if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(());
    }
    Err(country.fault("must be a country code of 2 letters"))
}
