//! All paths together: the order in which a request is matched against them, and the page above each form.

use std::collections::HashSet;

use actix_web::http::Method;

use crate::http::idempotency::ResultPage;
use crate::http::middleware::policy::ServedPages;
use crate::http::paths::api_path::Path;

/// Returns the paths in the order in which a request is matched against them.
pub(crate) fn sort_by_precedence(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_by_cached_key(precedence);
    paths
}

/// Returns the sort key of the path. It puts a fixed segment before a parameter: `/invoices/full` before
/// `/invoices/{id}`.
fn precedence(path: &Path) -> Vec<bool> {
    path.pattern
        .split('/')
        .map(|segment| segment.starts_with('{'))
        .collect()
}

/// Makes the nearest page above a form the page with its result. GET of the form redirects to it, too, so that a reload
/// after a fault, or a bookmark, shows the page with the form.
pub(crate) fn redirect_forms_to_pages(mut paths: Vec<Path>) -> Vec<Path> {
    let pages: HashSet<_> = paths
        .iter()
        .filter(|path| path.methods.contains(&Method::GET))
        .map(|path| pattern_segments(path.pattern))
        .collect();
    for path in &mut paths {
        if path.policy.pages == ServedPages::WithForm && !path.methods.contains(&Method::GET) {
            let segments = pattern_segments(path.pattern);
            path.policy.result_page = ResultPage::Above {
                segments: (2..segments.len())
                    .rev()
                    .find(|count| pages.contains(&segments[..*count])),
            };
        }
    }
    paths
}

/// Returns the segments of a pattern; `None` stands for a parameter.
fn pattern_segments(pattern: &str) -> Vec<Option<&str>> {
    let segments = pattern.split('/');
    segments
        .map(|segment| Some(segment).filter(|segment| !segment.starts_with('{')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::paths::path;

    #[test]
    fn a_form_leads_to_the_nearest_page_above_it() {
        let page = |pattern| path(pattern).page(async || "");
        let form = |pattern| path(pattern).form(async || "");
        let paths = redirect_forms_to_pages(vec![
            page("/a/{id}"),
            page("/a/{id}/keys"),
            form("/a/{key}/keys/{key}/revoke"),
            form("/a/{id}/approve"),
            form("/a/{id}/approve/undo"),
            form("/b"),
            page("/a/{id}/keys/new").form(async || ""),
        ]);
        let result_pages: Vec<_> = paths.iter().map(|path| path.policy.result_page).collect();
        let above = |segments| ResultPage::Above { segments };
        let own = ResultPage::Own;
        assert_eq!(
            result_pages,
            [
                own,
                own,
                above(Some(4)),
                above(Some(3)),
                above(Some(3)),
                above(None),
                own
            ]
        );
    }

    #[test]
    fn a_fixed_segment_is_matched_before_a_parameter() {
        let patterns = ["/a/{id}", "/a/{id}/c", "/a/b", "/{any}", "/a/b/{id}", "/a"];
        let sorted = sort_by_precedence(patterns.map(path).into());
        let assert_before = |first: &str, second: &str| {
            let position = |pattern| {
                sorted
                    .iter()
                    .position(|path| path.pattern == pattern)
                    .unwrap()
            };
            assert!(
                position(first) < position(second),
                "{first} is not before {second}"
            );
        };
        assert_before("/a/b", "/a/{id}");
        assert_before("/a", "/{any}");
        assert_before("/a/b/{id}", "/a/{id}/c");
    }
}
