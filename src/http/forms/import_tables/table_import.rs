//! Imports a table with the form of Create Standard, for the tests of tables.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_json::json;

use crate::domain::import::profile::ImportProfile;
use crate::domain::import::source::ImportForm;
use crate::domain::import::table::Table;
use crate::domain::import::{csv_table, table_documents};
use crate::domain::invoice::Draft;
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::import::{ImportContext, read};
use crate::http::forms::testing::{self, import_account};

/// The columns of all test tables. The last two columns are the quantity and the unit price.
pub(super) const HEADER: &str = "\
    invoice_no,invoice_category,invoice_type_code,invoice_date,due_date,currency,customer.no,\
    customer.name,customer.email,customer.tin,customer.business_description,customer.address_street_name,\
    customer.address_city,customer.address_state,customer.address_postal_code,customer.address_country,line.item_name,\
    line.item_no,line.item_type,line.price_unit,line.tax_category,line.product_category,line.quantity,line.unit_price";
/// The start of a row: the values of all columns of `HEADER` except the last two.
pub(super) const ROW_START: &str = "\
    A,B2B,381,2026-11-21,2026-12-21,NGN,C1,Mills,m@example.com,12345678-0001,Flour,1 Marina,Lagos,\
    Lagos,100001,NG,Rice,R1,PRODUCT,KGM,STANDARD_VAT,1006.30";

pub(super) fn catalog() -> Catalog {
    let mut catalog = testing::catalog();
    let currencies = json!([
        { "code": "NGN", "decimal_digits": 2 }, { "code": "JPY", "decimal_digits": 0 },
        { "code": "KWD", "decimal_digits": 3 },
    ]);
    catalog.load(ReferenceList::Currencies, &currencies);
    catalog
}

/// Imports a table. Returns the draft of its first invoice, or the faults of that invoice.
pub(super) fn import(table: Table) -> Result<Draft, Faults> {
    import_with_warnings(table).map(|(draft, _)| draft)
}

pub(super) fn import_with_warnings(table: Table) -> Result<(Draft, Vec<String>), Faults> {
    let catalog = catalog();
    let (profile, account) = (ImportProfile::default(), import_account());
    let context = ImportContext {
        form: ImportForm::Standard,
        profile: &profile,
        account: &account,
        today: Date::MAX,
        catalog: &catalog,
    };
    let file = table_documents::read(table, &BTreeMap::new()).unwrap();
    let (mut candidates, mut imported) = read(file, "I1".to_owned(), &context);
    let warnings = imported.documents.swap_remove(0).warnings;
    let draft = candidates.swap_remove(0).draft;
    draft.map(|draft| (*draft, warnings))
}

/// Imports a table that has the columns of `HEADER` and then `columns`. `rows` have the values from the quantity on.
pub(super) fn import_rows(columns: &str, rows: &[&str]) -> Result<Draft, Faults> {
    let rows = rows.iter().map(|row| format!("{ROW_START},{row}"));
    let rows: Vec<_> = rows.collect();
    let text = format!("{HEADER}{columns}\n{}\n", rows.join("\n"));
    import(csv_table::read(text.as_bytes()).unwrap())
}

pub(super) fn sentences(result: Result<Draft, Faults>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .iter()
            .map(|fault| format!("{} {fault}", fault.path))
            .collect(),
    }
}
