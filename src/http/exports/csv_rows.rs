//! Rows as CSV (RFC 4180): UTF-8, lines end with CR and LF. A spreadsheet computes a text that begins like a formula,
//! so such a text gets an apostrophe before it. Numbers are left as they are.

use std::borrow::Cow;

use csv::{QuoteStyle, Terminator, WriterBuilder};

use crate::domain::invoice::table_rows::Cell;
use crate::domain::kernel::formula_mark;

/// Appends rows to a text.
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

/// Appends the names of the columns.
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
        Cell::Number(number) => Cow::Owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Amount;

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
        ];
        let mut text = Vec::new();
        append_header(&mut text, &["one", "two", "three"]).unwrap();
        append_rows(&mut text, rows).unwrap();
        let expected = "one,two,three\r\n\"a,b\",,-10.50\r\n\"\"\"q\"\"\",\"l\r\nm\",0.10\r\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
