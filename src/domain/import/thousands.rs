//! Warns about a CSV whose points may be thousands separators. A spreadsheet that writes `1234,50` puts semicolons
//! between the cells, and may write 1,234 as `1.234`. The numbers are nevertheless read with a decimal point.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::domain::import::csv_table::{BYTE_ORDER_MARK, CsvRecords};
use crate::domain::import::table::shorten_cell;
use crate::domain::import::table_documents::numeric_columns;

/// Returns a warning if semicolons stand between the cells and every number that has a point looks like a whole number
/// with thousands separators. The warning names the first of these numbers. A single number of another form shows that
/// the points are decimal points. `names` maps headers of the file to fields.
pub fn thousands_warning(bytes: &[u8], names: &BTreeMap<String, String>) -> Option<String> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut records = CsvRecords::new(bytes);
    if !records.has_semicolons() {
        return None;
    }
    let header = records.read_next().ok()??;
    let columns = numeric_columns(&header.header_cells(header.line).ok()?, names).ok()?;
    let mut warning = None;
    while let Some(record) = records.read_next().ok()? {
        for (index, header) in &columns {
            let cell = record.cell(*index);
            if !cell.contains('.') || cell.parse::<Number>().is_err() {
                continue;
            }
            if !may_have_thousands_separator(&cell) {
                return None;
            }
            if warning.is_none() {
                warning = Some(warning_sentence(record.line, header, &cell));
            }
        }
    }
    warning
}

fn warning_sentence(line: u64, header: &str, cell: &str) -> String {
    let header = shorten_cell(header);
    let whole = cell.replace('.', "");
    format!(
        "Line {line}, column {header}: {cell} is read as {cell} and not as {whole}, because a point stands before the \
         decimals. Every number of the file with a point has three digits after it: if the points stand between \
         thousands, write the numbers without them."
    )
}

/// True for a number such as `12.345`, which is a whole number if its point is a thousands separator.
fn may_have_thousands_separator(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let Some((whole, thousands)) = digits.split_once('.') else {
        return false;
    };
    let is_whole = matches!(whole.len(), 1..=3) && !whole.starts_with('0');
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && thousands.len() == 3 && is_plain(whole) && is_plain(thousands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_may_stand_between_thousands_are_told_once() {
        let first = |line: u64, header: &str, cell: &str| {
            format!("Line {line}, column {header}: {cell} is read as {cell} and not as ")
        };
        let price = "line.unit_price";
        for (rows, expected) in [
            ("1;1.234", Some(first(2, price, "1.234"))),
            (
                "1;2\n\n1;-12.000\n1;1.234",
                Some(first(4, price, "-12.000")),
            ),
            ("\"1.000\";5", Some(first(2, "Menge", "1.000"))),
            // The second number is refused, which shows the more that the first is a whole one.
            ("1;1.234\n1;1.234,50", Some(first(2, price, "1.234"))),
            ("1;1.234.567\n1;1.234", Some(first(3, price, "1.234"))),
            ("1;1.234\n1;1.23", None),
            ("2.5;1.234", None),
            ("1;0.500\n1;1.500", None),
            ("1;1234.500\n1;1.234", None),
            ("1;1.234e2\n1;1.234", None),
            ("1;1234", None),
            ("", None),
        ] {
            let names = BTreeMap::from([("Menge".to_owned(), "line.quantity".to_owned())]);
            let header = "Menge;line.unit_price;line.product_category;invoice_no";
            let rows = rows.lines().map(|row| {
                if row.is_empty() {
                    String::new()
                } else {
                    format!("{row};1.234;A")
                }
            });
            let rows = rows.collect::<Vec<_>>().join("\n");
            for start in ["", "\u{feff}"] {
                let text = format!("{start}{header}\n{rows}\n");
                let found = thousands_warning(text.as_bytes(), &names);
                let is_told = match (&found, &expected) {
                    (Some(found), Some(expected)) => found.starts_with(expected.as_str()),
                    (found, expected) => found.is_none() && expected.is_none(),
                };
                assert!(is_told, "{rows}: {found:?}");
                let commas = text.replace(',', "").replace(';', ",");
                assert_eq!(thousands_warning(commas.as_bytes(), &names), None, "{rows}");
            }
        }
    }
}
