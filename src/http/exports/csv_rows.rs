//! Rows as CSV (RFC 4180): UTF-8, lines end with CR and LF. A spreadsheet computes a text that looks like a formula, so
//! such a text gets an apostrophe before the formula. Numbers are left as they are.

use std::borrow::Cow;

use csv::{QuoteStyle, Terminator, WriterBuilder};

use crate::domain::invoice::table_rows::Cell;
use crate::domain::kernel::formula_mark;

/// Appends rows to a CSV text, one line for each row.
pub(super) fn append_rows<'a>(
    text: &mut Vec<u8>,
    rows: impl IntoIterator<Item = Vec<Cell<'a>>>,
) -> csv::Result<()> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .quote_style(QuoteStyle::Necessary)
        .from_writer(text);
    for row in rows {
        writer.write_record(row.iter().map(|cell| cell_text(cell).into_owned()))?;
    }
    writer.flush()?;
    Ok(())
}

/// Appends the header line, which names the columns.
pub(super) fn append_header<N: AsRef<str>>(text: &mut Vec<u8>, names: &[N]) -> csv::Result<()> {
    let cells = names
        .iter()
        .map(|name| Cell::Text(name.as_ref().into()))
        .collect();
    append_rows(text, [cells])
}

fn cell_text<'a>(cell: &'a Cell<'_>) -> Cow<'a, str> {
    match cell {
        Cell::Empty => Cow::Borrowed(""),
        Cell::Text(text) => formula_mark::mark(text),
        Cell::Number(_) | Cell::Day(_) | Cell::Moment(_) => Cow::Owned(cell.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::Date;

    use super::*;
    use crate::domain::import::{csv_table, xlsx_table};
    use crate::domain::money::Amount;
    use crate::http::exports::workbook::WorkbookWriter;

    #[test]
    fn every_text_comes_back_from_each_kind_of_table() {
        let texts = [
            "=1+1",
            "+234 800",
            "-5",
            "@SUM(A1)",
            "'",
            "'s",
            "'-5",
            "''=1",
            "''x",
            "a,\"b\"",
            "Tom's",
            ";=1+1",
            "a; -1;'@x",
            "\u{ff1d}1",
        ];
        let cells: Vec<_> = texts.map(|text| Cell::Text(text.into())).to_vec();
        let header = ["a"; 14];
        let mut text = Vec::new();
        append_header(&mut text, &header).unwrap();
        append_rows(&mut text, [cells.clone()]).unwrap();
        assert_eq!(csv_table::read(&text).unwrap().rows[0].cells, texts);
        let mut book = WorkbookWriter::new("S", &header, Timestamp::UNIX_EPOCH).unwrap();
        book.add_row(&cells).unwrap();
        let mut bytes = Vec::new();
        book.save_into(&mut bytes).unwrap();
        let table = xlsx_table::read(&bytes).unwrap().table;
        assert_eq!(table.rows[0].cells, texts);
        // A large workbook is read as the text of its table.
        let text = csv_table::to_csv(&table);
        assert_eq!(
            csv_table::read(text.as_bytes()).unwrap().rows[0].cells,
            texts
        );
    }

    #[test]
    fn rows_are_quoted_where_they_must_be_and_numbers_are_left_alone() {
        let amount = |text: &str| Cell::Number(Amount::parse(text).unwrap());
        let rows = [
            vec![Cell::Text("a,b".into()), Cell::Empty, amount("-10.50")],
            vec![
                Cell::Text("\"q\"".into()),
                Cell::Text("l\r\nm".into()),
                amount("0.10"),
            ],
            vec![
                Cell::Day(Date::constant(2026, 1, 15)),
                Cell::Moment(Timestamp::UNIX_EPOCH),
                Cell::Empty,
            ],
        ];
        let mut text = Vec::new();
        append_header(&mut text, &["one", "two", "three"]).unwrap();
        append_rows(&mut text, rows).unwrap();
        let expected = "one,two,three\r\n\"a,b\",,-10.50\r\n\"\"\"q\"\"\",\"l\r\nm\",0.10\r\n\
                        2026-01-15,1970-01-01 00:00:00,\r\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
