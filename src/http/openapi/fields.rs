//! The tables of `docs/fields.md`: every field of every body, beside the tables of the specification. They are
//! written from the forms themselves; `EINVOICE_WRITE_DOCS=1 cargo test --lib fields` writes them anew.

use std::fmt::Write as _;

use super::document;
use crate::http::forms::bounds::Bounds;
use crate::http::forms::outline::{Need, Outline, Property, Shape};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fields.md");
const HEAD: &str = "# Fields of every request body\n\n\
    Generated from the forms that check the bodies, so this page and the checks cannot differ. A rule's id is what an error \
    names: `errors[].rule` of a problem document, `x-rules` in `/openapi.json`. *Conditional* fields are required on a \
    condition that [contract.md](contract.md) and the error messages state. Null counts as absent (except that it returns \
    `retry_schedule_s` of a webhook to the deployment's), and so does a blank string, except in place of an optional \
    number, list or object. Conditions that involve several fields (sums, dates, categories) have rules of their own: \
    `sum`, `after_or_equal`, `prohibited`, `own`, `resolves`.\n";

#[test]
fn the_tables_of_fields_are_those_of_the_forms() {
    let page = page();
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let written = std::fs::read_to_string(FILE).unwrap_or_default();
    assert_eq!(written, page, "docs/fields.md is old: EINVOICE_WRITE_DOCS=1 cargo test --lib fields");
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (_, operation) in document::operations() {
        let Some((form, _)) = &operation.body else { continue };
        let title = format!("## {}\n\n`{}`\n", operation.summary, operation.place());
        write!(page, "\n{title}\n| Field | Needed | What it may be | Rules |\n|---|---|---|---|\n").unwrap();
        rows(&mut page, "", form);
    }
    page
}

fn rows(page: &mut String, parent: &str, outline: &Outline) {
    for property in &outline.0 {
        let path = format!("{parent}{}", property.name);
        writeln!(page, "{}", row(&path, property)).unwrap();
        match &property.shape {
            Shape::Object(inner) => rows(page, &format!("{path}."), inner),
            Shape::Objects { of, .. } => rows(page, &format!("{path}[]."), of),
            _ => {}
        }
    }
}

fn row(path: &str, property: &Property) -> String {
    let needed = match property.need {
        Need::Required => "yes",
        Need::Conditional => "conditional",
        Need::Optional => "no",
    };
    format!("| `{path}` | {needed} | {} | {} |", kind(&property.shape), property.rules().join(", "))
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Text { min: 0, max } => format!("text, at most {max} characters"),
        Shape::Text { min, max } => format!("text, {min} to {max} characters"),
        Shape::Email => "email address".to_owned(),
        Shape::Date => "date, YYYY-MM-DD".to_owned(),
        Shape::Formatted { what, .. } => (*what).to_owned(),
        Shape::Picture { picture, list: None } => format!("code written {picture}"),
        Shape::Picture { picture, list: Some(list) } => format!("code of {list}, written {picture}"),
        Shape::Country => "2 letters, code of countries".to_owned(),
        Shape::Id => "portal id".to_owned(),
        Shape::Since => "sequence of an event, or a moment (RFC 3339)".to_owned(),
        Shape::Word(words) => format!("one of {words}"),
        Shape::Code { max: 255, list } => format!("code of {list}"),
        Shape::Code { max, list } => format!("code of {list}, at most {max} characters"),
        Shape::Currency => "3 letters, code of currencies".to_owned(),
        Shape::Irn { max } => {
            format!("{{invoice_no}}-{{service_id}}-{{YYYYMMDD}}, at most {max} characters")
        }
        Shape::Number(Bounds::Any) => "number".to_owned(),
        Shape::Number(Bounds::Above(min)) => format!("number above {min}"),
        Shape::Number(Bounds::AtLeast(min)) => format!("number, at least {min}"),
        Shape::Number(Bounds::Within(min, max)) => format!("number, {min} to {max}"),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Object(_) => "object".to_owned(),
        Shape::Objects { min: 0, .. } => "array of objects".to_owned(),
        Shape::Objects { min, .. } => format!("array of at least {min} objects"),
        Shape::WholeNumber { max } => format!("whole number, 0 to {max}"),
        Shape::Moment => "moment (RFC 3339)".to_owned(),
        Shape::WholeNumbers { items_max, max } => {
            format!("array of 1 to {items_max} whole numbers from 0 to {max}")
        }
        Shape::Texts { max } => format!("array of texts, at most {max} characters each"),
    }
}
