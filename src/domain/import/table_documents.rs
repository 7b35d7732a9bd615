//! A table of invoices: the header holds field names, and each row is one line of an invoice. Rows with the same
//! invoice number belong to one invoice.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::domain::import::source::{
    Places, SourceDocument, SourceFile, file_fault, too_many_documents_fault,
};
use crate::domain::import::table::{
    ERROR_COLUMN, Row, Table, duplicate_column_fault, formula_error_fault, formula_fault,
    shorten_cell, unnamed_column_fault,
};
use crate::domain::import::table_sums::{TableSums, read_number, read_sum};
use crate::domain::invoice::batch::{INVOICES_MAX, ITEM_FAULTS_MAX};
use crate::domain::invoice::table_columns::{
    EXPORT_COLUMNS, INVOICE_COLUMNS, LINE_COLUMNS, LINE_PREFIX, LINE_SUM_COLUMN, SUM_COLUMNS,
};
use crate::domain::kernel::fault::Fault;

/// The maximum number of ignored columns that the warnings name.
const UNREAD_COLUMNS_SHOWN_MAX: usize = 20;

/// The columns whose values are numbers. Their cells become JSON numbers with the same digits.
const NUMBER_COLUMNS: [&str; 4] = ["unit_price", "quantity", "discount_rate", "discount_amount"];
const NUMBER_FIELD: &str = "invoice_no";

/// The texts that a spreadsheet shows for a formula that it cannot compute.
const FORMULA_ERRORS: [&str; 9] = [
    "#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!",
];

/// The field that a column holds, and the position of the column.
struct Column {
    index: usize,
    header: String,
    field: ColumnField,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnField {
    Invoice(&'static str),
    Line(&'static str),
    /// A sum of the invoice. It is compared with the computed sum.
    Sum(&'static str),
    /// The amount of a line. It is compared with the computed amount.
    LineSum,
}

impl Column {
    fn cell<'r>(&self, row: &'r Row) -> &'r str {
        let cell = row.cells.get(self.index);
        cell.map_or("", |cell| cell.trim())
    }
}

fn find_name(names: &[&'static str], name: &str) -> Option<&'static str> {
    let mut names = names.iter().copied();
    names.find(|known| known.eq_ignore_ascii_case(name))
}

impl ColumnField {
    /// Finds a field by the name in a header, ignoring case.
    fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        let line = name
            .get(..LINE_PREFIX.len())
            .filter(|prefix| prefix.eq_ignore_ascii_case(LINE_PREFIX));
        let Some(prefix) = line else {
            let sum = find_name(&SUM_COLUMNS, name).map(Self::Sum);
            return sum.or_else(|| find_name(&INVOICE_COLUMNS, name).map(Self::Invoice));
        };
        let name = &name[prefix.len()..];
        let is_sum = name.eq_ignore_ascii_case(LINE_SUM_COLUMN);
        let field = find_name(&LINE_COLUMNS, name).map(Self::Line);
        field.or(is_sum.then_some(Self::LineSum))
    }

    fn is_numeric(self) -> bool {
        match self {
            Self::Invoice(_) => false,
            Self::Line(name) => NUMBER_COLUMNS.contains(&name),
            Self::Sum(_) | Self::LineSum => true,
        }
    }

    /// Returns the path of the field in the body, where `line` is the path of the line.
    fn path(self, line: &str) -> String {
        match self {
            Self::Invoice(name) | Self::Sum(name) => name.to_owned(),
            Self::Line(name) => format!("{line}.{name}"),
            Self::LineSum => format!("{line}.{LINE_SUM_COLUMN}"),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Invoice(name) | Self::Sum(name) => name.to_owned(),
            Self::Line(name) => format!("{LINE_PREFIX}{name}"),
            Self::LineSum => format!("{LINE_PREFIX}{LINE_SUM_COLUMN}"),
        }
    }
}

/// True if a field has this name, so that a profile can map a column to it.
pub fn is_table_field(name: &str) -> bool {
    ColumnField::parse(name).is_some()
}

/// Reads the documents of a table. `names` maps headers of the file to fields.
pub fn read(table: Table, names: &BTreeMap<String, String>) -> Result<SourceFile, Fault> {
    let FoundColumns { columns, warnings } = find_columns(&table.header, names)?;
    let headers: Vec<_> = columns
        .iter()
        .map(|column| (column.field.name(), column.header.clone()))
        .collect();
    let layout = TableLayout {
        columns: &columns,
        header: &table.header,
        word: table.word,
    };
    let mut documents: Vec<TableDocument> = Vec::new();
    let mut by_number: HashMap<&str, usize> = HashMap::new();
    let invoice_number_column = columns
        .iter()
        .find(|column| column.field == ColumnField::Invoice(NUMBER_FIELD));
    for (index, row) in table.rows.iter().enumerate() {
        if row.cells.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let number = invoice_number_column.map_or("", |column| column.cell(row));
        let known = by_number
            .get(number)
            .copied()
            .filter(|_| !number.is_empty());
        let at = known.unwrap_or(documents.len());
        if known.is_none() {
            if documents.len() == INVOICES_MAX {
                return Err(too_many_documents_fault());
            }
            by_number.insert(number, at);
            documents.push(TableDocument::default());
        }
        documents[at].add_row(&layout, index, row);
    }
    let documents = documents
        .into_iter()
        .map(|document| document.into_document(table.word, &headers))
        .collect();
    Ok(SourceFile {
        documents,
        table: Some(table),
        warnings,
    })
}

/// Returns the index of the column that holds the invoice numbers.
pub fn invoice_number_column(
    header: &[String],
    names: &BTreeMap<String, String>,
) -> Result<usize, Fault> {
    let mut columns = find_columns(header, names)?.columns.into_iter();
    let found = columns.find(|column| column.field == ColumnField::Invoice(NUMBER_FIELD));
    Ok(found.map_or(0, |column| column.index))
}

/// Returns the index and the header of each column whose cells are numbers.
pub fn numeric_columns(
    header: &[String],
    names: &BTreeMap<String, String>,
) -> Result<Vec<(usize, String)>, Fault> {
    let columns = find_columns(header, names)?.columns.into_iter();
    let numeric = columns.filter(|column| column.field.is_numeric());
    let numeric = numeric.map(|column| (column.index, column.header));
    Ok(numeric.collect())
}

/// The columns whose fields are known, and warnings that name the columns that are ignored.
struct FoundColumns {
    columns: Vec<Column>,
    warnings: Vec<String>,
}

/// Finds the field of each column. Fails if two columns hold the same field, or if none holds the invoice number.
fn find_columns(
    header: &[String],
    names: &BTreeMap<String, String>,
) -> Result<FoundColumns, Fault> {
    // A profile may have thousands of names, and each piece of a large file is read with them.
    let mut fields: HashMap<String, &str> = HashMap::new();
    for (known, field) in names {
        fields
            .entry(known.trim().to_lowercase())
            .or_insert(field.as_str());
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut unread = Vec::new();
    for (index, text) in header.iter().enumerate() {
        let text = text.trim();
        let mapped = fields.get(&text.to_lowercase()).copied();
        let Some(field) = ColumnField::parse(mapped.unwrap_or(text)) else {
            let is_known = text.is_empty()
                || text.eq_ignore_ascii_case(ERROR_COLUMN)
                || EXPORT_COLUMNS.contains(&text);
            unread.extend((!is_known).then(|| text.to_owned()));
            continue;
        };
        if let Some(other) = columns.iter().find(|column| column.field == field) {
            return Err(duplicate_column_fault(&other.header, text, &field.name()));
        }
        columns.push(Column {
            index,
            header: text.to_owned(),
            field,
        });
    }
    if !columns
        .iter()
        .any(|column| column.field == ColumnField::Invoice(NUMBER_FIELD))
    {
        let message = "The first row must name the columns, and one of them must be invoice_no; other names can be \
                       mapped in the import profile.";
        return Err(file_fault("header", message));
    }
    let shown = unread.iter().take(UNREAD_COLUMNS_SHOWN_MAX);
    let mut warnings: Vec<_> = shown
        .map(|header| format!("The column {header} is not read."))
        .collect();
    let more = unread.len().saturating_sub(UNREAD_COLUMNS_SHOWN_MAX);
    warnings.extend((more > 0).then(|| format!("{more} more columns are not read.")));
    Ok(FoundColumns { columns, warnings })
}

/// The columns of a table, and the word for its rows.
struct TableLayout<'t> {
    columns: &'t [Column],
    header: &'t [String],
    word: &'static str,
}

/// The rows of one invoice that were read so far.
#[derive(Default)]
struct TableDocument {
    body: Map<String, Value>,
    lines: Vec<Value>,
    sums: TableSums,
    /// The number of the row that first stated each field.
    stated_in: BTreeMap<&'static str, u64>,
    faults: Vec<Fault>,
    rows: Vec<usize>,
    numbers: Vec<u64>,
}

impl TableDocument {
    fn add_row(&mut self, layout: &TableLayout<'_>, index: usize, row: &Row) {
        let word = layout.word;
        let line_path = format!("invoice_lines.{}", self.lines.len());
        if let Some(stray) = row.find_stray_cell(layout.header) {
            self.add_fault(unnamed_column_fault(line_path.clone(), word, &stray));
        }
        let mut line = Map::new();
        let mut line_sum = None;
        for column in layout.columns {
            let cell = column.cell(row);
            if cell.is_empty() {
                continue;
            }
            if row.formulas.contains(&column.index) {
                self.add_fault(formula_fault(column.field.path(&line_path), "The cell"));
                continue;
            }
            if FORMULA_ERRORS.contains(&cell) {
                self.add_fault(formula_error_fault(column.field.path(&line_path), cell));
                continue;
            }
            match column.field {
                ColumnField::Invoice(name) => self.set_field(name, cell, row.number, word),
                ColumnField::Line(name) => {
                    let value = cell_value(name, cell);
                    if NUMBER_COLUMNS.contains(&name) && !value.is_number() {
                        let path = column.field.path(&line_path);
                        self.add_fault(not_a_number_fault(path, column.field, cell));
                    }
                    line.insert(name.to_owned(), value);
                }
                ColumnField::Sum(name) => self.set_sum(name, cell, row.number, word),
                ColumnField::LineSum => {
                    line_sum = read_sum(cell);
                    if line_sum.is_none() {
                        let path = column.field.path(&line_path);
                        self.add_fault(not_a_number_fault(path, column.field, cell));
                    }
                }
            }
        }
        self.sums.lines.push(line_sum);
        self.rows.push(index);
        self.numbers.push(row.number);
        self.lines.push(Value::Object(line));
    }

    /// Sets a field of the invoice. Adds a fault if an earlier row of the invoice stated another value.
    fn set_field(&mut self, name: &'static str, cell: &str, row_number: u64, row_word: &str) {
        let (object, member) = match name.split_once('.') {
            Some((object, member)) => {
                let object = self
                    .body
                    .entry(object)
                    .or_insert_with(|| Value::Object(Map::new()));
                (object.as_object_mut(), member)
            }
            None => (Some(&mut self.body), name),
        };
        let Some(object) = object else { return };
        let Some(present) = object.get(member) else {
            object.insert(member.to_owned(), Value::from(cell));
            self.stated_in.insert(name, row_number);
            return;
        };
        if present.as_str() != Some(cell) {
            self.add_contradiction_fault(name, row_number, row_word);
        }
    }

    /// Sets a stated sum of the invoice. Adds a fault if an earlier row stated another value, or if the cell is not a
    /// number.
    fn set_sum(&mut self, name: &'static str, cell: &str, row_number: u64, row_word: &str) {
        let Some(sum) = read_sum(cell) else {
            return self.add_fault(not_a_number_fault(
                name.to_owned(),
                ColumnField::Sum(name),
                cell,
            ));
        };
        match self.sums.invoice.get(name) {
            None => {
                self.sums.invoice.insert(name, sum);
                self.stated_in.insert(name, row_number);
            }
            Some(present) if *present == sum => {}
            Some(_) => self.add_contradiction_fault(name, row_number, row_word),
        }
    }

    fn add_contradiction_fault(&mut self, name: &'static str, row_number: u64, row_word: &str) {
        let first = self.stated_in.get(name).copied().unwrap_or_default();
        let message = format!(
            "The {name} of {row_word} {row_number} is not the one of {row_word} {first}, which has the same invoice_no."
        );
        self.add_fault(Fault::new(name, "same", message));
    }

    fn add_fault(&mut self, fault: Fault) {
        if self.faults.len() < ITEM_FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    fn into_document(mut self, word: &'static str, headers: &[(String, String)]) -> SourceDocument {
        self.body
            .insert("invoice_lines".to_owned(), Value::Array(self.lines));
        SourceDocument {
            body: Some(self.body),
            faults: self.faults,
            places: Places::Table {
                word,
                rows: self.numbers,
                headers: headers.to_vec(),
            },
            rows: self.rows,
            table_sums: self.sums,
            ..SourceDocument::default()
        }
    }
}

/// Returns the fault of a cell that must be a number.
fn not_a_number_fault(path: String, field: ColumnField, cell: &str) -> Fault {
    let message = format!(
        "The {} must be a number, which is written 1234.50, with a point before the decimals, without marks between \
         thousands, currency and percent sign; the cell has {}.",
        field.name(),
        shorten_cell(cell)
    );
    Fault::new(path, "type", message)
}

/// Returns the value of a cell. In a number column, it is a JSON number with the same digits if the cell is a number.
fn cell_value(name: &str, cell: &str) -> Value {
    let number = NUMBER_COLUMNS
        .contains(&name)
        .then(|| read_number(cell))
        .flatten();
    number.map_or_else(|| Value::from(cell), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::import::csv_table;

    fn table(rows: &[&[&str]]) -> Table {
        let texts = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        Table {
            word: "row",
            header: texts(rows[0]),
            rows: rows[1..]
                .iter()
                .zip(2..)
                .map(|(cells, number)| Row {
                    number,
                    cells: texts(cells),
                    ..Row::default()
                })
                .collect(),
        }
    }

    #[test]
    fn rows_of_one_number_are_one_invoice() {
        let names = BTreeMap::from([("Nr".to_owned(), "invoice_no".to_owned())]);
        let file = read(
            table(&[
                &[
                    "nr",
                    "Customer.Name",
                    "line.item_name",
                    "line.quantity",
                    "colour",
                    "error",
                    "payable_amount",
                ],
                &["A1", "Mills", "Rice", "2.50", "red", "", "9"],
                &["", "", "", "", "", "", ""],
                &["B1", "", "Oil", "two", "", "", ""],
                &["A1", "", "Salt", "1", "", "", "9"],
            ]),
            &names,
        )
        .unwrap();
        let bodies: Vec<_> = file
            .documents
            .iter()
            .map(|document| Value::from(document.body.clone().unwrap()).to_string())
            .collect();
        let first = r#"{"customer":{"name":"Mills"},"invoice_lines":[{"item_name":"Rice","quantity":2.50},{"item_name":"Salt","quantity":1}],"invoice_no":"A1"}"#;
        let second = json!({ "invoice_no": "B1", "invoice_lines": [{ "item_name": "Oil", "quantity": "two" }] });
        assert_eq!(bodies, [first.to_owned(), second.to_string()]);
        assert_eq!(file.warnings, ["The column colour is not read."]);
        assert_eq!(file.documents[0].places.document_place(), "rows 2 to 5");
        assert_eq!(file.documents[0].rows, [0, 3]);
    }

    #[test]
    fn a_header_is_found_in_the_profile_in_any_letters_also_among_thousands() {
        let field = "due_date".to_owned();
        let mut names: BTreeMap<_, _> = (0..15_000)
            .map(|number| (format!("Spalte {number}"), field.clone()))
            .collect();
        for (name, field) in [
            ("Nr", "invoice_no"),
            ("nr", "currency"),
            ("MENGE", "line.quantity"),
        ] {
            names.insert(name.to_owned(), field.to_owned());
        }
        // Without a map, comparing these takes minutes.
        let unread: Vec<String> = (0..250).map(|number| "X".repeat(3_000 + number)).collect();
        for (known, field) in [
            ("NR", ColumnField::Invoice("invoice_no")),
            (" nr ", ColumnField::Invoice("invoice_no")),
            ("Menge", ColumnField::Line("quantity")),
            ("spalte 14999", ColumnField::Invoice("due_date")),
        ] {
            let given = ["invoice_no".to_owned(), known.to_owned()];
            let number = usize::from(field == ColumnField::Invoice("invoice_no"));
            let header: Vec<_> = given[number..].iter().chain(&unread).cloned().collect();
            let FoundColumns { columns, warnings } = find_columns(&header, &names).unwrap();
            let found = columns.iter().find(|column| column.field == field);
            assert_eq!(found.unwrap().index, 1 - number, "{known}");
            assert_eq!(warnings.len(), UNREAD_COLUMNS_SHOWN_MAX + 1, "{known}");
        }
    }

    #[test]
    fn an_error_of_a_formula_is_no_value() {
        let header = [
            "invoice_no",
            "customer.name",
            "line.item_name",
            "line.quantity",
            "net_amount",
            "line.net_amount",
            "colour",
        ];
        for (at, path) in [
            (0, Some("invoice_no")),
            (1, Some("customer.name")),
            (2, Some("invoice_lines.0.item_name")),
            (3, Some("invoice_lines.0.quantity")),
            (4, Some("net_amount")),
            (5, Some("invoice_lines.0.net_amount")),
            (6, None),
        ] {
            for error in ["#N/A", "#REF!"] {
                let mut row = ["A1", "Mills", "#1 rice", "1", "9", "9", "red"];
                row[at] = error;
                let file = read(table(&[&header, &row]), &BTreeMap::new()).unwrap();
                let faults = &file.documents[0].faults;
                let found: Vec<_> = faults.iter().map(|fault| &*fault.path).collect();
                assert_eq!(found, path.as_slice(), "{error}");
                let said = faults.first().map(Fault::to_string).unwrap_or_default();
                assert_eq!(said.contains(error), path.is_some(), "{said}");
            }
        }
    }

    #[test]
    fn a_formula_of_a_text_file_is_a_fault_of_its_invoice() {
        for (row, path) in [
            ("A1,Mills,=1+1,2,red", Some("invoice_lines.0.item_name")),
            ("A1,=A2,Rice,2,red", Some("customer.name")),
            ("A1,Mills,Rice, =2*3,red", Some("invoice_lines.0.quantity")),
            ("=A9,Mills,Rice,2,red", Some("invoice_no")),
            ("A1,Mills,'=Rice,2,red", None),
            // Nothing reads the column.
            ("A1,Mills,Rice,2,=red", None),
        ] {
            let header = "invoice_no,customer.name,line.item_name,line.quantity,colour";
            let text = format!("{header}\nB1,Mills,Oil,-2,red\n{row}\n");
            let table = csv_table::read(text.as_bytes()).unwrap();
            let file = read(table, &BTreeMap::new()).unwrap();
            let [sound, document]: [SourceDocument; 2] = file.documents.try_into().unwrap();
            assert!(sound.faults.is_empty(), "{row}");
            let found: Vec<_> = document
                .faults
                .iter()
                .map(|fault| (&*fault.path, fault.rule()))
                .collect();
            let expected: Vec<_> = path.map(|path| (path, "formula")).into_iter().collect();
            assert_eq!(found, expected, "{row}");
        }
    }

    #[test]
    fn zeros_before_a_number_do_not_count() {
        for (cell, number) in [
            ("007", json!(7)),
            ("000", json!(0)),
            ("0", json!(0)),
            ("70", json!(70)),
            ("0x", json!("0x")),
            ("", json!("")),
        ] {
            assert_eq!(cell_value("quantity", cell), number, "{cell}");
            let code = cell_value("item_no", cell);
            assert_eq!(code, json!(cell));
            assert_eq!(read_sum(cell).is_some(), number.is_number(), "{cell}");
        }
        assert_eq!(cell_value("quantity", "00.50").to_string(), "0.50");
    }

    #[test]
    fn rows_that_contradict_each_other_are_a_fault() {
        let file = read(
            table(&[
                &["invoice_no", "currency", "customer.name"],
                &["A1", "NGN", "Mills"],
                &["A1", "USD", "Mills"],
            ]),
            &BTreeMap::new(),
        )
        .unwrap();
        let said: Vec<_> = file.documents[0]
            .faults
            .iter()
            .map(Fault::to_string)
            .collect();
        assert_eq!(
            said,
            ["The currency of row 3 is not the one of row 2, which has the same invoice_no."]
        );
    }

    #[test]
    fn a_header_must_be_clear() {
        let said = |header: &[&str]| {
            let read = read(table(&[header]), &BTreeMap::new());
            read.map(|_| ()).unwrap_err().to_string()
        };
        assert!(said(&["Rechnung", "Kunde"]).starts_with("The first row must name the columns"));
        assert_eq!(
            said(&["invoice_no", "INVOICE_NO"]),
            "The columns invoice_no and INVOICE_NO both hold invoice_no: leave one of them out."
        );
    }

    #[test]
    fn a_file_has_no_more_invoices_than_a_batch() {
        let numbers: Vec<_> = (0..=INVOICES_MAX)
            .map(|number| number.to_string())
            .collect();
        let mut rows = vec![vec!["invoice_no"]];
        rows.extend(numbers.iter().map(|number| vec![number.as_str()]));
        let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
        let fault = read(table(&rows), &BTreeMap::new())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(fault.rule(), "batch_too_large");
        assert!(read(table(&rows[..=INVOICES_MAX]), &BTreeMap::new()).is_ok());
    }
}
