//! What an email address looks like that can be delivered to, without quoting and comments.

/// Characters of an address (RFC 5321, 4.5.3.1, and what a column holds).
const ADDRESS_MAX: usize = 255;
const LOCAL_PART_MAX: usize = 64;

/// A local part, one `@`, and a name with a dot: what can be delivered to, without quoting and comments.
pub fn is_email(text: &str) -> bool {
    if text.chars().count() > ADDRESS_MAX {
        return false;
    }
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_word = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.contains("..")
    };
    let is_label = |label: &str| {
        let inner = |letter: char| letter.is_alphanumeric() || letter == '-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.chars().all(inner)
    };
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || "()<>,;:\\\"[]@".contains(letter);
    is_word(local)
        && local.chars().count() <= LOCAL_PART_MAX
        && !local.contains(is_odd)
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_delivered_to_is_no_address() {
        for text in ["ada@example.com", "a.b+c@sub.example.co", "jos\u{e9}@ex\u{e4}mple.com"] {
            assert!(is_email(text), "{text}");
        }
        for text in [
            "",
            "ada",
            "ada@",
            "@example.com",
            "ada@example",
            "a@b@c.com",
            "a b@c.com",
            "a..b@c.com",
            "a@-c.com",
        ] {
            assert!(!is_email(text), "{text}");
        }
        assert!(!is_email(&format!("{}@example.com", "a".repeat(65))));
    }
}
