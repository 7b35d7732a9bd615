//! The rules for the passwords that people choose. Length makes a password hard to guess (NIST SP 800-63B, OWASP ASVS
//! 6.2), so no kind of character is required. The most common passwords are refused, even if they are repeated or have
//! digits or signs around them.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The allowed length of a password, in characters. A longer password would only take longer to hash.
pub const PASSWORD_CHARS: RangeInclusive<usize> = 12..=128;

const DISTINCT_CHARS_MIN: usize = 5;

static COMMON_PASSWORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("common_passwords.txt").lines();
    lines.filter(|line| !line.starts_with("# ")).collect()
});

/// The reason why a password is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordFault {
    #[error("The password needs 12 characters at least and 128 at most.")]
    Length,
    #[error(
        "This password is one of those that everybody tries first. Choose another, such as a few words."
    )]
    Common,
}

/// Refuses a password that is too short, too long, or easy to guess.
pub fn check(password: &str) -> Result<(), PasswordFault> {
    if !PASSWORD_CHARS.contains(&password.chars().count()) {
        return Err(PasswordFault::Length);
    }
    if is_common(password) {
        Err(PasswordFault::Common)
    } else {
        Ok(())
    }
}

/// True for the 10,000 most common passwords in upper or lower case, alone, repeated, or with digits and signs around
/// them. Also true for sequences such as `123456789012` and for texts with few different characters.
pub fn is_common(password: &str) -> bool {
    let text = password.trim().to_lowercase();
    let core = text.trim_matches(|letter: char| !letter.is_alphabetic());
    let distinct: HashSet<_> = text.chars().collect();
    distinct.len() < DISTINCT_CHARS_MIN
        || is_sequence(&text)
        || [text.as_str(), core].iter().any(|text| {
            COMMON_PASSWORDS.contains(text) || COMMON_PASSWORDS.contains(repeated_part(text))
        })
}

/// Returns the shortest text whose repetition gives this text; the text itself if nothing repeats.
fn repeated_part(text: &str) -> &str {
    let ends = text.char_indices().map(|(start, _)| start).skip(1);
    let mut parts = ends
        .map(|end| &text[..end])
        .filter(|part| text.len().is_multiple_of(part.len()));
    parts
        .find(|part| part.repeat(text.len() / part.len()) == text)
        .unwrap_or(text)
}

/// True if at least three quarters of the characters differ by at most one from the character before, as in `abcdefgh`.
fn is_sequence(text: &str) -> bool {
    let letters: Vec<_> = text.chars().map(u32::from).collect();
    let steps = letters.windows(2);
    let wanted = steps.len();
    let small = steps
        .filter(|pair| matches!(pair, [one, next] if one.abs_diff(*next) <= 1))
        .count();
    small * 4 >= wanted * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_ten_thousand_passwords() {
        assert_eq!(COMMON_PASSWORDS.len(), 10_000);
    }

    #[test]
    fn what_everybody_tries_first_is_refused_in_every_spelling() {
        for common in [
            "password1234",
            "PassWord2026!",
            "  qwertyuiop ",
            "!!qwertyuiop99",
            "passwordpassword",
            "abc123abc123",
            "Iloveyou!!!!!",
            "123456789012",
            "abcdefghijklm",
            "987654321098",
            "aaaaaaaaaaaa",
            "121212121212",
            "qwerty123456",
        ] {
            assert!(is_common(common), "{common}");
        }
        for own in [
            "a few easy words",
            "correct horse battery",
            "Tr0ub4dor&3xyz",
            "zP9-krQ2_tuv",
            "мой длинный пароль",
            "four plain words here",
        ] {
            assert_eq!(check(own), Ok(()), "{own}");
        }
    }

    #[test]
    fn a_password_has_a_length() {
        for (password, expected) in [
            ("elevenchars".to_owned(), Err(PasswordFault::Length)),
            ("twelve-chars".to_owned(), Ok(())),
            ("zażółć gęślą".to_owned(), Ok(())),
            ("a few easy words".repeat(8), Ok(())),
            ("a few easy words".repeat(9), Err(PasswordFault::Length)),
        ] {
            assert_eq!(check(&password), expected, "{password}");
        }
    }
}
