//! Bodies that the forms accept, for the demo taxpayer of a first start.

use serde_json::{Value, json};

/// An invoice of two laptops at 500.00 with standard tax: 1,075.00.
pub(crate) fn invoice(invoice_no: &str) -> Value {
    priced(invoice_no, 500, "STANDARD_VAT")
}

/// An invoice of 100.00 without tax.
pub(crate) fn invoice_of_100(invoice_no: &str) -> Value {
    priced(invoice_no, 50, "ZERO_VAT")
}

fn priced(invoice_no: &str, unit_price: u32, tax_category: &str) -> Value {
    json!({
        "invoice_no": invoice_no,
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-01-15",
        "due_date": "2026-02-15",
        "currency": "NGN",
        "customer": {
            "no": "C-001", "name": "Retail Stores Ltd", "email": "buyer@retail.example", "tin": "87654321-0001",
            "business_description": "Retail of household goods", "address_street_name": "5 Broad Street",
            "address_city": "Abuja", "address_state": "FCT", "address_postal_code": "900001", "address_country": "NG",
        },
        "invoice_lines": [{
            "item_name": "Laptop", "item_no": "LAP-1", "item_type": "PRODUCT", "unit_price": unit_price,
            "quantity": 2, "price_unit": "EA", "tax_category": tax_category, "product_category": "8471.30",
        }],
    })
}

/// What Report takes for an invoice of `invoice`.
pub(crate) fn report(irn: &str) -> Value {
    json!({
        "agent_tin": "12345678-0001", "beneficiary_tin": "87654321-0001", "irn": irn, "currency": "NGN",
        "item_description": "Two laptops", "transaction_date": "2026-01-15", "base_amount": 1000,
        "vat_rate": 5, "vat_calculated": 50, "total_amount": 1050, "integrator_service_id": "94CD90AA",
        "vat_status": "STANDARD_VAT",
    })
}

/// What Submit takes for an invoice of `invoice`.
pub(crate) fn submission(invoice_no: &str, irn: &str) -> Value {
    let address = |street: &str, city: &str| json!({ "street_name": street, "city_name": city, "postal_zone": "100001", "country": "NG" });
    json!({
        "invoice_reference": invoice_no,
        "business_id": "11111111-1111-4111-8111-111111111111",
        "irn": irn,
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "invoice_category": "B2B",
        "accounting_supplier_party": {
            "party_name": "Demo Trading Ltd", "tin": "12345678-0001", "email": "accounts@demo.example",
            "postal_address": address("1 Marina Road", "Lagos"),
        },
        "accounting_customer_party": {
            "party_name": "Retail Stores Ltd", "tin": "87654321-0001", "email": "buyer@retail.example",
            "postal_address": address("5 Broad Street", "Abuja"),
        },
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
