//! The apostrophe that keeps spreadsheets from computing texts that look like formulas. Exports to CSV put it before
//! such a text, and imports remove it. A text that begins with apostrophes before a formula gets one more, so that an
//! import restores each text exactly.

use std::borrow::Cow;

/// The characters with which a spreadsheet begins a formula.
const FORMULA_STARTS: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// Returns the text with an apostrophe before it if a spreadsheet would take it for a formula.
pub fn mark(text: &str) -> Cow<'_, str> {
    if is_formula_like(text) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Removes the apostrophe that `mark` added.
pub fn unmark(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if is_formula_like(rest) => rest,
        _ => text,
    }
}

/// True if the text begins like a formula, ignoring apostrophes before it.
fn is_formula_like(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(FORMULA_STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_begins_like_a_formula_is_marked_and_comes_back() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+234 800", "'+234 800"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("\nx", "'\nx"),
            ("=", "'="),
            ("", ""),
            ("a=1", "a=1"),
            (" =1", " =1"),
            ("'s", "'s"),
            ("'-5", "''-5"),
            ("''=1", "'''=1"),
            ("'", "'"),
            ("''x", "''x"),
            ("1-2", "1-2"),
            ("\u{e9}", "\u{e9}"),
        ] {
            assert_eq!(mark(text), expected, "{text:?}");
            assert_eq!(unmark(expected), text, "{text:?}");
        }
    }
}
