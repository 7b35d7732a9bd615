//! The header `Idempotency-Key`: 1 to 255 printable ASCII characters, which are not normalized.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::domain::kernel::fault::Fault;

const IDEMPOTENCY_KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The name that faults show for the header.
const HEADER_NAME: &str = "Idempotency-Key";
const KEY_CHARS_MAX: usize = 255;

/// Returns the idempotency key of a request, or `None` if the request has none.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Fault> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY_HEADER);
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => check_key(key).map(Some),
        (Some(_), Some(_)) => Err(header_fault("one", "must be sent once")),
    }
}

fn check_key(key: &HeaderValue) -> Result<&str, Fault> {
    let key = key.to_str().ok().filter(|key| {
        key.bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    });
    let Some(key) = key else {
        return Err(header_fault(
            "format",
            "must hold only printable characters of ASCII",
        ));
    };
    match key.len() {
        0 => Err(header_fault("required", "must not be empty")),
        1..=KEY_CHARS_MAX => Ok(key),
        _ => Err(header_fault(
            "max",
            "must not be longer than 255 characters",
        )),
    }
}

fn header_fault(rule: &'static str, problem: &str) -> Fault {
    Fault::new(
        HEADER_NAME,
        rule,
        format!("The {HEADER_NAME} header {problem}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[&[u8]]) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        for key in keys {
            headers.append(
                IDEMPOTENCY_KEY_HEADER,
                HeaderValue::from_bytes(key).unwrap(),
            );
        }
        idempotency_key(&headers)
            .map(|key| key.map(str::to_owned))
            .map_err(|fault| fault.rule())
    }

    #[test]
    fn a_key_is_1_to_255_printable_characters() {
        assert_eq!(read(&[]), Ok(None));
        let longest = "x".repeat(255);
        for good in ["a", "order 77/a", "\"quoted\"", "~", &longest] {
            assert_eq!(
                read(&[good.as_bytes()]),
                Ok(Some(good.to_owned())),
                "{good}"
            );
        }
        assert_eq!(read(&[b""]), Err("required"));
        assert_eq!(read(&["x".repeat(256).as_bytes()]), Err("max"));
        assert_eq!(read(&[b"a\tb"]), Err("format"));
        assert_eq!(read(&[b"caf\xc3\xa9"]), Err("format"));
        assert_eq!(read(&[b"a", b"a"]), Err("one"));
    }
}
