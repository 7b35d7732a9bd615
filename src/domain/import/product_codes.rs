//! Product codes of which a spreadsheet has made numbers: it shows 8471.30 as 8471.3, and 0101.21 as 101.21. In a
//! workbook such a number becomes the code again, if the authority lists the code. A text file may come from another
//! program, so there the fault says how the code is kept.

use serde_json::Value;

use crate::domain::import::source::{ImportForm, Places, SourceDocument};
use crate::domain::import::table::WORKBOOK_WORD;
use crate::domain::invoice::batch::ITEM_FAULTS_MAX;
use crate::domain::kernel::fault::Fault;
use crate::domain::reference::catalog::{Catalog, ReferenceList};

const CODE_FIELD: &str = "product_category";
/// The numbers of digits of a code before and after its point.
const WHOLE_DIGITS: usize = 4;
const DECIMAL_DIGITS: usize = 2;

/// Restores the product codes of a document of a table. Adds a warning for each code that is restored, and a fault for
/// each number that is not.
pub fn restore_product_codes(document: &mut SourceDocument, catalog: &Catalog) {
    let Places::Table { word, .. } = document.places else {
        return;
    };
    let list = ImportForm::Standard.lines_field();
    let body = document.body.as_mut();
    let lines = body.and_then(|body| body.get_mut(list)?.as_array_mut());
    for (index, line) in lines.into_iter().flatten().enumerate() {
        let Some(cell) = line.get_mut(CODE_FIELD) else {
            continue;
        };
        let number = cell.as_str().unwrap_or_default().to_owned();
        let Some(code) = code_shown_as(&number) else {
            continue;
        };
        let path = format!("{list}.{index}.{CODE_FIELD}");
        let is_listed = catalog.has(ReferenceList::ProductCodes, &code) == Some(true);
        if word == WORKBOOK_WORD && is_listed {
            let place = document.places.field_place(&path);
            let warning = format!("{place}: the number {number} is read as the code {code}.");
            document.warnings.push(warning);
            *cell = Value::String(code);
        } else if document.faults.len() < ITEM_FAULTS_MAX {
            document.faults.push(number_fault(path, &number, &code));
        }
    }
}

/// Returns the code that a spreadsheet shows as this number; `None` if the text is a whole code or no such number.
fn code_shown_as(number: &str) -> Option<String> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let mut digits = whole.bytes().chain(decimals.bytes());
    let is_number = !whole.is_empty() && digits.all(|digit| digit.is_ascii_digit());
    let has_room = whole.len() <= WHOLE_DIGITS && decimals.len() <= DECIMAL_DIGITS;
    let code = format!("{whole:0>WHOLE_DIGITS$}.{decimals:0<DECIMAL_DIGITS$}");
    (is_number && has_room && code != number).then_some(code)
}

fn number_fault(path: String, number: &str, code: &str) -> Fault {
    let message = format!(
        "The {path} field must be written 9999.99, such as {code}; the cell has {number}. Excel drops the zeros at \
         the ends of a number, such as the last 0: format the column as text."
    );
    Fault::new(path, "format", message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::domain::import::table::{Row, Table};
    use crate::domain::import::table_documents;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let codes = ["8471.30", "0101.21", "1006.00"].map(|code| json!({ "hscode": code }));
        catalog.load(ReferenceList::ProductCodes, &json!(codes));
        catalog
    }

    /// Reads a table of one row with this product code.
    fn document(word: &'static str, code: &str) -> SourceDocument {
        let table = Table {
            word,
            header: ["invoice_no", "line.product_category"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![Row {
                number: 2,
                cells: vec!["A".to_owned(), code.to_owned()],
                ..Row::default()
            }],
        };
        let mut file = table_documents::read(table, &BTreeMap::new()).unwrap();
        file.documents.remove(0)
    }

    fn read_code(document: &SourceDocument) -> String {
        let body = document.body.as_ref().unwrap();
        let code = &body["invoice_lines"][0][CODE_FIELD];
        code.as_str().unwrap().to_owned()
    }

    #[test]
    fn a_number_of_a_workbook_becomes_the_listed_code() {
        let unknown = Catalog::default();
        let known = catalog();
        // The catalog, the word for a row, the cell, and the code that is read; `None` for a fault.
        for (catalog, word, cell, code) in [
            (&known, "row", "8471.3", Some("8471.30")),
            (&known, "row", "101.21", Some("0101.21")),
            (&known, "row", "1006", Some("1006.00")),
            (&known, "row", "8471.30", Some("8471.30")),
            (&known, "row", "8471.4", None),
            (&known, "row", "Laptop", Some("Laptop")),
            (&known, "row", "84713", Some("84713")),
            (&known, "row", "8471.305", Some("8471.305")),
            (&known, "line", "8471.3", None),
            (&known, "line", "8471.30", Some("8471.30")),
            (&unknown, "row", "8471.3", None),
        ] {
            let mut read = document(word, cell);
            restore_product_codes(&mut read, catalog);
            assert_eq!(read_code(&read), code.unwrap_or(cell), "{word} {cell}");
            assert_eq!(read.faults.is_empty(), code.is_some(), "{word} {cell}");
            let is_restored = code.is_some_and(|code| code != cell);
            assert_eq!(!read.warnings.is_empty(), is_restored, "{word} {cell}");
        }
    }

    #[test]
    fn the_fault_says_how_the_code_is_kept() {
        let mut read = document("line", "8471.3");
        restore_product_codes(&mut read, &catalog());
        let [fault] = &read.faults[..] else {
            panic!("{:?}", read.faults)
        };
        assert_eq!(fault.path, "invoice_lines.0.product_category");
        let message = fault.to_string();
        assert!(message.contains("8471.30"), "{message}");
        assert!(message.contains("format the column as text"), "{message}");
        let mut restored = document("row", "8471.3");
        restore_product_codes(&mut restored, &catalog());
        assert_eq!(
            restored.warnings,
            ["row 2, column line.product_category: the number 8471.3 is read as the code 8471.30."]
        );
    }
}
