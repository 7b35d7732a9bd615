//! Reads the invoices that others wrote (`examples/SOURCES.md`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ubl::{Cause, Limits, ReadDocument, read, write_with_parts};

/// The examples with a discount whose rate of tax no line has, so that no line can take it.
const UNALLOCATED: [&str; 2] = [
    "xrechnung-testsuite-extension-04.03a.xml",
    "xrechnung-testsuite-standard-03.06a.xml",
];
/// The examples that are refused, each with the causes. All others have to be read.
const REFUSED: [(&str, &[Cause]); 1] = [(
    "mcp-einvoicing-be-invoice_invalid.xml",
    &[Cause::Missing, Cause::Missing],
)];

fn examples() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let paths = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some((name, fs::read(&path).ok()?))
        })
        .collect()
}

fn read_all() -> BTreeMap<String, ReadDocument> {
    let read = |bytes: Vec<u8>| read(&bytes, &Limits::default()).ok();
    examples()
        .into_iter()
        .filter_map(|(name, bytes)| Some((name, read(bytes)?)))
        .collect()
}

#[test]
fn every_example_is_read_but_the_broken_one() {
    let examples = examples();
    assert_eq!(examples.len(), 57);
    let refused: Vec<_> = examples
        .iter()
        .filter_map(|(name, bytes)| {
            let faults = read(bytes, &Limits::default()).err()?;
            Some((
                name.clone(),
                faults.iter().map(|fault| fault.cause).collect::<Vec<_>>(),
            ))
        })
        .collect();
    let expected = REFUSED.map(|(name, causes)| (name.to_owned(), causes.to_vec()));
    assert_eq!(refused, expected);
}

#[test]
fn an_example_written_again_is_the_same_document_with_the_same_parts_beside_it() {
    for (name, first) in read_all() {
        let xml = write_with_parts(&first.document, &first.beside).unwrap();
        let second = read(xml.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(second.document, first.document, "{name}");
        if name.starts_with("xrechnung-testsuite-") {
            // Parts of a contact stand in another element of the same party afterwards.
            continue;
        }
        if name == "zatca-tools-sdk-credit_note_simplified.xml" {
            // It is an invoice with the type of a credit note, so that its parts come to a credit note.
            assert!(second.beside[0].path.starts_with("/CreditNote"));
            continue;
        }
        let sorted = |read: &ReadDocument| {
            let mut parts: Vec<_> = read.beside.iter().map(|part| format!("{part:?}")).collect();
            parts.sort();
            parts
        };
        assert_eq!(sorted(&second), sorted(&first), "{name}");
    }
}

#[test]
fn sums_hold_after_allocation_to_the_lines() {
    for (name, read) in read_all() {
        let allocated = match ubl::allocate_charges(&read.document) {
            Ok(allocated) => allocated,
            Err(faults) => {
                assert!(UNALLOCATED.contains(&&*name), "{name}: {faults:?}");
                continue;
            }
        };
        let simple = ubl::fold_fees_into_prices(&allocated.document).document;
        let sum: rust_decimal::Decimal = simple.lines.iter().map(|line| line.amount).sum();
        assert_eq!(sum, read.document.totals.tax_exclusive, "{name}");
        for line in &simple.lines {
            let discounts: rust_decimal::Decimal = line.charges.iter().map(|one| one.amount).sum();
            assert_eq!(
                line.quantity * line.price - discounts,
                line.amount,
                "{name}: {}",
                line.name
            );
        }
    }
}

#[test]
fn the_changes_of_an_example_are_sentences() {
    let all = read_all();
    let changes = &all["zatca-tools-sdk-simplified_single_line.xml"].changes;
    let sentences: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        sentences,
        [
            "/Invoice/cac:InvoiceLine/cbc:InvoicedQuantity: The unit PCE, which is no code of Recommendation 20, became EA (each).",
            "/Invoice/cbc:InvoiceTypeCode: The document type 388 became 381 (Commercial Invoice).",
            "/Invoice/cac:AccountingCustomerParty/cac:Party: The customer has no name.",
            "/Invoice/cbc:IssueTime: The zone “Z” of the time 10:15:30 was left out.",
        ]
    );
}
