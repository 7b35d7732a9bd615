//! The file of errors of a large file. It is sent while it is read, a piece at a time.

use actix_web::web::{self, Bytes};
use futures_util::{Stream, stream};

use crate::domain::kernel::ids::TaxpayerId;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::import_pieces::{self, ImportKey};

/// Where the file is read next.
struct Place {
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: String,
    /// The header, until it is sent.
    header: String,
    piece: i64,
}

/// Streams the header and then the errors of the pieces that are imported so far.
pub(crate) fn stream_errors(
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    import_no: String,
    header: String,
) -> impl Stream<Item = Result<Bytes, ApiError>> {
    let place = Place {
        state,
        taxpayer,
        import_no,
        header,
        piece: 0,
    };
    stream::try_unfold(place, |mut place| async {
        let header = std::mem::take(&mut place.header);
        if !header.is_empty() {
            return Ok(Some((Bytes::from(header), place)));
        }
        let key = ImportKey {
            taxpayer: place.taxpayer,
            import_no: &place.import_no,
        };
        let found = import_pieces::errors_from(&place.state.store, key, place.piece)
            .await
            .inspect_err(|error| tracing::error!(%error, "a download broke off"))?;
        Ok(found.map(|(rows, next)| {
            place.piece = next;
            (Bytes::from(rows), place)
        }))
    })
}
