//! The messages for a request whose API key is missing or not accepted. A message names the kind of the sent key and
//! the kinds that the path accepts. It depends only on the beginning of the key, so it does not show whether the key
//! exists.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};

use crate::domain::access::caller::KeyKind;

/// Returns the message for a request without an API key.
pub(super) fn missing_key_message(headers: &HeaderMap) -> &'static str {
    if headers.contains_key(AUTHORIZATION) {
        "The x-api-key header is required; the Authorization header is not read"
    } else {
        "The x-api-key header is required"
    }
}

/// Returns the message for a refused key. `sent_kind` is `None` if the key does not begin like a known kind of key.
pub(super) fn refused_key_message(
    accepted_kinds: &[KeyKind],
    sent_kind: Option<KeyKind>,
) -> String {
    let path_takes = accepted_kinds.iter().copied().map(kind_in_words);
    let path_takes = path_takes.collect::<Vec<_>>().join(" or ");
    match sent_kind {
        Some(kind) if accepted_kinds.contains(&kind) => {
            let kind = kind_in_words(kind);
            format!(
                "You sent {kind} that is not valid: it is mistyped, was replaced or revoked, or has expired"
            )
        }
        Some(kind) => {
            let kind = kind_in_words(kind);
            format!("You sent {kind}. This path takes {path_takes}")
        }
        None => format!("You sent no API key of this service. This path takes {path_takes}"),
    }
}

/// Returns a kind of key in words, with the prefix by which its owner recognises it.
fn kind_in_words(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Taxpayer => "a taxpayer's key (tpk_…)",
        KeyKind::Integrator => "an integrator's key (sik_…)",
        KeyKind::Operator => "an operator's key (opk_…)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_for_a_refused_key_names_its_kind_and_the_accepted_kinds() {
        use KeyKind::{Integrator, Operator, Taxpayer};
        let cases: [(&[KeyKind], &str, &str); 4] = [
            (
                &[Taxpayer],
                "sik_one",
                "You sent an integrator's key (sik_…). This path takes a taxpayer's key (tpk_…)",
            ),
            (
                &[Taxpayer, Integrator],
                "opk_one",
                "You sent an operator's key (opk_…). This path takes a taxpayer's key (tpk_…) or an integrator's key (sik_…)",
            ),
            (
                &[Operator],
                "opk_one",
                "You sent an operator's key (opk_…) that is not valid: it is mistyped, was replaced or revoked, or has expired",
            ),
            (
                &[Integrator],
                "secret",
                "You sent no API key of this service. This path takes an integrator's key (sik_…)",
            ),
        ];
        for (accepted_kinds, key, message) in cases {
            assert_eq!(
                refused_key_message(accepted_kinds, KeyKind::from_key(key)),
                message
            );
        }
    }
}
