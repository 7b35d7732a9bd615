//! The error file of an import: the rows of the refused documents as they were uploaded, with a column that states the
//! errors. After the user has corrected the rows, the file can be uploaded again.

use std::borrow::Cow;

use csv::{QuoteStyle, WriterBuilder};

use crate::domain::import::record::{Import, ImportItem, ImportedFile};
use crate::domain::import::table::{ERROR_COLUMN, Table};
use crate::domain::kernel::formula_mark;

/// Returns the whole error file as CSV in UTF-8.
pub fn contents(file: &ImportedFile, import: &Import) -> String {
    header(file) + &rows(file, import)
}

/// Returns the header row: that of the uploaded table, or columns of our own for formats without columns.
pub fn header(file: &ImportedFile) -> String {
    let own = ["index", "source", "invoice_no"].map(str::to_owned);
    let cells = match &file.table {
        Some(table) => cells_without_error_column(table, &table.header),
        None => own.to_vec(),
    };
    let cells: Vec<_> = cells.into_iter().chain([ERROR_COLUMN.to_owned()]).collect();
    // Without quotes, a semicolon or tab within a name could be taken for the delimiter.
    let style = if cells.iter().any(|cell| cell.contains([';', '\t'])) {
        QuoteStyle::Always
    } else {
        QuoteStyle::Necessary
    };
    to_csv([cells], style)
}

/// Returns the rows of the refused documents as CSV, without the header.
pub fn rows(file: &ImportedFile, import: &Import) -> String {
    let rows = match &file.table {
        Some(table) => refused_table_rows(file, import, table),
        None => refused_document_rows(import),
    };
    to_csv(rows, QuoteStyle::Necessary)
}

fn to_csv(records: impl IntoIterator<Item = Vec<String>>, style: QuoteStyle) -> String {
    let mut writer = WriterBuilder::new()
        .flexible(true)
        .quote_style(style)
        .from_writer(Vec::new());
    for record in records {
        // PostgreSQL cannot store a text with a NUL character.
        let cells = record
            .iter()
            .map(|cell| guard_against_formula(cell).replace('\0', "\u{fffd}"));
        // Writing to memory does not fail.
        let _ = writer.write_record(cells);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns the uploaded rows of the refused documents, each with its errors.
fn refused_table_rows(file: &ImportedFile, import: &Import, table: &Table) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let items = import.items.iter().zip(&file.documents);
    for (item, document) in items.filter(|(item, _)| item.is_refused()) {
        let rows = document.rows.iter();
        for row in rows.filter_map(|at| table.rows.get(*at)) {
            let error = row_error(item, &format!("{} {}", table.word, row.number));
            let cells = cells_without_error_column(table, &row.cells).into_iter();
            let stray = cells_beyond_header(table, &row.cells).iter().cloned();
            records.push(cells.chain([error]).chain(stray).collect());
        }
    }
    records
}

/// Returns one row for each refused document of a format without columns.
fn refused_document_rows(import: &Import) -> Vec<Vec<String>> {
    let refused = import.items.iter().filter(|item| item.is_refused());
    let records = refused.map(|item| {
        vec![
            item.index.to_string(),
            item.source.clone(),
            item.invoice_no.clone().unwrap_or_default(),
            all_errors(item),
        ]
    });
    records.collect()
}

/// Returns the cells of a row without the cell of the error column, which an earlier error file may have added.
fn cells_without_error_column(table: &Table, cells: &[String]) -> Vec<String> {
    let columns = table.header.iter().enumerate();
    columns
        .filter(|(_, name)| !name.trim().eq_ignore_ascii_case(ERROR_COLUMN))
        .map(|(at, _)| cells.get(at).cloned().unwrap_or_default())
        .collect()
}

/// Returns the cells after the last column of the header, up to the last one with a value. They are kept because a
/// number such as 1234,50 may stand in two cells: without the second one, the row would be imported with 1234.
fn cells_beyond_header<'c>(table: &Table, cells: &'c [String]) -> &'c [String] {
    let behind = cells.get(table.header.len()..).unwrap_or_default();
    let last = behind.iter().rposition(|cell| !cell.trim().is_empty());
    behind
        .get(..last.map_or(0, |at| at + 1))
        .unwrap_or_default()
}

/// Returns the errors of one row. A row without errors of its own says that other rows of its invoice have errors.
fn row_error(item: &ImportItem, row_place: &str) -> String {
    let own: Vec<_> = item
        .errors
        .iter()
        .filter(|error| {
            error.place == row_place || error.place.starts_with(&format!("{row_place},"))
        })
        .map(|error| error.message.as_str())
        .collect();
    if own.is_empty() {
        format!("The invoice has errors in other rows: {}", item.source)
    } else {
        own.join(" ")
    }
}

fn all_errors(item: &ImportItem) -> String {
    let errors = item
        .errors
        .iter()
        .map(|error| format!("{}: {}", error.place, error.message));
    errors.collect::<Vec<_>>().join(" ")
}

/// Returns the cell, with an apostrophe wherever a spreadsheet would begin a formula. A number never gets one, even if
/// it is negative.
fn guard_against_formula(cell: &str) -> Cow<'_, str> {
    if cell.parse::<serde_json::Number>().is_ok() {
        Cow::Borrowed(cell)
    } else {
        formula_mark::mark(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::csv_table;
    use crate::domain::import::profile::CustomerIdentity;
    use crate::domain::import::record::{DocumentResult, ImportedDocument};
    use crate::domain::import::source::ImportForm;
    use crate::domain::import::table_documents;
    use crate::domain::invoice::batch::BatchItem;
    use crate::domain::kernel::fault::{Fault, Faults};

    fn refused_file(layout_is_table: bool) -> (ImportedFile, Import) {
        let text =
            "invoice_no,customer.name,line.quantity,error\nA,'@evil,1,old\nA,,-2,old\nB,x,3,\n";
        let file = table_documents::read(
            csv_table::read(text.as_bytes()).unwrap(),
            &std::collections::BTreeMap::new(),
        )
        .unwrap();
        let documents = file.documents.iter().map(|document| ImportedDocument {
            places: document.places.clone(),
            warnings: Vec::new(),
            customer: CustomerIdentity::default(),
            currency: None,
            amount: None,
            payable: None,
            rows: document.rows.clone(),
            ubl_parts: None,
        });
        let file = ImportedFile {
            import_no: "I1".to_owned(),
            form: ImportForm::Standard,
            documents: documents.collect(),
            documents_before: 0,
            warnings: Vec::new(),
            table: file.table.filter(|_| layout_is_table),
        };
        let faults: Faults = Fault::new("invoice_lines.1.quantity", "min", "Too \"small\".").into();
        let failed = DocumentResult {
            item: BatchItem::from_faults(Some("A".to_owned()), &faults),
            faults: Some(faults),
        };
        let import = Import::new(&file, None, [failed]);
        (file, import)
    }

    #[test]
    fn refused_rows_keep_their_layout_and_can_be_read_again() {
        let (file, import) = refused_file(true);
        let text = contents(&file, &import);
        let expected = "invoice_no,customer.name,line.quantity,error\n\
                        A,'@evil,1,The invoice has errors in other rows: lines 2 to 3\n\
                        A,,-2,\"Too \"\"small\"\".\"\n";
        assert_eq!(text, expected);
        let again = csv_table::read(text.as_bytes()).unwrap();
        assert_eq!(again.rows[0].cells[1], "@evil");
    }

    #[test]
    fn a_header_has_the_same_columns_again() {
        for names in [
            ["invoice_no", "price"],
            ["invoice_no", "price;each;net"],
            ["invoice_no", "a\tb\tc\td"],
        ] {
            let (mut file, _) = refused_file(true);
            file.table = Some(Table {
                header: names.map(str::to_owned).to_vec(),
                ..Table::default()
            });
            let again = csv_table::read(header(&file).as_bytes()).unwrap();
            assert_eq!(again.header, [names[0], names[1], ERROR_COLUMN]);
        }
    }

    #[test]
    fn a_row_with_cells_under_no_name_is_refused_again() {
        for (start, rows) in [
            (
                "invoice_no,line.unit_price",
                ["A,1234,50", "A,1234,ERROR,50"],
            ),
            (
                "invoice_no,line.unit_price",
                ["A,1234,,50,", "A,1234,ERROR,,50"],
            ),
            (
                "invoice_no,error,line.unit_price",
                ["A,,1234,50", "A,1234,ERROR,50"],
            ),
            ("invoice_no,line.unit_price", ["A,x,", "A,x,ERROR"]),
        ] {
            let [uploaded, expected] = rows;
            let table = csv_table::read(format!("{start}\n{uploaded}\n").as_bytes()).unwrap();
            let row = &table.rows[0].cells;
            let kept = cells_without_error_column(&table, row).into_iter();
            let stray = cells_beyond_header(&table, row).iter().cloned();
            let record: Vec<_> = kept.chain(["ERROR".to_owned()]).chain(stray).collect();
            let text = to_csv([record], QuoteStyle::Necessary);
            assert_eq!(text.trim_end(), expected, "{uploaded}");
            let again = format!("invoice_no,line.unit_price,error\n{text}");
            let again = csv_table::read(again.as_bytes()).unwrap();
            let found = again.rows[0].find_stray_cell(&again.header).is_some();
            assert_eq!(found, expected.ends_with("50"), "{uploaded}");
        }
    }

    #[test]
    fn a_formula_is_refused_again_and_a_text_stays_a_text() {
        for (cell, expected) in [
            ("=1+1", "' =1+1"),
            (" \t=1", "' =1"),
            ("' =1", "' =1"),
            ("=1;=2", "' =1;'=2"),
            ("'=1", "'=1"),
            ("a;=1", "a;'=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
        ] {
            let read =
                |cell: &str| csv_table::read(format!("a,b\nA,\"{cell}\"\n").as_bytes()).unwrap();
            let table = read(cell);
            let text = to_csv([table.rows[0].cells.clone()], QuoteStyle::Necessary);
            assert_eq!(text, format!("A,{expected}\n"), "{cell:?}");
            assert_eq!(read(expected), table, "{cell:?}");
        }
    }

    #[test]
    fn no_text_has_a_nul_character() {
        let records = [vec!["a\0".to_owned(), "-2".to_owned()]];
        let text = to_csv(records, QuoteStyle::Necessary);
        assert_eq!(text, "a\u{fffd},-2\n");
    }

    #[test]
    fn other_formats_have_a_row_for_each_document() {
        let (file, import) = refused_file(false);
        let text = contents(&file, &import);
        let expected = "index,source,invoice_no,error\n\
                        0,lines 2 to 3,A,\"line 3, column line.quantity: Too \"\"small\"\".\"\n";
        assert_eq!(text, expected);
    }
}
