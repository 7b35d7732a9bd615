//! Prepares texts of users for a page. Typst gets them as data, so no character has a special meaning for it. Three
//! problems remain: characters without a glyph, which PDF/A forbids; invisible characters; and words that are wider
//! than their column.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::fonts::Fonts;

/// The character that is printed in place of one that no font has.
pub const REPLACEMENT: char = '\u{fffd}';

/// The mark for a place at which a line may end. It is invisible, and is removed when the pages are laid out.
pub const BREAK: char = '\u{200b}';

/// The first character of a text that runs from right to left. It tells the template to set the text in this direction.
/// The template removes it.
const RIGHT_TO_LEFT: char = '\u{200f}';

/// The maximum length of a letter with its marks, in bytes. One with more is printed without them: a letter can have
/// any number of marks, which would take as much memory and time.
const CLUSTER_BYTES_MAX: usize = 256;

/// The space for a text.
#[derive(Debug, Clone, Copy)]
pub struct TextSpace {
    /// The maximum number of characters, as people count them. A longer text is cut and gets an ellipsis.
    pub characters_max: usize,
    /// The width of the column in thousandths of an em. A wider word may break anywhere.
    pub word_max: u32,
}

/// Returns a text ready for a page: cut to the space, with marks at which lines may end, and marked if it runs from
/// right to left.
pub fn printable_text(text: &str, space: TextSpace) -> String {
    let mut printed = String::with_capacity(text.len() + 3);
    if is_right_to_left(text) {
        printed.push(RIGHT_TO_LEFT);
    }
    for (position, word) in fit_text(text, space.characters_max).split(' ').enumerate() {
        if position > 0 {
            printed.push(' ');
        }
        push_word(&mut printed, word, space.word_max);
    }
    printed
}

/// Adds a word. A word that is too wide may break after its punctuation; a part that is still too wide may break
/// anywhere.
fn push_word(printed: &mut String, word: &str, width_max: u32) {
    let fonts = Fonts::get();
    if fonts.width(word) <= width_max {
        printed.push_str(word);
        return;
    }
    for part in word.split_inclusive(['@', '.', '-', '_', '/', ',', ':', '?', '&', '=']) {
        if fonts.width(part) <= width_max {
            printed.push_str(part);
            printed.push(BREAK);
        } else {
            for cluster in part.graphemes(true) {
                printed.push_str(cluster);
                printed.push(BREAK);
            }
        }
    }
}

/// Returns the lines of a text with line breaks of its own, such as a note, each ready for a page. An ellipsis stands
/// for the lines beyond the maximum number.
pub fn printable_lines(text: &str, space: TextSpace, lines_max: usize) -> Vec<String> {
    let lines = text.split([
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ]);
    let printed = lines.map(|line| printable_text(line, space));
    let mut visible = printed.filter(|line| !line.is_empty());
    let mut kept: Vec<_> = visible.by_ref().take(lines_max).collect();
    kept.extend(visible.next().map(|_| "…".to_owned()));
    kept
}

/// Returns a text without invisible characters, and with one space in place of each run of white space. Replaces
/// characters that no font has.
pub fn fit_text(text: &str, characters_max: usize) -> String {
    let fonts = Fonts::get();
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut fitted = String::with_capacity(visible.len());
    let mut count = 0;
    for word in visible.split(is_space).filter(|word| !word.is_empty()) {
        if !fitted.is_empty() {
            fitted.push(' ');
            count += 1;
        }
        for cluster in word.graphemes(true) {
            if count >= characters_max {
                fitted.push('…');
                return fitted;
            }
            count += 1;
            let is_usual = cluster.len() <= CLUSTER_BYTES_MAX && !cluster.chars().any(is_private);
            if is_usual && fonts.covers(cluster) {
                fitted.push_str(cluster);
            } else {
                fitted.push(cluster_base(cluster, fonts));
            }
        }
    }
    fitted
}

/// True if the fonts have every letter of a text. For a missing letter the page shows `REPLACEMENT`.
pub fn can_print(text: &str) -> bool {
    text.is_ascii()
        || text.contains(REPLACEMENT)
        || !fit_text(text, usize::MAX).contains(REPLACEMENT)
}

/// Returns the base letter of a cluster whose marks its font does not have.
fn cluster_base(cluster: &str, fonts: &Fonts) -> char {
    cluster
        .chars()
        .next()
        .filter(|base| fonts.covers(base.encode_utf8(&mut [0; 4])) && !is_private(*base))
        .unwrap_or(REPLACEMENT)
}

/// True for characters that are invisible or that reverse the text, because an amount must not be shown backwards.
/// False for the joiners of Arabic letters, which are needed.
fn is_invisible(character: char) -> bool {
    let is_format = matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffc}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    is_format || (character.is_control() && !character.is_whitespace())
}

/// True for white space at which a line may end. The no-break space in "7.5 %" is none.
fn is_space(character: char) -> bool {
    character.is_whitespace() && character != '\u{a0}'
}

/// True for characters for private use. PDF/A forbids them even if a font has them.
fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// True if the first letter belongs to a script that runs from right to left.
fn is_right_to_left(text: &str) -> bool {
    text.chars()
        .find(|character| character.is_alphabetic())
        .is_some_and(|letter| {
            matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: TextSpace = TextSpace {
        characters_max: 21,
        word_max: 6_000,
    };

    #[test]
    fn text_is_folded_cleaned_clipped_and_wide_words_may_break() {
        for (text, printed) in [
            ("  Ada \t\n Obi  ", "Ada Obi"),
            ("#a $b *c* _d_ \\e", "#a $b *c* _d_ \\e"),
            ("[x] \"y\" ]) <z>", "[x] \"y\" ]) <z>"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{0}f", "abcdef"),
            ("中 🙂 \u{e000}", "\u{fffd} \u{fffd} \u{fffd}"),
            ("a\u{64b}", "a"),
            ("ẹ\u{300}kọ\u{301} ṣ ń", "ẹ\u{300}kọ\u{301} ṣ ń"),
            ("one two three four five", "one two three four fi…"),
            (
                "unbreakable",
                "u\u{200b}n\u{200b}b\u{200b}r\u{200b}e\u{200b}a\u{200b}k\u{200b}a\u{200b}b\u{200b}l\u{200b}e\u{200b}",
            ),
            (
                "accounts@shop.example",
                "accounts@\u{200b}shop.\u{200b}example\u{200b}",
            ),
            ("شركة لاغوس", "\u{200f}شركة لاغوس"),
            ("12 שלום", "\u{200f}12 שלום"),
            ("Lagos شركة", "Lagos شركة"),
            ("", ""),
            ("\u{200b}", ""),
        ] {
            assert_eq!(printable_text(text, SPACE), printed, "{text:?}");
        }
    }

    #[test]
    fn a_note_keeps_its_lines_up_to_a_number() {
        for (text, printed) in [
            ("a\r\n\nb\u{2028}c\n \n", &["a", "b", "c"][..]),
            ("a\r\n\nb\u{2028}c\nd\ne", &["a", "b", "c", "…"]),
            ("\n", &[]),
        ] {
            assert_eq!(printable_lines(text, SPACE, 3), printed, "{text:?}");
        }
    }

    #[test]
    fn a_letter_has_a_number_of_marks_that_can_be_printed() {
        for (marks, printed) in [(100, 100), (200, 0)] {
            let text = format!("A{}b", "\u{301}".repeat(marks));
            let expected = format!("A{}b", "\u{301}".repeat(printed));
            assert_eq!(fit_text(&text, 9), expected, "{marks}");
        }
    }
}
