//! A stored invoice with the other records that its document is made from: the supplier, the customer and the invoice
//! that it corrects. The pages, files and pictures of an invoice show this document.

use serde_json::{Map, Value};
use trade_document::{Address, TradeDocument};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::stored_document::{
    CorrectedInvoice, DocumentSources, stated_customer, stored_path, submission_body,
};
use crate::domain::invoice::trade::{find_tax, read_party};
use crate::domain::kernel::codes::{UniqueNoType, is_self_billed};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::{Customer, CustomerDetails, Taxpayer};
use crate::domain::reference::catalog::{Catalog, letters_and_digits};
use crate::http::forms::document::is_telephone;
use crate::http::respond::error::ApiError;
use crate::store::Store;
use crate::store::invoices::{self, customers};

/// The field of an invoice that names the invoice that it corrects.
const REFERENCE_FIELD: &str = "original_invoice_reference";

#[derive(Debug)]
pub(crate) struct StoredInvoice {
    pub(crate) invoice: Invoice,
    pub(crate) supplier: Taxpayer,
    customer: Option<Customer>,
    original: Option<CorrectedInvoice>,
}

impl StoredInvoice {
    /// Finds the stored invoice with this IRN.
    pub(crate) async fn find(
        store: &Store,
        supplier: &Taxpayer,
        irn: &Irn,
    ) -> Result<Option<Self>, ApiError> {
        let kind = UniqueNoType::Irn;
        let invoice =
            invoices::find_owned_by_unique_no(store, supplier.id, kind, irn.as_str()).await?;
        match invoice {
            Some(invoice) => Self::load(store, supplier.clone(), invoice).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn load(
        store: &Store,
        supplier: Taxpayer,
        invoice: Invoice,
    ) -> Result<Self, ApiError> {
        let customer =
            customers::find_owned_by_id(store.reader(), supplier.id, invoice.customer.id).await?;
        let original = find_corrected_invoice(store, &supplier, &invoice).await?;
        Ok(Self {
            invoice,
            supplier,
            customer,
            original,
        })
    }

    /// Returns the details of the customer; `None` if the customer is not stored.
    pub(crate) fn customer(&self) -> Option<&CustomerDetails> {
        self.customer.as_ref().map(|customer| &customer.details)
    }

    /// Returns the IRN of the invoice that this invoice corrects; `None` if it refers to no invoice.
    pub(crate) fn original_irn(&self) -> Option<&Irn> {
        self.original.as_ref().map(|original| &original.irn)
    }

    /// Adds stored values that have no field in the authority's document: the states of both addresses, the
    /// registration number of the taxpayer, the number of its customer, and a consumer without a tax number, whom the
    /// document leaves out. In a self-billed document the taxpayer is the customer.
    pub(crate) fn complete_document(&self, document: &mut TradeDocument, catalog: &Catalog) {
        let (taxpayer, customer) = if is_self_billed(&document.document_type.code) {
            (&mut document.customer, &mut document.supplier)
        } else {
            (&mut document.supplier, &mut document.customer)
        };
        let place = &self.supplier.place;
        add_state(
            &mut taxpayer.address,
            place.city.as_ref(),
            place.state.as_ref(),
        );
        taxpayer
            .registration
            .clone_from(&self.supplier.settings.registration_number);
        if customer.name.is_empty() {
            *customer = read_party(&stated_customer(self.document_sources(catalog)), catalog);
        }
        let number = &self.invoice.customer.external_customer_no;
        customer.number = Some(number.clone());
        if let Some(stored) = &self.customer {
            let place = &stored.details.address;
            add_state(
                &mut customer.address,
                Some(&place.city),
                place.state.as_ref(),
            );
        }
        self.complete_taxes(document, catalog);
    }

    /// Gives each line without a tax category the stored category. Submit has no field for the category, and a document
    /// with several taxes does not show which tax a line has.
    fn complete_taxes(&self, document: &mut TradeDocument, catalog: &Catalog) {
        let stored = &self.invoice.lines;
        if document.lines.len() != stored.len() {
            return;
        }
        for (line, stored) in document.lines.iter_mut().zip(stored) {
            if line.tax.category.code.is_empty() {
                line.tax = find_tax(&stored.tax_category, &document.taxes, catalog);
            }
        }
    }

    /// Returns the document as a caller would send it to Submit.
    pub(crate) fn document(&self, catalog: &Catalog) -> Result<Map<String, Value>, ApiError> {
        submission_body(self.document_sources(catalog)).map_err(ApiError::internal)
    }

    fn document_sources<'a>(&'a self, catalog: &'a Catalog) -> DocumentSources<'a> {
        DocumentSources {
            invoice: &self.invoice,
            supplier: &self.supplier,
            customer: self.customer(),
            original: self.original.as_ref(),
            catalog,
        }
    }
}

/// Adds the stored state to an address if its city is the stored one. A signed document has the address of the day
/// on which it was signed: if the city has changed since then, the stored state may be wrong.
fn add_state(address: &mut Address, stored_city: Option<&String>, state: Option<&String>) {
    let folded =
        |city: Option<&String>| city.map_or_else(String::new, |city| letters_and_digits(city));
    if folded(address.city.as_ref()) == folded(stored_city) {
        address.state = state.cloned();
    }
}

/// Returns the invoice that a credit note refers to. If that invoice is not stored here, a reference by IRN is enough,
/// because the IRN contains the date.
async fn find_corrected_invoice(
    store: &Store,
    supplier: &Taxpayer,
    invoice: &Invoice,
) -> Result<Option<CorrectedInvoice>, ApiError> {
    let text = |name: &str| invoice.extras.get(name).and_then(Value::as_str);
    let Some(reference) = text(REFERENCE_FIELD) else {
        return Ok(None);
    };
    let kind = text("original_invoice_reference_type").and_then(UniqueNoType::parse);
    let kind = kind.unwrap_or(UniqueNoType::Irn);
    let original = invoices::find_owned_by_unique_no(store, supplier.id, kind, reference).await?;
    if let Some(original) = original {
        return Ok(Some(CorrectedInvoice {
            irn: original.irn,
            issue_date: Some(original.invoice_date),
        }));
    }
    Ok(Irn::parse(reference).ok().map(|irn| CorrectedInvoice {
        issue_date: irn.date(),
        irn,
    }))
}

/// Converts the faults of the document of a stored invoice to faults of the invoice, with the names of its fields. If
/// the document has no original because the reference of the invoice leads to none, the fault gets a rule of its own.
pub(crate) fn to_stored_faults(invoice: &Invoice, catalog: &Catalog, faults: Faults) -> Faults {
    let has_reference = invoice.extras.contains_key(REFERENCE_FIELD);
    faults
        .rename_fields(|path| stored_path(invoice, catalog, path))
        .map(|fault| {
            if has_reference && fault.path == REFERENCE_FIELD && fault.rule() == "required" {
                Fault::field(REFERENCE_FIELD, unknown_original_rule())
            } else {
                fault
            }
        })
}

fn unknown_original_rule() -> FieldRule {
    FieldRule::with_expected(
        "exists",
        "names no invoice of this account: send the whole document with billing_reference",
        "an invoice of this account, or an IRN",
    )
}

/// Removes each telephone number that the authority would refuse. The authority accepts a party without a telephone
/// number, so the invoice need not be refused. Returns a warning for each removed number.
pub(crate) fn drop_refused_telephones(document: &mut Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in ["accounting_supplier_party", "accounting_customer_party"] {
        let party = document.get_mut(name).and_then(Value::as_object_mut);
        let Some(party) = party else { continue };
        let telephone = party.get("telephone").and_then(Value::as_str);
        if telephone.is_some_and(|text| !is_telephone(text)) {
            party.remove("telephone");
            warnings.push(format!(
                "{name}.telephone is left out: it is not + and 6 to 15 digits"
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_stored_state_while_its_city_is_the_stored_one() {
        for (signed, stored, has_state) in [
            (Some("Lagos"), Some("Lagos"), true),
            (Some("LAGOS"), Some(" Lagos "), true),
            (Some("Lagos"), Some("Abuja"), false),
            (Some("Lagos"), None, false),
            (None, None, true),
        ] {
            let mut address = Address {
                city: signed.map(str::to_owned),
                ..Address::default()
            };
            let city = stored.map(str::to_owned);
            let state = "Lagos State".to_owned();
            add_state(&mut address, city.as_ref(), Some(&state));
            assert_eq!(address.state.is_some(), has_state, "{signed:?} {stored:?}");
        }
    }
}
