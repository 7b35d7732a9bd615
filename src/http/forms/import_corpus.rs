//! Imports the public UBL examples (`crates/ubl/tests/examples/SOURCES.md`) in both forms, with an import profile that
//! has values for the fields that UBL lacks. `EINVOICE_WRITE_DOCS=1 cargo test --lib import_corpus` writes the outcome
//! to docs/import.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jiff::civil::Date;
use serde_json::{Map, json};

use crate::domain::import::profile::ImportProfile;
use crate::domain::import::source::ImportForm;
use crate::domain::import::ubl_document;
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::import::{ImportContext, read};
use crate::http::forms::testing::import_account;

const PAGE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/import.md");
const PAGE_HEAD: &str = "# What becomes of UBL that others wrote\n\n\
    Written by a test, which imports the public examples of `crates/ubl/tests/examples` in both forms, with an import profile \
    that answers what UBL has no element for: the e-mail, the TIN and the state of the customer, and the classification of the \
    lines. One that its authors have broken on purpose is not counted. A refusal is one sentence with the path of the element. [contract.md](contract.md#import) has the rules.\n";
/// The lists of the authority, and their files.
const LISTS: [(ReferenceList, &str); 8] = [
    (ReferenceList::InvoiceTypes, "invoice-types"),
    (ReferenceList::PaymentMeans, "payment-means"),
    (ReferenceList::TaxCategories, "tax-categories"),
    (ReferenceList::Currencies, "currencies"),
    (ReferenceList::ProductCodes, "hs-codes"),
    (ReferenceList::ServiceCodes, "services-codes"),
    (ReferenceList::QuantityCodes, "invoice-quantity-codes"),
    (ReferenceList::Countries, "countries"),
];
/// The example that its authors made invalid on purpose. The import must refuse it, and the page does not count it.
const INVALID_EXAMPLE: &str = "mcp-einvoicing-be-invoice_invalid";
/// The least percentage of the examples that must be imported in each form.
const STANDARD_PERCENT_MIN: usize = 95;
const FULL_PERCENT_MIN: usize = 90;

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/sandbox/data");
    for (list, file) in LISTS {
        let text = fs::read_to_string(folder.join(format!("{file}.json"))).unwrap();
        catalog.load(list, &strict_json::from_trusted(&text).unwrap());
    }
    catalog
}

fn profile() -> ImportProfile {
    let value = json!({
        "defaults": {
            "email": "buyer@customer.example", "tin": "12345678-0001", "address_state": "Lagos",
            "address_street_name": "1 Marina", "address_city": "Lagos", "address_country": "NG",
            "address_postal_code": "101241", "business_description": "Trade", "name": "Customer",
            "product_category": "8471.30", "service_category": "6201",
        },
        "customers": Map::new(), "columns": Map::new(), "units": Map::new(),
    });
    serde_json::from_value(value).unwrap()
}

/// Imports each example in this form. Returns the faults of each by the name of the example.
fn import_all(form: ImportForm) -> BTreeMap<String, Result<(), Faults>> {
    let catalog = catalog();
    let profile = profile();
    let account = import_account();
    let context = ImportContext {
        form,
        profile: &profile,
        account: &account,
        today: Date::MAX,
        catalog: &catalog,
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/ubl/tests/examples");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
        .map(|path| {
            let file =
                ubl_document::read(&fs::read(&path).unwrap(), form, &profile.units, &catalog);
            let (mut candidates, _) = read(file, "I1".to_owned(), &context);
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, candidates.swap_remove(0).draft.map(drop))
        })
        .collect()
}

fn write_form(
    page: &mut String,
    form: ImportForm,
    outcomes: &BTreeMap<String, Result<(), Faults>>,
) {
    let imported = outcomes.values().filter(|outcome| outcome.is_ok()).count();
    write!(
        page,
        "\n## As Create {form}\n\n{imported} of {} examples are imported.\n",
        outcomes.len()
    )
    .unwrap();
    let mut causes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut sentences = Vec::new();
    for (name, result) in outcomes {
        for fault in result.as_ref().err().into_iter().flat_map(Faults::iter) {
            let names = causes.entry(fault.rule().to_owned()).or_default();
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
            sentences.push(format!("- {name}: `{}` {fault}", fault.path));
        }
    }
    if causes.is_empty() {
        return;
    }
    page.push_str("\n| Cause | Examples |\n|---|---|\n");
    for (cause, names) in causes {
        writeln!(page, "| {cause} | {} |", names.len()).unwrap();
    }
    write!(page, "\n{}\n", sentences.join("\n")).unwrap();
}

#[test]
fn public_examples_are_imported_or_refused_in_a_sentence() {
    let mut page = PAGE_HEAD.to_owned();
    let mut percents = Vec::new();
    for form in [ImportForm::Standard, ImportForm::Full] {
        let mut outcomes = import_all(form);
        assert!(
            outcomes.remove(INVALID_EXAMPLE).unwrap().is_err(),
            "{form}: {INVALID_EXAMPLE}"
        );
        write_form(&mut page, form, &outcomes);
        let faults = outcomes
            .values()
            .filter_map(|outcome| outcome.as_ref().err());
        for fault in faults.flat_map(Faults::iter) {
            let sentence = fault.to_string();
            assert!(
                sentence.ends_with('.') && !sentence.contains('\n'),
                "{sentence}"
            );
        }
        let imported = outcomes.values().filter(|outcome| outcome.is_ok()).count();
        percents.push(imported * 100 / outcomes.len());
    }
    assert!(
        percents[0] >= STANDARD_PERCENT_MIN && percents[1] >= FULL_PERCENT_MIN,
        "{percents:?}\n{page}"
    );
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        fs::write(PAGE_FILE, &page).unwrap();
    }
    let written = fs::read_to_string(PAGE_FILE).unwrap_or_default();
    let message = "docs/import.md is old: EINVOICE_WRITE_DOCS=1 cargo test --lib import_corpus";
    assert_eq!(written, page, "{message}");
}
