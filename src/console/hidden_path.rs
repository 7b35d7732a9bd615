//! Hides the path and the query of a webhook's URL in the answers of its receiver. They may contain a secret, and
//! receivers repeat them: in "Cannot POST /hooks/…", in redirects and on error pages.

use url::Url;

use crate::domain::events::delivery::DeliveryAttempt;

const HIDDEN: &str = "(hidden)";
/// A part of the path that is shorter than this is hidden only together with its neighbours.
const PART_CHARS_MIN: usize = 8;

/// Hides the path and the query of this URL in the answers to these attempts.
pub(super) fn hide_path(attempts: &mut [DeliveryAttempt], url: &str) {
    let parts = secret_parts(url);
    for attempt in attempts {
        attempt.response = hide_parts(&attempt.response, &parts);
        let headers = attempt.headers.iter_mut();
        for (_, value) in headers.flat_map(|headers| &mut headers.response) {
            *value = hide_parts(value, &parts);
        }
    }
}

/// Returns the path and the query as written, and their parts both as written and decoded, the longest first.
fn secret_parts(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let query = url.query().unwrap_or_default();
    let separators = ['/', '&', '='];
    let pieces = url.path().split('/').chain(query.split(separators));
    let decoded = pieces.clone().flat_map(|piece| {
        let pairs = url::form_urlencoded::parse(piece.as_bytes());
        pairs.map(|(name, _)| name.into_owned())
    });
    let mut parts: Vec<String> = pieces.map(str::to_owned).chain(decoded).collect();
    parts.retain(|part| part.chars().count() >= PART_CHARS_MIN);
    let whole = [url.path().trim_end_matches('/'), query];
    parts.extend(whole.map(str::to_owned));
    parts.retain(|part| part.chars().count() > 1);
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts.dedup();
    parts
}

fn hide_parts(text: &str, parts: &[String]) -> String {
    parts
        .iter()
        .fold(text.to_owned(), |text, part| text.replace(part, HIDDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_path_that_a_receiver_repeats_are_hidden() {
        let url = "https://erp.example/hooks/T0%2B1-very-secret/in?key=k-123456789&a=b";
        let parts = secret_parts(url);
        for (answer, shown) in [
            ("", ""),
            (
                "Cannot POST /hooks/T0%2B1-very-secret/in",
                "Cannot POST (hidden)",
            ),
            ("no hook T0+1-very-secret here", "no hook (hidden) here"),
            ("/hooks\\/T0%2B1-very-secret\\/in", "/hooks\\/(hidden)\\/in"),
            ("?key=k-123456789&a=b", "?(hidden)"),
            ("the key k-123456789 ended", "the key (hidden) ended"),
            ("hooks in erp.example", "hooks in erp.example"),
        ] {
            assert_eq!(hide_parts(answer, &parts), shown, "{answer}");
        }
        for bare in ["https://erp.example", "https://erp.example/", "no URL"] {
            assert_eq!(secret_parts(bare), [""; 0], "{bare}");
        }
    }
}
