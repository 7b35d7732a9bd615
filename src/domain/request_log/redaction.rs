//! Hides secrets in a text that a caller sent or got: a body, or a path with its query string. The text need not be
//! valid, nor whole: what a caller got wrong, or what is cut off, holds secrets too. So nothing is parsed. A field is
//! recognised by its name, in whatever notation, and a key or a link also by its own beginning.

use std::iter;

/// What stands for a secret.
const REPLACEMENT: &str = "(hidden)";

/// The parts of the names of fields that are secret, in lower case without signs. Any name that contains one is secret.
const SECRET_NAME_PARTS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "privatekey",
    "cryptokey",
    "credential",
    "invitation",
    "recoverycode",
    "signingkey",
];
/// Names that are secret as a whole: the settings with which an ERP system is called.
const SECRET_NAMES: [&str; 2] = ["auth", "pwd"];
/// Texts that a secret follows, whatever field holds them.
const SECRET_BEGINNINGS: [&str; 9] = [
    "tpk_",
    "sik_",
    "opk_",
    "whsec_",
    "/sign-in/invitation/",
    "/authority/notifications/",
    "/verify/",
    "/shared/deliveries/",
    "Bearer ",
];

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    pub text: String,
    /// True if something was hidden.
    pub hides: bool,
}

/// Returns the text without the values of secret fields, without keys and links, and without the credentials of URLs.
pub fn redact(text: &str) -> Redacted {
    let mut redacted = Redacted {
        text: String::with_capacity(text.len()),
        hides: false,
    };
    let mut rest = text;
    while !rest.is_empty() {
        rest = redacted.take_piece(rest);
    }
    redacted
}

impl Redacted {
    /// Takes over the next piece: a secret with its replacement, a name, or a single sign. Returns what follows.
    fn take_piece<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(start) = secret_beginning(rest) {
            let (shown, follows) = rest.split_at(start);
            let length = follows.find(ends_secret).unwrap_or(follows.len());
            self.text.push_str(shown);
            return self.hide(follows, length, REPLACEMENT);
        }
        if let Some(follows) = rest.strip_prefix("://") {
            self.text.push_str("://");
            return match credentials_length(follows) {
                Some(length) => self.hide(follows, length, REPLACEMENT),
                None => follows,
            };
        }
        let length = name_length(rest);
        if length == 0 {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let (sign, follows) = rest.split_at(first);
            self.text.push_str(sign);
            return follows;
        }
        // A key may stand in the middle of what looks like a name.
        let key = (1..length).find(|at| rest.get(*at..).and_then(secret_beginning).is_some());
        let (name, follows) = rest.split_at(key.unwrap_or(length));
        self.text.push_str(name);
        if !is_secret_name(name) {
            return follows;
        }
        let Some(start) = value_start(follows) else {
            return follows;
        };
        let (between, value) = follows.split_at(start);
        self.text.push_str(between);
        let length = value_length(value);
        let (shown, _) = value.split_at(length);
        if ["", "null", "true", "false"].contains(&shown) {
            return value;
        }
        let is_bare = !shown.starts_with(['"', '\'', '{', '[']);
        let quoted = format!("\"{REPLACEMENT}\"");
        self.hide(value, length, if is_bare { REPLACEMENT } else { &quoted })
    }

    /// Replaces the first bytes of a text. Returns what follows them.
    fn hide<'a>(&mut self, text: &'a str, length: usize, replacement: &str) -> &'a str {
        let (secret, follows) = text.split_at(length);
        if !secret.is_empty() {
            self.text.push_str(replacement);
            self.hides = true;
        }
        follows
    }
}

/// Returns the length of what comes before the secret, if the text begins with a text that a secret follows.
fn secret_beginning(text: &str) -> Option<usize> {
    let found = SECRET_BEGINNINGS.iter().find(|beginning| {
        text.get(..beginning.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    });
    found.map(|beginning| beginning.len())
}

/// True for a sign that no key and no token has.
fn ends_secret(sign: char) -> bool {
    !(sign.is_ascii_alphanumeric() || "-_.+/=~%".contains(sign))
}

/// Returns the length of the user and the password of a URL, whose scheme stands before the text.
fn credentials_length(text: &str) -> Option<usize> {
    let end = text.find(|sign: char| "/?#\"'<> \\".contains(sign));
    text[..end.unwrap_or(text.len())].rfind('@')
}

/// Returns the length of the name that the text begins with; 0 if it begins with none. Escaped characters are part of it.
fn name_length(text: &str) -> usize {
    let mut length = 0;
    while let Some(step) = name_step(&text[length..]) {
        length += step.length;
    }
    length
}

/// A character of a name, and how many bytes it takes: an escaped one takes more than one.
struct NameStep {
    letter: char,
    length: usize,
}

fn name_step(text: &str) -> Option<NameStep> {
    let escaped = |prefix: &str, digits: usize| {
        let code = text.strip_prefix(prefix)?.get(..digits)?;
        let letter = char::from_u32(u32::from_str_radix(code, 16).ok()?)?;
        let length = prefix.len() + digits;
        Some(NameStep { letter, length })
    };
    let first = text.chars().next()?;
    match first {
        '\\' => escaped("\\u", 4),
        '%' => escaped("%", 2),
        first if first.is_ascii_alphanumeric() || "-_.".contains(first) => Some(NameStep {
            letter: first,
            length: 1,
        }),
        _ => None,
    }
}

fn is_secret_name(name: &str) -> bool {
    let mut rest = name;
    let letters = iter::from_fn(|| {
        let step = name_step(rest)?;
        rest = &rest[step.length..];
        Some(step.letter)
    });
    let plain: String = letters
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    SECRET_NAMES.contains(&plain.as_str())
        || SECRET_NAME_PARTS.iter().any(|part| plain.contains(part))
}

/// Returns where the value of a field begins whose name stands before the text; `None` if no value follows.
fn value_start(text: &str) -> Option<usize> {
    let after_quote = text.trim_start_matches(['\\', '"', '\'']);
    let sign = after_quote.trim_start();
    let value = sign.strip_prefix([':', '='])?.trim_start();
    Some(text.len() - value.len())
}

/// Returns the length of the value that the text begins with. A value without an end goes to the end of the text.
fn value_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    // A value that begins with a backslash is in a JSON text inside JSON, where quotes are escaped.
    let is_inside_text = text.starts_with('\\');
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        match (quote, sign) {
            _ if is_escaped => is_escaped = false,
            (_, '\\') if quote.is_some() => is_escaped = true,
            (Some(open), sign) if sign == open => {
                quote = None;
                if depth == 0 {
                    return end;
                }
            }
            (None, '"' | '\'') if at > 0 && depth == 0 && !is_inside_text => return at,
            (None, '"' | '\'') => quote = Some(sign),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') if depth <= 1 => return if depth == 0 { at } else { end },
            (None, '}' | ']') => depth -= 1,
            (None, ',' | '&' | ';' | '<' | '\n' | '\r') if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_every_notation_and_what_is_around_it_stays() {
        for (text, expected) in [
            (
                r#"{"password":"a b","name":"Ada"}"#,
                r#"{"password":"(hidden)","name":"Ada"}"#,
            ),
            (
                r#"{"a":{"b":[{"api_key":"x"}]},"c":1}"#,
                r#"{"a":{"b":[{"api_key":"(hidden)"}]},"c":1}"#,
            ),
            (
                r#"{ "clientSecret" : "q\"x", "n":1}"#,
                r#"{ "clientSecret" : "(hidden)", "n":1}"#,
            ),
            (
                r#"{"secrets":["a","b"],"n":1}"#,
                r#"{"secrets":"(hidden)","n":1}"#,
            ),
            (
                r#"{"auth":{"type":"API_KEY","value":"v"},"n":1}"#,
                r#"{"auth":"(hidden)","n":1}"#,
            ),
            (
                r#"{"pass\u0077ord":"x"}"#,
                r#"{"pass\u0077ord":"(hidden)"}"#,
            ),
            (
                r#"{"refresh_token":12345}"#,
                r#"{"refresh_token":(hidden)}"#,
            ),
            // What is cut off or malformed.
            (r#"{"password":"cut o"#, r#"{"password":"(hidden)""#),
            (r#"{"auth":{"a":"b","#, r#"{"auth":"(hidden)""#),
            (
                "{'password': 'x', 'n': 1}",
                "{'password': \"(hidden)\", 'n': 1}",
            ),
            ("password: x\nname: y", "password: (hidden)\nname: y"),
            (
                r#"{"raw":"{\"password\":\"x\",\"n\":1}"}"#,
                r#"{"raw":"{\"password\":(hidden)}"#,
            ),
            (
                r#"{"d":"Password: reset kit","n":1}"#,
                r#"{"d":"Password: (hidden)","n":1}"#,
            ),
            // Query strings.
            ("/v1/x?api_key=abc&page=2", "/v1/x?api_key=(hidden)&page=2"),
            (
                "/v1/x?api%5Fkey=abc&page=2",
                "/v1/x?api%5Fkey=(hidden)&page=2",
            ),
            // What shows by its beginning.
            (
                r#"{"note":"tpk_Abc-123 is it"}"#,
                r#"{"note":"tpk_(hidden) is it"}"#,
            ),
            (r#"{"note":"whsec_a+b/c="}"#, r#"{"note":"whsec_(hidden)"}"#),
            (
                "https://h/sign-in/invitation/aB-c\"",
                "https://h/sign-in/invitation/(hidden)\"",
            ),
            ("/V1/x/SIK_abc/y z", "/V1/x/SIK_(hidden) z"),
            ("bearer abc.def", "bearer (hidden)"),
            ("x-tpk_abc, y", "x-tpk_(hidden), y"),
            (
                r#"{"url":"https://u:p@h.example/p"}"#,
                r#"{"url":"https://(hidden)@h.example/p"}"#,
            ),
        ] {
            let redacted = redact(text);
            assert_eq!(redacted.text, expected);
            assert!(redacted.hides, "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in [
            "",
            r#"{"invoice_no":"INV-1","lines":[{"quantity":1,"name":"Caf\u00e9 \"x\""}]}"#,
            r#"{"password":null,"has_token":true,"secret":false}"#,
            "/v1/tax-payers/invoices?q=a%20b&page=2",
            r#"{"webhook_url":"https://h.example:8443/a@b"}"#,
            "50% and \\u12 and \u{e9}",
        ] {
            let redacted = redact(text);
            assert_eq!((redacted.text.as_str(), redacted.hides), (text, false));
        }
    }
}
