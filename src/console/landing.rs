//! The page that a person sees after signing in: the requested page if it is one of this service, otherwise the
//! person's first page.

use actix_web::HttpResponse;

use crate::console::page::redirect;
use crate::console::session::SignedIn;
use crate::domain::access::session::SessionOwner;
use crate::http::paths::{Path, path};

pub(super) fn paths() -> Vec<Path> {
    vec![path("/dashboard").page(go_home)]
}

/// True for a path of a page of this service, so that a link to the sign-in cannot lead to another site. The path must
/// be plain: without encoding and without empty or dotted segments, so that browser and server read it in the same way.
pub(super) fn is_page_path(next: &str) -> bool {
    let (path, query) = next.split_once('?').unwrap_or((next, ""));
    let starts = ["/console", "/dashboard", "/account"];
    let Some(rest) = starts.iter().find_map(|start| path.strip_prefix(start)) else {
        return false;
    };
    let mut segments = rest.split('/');
    segments.next() == Some("")
        && segments.all(is_plain_segment)
        && query.bytes().all(|byte| byte.is_ascii_graphic())
}

/// True for a segment that needs no encoding and is neither empty nor dotted.
fn is_plain_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// Returns the path of the page that a person sees first after signing in.
pub(super) fn home_path(owner: SessionOwner) -> String {
    match owner {
        SessionOwner::Operator(_) => "/console".to_owned(),
        SessionOwner::Contact { taxpayer, .. } => format!("/dashboard/{taxpayer}"),
        SessionOwner::Integrator(_) => "/dashboard/taxpayers".to_owned(),
    }
}

/// GET /dashboard: redirects to the first page of the person.
async fn go_home(signed_in: SignedIn) -> HttpResponse {
    std::future::ready(redirect(&home_path(signed_in.session.person.owner))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_leads_to_pages_of_this_service_only() {
        for ours in [
            "/console",
            "/console/runs?state=paused&q=a%20b",
            "/dashboard/7/invoices",
            "/account/password",
        ] {
            assert!(is_page_path(ours), "{ours}");
        }
        for other in [
            "",
            "//evil.example/console",
            "https://evil.example",
            "/\\evil.example",
            "/v1",
            "/console\r\nx",
            "/console\0",
            "/console%00",
            "/console?a\0",
            "/console?a=\u{e9}",
            "/console/../v1",
            "/console/./runs",
            "/console//evil.example",
            "/console/\tx",
            "/consolex",
            "console",
        ] {
            assert!(!is_page_path(other), "{other}");
        }
    }
}
