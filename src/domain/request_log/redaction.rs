//! Hides secrets in a text that a caller sent or received: a body, or a path with its query string. The text may be
//! invalid or cut, and even then contain secrets, so it is not parsed. A secret field is recognised by its name, in any
//! notation. Keys and secret links are also recognised by their beginnings. Escapes of JSON and URLs are decoded for
//! this search, so that they cannot hide a secret from it.

/// The text that replaces a secret.
const REPLACEMENT: &str = "(hidden)";

/// A field is secret if its name contains one of these parts, compared in lower case and without punctuation.
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
/// Fields that are secret if this is their whole name: settings with which an ERP system is called.
const SECRET_NAMES: [&str; 2] = ["auth", "pwd"];
/// Texts that are followed by a secret, in whatever field they are.
const SECRET_BEGINNINGS: [&str; 10] = [
    "tpk_",
    "sik_",
    "opk_",
    "whsec_",
    "/sign-in/invitation/",
    "/sign-in/unsubscribe/",
    "/authority/notifications/",
    "/verify/",
    "/shared/deliveries/",
    "Bearer ",
];

/// The maximum number of backslashes of one escape: JSON text in a JSON text in a JSON text needs seven.
const BACKSLASHES_MAX: usize = 7;

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedText {
    pub text: String,
    /// True if something was hidden.
    pub hides: bool,
}

/// Returns the text in which the values of secret fields, keys, secret links and the credentials of URLs are replaced.
pub fn redact(text: &str) -> RedactedText {
    let mut redacted = RedactedText {
        text: String::with_capacity(text.len()),
        hides: false,
    };
    let mut rest = text;
    while !rest.is_empty() {
        rest = redacted.take_piece(rest);
    }
    redacted
}

impl RedactedText {
    /// Processes the next piece of the text: a secret, which is replaced, a name, or a single character. Returns the
    /// rest.
    fn take_piece<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(start) = secret_beginning_length(rest) {
            let (shown, follows) = rest.split_at(start);
            self.text.push_str(shown);
            return self.hide(follows, secret_length(follows), REPLACEMENT);
        }
        if let Some(separator) = find_url_separator(rest) {
            let (shown, follows) = rest.split_at(separator.length);
            self.text.push_str(shown);
            return match credentials_length(follows, separator.slash_length) {
                Some(length) => self.hide(follows, length, REPLACEMENT),
                None => follows,
            };
        }
        let length = name_length(rest);
        if length == 0 {
            let first = first_character(rest).map_or(0, |step| step.length);
            let (sign, follows) = rest.split_at(first);
            self.text.push_str(sign);
            return follows;
        }
        // The name may contain the beginning of a key. The piece then ends before it.
        let key = decoded_characters(&rest[..length])
            .map(|(at, _)| at)
            .find(|at| secret_beginning_length(&rest[*at..]).is_some());
        let (name, follows) = rest.split_at(key.unwrap_or(length));
        self.text.push_str(name);
        if !is_secret_name(name) {
            return follows;
        }
        let Some(ValueStart { at, is_in_url }) = value_start(follows) else {
            return follows;
        };
        let (between, value) = follows.split_at(at);
        self.text.push_str(between);
        let length = if is_in_url {
            url_part_length(value)
        } else {
            value_length(value)
        };
        let (shown, _) = value.split_at(length);
        if ["", "null", "true", "false"].contains(&shown) {
            return value;
        }
        let is_bare = !shown.starts_with(['"', '\'', '{', '[']);
        let quoted = format!("\"{REPLACEMENT}\"");
        self.hide(value, length, if is_bare { REPLACEMENT } else { &quoted })
    }

    /// Writes `replacement` in place of the first `length` bytes of the text. Returns the text after these bytes.
    fn hide<'a>(&mut self, text: &'a str, length: usize, replacement: &str) -> &'a str {
        let (secret, follows) = text.split_at(length);
        if !secret.is_empty() {
            self.text.push_str(replacement);
            self.hides = true;
        }
        follows
    }
}

/// A character of the text, with the number of bytes that it takes. An escaped character takes several.
#[derive(Clone, Copy)]
struct DecodedCharacter {
    letter: char,
    length: usize,
    is_percent: bool,
}

/// Returns the first character of the text; `None` if the text is empty.
fn first_character(text: &str) -> Option<DecodedCharacter> {
    let letter = text.chars().next()?;
    let escaped = match letter {
        '\\' => decode_backslash_escape(text),
        '%' => decode_percent_escape(text),
        _ => None,
    };
    Some(escaped.unwrap_or(DecodedCharacter {
        letter,
        length: letter.len_utf8(),
        is_percent: false,
    }))
}

/// Decodes `\/` and `\u0041`. In JSON text inside JSON, several backslashes stand before them.
fn decode_backslash_escape(text: &str) -> Option<DecodedCharacter> {
    let backslashes = text.bytes().take(BACKSLASHES_MAX);
    let escape = &text[backslashes.take_while(|byte| *byte == b'\\').count()..];
    let (letter, length) = match escape.strip_prefix('u') {
        Some(code) => (hex_letter(code.get(..4)?)?, 5),
        None => (escape.chars().next().filter(|sign| *sign == '/')?, 1),
    };
    Some(DecodedCharacter {
        letter,
        length: text.len() - escape.len() + length,
        is_percent: false,
    })
}

/// Decodes `%41`. In a URL inside a URL, the percent sign itself is escaped: `%2541`.
fn decode_percent_escape(text: &str) -> Option<DecodedCharacter> {
    let mut code = text.strip_prefix('%')?;
    while let Some(inner) = code.strip_prefix("25")
        && inner.get(..2).and_then(hex_letter).is_some()
    {
        code = inner;
    }
    Some(DecodedCharacter {
        letter: hex_letter(code.get(..2)?)?,
        length: text.len() - code.len() + 2,
        is_percent: true,
    })
}

fn hex_letter(digits: &str) -> Option<char> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    char::from_u32(code)
}

/// Returns the characters of the text, each with the byte at which it begins.
fn decoded_characters(text: &str) -> impl Iterator<Item = (usize, DecodedCharacter)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let step = first_character(&text[at..])?;
        at += step.length;
        Some((at - step.length, step))
    })
}

/// Returns the number of bytes that `beginning` takes in the text, with escapes; `None` if the text begins otherwise.
fn beginning_length(text: &str, beginning: &str) -> Option<usize> {
    let mut length = 0;
    for expected in beginning.chars() {
        let step = first_character(&text[length..])?;
        // In a query string a plus sign is a space.
        let is_space = expected == ' ' && step.letter == '+';
        if !is_space && !step.letter.eq_ignore_ascii_case(&expected) {
            return None;
        }
        length += step.length;
    }
    Some(length)
}

/// If the text begins with one of `SECRET_BEGINNINGS`, returns the length of that beginning. The secret follows it.
fn secret_beginning_length(text: &str) -> Option<usize> {
    let first = first_character(text)?.letter;
    SECRET_BEGINNINGS
        .iter()
        .filter(|beginning| beginning.starts_with(|letter| first.eq_ignore_ascii_case(&letter)))
        .find_map(|beginning| beginning_length(text, beginning))
}

/// Returns the length of the key or token at the beginning of the text. Percent-encoded characters belong to it.
fn secret_length(text: &str) -> usize {
    let end =
        decoded_characters(text).find(|(_, step)| !step.is_percent && ends_secret(step.letter));
    end.map_or(text.len(), |(at, _)| at)
}

/// True for a character that keys and tokens never contain.
fn ends_secret(sign: char) -> bool {
    !(sign.is_ascii_alphanumeric() || "-_.+/=~%".contains(sign))
}

/// The `://` after the scheme of a URL. Each of the three characters may be escaped and then takes several bytes.
struct UrlSeparator {
    /// The number of bytes that all three characters take.
    length: usize,
    /// The number of bytes that the last slash takes.
    slash_length: usize,
}

/// Returns the `://` with which the text begins; `None` if it begins otherwise.
fn find_url_separator(text: &str) -> Option<UrlSeparator> {
    let before_slash = beginning_length(text, ":/")?;
    let length = beginning_length(text, "://")?;
    Some(UrlSeparator {
        length,
        slash_length: length - before_slash,
    })
}

/// Returns the length of the user and password at the beginning of the text, which follows the `://` of a URL.
/// `slash_length` is the length of an escaped slash in this URL. `None` if the URL has no credentials.
fn credentials_length(text: &str, slash_length: usize) -> Option<usize> {
    let mut length = None;
    for (at, step) in decoded_characters(text) {
        // A character that is escaped more than the slashes of the URL belongs to the user or the password.
        if step.is_percent && step.length != slash_length {
            continue;
        }
        if step.letter == '@' {
            length = Some(at);
        } else if "/?#\"'<> \\".contains(step.letter) {
            break;
        }
    }
    length
}

/// Returns the length of the field name at the beginning of the text; 0 if there is none. Escaped characters may be
/// part of it.
fn name_length(text: &str) -> usize {
    let end = decoded_characters(text).find(|(_, step)| !is_in_name(*step));
    end.map_or(text.len(), |(at, _)| at)
}

fn is_in_name(step: DecodedCharacter) -> bool {
    let DecodedCharacter { letter, length, .. } = step;
    let is_escaped = length > letter.len_utf8();
    let is_plain = letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    is_plain || (is_escaped && !"/:?#&=,;\"'{}".contains(letter))
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = decoded_characters(name)
        .map(|(_, step)| step.letter.to_ascii_lowercase())
        .filter(char::is_ascii_alphanumeric)
        .collect();
    SECRET_NAMES.contains(&plain.as_str())
        || SECRET_NAME_PARTS.iter().any(|part| plain.contains(part))
}

struct ValueStart {
    at: usize,
    /// True if the `:` or `=` before the value is percent-encoded, because the field is in a text inside a URL.
    is_in_url: bool,
}

/// Returns the byte at which a field's value begins. The text follows the name of the field. `None` if no value
/// follows.
fn value_start(text: &str) -> Option<ValueStart> {
    let mut signs = decoded_characters(text)
        .skip_while(|(_, step)| "\\\"'".contains(step.letter))
        .skip_while(|(_, step)| step.letter.is_whitespace());
    let (_, sign) = signs
        .next()
        .filter(|(_, step)| ":=".contains(step.letter))?;
    let value = signs.find(|(_, step)| !step.letter.is_whitespace());
    Some(ValueStart {
        at: value.map_or(text.len(), |(at, _)| at),
        is_in_url: sign.is_percent,
    })
}

/// Returns the length of the percent-encoded value at the beginning of the text, up to the next part of the URL.
fn url_part_length(text: &str) -> usize {
    text.find(|sign: char| sign.is_whitespace() || "&\"'<>".contains(sign))
        .unwrap_or(text.len())
}

/// Returns the length of the value at the beginning of the text. A value without an end takes the rest of the text.
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
            (
                "https://h/sign-in/unsubscribe/contact-1/invoices/aB\"",
                "https://h/sign-in/unsubscribe/(hidden)\"",
            ),
            ("/V1/x/SIK_abc/y z", "/V1/x/SIK_(hidden) z"),
            ("bearer abc.def", "bearer (hidden)"),
            ("x-tpk_abc, y", "x-tpk_(hidden), y"),
            (
                r#"{"url":"https://u:p@h.example/p"}"#,
                r#"{"url":"https://(hidden)@h.example/p"}"#,
            ),
        ] {
            check_hidden(text, expected);
        }
    }

    #[test]
    fn a_secret_is_hidden_also_where_it_is_escaped() {
        for (text, expected) in [
            // Slashes that JSON writers escape, also in a text inside a text.
            (
                r#"{"url":"https:\/\/u:p@h.example\/a@b"}"#,
                r#"{"url":"https:\/\/(hidden)@h.example\/a@b"}"#,
            ),
            (
                r#"{"raw":"{\"url\":\"https:\\\/\\\/u:p@h\\\/a\"}"}"#,
                r#"{"raw":"{\"url\":\"https:\\\/\\\/(hidden)@h\\\/a\"}"}"#,
            ),
            (
                r#"{"url":"https:\/\/h\/sign-in\/invitation\/aB-c","n":1}"#,
                r#"{"url":"https:\/\/h\/sign-in\/invitation\/(hidden)","n":1}"#,
            ),
            (
                r#"{"note":"whsec_a+b\/c\u002fd=","n":1}"#,
                r#"{"note":"whsec_(hidden)","n":1}"#,
            ),
            // Keys and signs that are escaped.
            (
                r#"{"note":"\u0074pk_Abc-123 is it"}"#,
                r#"{"note":"\u0074pk_(hidden) is it"}"#,
            ),
            (
                r#"{"url":"https\u003a\u002F\u002fu\u003ap\u0040h/a"}"#,
                r#"{"url":"https\u003a\u002F\u002f(hidden)\u0040h/a"}"#,
            ),
            ("/v1/x?q=%74pk_abc&page=2", "/v1/x?q=%74pk_(hidden)&page=2"),
            (
                "/v1/x?q=%2574pk%255Fabc&n=1",
                "/v1/x?q=%2574pk%255F(hidden)&n=1",
            ),
            ("/v1/x?q=Bearer+abc.def&n=1", "/v1/x?q=Bearer+(hidden)&n=1"),
            (
                "/v1/x?q=Bearer%20abc.def&n=1",
                "/v1/x?q=Bearer%20(hidden)&n=1",
            ),
            // A URL in a query string.
            (
                "/v1/x?to=http%3A%2F%2Fh%2Fshared%2Fdeliveries%2FAAAA&page=2",
                "/v1/x?to=http%3A%2F%2Fh%2Fshared%2Fdeliveries%2F(hidden)&page=2",
            ),
            (
                "/v1/x?to=http%3a%2f%2fu%3ap%252Fq%40h%2fa%40b&page=2",
                "/v1/x?to=http%3a%2f%2f(hidden)%40h%2fa%40b&page=2",
            ),
            (
                "/v1/x?to=http%253A%252F%252Fu%253Ap%2540h%252Fa",
                "/v1/x?to=http%253A%252F%252F(hidden)%2540h%252Fa",
            ),
            (
                "/v1/x?to=https://ada%40x.example:p%2Fq@h/a",
                "/v1/x?to=https://(hidden)@h/a",
            ),
            (
                "/v1/x?to=%2Flogin%3Fauth%3Dabc%26n%3D1&page=2",
                "/v1/x?to=%2Flogin%3Fauth%3D(hidden)&page=2",
            ),
            (
                "/v1/x?q=%7B%22pass%5Fwd%22%3A%22a%20b%22%7D&page=2",
                "/v1/x?q=%7B%22pass%5Fwd%22%3A(hidden)&page=2",
            ),
            (
                "/v1/x?user%5Bpassword%5D=abc&page=2",
                "/v1/x?user%5Bpassword%5D=(hidden)&page=2",
            ),
        ] {
            check_hidden(text, expected);
        }
    }

    fn check_hidden(text: &str, expected: &str) {
        let redacted = redact(text);
        assert_eq!(redacted.text, expected);
        assert!(redacted.hides, "{text}");
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
            r#"{"url":"https:\/\/h.example:8443\/a@b","note":"a\\b \ud83d %+a %2"}"#,
            "/v1/x?to=https%3A%2F%2Fh.example%2Fa%40b&page=2",
        ] {
            let redacted = redact(text);
            assert_eq!((redacted.text.as_str(), redacted.hides), (text, false));
        }
    }
}
