//! Normal forms of texts: two texts that people consider equal have the same normal form. People write tax numbers with
//! blanks, dashes, dots, slashes and invisible characters, but two spellings of one tax number must not become two
//! taxpayers.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::domain::kernel::invisible::is_invisible;

/// Returns the text trimmed, in lower case and in one Unicode encoding (NFKC), for searches.
pub fn fold_for_search(text: &str) -> String {
    if text.is_ascii() {
        return text.trim().to_ascii_lowercase();
    }
    // The conversion to upper case first makes "ß" equal "SS", and the sigma at the end of a Greek word equal any other
    // sigma.
    text.trim()
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkc()
        .collect()
}

/// Returns the letters and digits of a tax number in lower case and NFKC, with the digits of every script as ASCII;
/// `None` if it has no letters or digits.
pub fn normal_tin(text: &str) -> Option<String> {
    let written: String = text
        .nfkc()
        .filter(|letter| is_significant(*letter))
        .map(to_ascii_digit)
        .collect();
    let normal: String = fold_for_search(&written)
        .chars()
        .filter(|letter| is_significant(*letter))
        .collect();
    (!normal.is_empty()).then_some(normal)
}

/// True if two tax numbers have the same normal form. A tax number without letters and digits equals no other.
pub fn is_same_tin(first: &str, second: &str) -> bool {
    normal_tin(first).is_some_and(|first| Some(first) == normal_tin(second))
}

fn is_significant(letter: char) -> bool {
    letter.is_alphanumeric() && !is_combining_mark(letter) && !is_invisible(letter)
}

/// Returns the ASCII digit for a decimal digit of any script; other characters stay. Unicode encodes the digits of a
/// script in order and without gaps, so a digit's value is its distance from the start of its run.
fn to_ascii_digit(letter: char) -> char {
    let is_digit = |letter: &char| letter.general_category() == GeneralCategory::DecimalNumber;
    if letter.is_ascii() || !is_digit(&letter) {
        return letter;
    }
    let before = (0..u32::from(letter))
        .rev()
        .map_while(char::from_u32)
        .take_while(is_digit)
        .count();
    u32::try_from(before % 10)
        .ok()
        .and_then(|value| char::from_digit(value, 10))
        .unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_number_is_its_letters_and_digits_however_it_is_written() {
        let spellings = [
            "12345678-0001",
            "123456780001",
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
            "\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}\u{667}\u{668}-\u{660}\u{660}\u{660}\u{661}",
            "\u{967}\u{968}\u{969}\u{96a}\u{96b}\u{96c}\u{96d}\u{96e}-\u{966}\u{966}\u{966}\u{967}",
            "\u{b9}\u{b2}\u{b3}45678\u{207b}\u{2070}\u{2070}\u{2070}\u{b9}",
            "1\u{fe0f}\u{20e3}2345678-000\u{e0031}1",
            "12345678\u{17b4}\u{34f}\u{115f}-0001",
            "\u{967}\u{968}345678-0001",
        ];
        for written in spellings {
            assert_eq!(
                normal_tin(written).as_deref(),
                Some("123456780001"),
                "{written:?}"
            );
            assert!(is_same_tin(written, spellings[0]));
        }
        assert_eq!(normal_tin("TIN-a").as_deref(), Some("tina"));
        assert_eq!(
            normal_tin("ＴＩＮ-Á"),
            normal_tin("tina\u{301}"),
            "an accent makes another letter, in either encoding"
        );
        assert!(!is_same_tin("12345678-0001", "12345678-0002"));
    }

    #[test]
    fn the_digits_of_a_script_are_one_run_of_ten() {
        let digits: Vec<char> = ('\0'..=char::MAX)
            .filter(|letter| letter.general_category() == GeneralCategory::DecimalNumber)
            .collect();
        assert!(
            digits.len() > 700 && digits.len().is_multiple_of(10),
            "{}",
            digits.len()
        );
        for ten in digits.chunks(10) {
            let values: String = ten.iter().copied().map(to_ascii_digit).collect();
            assert_eq!(values, "0123456789", "{ten:?}");
        }
    }

    #[test]
    fn a_tax_number_without_letters_and_digits_is_none_and_the_same_as_none() {
        for written in ["", " - ", "\u{200b}", "\u{3164}", "./_", "\u{301}"] {
            assert_eq!(normal_tin(written), None, "{written:?}");
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
            assert_eq!(fold_for_search(one), fold_for_search(other));
        }
        assert_eq!(fold_for_search(" A b "), "a b");
    }
}
