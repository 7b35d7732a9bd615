//! Rows as an XLSX workbook of one sheet. Each row goes to a temporary file at once, so memory does not grow with the
//! rows. A text is stored as a text, so that a spreadsheet never computes it; a day and a time are stored as dates.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, Worksheet, XlsxError};

use crate::domain::invoice::table_rows::Cell;
use crate::domain::money::Amount;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The rows that a sheet can hold below its header.
pub(super) const ROWS_MAX: u32 = 1_048_575;
/// A workbook with more rows is written with ZIP64, so that its parts may be larger than 4 GB. Not every program reads
/// ZIP64.
const ROWS_WITHOUT_ZIP64_MAX: u32 = 200_000;
/// The significant digits that a spreadsheet keeps of a number. A longer number is written as text.
const NUMBER_DIGITS_MAX: usize = 15;
/// The largest number of digits that a cell shows after the decimal point.
const FRACTION_DIGITS_MAX: usize = 6;
/// The width of each column, in digits. A time fits in it. A spreadsheet shows a date or a number that does not fit as
/// `####`.
const COLUMN_WIDTH: u8 = 20;
/// The first day that all spreadsheets count alike: Excel takes 1900 for a leap year. An earlier day is written as
/// text.
const FIRST_DAY: Date = Date::constant(1900, 3, 1);

#[derive(Debug, thiserror::Error)]
pub(super) enum WorkbookError {
    #[error("the list has more rows than a sheet can hold")]
    TooManyRows,
    #[error("the workbook could not be written: {0}")]
    Workbook(#[from] XlsxError),
    #[error("the workbook could not be saved: {0}")]
    File(#[from] io::Error),
}

impl From<WorkbookError> for ApiError {
    fn from(error: WorkbookError) -> Self {
        match error {
            WorkbookError::TooManyRows => too_many_rows_error(),
            other => Self::internal(other),
        }
    }
}

/// Returns the error for a list that does not fit on a sheet.
pub(super) fn too_many_rows_error() -> ApiError {
    let message = "The list has more than 1,048,575 rows, which is all that an Excel sheet can hold: narrow it with \
                   filters such as date_from and date_to, or take it as CSV";
    ApiError::new(ErrorCode::ValidationFailed, message)
}

pub(super) struct WorkbookWriter {
    book: Workbook,
    /// The formats of numbers, by their digits after the decimal point.
    number_formats: Vec<Format>,
    day_format: Format,
    moment_format: Format,
    row_count: u32,
    rows_max: u32,
}

impl WorkbookWriter {
    pub(super) fn new<N: AsRef<str>>(
        sheet_name: &str,
        header: &[N],
        created_at: Timestamp,
    ) -> Result<Self, WorkbookError> {
        let mut book = Workbook::new();
        let created_at = ExcelDateTime::from_timestamp(created_at.as_second())?;
        book.set_properties(&DocProperties::new().set_creation_datetime(&created_at));
        let bold = Format::new().set_bold();
        let sheet = book.add_worksheet_with_constant_memory()?;
        sheet.set_name(sheet_name)?.set_freeze_panes(1, 0)?;
        for (column, name) in (0..).zip(header) {
            sheet.set_column_width(column, COLUMN_WIDTH)?;
            sheet.write_string_with_format(0, column, name.as_ref(), &bold)?;
        }
        let number_formats = (0..=FRACTION_DIGITS_MAX).map(|digits| {
            let point = if digits == 0 { "" } else { "." };
            Format::new().set_num_format(format!("0{point}{}", "0".repeat(digits)))
        });
        Ok(Self {
            book,
            number_formats: number_formats.collect(),
            day_format: Format::new().set_num_format("yyyy-mm-dd"),
            moment_format: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss"),
            row_count: 0,
            rows_max: ROWS_MAX,
        })
    }

    pub(super) fn add_row(&mut self, cells: &[Cell<'_>]) -> Result<(), WorkbookError> {
        if self.row_count >= self.rows_max {
            return Err(WorkbookError::TooManyRows);
        }
        self.row_count += 1;
        let sheet = self.book.worksheet_from_index(0)?;
        for (column, cell) in (0..).zip(cells) {
            match cell {
                Cell::Empty => {}
                Cell::Text(text) => {
                    sheet.write_string(self.row_count, column, &**text)?;
                }
                Cell::Number(number) => {
                    write_number(sheet, self.row_count, column, *number, &self.number_formats)?;
                }
                Cell::Day(day) if *day < FIRST_DAY => {
                    sheet.write_string(self.row_count, column, cell.to_string())?;
                }
                Cell::Day(_) => {
                    let day = ExcelDateTime::parse_from_str(&cell.to_string())?;
                    let format = &self.day_format;
                    sheet.write_datetime_with_format(self.row_count, column, &day, format)?;
                }
                Cell::Moment(moment) => {
                    let moment = ExcelDateTime::from_timestamp(moment.as_second())?;
                    let format = &self.moment_format;
                    sheet.write_datetime_with_format(self.row_count, column, &moment, format)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn save_into(
        mut self,
        target: &mut (impl Write + Send),
    ) -> Result<(), WorkbookError> {
        self.book
            .use_zip_large_file(self.row_count > ROWS_WITHOUT_ZIP64_MAX);
        self.book.save_to_writer(target)?;
        Ok(())
    }

    /// Saves the workbook to a temporary file without a name. The system deletes it when its last handle is closed.
    pub(super) fn save_as_temporary_file(self) -> Result<File, WorkbookError> {
        let mut writer = BufWriter::new(tempfile::tempfile()?);
        self.save_into(&mut writer)?;
        let mut file = writer.into_inner().map_err(io::Error::from)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Writes a number, shown with its own digits. A number with more digits than a spreadsheet keeps is written as text.
fn write_number(
    sheet: &mut Worksheet,
    row: u32,
    column: u16,
    number: Amount,
    formats: &[Format],
) -> Result<(), XlsxError> {
    let text = number.to_string();
    let fraction_digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let format = formats.get(fraction_digits);
    match (exact_number(&text), format) {
        (Some(value), Some(format)) => {
            sheet.write_number_with_format(row, column, value, format)?;
        }
        _ => {
            sheet.write_string(row, column, text)?;
        }
    }
    Ok(())
}

/// Returns a decimal number as a spreadsheet keeps it; `None` if that would change a digit.
fn exact_number(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0');
    if significant.len() > NUMBER_DIGITS_MAX {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::xlsx_table;

    fn writer(rows_max: u32) -> WorkbookWriter {
        let header = ["a", "b"];
        WorkbookWriter {
            rows_max,
            ..WorkbookWriter::new("Test", &header, Timestamp::UNIX_EPOCH).unwrap()
        }
    }

    #[test]
    fn a_number_is_a_number_only_while_each_digit_is_kept() {
        for (text, expected) in [
            ("0", Some(0.0)),
            ("-10.50", Some(-10.5)),
            ("0.000001", Some(0.000_001)),
            ("999999999999999", Some(999_999_999_999_999.0)),
            ("9999999999999.99", Some(9_999_999_999_999.99)),
            ("99999999999999.99", None),
            ("1000000000000000", None),
        ] {
            assert_eq!(exact_number(text), expected, "{text}");
        }
    }

    #[test]
    fn each_kind_of_cell_is_read_back() {
        let text = |text: &'static str| Cell::Text(text.into());
        let day = |year, month, day| Cell::Day(Date::constant(year, month, day));
        for (cell, expected) in [
            (text("2026-01-15"), "2026-01-15"),
            (text("007"), "007"),
            (Cell::Number(7.into()), "7"),
            (Cell::Number("-10.50".parse().unwrap()), "-10.5"),
            (day(2026, 1, 15), "2026-01-15"),
            (day(2028, 2, 29), "2028-02-29"),
            (day(1900, 3, 1), "1900-03-01"),
            (day(1900, 2, 28), "1900-02-28"),
            (day(1, 1, 1), "0001-01-01"),
            (day(9999, 12, 31), "9999-12-31"),
            (
                Cell::Moment("2026-01-15T23:59:59.9Z".parse().unwrap()),
                "2026-01-15",
            ),
        ] {
            let mut book = writer(1);
            book.add_row(&[cell, Cell::Empty]).unwrap();
            let mut bytes = Vec::new();
            book.save_into(&mut bytes).unwrap();
            let table = xlsx_table::read(&bytes).unwrap().table;
            assert_eq!(table.rows[0].cells, [expected]);
        }
    }

    #[test]
    fn a_list_that_does_not_fit_is_refused_in_a_sentence_that_tells_what_to_do() {
        let mut book = writer(2);
        let row = [Cell::Text("=1+1".into()), Cell::Number(7.into())];
        book.add_row(&row).unwrap();
        book.add_row(&row).unwrap();
        let refused = book.add_row(&row).unwrap_err();
        let error = ApiError::from(refused);
        assert_eq!(error.code, ErrorCode::ValidationFailed);
        assert!(error.message.contains("filters") && error.message.contains("CSV"));
    }

    #[test]
    fn the_same_rows_make_the_same_file() {
        let save = || {
            let mut book = writer(9);
            book.add_row(&[Cell::Text("x".into()), Cell::Number(7.into())])
                .unwrap();
            let mut bytes = Vec::new();
            book.save_into(&mut bytes).unwrap();
            bytes
        };
        assert!(save().starts_with(b"PK"));
        assert_eq!(save(), save());
    }
}
