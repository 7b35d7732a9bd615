//! The filters of a list, as they stand in its address: shown in the form above the list and kept by its page links.

use database::page::Page;
use url::form_urlencoded::Serializer;

use crate::console::list_pages::{self, Pages};
use crate::http::forms::query::Query;

/// The rows on one page of a list.
const PER_PAGE: u64 = 50;

#[derive(Debug)]
pub(crate) struct ListQuery(pub(crate) Query);

impl ListQuery {
    /// Returns the filters of a query, without those that the form sent blank.
    pub(crate) fn new(query: &Query) -> Self {
        let mut filled = Serializer::new(String::new());
        for (name, value) in query.pairs().filter(|(_, value)| !value.trim().is_empty()) {
            filled.append_pair(name, value);
        }
        Self(Query::from_text(&filled.finish()))
    }

    /// Returns the value of a filter; an empty text without it.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.0.text(name).unwrap_or_default().trim()
    }

    /// True if this word is chosen in a filter.
    pub(crate) fn is_chosen(&self, name: &str, word: &str) -> bool {
        self.value(name).eq_ignore_ascii_case(word)
    }

    pub(crate) fn page(&self) -> Page {
        self.0.page(PER_PAGE)
    }

    /// Returns the links to the pages of the list at `path`, which keep the filters.
    pub(crate) fn pages(&self, path: &str, total: u64) -> Pages {
        Pages::new(self.page(), total, path, &self.0)
    }

    /// Returns the filters as text; empty without any.
    pub(crate) fn filter_text(&self) -> String {
        list_pages::filter_text(&self.0)
    }

    /// True if the list may lack something: it has a filter beside its order.
    pub(crate) fn has_filter(&self) -> bool {
        let views = ["page", "per_page", "order"];
        self.0.pairs().any(|(name, _)| !views.contains(&name))
    }

    /// Returns the address of the list at `path` with its filters.
    pub(crate) fn address(&self, path: &str) -> String {
        list_pages::list_address(path, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_to_other_pages_keep_the_filters() {
        let list = ListQuery::new(&Query::from_text(
            "state=paused&irn=a%26b&operation=&page=2",
        ));
        assert!(list.is_chosen("state", "Paused") && !list.is_chosen("state", "running"));
        assert_eq!((list.value("irn"), list.value("step")), ("a&b", ""));
        let pages = list.pages("/console/runs", 120);
        assert_eq!((pages.number, pages.last), (2, 3));
        assert_eq!(
            pages.address(3),
            "/console/runs?state=paused&irn=a%26b&page=3"
        );
        assert_eq!(
            ListQuery::new(&Query::from_text("page=2")).address("/console/runs"),
            "/console/runs"
        );
    }
}
