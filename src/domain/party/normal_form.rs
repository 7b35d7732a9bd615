//! Normal forms of texts. Two texts that people consider equal have the same normal form. Tax numbers contain blanks,
//! dashes, dots, slashes and invisible characters. Two spellings of one tax number must never become two taxpayers.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Characters that Unicode classifies as letters although they are invisible.
const FILLERS: [char; 2] = ['\u{115F}', '\u{1160}'];

/// Returns the text trimmed, in lower case and in one Unicode encoding (NFKC), for searches.
pub fn folded(text: &str) -> String {
    // Upper case first makes "ß" equal "SS", and the sigma at the end of a Greek word equal any other sigma.
    text.trim().nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

/// Returns the letters and digits of a tax number in lower case and NFKC; `None` if it has no letters or digits.
pub fn tin(text: &str) -> Option<String> {
    let written: String = text.nfkc().filter(|letter| counts(*letter)).collect();
    let normal: String = folded(&written).chars().filter(|letter| counts(*letter)).collect();
    (!normal.is_empty()).then_some(normal)
}

/// True if two tax numbers have the same normal form. A tax number without letters and digits equals no other.
pub fn is_same_tin(one: &str, other: &str) -> bool {
    tin(one).is_some_and(|one| Some(one) == tin(other))
}

fn counts(letter: char) -> bool {
    letter.is_alphanumeric() && !is_combining_mark(letter) && !FILLERS.contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_number_is_its_letters_and_digits_however_it_is_written() {
        let spellings = [
            "12345678-0001",
            " 12345678 0001\t",
            "12345678/0001",
            "12.345.678_0001",
            "１２３４５６７８－０００１",
            "12345678\u{2013}0001",
            "12345678\u{2212}0001",
            "12345678\u{2010}\u{2011}\u{2012}\u{2014}\u{2015}\u{fe58}\u{ff0d}0001",
            "1234\u{200b}5678\u{200d}0\u{feff}001",
            "12345678\u{a0}0001",
            "12345678\u{202f}00\u{ad}01",
            "12345678\u{2800}0001\u{3164}\u{ffa0}",
            "\u{202e}12345678-0001\u{2066}",
            "1\u{301}2345678\u{345}-00\u{20dd}01",
            "①②③④⑤⑥⑦⑧-0001",
            "𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖-𝟶𝟶𝟶𝟷",
        ];
        for written in spellings {
            assert_eq!(tin(written).as_deref(), Some("123456780001"), "{written:?}");
            assert!(is_same_tin(written, spellings[0]));
        }
        assert_eq!(tin("TIN-a").as_deref(), Some("tina"));
        assert_eq!(tin("ＴＩＮ-Á"), tin("tina\u{301}"), "an accent makes another letter, in either encoding");
        assert!(!is_same_tin("12345678-0001", "12345678-0002"));
    }

    #[test]
    fn a_tax_number_without_letters_and_digits_is_none_and_the_same_as_none() {
        for written in ["", " - ", "\u{200b}", "\u{3164}", "./_", "\u{301}"] {
            assert_eq!(tin(written), None, "{written:?}");
            assert!(!is_same_tin(written, written));
        }
    }

    #[test]
    fn a_text_is_found_in_any_case_and_encoding() {
        for (one, other) in [
            ("ÖZIL Trading", "özil trading"),
            ("Ọláwálé", "ỌLÁWÁLÉ"),
            ("Ọláwálé", "O\u{323}la\u{301}wa\u{301}le\u{301}"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("Ｆｕｌｌ", "full"),
        ] {
            assert_eq!(folded(one), folded(other));
        }
        assert_eq!(folded(" A b "), "a b");
    }
}
