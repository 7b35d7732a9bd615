//! Pages for people: the console of operators, the dashboard of accounts, and the sign-in. The server renders them
//! (templates in `templates/`); scripts and styles are part of the binary. A page offers what the JSON API offers, by
//! the same queries and commands.
//!
//! | Module | Holds |
//! |---|---|
//! | `operators` | the pages under `/console` |
//! | `accounts` | the pages under `/dashboard` |
//! | `sign_in` | signing in and out |
//! | `docs` | the documentation under `/docs/` |
//! | `verify` | the public page behind the link on a printed invoice |
//! | `shared_delivery` | the public page behind a link to one delivery |
//! | `landing` | where a person goes after signing in |
//! | `session_start` | the opening of a session for a person whose password was right |
//! | `password_change` | the change of a password |
//! | `invitation` | the choice of a password with a one-time link |
//! | `forgotten` | the page for people who forgot their password |
//! | `mail_choices` | the mails that a person wants |
//! | `sessions` | where a person is signed in |
//! | `second_factor` | the code of an authenticator app at sign-in, and how a person sets it up |
//! | `confirm` | the page that asks for password and code again before a person changes who has access |
//! | `session` | the person who sent a request, as a parameter that handlers take |
//! | `live` | parts of a page that change by themselves |
//! | `page` | the answers of handlers: a page, a redirect, the page of a failure |
//! | `list_pages` | the pages of a list: the links between them, and a page after the last |
//! | `kept_filters` | the filters of a list that no field of its form shows |
//! | `form_values` | the fields of a submitted form, and its faults |
//! | `hidden_path` | the answers of receivers without the path of a webhook's URL, which may hold a secret |
//! | `frame` | the frame of each page: title, navigation, notice |
//! | `chart` | a small chart as SVG |
//! | `badges` | states with their colours |
//! | `actor_name` | who acted, in words |
//! | `deadline_words` | a deadline in words |
//! | `filters` | template filters that write times, durations and amounts |
//! | `typed_amount` | the amounts that people type |
//! | `assets` | style, script and icon |

mod accounts;
mod actor_name;
mod assets;
mod badges;
mod chart;
mod confirm;
mod deadline_words;
mod docs;
mod filters;
mod forgotten;
mod form_values;
mod frame;
mod hidden_path;
mod invitation;
mod kept_filters;
mod landing;
mod list_pages;
mod live;
mod mail_choices;
mod operators;
mod page;
mod password_change;
mod second_factor;
mod session;
mod session_start;
mod sessions;
mod shared_delivery;
mod sign_in;
mod typed_amount;
mod verify;

use actix_web::http::Method;
use actix_web::web;

use crate::domain::access::session::OperatorRole;
use crate::http::middleware::policy::{FormRepeat, ServedPages};
use crate::http::paths::{Path, redirect_forms_to_pages, sort_by_precedence};
pub(crate) use operators::past_overviews::{PastOverviews, keep_overviews};
pub(crate) use page::error_pages;

/// The paths of all pages.
fn page_paths() -> Vec<Path> {
    let parts = [
        sign_in::paths(),
        forgotten::paths(),
        landing::paths(),
        password_change::paths(),
        invitation::paths(),
        second_factor::paths(),
        sessions::paths(),
        confirm::paths(),
        mail_choices::paths(),
        verify::paths(),
        shared_delivery::paths(),
        docs::paths(),
        operators::paths(),
        accounts::paths(),
        assets::paths(),
    ];
    parts.into_iter().flatten().collect()
}

/// Returns the patterns of all paths that answer GET, for the tests that open each page.
pub fn page_patterns() -> Vec<&'static str> {
    let pages = page_paths()
        .into_iter()
        .filter(|path| path.methods.contains(&Method::GET));
    pages.map(|path| path.pattern).collect()
}

/// Returns the paths of all guides, for the test that opens each of them.
pub fn guide_paths() -> Vec<String> {
    docs::guide_paths()
}

/// A path of `/ops` or `/console`, and the least role of an operator that its handler asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorPath {
    pub method: String,
    pub pattern: &'static str,
    pub least_role: Option<OperatorRole>,
}

/// Returns all paths of operators, for the tests that call each of them with each role.
pub fn operator_paths() -> Vec<OperatorPath> {
    let all_paths = crate::http::path_table().into_iter().chain(page_paths());
    let for_operators = all_paths.filter(|path| {
        ["/ops/", "/console"]
            .iter()
            .any(|prefix| path.pattern.starts_with(prefix))
    });
    for_operators
        .flat_map(|path| operator_paths_by_method(&path))
        .collect()
}

fn operator_paths_by_method(path: &Path) -> Vec<OperatorPath> {
    let allowed = path
        .methods
        .iter()
        .filter(|method| **method != Method::HEAD);
    allowed
        .map(|method| OperatorPath {
            method: method.to_string(),
            pattern: path.pattern,
            least_role: path.least_role(method),
        })
        .collect()
}

/// Returns the patterns of all paths that take a form, for the tests that send each form twice: first those whose form
/// takes effect only once, then those whose form may be repeated without harm.
pub fn once_and_repeatable_form_patterns() -> (Vec<&'static str>, Vec<&'static str>) {
    let forms = page_paths()
        .into_iter()
        .filter(|path| path.policy.pages == ServedPages::WithForm);
    let (repeatable, once): (Vec<_>, Vec<_>) =
        forms.partition(|path| path.policy.repeat == FormRepeat::Harmless);
    let patterns = |paths: Vec<Path>| paths.into_iter().map(|path| path.pattern).collect();
    (patterns(once), patterns(repeatable))
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.app_data(web::Data::new(live::LiveParts::default()));
    for path in sort_by_precedence(redirect_forms_to_pages(page_paths())) {
        config.service(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::idempotency::ResultPage;

    #[test]
    fn the_address_of_a_form_leads_to_a_page() {
        let forms = redirect_forms_to_pages(page_paths())
            .into_iter()
            .filter(|path| !path.methods.contains(&Method::GET));
        let without_page: Vec<_> = forms
            .filter(|path| {
                path.policy.pages == ServedPages::WithForm
                    && path.policy.result_page == ResultPage::Above { segments: None }
            })
            .map(|path| path.pattern)
            .collect();
        assert_eq!(without_page, ["/sign-out"]);
    }

    #[test]
    fn a_form_below_another_form_leads_to_the_page_of_both() {
        let paths = redirect_forms_to_pages(page_paths());
        let mut take_back = paths
            .into_iter()
            .filter(|path| path.pattern.ends_with("/payment/take-back"));
        let form = take_back.next().unwrap();
        let page = form.policy.result_page;
        let path = "/dashboard/7/invoices/9/payment/take-back";
        assert_eq!(page.page_path(path), "/dashboard/7/invoices/9");
    }
}
