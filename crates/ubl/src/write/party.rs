//! Writes supplier and customer.

use trade_document::{Address, Party};

use crate::element::Element;

/// The scheme of a tax number that EN 16931 does not accept as a VAT number, because it does not begin with the letters
/// of its country.
const OTHER_TAX: &str = "TIN";
const VAT: &str = "VAT";

pub(super) fn supplier_element(party: &Party) -> Element {
    Element::new("cac:AccountingSupplierParty").with(party_element(party, true))
}

pub(super) fn customer_element(party: &Party) -> Element {
    Element::new("cac:AccountingCustomerParty").with(party_element(party, false))
}

fn party_element(party: &Party, is_supplier: bool) -> Element {
    let mut element = Element::new("cac:Party");
    element.push_text(
        "cbc:IndustryClassificationCode",
        party.description.as_deref(),
    );
    if let Some(id) = identifying_number(party, is_supplier) {
        element.push(Element::new("cac:PartyIdentification").with(Element::leaf("cbc:ID", id)));
    }
    element.push(address_element(&party.address));
    if let Some(tin) = &party.tin {
        let scheme = Element::new("cac:TaxScheme")
            .with(Element::leaf("cbc:ID", tin_scheme(party)).with_default_mark());
        element.push(
            Element::new("cac:PartyTaxScheme")
                .with(Element::leaf("cbc:CompanyID", tin))
                .with(scheme),
        );
    }
    let mut legal = Element::new("cac:PartyLegalEntity");
    legal.push_text("cbc:RegistrationName", Some(&party.name));
    legal.push_text("cbc:CompanyID", party.registration.as_deref());
    element.push(legal);
    let mut contact = Element::new("cac:Contact");
    contact.push_text("cbc:Telephone", party.telephone.as_deref());
    contact.push_text("cbc:ElectronicMail", party.email.as_deref());
    element.push(contact);
    element
}

/// Returns the number that identifies a party. EN 16931 requires one for the supplier (BR-CO-26), and the tax number
/// only suffices if it begins with a country. So the supplier's tax number is written as this number if nothing else is
/// known.
fn identifying_number(party: &Party, is_supplier: bool) -> Option<&str> {
    let lacks_other = party.registration.is_none() && tin_scheme(party) == OTHER_TAX;
    let own = party.number.as_deref();
    own.or_else(|| party.tin.as_deref().filter(|_| is_supplier && lacks_other))
}

/// Returns the scheme of the party's tax number. A VAT number begins with the code of the country (BR-CO-09); that of
/// Greece is EL.
pub(crate) fn tin_scheme(party: &Party) -> &'static str {
    let country = match party.address.country.as_deref() {
        Some("GR") => "EL",
        Some(country) => country,
        None => return OTHER_TAX,
    };
    match &party.tin {
        Some(tin) if tin.starts_with(country) => VAT,
        _ => OTHER_TAX,
    }
}

fn address_element(address: &Address) -> Element {
    let mut element = Element::new("cac:PostalAddress");
    element.push_text("cbc:StreetName", address.street.as_deref());
    element.push_text("cbc:CityName", address.city.as_deref());
    element.push_text("cbc:PostalZone", address.postal_code.as_deref());
    element.push_text("cbc:CountrySubentity", address.state.as_deref());
    let mut country = Element::new("cac:Country");
    country.push_text("cbc:IdentificationCode", address.country.as_deref());
    element.push(country);
    element
}
