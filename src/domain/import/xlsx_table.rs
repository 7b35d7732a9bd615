//! Reads the first visible sheet of an XLSX file as a table. Before that, the file is unpacked once without keeping the
//! contents, so that a file that unpacks to too many bytes, or whose elements would take too much memory, is refused.

use std::borrow::Cow;
use std::io::{BufReader, Cursor, Read, copy, sink};
use std::iter::Peekable;
use std::vec;

use calamine::{
    DataRef, ExcelDateTime, Reader, Sheet as SheetEntry, SheetType, SheetVisible, Style, Xlsx,
};
use rust_decimal::Decimal;
use zip::ZipArchive;

use crate::domain::import::source::file_fault;
use crate::domain::import::table::{
    COLUMNS_MAX, ROWS_MAX, Row, TABLE_BYTES_MAX, Table, WORKBOOK_WORD, check_length, shorten_cell,
};
use crate::domain::import::xlsx_formats::FormatKind;
use crate::domain::import::xlsx_parts::PartElements;
use crate::domain::kernel::fault::Fault;

/// The maximum total size of the unpacked parts of a file.
pub const UNPACKED_BYTES_MAX: u64 = 32 << 20;
/// The maximum number of parts of a file.
const PARTS_MAX: usize = 1_000;
/// The bytes with which the entry of a part begins in the directory of a ZIP archive.
const PART_MARK: &[u8] = b"PK\x01\x02";
/// The numbers of rows and columns that a sheet of XLSX can have. A cell outside of them shows that the file is
/// damaged.
const SHEET_ROWS_MAX: u32 = 1_048_576;
const SHEET_COLUMNS_MAX: u32 = 16_384;
/// The maximum number of cells of a table, including the empty ones before the last cell of each row. The limit grows
/// by one cell for every `BYTES_PER_CELL` bytes of the unpacked file, so that a large table with long rows can be read.
const CELLS_MAX: u64 = 1_000_000;
const BYTES_PER_CELL: u64 = 4;
/// The numbers that a spreadsheet can show as a date: from 1, its first day, to the end of the year 9999.
const DATE_NUMBERS: std::ops::Range<f64> = 1.0..2_958_466.0;

/// The largest whole number up to which a floating-point number has each whole number exactly.
const EXACT_WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

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
    let unpacked = unpacked_bytes(bytes)?;
    check_parts(bytes, unpacked)?;
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
    let sheets = book.sheets_metadata().to_vec();
    let first = sheets
        .iter()
        .position(is_readable)
        .ok_or_else(|| file_fault("xlsx", "The file has no visible sheet."))?;
    let name = &sheets[first].name;
    let mut formatted = FormattedNumbers::find(&mut book, name)?;
    let mut cells = book
        .worksheet_cells_reader(name)
        .map_err(|_| unreadable_fault())?;
    let mut sheet = Sheet {
        cells_left: CELLS_MAX + unpacked / BYTES_PER_CELL,
        ..Sheet::default()
    };
    while let Some(cell) = cells
        .next_cell_with_formula_metadata()
        .map_err(|_| unreadable_fault())?
    {
        let (row, column) = cell.pos;
        let has_value = !matches!(cell.value, DataRef::Empty);
        if cell.formula.is_some() && !has_value {
            return Err(uncomputed_formula_fault(row, column));
        }
        let text = formatted
            .shown_text(cell.pos, &cell.value, cells.styles())
            .map_or_else(|| cell_text(&cell.value), Cow::Owned);
        sheet.add_cell(row, column, &text)?;
    }
    Ok(ReadWorkbook {
        table: sheet.into_table(),
        warnings: unread_sheets_warning(&sheets, first).into_iter().collect(),
    })
}

fn is_readable(sheet: &SheetEntry) -> bool {
    sheet.typ == SheetType::WorkSheet && sheet.visible == SheetVisible::Visible
}

/// Returns a warning that names the sheets that are not read; `None` if there is only one sheet.
fn unread_sheets_warning(sheets: &[SheetEntry], read: usize) -> Option<String> {
    let others = sheets.iter().enumerate().filter(|(at, _)| *at != read);
    let names: Vec<_> = others
        .map(|(_, sheet)| match sheet.visible {
            SheetVisible::Visible => shorten_cell(&sheet.name),
            SheetVisible::Hidden | SheetVisible::VeryHidden => {
                format!("{} (hidden)", shorten_cell(&sheet.name))
            }
        })
        .collect();
    let shown = names[..names.len().min(SHEETS_SHOWN_MAX)].join(", ");
    let more = match names.len().saturating_sub(SHEETS_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let read = shorten_cell(&sheets[read].name);
    (!names.is_empty())
        .then(|| format!("Only the sheet {read} is read, not these sheets: {shown}{more}."))
}

/// Returns the fault of a formula without a stored value, because this service does not compute formulas.
fn uncomputed_formula_fault(row: u32, column: u32) -> Fault {
    let message = format!(
        "Row {}, column {}: the file has no value of the formula; open it in a spreadsheet and save it.",
        u64::from(row) + 1,
        column_name(column)
    );
    file_fault("formula", message)
}

/// Returns the total size of the unpacked parts, as the file states it.
pub fn unpacked_bytes(bytes: &[u8]) -> Result<u64, Fault> {
    // The parts are counted before the directory is read, because reading it takes hundreds of bytes of memory for each
    // part.
    let marks = bytes.windows(PART_MARK.len());
    if marks.filter(|mark| *mark == PART_MARK).count() > PARTS_MAX {
        let message = format!("The file has more than {PARTS_MAX} parts.");
        return Err(file_fault("max", message));
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
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

/// Unpacks every part and counts the bytes, because the sizes that the file states may be false. Also checks the memory
/// that the elements would take.
fn check_parts(bytes: &[u8], stated: u64) -> Result<(), Fault> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| unreadable_fault())?;
    let mut elements = PartElements::default();
    let mut left = stated;
    for index in 0..archive.len() {
        let part = archive.by_index(index).map_err(|_| unreadable_fault())?;
        let most = left + 1;
        let mut part = BufReader::new(part.take(most));
        elements.count_elements(&mut part);
        copy(&mut part, &mut sink()).map_err(|_| unreadable_fault())?;
        let size = most - part.get_ref().limit();
        left = left.checked_sub(size).ok_or_else(too_large_fault)?;
    }
    elements.check_memory()
}

/// The numbers of a sheet that are shown in another way than as a plain number, such as a percentage.
struct FormattedNumbers {
    /// The kinds of the formats, by the index of the style.
    kinds: Vec<FormatKind>,
    /// The row, the column and the style of each number, in the order of the sheet.
    places: Peekable<vec::IntoIter<(u32, u32, u32)>>,
}

impl FormattedNumbers {
    fn find(book: &mut Xlsx<Cursor<&[u8]>>, sheet: &str) -> Result<Self, Fault> {
        let mut cells = book
            .worksheet_cells_reader(sheet)
            .map_err(|_| unreadable_fault())?;
        let kinds: Vec<_> = cells
            .styles()
            .iter()
            .map(|style| FormatKind::from_format(format_code(style)))
            .collect();
        let is_formatted = |kind: &FormatKind| *kind != FormatKind::Plain;
        let has_formats = kinds.iter().any(is_formatted);
        let mut places = Vec::new();
        while has_formats
            && let Some((cell, style)) = cells
                .next_cell_with_style_id()
                .map_err(|_| unreadable_fault())?
        {
            let is_number = matches!(cell.get_value(), DataRef::Float(_));
            if is_number && kinds.get(style).is_some_and(is_formatted) {
                let (row, column) = cell.get_position();
                places.push((row, column, u32::try_from(style).unwrap_or(u32::MAX)));
            }
        }
        Ok(Self {
            kinds,
            places: places.into_iter().peekable(),
        })
    }

    /// Returns the text of the number at `place`; `None` if the sheet shows the number alone. The caller must ask for
    /// the places in the order of the sheet.
    fn shown_text(
        &mut self,
        place: (u32, u32),
        value: &DataRef<'_>,
        styles: &[Style],
    ) -> Option<String> {
        let (_, _, style) = self
            .places
            .next_if(|(row, column, _)| (*row, *column) == place)?;
        let style = usize::try_from(style).ok()?;
        let DataRef::Float(number) = value else {
            return None;
        };
        let kind = self.kinds.get(style)?;
        kind.formatted_text(shown_number(*number)?, format_code(styles.get(style)?))
    }
}

fn format_code(style: &Style) -> &str {
    let format = style.number_format.as_ref();
    format.map_or("", |format| format.format_code.as_str())
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
    /// The number of cells that may still be added. Empty cells before a cell with a value count, too.
    cells_left: u64,
}

impl Sheet {
    /// Adds a cell. Row and column are counted from 0. The cells of a sheet come row by row.
    fn add_cell(&mut self, row: u32, column: u32, text: &str) -> Result<(), Fault> {
        if row >= SHEET_ROWS_MAX || column >= SHEET_COLUMNS_MAX {
            return Err(unreadable_fault());
        }
        if text.is_empty() {
            return Ok(());
        }
        let number = u64::from(row) + 1;
        // Blanks count, too: many cells may share one long text of them.
        let place = format!("Row {number}, column {}", column_name(column));
        check_length(&place, text)?;
        self.bytes += text.len();
        if self.bytes > TABLE_BYTES_MAX {
            let message = format!("The cells of the sheet have more than {TABLE_BYTES_MAX} bytes.");
            return Err(file_fault("max", message));
        }
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        if column >= COLUMNS_MAX {
            let message = format!("Row {number} has more than {COLUMNS_MAX} columns.");
            return Err(file_fault("max", message));
        }
        if self.rows.last().is_none_or(|last| last.number != number) {
            self.start_row(number)?;
        }
        self.set_cell(column, text)
    }

    fn start_row(&mut self, number: u64) -> Result<(), Fault> {
        if self.rows.last().is_some_and(|last| last.number > number) {
            return Err(unreadable_fault());
        }
        if self.rows.len() > ROWS_MAX {
            let message = format!("The sheet has more than {ROWS_MAX} rows.");
            return Err(file_fault("max", message));
        }
        self.rows.push(Row {
            number,
            ..Row::default()
        });
        Ok(())
    }

    /// Sets a cell of the last row, and adds the empty cells before it. Fails if the sheet then has too many cells.
    fn set_cell(&mut self, column: usize, text: &str) -> Result<(), Fault> {
        let Some(last) = self.rows.last_mut() else {
            return Ok(());
        };
        let missing = (column + 1).saturating_sub(last.cells.len());
        let missing = u64::try_from(missing).unwrap_or(u64::MAX);
        self.cells_left = self.cells_left.checked_sub(missing).ok_or_else(|| {
            let message = "The rows of the sheet have too many empty cells: put the columns with values together.";
            file_fault("max", message)
        })?;
        if last.cells.len() <= column {
            last.cells.resize(column + 1, String::new());
        }
        text.clone_into(&mut last.cells[column]);
        Ok(())
    }

    fn into_table(self) -> Table {
        let mut rows = self.rows.into_iter();
        Table {
            word: WORKBOOK_WORD,
            header: rows.next().map(|row| row.cells).unwrap_or_default(),
            rows: rows.collect(),
        }
    }
}

/// Returns the text of a cell as a spreadsheet shows it, a date as YYYY-MM-DD.
fn cell_text<'a>(value: &'a DataRef<'_>) -> Cow<'a, str> {
    match value {
        DataRef::Empty => Cow::Borrowed(""),
        DataRef::String(text) | DataRef::DurationIso(text) => Cow::Borrowed(text),
        DataRef::DateTimeIso(text) => {
            Cow::Borrowed(text.split_once('T').map_or(text.as_str(), |(day, _)| day))
        }
        DataRef::SharedString(text) => Cow::from(*text),
        DataRef::Int(number) => Cow::Owned(number.to_string()),
        DataRef::Float(number) => Cow::Owned(number_text(*number)),
        DataRef::Bool(value) => Cow::Owned(value.to_string()),
        DataRef::DateTime(time) => Cow::Owned(day_text(time)),
        DataRef::Error(error) => Cow::Owned(error.to_string()),
    }
}

/// Returns a number with 15 digits, as a spreadsheet shows it, or a whole number with all of its digits. The further
/// digits of a floating-point result such as 1.1 × 1.1 are not exact.
fn number_text(number: f64) -> String {
    shown_number(number).map_or_else(|| number.to_string(), |shown| shown.normalize().to_string())
}

/// Returns the first 15 digits of a number, or all of a whole number that is exact; `None` if it is too large.
fn shown_number(number: f64) -> Option<Decimal> {
    if number.fract() == 0.0 && number.abs() <= EXACT_WHOLE_MAX {
        return format!("{number:.0}").parse().ok();
    }
    Decimal::from_scientific(&format!("{number:.14e}")).ok()
}

/// Returns the day of a date as YYYY-MM-DD, and a duration as a number. Also returns as a number what is not a date
/// although its cell has the format of one: the 0 of a formula that refers to an empty cell, or a day typed as
/// 20260115.
fn day_text(time: &ExcelDateTime) -> String {
    if !time.is_datetime() || !DATE_NUMBERS.contains(&time.as_f64()) {
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
        workbook_with("", sheets)
    }

    /// Returns an XLSX file with this element for its properties.
    fn workbook_with(properties: &str, sheets: &[(&str, &str, &str)]) -> Vec<u8> {
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
                    "<styleSheet xmlns=\"{main}\"><numFmts><numFmt numFmtId=\"164\" formatCode=\"0.0&quot;%&quot;\"/><numFmt numFmtId=\"165\" formatCode=\"0.0_%\"/><numFmt numFmtId=\"166\" formatCode=\"00000000\\-0000\"/></numFmts><cellXfs count=\"6\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"10\"/><xf numFmtId=\"164\"/><xf numFmtId=\"165\"/><xf numFmtId=\"166\"/></cellXfs></styleSheet>"
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
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\">{properties}<sheets>{}</sheets></workbook>",
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
            (1_234_567_890_123_456.0, "1234567890123456"),
            (-9_007_199_254_740_992.0, "-9007199254740992"),
            (1_234_567_890_123.455, "1234567890123.46"),
            (-0.0, "0"),
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
    fn a_percentage_keeps_its_sign_and_a_day_in_iso_its_day() {
        for (cell, text) in [
            ("s=\"2\"><v>0.075</v>", "7.5%"),
            ("s=\"2\"><f>1/10</f><v>0.1</v>", "10%"),
            ("s=\"2\" t=\"str\"><v>x</v>", "x"),
            // The percent signs of these formats are only a text and a gap.
            ("s=\"3\"><v>7.5</v>", "7.5"),
            ("s=\"4\"><v>7.5</v>", "7.5"),
            ("s=\"0\"><v>0.075</v>", "0.075"),
            ("s=\"5\"><v>12345670001</v>", "01234567-0001"),
            ("s=\"5\" t=\"str\"><v>12345670001</v>", "12345670001"),
            ("s=\"1\" t=\"d\"><v>2026-01-15T00:00:00</v>", "2026-01-15"),
            ("t=\"d\"><v>2026-01-15</v>", "2026-01-15"),
            ("s=\"1\"><v>46037.999</v>", "2026-01-15"),
            ("s=\"1\"><v>2958465</v>", "9999-12-31"),
            // These numbers are no dates, although their cells have the format of dates.
            ("s=\"1\"><v>20260115</v>", "20260115"),
            ("s=\"1\"><v>0</v>", "0"),
            ("s=\"1\"><v>0.5</v>", "0.5"),
            ("s=\"1\"><v>-1</v>", "-1"),
        ] {
            let data = format!("<row r=\"1\"><c r=\"A1\"><v>1</v></c><c r=\"B1\" {cell}</c></row>");
            let header = read(&workbook(&data)).unwrap().table.header;
            assert_eq!(header, ["1", text], "{cell}");
        }
    }

    #[test]
    fn days_are_counted_from_the_year_that_the_file_states() {
        for (properties, number) in [
            ("", 46_037),
            ("<workbookPr date1904=\"0\"/>", 46_037),
            ("<workbookPr date1904=\"1\"/>", 44_575),
            ("<workbookPr date1904=\"true\"/>", 44_575),
        ] {
            let data = format!("<row r=\"1\"><c r=\"A1\" s=\"1\"><v>{number}</v></c></row>");
            let book = workbook_with(properties, &[("S", "visible", &data)]);
            let header = read(&book).unwrap().table.header;
            assert_eq!(header, ["2026-01-15"], "{properties}");
        }
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
        let many = PART_MARK.repeat(PARTS_MAX + 1);
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
            (&many, "The file has more than 1000 parts."),
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

    /// Returns an XLSX file with this text as its shared strings.
    fn workbook_with_strings(sheet_data: &str, strings: &str) -> Vec<u8> {
        let mut zip = ZipWriter::new_append(Cursor::new(workbook(sheet_data))).unwrap();
        zip.start_file("xl/sharedStrings.xml", SimpleFileOptions::default())
            .unwrap();
        zip.write_all(strings.as_bytes()).unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn a_small_file_does_not_take_much_memory_or_time() {
        let row = |row: u32| format!("<row r=\"{row}\"><c r=\"IV{row}\"><v>1</v></c></row>");
        let far: Vec<_> = (1..=20_000).map(row).collect();
        let shared = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c></row>";
        let blanks = format!(
            "<sst><si><t xml:space=\"preserve\">{}</t></si></sst>",
            " ".repeat(5_000)
        );
        let reserved = "<sst uniqueCount=\"99999999999\"><si><t>x</t></si></sst>";
        for (file, said) in [
            (
                workbook(&far.concat()),
                "The rows of the sheet have too many empty cells: put the columns with values together.",
            ),
            (
                workbook_with_strings(shared, &blanks),
                "Row 1, column A: the cell has more than 4000 characters.",
            ),
            (
                workbook_with_strings(shared, reserved),
                "The file has too many or too long styles, sheets or shared strings.",
            ),
        ] {
            assert_eq!(read(&file).unwrap_err().to_string(), said);
        }
        let honest = workbook_with_strings(shared, &reserved.replace("99999999999", "1"));
        assert_eq!(read(&honest).unwrap().table.header, ["x"]);
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
