//! Characters that nobody can see, or that change the order in which other characters are read. In a number or a name
//! that identifies something, they deceive people: two different numbers look the same, or a number reads backwards.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Characters that are drawn as nothing or as a blank, although Unicode classifies them as letters, marks or symbols.
const DRAWN_AS_NOTHING: [char; 9] = [
    '\u{34f}',  // combining grapheme joiner
    '\u{115f}', // Hangul fillers
    '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{17b4}', // Khmer inherent vowels
    '\u{17b5}', '\u{180f}', // Mongolian variation selector four
    '\u{2800}', // braille blank
];

/// Returns true for characters that have no visible shape of their own: zero-width characters, direction controls,
/// tags, variation selectors and fillers. Blanks and control characters are not among them.
pub fn is_invisible(letter: char) -> bool {
    letter.general_category() == GeneralCategory::Format
        || is_variation_selector(letter)
        || DRAWN_AS_NOTHING.contains(&letter)
}

/// Returns true for control characters, and for the two noncharacters that XML 1.0 cannot carry (section 2.2,
/// Characters), so that each stored text fits into every file that is made of it.
pub fn is_unprintable(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

fn is_variation_selector(letter: char) -> bool {
    matches!(letter, '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns true if the text has no character that anybody could see.
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_whitespace() || is_invisible(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_carry_is_unprintable() {
        let is_xml =
            |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        for letter in char::MIN..=char::MAX {
            assert!(is_xml(letter) || is_unprintable(letter), "{letter:?}");
            assert!(
                !is_unprintable(letter) || letter.is_control() || !is_xml(letter),
                "{letter:?}"
            );
        }
    }

    #[test]
    fn what_nobody_can_see_is_invisible() {
        let hidden = "\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{202a}\u{202d}\u{202e}\u{2060}\u{2066}\u{2069}\u{61c}\u{ad}\
            \u{feff}\u{180e}\u{fe0f}\u{e0100}\u{e0031}\u{34f}\u{3164}\u{ffa0}\u{115f}\u{17b4}\u{2800}";
        for letter in hidden.chars() {
            assert!(is_invisible(letter), "{letter:?}");
        }
        for letter in "aZ09 -/._\u{e9}\u{301}\u{4e2d}\u{967}\u{a0}\u{20e3}\n".chars() {
            assert!(!is_invisible(letter), "{letter:?}");
        }
        assert!(is_blank("") && is_blank(" \u{200b}\u{3000}") && !is_blank("\u{200b}a"));
    }
}
