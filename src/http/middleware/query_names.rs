//! Warns of names in the query string that an endpoint does not know: a filter with a wrong name would otherwise look
//! as if it had matched everything. Warns of an unknown word in a filter that matches one word of a fixed list: the
//! answer would be empty, as if nothing existed. Refuses a name that the endpoint knows and that is given twice,
//! because nobody could tell which of the two values was used.

use std::collections::BTreeSet;

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;

use crate::domain::events::event::EventKind;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::nearest_word::suggestion;
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::{WARNING_HEADER, warning_value};
use crate::http::respond::error::ApiError;

/// The maximum number of unknown names that the warning shows.
const NAMES_SHOWN_MAX: usize = 20;
/// The warning shows at most this many characters of a name.
const NAME_CHARS_SHOWN_MAX: usize = 100;

/// A filter that matches one word of a list, and the function that returns the list.
type Vocabulary = (&'static str, fn() -> Vec<&'static str>);

/// The filters of all paths that match one word of a list. Filters that refuse an unknown word are not among them.
const VOCABULARIES: [Vocabulary; 2] = [("event", event_names), ("error_code", error_codes)];

/// The query strings that a path takes.
pub(crate) struct QueryRules {
    /// The names of all parameters.
    pub(crate) names: Vec<String>,
    /// The status of the answer to a query string that is not valid.
    pub(crate) invalid_status: StatusCode,
}

pub(crate) async fn check_query_names(
    request: ServiceRequest,
    next: Next<BoxBody>,
    rules: impl FnOnce() -> QueryRules,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let warnings = match query_warnings(request.query_string(), rules) {
        Ok(warnings) => warnings,
        Err(error) => return Ok(request.error_response(error)),
    };
    let mut response = next.call(request).await?;
    for value in warnings.iter().filter_map(|warning| warning_value(warning)) {
        response.headers_mut().append(WARNING_HEADER, value);
    }
    Ok(response)
}

/// Returns a warning with the unknown names, and one for each filter with an unknown word. Fails with a fault for each
/// name that is given twice.
fn query_warnings(
    query_string: &str,
    rules: impl FnOnce() -> QueryRules,
) -> Result<Vec<String>, ApiError> {
    if query_string.is_empty() {
        return Ok(Vec::new());
    }
    let rules = rules();
    let query = Query::from_text(query_string);
    let repeated = repeated_name_faults(&query, &rules.names);
    if repeated.is_empty() {
        let unknown_names = describe_unknown_names(&query, &rules.names).into_iter();
        Ok(unknown_names
            .chain(describe_unknown_words(&query, &rules.names))
            .collect())
    } else {
        Err(ApiError::from(repeated).with_status(rules.invalid_status))
    }
}

/// Returns a fault for each of the `known_names` that the query string has more than once.
fn repeated_name_faults(query: &Query, known_names: &[String]) -> Faults {
    let is_repeated = |name: &str| query.pairs().filter(|(other, _)| *other == name).count() > 1;
    let distinct: BTreeSet<_> = known_names.iter().collect();
    let repeated = distinct.into_iter().filter(|name| is_repeated(name));
    let faults =
        repeated.map(|name| Fault::field(name, FieldRule::other("once", "is given twice")));
    faults.collect()
}

/// Returns a warning with the names of the query string that are not in `known_names`; `None` if there are none.
fn describe_unknown_names(query: &Query, known_names: &[String]) -> Option<String> {
    let mut unknown: Vec<&str> = query
        .pairs()
        .map(|(name, _)| name)
        .filter(|name| !known_names.iter().any(|known| known == name))
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return None;
    }
    let more_count = unknown.len().saturating_sub(NAMES_SHOWN_MAX);
    let more_text = if more_count == 0 {
        String::new()
    } else {
        format!(" and {more_count} more")
    };
    let shown_names: Vec<String> = unknown
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|name| {
            let shown: String = name.chars().take(NAME_CHARS_SHOWN_MAX).collect();
            shown + &suggestion(name, known_names.iter().map(String::as_str))
        })
        .collect();
    Some(format!(
        "unknown query parameter: {}{more_text}",
        shown_names.join(", ")
    ))
}

/// Returns a warning for each filter of the path whose value is none of its words. `known_names` are the names of the
/// path's parameters.
fn describe_unknown_words(query: &Query, known_names: &[String]) -> Vec<String> {
    let filters = VOCABULARIES
        .iter()
        .filter(|(name, _)| known_names.iter().any(|known| known == name));
    let warnings = filters.filter_map(|(name, words)| {
        let value = query.trimmed_text(name)?;
        let words = words();
        if words.iter().any(|word| word.eq_ignore_ascii_case(&value)) {
            return None;
        }
        let shown: String = value.chars().take(NAME_CHARS_SHOWN_MAX).collect();
        Some(format!(
            "unknown {name}: {shown}{}",
            suggestion(&value, words)
        ))
    });
    warnings.collect()
}

fn event_names() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

fn error_codes() -> Vec<&'static str> {
    ErrorCode::ALL.iter().map(|code| code.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> [String; 2] {
        ["page", "status"].map(str::to_owned)
    }

    #[test]
    fn a_known_name_may_be_given_only_once() {
        let cases: [(&str, &[&str]); 9] = [
            ("", &[]),
            ("status=draft,approved&page=2", &[]),
            ("status=draft&status=approved", &["status"]),
            ("status=draft&status=draft", &["status"]),
            ("status=&status=draft", &["status"]),
            ("status&page=1&st%61tus", &["status"]),
            (
                "status=a&page=1&status=b&page=2&status=c",
                &["page", "status"],
            ),
            ("status=a&Status=b", &[]),
            ("colour=a&colour=b", &[]),
        ];
        for (query, expected) in cases {
            let faults = repeated_name_faults(&Query::from_text(query), &known());
            let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
            assert_eq!(paths, expected, "{query}");
        }
        let faults = repeated_name_faults(&Query::from_text("page=1&page=2"), &known());
        assert_eq!(faults.summary(), "The page field is given twice.");
    }

    #[test]
    fn a_name_that_is_given_twice_gets_the_status_of_the_path() {
        for invalid_status in [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY] {
            let rules = || QueryRules {
                names: known().to_vec(),
                invalid_status,
            };
            let refused = query_warnings("page=1&page=2", rules).unwrap_err();
            assert_eq!(refused.status, invalid_status);
        }
    }

    #[test]
    fn an_unknown_word_of_a_filter_is_named_with_the_word_that_was_meant() {
        let known = ["event", "error_code", "path"].map(str::to_owned);
        let cases: [(&str, &[&str]); 6] = [
            ("event=invoice.created&error_code=VALIDATION_FAILED", &[]),
            ("event=INVOICE.CREATED&error_code=+", &[]),
            ("path=/nowhere", &[]),
            (
                "event=invoice.craeted",
                &["unknown event: invoice.craeted (did you mean invoice.created?)"],
            ),
            (
                "error_code=VALIDATION_FAILD&event=x",
                &[
                    "unknown event: x",
                    "unknown error_code: VALIDATION_FAILD (did you mean VALIDATION_FAILED?)",
                ],
            ),
            ("error_code=NOPE", &["unknown error_code: NOPE"]),
        ];
        for (query, expected) in cases {
            let found = describe_unknown_words(&Query::from_text(query), &known);
            assert_eq!(found, expected, "{query}");
        }
        let other_path = describe_unknown_words(&Query::from_text("event=x"), &self::known());
        assert!(other_path.is_empty(), "{other_path:?}");
    }

    #[test]
    fn each_unknown_name_is_shown_once() {
        let many = ('a'..='y').fold(String::new(), |all, letter| all + "&" + &letter.to_string());
        for (query, expected) in [
            ("", None),
            ("page=2&status=draft", None),
            (
                "Page=2",
                Some("unknown query parameter: Page (did you mean page?)"),
            ),
            (
                "stauts=approved&x",
                Some("unknown query parameter: stauts (did you mean status?), x"),
            ),
            (
                "colour=draft&page=2&colour=paid&x",
                Some("unknown query parameter: colour, x"),
            ),
            (
                many.as_str(),
                Some(
                    "unknown query parameter: a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 5 more",
                ),
            ),
        ] {
            let found = describe_unknown_names(&Query::from_text(query), &known());
            assert_eq!(found.as_deref(), expected, "{query}");
        }
    }
}
