//! Validate (spec.md): the document of Submit as it is checked without being submitted. More of it has to be
//! there than for Submit, while the format of telephone numbers and email addresses is not part of this check.
//! What Submit takes besides is taken here too, so that one body can be sent to both.

use serde_json::{Map, Value};

use crate::domain::catalog::{Catalog, List};
use crate::domain::codes::{Category, DeclaredPaymentStatus};
use crate::domain::email::is_email;
use crate::domain::fault::Faults;
use crate::domain::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::forms::document::{self, is_telephone};
use crate::http::forms::field::{LONG_TEXT_MAX, TEXT_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::report::{self, Accepted};
use crate::http::forms::sent::{rename, sent};
use crate::http::forms::{heading, own, references};

const SUPPLIER: &str = "accounting_supplier_party";
const CUSTOMER: &str = "accounting_customer_party";
/// Stands in, while the authority looks at the rest, for an address whose format is not checked.
const NO_ADDRESS: &str = "not-checked@example.invalid";

/// A document to be checked.
#[derive(Debug)]
pub(crate) struct Validation {
    pub(crate) irn: Irn,
    pub(crate) document: Value,
}

/// What the authority has its own names for.
struct Named {
    irn: Irn,
    category: Option<Category>,
    status: Option<DeclaredPaymentStatus>,
}

pub(crate) fn read(
    body: &Map<String, Value>,
    taxpayer: Option<&Taxpayer>,
    catalog: &Catalog,
) -> Result<Accepted<Validation>, Faults> {
    let read = report::read(body, catalog, |reader| validation(reader, taxpayer))?;
    let mut document = sent(body, &read.unknown);
    if let Value::Object(fields) = &mut document {
        rename(fields, read.value.category, read.value.status);
        for party in [SUPPLIER, CUSTOMER] {
            leave_formats_open(fields.get_mut(party));
        }
    }
    let value = Validation { irn: read.value.irn, document };
    Ok(Accepted { value, warnings: read.warnings, unknown: read.unknown })
}

fn validation(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Named> {
    own::business_id(reader, taxpayer);
    let irn = own::signable_irn(reader, taxpayer);
    let issued = heading::dates(reader, true);
    heading::compare(reader, issued, irn.as_ref());
    let type_code = reader.required("invoice_type_code").code(List::InvoiceTypes);
    reader.required("document_currency_code").currency();
    reader.required("tax_currency_code").currency();
    reader.optional("order_reference").text(TEXT_MAX);
    reader.required(SUPPLIER).object(|reader| party(reader, SUPPLIER));
    reader.optional(CUSTOMER).object(|reader| party(reader, CUSTOMER));
    reader.required("payment_means").objects(1, dated_means);
    reader.required("tax_total").objects(1, document::tax_total);
    let totals = reader.required("legal_monetary_total").object(document::totals);
    document::lines(reader, totals, document::terse_line);
    references::read(reader, type_code.as_deref().is_some_and(heading::corrects));
    heading::texts(reader);
    reader.optional("invoice_reference").text(TEXT_MAX);
    let category = reader.optional("invoice_category").word(Category::parse, Category::allowed);
    let status =
        reader.optional("payment_status").word(DeclaredPaymentStatus::parse, DeclaredPaymentStatus::allowed);
    Some(Named { irn: irn?, category, status })
}

/// A party; only the supplier's telephone has to be there. An odd format is remarked on, since Submit refuses it.
fn party(reader: &mut Reader<'_>, name: &str) -> Option<()> {
    reader.required("party_name").text(TEXT_MAX);
    reader.required("tin").text(TEXT_MAX);
    let email = reader.required("email").text(TEXT_MAX);
    if email.is_some_and(|email| !is_email(&email)) {
        reader.warn(format!("{name}.email is no email address; Submit refuses it"));
    }
    let telephone = reader.required_if(name == SUPPLIER, "telephone").text(TEXT_MAX);
    if telephone.is_some_and(|telephone| !is_telephone(&telephone)) {
        reader.warn(format!("{name}.telephone is not + and 6 to 15 digits; Submit refuses it"));
    }
    reader.optional("business_description").long_text(0, LONG_TEXT_MAX);
    reader.required("postal_address").object(|reader| document::address(reader, false))
}

fn dated_means(reader: &mut Reader<'_>) -> Option<()> {
    let code = reader.required("payment_means_code").code(List::PaymentMeans);
    let due = reader.required("payment_due_date").date();
    code.zip(due).map(drop)
}

/// The authority would judge the formats that are not to be judged here, and stop at the first of them.
fn leave_formats_open(party: Option<&mut Value>) {
    let Some(Value::Object(party)) = party else { return };
    let text = |name: &str| party.get(name).and_then(Value::as_str);
    let (odd_telephone, odd_email) = (
        text("telephone").is_some_and(|text| !is_telephone(text)),
        text("email").is_some_and(|text| !is_email(text)),
    );
    if odd_telephone {
        party.remove("telephone");
    }
    if odd_email {
        party.insert("email".to_owned(), Value::from(NO_ADDRESS));
    }
}
