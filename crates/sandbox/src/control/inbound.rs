//! Creates a signed and transmitted invoice from an invented supplier, and notifies the access points.

use actix_web::{HttpResponse, web::Data};
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{JsonBody, answer};
use crate::clock;
use crate::document;
use crate::operations;
use crate::state::State;

/// The business id of the invented supplier.
const SUPPLIER_BUSINESS: &str = "5a0d0000-0000-4000-8000-000000000001";
const SUPPLIER_SERVICE: &str = "5A0D0001";

/// The body of `POST /sandbox/inbound`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InboundInvoice {
    /// The customer's tax number.
    pub tin: String,
    /// The reference number of the invoice; generated if absent.
    pub irn: Option<String>,
    pub supplier_name: Option<String>,
    pub supplier_tin: Option<String>,
    pub customer_name: Option<String>,
    /// A complete document to use instead of the generated one. Its customer must have the tax number `tin`.
    pub document: Option<Value>,
    /// If false, no notice is sent, and a client finds the invoice only with `pull`. The default is true.
    pub notify: Option<bool>,
}

pub(super) async fn plant_invoice(
    state: Data<State>,
    inbound: JsonBody<InboundInvoice>,
) -> HttpResponse {
    answer(
        state
            .plant_invoice(&inbound.0)
            .map(|irn| json!({ "irn": irn })),
    )
}

impl State {
    /// Adds a signed and transmitted invoice for the customer with the tax number `inbound.tin`. Returns its IRN. The
    /// error says why `inbound` is invalid.
    pub fn plant_invoice(&self, inbound: &InboundInvoice) -> Result<String, String> {
        let today = clock::day(clock::now(), self.settings.utc_offset);
        let planted = self.ledger.lock().invoice_count();
        let document = match &inbound.document {
            Some(document) => document.clone(),
            None => default_document(inbound, today, planted),
        };
        let essence = document::check(&document)?;
        if essence
            .customer
            .as_ref()
            .is_none_or(|customer| customer.tin != inbound.tin)
        {
            return Err("the document's customer has another tin".into());
        }
        let irn = essence.irn.clone();
        if !operations::record_signed_invoice(self, essence, &document) {
            return Err(format!("{irn} is signed already"));
        }
        if let Some(invoice) = self.ledger.lock().invoice_mut(&irn) {
            invoice.transmit()?;
        }
        if inbound.notify.unwrap_or(true) {
            self.notices.notify(&irn, "TRANSMITTING");
        }
        Ok(irn)
    }
}

fn default_document(inbound: &InboundInvoice, today: Date, planted: usize) -> Value {
    let irn = inbound.irn.clone().unwrap_or_else(|| {
        format!(
            "SUP{:05}-{SUPPLIER_SERVICE}-{}",
            planted + 1,
            today.strftime("%Y%m%d")
        )
    });
    let supplier_name = inbound
        .supplier_name
        .as_deref()
        .unwrap_or("Simulated Supplier Ltd");
    let supplier_tin = inbound.supplier_tin.as_deref().unwrap_or("99999999-0001");
    json!({
        "business_id": SUPPLIER_BUSINESS,
        "irn": irn,
        "payment_status": "PENDING",
        "issue_date": today.to_string(),
        "issue_time": "09:00:00",
        "due_date": today.to_string(),
        "invoice_type_code": "381",
        "invoice_kind": "B2B",
        "document_currency_code": "NGN",
        "tax_currency_code": "NGN",
        "accounting_supplier_party": party(supplier_name, supplier_tin),
        "accounting_customer_party": party(inbound.customer_name.as_deref().unwrap_or("Customer"), &inbound.tin),
        "tax_total": [{ "tax_amount": 750, "tax_subtotal": [{
            "taxable_amount": 10000, "tax_amount": 750,
            "tax_category": { "id": "STANDARD_VAT", "percent": 7.5 },
        }] }],
        "legal_monetary_total": {
            "line_extension_amount": 10000, "tax_exclusive_amount": 10000, "tax_inclusive_amount": 10750,
            "payable_amount": 10750,
        },
        "invoice_line": [{
            "hsn_code": "8471.30", "product_category": "8471.30", "invoiced_quantity": 10,
            "line_extension_amount": 10000,
            "item": { "name": "Portable computer", "description": "Portable computer, used" },
            "price": { "price_amount": 1000, "base_quantity": 1, "price_unit": "EA" },
        }],
    })
}

fn party(name: &str, tin: &str) -> Value {
    json!({
        "party_name": name, "tin": tin, "email": "accounts@example.com", "telephone": "+2348030000000",
        "postal_address": {
            "street_name": "1 Marina", "city_name": "Lagos", "postal_zone": "101001", "country": "NG",
        },
    })
}
