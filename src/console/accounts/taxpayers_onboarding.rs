//! The page on which an integrator adds taxpayers: one with a form, or many with a file that has a row for each. A row
//! is checked and stored like a call of Create Taxpayer, with the location of the business. Rows that were stored stay
//! stored, so the same file can be sent again after its faults are corrected.

use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Map, Value};

use crate::console::accounts::bulk_action::{ActionOutcome, error_text};
use crate::console::badges::badge;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::SignedInIntegrator;
use crate::domain::import::csv_table;
use crate::domain::import::table::{
    Row, Table, duplicate_column_fault, formula_fault, unnamed_column_fault,
};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::Taxpayer;
use crate::http::forms::{reader, taxpayer};
use crate::http::onboarding;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::ids::IdKind;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/taxpayers/new")
            .page(show_form)
            .form(add_taxpayer)
            .allows_form_repeat(),
        path("/dashboard/taxpayers/file")
            .form(add_taxpayers_from_file)
            .form_takes_file()
            .allows_form_repeat(),
    ]
}

/// The fields of the form, which are also the columns of a file: each with its label.
const FIELDS: [(&str, &str); 15] = [
    ("name", "Name"),
    ("email", "Email"),
    ("tin_no", "Tax number (TIN)"),
    ("phone", "Phone (optional)"),
    ("nature_of_business", "Nature of business (optional)"),
    ("authority_service_id", "Service id of the authority"),
    ("authority_business_id", "Business id of the authority"),
    ("address", "Address"),
    ("city", "City (needed before the first invoice)"),
    ("state", "State (needed before the first invoice)"),
    ("country", "Country (needed before the first invoice)"),
    ("contact_person.first_name", "First name of the contact"),
    ("contact_person.last_name", "Last name of the contact"),
    ("contact_person.email", "Email of the contact"),
    ("contact_person.phone", "Phone of the contact (optional)"),
];
/// The maximum number of taxpayers in a file.
const ROWS_MAX: usize = 500;
/// The number of rows that are processed concurrently.
const CONCURRENCY: usize = 8;

#[derive(Template)]
#[template(path = "accounts/taxpayers_new.html")]
struct NewTaxpayersPage {
    frame: Frame,
    form: FormState,
    /// The reason why the file was not read; `None` if there is none.
    file_fault: Option<String>,
    fields: [(&'static str, &'static str); 15],
    rows_max: usize,
}

/// The outcome for each taxpayer.
#[derive(Template)]
#[template(path = "accounts/taxpayers_result.html")]
pub(super) struct ResultPage {
    pub(super) frame: Frame,
    pub(super) done: usize,
    pub(super) failed: usize,
    pub(super) lines: Vec<ResultLine>,
}

pub(super) struct ResultLine {
    pub(super) name: String,
    /// The path of the account's pages; `None` if no account was created.
    pub(super) path: Option<String>,
    pub(super) outcome: ActionOutcome,
}

impl ResultPage {
    /// Lists failures first, because somebody has to look at them.
    pub(super) fn new(frame: Frame, mut lines: Vec<ResultLine>) -> Self {
        lines.sort_by_key(|line| line.outcome.is_done);
        let failed = lines.iter().filter(|line| !line.outcome.is_done).count();
        Self {
            frame,
            done: lines.len() - failed,
            failed,
            lines,
        }
    }
}

fn render(integrator: &SignedInIntegrator, form: FormState, file_fault: Option<String>) -> Answer {
    let status = if form.is_refused() || file_fault.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_with_status(
        status,
        &NewTaxpayersPage {
            frame: Frame::for_integrator(integrator, "Add taxpayers"),
            form,
            file_fault,
            fields: FIELDS,
            rows_max: ROWS_MAX,
        },
    )
}

/// GET /dashboard/taxpayers/new: the form, and the choice of a file.
async fn show_form(integrator: SignedInIntegrator) -> Answer {
    std::future::ready(render(&integrator, FormState::default(), None)).await
}

/// POST of the form: adds one taxpayer and redirects to its pages.
async fn add_taxpayer(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    form: Form<FormValues>,
) -> Answer {
    let body = to_api_body(FIELDS.iter().map(|(name, _)| (*name, form.0.text(name))));
    match onboard_taxpayer(&state, integrator.id, &body).await {
        Ok(added) => Ok(go_to(
            &format!("/dashboard/{}", added.taxpayer.id),
            &format!(
                "The taxpayer was added. Invite its contact under People.{}",
                added.notes()
            ),
        )),
        Err(error) => {
            let form = FormState::from_refusal(error, form.0)?;
            render(&integrator, form, None)
        }
    }
}

/// POST of a file: adds a taxpayer for each row and shows the outcomes.
async fn add_taxpayers_from_file(
    state: web::Data<ApiState>,
    integrator: SignedInIntegrator,
    form: Form<FormValues>,
) -> Answer {
    let rows = match read_rows(form.0.text("file")) {
        Ok(rows) => rows,
        Err(fault) => return render(&integrator, FormState::default(), Some(fault.to_string())),
    };
    let work = rows
        .into_iter()
        .map(|row| add_row(&state, integrator.id, row));
    let lines: Vec<_> = stream::iter(work).buffered(CONCURRENCY).collect().await;
    let frame = Frame::for_integrator(&integrator, "Added taxpayers").with_section("Add taxpayers");
    show(&ResultPage::new(frame, lines))
}

/// A row of the file, as the body of Create Taxpayer.
struct FileRow {
    number: u64,
    body: Map<String, Value>,
    /// The fault of a cell in a column without a heading or beyond the header, or of a formula; `None` if there is none.
    fault: Option<Fault>,
}

impl FileRow {
    /// `columns` are the names of the fields, in the order of the header's columns (`find_columns`).
    fn read(table: &Table, columns: &[&str], row: &Row) -> Self {
        let cells = row.cells.iter().map(|cell| cell.trim());
        let fields = columns.iter().copied().zip(cells);
        let stray_cell = row.find_stray_cell(&table.header);
        let stray_cell =
            stray_cell.map(|stray| unnamed_column_fault(String::new(), table.word, &stray));
        let mut formulas = row.formulas.iter().filter_map(|index| columns.get(*index));
        let formula = formulas.next().map(|column| {
            let cell = format!("The cell of the column {column}");
            formula_fault(String::new(), &cell)
        });
        Self {
            number: row.number,
            body: to_api_body(fields.filter(|(name, _)| !name.is_empty())),
            fault: stray_cell.or(formula),
        }
    }
}

async fn add_row(state: &ApiState, integrator: IntegratorId, row: FileRow) -> ResultLine {
    let text = |name: &str| {
        row.body
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = format!("Line {}: {}", row.number, text("name"));
    let rejection = |why: String| ActionOutcome::not_done(badge("bad", "Rejected"), why);
    // A missing comma may have moved the cells before the extra one to wrong columns, so nothing of the row is used.
    if let Some(fault) = row.fault {
        return ResultLine {
            name,
            path: None,
            outcome: rejection(fault.to_string()),
        };
    }
    let known = taxpayers::find_owned_by_tin(&state.store, integrator, text("tin_no")).await;
    if let Ok(Some(taxpayer)) = known {
        return ResultLine {
            name,
            path: Some(format!("/dashboard/{}", taxpayer.id)),
            outcome: ActionOutcome {
                is_done: true,
                badge: badge("idle", "Duplicate"),
                text: "You have this taxpayer already.".to_owned(),
            },
        };
    }
    match onboard_taxpayer(state, integrator, &row.body).await {
        Ok(added) => ResultLine {
            name,
            path: Some(format!("/dashboard/{}", added.taxpayer.id)),
            outcome: ActionOutcome::success(format!("Added.{}", added.notes())),
        },
        Err(error) => ResultLine {
            name,
            path: None,
            outcome: rejection(error_text(&error)),
        },
    }
}

/// A new taxpayer, with the warnings about the values that were sent.
struct AddedTaxpayer {
    taxpayer: Taxpayer,
    warnings: Vec<String>,
}

impl AddedTaxpayer {
    /// Returns sentences about what is left to do, each after a blank.
    fn notes(&self) -> String {
        let missing = self.taxpayer.missing_profile_fields();
        let labels = missing.iter().map(|field| field.replace('_', " "));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let lack = (!missing.is_empty())
            .then(|| format!(" Before its first invoice its profile needs: {labels}."));
        let warnings = self.warnings.iter();
        let warnings = warnings.map(|warning| format!(" Note: {warning}."));
        lack.into_iter().chain(warnings).collect()
    }
}

async fn onboard_taxpayer(
    state: &ApiState,
    integrator: IntegratorId,
    body: &Map<String, Value>,
) -> Result<AddedTaxpayer, ApiError> {
    let form = reader::read(body, &state.catalog.get(), taxpayer::read_with_location)?;
    let id = TaxpayerId(state.store.ids().next(IdKind::Taxpayer).await?);
    let onboarding = onboarding::build_onboarding(state, integrator, id, form.value).await?;
    Ok(AddedTaxpayer {
        taxpayer: state.taxpayers.send(id, onboarding).await?,
        warnings: form.warnings,
    })
}

/// Returns fields as a body of the API call. Blank ones are left out.
fn to_api_body<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let mut body = Map::new();
    let mut person = Map::new();
    for (name, text) in fields.filter(|(_, text)| !text.is_empty()) {
        match name.strip_prefix("contact_person.") {
            Some(name) => person.insert(name.to_owned(), text.into()),
            None => body.insert(name.to_owned(), text.into()),
        };
    }
    body.insert("contact_person".to_owned(), person.into());
    body
}

/// Reads the rows of a CSV file that a script of the page encoded.
fn read_rows(encoded: &str) -> Result<Vec<FileRow>, Fault> {
    let base64 = encoded
        .split_once(";base64,")
        .map_or(encoded, |(_, base64)| base64);
    let bytes = STANDARD.decode(base64).unwrap_or_default();
    if bytes.is_empty() {
        return Err(file_fault(
            "required",
            "Choose a CSV file of 512 KiB at most.",
        ));
    }
    to_rows(&csv_table::read(&bytes)?)
}

/// Returns the form field that each column of the header names; an empty text for a column without a heading, which
/// spreadsheets often leave at the end. Fails if a column is unknown or occurs twice, or if there is none with a heading.
fn find_columns(header: &[String]) -> Result<Vec<&'static str>, Fault> {
    let mut columns: Vec<&'static str> = Vec::with_capacity(header.len());
    for text in header {
        let text = text.trim();
        let word = text.to_lowercase();
        if word.is_empty() {
            columns.push("");
            continue;
        }
        let Some((field, _)) = FIELDS.iter().find(|(name, _)| *name == word) else {
            return Err(column_fault(&format!("There is no column {word:?}.")));
        };
        if let Some(index) = columns.iter().position(|known| known == field) {
            return Err(duplicate_column_fault(header[index].trim(), text, field));
        }
        columns.push(*field);
    }
    if columns.iter().all(|column| column.is_empty()) {
        return Err(column_fault("The first row of the file names no column."));
    }
    Ok(columns)
}

fn column_fault(sentence: &str) -> Fault {
    let names = FIELDS.map(|(name, _)| name).join(", ");
    let message = format!("{sentence} The columns are: {names}.");
    file_fault("column", message)
}

fn to_rows(table: &Table) -> Result<Vec<FileRow>, Fault> {
    let columns = find_columns(&table.header)?;
    let filled = table
        .rows
        .iter()
        .filter(|row| row.cells.iter().any(|cell| !cell.trim().is_empty()));
    let rows: Vec<_> = filled
        .map(|row| FileRow::read(table, &columns, row))
        .collect();
    match rows.len() {
        0 => Err(file_fault(
            "required",
            "The file has no row below its header.",
        )),
        1..=ROWS_MAX => Ok(rows),
        count => {
            let message =
                format!("The file has {count} taxpayers. Send at most {ROWS_MAX} in one file.");
            Err(file_fault("max", message))
        }
    }
}

fn file_fault(rule: &'static str, message: impl Into<String>) -> Fault {
    Fault::new("file", rule, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<FileRow>, Fault> {
        read_rows(&format!("data:text/csv;base64,{}", STANDARD.encode(text)))
    }

    #[test]
    fn each_filled_row_is_a_body_of_the_api_call() {
        let rows =
            read("Name;contact_person.email;phone\nMill;a@x.example;\n;;\nShop;;0803\n").unwrap();
        let bodies: Vec<_> = rows
            .iter()
            .map(|row| (row.number, json!(row.body)))
            .collect();
        let expected = [
            (
                2,
                json!({ "name": "Mill", "contact_person": { "email": "a@x.example" } }),
            ),
            (
                4,
                json!({ "name": "Shop", "phone": "0803", "contact_person": {} }),
            ),
        ];
        assert_eq!(bodies, expected);
    }

    #[test]
    fn columns_and_rows_without_any_text_are_left_out() {
        for text in [
            "name,phone,,\nMill,0803,,\n",
            "name,,phone\nMill,,0803\n",
            ",name,phone, \n,Mill,0803\n,,,\n\n,,,,,,\n",
        ] {
            let rows = read(text).unwrap();
            let found: Vec<_> = rows.iter().map(|row| json!(row.body)).collect();
            let expected = json!({ "name": "Mill", "phone": "0803", "contact_person": {} });
            assert_eq!(found, [expected], "{text}");
            assert!(rows[0].fault.is_none(), "{text}");
        }
        let rows = read("name,,phone\nMill,Lagos,0803\nShop,,0804\n").unwrap();
        let sentence = rows[0].fault.as_ref().unwrap().to_string();
        let start = "Cell 2 of the line, Lagos, stands under no name of the first row:";
        assert!(sentence.starts_with(start), "{sentence}");
        assert!(rows[1].fault.is_none());
    }

    #[test]
    fn a_row_with_a_formula_says_so_and_the_others_are_read() {
        let rows = read("name,phone\n=A2,0803\nShop,'=0804\nYard, =1+1\n").unwrap();
        let faults = rows
            .iter()
            .map(|row| row.fault.as_ref().map(ToString::to_string));
        let formula = |column: &str| {
            let start = format!("The cell of the column {column} holds a formula; write its value");
            Some(format!(
                "{start} instead, or an apostrophe before a text that begins so."
            ))
        };
        let expected = [formula("name"), None, formula("phone")];
        assert_eq!(faults.collect::<Vec<_>>(), expected);
        assert_eq!(rows[1].body["phone"], json!("=0804"));
    }

    #[test]
    fn a_row_with_a_cell_under_no_name_says_so_and_the_others_are_read() {
        let rows = read("name,phone\nMill,0803,\nShop, Lagos,0805\nYard\n").unwrap();
        let faults: Vec<_> = rows
            .iter()
            .map(|row| row.fault.as_ref().map(Fault::to_string))
            .collect();
        assert_eq!((&faults[0], &faults[2]), (&None, &None));
        let sentence = faults[1].as_deref().unwrap();
        let start = "Cell 3 of the line, 0805, stands under no name of the first row:";
        assert!(sentence.starts_with(start), "{sentence}");
    }

    #[test]
    fn a_file_that_is_no_list_of_taxpayers_is_refused_with_what_to_do() {
        let many = format!("name\n{}", "Mill\n".repeat(ROWS_MAX + 1));
        for (text, expected) in [
            ("", "Choose a CSV file"),
            ("name\n", "no row below its header"),
            (
                ",,\nMill,0803,\n",
                "The first row of the file names no column. The columns",
            ),
            (
                "name,colour\nMill,red\n",
                "no column \"colour\". The columns are: name, email",
            ),
            (
                "name,email,NAME\nMill,a@x.example,Shop\n",
                "The columns name and NAME both hold name: leave one of them out.",
            ),
            (&many, "at most 500"),
        ] {
            let fault = read(text).err().unwrap().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
