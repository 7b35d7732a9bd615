//! A table that was read from a file: a header and rows of cells, of limited size.

use crate::domain::kernel::fault::Fault;

/// The maximum number of columns of a table.
pub const COLUMNS_MAX: usize = 256;
/// The maximum number of rows of a table, without its header.
pub const ROWS_MAX: usize = 100_000;
/// The maximum length of a cell, in characters.
pub const CELL_CHARS_MAX: usize = 4_000;
/// The maximum length of all cells together, in bytes.
pub const TABLE_BYTES_MAX: usize = 32 << 20;
/// The maximum number of characters of a cell that a fault shows.
const CELL_CHARS_SHOWN_MAX: usize = 60;
/// The column that the error file adds. An import does not read it.
pub const ERROR_COLUMN: &str = "error";

/// The word for a row of a workbook.
pub const WORKBOOK_WORD: &str = "row";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The word for a row in messages: `row` for a sheet, `line` for a text.
    pub word: &'static str,
    pub header: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The number of the row or line, as a spreadsheet or an editor shows it.
    pub number: u64,
    pub cells: Vec<String>,
    /// The indexes of the cells of a text file that hold formulas: only the spreadsheet that wrote the file knows their
    /// values.
    pub formulas: Vec<usize>,
}

impl Row {
    /// Returns the first cell that has a value although its column has no name in this header.
    pub fn find_stray_cell(&self, header: &[String]) -> Option<StrayCell<'_>> {
        let mut cells = (1..).zip(self.cells.iter().map(|cell| cell.trim()));
        let found = cells.find(|(column, cell)| {
            let name = header.get(column - 1);
            !cell.is_empty() && name.is_none_or(|name| name.trim().is_empty())
        });
        found.map(|(column, text)| StrayCell { column, text })
    }
}

/// A cell with a value in a column without a name.
pub struct StrayCell<'a> {
    /// The number of the column, counted from 1.
    pub column: usize,
    pub text: &'a str,
}

/// Returns the fault of a cell with a value in a column without a name. The cells of its row may be shifted, so that
/// each stands in the column of another field.
pub fn unnamed_column_fault(path: String, row_word: &str, stray: &StrayCell<'_>) -> Fault {
    let why = if row_word == "line" {
        "the usual reason is a comma without quotes in a cell before it, as in a decimal 1234,50, which is written 1234.50"
    } else {
        "name the column there, or empty the cell"
    };
    let message = format!(
        "Cell {} of the {row_word}, {}, stands under no name of the first row: {why}.",
        stray.column,
        shorten_cell(stray.text)
    );
    Fault::new(path, "columns", message)
}

/// Returns the fault of two columns that hold the same field.
pub fn duplicate_column_fault(first: &str, second: &str, field: &str) -> Fault {
    let message =
        format!("The columns {first} and {second} both hold {field}: leave one of them out.");
    Fault::new("file", "duplicate", message)
}

/// Returns the beginning of a cell, for the message of a fault.
pub fn shorten_cell(cell: &str) -> String {
    cell.chars().take(CELL_CHARS_SHOWN_MAX).collect()
}

/// Refuses a cell that is too long.
pub fn check_length(place: &str, cell: &str) -> Result<(), Fault> {
    if cell.len() > CELL_CHARS_MAX && cell.chars().count() > CELL_CHARS_MAX {
        let message = format!("{place}: the cell has more than {CELL_CHARS_MAX} characters.");
        return Err(Fault::new("file", "max", message));
    }
    Ok(())
}

/// True if a cell of a text file holds a formula. In an error file of this service, an apostrophe and a blank stand
/// before it: no spreadsheet computes it, and it is refused again until somebody has corrected it.
pub fn is_formula(cell: &str) -> bool {
    let formula = cell.strip_prefix("' ").unwrap_or(cell);
    formula.trim_start().starts_with('=')
}

/// Returns the fault of a cell with a formula, of the field or the file at `path`. `cell` names the cell at the beginning
/// of the sentence.
pub fn formula_fault(path: String, cell: &str) -> Fault {
    let message = format!(
        "{cell} holds a formula; write its value instead, or an apostrophe before a text that begins so."
    );
    Fault::new(path, "formula", message)
}

/// Returns the fault of a cell with a formula that could not be computed.
pub fn formula_error_fault(path: String, cell: &str) -> Fault {
    let message = format!(
        "The cell holds the error {cell} of a formula and no value: correct the formula, or write the value."
    );
    Fault::new(path, "formula", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_known_and_long_cells_are_refused() {
        for (cell, is_one) in [
            (" =1+1", true),
            ("=", true),
            ("' =1", true),
            ("-5", false),
            ("'=1", false),
            ("'' =1", false),
            ("' -1", false),
            ("a;=1", false),
        ] {
            assert_eq!(is_formula(cell), is_one, "{cell}");
        }
        assert!(check_length("row 2", &"ä".repeat(CELL_CHARS_MAX)).is_ok());
        assert!(check_length("row 2", &"ä".repeat(CELL_CHARS_MAX + 1)).is_err());
    }
}
