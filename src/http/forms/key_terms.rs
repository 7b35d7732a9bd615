//! The terms of a new API key: the overlap during which the old key stays valid, the scope and the expiry. Operators
//! send them in a body, integrators as query parameters.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::domain::access::api_key::{KeyScope, KeyTerms, OVERLAP_MAX};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::query::Query;
use crate::http::forms::reader::{self, Reader};
use crate::http::forms::text_checks;

/// An operator's request to replace a key by a new one. The audit log stores the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyRotation {
    pub(crate) terms: KeyTerms,
    pub(crate) name: Option<String>,
    pub(crate) reason: Option<String>,
}

/// An operator's request to revoke keys. The audit log stores the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyRevocation {
    /// True if the keys of all taxpayers that the integrator onboarded are revoked too.
    pub(crate) includes_taxpayers: bool,
    pub(crate) reason: Option<String>,
}

/// The maximum length of a key's name, in characters.
const NAME_CHARS_MAX: usize = 60;
/// The query parameters with the terms of a new key.
const QUERY_PARAMETERS: [&str; 4] = ["overlap_s", "scope", "expires_at", "name"];

fn overlap_s_max() -> u32 {
    u32::try_from(OVERLAP_MAX.as_secs()).unwrap_or(u32::MAX)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read_rotation(reader: &mut Reader<'_>) -> Option<KeyRotation> {
    let overlap_s = reader.optional("overlap_s").whole_number(overlap_s_max());
    let scope = reader
        .optional("scope")
        .word(KeyScope::parse, KeyScope::allowed_words);
    let expires_at = reader.optional("expires_at").moment();
    let name = reader.optional("name").identifier(NAME_CHARS_MAX);
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    let overlap = Duration::from_secs(u64::from(overlap_s.unwrap_or_default()));
    Some(KeyRotation {
        terms: KeyTerms {
            scope,
            expires_at,
            overlap,
            keeps_others: false,
        },
        name,
        reason,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read_revocation(reader: &mut Reader<'_>) -> Option<KeyRevocation> {
    let includes_taxpayers = reader
        .optional("taxpayer_keys")
        .boolean()
        .unwrap_or_default();
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    Some(KeyRevocation {
        includes_taxpayers,
        reason,
    })
}

/// Reads the terms of a new key from query parameters.
pub(crate) fn read_key_terms(query: &Query) -> Result<KeyTerms, Faults> {
    let mut faults = Vec::new();
    let overlap_s = query
        .whole_number("overlap_s", 0)
        .and_then(|sent| match sent {
            Some(seconds) if seconds > i64::from(overlap_s_max()) => Err(Fault::field(
                "overlap_s",
                FieldRule::AtMost(i64::from(overlap_s_max()).into()),
            )),
            sent => Ok(sent.unwrap_or_default()),
        });
    let overlap_s = overlap_s.unwrap_or_else(|fault| {
        faults.push(fault);
        0
    });
    let scope = query
        .word("scope", KeyScope::parse, KeyScope::allowed_words)
        .unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
    let expires_at = query.moment("expires_at").unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    if !faults.is_empty() {
        return Err(faults.into_iter().collect());
    }
    let overlap = Duration::from_secs(overlap_s.unsigned_abs());
    Ok(KeyTerms {
        scope,
        expires_at,
        overlap,
        keeps_others: false,
    })
}

/// Reads the name of a new key from query parameters.
pub(crate) fn read_key_name(query: &Query) -> Result<Option<String>, Fault> {
    let name = query
        .trimmed_text("name")
        .map(|text| text_checks::check_identifier(&text, NAME_CHARS_MAX));
    name.transpose().map_err(|rule| Fault::field("name", rule))
}

/// Checks the body of a request whose terms are query parameters, and returns the warnings about the body. A term in
/// the body is a fault, because the new key would have other terms than the sender wants if the term were ignored.
pub(crate) fn refuse_terms_in_body(
    body: &Map<String, Value>,
    catalog: &Catalog,
) -> Result<Vec<String>, Faults> {
    let accepted = reader::read(body, catalog, |reader| {
        for name in QUERY_PARAMETERS {
            let is_sent = reader.has(name);
            let field = reader.optional(name);
            if is_sent {
                let message = format!("Send {name} in the query: ?{name}=…");
                field.report.add_fault(Fault::new(name, "query", message));
            }
        }
        Some(())
    })?;
    Ok(accepted.warnings)
}

/// Returns a fault if the key would expire now or in the past.
pub(crate) fn check_expiry(terms: &KeyTerms, now: Timestamp) -> Result<(), Fault> {
    if terms.expires_at.is_some_and(|end| end <= now) {
        return Err(Fault::field(
            "expires_at",
            FieldRule::must_be("future", "in the future"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{catalog, check, object};

    #[test]
    fn each_field_keeps_its_rule() {
        let cases = [
            ("/overlap_s", None, ""),
            ("/overlap_s", Some(json!(604_800)), ""),
            ("/overlap_s", Some(json!(604_801)), "overlap_s: integer"),
            ("/overlap_s", Some(json!(-1)), "overlap_s: integer"),
            ("/overlap_s", Some(json!(1.5)), "overlap_s: integer"),
            ("/overlap_s", Some(json!("60")), "overlap_s: type"),
            ("/scope", None, ""),
            ("/scope", Some(json!("READ_ONLY")), ""),
            ("/scope", Some(json!("write")), "scope: one_of"),
            ("/expires_at", None, ""),
            (
                "/expires_at",
                Some(json!("tomorrow")),
                "expires_at: date_time",
            ),
            ("/expires_at", Some(json!(7)), "expires_at: type"),
            ("/name", Some(json!("x".repeat(60))), ""),
            ("/name", Some(json!("x".repeat(61))), "name: max"),
            (
                "/name",
                Some(json!("till\u{7}")),
                "name: control_characters",
            ),
            (
                "/name",
                Some(json!("ti\u{200b}ll")),
                "name: invisible_characters",
            ),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
        ];
        let body = json!({
            "overlap_s": 3600, "scope": "read_only", "expires_at": "2030-01-01T00:00:00Z", "reason": "a leak",
        });
        check(&body, &cases, read_rotation);
        let cases = [
            ("/taxpayer_keys", None, ""),
            ("/taxpayer_keys", Some(json!("yes")), "taxpayer_keys: type"),
            ("/reason", Some(json!(7)), "reason: type"),
        ];
        check(
            &json!({ "taxpayer_keys": true, "reason": "a leak" }),
            &cases,
            read_revocation,
        );
    }

    #[test]
    fn the_fault_of_a_term_in_the_body_points_to_the_query() {
        let check = |body: Value| {
            refuse_terms_in_body(&object(body), &catalog()).map_err(|faults| {
                let sentences = faults.iter().map(ToString::to_string);
                sentences.collect::<Vec<_>>().join(" / ")
            })
        };
        for (body, expected) in [
            (
                json!({ "overlap_s": 3600, "scope": "read_only" }),
                "Send overlap_s in the query: ?overlap_s=… / Send scope in the query: ?scope=…",
            ),
            (
                json!({ "expires_at": "2030-01-01T00:00:00Z" }),
                "Send expires_at in the query: ?expires_at=…",
            ),
            (json!({ "name": false }), "Send name in the query: ?name=…"),
        ] {
            assert_eq!(check(body), Err(expected.to_owned()));
        }
        for body in [json!({}), json!({ "overlap_s": null, "name": "" })] {
            assert_eq!(check(body), Ok(Vec::new()));
        }
        assert_eq!(
            check(json!({ "colour": 7 })),
            Ok(vec!["unknown field: colour".to_owned()])
        );
    }

    #[test]
    fn query_parameters_have_the_same_rules_as_a_body() {
        let read =
            |text: &str| read_key_terms(&Query::from_text(text)).map_err(|faults| faults.summary());
        assert_eq!(read(""), Ok(KeyTerms::default()));
        let all_terms = KeyTerms {
            scope: Some(KeyScope::ReadOnly),
            expires_at: Some(Timestamp::UNIX_EPOCH),
            overlap: Duration::from_mins(1),
            keeps_others: false,
        };
        assert_eq!(
            read("overlap_s=60&scope=read_only&expires_at=1970-01-01T00:00:00Z"),
            Ok(all_terms)
        );
        for odd in [
            "overlap_s=604801",
            "overlap_s=x",
            "scope=all",
            "expires_at=soon",
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
        let name = |text: &str| read_key_name(&Query::from_text(text));
        assert_eq!(
            name("name=%20the+till%20").unwrap().as_deref(),
            Some("the till")
        );
        assert_eq!(name("").unwrap(), None);
        for odd in [
            "x".repeat(61),
            "till%07".to_owned(),
            "ti%E2%80%8Bll".to_owned(),
        ] {
            assert!(name(&format!("name={odd}")).is_err(), "{odd}");
        }
        assert!(check_expiry(&all_terms, Timestamp::UNIX_EPOCH).is_err());
        assert!(check_expiry(&KeyTerms::default(), Timestamp::MAX).is_ok());
    }
}
