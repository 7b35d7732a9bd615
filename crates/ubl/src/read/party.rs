//! Supplier and customer. A party without a tax number, e-mail address or state is read as it is.

use trade_document::{Address, Party};

use super::Reader;
use crate::element::Element;
use crate::fault::Cause;
use crate::write::tin_scheme;

impl Reader<'_> {
    /// Reads a party. `role` names it in a sentence. An invoice to a consumer may have none.
    pub(super) fn party(&mut self, name: &str, role: &str) -> Party {
        let root = self.root;
        let Some(element) = root.at(name).and_then(|one| one.at("cac:Party")) else {
            self.change(
                Cause::Missing,
                root,
                format!("The document names no {role}."),
            );
            return Party::default();
        };
        let name = party_name(element);
        if name.is_none() {
            self.change(Cause::Missing, element, format!("The {role} has no name."));
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
        // The writer repeats the tax number of a supplier without another number.
        if role == "supplier" && party.number == party.tin {
            party.number = None;
        }
        party
    }
}

/// Returns the legal name, or else the name in trade or that of a person.
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

/// Reads the VAT number, or else the first other tax number.
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
            // Not marked: the address for documents goes back to its own place.
            is_email
                .then(|| crate::element::fold(&endpoint.text))
                .filter(|text| !text.is_empty())
        })
}

fn description(element: &Element) -> Option<String> {
    let code = element.at("cbc:IndustryClassificationCode")?;
    let text = code.folded_text();
    code.attribute("name").map(str::to_owned).or(text)
}

/// Reads an address. All parts of the street come into one text.
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
