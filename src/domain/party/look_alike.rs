//! Detects tax numbers that people cannot tell apart, by the look-alike characters of Unicode (UTS 39). No document
//! goes to the wrong taxpayer because of them, since the service compares normal forms. But a person who reads a list
//! could mistake one taxpayer for another.

use unicode_security::MixedScript;
use unicode_security::confusable_detection::skeleton as looks;

use crate::domain::party::normal_form;

/// Returns a text that is the same for all tax numbers that look alike: `0` and `O`, and `1`, `I` and `l`, become the
/// same. Tax numbers are compared without case, so each letter is converted to upper case first.
pub fn skeleton(tin: &str) -> String {
    let capitals = normal_form::normal_tin(tin)
        .unwrap_or_default()
        .to_uppercase();
    looks(&capitals).collect::<String>().to_lowercase()
}

/// Returns true if a tax number mixes scripts, or has a letter of another script that looks like an ASCII letter or
/// digit, such as a Cyrillic O. No register issues such numbers.
pub fn is_imitation(tin: &str) -> bool {
    let normal = normal_form::normal_tin(tin).unwrap_or_default();
    !normal.as_str().is_single_script() || normal.chars().any(is_ascii_look_alike)
}

fn is_ascii_look_alike(letter: char) -> bool {
    let cases = [
        letter.to_lowercase().to_string(),
        letter.to_uppercase().to_string(),
    ];
    !letter.is_ascii()
        && cases
            .iter()
            .any(|case| looks(case).all(|seen| seen.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spellings of one tax number with letters in the place of digits. True: the spelling is refused even if no
    /// similar number is stored.
    const LOOK_ALIKES: [(&str, bool); 8] = [
        ("12345678-OOO1", false),
        ("12345678-ooo1", false),
        ("l2345678-0001", false),
        ("I2345678-0001", false),
        ("\u{2160}2345678-0001", false),
        ("12345678-\u{41e}\u{41e}\u{41e}1", true),
        ("12345678-\u{3bf}001", true),
        ("\u{4cf}2345678-0001", true),
    ];

    #[test]
    fn tax_numbers_that_look_alike_have_one_skeleton_or_are_refused() {
        for (tin, is_refused) in LOOK_ALIKES {
            assert!(!normal_form::is_same_tin(tin, "12345678-0001"), "{tin:?}");
            assert_eq!(is_imitation(tin), is_refused, "{tin:?}");
            assert!(
                is_refused || skeleton(tin) == skeleton("12345678-0001"),
                "{tin:?}"
            );
        }
    }

    #[test]
    fn other_tax_numbers_have_other_skeletons() {
        for (one, other) in [
            ("12345678-0001", "12345678-0002"),
            ("TIN-A1", "TIN-B1"),
            ("\u{c1}1", "A1"),
            ("SUP1", "SUP2"),
        ] {
            assert_ne!(skeleton(one), skeleton(other));
        }
        for real in [
            "12345678-0001",
            "RSSMRA85T10A562S",
            "IE6388047V",
            "TIN-\u{c1}",
            "\u{416}1",
        ] {
            assert!(!is_imitation(real), "{real}");
        }
        assert!(is_imitation("TIN-\u{416}"), "Latin and Cyrillic letters");
    }

    #[test]
    fn the_skeleton_of_ascii_is_the_one_that_the_migration_computes() {
        let letters: String = ('0'..='9').chain('a'..='z').collect();
        let replaced = letters.replace('0', "o").replace(['1', 'i'], "l");
        assert_eq!(skeleton(&letters), replaced);
    }
}
