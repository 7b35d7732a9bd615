//! The errors of a large imported file, as a CSV file. It is sent while the errors are read, one stored piece after the
//! other.

use actix_web::web::{self, Bytes};
use futures_util::{Stream, stream};

use crate::domain::kernel::ids::TaxpayerId;
use crate::http::extract::reading_right::ReadingRight;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::import_pieces::{self, ImportKey};

/// The source of the error file, and the position at which reading continues.
struct ErrorFileReader {
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: String,
    /// The header line; empty once it has been sent.
    header: String,
    /// The number of the next piece.
    piece: i64,
    right: ReadingRight,
}

/// Streams the header and then the errors of the pieces that are imported so far. Breaks off when the reader loses the
/// right to read.
pub(crate) fn stream_errors(
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
        piece: 0,
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
        let found = import_pieces::error_rows_from_piece(&reader.state.store, key, reader.piece)
            .await
            .inspect_err(|error| tracing::error!(%error, "a download broke off"))?;
        Ok(found.map(|(rows, next)| {
            reader.piece = next;
            (Bytes::from(rows), reader)
        }))
    })
}
