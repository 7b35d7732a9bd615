//! Bodies that pass. A test changes one field of them, by its dot path.

use serde_json::{Value, json};

use super::clients::Taxpayer;
use super::world::number;

/// An invoice number that no other test has, of letters and digits as the authority wants it.
pub(crate) fn invoice_no() -> String {
    format!("INV{}", number())
}

/// A standard B2B invoice over 1,000.00 and 7.5 percent of tax.
pub(crate) fn invoice() -> Value {
    json!({
        "invoice_no": invoice_no(),
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-01-15",
        "due_date": "2026-02-15",
        "currency": "NGN",
        "customer": {
            "no": "C-001", "name": "Retail Stores Ltd", "email": "buyer@retail.example",
            "tin": "87654321-0001", "business_description": "Retail of household goods",
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

/// A full B2B invoice of a taxpayer, of the same amounts as `invoice`.
pub(crate) fn full_invoice(taxpayer: &Taxpayer) -> Value {
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
            "tin": "87654321-0001", "business_description": "Retail of household goods",
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

/// The update of an invoice to one monitor of 200.00 and 7.5 percent of tax, for the customer of `invoice`.
pub(crate) fn update(invoice: &Value) -> Value {
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

/// An invoice whose payable is this, in the words of JSON: one line, no tax.
pub(crate) fn invoice_over(unit_price: &str, quantity: &str) -> Value {
    let priced = with(&invoice(), "invoice_lines.0.unit_price", exact(unit_price));
    let counted = with(&priced, "invoice_lines.0.quantity", exact(quantity));
    with(&counted, "invoice_lines.0.tax_category", json!("ZERO_VAT"))
}

/// A number by its digits.
pub(crate) fn exact(digits: &str) -> Value {
    strict_json::from_trusted(digits).unwrap()
}

/// A taxpayer that no other test has.
pub(crate) fn taxpayer() -> Value {
    let n = number();
    json!({
        "name": format!("Trading {n} Ltd"),
        "email": format!("accounts{n}@trading.example"),
        "tin_no": format!("{n:08}-0001"),
        "phone": "+2348010000000",
        "nature_of_business": "Wholesale of computers",
        "authority_service_id": format!("{:08X}", 0xA000_0000 + n),
        "authority_business_id": format!("11111111-1111-4111-8111-{n:012}"),
        "address": "1 Marina Road",
        "contact_person": {
            "first_name": "Ada", "last_name": "Obi", "email": format!("ada{n}@trading.example"),
            "phone": "+2348020000000",
        },
    })
}

/// The IRN of an invoice number of a taxpayer, dated as all these bodies are.
pub(crate) fn irn(taxpayer: &Taxpayer, invoice_no: &str) -> String {
    format!("{invoice_no}-{}-20260115", taxpayer.service_id)
}

/// A submission of a taxpayer, of the same amounts as `invoice`.
pub(crate) fn submission(taxpayer: &Taxpayer, invoice_no: &str) -> Value {
    json!({
        "invoice_reference": invoice_no,
        "business_id": taxpayer.business_id,
        "irn": irn(taxpayer, invoice_no),
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "invoice_category": "B2B",
        "accounting_supplier_party": party("Trading Ltd", &taxpayer.tin, "Lagos"),
        "accounting_customer_party": party("Retail Stores Ltd", "87654321-0001", "Abuja"),
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

/// A payload that Validate takes, of the same amounts as `submission`.
pub(crate) fn validation(taxpayer: &Taxpayer, invoice_no: &str) -> Value {
    let mut supplier = party("Trading Ltd", &taxpayer.tin, "Lagos");
    supplier["postal_address"].as_object_mut().unwrap().remove("postal_zone").unwrap();
    json!({
        "business_id": taxpayer.business_id,
        "irn": irn(taxpayer, invoice_no),
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "tax_point_date": "2026-01-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "tax_currency_code": "NGN",
        "accounting_supplier_party": supplier,
        "accounting_customer_party": party("Retail Stores Ltd", "87654321-0001", "Abuja"),
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

/// A report on the sale of `invoice`.
pub(crate) fn report(taxpayer: &Taxpayer, irn: &str) -> Value {
    json!({
        "agent_tin": taxpayer.tin,
        "beneficiary_tin": "87654321-0001",
        "irn": irn,
        "currency": "NGN",
        "item_description": "Two laptops",
        "transaction_date": "2026-01-15",
        "base_amount": 1000,
        "vat_rate": exact("7.5"),
        "vat_calculated": 75,
        "total_amount": exact("1075.00"),
        "integrator_service_id": taxpayer.service_id,
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

/// A copy with another value at a dot path; what is not there yet is added.
pub(crate) fn with(body: &Value, path: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, name) = place(&mut body, path);
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        parent => parent[name] = value,
    }
    body
}

/// The dot path of every field of a body, objects and lists included.
pub(crate) fn paths(body: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| {
        let deeper: Vec<_> = paths(value).iter().map(|path| format!("{name}.{path}")).collect();
        std::iter::once(name).chain(deeper).collect::<Vec<_>>()
    };
    match body {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| below(name.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, value)| below(at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// What a hostile caller puts into any field.
pub(crate) fn oddities() -> Vec<Value> {
    vec![
        json!(true),
        json!([[[]]]),
        json!({ "a": { "b": null } }),
        json!("\u{0}"),
        json!("\u{202e}\u{2066}txt"),
        json!("'; DROP TABLE invoices; --"),
        json!("x".repeat(100_000)),
        exact("-0.0"),
        exact("1e400"),
    ]
}

/// A copy without the field at a dot path.
pub(crate) fn without(body: &Value, path: &str) -> Value {
    let mut body = body.clone();
    let (parent, name) = place(&mut body, path);
    parent.as_object_mut().unwrap().remove(name).unwrap();
    body
}

fn place<'b, 'p>(body: &'b mut Value, path: &'p str) -> (&'b mut Value, &'p str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = if parent.is_empty() { String::new() } else { format!("/{}", parent.replace('.', "/")) };
    (body.pointer_mut(&pointer).unwrap(), name)
}
