//! Reads supplier and customer. The tax number, the e-mail address and the state may be missing.

use trade_document::{Address, Party};

use super::Reader;
use crate::element::Element;
use crate::fault::Cause;
use crate::write::tin_scheme;

impl Reader<'_> {
    /// Reads a party. `role` is its name in messages. The customer of an invoice to a consumer may be missing.
    pub(super) fn party(&mut self, name: &str, role: &str) -> Party {
        let root = self.root;
        let Some(element) = root.at(name).and_then(|one| one.at("cac:Party")) else {
            self.report_change(
                Cause::Missing,
                root,
                format!("The document names no {role}."),
            );
            return Party::default();
        };
        let name = party_name(element);
        if name.is_none() {
            self.report_change(Cause::Missing, element, format!("The {role} has no name."));
        }
        let mut party = Party {
            name: name.unwrap_or_default(),
            number: None,
            tin: None,
            registration: element.text_at("cac:PartyLegalEntity/cbc:CompanyID"),
            email: email(element),
            telephone: element.text_at("cac:Contact/cbc:Telephone"),
            description: description(element),
            address: element
                .at("cac:PostalAddress")
                .map(address)
                .unwrap_or_default(),
        };
        read_tin(element, &mut party);
        party.number = element.text_at("cac:PartyIdentification/cbc:ID");
        // Our writer repeats the tax number as the number of a supplier that has none.
        if role == "supplier" && party.number == party.tin {
            party.number = None;
        }
        party
    }
}

/// Returns the legal name, otherwise the trade name, otherwise the name of a person.
fn party_name(element: &Element) -> Option<String> {
    let trade_name = element.peek_at("cac:PartyName/cbc:Name");
    let legal_name = element.text_at("cac:PartyLegalEntity/cbc:RegistrationName");
    if legal_name.as_deref().is_none_or(|name| name == trade_name)
        && let Some(name) = element.text_at("cac:PartyName/cbc:Name")
    {
        return Some(name);
    }
    legal_name.or_else(|| {
        let person = element.at("cac:Person")?;
        let names = ["cbc:FirstName", "cbc:MiddleName", "cbc:FamilyName"];
        let names: Vec<_> = names
            .iter()
            .filter_map(|name| person.text_at(name))
            .collect();
        (!names.is_empty()).then(|| names.join(" "))
    })
}

/// Reads the VAT number, otherwise the first other tax number.
fn read_tin(element: &Element, party: &mut Party) {
    let with_number = || {
        element
            .children_named("cac:PartyTaxScheme")
            .filter(|one| one.at("cbc:CompanyID").is_some())
    };
    let found = with_number()
        .find(|one| tax_scheme(one) == "VAT")
        .or_else(|| with_number().next());
    if let Some(found) = found {
        party.tin = found.text_at("cbc:CompanyID");
        found.at("cac:TaxScheme").inspect(|one| one.mark_read());
        if tax_scheme(found) == tin_scheme(party) {
            found.text_at("cac:TaxScheme/cbc:ID");
        }
    }
}

fn tax_scheme(element: &Element) -> String {
    element.peek_at("cac:TaxScheme/cbc:ID").to_uppercase()
}

fn email(element: &Element) -> Option<String> {
    let endpoint = element.at("cbc:EndpointID");
    element
        .text_at("cac:Contact/cbc:ElectronicMail")
        .or_else(|| {
            let endpoint = endpoint?;
            let is_email = endpoint
                .attributes
                .iter()
                .any(|one| one.name == "schemeID" && one.value == "EM");
            // Not marked as read: as the address for electronic documents, it must be kept as a part.
            is_email
                .then(|| crate::element::fold_spaces(&endpoint.text))
                .filter(|text| !text.is_empty())
        })
}

/// Returns the name of the party's trade, otherwise its code. The code of a name is not marked as read, so that it is
/// kept as a part.
fn description(element: &Element) -> Option<String> {
    let code = element.at("cbc:IndustryClassificationCode")?;
    let name = code.attribute("name").map(str::to_owned);
    name.or_else(|| code.folded_text())
}

/// Reads an address. All parts of the street are joined to one text.
fn address(element: &Element) -> Address {
    let country = element.text_at("cac:Country/cbc:IdentificationCode");
    let state = element.text_at("cbc:CountrySubentity");
    Address {
        street: street(element),
        city: element.text_at("cbc:CityName"),
        state: state.or_else(|| element.text_at("cbc:CountrySubentityCode")),
        postal_code: element.text_at("cbc:PostalZone"),
        country: country.map(|code| code.to_uppercase()),
    }
}

fn street(element: &Element) -> Option<String> {
    let names = ["cbc:StreetName", "cbc:BuildingNumber"];
    let street: Vec<_> = names
        .iter()
        .filter_map(|name| element.text_at(name))
        .collect();
    let mut parts = vec![street.join(" ")];
    let others = ["cbc:BuildingName", "cbc:AdditionalStreetName"];
    parts.extend(others.iter().filter_map(|name| element.text_at(name)));
    let lines = element.children_named("cac:AddressLine");
    parts.extend(lines.filter_map(|line| line.text_at("cbc:Line")));
    if let Some(number) = element.text_at("cbc:Postbox") {
        parts.push(format!("P.O. Box {number}"));
    }
    parts.retain(|part| !part.is_empty());
    (!parts.is_empty()).then(|| parts.join(", "))
}
