//! Warns of names in the query string that an endpoint does not know. A filter with a wrong name would otherwise look
//! as if it had matched everything.

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use crate::domain::kernel::nearest_word::suggestion;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::{WARNING_HEADER, warning_value};

/// The warning names at most so many names.
const NAMES_SHOWN_MAX: usize = 20;
/// The warning shows at most this many characters of a name.
const NAME_CHARS_SHOWN_MAX: usize = 100;

pub(crate) async fn warn_about_unknown_names(
    request: ServiceRequest,
    next: Next<BoxBody>,
    known: impl FnOnce() -> Vec<String>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let warning = unknown_names(request.query_string(), known);
    let mut response = next.call(request).await?;
    if let Some(value) = warning.as_deref().and_then(warning_value) {
        response.headers_mut().append(WARNING_HEADER, value);
    }
    Ok(response)
}

/// Returns a warning with the names of the query string that are not `known`; `None` if there are none.
fn unknown_names(query: &str, known: impl FnOnce() -> Vec<String>) -> Option<String> {
    if query.is_empty() {
        return None;
    }
    let known = known();
    let asked = Query::from_text(query);
    let mut unknown: Vec<&str> = asked
        .pairs()
        .map(|(name, _)| name)
        .filter(|name| !known.iter().any(|one| one == name))
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return None;
    }
    let more = unknown.len().saturating_sub(NAMES_SHOWN_MAX);
    let rest = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    let named: Vec<String> = unknown
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|name| {
            let shown: String = name.chars().take(NAME_CHARS_SHOWN_MAX).collect();
            shown + &suggestion(name, known.iter().map(String::as_str))
        })
        .collect();
    Some(format!(
        "unknown query parameter: {}{rest}",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unknown_names_are_named_each_once() {
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
            let known = || vec!["page".to_owned(), "status".to_owned()];
            assert_eq!(unknown_names(query, known).as_deref(), expected, "{query}");
        }
    }
}
