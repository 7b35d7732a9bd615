//! A download that is made in parts while it is sent. An error aborts it, so that an incomplete file is not taken for
//! a complete one.

use actix_web::web::Bytes;
use futures_util::{Stream, stream};

use crate::http::limits::ANSWER_PART_BYTES;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The contents of a file, made part by part.
pub(crate) trait PartSource {
    /// Returns the next part of the file; empty at the end.
    async fn next_part(&mut self) -> Result<Vec<u8>, ApiError>;
}

/// Returns the file in parts of at most `ANSWER_PART_BYTES`. The first part is made before the answer starts, so that a
/// list that cannot be read is answered with the status of an error.
pub(crate) async fn stream_parts<S: PartSource + 'static>(
    mut source: S,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + use<S>, ApiError> {
    let first = Bytes::from(source.next_part().await?);
    Ok(stream::try_unfold(
        (source, first),
        |(mut source, mut unsent)| async {
            if unsent.is_empty() {
                let next = source.next_part().await;
                unsent = next.inspect_err(log_aborted_download)?.into();
            }
            if unsent.is_empty() {
                return Ok(None);
            }
            let part = unsent.split_to(unsent.len().min(ANSWER_PART_BYTES));
            Ok(Some((part, (source, unsent))))
        },
    ))
}

/// Logs the cause of an aborted download. No other code logs the error, because the status of the answer has been sent,
/// so no failure is rendered.
pub(crate) fn log_aborted_download(error: &ApiError) {
    let cause = error.cause.as_deref().unwrap_or(&error.message);
    if error.code == ErrorCode::Unauthenticated {
        tracing::info!(cause, "stopped a download: its caller may no longer read");
    } else {
        tracing::error!(cause, "failed to complete a download");
    }
}
