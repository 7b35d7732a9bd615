//! The rule for email addresses: the usual form only, without the quoted local parts and comments that RFC 5322 allows.

use unicode_normalization::UnicodeNormalization;

use crate::domain::kernel::invisible::{is_invisible, is_unprintable};

/// The maximum number of characters in an address.
const CHARS_MAX: usize = 255;
/// The maximum number of characters before the `@` (RFC 5321, section 4.5.3.1.1).
const LOCAL_CHARS_MAX: usize = 64;

/// True if the text is a local part, one `@`, and a domain with a dot.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    text.chars().count() <= CHARS_MAX
        && has_well_placed_dots(local)
        && local.chars().count() <= LOCAL_CHARS_MAX
        && !local.contains(is_forbidden_in_local_part)
        && domain.contains('.')
        && domain.split('.').all(is_host_name_label)
}

/// Returns the form of an address in which two spellings of one address are equal: trimmed, in lower case and in one
/// Unicode encoding (NFC). Devices write the same letter with an accent as one character or as two.
pub fn email_key(text: &str) -> String {
    text.trim().to_lowercase().nfc().collect()
}

/// Returns the keys that a stored row with this address may have: the present key, and the key of a row from before
/// keys were converted to NFC.
pub fn stored_email_keys(text: &str) -> [String; 2] {
    [email_key(text), text.trim().to_lowercase()]
}

/// True for a text that is not empty, has no dot at its ends and no two dots in a row.
fn has_well_placed_dots(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.contains("..")
}

/// True for a character that must not stand in a local part.
fn is_forbidden_in_local_part(letter: char) -> bool {
    letter.is_whitespace()
        || is_unprintable(letter)
        || is_invisible(letter)
        || "()<>,;:\\\"[]@".contains(letter)
}

/// True for one part of a host name, between two dots.
fn is_host_name_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_local_part_and_a_name_with_a_dot() {
        let local = "x".repeat(64);
        for text in [
            "a@example.com",
            "a.b+c@ex-ample.co",
            "\u{e9}@b\u{fc}cher.example",
            &format!("{local}@example.com"),
        ] {
            assert!(is_email(text), "{text}");
        }
        for text in [
            "",
            "a",
            "@example.com",
            "a@",
            "a@b",
            "a@@example.com",
            "a b@example.com",
            "a\u{200b}b@example.com",
            "\u{202e}a@example.com",
            ".a@example.com",
            "a..b@example.com",
            "a@-example.com",
            "a@example..com",
            "a@example.com ",
            "<a@example.com>",
            &format!("{local}x@example.com"),
            &format!("a@{}.com", "x".repeat(255)),
        ] {
            assert!(!is_email(text), "{text:?}");
        }
    }

    #[test]
    fn an_address_has_one_key_however_it_is_written() {
        for (text, key) in [
            (" Ada@Example.COM ", "ada@example.com"),
            ("\u{e9}@example.com", "\u{e9}@example.com"),
            ("e\u{301}@example.com", "\u{e9}@example.com"),
            ("E\u{301}@example.com", "\u{e9}@example.com"),
            ("e@example.com", "e@example.com"),
        ] {
            assert_eq!(email_key(text), key, "{text:?}");
        }
    }
}
