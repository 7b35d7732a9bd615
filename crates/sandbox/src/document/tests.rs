//! Tests of the document checks.

use serde_json::{Value, json};

use super::check;

fn document() -> Value {
    let party = json!({
        "party_name": "Dangoyaro Mills", "tin": "12345678-0001", "email": "books@example.com",
        "telephone": "+2348030000000",
        "postal_address": { "street_name": "1 Marina", "city_name": "Lagos", "country": "NG" },
    });
    json!({
        "business_id": "bb99420d-d6bb-422c-b371-b9f6d6009aae", "irn": "INV001-94AD90FB-20261121",
        "issue_date": "2026-11-21", "invoice_type_code": "381",
        "document_currency_code": "NGN", "tax_currency_code": "NGN",
        "accounting_supplier_party": party, "accounting_customer_party": party,
        "tax_total": [{ "tax_amount": 7.5, "tax_subtotal": [
            { "taxable_amount": 100, "tax_amount": 7.5, "tax_category": { "id": "STANDARD_VAT", "percent": 7.5 } },
        ] }],
        "legal_monetary_total": {
            "line_extension_amount": 100, "tax_exclusive_amount": 100, "tax_inclusive_amount": 107.5,
            "payable_amount": 107.5,
        },
        "invoice_line": [{
            "hsn_code": "1006.30", "product_category": "1006.30", "invoiced_quantity": 10,
            "line_extension_amount": 100, "item": { "name": "Rice" },
            "price": { "price_amount": 10, "base_quantity": 1, "price_unit": "KGM" },
        }],
    })
}

/// Sets one value of a valid document (`pointer` is a JSON pointer) and returns the fault that the check finds.
fn fault(pointer: &str, value: Value) -> String {
    let mut document = document();
    *document.pointer_mut(pointer).unwrap() = value;
    check(&document).unwrap_err()
}

#[test]
fn a_complete_document_passes() {
    assert_eq!(check(&document()).unwrap().irn, "INV001-94AD90FB-20261121");
}

#[test]
fn a_fault_is_a_lower_cased_struct_path_and_a_rule() {
    assert_eq!(
        fault("/tax_total/0/tax_subtotal/0/tax_category/id", json!("VAT")),
        "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id must be a known code"
    );
    assert_eq!(
        fault("/accounting_supplier_party/telephone", json!("0803")),
        "invoicerequest.invoice.accountingsupplierparty.telephone must start with + and hold the country code"
    );
}

#[test]
fn of_two_faults_the_first_is_told() {
    let fault = check(&json!({})).unwrap_err();
    assert_eq!(fault, "invoicerequest.invoice.businessid is required");
}

#[test]
fn amounts_are_numbers_and_agree_to_the_hundredth() {
    let inclusive = "/legal_monetary_total/tax_inclusive_amount";
    assert!(fault(inclusive, json!("107.5")).ends_with("taxinclusiveamount must be a number"));
    assert!(
        fault(inclusive, json!(107.52))
            .ends_with("must be tax_exclusive_amount plus the tax total")
    );
    assert!(
        fault("/invoice_line/0/line_extension_amount", json!(99.98))
            .contains("invoiceline must add up")
    );
    let mut close = document();
    close["legal_monetary_total"]["tax_inclusive_amount"] = json!(107.51);
    assert!(check(&close).is_ok());
}

#[test]
fn tax_total_and_tax_currency_are_wanted() {
    assert!(fault("/tax_total", Value::Null).ends_with("taxtotal is required"));
    assert!(fault("/tax_total", json!([])).ends_with("taxtotal must contain at least 1 item"));
    assert!(fault("/tax_currency_code", Value::Null).ends_with("taxcurrencycode is required"));
}

#[test]
fn a_credit_or_debit_note_names_the_invoice_it_changes() {
    for code in ["380", "384"] {
        assert!(
            fault("/invoice_type_code", json!(code)).ends_with("billingreference is required"),
            "{code}"
        );
        let mut note = document();
        note["invoice_type_code"] = json!(code);
        note["billing_reference"] =
            json!([{ "irn": "INV000-94AD90FB-20261120", "issue_date": "2026-11-20" }]);
        assert!(check(&note).is_ok(), "{code}");
    }
}

#[test]
fn a_service_line_has_its_own_codes() {
    let mut service = document();
    service["invoice_line"][0] = json!({
        "isic_code": "6201", "service_category": "6201", "invoiced_quantity": 10, "line_extension_amount": 100,
        "item": { "name": "Programming" }, "price": { "price_amount": 10, "base_quantity": 1, "price_unit": "HUR" },
    });
    assert!(check(&service).is_ok());
}

#[test]
fn only_a_sale_to_a_consumer_goes_without_a_customer() {
    let mut retail = document();
    retail["accounting_customer_party"] = Value::Null;
    retail["invoice_kind"] = json!("B2C");
    assert!(check(&retail).is_ok());
    retail["invoice_kind"] = json!("B2B");
    assert!(
        check(&retail)
            .unwrap_err()
            .ends_with("accountingcustomerparty is required")
    );
}

#[test]
fn dates_are_days_and_in_order() {
    assert!(fault("/issue_date", json!("21-11-2026")).contains("issuedate must be a date"));
    let mut late = document();
    late["due_date"] = json!("2026-11-20");
    assert!(
        check(&late)
            .unwrap_err()
            .ends_with("duedate must not be before issue_date")
    );
}
