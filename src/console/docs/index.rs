//! The first page of the documentation, and the list of its pages for programs such as language models (llms.txt).

use std::fmt::Write as _;
use std::future::{Ready, ready};

use actix_web::HttpResponse;
use actix_web::http::header::LOCATION;
use askama::Template;

use crate::console::docs::docs_frame::{OVERVIEW, docs_frame};
use crate::console::docs::guide_pages::markdown_file;
use crate::console::docs::guides::{self, Guide};
use crate::console::docs::operations::{self, ApiPart};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::http::paths::{Path, path};

const SUMMARY: &str = "A relay between taxpayers, the integrators that act for them, and the tax authority. \
    An invoice is created, submitted for the authority's signature, and transmitted to its customer.";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/docs").page(redirect_to_docs),
        path("/docs/").page(show_index),
        path("/llms.txt").page(show_llms_txt),
    ]
}

#[derive(Template)]
#[template(path = "docs/index.html")]
struct IndexPage {
    frame: Frame,
    summary: &'static str,
    guides: &'static [Guide],
    parts: Vec<ApiPart>,
}

/// GET /docs/: shows the first page of the documentation.
fn show_index() -> Ready<Answer> {
    ready(show(&IndexPage {
        frame: docs_frame("Documentation", OVERVIEW),
        summary: SUMMARY,
        guides: guides::all(),
        parts: operations::api_parts(),
    }))
}

/// GET /docs: redirects to `/docs/`, so that the first page has only one address.
fn redirect_to_docs() -> Ready<HttpResponse> {
    let mut answer = HttpResponse::TemporaryRedirect();
    ready(answer.insert_header((LOCATION, "/docs/")).finish())
}

/// GET /llms.txt: lists the guides as Markdown files, and the API document (llmstxt.org).
fn show_llms_txt() -> Ready<HttpResponse> {
    ready(markdown_file(llms_txt()))
}

fn llms_txt() -> String {
    let mut text = format!("# einvoice\n\n> {SUMMARY}\n\n## Guides\n\n");
    for guide in guides::all() {
        // Writing into a `String` never fails.
        let _ = writeln!(text, "- [{}]({}.md)", guide.title, guide.path());
    }
    text.push_str(
        "\n## Reference\n\n\
         - [OpenAPI 3.1 document](/openapi.json): every operation, field, answer and error code\n\
         - [Error codes](/docs/guides/contract/errors): what to do about each\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_each_guide_as_markdown() {
        let list = llms_txt();
        assert!(list.starts_with("# einvoice\n\n> A relay"), "{list}");
        assert_eq!(list.matches(".md)").count(), guides::all().len());
        assert!(list.contains("- [Using the API](/docs/guides/api.md)\n"));
    }
}
