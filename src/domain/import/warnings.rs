//! Merges the warnings about a document. If several lines have the same warning, one warning names all these lines, so
//! that the limit on the number of warnings does not hide others.

use std::collections::HashMap;

/// The maximum number of lines or ranges of lines that one warning names.
const RANGES_SHOWN_MAX: usize = 10;
/// The texts that stand before the number of a line in a warning, and the amount to add so that lines count from 1.
const LINE_MARKS: [(&str, usize); 5] = [
    ("InvoiceLine[", 0),
    ("CreditNoteLine[", 0),
    ("invoice_lines.", 1),
    ("invoice_line.", 1),
    ("line ", 0),
];

/// Warnings that are the same except for the numbers in them.
struct WarningGroup {
    first: String,
    /// The line that each further warning is about; `None` for a warning that names no line.
    others: Vec<Option<usize>>,
}

/// Merges the warnings that are the same except for numbers. The merged warning stands in the place of the first of
/// them.
pub fn merge(warnings: Vec<String>) -> Vec<String> {
    let mut groups: Vec<WarningGroup> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for warning in warnings {
        let at = *places
            .entry(without_numbers(&warning))
            .or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.others.push(line_number(&warning)),
            None => groups.push(WarningGroup {
                first: warning,
                others: Vec::new(),
            }),
        }
    }
    groups
        .into_iter()
        .map(WarningGroup::into_sentence)
        .collect()
}

impl WarningGroup {
    fn into_sentence(self) -> String {
        let Self { first, others } = self;
        if others.is_empty() {
            return first;
        }
        let sentence = first.strip_suffix('.').unwrap_or(&first);
        let lines: Option<Vec<_>> = others.iter().copied().collect();
        let ranges = lines.map(line_ranges);
        match ranges.filter(|ranges| ranges.len() <= RANGES_SHOWN_MAX) {
            Some(ranges) => format!("{sentence}; the like for line {}.", ranges.join(", ")),
            None => format!("{sentence}; the like {} times more.", others.len()),
        }
    }
}

/// Returns the numbers of lines as texts, such as `2-7` for lines that follow one another.
fn line_ranges(mut lines: Vec<usize>) -> Vec<String> {
    lines.sort_unstable();
    lines.dedup();
    let runs = lines.chunk_by(|one, next| one + 1 == *next);
    let texts = runs.filter_map(|run| match run {
        [] => None,
        [only] => Some(only.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    texts.collect()
}

/// Returns the number of the line that a warning is about, counted from 1; `None` if it names no line.
fn line_number(warning: &str) -> Option<usize> {
    LINE_MARKS.iter().find_map(|(mark, offset)| {
        let (_, behind) = warning.split_once(mark)?;
        let end = behind
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(behind.len());
        let number: usize = behind[..end].parse().ok()?;
        Some(number + offset)
    })
}

/// Returns the text with `#` in place of each number.
fn without_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_digit = letter.is_ascii_digit();
        let is_inside = matches!(letter, '.' | ',')
            && kept.ends_with('#')
            && letters.peek().is_some_and(char::is_ascii_digit);
        if !is_digit && !is_inside {
            kept.push(letter);
        } else if !kept.ends_with('#') {
            kept.push('#');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_one_kind_become_one_that_names_the_lines() {
        let unit = |line: usize| format!("/Invoice/cac:InvoiceLine[{line}]: The line has no unit.");
        let item = |at: usize| format!("invoice_lines.{at}.item_no is the item's name.");
        let price = |line: usize| format!("line {line}: 1 × {line}.50 was taken.");
        for (warnings, expected) in [
            (vec![unit(1)], vec![unit(1)]),
            (
                vec![unit(1), item(0), unit(2), unit(3), unit(7), item(4)],
                vec![
                    "/Invoice/cac:InvoiceLine[1]: The line has no unit; the like for line 2-3, 7."
                        .to_owned(),
                    "invoice_lines.0.item_no is the item's name; the like for line 5.".to_owned(),
                ],
            ),
            (
                vec![price(1), price(2)],
                vec!["line 1: 1 × 1.50 was taken; the like for line 2.".to_owned()],
            ),
            (
                vec!["A became 1,234.50.".to_owned(), "A became 7.".to_owned()],
                vec!["A became 1,234.50; the like 1 times more.".to_owned()],
            ),
            (
                vec![
                    "invoice_lines.0.a is b.".to_owned(),
                    "invoice_lines.0.c is b.".to_owned(),
                ],
                vec![
                    "invoice_lines.0.a is b.".to_owned(),
                    "invoice_lines.0.c is b.".to_owned(),
                ],
            ),
            (
                (0..30).map(|number| unit(2 * number + 1)).collect(),
                vec![
                    "/Invoice/cac:InvoiceLine[1]: The line has no unit; the like 29 times more."
                        .to_owned(),
                ],
            ),
        ] {
            assert_eq!(merge(warnings), expected);
        }
    }
}
