//! Searches guides, operations and error codes. A page is found if it contains every word of the searched text.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::LazyLock;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use askama::Template;

use crate::console::docs::docs_frame::docs_frame;
use crate::console::docs::{errors, guides, operations};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::http::extract::role::NeedsRole;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;

/// The maximum number of pages that one search shows.
const RESULTS_MAX: usize = 40;
/// The maximum length of the searched text. A longer text is cut.
const TEXT_CHARS_MAX: usize = 100;

pub(super) fn paths() -> Vec<Path> {
    vec![path("/docs/search").page(show_search)]
}

/// A page that the search can find.
struct SearchEntry {
    title: String,
    kind: &'static str,
    address: String,
    /// The title in lower case.
    title_words: String,
    /// The whole text of the page in lower case.
    words: String,
}

static ENTRIES: LazyLock<Vec<SearchEntry>> = LazyLock::new(|| {
    let sections = guides::all().iter().flat_map(guide_entries);
    let operations = operations::all().iter().map(operation_entry);
    let codes = ErrorCode::ALL.iter().zip(errors::code_rows());
    let codes = codes.map(|(code, row)| {
        let text = format!("{} {}", row.status, row.advice);
        SearchEntry::new(row.code, "Error code", code.page_path(), &text)
    });
    sections.chain(operations).chain(codes).collect()
});

impl SearchEntry {
    fn new(title: &str, kind: &'static str, address: String, text: &str) -> Self {
        let title_words = title.to_lowercase();
        Self {
            words: format!("{title_words} {}", text.to_lowercase()),
            title: title.to_owned(),
            kind,
            address,
            title_words,
        }
    }
}

fn guide_entries(guide: &'static guides::Guide) -> Vec<SearchEntry> {
    let guide_entry = SearchEntry::new(guide.title, "Guide", guide.path(), guide.introduction);
    let sections = guide.sections.iter().map(|section| {
        let address = guide.section_path(section);
        SearchEntry::new(&section.plain_title(), guide.label, address, section.text)
    });
    std::iter::once(guide_entry).chain(sections).collect()
}

/// Returns the entry for an operation, which is found by its path, its description and the names of its body's fields.
fn operation_entry(operation: &operations::Operation) -> SearchEntry {
    let body = operation.json_body();
    let fields = body.map(|body| body["example"].to_string());
    let names = operation
        .parameters()
        .iter()
        .map(|one| operations::text_member(one, "name"));
    let text = format!(
        "{} {} {} {} {} {}",
        operation.id,
        operation.method,
        operation.path,
        operation.description(),
        names.collect::<Vec<_>>().join(" "),
        fields.unwrap_or_default(),
    );
    SearchEntry::new(operation.summary, "Operation", operation.page_path(), &text)
}

#[derive(Template)]
#[template(path = "docs/search.html")]
struct SearchPage {
    frame: Frame,
    text: String,
    results: Vec<&'static SearchEntry>,
    unlisted: usize,
}

/// The searched text.
struct SearchText(String);

impl NeedsRole for SearchText {}

impl FromRequest for SearchText {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let query = Query::from_text(request.query_string());
        let text = query.trimmed_text("q").unwrap_or_default();
        ready(Ok(Self(text.chars().take(TEXT_CHARS_MAX).collect())))
    }
}

/// GET /docs/search?q=: lists the pages that have every word of the text, those with the words in the title first.
fn show_search(SearchText(text): SearchText) -> Ready<Answer> {
    let mut results = find_pages(&text);
    let unlisted = results.len().saturating_sub(RESULTS_MAX);
    results.truncate(RESULTS_MAX);
    ready(show(&SearchPage {
        frame: docs_frame("Search the documentation", ""),
        text,
        results,
        unlisted,
    }))
}

fn find_pages(text: &str) -> Vec<&'static SearchEntry> {
    let text = text.to_lowercase();
    let words: Vec<_> = text.split_whitespace().collect();
    if words.is_empty() {
        return Vec::new();
    }
    let has_all = |content: &str| words.iter().all(|word| content.contains(word));
    let mut results: Vec<_> = ENTRIES
        .iter()
        .filter(|entry| has_all(&entry.words))
        .collect();
    results.sort_by_key(|entry| !has_all(&entry.title_words));
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_by_the_words_in_it_and_first_by_its_title() {
        let first = |text: &str| find_pages(text).first().map(|entry| entry.address.as_str());
        for (text, address) in [
            ("sending twice", Some("/docs/guides/api/sending-twice")),
            ("RATE_LIMITED", Some("/docs/errors/RATE_LIMITED")),
            (
                "/v1/app/invoices/transmit/{irn}/confirm-receipt",
                Some("/docs/reference/confirm_receipt"),
            ),
            ("  ", None),
            ("no page has xyzzy", None),
        ] {
            assert_eq!(first(text), address, "{text}");
        }
        assert!(find_pages("webhook").len() > RESULTS_MAX);
    }
}
