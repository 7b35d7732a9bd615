//! CSV as a table (RFC 4180): in UTF-8, with commas, semicolons or tabs between the cells.

use std::borrow::Cow;
use std::ops::Range;

use csv::{ByteRecord, QuoteStyle, Reader, ReaderBuilder, WriterBuilder};

use crate::domain::import::source::file_fault;
use crate::domain::import::table::{
    COLUMNS_MAX, ROWS_MAX, Row, Table, check_length, formula_fault, is_formula,
};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::formula_mark::{mark, unmark};

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Reads a table. The number of a row is the number of the line in which it begins.
pub fn read(bytes: &[u8]) -> Result<Table, Fault> {
    read_piece(bytes, "line", 0)
}

/// Reads a piece of a table that has `lines_before` lines before it in the file. `row_word` is the word for a row in
/// messages.
pub fn read_piece(bytes: &[u8], row_word: &'static str, lines_before: u64) -> Result<Table, Fault> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = 1 + count_byte(&bytes[..error.valid_up_to()], b'\n');
        let message = format!("Line {line} is not UTF-8: save the file as CSV UTF-8.");
        return Err(file_fault("encoding", message));
    }
    let mut records = CsvRecords::new(bytes);
    let mut table = Table {
        word: row_word,
        ..Table::default()
    };
    let mut is_header = true;
    while let Some(record) = records.read_next()? {
        let number = record.line + lines_before;
        if std::mem::take(&mut is_header) {
            table.header = record.header_cells(number)?;
            continue;
        }
        let row = record.to_row(number)?;
        if table.rows.len() == ROWS_MAX {
            let message = format!("The file has more than {ROWS_MAX} lines.");
            return Err(file_fault("max", message));
        }
        table.rows.push(row);
    }
    Ok(table)
}

/// Reads the records of a text one by one.
pub struct CsvRecords<'b> {
    reader: Reader<&'b [u8]>,
    place: LineCounter<'b>,
    delimiter: u8,
    record: ByteRecord,
}

/// A record, with its byte range in the text and the number of the line in which it begins.
pub struct CsvRecord<'r> {
    pub bytes: Range<usize>,
    pub line: u64,
    fields: &'r ByteRecord,
}

impl<'b> CsvRecords<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        let delimiter = find_delimiter(bytes);
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(bytes);
        let place = LineCounter {
            bytes,
            offset: 0,
            line: 1,
        };
        Self {
            reader,
            place,
            delimiter,
            record: ByteRecord::new(),
        }
    }

    /// True if semicolons stand between the cells.
    pub fn has_semicolons(&self) -> bool {
        self.delimiter == b';'
    }

    /// Returns the next record, or `None` at the end of the text.
    pub fn read_next(&mut self) -> Result<Option<CsvRecord<'_>>, Fault> {
        let is_some = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| file_fault("csv", format!("The CSV cannot be read: {error}.")))?;
        if !is_some {
            return Ok(None);
        }
        let line = self
            .place
            .line_at(self.record.position().map_or(0, csv::Position::byte));
        let end = usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX);
        let end = end.min(self.place.bytes.len());
        let start = self.place.offset;
        let is_last = end == self.place.bytes.len();
        let text = self.place.bytes.get(start..end).unwrap_or_default();
        if let Some(open) = is_last
            .then(|| unclosed_quote_offset(text, self.delimiter))
            .flatten()
        {
            return Err(unclosed_quote_fault(line, &text[..open]));
        }
        Ok(Some(CsvRecord {
            bytes: start..end,
            line,
            fields: &self.record,
        }))
    }
}

/// Returns the offset of the quote that opens the last cell of a record and is never closed.
fn unclosed_quote_offset(record: &[u8], delimiter: u8) -> Option<usize> {
    let mut open = None;
    let mut is_start = true;
    let mut at = 0;
    while let Some(byte) = record.get(at) {
        let is_escape = open.is_some() && record[at..].starts_with(b"\"\"");
        if is_escape {
            at += 1;
        } else if open.is_some() {
            open = open.filter(|_| *byte != b'"');
        } else {
            open = (is_start && *byte == b'"').then_some(at);
            is_start = *byte == delimiter || b"\r\n".contains(byte);
        }
        at += 1;
    }
    open
}

/// Returns the fault of a quote that is never closed. The record begins in line `line`, and `before` is its text before
/// the quote.
fn unclosed_quote_fault(line: u64, before: &[u8]) -> Fault {
    let line = line + u64::try_from(count_byte(before, b'\n')).unwrap_or_default();
    let message = format!(
        "The quote in line {line} opens a cell that never ends: close it behind the cell, or write it twice if it \
         belongs to the text."
    );
    file_fault("csv", message)
}

impl CsvRecord<'_> {
    /// Returns the text of the cell in this column, trimmed and without the apostrophes of `formula_mark`; empty if
    /// there is no cell.
    pub fn cell(&self, column: usize) -> Cow<'_, str> {
        self.fields.get(column).map_or(Cow::Borrowed(""), cell_text)
    }

    pub fn is_blank(&self) -> bool {
        self.fields.iter().all(|cell| cell_text(cell).is_empty())
    }

    /// Returns the cells of the header. Fails if there are too many of them, or if one is too long or holds a formula.
    /// `line` is the number of the line that the fault names.
    pub fn header_cells(&self, line: u64) -> Result<Vec<String>, Fault> {
        let row = self.to_row(line)?;
        match row.formulas.first() {
            Some(index) => {
                let cell = format!("Line {line}, column {}: the cell", index + 1);
                Err(formula_fault("file".to_owned(), &cell))
            }
            None => Ok(row.cells),
        }
    }

    /// Returns the record as a row. Fails if it has too many cells, or if one is too long. `line` is the number of the
    /// line that the fault names.
    fn to_row(&self, line: u64) -> Result<Row, Fault> {
        if self.fields.len() > COLUMNS_MAX {
            return Err(too_many_columns_fault(line));
        }
        let mut row = Row {
            number: line,
            ..Row::default()
        };
        for (index, cell) in self.fields.iter().enumerate() {
            let cell = String::from_utf8_lossy(cell);
            let text = unmark(&cell);
            check_length(&format!("Line {line}, column {}", index + 1), &text)?;
            if is_formula(&cell) {
                row.formulas.push(index);
                // The blank tells the formula from a text in the error file, where both have an apostrophe.
                row.cells.push(format!(" {}", text.trim_start()));
            } else {
                row.cells.push(text.into_owned());
            }
        }
        Ok(row)
    }
}

/// Refuses a text with a record of more than `COLUMNS_MAX` cells. The reader would take memory for each of the cells
/// before they can be counted.
pub fn check_column_count(bytes: &[u8]) -> Result<(), Fault> {
    let delimiter = find_delimiter(bytes);
    let mut start = 0;
    let mut columns = 1;
    let mut is_quoted = false;
    let mut may_open = true;
    for (at, byte) in bytes.iter().enumerate() {
        if is_quoted {
            // A quote that belongs to the text is written twice: the second one opens the cell again.
            is_quoted = *byte != b'"';
            may_open = true;
            continue;
        }
        is_quoted = may_open && *byte == b'"';
        let is_record_end = b"\r\n".contains(byte);
        may_open = is_record_end || *byte == delimiter;
        if is_record_end {
            start = at + 1;
            columns = 1;
        } else if *byte == delimiter {
            columns += 1;
        }
        if columns > COLUMNS_MAX {
            let lines_before = u64::try_from(count_byte(&bytes[..start], b'\n'));
            return Err(too_many_columns_fault(1 + lines_before.unwrap_or_default()));
        }
    }
    Ok(())
}

fn too_many_columns_fault(line: u64) -> Fault {
    let message = format!("Line {line} has more than {COLUMNS_MAX} columns.");
    file_fault("max", message)
}

/// Returns the text of a cell without the blanks around it and without the apostrophes that guard against formulas.
fn cell_text(cell: &[u8]) -> Cow<'_, str> {
    match unmark(std::str::from_utf8(cell).unwrap_or_default()) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// Writes a table as text, so that each row is in the line of its number. Line breaks within cells become spaces.
pub fn to_csv(table: &Table) -> String {
    let mut text = String::new();
    push_record(&mut text, &table.header);
    let mut line = 2;
    for row in &table.rows {
        while line < row.number {
            text.push('\n');
            line += 1;
        }
        push_record(&mut text, &row.cells);
        line += 1;
    }
    text
}

fn push_record(text: &mut String, cells: &[String]) {
    // Quotes around each cell, so that a comma, semicolon or tab in a header is not taken for the delimiter.
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Always)
        .from_writer(Vec::new());
    let cells = cells.iter().map(|cell| {
        let cell = cell.replace(['\n', '\r'], " ");
        mark(&cell).into_owned()
    });
    // Writing to memory does not fail.
    let _ = writer.write_record(cells);
    let bytes = writer.into_inner().unwrap_or_default();
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// A position in the text. It counts lines itself, because the line numbers of the CSV reader leave out the line ends
/// that the reader skips before a record.
struct LineCounter<'b> {
    bytes: &'b [u8],
    offset: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// Returns the number of the line in which the next record begins, after any line ends at this offset.
    fn line_at(&mut self, offset: u64) -> u64 {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let skipped = rest.iter().take_while(|byte| b"\r\n".contains(byte));
        let start = offset.saturating_add(skipped.count());
        let passed = self.bytes.get(self.offset..start).unwrap_or_default();
        self.line += u64::try_from(count_byte(passed, b'\n')).unwrap_or_default();
        self.offset = start;
        self.line
    }
}

/// Returns the delimiter that is most frequent in the header, outside of quotes. The reader skips empty lines before
/// the header, whose cells may have line breaks within quotes.
fn find_delimiter(bytes: &[u8]) -> u8 {
    let is_line_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut is_quoted = false;
    let mut may_open = true;
    for byte in bytes.iter().skip_while(|byte| is_line_end(**byte)) {
        if is_quoted {
            is_quoted = *byte != b'"';
            may_open = true;
            continue;
        }
        if is_line_end(*byte) {
            break;
        }
        is_quoted = may_open && *byte == b'"';
        let found = DELIMITERS.iter().position(|mark| mark == byte);
        may_open = found.is_some();
        if let Some(count) = found.and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    // The comma comes last, because the last of equal counts wins.
    let marks = DELIMITERS.into_iter().zip(counts).rev();
    let most = marks.max_by_key(|(_, count)| *count);
    most.map_or(b',', |(mark, _)| mark)
}

fn count_byte(bytes: &[u8], wanted: u8) -> usize {
    bytes.split(|byte| *byte == wanted).count() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::table::CELL_CHARS_MAX;

    #[test]
    fn each_delimiter_is_recognised() {
        for (text, cells, line) in [
            ("a,b\n1,2\n", ["1", "2"], 2),
            ("\u{feff}a;b\r\n1,5;2\r\n", ["1,5", "2"], 2),
            ("a\tb\n1\t2", ["1", "2"], 2),
            ("\r\n\na;b\n1,5;2\n", ["1,5", "2"], 4),
            ("\"a,\r\nx\";b\n1,5;2\n", ["1,5", "2"], 3),
            ("\"\"\"a,,\"\"\";b\n1,5;2\n", ["1,5", "2"], 2),
            ("6\" a;b\n1,5;2\n", ["1,5", "2"], 2),
            (
                "\"a,;;;x\",b\n\"1\n\",\"2 \"\"x\"\"\"",
                ["1\n", "2 \"x\""],
                2,
            ),
        ] {
            let table = read(text.as_bytes()).unwrap();
            assert_eq!(table.rows[0].cells, cells, "{text}");
            assert_eq!(table.rows[0].number, line, "{text}");
        }
    }

    #[test]
    fn a_table_that_was_written_has_the_same_columns() {
        let header = ["a;b;c", "d"].map(str::to_owned).to_vec();
        let cells = ["1", "-2"].map(str::to_owned).to_vec();
        let table = Table {
            word: "line",
            header,
            rows: vec![Row {
                number: 2,
                cells,
                ..Row::default()
            }],
        };
        assert_eq!(read(to_csv(&table).as_bytes()).unwrap(), table);
    }

    #[test]
    fn the_apostrophe_before_a_text_is_not_counted() {
        for (length, is_read) in [(CELL_CHARS_MAX, true), (CELL_CHARS_MAX + 1, false)] {
            let text = format!("-{}", "x".repeat(length - 1));
            let table = Table {
                word: "line",
                header: vec!["a".to_owned()],
                rows: vec![Row {
                    number: 2,
                    cells: vec![text],
                    ..Row::default()
                }],
            };
            let again = read(to_csv(&table).as_bytes());
            assert_eq!(again.ok(), is_read.then_some(table), "{length}");
        }
    }

    #[test]
    fn rows_keep_the_number_of_their_line() {
        let table = read(b"a,b\n\"x\ny\",2\n\n3,4\n").unwrap();
        let numbers: Vec<_> = table.rows.iter().map(|row| row.number).collect();
        assert_eq!(numbers, [2, 5]);
    }

    #[test]
    fn a_record_with_too_many_cells_is_found_before_it_is_read() {
        let most = "x,".repeat(COLUMNS_MAX - 1);
        let commas = ",".repeat(COLUMNS_MAX);
        for (text, line) in [
            (format!("{most}x\n{most}\r\n"), None),
            (format!("a,b\n\"{commas}\"\n"), None),
            (format!("a,b\n\"\"\"{commas}\"\"\",\"{commas}\"\n"), None),
            (format!("a,b\n\"{commas}"), None),
            (format!("a;b\n{commas};{commas}\n"), None),
            (format!("{most}x,x\n"), Some(1)),
            (format!("a,b\n\"x\ny\",2\n{commas}\n"), Some(4)),
            // A quote within a cell, or behind a quoted part of it, opens nothing.
            (format!("a,b\n6\" pipe,{commas}\n"), Some(2)),
            (format!("a,b\n\"x\"y\"{commas}\n"), Some(2)),
        ] {
            let said = check_column_count(text.as_bytes()).err();
            let said = said.map(|fault| fault.to_string());
            let expected = line.map(|line| format!("Line {line} has more than 256 columns."));
            assert_eq!(said, expected, "{text:.40}");
            let whole = read(text.as_bytes()).err().map(|fault| fault.to_string());
            let is_wide = whole.is_some_and(|whole| whole.ends_with(" columns."));
            assert_eq!(is_wide, line.is_some(), "{text:.40}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_names_its_line() {
        let long = format!("a,b\n\"x\ny\",\"{}", "z\n".repeat(CELL_CHARS_MAX));
        for (text, line) in [
            ("a,b\n1,\"x\n2,y\n", Some(2)),
            ("a,b\n1,2\n3,4\n5,\"6\"\"", Some(4)),
            ("a,b\n\"x\ny\",\"z\n1,2\n", Some(3)),
            (&long, Some(3)),
            ("\"a,b\n1,2\n", Some(1)),
            ("a,b\n1,\"\"\"x\"\"\"", None),
            ("a,b\n1,6\" pipe\n", None),
            ("a,b\n1,\"\"\n", None),
            ("a,b\n1,\"x\"y\n", None),
        ] {
            let said = read(text.as_bytes()).err().map(|fault| fault.to_string());
            let expected = line.map(|line| format!("The quote in line {line} opens a cell"));
            let is_said = match (&said, &expected) {
                (Some(said), Some(expected)) => said.starts_with(expected),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            assert!(is_said, "{text:.40}: {said:?}");
        }
    }

    #[test]
    fn hostile_files_are_refused_with_the_place() {
        let wide = vec!["x"; COLUMNS_MAX + 1].join(",");
        let long = format!("a,b\n1,{}\n", "y".repeat(5_000));
        for (bytes, said) in [
            (wide.as_bytes(), "Line 1 has more than 256 columns."),
            (
                long.as_bytes(),
                "Line 2, column 2: the cell has more than 4000 characters.",
            ),
            (
                b"a,=2+3\n1,2\n",
                "Line 1, column 2: the cell holds a formula; write its value instead, or an apostrophe before a text that \
                 begins so.",
            ),
            (
                b"a,b\n1,\xff\n",
                "Line 2 is not UTF-8: save the file as CSV UTF-8.",
            ),
        ] {
            assert_eq!(read(bytes).unwrap_err().to_string(), said);
        }
        let many = format!("a\n{}", "1\n".repeat(ROWS_MAX + 1));
        assert_eq!(
            read(many.as_bytes()).unwrap_err().to_string(),
            "The file has more than 100000 lines."
        );
        assert_eq!(read(b"").unwrap().header, [""; 0]);
    }
}
