//! The pages of a list: the links between them, and the redirect from a page after the last one.

use actix_web::http::StatusCode;
use askama::Template;
use database::page::Page;
use url::form_urlencoded::Serializer;

use crate::console::page::{Answer, redirect, show_with_status};
use crate::http::forms::query::Query;

/// The position of a page among the pages of a list.
#[derive(Debug)]
pub(crate) struct PagePosition {
    pub(crate) number: u64,
    pub(crate) last: u64,
    pub(crate) total: u64,
    address_without_page: String,
}

impl PagePosition {
    /// Returns the position of this page in the list at `path`. Its links keep the other parameters of the query.
    pub(crate) fn new(page: Page, total: u64, path: &str, query: &Query) -> Self {
        Self {
            number: page.number,
            last: total.div_ceil(page.per_page.max(1)).max(1),
            total,
            address_without_page: list_address(path, query),
        }
    }

    /// Returns the address of another page of the list.
    pub(crate) fn address(&self, number: u64) -> String {
        let separator = if self.address_without_page.contains('?') {
            '&'
        } else {
            '?'
        };
        format!("{}{separator}page={number}", self.address_without_page)
    }

    fn is_past_end(&self) -> bool {
        self.total > 0 && self.number > self.last
    }
}

/// Renders a page of a list. Redirects from a page after the last one to the last one, because a page without rows says
/// that the list is empty.
pub(crate) fn show_list(pages: &PagePosition, page: &impl Template) -> Answer {
    show_list_with_status(StatusCode::OK, pages, page)
}

/// Like `show_list`, but with another status than 200, such as for a refused filter.
pub(crate) fn show_list_with_status(
    status: StatusCode,
    pages: &PagePosition,
    page: &impl Template,
) -> Answer {
    if pages.is_past_end() {
        return Ok(redirect(&pages.address(pages.last)));
    }
    show_with_status(status, page)
}

/// Returns the parameters of a list, without the page number and without blank ones.
pub(crate) fn filled_pairs(query: &Query) -> impl Iterator<Item = (&str, &str)> {
    let filled = query.pairs().filter(|(_, value)| !value.trim().is_empty());
    filled.filter(|(name, _)| *name != "page")
}

/// Returns the parameters of a list as a query string, without the page number and without blank ones.
pub(crate) fn query_without_page(query: &Query) -> String {
    let mut filters = Serializer::new(String::new());
    filters.extend_pairs(filled_pairs(query));
    filters.finish()
}

/// Returns the address of the list at `path` with these filters, without the page number.
pub(crate) fn list_address(path: &str, query: &Query) -> String {
    let filters = query_without_page(query);
    if filters.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{filters}")
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::LOCATION;

    use super::*;

    #[derive(Template)]
    #[template(source = "rows", ext = "html")]
    struct Rows;

    #[test]
    fn a_page_after_the_last_one_leads_to_the_last_with_the_same_filters() {
        // The query, the number of rows, and the address that the page leads to, if any.
        let cases = [
            ("", 0, None),
            ("page=9", 0, None),
            ("page=1", 50, None),
            ("page=2", 50, None),
            ("page=3", 50, Some("/list?page=2")),
            ("page=9", 51, Some("/list?page=3")),
            ("page=4294967295", 1, Some("/list?page=1")),
            (
                "q=a%26b&page=500&state=&per_page=10",
                50,
                Some("/list?q=a%26b&per_page=10&page=5"),
            ),
            ("page=7&page=9&x=1", 1, Some("/list?x=1&page=1")),
        ];
        for (text, total, expected) in cases {
            let query = Query::from_text(text);
            let pages = PagePosition::new(query.page(25), total, "/list", &query);
            let answer = show_list(&pages, &Rows).unwrap();
            let location = answer.headers().get(LOCATION);
            let location = location.map(|value| value.to_str().unwrap());
            assert_eq!(location, expected, "{text} of {total}");
        }
    }
}
