//! Builds the document of a stored invoice, in the shape of Submit (spec.md), from the invoice, the taxpayer's profile,
//! the customer's address and the reference lists. Data that is not stored is left out and never invented; the form of
//! Submit then reports what is missing.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::document_amounts::amount_members;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::totals::TotalTooLarge;
use crate::domain::kernel::codes::{
    CREDIT_NOTE_CODE, DeclaredPaymentStatus, INVOICE_CODE, is_self_billed,
};
use crate::domain::party::{Address, CustomerDetails, Taxpayer};
use crate::domain::reference::catalog::{Catalog, ReferenceList, letters_and_digits};
use crate::domain::reference::country::country_code;

/// The extra fields of a full invoice that are not copied into its document, because the document has them under other
/// names or with computed values.
const OWN_EXTRAS: [&str; 9] = [
    "accounting_customer_party",
    "accounting_supplier_party",
    "invoice_type_code",
    "invoice_line",
    "legal_monetary_total",
    "original_invoice_reference",
    "original_invoice_reference_type",
    "payment_status",
    "tax_total",
];

/// Usual names of the two most frequent invoice types, in addition to the names in the authority's list. They are
/// folded: lower case letters and digits only.
const TYPE_WORDS: [(&str, &str); 5] = [
    ("creditnote", CREDIT_NOTE_CODE),
    ("invoice", INVOICE_CODE),
    ("salesinvoice", INVOICE_CODE),
    ("standard", INVOICE_CODE),
    ("taxinvoice", INVOICE_CODE),
];

/// The stored data from which `submission_body` builds the document for the authority.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSources<'a> {
    pub invoice: &'a Invoice,
    pub supplier: &'a Taxpayer,
    /// The stored customer; `None` if it was not found.
    pub customer: Option<&'a CustomerDetails>,
    /// The invoice that this one corrects; `None` if it corrects none, or if that invoice is not known.
    pub original: Option<&'a CorrectedInvoice>,
    pub catalog: &'a Catalog,
}

/// The invoice that a credit note or debit note corrects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrectedInvoice {
    pub irn: Irn,
    pub issue_date: Option<Date>,
}

impl Invoice {
    /// True if the invoice states its totals, because it was created with Create Invoice (Full).
    pub fn is_full(&self) -> bool {
        self.extras.contains_key("legal_monetary_total")
    }
}

/// Builds the body of a request to Submit or Validate. Fails only if an amount is too large, which the forms prevent.
pub fn submission_body(parts: DocumentSources<'_>) -> Result<Map<String, Value>, TotalTooLarge> {
    let DocumentSources {
        invoice, supplier, ..
    } = parts;
    let mut body: Map<String, Value> = invoice
        .extras
        .iter()
        .filter(|(name, _)| !OWN_EXTRAS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    body.extend(amount_members(invoice, parts.catalog)?);
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("irn", json!(invoice.irn));
    put("business_id", json!(supplier.business_id));
    put("invoice_reference", json!(invoice.irn.invoice_no()));
    put("invoice_category", json!(invoice.category));
    put("issue_date", json!(invoice.invoice_date.to_string()));
    let type_code = type_code(invoice, parts.catalog);
    let names = party_field_names(type_code.as_deref());
    put(names.taxpayer, taxpayer_party(supplier, parts.catalog));
    if let Some(party) = customer_party(parts) {
        put(names.customer, party);
    }
    if let Some(due) = invoice.due_date {
        put("due_date", json!(due.to_string()));
    }
    if let Some(code) = type_code {
        put("invoice_type_code", json!(code));
    }
    let status = DeclaredPaymentStatus::from(invoice.payment.status);
    if invoice.is_full() || status != DeclaredPaymentStatus::Pending {
        put("payment_status", json!(status));
    }
    if let Some(original) = parts.original {
        let mut reference = json!({ "irn": original.irn });
        if let Some(date) = original.issue_date {
            reference["issue_date"] = json!(date.to_string());
        }
        put("billing_reference", json!([reference]));
    }
    let currency = json!(invoice.currency);
    let issued = json!(invoice.invoice_date.to_string());
    body.entry("tax_currency_code").or_insert(currency);
    body.entry("tax_point_date").or_insert(issued);
    Ok(body)
}

/// Returns the invoice type as a code of the authority: the code that the caller sent, or the code of the type that the
/// caller named.
pub fn type_code(invoice: &Invoice, catalog: &Catalog) -> Option<String> {
    let sent = invoice.extras.get("invoice_type_code");
    if let Some(code) = sent.and_then(Value::as_str) {
        return Some(code.to_owned());
    }
    if invoice.is_full() {
        return Some(invoice.invoice_type.clone());
    }
    invoice_type_code_for(&invoice.invoice_type, catalog)
}

/// Returns the code for a text that is the code or the name of an invoice type; `None` if it is neither.
pub fn invoice_type_code_for(text: &str, catalog: &Catalog) -> Option<String> {
    if catalog.has(ReferenceList::InvoiceTypes, text) == Some(true) {
        return Some(text.to_owned());
    }
    let folded = letters_and_digits(text);
    let word = TYPE_WORDS.iter().find(|(word, _)| *word == folded);
    if let Some((_, code)) = word {
        return Some((*code).to_owned());
    }
    let mut types = catalog.search_terms(ReferenceList::InvoiceTypes);
    types
        .find(|term| term.folded == folded)
        .map(|term| term.code.clone())
}

/// The members of the document that hold the taxpayer and its customer.
#[derive(Debug, Clone, Copy)]
pub struct PartyFieldNames {
    pub taxpayer: &'static str,
    customer: &'static str,
}

/// Returns the names of the members for a document of this type. A self-billed document is issued by the buyer, so the
/// taxpayer that sends it is its customer.
pub fn party_field_names(type_code: Option<&str>) -> PartyFieldNames {
    if type_code.is_some_and(is_self_billed) {
        PartyFieldNames {
            taxpayer: "accounting_customer_party",
            customer: "accounting_supplier_party",
        }
    } else {
        PartyFieldNames {
            taxpayer: "accounting_supplier_party",
            customer: "accounting_customer_party",
        }
    }
}

/// Returns the taxpayer as a party of the document. The profile has no postal code.
pub fn taxpayer_party(supplier: &Taxpayer, catalog: &Catalog) -> Value {
    let mut party = Party::default();
    party.put("party_name", Some(&supplier.name));
    party.put("tin", Some(&supplier.tin));
    party.put("email", Some(&supplier.email));
    party.put("telephone", supplier.phone.as_ref());
    party.put("business_description", supplier.nature_of_business.as_ref());
    let address = Address {
        street_name: supplier.address.clone(),
        city: supplier.place.city.clone().unwrap_or_default(),
        country: supplier.place.country.clone().unwrap_or_default(),
        ..Address::default()
    };
    party.put_address(Some(&address), catalog);
    party.into_value()
}

/// Returns the customer as a party for the authority; `None` for a consumer without a tax number, whom the authority
/// does not accept as a party.
fn customer_party(parts: DocumentSources<'_>) -> Option<Value> {
    let customer = stated_customer(parts);
    let is_named = customer.get("tin").is_some() || parts.invoice.category.needs_tin();
    is_named.then_some(customer)
}

/// Returns the customer as the invoice states it, or, if it does not, as it is stored.
pub fn stated_customer(parts: DocumentSources<'_>) -> Value {
    let invoice = parts.invoice;
    let shown = &invoice.customer;
    let mut found = Party::default();
    if let Some(Value::Object(stated)) = invoice.extras.get("accounting_customer_party") {
        found.0.clone_from(stated);
        found.0.remove("customer_no");
    } else {
        found.put("party_name", Some(&shown.name));
        found.put("email", Some(&shown.email));
        if let Some(details) = parts.customer {
            found.put("telephone", details.telephone.as_ref());
            found.put(
                "business_description",
                details.business_description.as_ref(),
            );
        }
        let address = parts.customer.map(|details| &details.address);
        found.put_address(address, parts.catalog);
    }
    if let Some(tin) = &shown.tin {
        found.0.entry("tin").or_insert_with(|| json!(tin));
    }
    found.into_value()
}

/// The members of a party or of its address. Blank texts are left out.
#[derive(Default)]
struct Party(Map<String, Value>);

impl Party {
    fn put(&mut self, name: &str, text: Option<&String>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.0.insert(name.to_owned(), json!(text));
        }
    }

    /// Adds the address. A country that is stored under its name is replaced by its code, as the authority requires.
    fn put_address(&mut self, address: Option<&Address>, catalog: &Catalog) {
        let mut members = Self::default();
        if let Some(address) = address {
            members.put("street_name", Some(&address.street_name));
            members.put("city_name", Some(&address.city));
            members.put("postal_zone", Some(&address.postal_code));
            let code = country_code(catalog, &address.country);
            members.put("country", Some(code.as_ref().unwrap_or(&address.country)));
        }
        self.0
            .insert("postal_address".to_owned(), members.into_value());
    }

    /// Returns the party. Its telephone number is rewritten in the authority's format, if possible.
    fn into_value(mut self) -> Value {
        if let Some(Value::String(telephone)) = self.0.get_mut("telephone") {
            telephone.retain(|sign| !matches!(sign, ' ' | '-' | '(' | ')'));
        }
        Value::Object(self.0)
    }
}

/// Returns the place of the stored value that becomes the document's field at this path. It is a path in the body of
/// the create request that stored the invoice; a path that begins with `profile.` leads to the taxpayer's profile.
pub fn stored_path(invoice: &Invoice, catalog: &Catalog, path: &str) -> String {
    let names = party_field_names(type_code(invoice, catalog).as_deref());
    let below = |name: &str| path.strip_prefix(name)?.strip_prefix('.');
    if let Some(field) = below(names.taxpayer) {
        return format!("profile.{}", replace_name(field, &PROFILE_NAMES));
    }
    if let Some((_, stored)) = REPORT_PATHS.iter().find(|(name, _)| *name == path) {
        return (*stored).to_owned();
    }
    if invoice.is_full() {
        return path.to_owned();
    }
    if let Some(field) = below(names.customer) {
        return format!("customer.{}", replace_name(field, &CUSTOMER_NAMES));
    }
    match below("invoice_line").and_then(|rest| rest.split_once('.')) {
        Some((at, field)) => format!("invoice_lines.{at}.{}", replace_name(field, &LINE_NAMES)),
        None => replace_name(path, &HEADER_NAMES).to_owned(),
    }
}

fn replace_name<'a>(name: &'a str, names: &[(&'a str, &'a str)]) -> &'a str {
    let found = names.iter().find(|(document, _)| *document == name);
    found.map_or(name, |(_, stored)| stored)
}

/// Members of a report (spec.md, "Report") with the places of their values.
const REPORT_PATHS: [(&str, &str); 3] = [
    ("agent_tin", "profile.tin"),
    ("beneficiary_tin", "customer.tin"),
    ("integrator_service_id", "profile.authority_service_id"),
];

const PROFILE_NAMES: [(&str, &str); 6] = [
    ("party_name", "name"),
    ("email", "business_email"),
    ("telephone", "phone"),
    ("postal_address.street_name", "address"),
    ("postal_address.city_name", "city"),
    ("postal_address.country", "country"),
];

const CUSTOMER_NAMES: [(&str, &str); 5] = [
    ("party_name", "name"),
    ("postal_address.street_name", "address_street_name"),
    ("postal_address.city_name", "address_city"),
    ("postal_address.postal_zone", "address_postal_code"),
    ("postal_address.country", "address_country"),
];

const LINE_NAMES: [(&str, &str); 8] = [
    ("hsn_code", "product_category"),
    ("isic_code", "service_category"),
    ("invoiced_quantity", "quantity"),
    ("item.name", "item_name"),
    ("item.description", "description"),
    ("item.sellers_item_identification", "item_no"),
    ("price.price_amount", "unit_price"),
    ("price.price_unit", "price_unit"),
];

const HEADER_NAMES: [(&str, &str); 4] = [
    ("issue_date", "invoice_date"),
    ("document_currency_code", "currency"),
    ("billing_reference", "original_invoice_reference"),
    ("invoice_line", "invoice_lines"),
];
