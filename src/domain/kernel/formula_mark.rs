//! Puts an apostrophe before each text that looks like a formula, so that spreadsheets do not compute it. CSV exports
//! add the apostrophe, and imports remove it. A text that already has apostrophes before a formula gets one more, so
//! that an import restores each text exactly. In many countries spreadsheets end a cell at each semicolon, and then
//! also at each line end, even within quotes. So the text after each such character is checked for a formula, too.

use std::borrow::Cow;

/// The characters with which a spreadsheet begins a formula, also full-width, as some spreadsheets take them.
const FORMULA_SIGNS: [char; 8] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];
/// The characters that some spreadsheets skip at the beginning of a cell, before a formula.
const SKIPPED_STARTS: [char; 3] = ['\t', '\r', '\n'];
/// The characters at which a spreadsheet may end a cell although the text goes on.
const CELL_ENDS: [char; 4] = [';', '\t', '\r', '\n'];

/// Returns the text with an apostrophe before each part that a spreadsheet would take for a formula.
pub fn mark(text: &str) -> Cow<'_, str> {
    if !parts(text).any(Part::is_formula_like) {
        return Cow::Borrowed(text);
    }
    let mut marked = String::with_capacity(text.len() + 1);
    for part in parts(text) {
        if part.is_formula_like() {
            marked.push('\'');
        }
        marked.push_str(part.text);
    }
    Cow::Owned(marked)
}

/// Removes the apostrophes that `mark` added.
pub fn unmark(text: &str) -> Cow<'_, str> {
    if !text.contains('\'') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(parts(text).map(Part::without_mark).collect())
}

/// A part of a text that a spreadsheet may take for a cell, with the character that ends it.
#[derive(Clone, Copy)]
struct Part<'t> {
    text: &'t str,
    is_first: bool,
}

fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let texts = text.split_inclusive(CELL_ENDS).enumerate();
    texts.map(|(index, text)| Part {
        text,
        is_first: index == 0,
    })
}

impl<'t> Part<'t> {
    /// True if the part begins like a formula, ignoring apostrophes and blanks before it.
    fn is_formula_like(self) -> bool {
        let start = self.text.trim_start_matches('\'').trim_start_matches(' ');
        start.starts_with(FORMULA_SIGNS) || self.is_first && start.starts_with(SKIPPED_STARTS)
    }

    /// Returns the text without its first apostrophe if `mark` added it.
    fn without_mark(self) -> &'t str {
        match self.text.strip_prefix('\'') {
            Some(rest) if self.is_formula_like() => rest,
            _ => self.text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_part_like_a_formula_is_marked_and_comes_back() {
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
            (" =1", "' =1"),
            ("\t=1", "'\t'=1"),
            ("\r\nx", "'\r\nx"),
            (";=1+1", ";'=1+1"),
            ("a;+1;b; -1", "a;'+1;b;' -1"),
            ("a;'@x", "a;''@x"),
            ("=1;=2", "'=1;'=2"),
            ("a\n=1\t@x", "a\n'=1\t'@x"),
            ("a\r\n-1", "a\r\n'-1"),
            ("a\n\nb;c", "a\n\nb;c"),
            ("it's; that's", "it's; that's"),
            ("a,=1", "a,=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("\u{ff0b}1", "'\u{ff0b}1"),
            ("a;\u{ff0d}1", "a;'\u{ff0d}1"),
            ("'\u{ff20}x", "''\u{ff20}x"),
            ("a\u{ff1d}1", "a\u{ff1d}1"),
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
