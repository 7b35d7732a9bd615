//! The filters of a list, which are part of its address. The form above the list shows them, and the links to its pages
//! keep them.

use database::page::Page;
use url::form_urlencoded::Serializer;

use crate::console::list_pages::{self, PagePosition};
use crate::http::forms::query::Query;

/// The rows on one page of a list. With long names and numbers in each row, a page stays below 60 kB.
pub(super) const PER_PAGE: u64 = 35;
/// The parameters that change how a list is shown, but not which rows it has.
const VIEW_PARAMETERS: [&str; 3] = ["page", "per_page", "order"];

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

    /// Returns the position of this page in the list at `path`, which has `total` rows. The links keep the filters.
    pub(crate) fn pages(&self, path: &str, total: u64) -> PagePosition {
        PagePosition::new(self.page(), total, path, &self.0)
    }

    /// Returns the parameters of the list as a query string, without the page number; empty if there are none.
    pub(crate) fn query_without_page(&self) -> String {
        list_pages::query_without_page(&self.0)
    }

    /// True if at least one of these filters is set, so that the list may not show everything. Other parameters, such
    /// as a misspelt filter, do not count.
    pub(crate) fn has_filter(&self, known: &[&str]) -> bool {
        self.0.pairs().any(|(name, _)| known.contains(&name))
    }

    /// Returns the first parameter that is neither one of these filters nor a parameter of the view.
    pub(crate) fn unknown_filter(&self, known: &[&str]) -> Option<&str> {
        let mut names = self.0.pairs().map(|(name, _)| name);
        names.find(|name| !known.contains(name) && !VIEW_PARAMETERS.contains(name))
    }

    /// Returns the list with only these filters, and with the parameters of its view.
    pub(crate) fn with_known_filters(&self, known: &[&str]) -> Self {
        let pairs = self.0.pairs();
        Self(
            pairs
                .filter(|(name, _)| known.contains(name) || VIEW_PARAMETERS.contains(name))
                .collect(),
        )
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
    fn only_known_names_are_filters() {
        let known = ["state", "irn"];
        // The parameters, whether they filter, the first unknown one, and what is left of them.
        let cases = [
            ("", false, None, ""),
            ("state=paused", true, None, "state=paused"),
            ("state=+&irn=", false, None, ""),
            (
                "order=oldest&page=2&per_page=9",
                false,
                None,
                "order=oldest&per_page=9",
            ),
            ("stat=paused", false, Some("stat"), ""),
            ("State=paused", false, Some("State"), ""),
            ("irn=a&foo=bar&x=1", true, Some("foo"), "irn=a"),
        ];
        for (text, filters, unknown, rest) in cases {
            let list = ListQuery::new(&Query::from_text(text));
            assert_eq!(list.has_filter(&known), filters, "{text}");
            assert_eq!(list.unknown_filter(&known), unknown, "{text}");
            assert_eq!(
                list.with_known_filters(&known).query_without_page(),
                rest,
                "{text}"
            );
        }
    }

    #[test]
    fn the_links_to_other_pages_keep_the_filters() {
        let list = ListQuery::new(&Query::from_text(
            "state=paused&irn=a%26b&operation=&page=2",
        ));
        assert!(list.is_chosen("state", "Paused") && !list.is_chosen("state", "running"));
        assert_eq!((list.value("irn"), list.value("step")), ("a&b", ""));
        let pages = list.pages("/console/runs", 3 * PER_PAGE);
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
