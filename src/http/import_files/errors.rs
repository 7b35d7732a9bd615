//! The errors of an imported file, as a CSV file. For a large import, this file is sent while the errors are read, one
//! stored piece after the other.

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, Responder as _};
use futures_util::{Stream, stream};

use crate::domain::kernel::ids::TaxpayerId;
use crate::http::extract::reading_right::ReadingRight;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::{FileAnswer, streamed_download};
use crate::http::state::ApiState;
use crate::store::invoices::import_pieces::{self, ImportKey};
use crate::store::invoices::imports;

const CSV_UTF8_TYPE: &str = "text/csv; charset=utf-8";

/// Sends the error file of an import. `right` is the right of the reader, who may lose it during a long download.
pub(crate) async fn send_error_file(
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: &str,
    request: &HttpRequest,
    right: ReadingRight,
) -> Result<HttpResponse, ApiError> {
    check_import_no(import_no)?;
    let errors = imports::find_errors_owned_by_number(&state.store, taxpayer, import_no).await?;
    let errors = errors.ok_or_else(import_not_found)?;
    let name = format!("{import_no}-errors.csv");
    if errors.has_pieces {
        let parts = stream_errors(state, taxpayer, import_no.to_owned(), errors.csv, right);
        return Ok(streamed_download(CSV_UTF8_TYPE, &name, parts));
    }
    let file = FileAnswer {
        media_type: CSV_UTF8_TYPE,
        name,
        bytes: errors.csv.into_bytes(),
        warnings: Vec::new(),
    };
    Ok(file.respond_to(request))
}

/// Refuses a text that cannot be an import number, before it gets into a query or a file name.
pub(crate) fn check_import_no(import_no: &str) -> Result<(), ApiError> {
    let is_number = import_no.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_number {
        Ok(())
    } else {
        Err(import_not_found())
    }
}

pub(crate) fn import_not_found() -> ApiError {
    ApiError::new(ErrorCode::ImportNotFound, "Import not found")
}

/// The source of the error file, and the position at which reading continues.
struct ErrorFileReader {
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: String,
    /// The header line; empty once it has been sent.
    header: String,
    next_piece: i64,
    right: ReadingRight,
}

/// Streams the header and then the errors of the pieces that are imported so far. Aborts when the reader loses the
/// right to read.
fn stream_errors(
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: String,
    header: String,
    right: ReadingRight,
) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let reader = ErrorFileReader {
        state,
        taxpayer,
        import_no,
        header,
        next_piece: 0,
        right,
    };
    stream::try_unfold(reader, |mut reader| async {
        let header = std::mem::take(&mut reader.header);
        if !header.is_empty() {
            return Ok(Some((Bytes::from(header), reader)));
        }
        reader.right.require_still_held().await?;
        let key = ImportKey {
            taxpayer: reader.taxpayer,
            import_no: &reader.import_no,
        };
        let rows =
            import_pieces::error_rows_from_piece(&reader.state.store, key, reader.next_piece)
                .await
                .inspect_err(|error| tracing::error!(%error, "failed to complete a download"))?;
        Ok(rows.map(|(rows, next)| {
            reader.next_piece = next;
            (Bytes::from(rows), reader)
        }))
    })
}
