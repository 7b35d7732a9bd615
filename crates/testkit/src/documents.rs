//! The sample documents: one of each kind, all of them valid and all about the same sale. A test changes one field
//! with [`crate::edit`].

use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::edit::{exact, with};

/// The tax number of the customer in every document.
pub const CUSTOMER_TIN: &str = "87654321-0001";

static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// Returns a number that no other test of this process has.
pub fn number() -> u32 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// The numbers by which the authority knows a taxpayer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub service_id: String,
    pub business_id: String,
    pub tin: String,
}

impl Registration {
    /// Returns the registration of the demo taxpayer, which the service creates at the first start with a new database.
    pub fn demo() -> Self {
        Self {
            service_id: "94CD90AA".into(),
            business_id: "11111111-1111-4111-8111-111111111111".into(),
            tin: "12345678-0001".into(),
        }
    }

    /// Returns a registration that belongs to this number only.
    pub fn with_number(number: u32) -> Self {
        Self {
            service_id: format!("{:08X}", 0xA000_0000 + number),
            business_id: format!("11111111-1111-4111-8111-{number:012}"),
            tin: format!("{number:08}-0001"),
        }
    }
}

impl AsRef<Self> for Registration {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Returns an invoice number that no other test has, of letters and digits as the authority wants it.
pub fn invoice_no() -> String {
    format!("INV{}", number())
}

/// Returns the IRN for an invoice number of a taxpayer, with the date of all documents here.
pub fn irn(taxpayer: &impl AsRef<Registration>, invoice_no: &str) -> String {
    format!("{invoice_no}-{}-20260115", taxpayer.as_ref().service_id)
}

/// Returns a standard B2B invoice with a new number: 1,000.00 and 7.5 percent of tax.
pub fn invoice() -> Value {
    invoice_numbered(&invoice_no())
}

/// Returns the invoice of [`invoice`] with this number.
pub fn invoice_numbered(invoice_no: &str) -> Value {
    json!({
        "invoice_no": invoice_no,
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-01-15",
        "due_date": "2026-02-15",
        "currency": "NGN",
        "customer": {
            "no": "C-001", "name": "Retail Stores Ltd", "email": "buyer@retail.example",
            "tin": CUSTOMER_TIN, "business_description": "Retail of household goods",
            "address_street_name": "5 Broad Street", "address_city": "Abuja", "address_state": "FCT",
            "address_postal_code": "900001", "address_country": "NG",
        },
        "invoice_lines": [{
            "item_name": "Laptop", "item_no": "LAP-1", "item_type": "PRODUCT", "unit_price": 500,
            "quantity": 2, "price_unit": "EA", "tax_category": "STANDARD_VAT",
            "product_category": "8471.30",
        }],
    })
}

/// Returns an invoice of one line without tax. Price and quantity become JSON numbers with exactly these digits.
pub fn invoice_with_price(unit_price: &str, quantity: &str) -> Value {
    let priced = with(&invoice(), "invoice_lines.0.unit_price", exact(unit_price));
    let counted = with(&priced, "invoice_lines.0.quantity", exact(quantity));
    with(&counted, "invoice_lines.0.tax_category", json!("ZERO_VAT"))
}

/// Returns a full B2B invoice of a taxpayer, with the amounts of [`invoice`].
pub fn full_invoice(taxpayer: &impl AsRef<Registration>) -> Value {
    let no = invoice_no();
    json!({
        "invoice_no": no,
        "invoice_category": "B2B",
        "irn": irn(taxpayer, &no),
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "accounting_customer_party": {
            "customer_no": "C-001", "party_name": "Retail Stores Ltd", "email": "buyer@retail.example",
            "tin": CUSTOMER_TIN, "business_description": "Retail of household goods",
            "telephone": "+234 (802) 000-0000",
            "postal_address": {
                "street_name": "5 Broad Street", "city_name": "Abuja", "postal_zone": "900001", "country": "NG",
            },
        },
        "legal_monetary_total": {
            "line_extension_amount": 1000, "tax_exclusive_amount": 1000, "tax_inclusive_amount": 1075,
            "payable_amount": 1075,
        },
        "invoice_line": [{
            "item": {
                "name": "Laptop", "description": "A portable computer", "sellers_item_identification": "LAP-1",
                "type": "PRODUCT",
            },
            "price": { "price_amount": 500, "base_quantity": 1, "price_unit": "EA" },
            "invoiced_quantity": 2, "line_extension_amount": 1000, "product_category": "8471.30",
            "hsn_code": "8471.30", "tax_category": "STANDARD_VAT", "total_tax": 75,
        }],
    })
}

/// Returns a logo as the profile takes it: a drawing of one square, in base64.
pub fn logo() -> Value {
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><path fill=\"#c2185b\" d=\"M1 1h7v7h-7z\"/></svg>";
    json!(STANDARD.encode(svg))
}

/// Returns an update of an invoice to one monitor of 200.00 and 7.5 percent of tax, for the customer of [`invoice`].
pub fn update(invoice: &Value) -> Value {
    json!({
        "unique_no": invoice["irn"],
        "unique_no_type": "IRN",
        "customer": self::invoice()["customer"],
        "invoice_category": "B2B",
        "invoice_type": "381",
        "due_date": "2026-03-15",
        "lines": [{
            "item_name": "Monitor", "item_no": "MON-1", "item_type": "PRODUCT", "unit_price": 200, "quantity": 1,
            "price_unit": "EA", "tax_category": "STANDARD_VAT", "product_category": "8528.52",
        }],
    })
}

/// Returns the body of a request that onboards a taxpayer. No other test has this taxpayer.
pub fn taxpayer() -> Value {
    let number = number();
    taxpayer_registered(number, &Registration::with_number(number))
}

/// Returns the body that onboards a taxpayer with this registration. The number makes its names unique.
pub fn taxpayer_registered(number: u32, registration: &Registration) -> Value {
    json!({
        "name": format!("Trading {number} Ltd"),
        "email": format!("accounts{number}@trading.example"),
        "tin_no": registration.tin,
        "phone": "+2348010000000",
        "nature_of_business": "Wholesale of computers",
        "authority_service_id": registration.service_id,
        "authority_business_id": registration.business_id,
        "address": "1 Marina Road",
        "contact_person": {
            "first_name": "Ada", "last_name": "Obi", "email": format!("ada{number}@trading.example"),
            "phone": "+2348020000000",
        },
    })
}

/// Returns a submission of a taxpayer, with the amounts of [`invoice`].
pub fn submission(taxpayer: &impl AsRef<Registration>, invoice_no: &str) -> Value {
    let registration = taxpayer.as_ref();
    json!({
        "invoice_reference": invoice_no,
        "business_id": registration.business_id,
        "irn": irn(taxpayer, invoice_no),
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "invoice_category": "B2B",
        "accounting_supplier_party": party("Trading Ltd", &registration.tin, "Lagos"),
        "accounting_customer_party": party("Retail Stores Ltd", CUSTOMER_TIN, "Abuja"),
        "legal_monetary_total": {
            "line_extension_amount": 1000, "tax_exclusive_amount": 1000, "tax_inclusive_amount": 1075,
            "payable_amount": 1075,
        },
        "invoice_line": [{
            "hsn_code": "8471.30", "product_category": "8471.30", "invoiced_quantity": 2,
            "line_extension_amount": 1000,
            "item": { "name": "Laptop", "description": "A portable computer" },
            "price": { "price_amount": 500, "base_quantity": 1, "price_unit": "EA" },
        }],
    })
}

/// Returns a payload that Validate accepts, with the amounts of [`submission`].
pub fn validation(taxpayer: &impl AsRef<Registration>, invoice_no: &str) -> Value {
    let registration = taxpayer.as_ref();
    let mut supplier = party("Trading Ltd", &registration.tin, "Lagos");
    supplier["postal_address"]
        .as_object_mut()
        .unwrap()
        .remove("postal_zone")
        .unwrap();
    json!({
        "business_id": registration.business_id,
        "irn": irn(taxpayer, invoice_no),
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "tax_point_date": "2026-01-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "tax_currency_code": "NGN",
        "accounting_supplier_party": supplier,
        "accounting_customer_party": party("Retail Stores Ltd", CUSTOMER_TIN, "Abuja"),
        "payment_means": [{ "payment_means_code": "30", "payment_due_date": "2026-02-15" }],
        "tax_total": [{
            "tax_amount": 75,
            "tax_subtotal": [{
                "taxable_amount": 1000, "tax_amount": 75,
                "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") },
            }],
        }],
        "legal_monetary_total": {
            "line_extension_amount": 1000, "tax_exclusive_amount": 1000, "tax_inclusive_amount": 1075,
            "payable_amount": 1075,
        },
        "invoice_line": [{
            "hsn_code": "8471.30", "product_category": "8471.30", "invoiced_quantity": 2,
            "line_extension_amount": 1000,
            "item": { "name": "Laptop" },
            "price": { "price_amount": 500, "base_quantity": 1, "price_unit": "EA" },
        }],
    })
}

/// Returns a report on the sale of [`invoice`].
pub fn report(taxpayer: &impl AsRef<Registration>, irn: &str) -> Value {
    let registration = taxpayer.as_ref();
    json!({
        "agent_tin": registration.tin,
        "beneficiary_tin": CUSTOMER_TIN,
        "irn": irn,
        "currency": "NGN",
        "item_description": "Two laptops",
        "transaction_date": "2026-01-15",
        "base_amount": 1000,
        "vat_rate": exact("7.5"),
        "vat_calculated": 75,
        "total_amount": exact("1075.00"),
        "integrator_service_id": registration.service_id,
        "vat_status": "STANDARD_VAT",
    })
}

fn party(name: &str, tin: &str, city: &str) -> Value {
    json!({
        "party_name": name, "tin": tin, "email": "office@party.example", "telephone": "+2348010000000",
        "postal_address": {
            "street_name": "1 Marina Road", "city_name": city, "postal_zone": "100001", "country": "NG",
        },
    })
}
