//! Detects keys and passwords that an attacker would try first, such as `changeme`.

/// A key of 32 random bytes practically always has at least this many different byte values.
const DISTINCT_BYTES_MIN: usize = 10;
const DISTINCT_CHARS_MIN: usize = 5;
/// A secret whose letters form only well-known words, as in `password2024`, needs at least this many digits.
const DIGITS_MIN: usize = 12;
/// Well-known words that guessable secrets are made of.
const GUESSABLE_WORDS: [&str; 28] = [
    "password",
    "passwort",
    "passwd",
    "secret",
    "changeme",
    "change",
    "replaceme",
    "admin",
    "root",
    "test",
    "testing",
    "token",
    "key",
    "api",
    "example",
    "default",
    "einvoice",
    "demo",
    "letmein",
    "welcome",
    "qwerty",
    "abc",
    "the",
    "my",
    "please",
    "sandbox",
    "dev",
    "prod",
];

/// Returns true if a binary key cannot be random, because it has few different bytes or is a sequence.
pub(super) fn is_patterned(key: &[u8]) -> bool {
    count_distinct(key) < DISTINCT_BYTES_MIN || is_sequence(key)
}

/// True if a secret has few different characters or is a sequence, or if its letters are well-known words only and its
/// digits are few or a sequence.
pub(super) fn is_guessable(secret: &str) -> bool {
    if count_distinct(secret.as_bytes()) < DISTINCT_CHARS_MIN || is_sequence(secret.as_bytes()) {
        return true;
    }
    let (letters, digits): (String, String) = secret
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .partition(|letter| letter.is_alphabetic());
    let has_known_words = !letters.is_empty() && has_only_words(&letters);
    has_known_words && (digits.len() < DIGITS_MIN || is_sequence(digits.as_bytes()))
}

fn count_distinct(bytes: &[u8]) -> usize {
    let mut distinct = bytes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.len()
}

/// True if three quarters of the bytes differ by at most one from the byte before, as in `aabbcc` and `123456`.
fn is_sequence(bytes: &[u8]) -> bool {
    let small_steps = bytes
        .windows(2)
        .filter(|pair| pair[0].abs_diff(pair[1]) <= 1 || **pair == *b"90" || **pair == *b"09")
        .count();
    bytes.len() > 2 && small_steps * 4 >= (bytes.len() - 1) * 3
}

fn has_only_words(letters: &str) -> bool {
    // Each entry is the length of a prefix of `letters` that consists of known words only. The loop extends each
    // prefix by one more word.
    let mut prefix_lengths = vec![0];
    while let Some(prefix_length) = prefix_lengths.pop() {
        if prefix_length == letters.len() {
            return true;
        }
        let rest = letters.get(prefix_length..).unwrap_or_default();
        prefix_lengths.extend(
            GUESSABLE_WORDS
                .iter()
                .filter(|word| rest.starts_with(**word))
                .map(|word| prefix_length + word.len()),
        );
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_follows_a_pattern_is_detected() {
        let sequence: Vec<u8> = (0..32).collect();
        for key in [
            &[0; 32][..],
            &[7; 32],
            &sequence,
            b"passwordpasswordpasswordpassword",
            &[1, 2].repeat(16),
        ] {
            assert!(is_patterned(key), "{key:?}");
        }
        let hex_digits = b"9f86d081884c7d659a2feaa0c55ad015";
        let mut random = [0; 32];
        for _ in 0..1_000 {
            aws_lc_rs::rand::fill(&mut random).unwrap();
            assert!(!is_patterned(&random), "{random:?}");
        }
        assert!(!is_patterned(hex_digits));
    }

    #[test]
    fn guessable_secrets_are_detected_and_random_ones_are_not() {
        for secret in [
            "aaaaaaaaaaaaaaaa",
            "abababababababab",
            "1234567890123456",
            "abcdefghijklmnop",
            "passwordpassword",
            "Password-1234567",
            "my-secret-token-1",
            "change_me_please",
            "test-test-test-test",
            "admin12345678901234567890",
        ] {
            assert!(is_guessable(secret), "{secret}");
        }
        for secret in [
            "0b9bdcd1-5a8e-4a3c-9d8e-2f1f6f0f3c11",
            "a-secret-of-theirs",
            "a-token-of-16-characters",
            "correct horse battery",
            "test_48151623423958",
            "Zk3vR8qLw1TnXy7B",
        ] {
            assert!(!is_guessable(secret), "{secret}");
        }
    }
}
