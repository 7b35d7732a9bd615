//! The documentation under `/docs/`: guides, the reference of the API, a page for each error code, and a search over
//! all of them. It needs no session and loads nothing from other sites. The guides are the files in `docs/`, and the
//! reference is made from the API document, so nothing is written twice.
//!
//! | Concept | File |
//! |---|---|
//! | the first page, and the list for programs (llms.txt) | `index` |
//! | the guides and their sections | `guides`, `guide_pages` |
//! | Markdown as HTML | `markdown` |
//! | the operations of the API document, and their pages | `operations`, `reference` |
//! | schemas as rows of a table | `schema_rows` |
//! | the command that calls an operation | `command` |
//! | the pages of error codes | `errors` |
//! | the search | `search` |
//! | the frame of these pages | `docs_frame` |

mod command;
mod docs_frame;
mod errors;
mod guide_pages;
mod guides;
mod index;
mod markdown;
mod operations;
mod reference;
mod schema_rows;
mod search;

use crate::http::paths::Path;

pub(super) fn paths() -> Vec<Path> {
    let parts = [
        index::paths(),
        guide_pages::paths(),
        reference::paths(),
        errors::paths(),
        search::paths(),
    ];
    parts.into_iter().flatten().collect()
}

/// Returns the paths of all pages of guides, for the test that opens each of them.
pub(super) fn guide_paths() -> Vec<String> {
    guides::all()
        .iter()
        .flat_map(guides::Guide::paths)
        .collect()
}
