//! The parts of a UBL document that no field of its invoice holds. They are stored beside the invoice and put back into
//! its UBL.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use trade_document::{Party, ReferenceKind, TradeDocument};
use ubl::UnmappedPart;

use crate::domain::kernel::codes::is_self_billed;
use crate::domain::kernel::ids::CustomerId;

/// The maximum total size of the parts that are kept for one invoice, in bytes. Larger parts, such as embedded files,
/// are dropped.
pub const BYTES_MAX: usize = 256 * 1024;
/// The children of a UBL document whose parts fit only as long as the amounts of its lines do not change. `ABOUT_TAXES`
/// fit only as long as its taxes do not change either.
const ABOUT_LINES: [&str; 2] = ["cac:InvoiceLine", "cac:CreditNoteLine"];
const ABOUT_TAXES: [&str; 6] = [
    "cac:AllowanceCharge",
    "cac:LegalMonetaryTotal",
    "cac:PrepaidPayment",
    "cac:TaxExchangeRate",
    "cac:TaxTotal",
    "cac:WithholdingTaxTotal",
];
/// The children that belong to the customer of the invoice, besides its party.
const ABOUT_CUSTOMER: [&str; 2] = ["cac:BuyerCustomerParty", "cbc:BuyerReference"];
const TAX_OF_LINE: &str = "/cac:ClassifiedTaxCategory";
const SUPPLIER: &str = "/cac:AccountingSupplierParty/cac:Party";
const CUSTOMER: &str = "/cac:AccountingCustomerParty/cac:Party";
const ADDRESS: &str = "/cac:PostalAddress";
const DESCRIPTION: &str = "<cbc:Description";
const ITEM: &str = "/cac:Item";
/// The beginnings of the elements that hold a number or a code of a party.
const NUMBERS: [&str; 2] = ["<cac:PartyTaxScheme>", "<cbc:IndustryClassificationCode"];

/// The parts, with the amounts of the document from which they were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UblParts {
    parts: Vec<UnmappedPart>,
    /// The amount of each line.
    lines: Vec<String>,
    /// The category and the amount of each tax.
    taxes: Vec<String>,
    /// The id of the customer of the invoice; `None` if it was not recorded.
    #[serde(default)]
    customer: Option<i64>,
    /// The city of the customer; `None` if the document named none.
    #[serde(default)]
    city: Option<String>,
    /// True if no line of the invoice had a description, so that those of the file are among the parts.
    #[serde(default)]
    lacks_descriptions: bool,
}

/// The parts that are kept, and those with which the size limit would be exceeded.
pub struct SizeLimitedParts {
    pub kept: UblParts,
    pub too_large: Vec<UnmappedPart>,
}

impl UblParts {
    /// Keeps parts of a document up to a total size of `BYTES_MAX`. `document` has only the data for which the invoice
    /// has fields.
    pub fn split_by_size_limit(
        document: &TradeDocument,
        parts: Vec<UnmappedPart>,
    ) -> SizeLimitedParts {
        let mut room = BYTES_MAX;
        let (parts, too_large) = parts.into_iter().partition(|part| {
            let rest = room.checked_sub(part.path.len() + part.value.len());
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        let kept = Self {
            parts,
            lines: line_amount_texts(document),
            taxes: tax_texts(document),
            customer: None,
            city: counterparty(document).address.city.clone(),
            lacks_descriptions: !has_descriptions(document),
        };
        SizeLimitedParts { kept, too_large }
    }

    /// Records the customer of the new invoice.
    #[must_use]
    pub fn with_customer(self, customer: CustomerId) -> Self {
        Self {
            customer: Some(customer.0),
            ..self
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the parts that still fit the document. Left out are: parts of lines and taxes, if amounts have changed
    /// since the import; parts of the customer, such as its electronic address, if the invoice now has another
    /// customer; parts of the customer's address, if the customer is now in another city; descriptions of lines, if
    /// lines now have other ones; a second reference to the corrected invoice; and the numbers of the taxpayer.
    pub fn fitting_parts(
        self,
        document: &TradeDocument,
        customer: CustomerId,
    ) -> Vec<UnmappedPart> {
        let fit = FitCriteria::new(&self, document, customer);
        let parts = self.parts.into_iter();
        parts.filter(|part| fit.is_fit(part)).collect()
    }
}

/// Returns a warning if this UBL leaves out the currency of the tax. With the currency, EN 16931 would demand a total
/// of the tax in it (BR-53), which only an imported file can have.
pub fn tax_currency_warning(tax_currency: Option<&str>, ubl: &str) -> Option<String> {
    let currency = tax_currency.filter(|_| !ubl.contains("<cbc:TaxCurrencyCode"))?;
    Some(format!(
        "tax_currency_code is {currency}: the UBL would need the tax in {currency} beside its TaxCurrencyCode (BR-53 of \
         EN 16931), so an AdditionalDocumentReference has the code, and an import reads it there"
    ))
}

/// True if the part is a number of the taxpayer, the code of its trade, or an attribute such as the scheme of a number.
/// Such parts are left out, because the data of the taxpayer's profile is used instead. In a self-billed document the
/// taxpayer is the customer.
pub fn is_replaced_by_profile(part: &UnmappedPart, type_code: &str) -> bool {
    let taxpayer = if is_self_billed(type_code) {
        CUSTOMER
    } else {
        SUPPLIER
    };
    let below = part.path.split_once(taxpayer).map(|(_, below)| below);
    below.is_some_and(|below| {
        let mut numbers = NUMBERS.iter();
        let is_number = below.is_empty() && numbers.any(|start| part.value.starts_with(start));
        is_number || below.contains("/@")
    })
}

/// The facts about a document that decide which parts fit it.
struct FitCriteria<'a> {
    /// The children of the root whose parts do not fit any more, because lines, taxes or the customer have changed.
    unfit: Vec<&'static str>,
    has_taxes: bool,
    /// The path of the customer in the UBL; `None` if the customer is in the same city as at the import.
    moved_customer: Option<&'static str>,
    has_new_descriptions: bool,
    names_corrected: bool,
    type_code: &'a str,
}

impl<'a> FitCriteria<'a> {
    fn new(kept: &UblParts, document: &'a TradeDocument, customer: CustomerId) -> Self {
        let has_lines = kept.lines == line_amount_texts(document);
        let has_taxes = has_lines && kept.taxes == tax_texts(document);
        let has_customer = kept.customer.is_none_or(|id| id == customer.0);
        let has_moved = kept.city.is_some() && kept.city != counterparty(document).address.city;
        let type_code = document.document_type.code.as_str();
        let (customer_path, customer_child) = if is_self_billed(type_code) {
            (SUPPLIER, "cac:AccountingSupplierParty")
        } else {
            (CUSTOMER, "cac:AccountingCustomerParty")
        };
        let mut unfit = Vec::new();
        if !has_lines {
            unfit.extend(ABOUT_LINES);
        }
        if !has_taxes {
            unfit.extend(ABOUT_TAXES);
        }
        if !has_customer {
            unfit.extend(ABOUT_CUSTOMER);
            unfit.push(customer_child);
        }
        let mut references = document.references.iter();
        Self {
            unfit,
            has_taxes,
            moved_customer: has_moved.then_some(customer_path),
            has_new_descriptions: kept.lacks_descriptions && has_descriptions(document),
            names_corrected: references.any(|one| one.kind == ReferenceKind::Preceding),
            type_code,
        }
    }

    fn is_fit(&self, part: &UnmappedPart) -> bool {
        let child = part.root_child();
        if part.is_root_child() && child == "cac:BillingReference" {
            return !self.names_corrected;
        }
        let is_of_other_tax = !self.has_taxes && part.path.contains(TAX_OF_LINE);
        !is_of_other_tax
            && !self.belongs_to_old_address(part)
            && !self.is_old_description(part)
            && !self.unfit.contains(&child)
            && !is_replaced_by_profile(part, self.type_code)
    }

    fn belongs_to_old_address(&self, part: &UnmappedPart) -> bool {
        let below = self
            .moved_customer
            .and_then(|customer| part.path.split_once(customer));
        below.is_some_and(|(_, below)| below.starts_with(ADDRESS))
    }

    fn is_old_description(&self, part: &UnmappedPart) -> bool {
        self.has_new_descriptions
            && part.path.ends_with(ITEM)
            && part.value.starts_with(DESCRIPTION)
    }
}

/// Returns the party that is the customer of the invoice. In a self-billed document that is the supplier.
pub fn counterparty(document: &TradeDocument) -> &Party {
    if is_self_billed(&document.document_type.code) {
        &document.supplier
    } else {
        &document.customer
    }
}

fn has_descriptions(document: &TradeDocument) -> bool {
    let mut lines = document.lines.iter();
    lines.any(|line| line.description.is_some())
}

fn line_amount_texts(document: &TradeDocument) -> Vec<String> {
    let lines = document.lines.iter();
    lines.map(|line| amount_text(line.amount)).collect()
}

fn tax_texts(document: &TradeDocument) -> Vec<String> {
    let taxes = document.taxes.iter();
    let texts = taxes.map(|one| format!("{} {}", one.tax.category.code, amount_text(one.amount)));
    texts.collect()
}

fn amount_text(amount: Decimal) -> String {
    amount.normalize().to_string()
}

#[cfg(test)]
mod tests {
    use trade_document::CodeAndName;

    use super::*;

    const EXAMPLE: &str = include_str!(
        "../../../crates/ubl/tests/examples/mcp-einvoicing-be-invoice_valid_peppol.xml"
    );

    #[test]
    fn numbers_of_the_taxpayer_get_neither_a_number_nor_a_scheme_from_the_file() {
        let read = ubl::read(EXAMPLE.as_bytes(), &ubl::Limits::default()).unwrap();
        let mut document = read.document;
        let number = "<cac:PartyTaxScheme><cbc:CompanyID>7</cbc:CompanyID></cac:PartyTaxScheme>";
        let contact = "<cbc:Telefax>7</cbc:Telefax>";
        let code_of_trade =
            "<cbc:IndustryClassificationCode name=\"Mill\">7</cbc:IndustryClassificationCode>";
        for (code, own, other) in [("381", SUPPLIER, CUSTOMER), ("394", CUSTOMER, SUPPLIER)] {
            document.document_type = CodeAndName {
                code: code.to_owned(),
                name: String::new(),
            };
            for (party, below, value, is_kept) in [
                (own, "", number, false),
                (
                    own,
                    "/cac:PartyIdentification/cbc:ID/@schemeID",
                    "0088",
                    false,
                ),
                (
                    own,
                    "/cac:PartyLegalEntity/cbc:CompanyID/@schemeID",
                    "0204",
                    false,
                ),
                (own, "", code_of_trade, false),
                (own, "/cac:Contact", contact, true),
                (other, "", code_of_trade, true),
                (other, "", number, true),
                (
                    other,
                    "/cac:PartyIdentification/cbc:ID/@schemeID",
                    "0088",
                    true,
                ),
            ] {
                let part = UnmappedPart {
                    path: format!("/Invoice{party}{below}"),
                    value: value.to_owned(),
                };
                let SizeLimitedParts { kept, .. } =
                    UblParts::split_by_size_limit(&document, vec![part]);
                let kept = kept.with_customer(CustomerId(1));
                let is_found = !kept.fitting_parts(&document, CustomerId(1)).is_empty();
                assert_eq!(is_found, is_kept, "{code} {party}{below}");
            }
        }
    }

    #[test]
    fn what_belongs_to_the_customer_goes_with_it() {
        let read = ubl::read(EXAMPLE.as_bytes(), &ubl::Limits::default()).unwrap();
        let document = read.document;
        let endpoint = "<cbc:EndpointID>7</cbc:EndpointID>";
        let name = "<cbc:Name>7</cbc:Name>";
        for (path, value, is_of_customer) in [
            (CUSTOMER, endpoint, true),
            ("/cac:AccountingCustomerParty", name, true),
            ("/cac:BuyerCustomerParty", name, true),
            ("", "<cbc:BuyerReference>7</cbc:BuyerReference>", true),
            (SUPPLIER, endpoint, false),
            ("", "<cbc:Note>7</cbc:Note>", false),
        ] {
            let part = UnmappedPart {
                path: format!("/Invoice{path}"),
                value: value.to_owned(),
            };
            let SizeLimitedParts { kept, .. } =
                UblParts::split_by_size_limit(&document, vec![part]);
            let has =
                |kept: UblParts, id| !kept.fitting_parts(&document, CustomerId(id)).is_empty();
            let recorded = kept.clone().with_customer(CustomerId(1));
            assert!(has(recorded.clone(), 1), "{path} {value}");
            assert_eq!(has(recorded, 2), !is_of_customer, "{path} {value}");
            // The row is from before the customer was recorded.
            assert!(has(kept, 2), "{path} {value}");
        }
    }

    #[test]
    fn the_state_goes_when_the_customer_moves_and_a_description_when_the_line_has_another_one() {
        let mut document = ubl::read(EXAMPLE.as_bytes(), &ubl::Limits::default())
            .unwrap()
            .document;
        for line in &mut document.lines {
            line.description = None;
        }
        document.customer.address.city = Some("Lagos".to_owned());
        let part = |path: &str, value: &str| UnmappedPart {
            path: format!("/Invoice{path}"),
            value: value.to_owned(),
        };
        let address = format!("{CUSTOMER}{ADDRESS}");
        let parts = vec![
            part(&address, "<cbc:CountrySubentity>7</cbc:CountrySubentity>"),
            part(
                "/cac:InvoiceLine/cac:Item",
                "<cbc:Description>7</cbc:Description>",
            ),
        ];
        let SizeLimitedParts { kept, .. } = UblParts::split_by_size_limit(&document, parts.clone());
        for (city, description, expected) in [
            ("Lagos", None, vec![&parts[0], &parts[1]]),
            ("Kano", None, vec![&parts[1]]),
            ("Lagos", Some("Light"), vec![&parts[0]]),
        ] {
            let mut later = document.clone();
            later.customer.address.city = Some(city.to_owned());
            later.lines[0].description = description.map(str::to_owned);
            let fitting = kept.clone().fitting_parts(&later, CustomerId(1));
            let fitting: Vec<_> = fitting.iter().collect();
            assert_eq!(fitting, expected, "{city} {description:?}");
        }
    }

    #[test]
    fn a_tax_currency_that_the_ubl_does_not_state_is_told() {
        let stating = "<cbc:TaxCurrencyCode>USD</cbc:TaxCurrencyCode>";
        for (currency, ubl, is_told) in [
            (None, "", false),
            (Some("USD"), "", true),
            (Some("USD"), stating, false),
        ] {
            let told = tax_currency_warning(currency, ubl);
            assert_eq!(told.is_some(), is_told, "{currency:?} {ubl}: {told:?}");
        }
    }
}
