//! The import of a file of invoices. A script of the page sends the file as it is, first for a preview and then for the
//! import; each answer is a part of the page.

use std::borrow::Cow;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest, web};
use askama::Template;
use jiff::Timestamp;

use crate::actors::taxpayer::commands::{CancelImport, PreviewImport};
use crate::console::accounts::import_answers::AnswersForm;
use crate::console::accounts::import_lines::{
    ImportItemLine, RefusalCauseLine, in_currency_digits,
};
use crate::console::accounts::navigation::base_path;
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show, show_with_status};
use crate::console::session::accounts::{self, AccountSession, Accountant, Reader};
use crate::console::session::{self, Refusal};
use crate::domain::access::session::ContactRole;
use crate::domain::import::record::{Import, ImportState};
use crate::domain::import::totals::CurrencyTotal;
use crate::domain::reference::catalog::Catalog;
use crate::http::extract::body::Body;
use crate::http::extract::role::NeedsRole;
use crate::http::import_files::{self, FileRequest, PreparedImport};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::store::invoices::{imports, running_imports};

/// The maximum number of invoices that the page lists. The record of the import has all of them.
const ITEMS_SHOWN_MAX: usize = 200;
/// The maximum number of running imports that the page of the form lists.
const RUNNING_SHOWN_MAX: usize = 5;
/// The sentence about a file of another type. That of the API names media types.
const UNKNOWN_FILE: &str =
    "Choose a CSV, Excel (.xlsx), UBL (.xml), JSON or NDJSON file. This file is none of them.";
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/import").page(show_import),
        path("/dashboard/{taxpayer}/import/file").upload(receive_file),
        path("/dashboard/{taxpayer}/import/template.csv").page(download_template),
        path("/dashboard/{taxpayer}/imports/{import_no}").page(show_result),
        path("/dashboard/{taxpayer}/imports/{import_no}/errors.csv").page(download_errors),
        path("/dashboard/{taxpayer}/imports/{import_no}/cancel")
            .form(cancel_import)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "accounts/import.html")]
struct ImportPage {
    frame: Frame,
    base: String,
    running: Vec<Import>,
}

/// Shows the result of an import, or its progress. A script of the page reloads this part while the import runs.
#[derive(Template)]
#[template(path = "accounts/import_shown.html")]
struct ImportResultPage {
    frame: Frame,
    result: ImportResult,
}

/// The result of an import or of its preview.
#[derive(Template)]
#[template(path = "accounts/import_result.html")]
struct ImportResult {
    base: String,
    import: Import,
    state: ImportState,
    /// The time at which the same file was imported before; `None` for a new file.
    earlier: Option<Timestamp>,
    /// The progress of the import in percent.
    percent: usize,
    /// The totals of the created invoices, by currency.
    totals: Vec<CurrencyTotal>,
    items: Vec<ImportItemLine>,
    causes: Vec<RefusalCauseLine>,
    /// True if the amount of some invoice that is not imported could be read.
    is_money_known: bool,
    /// The number of processed invoices that are not listed.
    unlisted: usize,
    /// The form for the answers that the file lacks; `None` unless this is a preview.
    answers: Option<AnswersForm>,
    /// True if the person may undo the batch of the import.
    can_undo: bool,
    /// True on the import's own page.
    is_own_page: bool,
}

/// An import or its preview, with the time of an earlier import of the same file.
struct ImportWithEarlierImport {
    import: Import,
    earlier: Option<Timestamp>,
}

/// The part of the page that says why a file could not be read.
#[derive(Template)]
#[template(path = "accounts/import_failure.html")]
struct ImportFailure {
    message: String,
}

/// An uploaded file. The CSRF token of the session is in a header, because the body is the file itself.
struct ImportUpload {
    file_request: Result<FileRequest, ApiError>,
}

impl NeedsRole for ImportUpload {}

impl FromRequest for ImportUpload {
    type Error = Refusal;
    type Future = Ready<Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let tokens = request.headers().get(TOKEN_HEADER);
        let tokens: Vec<_> = tokens
            .and_then(|value| value.to_str().ok())
            .map(Cow::Borrowed)
            .into_iter()
            .collect();
        ready(session::check_csrf(request, &tokens).map(|()| Self {
            file_request: FileRequest::new(request),
        }))
    }
}

async fn show_import(state: web::Data<ApiState>, Reader(session): Reader) -> Answer {
    let (store, taxpayer) = (&state.store, session.taxpayer);
    let running = running_imports::load_owned_by(store, taxpayer, RUNNING_SHOWN_MAX).await?;
    show(&ImportPage {
        frame: Frame::for_account(&session, "Import"),
        base: base_path(&session),
        running,
    })
}

/// GET `/dashboard/{taxpayer}/imports/{import_no}`: shows the progress or the result of an import.
async fn show_result(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let import = imports::find_owned_by_number(&state.store, session.taxpayer, &ids.1).await?;
    let import = import
        .ok_or_else(|| ApiError::new(ErrorCode::ImportNotFound, "This import does not exist."))?;
    let import = ImportWithEarlierImport::new(import);
    show(&ImportResultPage {
        frame: Frame::for_account(&session, "Import"),
        result: ImportResult {
            is_own_page: true,
            ..ImportResult::new(&session, import, &state.catalog.get())
        },
    })
}

/// POST of the button that cancels a running import. Changes nothing if the import was stopped before.
async fn cancel_import(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let (_, import_no) = ids.into_inner();
    import_files::check_import_no(&import_no)?;
    let page = format!("{}/imports/{import_no}", base_path(&session));
    session.send(&state, CancelImport(import_no)).await?;
    Ok(go_to(
        &page,
        "The import was cancelled. What it has created stays.",
    ))
}

/// The columns of the file that people may begin with: those that a usual invoice needs.
const TEMPLATE_COLUMNS: &str = "invoice_no,invoice_category,invoice_type_code,invoice_date,due_date,currency,\
    customer.no,customer.name,customer.email,customer.tin,customer.business_description,\
    customer.address_street_name,customer.address_city,customer.address_state,customer.address_postal_code,\
    customer.address_country,line.item_name,line.item_no,line.item_type,line.price_unit,line.tax_category,\
    line.product_category,line.service_category,line.quantity,line.unit_price,line.discount_rate,line.discount_amount\r\n";

/// GET `/dashboard/{taxpayer}/import/template.csv`: a file with the names of the columns.
async fn download_template(Reader(_): Reader) -> Result<FileAnswer, ApiError> {
    Ok(FileAnswer {
        media_type: "text/csv; charset=utf-8",
        name: "invoices.csv".to_owned(),
        bytes: TEMPLATE_COLUMNS.into(),
        warnings: Vec::new(),
    })
}

/// GET `/dashboard/{taxpayer}/imports/{import_no}/errors.csv`: the refused rows as they were uploaded, each with its
/// errors.
async fn download_errors(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let right = accounts::reading_right(&request, &state, session.taxpayer);
    import_files::send_error_file(state, session.taxpayer, &ids.1, &request, right).await
}

/// POST of a file: answers with the part of the page that shows the result.
async fn receive_file(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    upload: ImportUpload,
    body: Body,
) -> Answer {
    let imported = match upload.file_request {
        Ok(file_request) => preview_or_import(&state, &session, file_request, body).await,
        Err(error) => Err(error),
    };
    match imported {
        Ok(import) => show(&ImportResult::new(&session, import, &state.catalog.get())),
        Err(error) if error.status.is_client_error() => {
            let message = if error.code == ErrorCode::UnsupportedMediaType {
                UNKNOWN_FILE.to_owned()
            } else {
                error.message.into_string()
            };
            show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &ImportFailure { message })
        }
        Err(error) => Err(error),
    }
}

async fn preview_or_import(
    state: &ApiState,
    session: &AccountSession,
    file_request: FileRequest,
    body: Body,
) -> Result<ImportWithEarlierImport, ApiError> {
    let read = import_files::read(state, session.taxpayer, &file_request, body.file()?).await?;
    let (command, _turn) = match read {
        PreparedImport::Small { command, turn } => (command, turn),
        PreparedImport::Large(file) if file_request.is_preview => {
            let preview = file.preview_import(state, async |piece: PreviewImport| {
                session.send(state, piece).await
            });
            return find_earlier_import(state, session, preview.await?).await;
        }
        PreparedImport::Large(file) => {
            let started = file.store_and_start(&state.store, state.now()).await?;
            return Ok(ImportWithEarlierImport::new(started));
        }
        PreparedImport::Imported(import) => {
            return find_earlier_import(state, session, import).await;
        }
    };
    if file_request.is_preview {
        let (preview, _) = session
            .send(state, PreviewImport::for_first_piece(command))
            .await?;
        return find_earlier_import(state, session, preview).await;
    }
    let imported = session.send(state, command).await?;
    if imported.is_new {
        return Ok(ImportWithEarlierImport::new(imported.import));
    }
    find_earlier_import(state, session, imported.import).await
}

/// Looks up when the same file was imported before, and returns the import together with this time.
async fn find_earlier_import(
    state: &ApiState,
    session: &AccountSession,
    import: Import,
) -> Result<ImportWithEarlierImport, ApiError> {
    let taxpayer = session.taxpayer;
    let earlier = imports::load_import_time(&state.store, taxpayer, &import.import_no).await?;
    Ok(ImportWithEarlierImport { import, earlier })
}

impl ImportWithEarlierImport {
    fn new(import: Import) -> Self {
        Self {
            import,
            earlier: None,
        }
    }
}

impl ImportResult {
    /// Sorts the invoices: those that were not created come first, because somebody has to correct them.
    fn new(session: &AccountSession, import: ImportWithEarlierImport, catalog: &Catalog) -> Self {
        let ImportWithEarlierImport {
            mut import,
            earlier,
        } = import;
        let state = import.state();
        let processed = import.counts.total();
        let is_preview = state == ImportState::Preview;
        let answers = is_preview.then(|| AnswersForm::new(session, &import.questions));
        let mut items = std::mem::take(&mut import.items);
        let unlisted = processed.saturating_sub(items.len().min(ITEMS_SHOWN_MAX));
        items.sort_by_key(|item| {
            let is_cancelled_duplicate = item.duplicate.is_some() && item.existing_cancelled;
            let is_other = is_cancelled_duplicate || item.is_different_duplicate();
            (!item.is_refused(), !is_other)
        });
        items.truncate(ITEMS_SHOWN_MAX);
        let items = items
            .into_iter()
            .map(|item| ImportItemLine::new(state, item, catalog));
        let totals = import.totals.by_currency().map(|total| CurrencyTotal {
            payable: in_currency_digits(total.payable, &total.currency, catalog),
            ..total.clone()
        });
        let totals = totals.collect();
        let causes = std::mem::take(&mut import.causes).into_iter();
        let causes: Vec<_> = causes
            .map(|cause| RefusalCauseLine::new(cause, catalog))
            .collect();
        Self {
            base: base_path(session),
            state,
            earlier,
            percent: processed * 100 / import.documents.max(1),
            totals,
            items: items.collect(),
            is_money_known: causes.iter().any(|one| one.cause.unread < one.cause.count),
            causes,
            unlisted,
            answers: answers.flatten(),
            can_undo: session.role >= ContactRole::Accountant
                && matches!(state, ImportState::Stopped | ImportState::Done)
                && import.counts.created > 0,
            is_own_page: false,
            import,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::invoice::table_columns::export_header;

    #[test]
    fn the_template_has_columns_that_an_import_knows() {
        let known = export_header();
        for column in TEMPLATE_COLUMNS.trim_end().split(',') {
            assert!(known.iter().any(|name| name == column), "{column}");
        }
    }
}
