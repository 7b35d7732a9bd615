//! The apostrophe by which CSV keeps spreadsheets from computing a text that begins like a formula. Exports put it
//! before such a text, and imports take it off. A text that has such apostrophes of its own gets one more, so that every
//! text comes back.

use std::borrow::Cow;

/// A spreadsheet takes a text that begins with one of these for a formula.
const FORMULA_STARTS: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// Returns a text that no spreadsheet takes for a formula.
pub fn mark(text: &str) -> Cow<'_, str> {
    if is_formula_like(text) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the text that was marked.
pub fn unmark(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if is_formula_like(rest) => rest,
        _ => text,
    }
}

/// True if a formula may begin here, or behind apostrophes.
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
