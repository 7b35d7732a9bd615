//! The pages of error codes. The `doc_url` of a failure leads to them. The advice is read from a guide, so it is
//! written only once.

use std::future::{Ready, ready};

use actix_web::web;
use askama::Template;

use crate::console::docs::docs_frame::{ERRORS, docs_frame};
use crate::console::docs::guides;
use crate::console::docs::operations::{self, Operation};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The names of the guide and of its section that contain the table of error codes.
const ERROR_TABLE: (&str, &str) = ("contract", "errors");

/// The maximum number of operations that the page of a code lists.
const OPERATIONS_SHOWN_MAX: usize = 60;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/docs/errors").page(list_codes),
        path("/docs/errors/{code}").page(show_code),
    ]
}

/// An error code with its statuses, and the advice for a caller that receives it.
pub(super) struct CodeRow {
    pub(super) code: &'static str,
    pub(super) status: u16,
    /// The advice in Markdown.
    pub(super) advice: &'static str,
    pub(super) advice_html: String,
}

#[derive(Template)]
#[template(path = "docs/errors.html")]
struct ErrorsPage {
    frame: Frame,
    codes: Vec<CodeRow>,
}

#[derive(Template)]
#[template(path = "docs/error.html")]
struct ErrorPage {
    frame: Frame,
    row: CodeRow,
    /// The statuses of the code, in the words of the guide.
    statuses: String,
    /// An example of an answer with the code, as JSON; empty if the API document has none.
    example: String,
    operations: Vec<Operation>,
    /// The number of operations that are not listed.
    unlisted: usize,
}

/// GET /docs/errors: lists all error codes.
fn list_codes() -> Ready<Answer> {
    ready(show(&ErrorsPage {
        frame: docs_frame(ERRORS, ERRORS),
        codes: code_rows(),
    }))
}

/// GET /docs/errors/{code}: shows one error code.
fn show_code(code: web::Path<String>) -> Ready<Answer> {
    let name = code.into_inner();
    let found = ErrorCode::ALL.iter().find(|one| one.as_str() == name);
    let Some(code) = found.copied() else {
        return ready(Err(ApiError::route_not_found()));
    };
    let all = operations::all().iter().copied();
    let failing = all.filter(|one| one.failures().any(|(_, name)| name == code.as_str()));
    let mut operations: Vec<_> = failing.collect();
    let unlisted = operations.len().saturating_sub(OPERATIONS_SHOWN_MAX);
    operations.truncate(OPERATIONS_SHOWN_MAX);
    ready(show(&ErrorPage {
        frame: docs_frame(code.as_str(), ERRORS),
        row: code_row(code),
        statuses: guide_table_row(code.as_str())
            .map_or_else(String::new, |(statuses, _)| statuses.replace('`', "")),
        example: operations::failure_example(code.as_str()),
        operations,
        unlisted,
    }))
}

/// Returns a row for each error code of the API.
pub(super) fn code_rows() -> Vec<CodeRow> {
    ErrorCode::ALL.iter().copied().map(code_row).collect()
}

fn code_row(code: ErrorCode) -> CodeRow {
    let advice = guide_table_row(code.as_str()).map_or("", |(_, advice)| advice);
    let guide = guides::find_guide(ERROR_TABLE.0);
    CodeRow {
        code: code.as_str(),
        status: code.status().as_u16(),
        advice,
        advice_html: guide.map_or_else(String::new, |guide| guide.html(advice)),
    }
}

/// Returns the statuses and the advice from the row of the guide's table that names this code. One row may name several
/// codes.
fn guide_table_row(code: &str) -> Option<(&'static str, &'static str)> {
    let section = guides::find_guide(ERROR_TABLE.0)?.section(ERROR_TABLE.1)?;
    section.text.lines().find_map(|line| {
        let mut cells = line
            .strip_prefix("| ")?
            .strip_suffix(" |")?
            .splitn(3, " | ");
        let (codes, statuses, advice) = (cells.next()?, cells.next()?, cells.next()?);
        codes
            .split(", ")
            .any(|one| one == code)
            .then_some((statuses, advice))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_status_and_its_advice_in_the_guide() {
        for code in ErrorCode::ALL {
            let row = guide_table_row(code.as_str());
            let (statuses, advice) =
                row.unwrap_or_else(|| panic!("docs/contract.md has no row for {code:?}"));
            let status = code.status().as_u16().to_string();
            assert!(statuses.contains(&status), "{code:?}: {statuses}");
            assert!(advice.len() > 5, "{code:?}: {advice}");
        }
    }
}
