//! Generates `docs/fields.md` from the forms. `EINVOICE_WRITE_DOCS=1 cargo test --lib fields` updates the file.

use std::fmt::Write as _;

use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::form_schema::{FieldType, FormSchema, Presence, Property};
use crate::http::parts;
use crate::http::paths::ApiPart;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fields.md");
const HEAD: &str = "# Fields of every request body\n\n\
    Generated from the forms that check the bodies, so this page and the checks cannot differ. A rule's id is what an error \
    names: `errors[].rule` of a problem document, `x-rules` in `/openapi.json`. *Conditional* fields are required on a \
    condition that [contract.md](contract.md) and the error messages state. Null counts as absent (except that it returns \
    `retry_schedule_s` of a webhook to the deployment's), and so does a blank string, except in place of an optional \
    number, boolean, list or object. Conditions that involve several fields (sums, dates, categories) have rules of their own: \
    `sum`, `after_or_equal`, `prohibited`, `own`, `resolves`.\n";

#[test]
fn the_page_of_fields_agrees_with_the_forms() {
    let page = render_page();
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let stored_page = std::fs::read_to_string(FILE).unwrap_or_default();
    assert_eq!(
        stored_page, page,
        "docs/fields.md is old: EINVOICE_WRITE_DOCS=1 cargo test --lib fields"
    );
}

fn render_page() -> String {
    let mut page = HEAD.to_owned();
    for operation in parts().iter().flat_map(ApiPart::operations) {
        let Some((form, _)) = &operation.doc.body else {
            continue;
        };
        let title = format!(
            "## {}\n\n`{}`\n",
            operation.doc.summary,
            operation.method_and_path()
        );
        write!(
            page,
            "\n{title}\n| Field | Needed | What it may be | Rules |\n|---|---|---|---|\n"
        )
        .unwrap();
        append_rows(&mut page, "", form);
    }
    page
}

fn append_rows(page: &mut String, parent: &str, form: &FormSchema) {
    for property in &form.0 {
        let path = format!("{parent}{}", property.name);
        writeln!(page, "{}", table_row(&path, property)).unwrap();
        match &property.shape {
            FieldType::Object(inner) => append_rows(page, &format!("{path}."), inner),
            FieldType::Objects { item, .. } => append_rows(page, &format!("{path}[]."), item),
            _ => {}
        }
    }
}

fn table_row(path: &str, property: &Property) -> String {
    let needed = match property.presence {
        Presence::Required => "yes",
        Presence::Conditional => "conditional",
        Presence::Optional => "no",
    };
    format!(
        "| `{path}` | {needed} | {} | {} |",
        type_words(&property.shape),
        property.rule_ids().join(", ")
    )
}

fn type_words(shape: &FieldType) -> String {
    match shape {
        FieldType::Text { min: 0, max } => format!("text, at most {max} characters"),
        FieldType::Text { min, max } => format!("text, {min} to {max} characters"),
        FieldType::Identifier { max } => format!("identifier, at most {max} characters"),
        FieldType::Email => "email address".to_owned(),
        FieldType::Date => "date, YYYY-MM-DD".to_owned(),
        FieldType::Formatted { description, .. } => description.clone(),
        FieldType::Pattern {
            pattern,
            list: None,
        } => format!("code written {pattern}"),
        FieldType::Pattern {
            pattern,
            list: Some(list),
        } => format!("code of {list}, written {pattern}"),
        FieldType::Country => "2 letters, code of countries".to_owned(),
        FieldType::Id => "portal id".to_owned(),
        FieldType::LogPosition => "sequence of an event, or a moment (RFC 3339)".to_owned(),
        FieldType::Word(words) => format!("one of {words}"),
        FieldType::Code { max: 255, list } => format!("code of {list}"),
        FieldType::Code { max, list } => format!("code of {list}, at most {max} characters"),
        FieldType::Currency => "3 letters, code of currencies".to_owned(),
        FieldType::Irn { max } => {
            format!("{{invoice_no}}-{{service_id}}-{{YYYYMMDD}}, at most {max} characters")
        }
        FieldType::Number(AmountBounds::Any) => "number".to_owned(),
        FieldType::Number(AmountBounds::Above(min)) => format!("number above {min}"),
        FieldType::Number(AmountBounds::AtLeast(min)) => format!("number, at least {min}"),
        FieldType::Number(AmountBounds::Within(min, max)) => format!("number, {min} to {max}"),
        FieldType::Boolean => "true or false".to_owned(),
        FieldType::Object(_) => "object".to_owned(),
        FieldType::Objects { min: 0, .. } => "array of objects".to_owned(),
        FieldType::Objects { min, .. } => format!("array of at least {min} objects"),
        FieldType::WholeNumber { max } => format!("whole number, 0 to {max}"),
        FieldType::Moment => "moment (RFC 3339)".to_owned(),
        FieldType::WholeNumbers { items_max, max } => {
            format!("array of 1 to {items_max} whole numbers from 0 to {max}")
        }
        FieldType::TextsByName { max } => format!("texts by name, at most {max} characters each"),
        FieldType::NestedTextsByName { max } => {
            format!("objects by name, of texts by name, at most {max} characters each")
        }
        FieldType::Texts { max, .. } => format!("array of texts, at most {max} characters each"),
    }
}
