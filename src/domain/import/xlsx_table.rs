//! Reads the first visible sheet of an XLSX file as a table. Before that, the file is unpacked once without keeping the
//! contents, so that a file that unpacks to too many bytes is refused.

use std::io::{Cursor, Read, copy, sink};

use calamine::{
    DataRef, ExcelDateTime, Reader, Sheet as SheetEntry, SheetType, SheetVisible, Xlsx,
};
use rust_decimal::Decimal;
use zip::ZipArchive;

use crate::domain::import::source::file_fault;
use crate::domain::import::table::{
    COLUMNS_MAX, ROWS_MAX, Row, TABLE_BYTES_MAX, Table, check_length,
};
use crate::domain::kernel::fault::Fault;

/// The maximum total size of the unpacked parts of a file.
pub const UNPACKED_BYTES_MAX: u64 = 32 << 20;
/// The maximum number of parts of a file.
const PARTS_MAX: usize = 1_000;
/// The numbers of rows and columns that a sheet of XLSX can have. A cell outside of them shows that the file is
/// damaged.
const SHEET_ROWS_MAX: u32 = 1_048_576;
const SHEET_COLUMNS_MAX: u32 = 16_384;

/// The maximum number of sheets that a warning names.
const SHEETS_SHOWN_MAX: usize = 20;

/// The sheet that was read, and a warning about the other sheets.
#[derive(Debug)]
pub struct ReadWorkbook {
    pub table: Table,
    pub warnings: Vec<String>,
}

/// Reads the first visible sheet. A formula is read as the value that the file stores for it. Any other cell is read as
/// it is shown, even if its text looks like a formula.
pub fn read(bytes: &[u8]) -> Result<ReadWorkbook, Fault> {
    check_unpacked_size(bytes, unpacked_bytes(bytes)?)?;
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
    let sheets = book.sheets_metadata().to_vec();
    let first = sheets
        .iter()
        .position(is_readable)
        .ok_or_else(|| file_fault("xlsx", "The file has no visible sheet."))?;
    let mut cells = book
        .worksheet_cells_reader(&sheets[first].name)
        .map_err(|_| unreadable_fault())?;
    let mut sheet = Sheet::default();
    while let Some(cell) = cells
        .next_cell_with_formula_metadata()
        .map_err(|_| unreadable_fault())?
    {
        let (row, column) = cell.pos;
        let has_value = !matches!(cell.value, DataRef::Empty);
        if cell.formula.is_some() && !has_value {
            return Err(uncomputed_fault(row, column));
        }
        sheet.add(row, column, &cell.value)?;
    }
    Ok(ReadWorkbook {
        table: sheet.into_table(),
        warnings: unread_warning(&sheets, first).into_iter().collect(),
    })
}

fn is_readable(sheet: &SheetEntry) -> bool {
    sheet.typ == SheetType::WorkSheet && sheet.visible == SheetVisible::Visible
}

/// Returns a warning that names the sheets that are not read; `None` if there is only one sheet.
fn unread_warning(sheets: &[SheetEntry], read: usize) -> Option<String> {
    let others = sheets.iter().enumerate().filter(|(at, _)| *at != read);
    let names: Vec<_> = others
        .map(|(_, sheet)| match sheet.visible {
            SheetVisible::Visible => sheet.name.clone(),
            SheetVisible::Hidden | SheetVisible::VeryHidden => format!("{} (hidden)", sheet.name),
        })
        .collect();
    let shown = names[..names.len().min(SHEETS_SHOWN_MAX)].join(", ");
    let more = match names.len().saturating_sub(SHEETS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let read = &sheets[read].name;
    (!names.is_empty())
        .then(|| format!("Only the sheet {read} is read, not these sheets: {shown}{more}."))
}

/// Returns the fault of a formula without a stored value, because this service does not compute formulas.
fn uncomputed_fault(row: u32, column: u32) -> Fault {
    let message = format!(
        "Row {}, column {}: the file has no value of the formula; open it in a spreadsheet and save it.",
        u64::from(row) + 1,
        column_name(column)
    );
    file_fault("formula", message)
}

/// Returns the total size of the unpacked parts, as the file states it.
pub fn unpacked_bytes(bytes: &[u8]) -> Result<u64, Fault> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
    if archive.len() > PARTS_MAX {
        let message = format!("The file has more than {PARTS_MAX} parts.");
        return Err(file_fault("max", message));
    }
    let mut sum: u64 = 0;
    for index in 0..archive.len() {
        let part = archive
            .by_index_raw(index)
            .map_err(|_| unreadable_fault())?;
        sum = sum.saturating_add(part.size());
    }
    if sum > UNPACKED_BYTES_MAX {
        return Err(too_large_fault());
    }
    Ok(sum)
}

/// Unpacks every part and counts the bytes, because the sizes that the file states may be false.
fn check_unpacked_size(bytes: &[u8], stated: u64) -> Result<(), Fault> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
    let mut left = stated;
    for index in 0..archive.len() {
        let part = archive.by_index(index).map_err(|_| unreadable_fault())?;
        let size = copy(&mut part.take(left + 1), &mut sink()).map_err(|_| unreadable_fault())?;
        left = left.checked_sub(size).ok_or_else(too_large_fault)?;
    }
    Ok(())
}

fn too_large_fault() -> Fault {
    let message = format!(
        "The file unpacks to more than {UNPACKED_BYTES_MAX} bytes, or to more than it states."
    );
    file_fault("max", message)
}

fn unreadable_fault() -> Fault {
    file_fault("xlsx", "The file is not an XLSX file that can be read.")
}

#[derive(Default)]
struct Sheet {
    rows: Vec<Row>,
    bytes: usize,
}

impl Sheet {
    /// Adds a cell. Row and column are counted from 0. The cells of a sheet come row by row.
    fn add(&mut self, row: u32, column: u32, value: &DataRef<'_>) -> Result<(), Fault> {
        if row >= SHEET_ROWS_MAX || column >= SHEET_COLUMNS_MAX {
            return Err(unreadable_fault());
        }
        let number = u64::from(row) + 1;
        let text = cell_text(value);
        if text.is_empty() {
            return Ok(());
        }
        let place = format!("Row {number}, column {}", column_name(column));
        check_length(&place, &text)?;
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        if column >= COLUMNS_MAX {
            let message = format!("Row {number} has more than {COLUMNS_MAX} columns.");
            return Err(file_fault("max", message));
        }
        if self.rows.last().is_none_or(|last| last.number != number) {
            if self.rows.last().is_some_and(|last| last.number > number) {
                return Err(unreadable_fault());
            }
            if self.rows.len() > ROWS_MAX {
                let message = format!("The sheet has more than {ROWS_MAX} rows.");
                return Err(file_fault("max", message));
            }
            self.rows.push(Row {
                number,
                cells: Vec::new(),
            });
        }
        self.bytes += text.len();
        if self.bytes > TABLE_BYTES_MAX {
            let message = format!("The cells of the sheet have more than {TABLE_BYTES_MAX} bytes.");
            return Err(file_fault("max", message));
        }
        if let Some(last) = self.rows.last_mut() {
            if last.cells.len() <= column {
                last.cells.resize(column + 1, String::new());
            }
            last.cells[column] = text;
        }
        Ok(())
    }

    fn into_table(self) -> Table {
        let mut rows = self.rows.into_iter();
        Table {
            word: "row",
            header: rows.next().map(|row| row.cells).unwrap_or_default(),
            rows: rows.collect(),
        }
    }
}

/// Returns the text of a cell as a spreadsheet shows it, a date as YYYY-MM-DD.
fn cell_text(value: &DataRef<'_>) -> String {
    match value {
        DataRef::Empty => String::new(),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            text.trim().to_owned()
        }
        DataRef::SharedString(text) => text.trim().to_owned(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number_text(*number),
        DataRef::Bool(value) => value.to_string(),
        DataRef::DateTime(time) => day_text(time),
        DataRef::Error(error) => error.to_string(),
    }
}

/// Returns a number with 15 digits, as a spreadsheet shows it. The further digits of a floating-point result such as
/// 1.1 × 1.1 are not exact.
fn number_text(number: f64) -> String {
    let shown = Decimal::from_scientific(&format!("{number:.14e}"));
    shown.map_or_else(
        |_| number.to_string(),
        |shown| shown.normalize().to_string(),
    )
}

/// Returns the day of a date as YYYY-MM-DD, and a duration as a number.
fn day_text(time: &ExcelDateTime) -> String {
    if !time.is_datetime() {
        return number_text(time.as_f64());
    }
    let (year, month, day, ..) = time.to_ymd_hms_milli();
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the letters by which a sheet names a column: A, B, …, Z, AA.
fn column_name(column: u32) -> String {
    let mut left = column + 1;
    let mut letters = Vec::new();
    while left > 0 {
        left -= 1;
        letters.push(char::from(
            b'A' + u8::try_from(left % 26).unwrap_or_default(),
        ));
        left /= 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// Returns an XLSX file whose only sheet has these rows.
    fn workbook(sheet_data: &str) -> Vec<u8> {
        workbook_of(&[("S", "visible", sheet_data)])
    }

    /// Returns an XLSX file with sheets of these names, states and rows.
    fn workbook_of(sheets: &[(&str, &str, &str)]) -> Vec<u8> {
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let relations = "http://schemas.openxmlformats.org/package/2006/relationships";
        let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let mut entries = Vec::new();
        let styles =
            format!("<Relationship Id=\"s\" Type=\"{office}/styles\" Target=\"styles.xml\"/>");
        let mut targets = vec![styles];
        let mut parts = vec![
            (
                "_rels/.rels".to_owned(),
                format!(
                    "<Relationships xmlns=\"{relations}\"><Relationship Id=\"r1\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
                ),
            ),
            (
                "xl/styles.xml".to_owned(),
                format!(
                    "<styleSheet xmlns=\"{main}\"><cellXfs count=\"2\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
                ),
            ),
        ];
        for ((name, state, data), number) in sheets.iter().zip(1..) {
            entries.push(format!(
                "<sheet name=\"{name}\" sheetId=\"{number}\" state=\"{state}\" r:id=\"r{number}\"/>"
            ));
            targets.push(format!(
                "<Relationship Id=\"r{number}\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
            ));
            parts.push((
                format!("xl/worksheets/sheet{number}.xml"),
                format!("<worksheet xmlns=\"{main}\"><sheetData>{data}</sheetData></worksheet>"),
            ));
        }
        parts.push((
            "xl/workbook.xml".to_owned(),
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets>{}</sheets></workbook>",
                entries.concat()
            ),
        ));
        parts.push((
            "xl/_rels/workbook.xml.rels".to_owned(),
            format!(
                "<Relationships xmlns=\"{relations}\">{}</Relationships>",
                targets.concat()
            ),
        ));
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in parts {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn text_cell(place: &str, text: &str) -> String {
        format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
    }

    #[test]
    fn a_number_is_what_a_spreadsheet_shows() {
        for (number, text) in [
            (1.21, "1.21"),
            (1.210_000_000_000_000_2, "1.21"),
            (0.300_000_000_000_000_04, "0.3"),
            (-1_075.5, "-1075.5"),
            (0.0, "0"),
            (8_471.3, "8471.3"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.000_001, "0.000001"),
            (1e40, "10000000000000000000000000000000000000000"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }

    #[test]
    fn numbers_and_dates_become_texts() {
        let header = text_cell("A1", "invoice_no") + &text_cell("C1", "invoice_date");
        let data = format!(
            "<row r=\"1\">{header}</row><row r=\"3\"><c r=\"A3\"><v>0.1</v></c><c r=\"B3\"><f>1+2</f><v>3</v></c>\
             <c r=\"C3\" s=\"1\"><v>46037</v></c></row>"
        );
        let table = read(&workbook(&data)).unwrap().table;
        assert_eq!(table.header, ["invoice_no", "", "invoice_date"]);
        assert_eq!(table.rows[0].number, 3);
        assert_eq!(table.rows[0].cells, ["0.1", "3", "2026-01-15"]);
    }

    #[test]
    fn a_text_is_a_text_and_only_a_formula_is_a_formula() {
        let texts = ["=1+1", "+234", "-5", "@x", "'-5", "'", "''=x"];
        let cells = texts.iter().zip("ABCDEFG".chars());
        let cells: String = cells
            .map(|(text, column)| text_cell(&format!("{column}1"), text))
            .collect();
        let empty = "<c r=\"H1\" t=\"str\"><f>IF(A1=1,2,\"\")</f><v></v></c>";
        let data = format!("<row r=\"1\">{cells}{empty}</row>");
        assert_eq!(read(&workbook(&data)).unwrap().table.header, texts);
    }

    #[test]
    fn the_first_visible_sheet_is_read_and_the_others_are_named() {
        let row = |text: &str| format!("<row r=\"1\">{}</row>", text_cell("A1", text));
        let rows = ["one", "two", "three"].map(row);
        for (states, expected, warned) in [
            (
                ["visible", "visible", "hidden"],
                "one",
                "Only the sheet S1 is read, not these sheets: S2, S3 (hidden).",
            ),
            (
                ["hidden", "visible", "visible"],
                "two",
                "Only the sheet S2 is read, not these sheets: S1 (hidden), S3.",
            ),
            (
                ["veryHidden", "hidden", "visible"],
                "three",
                "Only the sheet S3 is read, not these sheets: S1 (hidden), S2 (hidden).",
            ),
        ] {
            let names = ["S1", "S2", "S3"];
            let sheets = [0, 1, 2].map(|at| (names[at], states[at], &*rows[at]));
            let book = read(&workbook_of(&sheets)).unwrap();
            assert_eq!(
                (&*book.table.header[0], &*book.warnings[0]),
                (expected, warned)
            );
        }
        assert_eq!(read(&workbook(&rows[0])).unwrap().warnings, [""; 0]);
        let hidden = workbook_of(&[("S", "hidden", &rows[0])]);
        let said = read(&hidden).unwrap_err().to_string();
        assert_eq!(said, "The file has no visible sheet.");
    }

    #[test]
    fn hostile_files_are_refused() {
        let far = workbook("<row r=\"1\"><c r=\"XFD1\"><v>1</v></c></row>");
        let farther = workbook("<row r=\"1\"><c r=\"A4294967295\"><v>1</v></c></row>");
        let below = workbook("<row r=\"1\"><c r=\"A1048577\"><v>1</v></c></row>");
        let beside = workbook("<row r=\"1\"><c r=\"XFE1\"><v>1</v></c></row>");
        let formula = workbook("<row r=\"1\"><c r=\"B1\"><f>1+2</f></c></row>");
        let backwards = workbook(&format!(
            "<row r=\"2\">{}</row><row r=\"1\">{}</row>",
            text_cell("A2", "x"),
            text_cell("A1", "y")
        ));
        for (file, said) in [
            (&far[..], "Row 1 has more than 256 columns."),
            (
                &formula,
                "Row 1, column B: the file has no value of the formula; open it in a spreadsheet and save it.",
            ),
            (&backwards, "The file is not an XLSX file that can be read."),
            (&farther, "The file is not an XLSX file that can be read."),
            (&below, "The file is not an XLSX file that can be read."),
            (&beside, "The file is not an XLSX file that can be read."),
            (
                b"PK\x03\x04",
                "The file is not an XLSX file that can be read.",
            ),
            (b"", "The file is not an XLSX file that can be read."),
        ] {
            assert_eq!(read(file).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn a_file_that_unpacks_to_too_much_is_refused() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("xl/workbook.xml", SimpleFileOptions::default())
            .unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..=UNPACKED_BYTES_MAX >> 20 {
            zip.write_all(&zeros).unwrap();
        }
        let bomb = zip.finish().unwrap().into_inner();
        assert!(bomb.len() < 200_000);
        assert_eq!(
            read(&bomb).unwrap_err().to_string(),
            "The file unpacks to more than 33554432 bytes, or to more than it states."
        );
    }

    #[test]
    fn columns_have_letters() {
        for (column, name) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(column_name(column), name);
        }
    }
}
