//! Imports files of invoices, and returns the outcome of each document.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use crate::actors::taxpayer::commands::{CancelImport, FileImport, PreviewImport};
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::import::record::Import;
use crate::domain::import::source::ImportForm;
use crate::http::api::tax_payers::invoices::create::PRECONDITION_ERROR_CODES;
use crate::http::extract::body::Body;
use crate::http::extract::reading_right::ReadingRight;
use crate::http::forms::standard_invoice;
use crate::http::idempotency::IdempotentRequest;
use crate::http::import_files::{self, CSV_TYPE, FILE_TYPES, FileRequest, PreparedImport};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::import::ImportView;
use crate::store::invoices::imports;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/invoices/import")
            .takes_file()
            .post(import_invoices, || {
                doc("import_invoices", "Import a file of invoices")
                    .with_note(
                        "The body is the file: UBL (Invoice or CreditNote), CSV, XLSX, NDJSON or JSON (one body of \
                         the create request, an array of them, or the body of Bulk), raw or as the field `file` of a \
                         form, at most 100,000 invoices. Each invoice passes the same checks as the create request, \
                         and errors name the place in the file. The same file with the same profile is answered from \
                         its record. More than 1,000 invoices are imported in the background: the answer is 202, and \
                         its Location tells the progress.",
                    )
                    .query_word("form", ImportForm::allowed_words, "the create request; standard by default")
                    .query("preview", "true to change nothing and see what would happen")
                    .query(
                        "replace_cancelled",
                        "true: a cancelled invoice with the number of one of the file becomes a draft with the contents of \
                         the file, if it was never sent to the authority and no payment was recorded",
                    )
                    .with_body(standard_invoice::read, example!("create_invoice"))
                    .with_body_files(FILE_TYPES)
                    .with_response::<ImportView<'_>>(201, "Invoices imported successfully")
                    .with_response::<ImportView<'_>>(201, "No invoice was imported: see items")
                    .with_response::<ImportView<'_>>(202, "Import started")
                    .with_response::<ImportView<'_>>(200, "Import previewed successfully")
                    .with_response::<ImportView<'_>>(200, "This file was imported before")
                    .with_idempotency_key()
                    .with_errors(&PRECONDITION_ERROR_CODES)
                    .with_errors(&[ErrorCode::BatchTooLarge])
            }),
        path("/v1/tax-payers/invoices/imports/{import_no}").get(get_import, || {
            doc("get_import", "What became of an imported file")
                .with_note("While a large file is imported, `documents_done` of `documents` are counted.")
                .with_response::<ImportView<'_>>(200, "Import retrieved successfully")
                .with_errors(&[ErrorCode::ImportNotFound])
        }),
        path("/v1/tax-payers/invoices/imports/{import_no}/errors").get(get_import_errors, || {
            doc("get_import_errors", "The invoices that were not imported")
                .with_note(
                    "The rows of a table as they were uploaded, with a column `error`; a row for each invoice of \
                     other formats. The mended file can be uploaded again.",
                )
                .with_non_json_response(200, "CSV in UTF-8", CSV_TYPE)
                .with_errors(&[ErrorCode::ImportNotFound])
        }),
        path("/v1/tax-payers/invoices/imports/{import_no}/cancel").post(cancel_import, || {
            doc("cancel_import", "Cancel an import")
                .with_note(
                    "Stops the import of a large file. The invoices that it has created stay, and their batch can be \
                     undone; the others are not imported, unless the same file is sent again.",
                )
                .with_response::<ImportView<'_>>(200, "Import cancelled successfully")
                .with_idempotency_key()
                .with_errors(&[ErrorCode::ImportNotFound, ErrorCode::InvalidTransition])
        }),
    ]
}

/// POST /v1/tax-payers/invoices/import: creates the invoices of a file. A preview creates nothing, and returns the
/// outcome that the import would have.
async fn import_invoices(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    file_request: FileRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let (command, _turn) = match import_files::read(&state, id, &file_request, body.file()?).await?
    {
        PreparedImport::Small { command, turn } => (command, turn),
        PreparedImport::Large(file) if file_request.is_preview => {
            let preview = file.preview_import(&state, async |piece: PreviewImport| {
                state.taxpayers.send(id, piece).await
            });
            return Ok(previewed_response(&preview.await?));
        }
        PreparedImport::Large(file) => {
            let import = file.store_and_start(&state.store, state.now()).await?;
            return Ok(started_response(&import));
        }
        PreparedImport::Imported(import) => {
            return Ok(imported_before_response(&import));
        }
    };
    if file_request.is_preview {
        let preview = PreviewImport::for_first_piece(command);
        let (import, _) = state.taxpayers.send(id, preview).await?;
        return Ok(previewed_response(&import));
    }
    idempotent
        .answer_once(
            &state.taxpayers,
            id,
            command,
            created_or_imported_before_response,
        )
        .await
}

fn previewed_response(import: &Import) -> ApiResponse {
    ApiResponse::ok("Import previewed successfully", ImportView::from(import))
}

fn started_response(import: &Import) -> ApiResponse {
    let view = ImportView::from(import);
    ApiResponse::with_status(StatusCode::ACCEPTED, "Import started", view)
        .with_location(&import_path(import))
}

fn created_or_imported_before_response(file: &FileImport) -> ApiResponse {
    if file.is_new {
        created_import_response(&file.import)
    } else {
        imported_before_response(&file.import)
    }
}

fn imported_before_response(import: &Import) -> ApiResponse {
    let view = ImportView::from(import);
    ApiResponse::ok("This file was imported before", view).with_location(&import_path(import))
}

fn created_import_response(import: &Import) -> ApiResponse {
    let message = if import.counts.created == 0 {
        "No invoice was imported: see items"
    } else {
        "Invoices imported successfully"
    };
    ApiResponse::with_status(StatusCode::CREATED, message, ImportView::from(import))
        .with_location(&import_path(import))
}

fn import_path(import: &Import) -> String {
    format!("/v1/tax-payers/invoices/imports/{}", import.import_no)
}

/// GET `/v1/tax-payers/invoices/imports/{import_no}`: returns the outcome of an import.
async fn get_import(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    import_no: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    import_files::check_import_no(&import_no)?;
    let import = imports::find_owned_by_number(&state.store, id, &import_no).await?;
    let import = import.ok_or_else(import_files::import_not_found)?;
    Ok(ApiResponse::ok(
        "Import retrieved successfully",
        ImportView::from(&import),
    ))
}

/// POST `/v1/tax-payers/invoices/imports/{import_no}/cancel`: stops an import. Does nothing if the
/// import was stopped before.
async fn cancel_import(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    import_no: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    import_files::check_import_no(&import_no)?;
    let command = CancelImport(import_no.into_inner());
    let respond = |import: &Import| {
        ApiResponse::ok("Import cancelled successfully", ImportView::from(import))
    };
    idempotent
        .answer_once(&state.taxpayers, id, command, respond)
        .await
}

/// GET `/v1/tax-payers/invoices/imports/{import_no}/errors`: returns the errors of an import as a CSV file.
async fn get_import_errors(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    import_no: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let right = ReadingRight::from_key(&request, &state);
    import_files::send_error_file(state, id, &import_no, &request, right).await
}
