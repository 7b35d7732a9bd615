//! The whole body of a request as it was sent, with its reserved memory. A large body waits for its turn and is read on
//! another thread.

use actix_web::web;

use crate::actors::turn_gate::BudgetPortion;
use crate::domain::access::payer::PayingAccount;
use crate::http::limits::{BodyPermit, SMALL_BODY_BYTES_MAX};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// A whole body as it was sent, with its reserved memory.
#[derive(Debug)]
pub(crate) struct BodyText {
    pub(crate) bytes: Vec<u8>,
    /// The size of a packed file after unpacking; 0 for any other body. A packed file also counts as large if only its
    /// unpacked text is large, because that text is what is read.
    pub(crate) unpacked_bytes: usize,
    account: Option<PayingAccount>,
    /// `None` if the body is empty.
    _room: Option<BodyPermit>,
}

impl BodyText {
    /// `room` is the permit for the memory of the text; `None` if the text is empty.
    pub(super) fn new(
        bytes: Vec<u8>,
        account: Option<PayingAccount>,
        room: Option<BodyPermit>,
    ) -> Self {
        Self {
            bytes,
            unpacked_bytes: 0,
            account,
            _room: room,
        }
    }

    /// Runs `read` on the text with a permit for the memory of the parsed values. A large text waits for its turn and
    /// is read on another thread, because reading it here would delay other requests.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        state: &ApiState,
        read: impl FnOnce(&[u8], BodyPermit) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let room = state
            .bodies
            .reserve_for_values(self.account, &self.bytes)
            .await?;
        self.read_with_permit(state, room, read).await
    }

    /// Passes the whole text to `work`. A large text waits for its turn and is processed on another thread.
    pub(crate) async fn process_in_turn<T: Send + 'static>(
        self,
        state: &ApiState,
        work: impl FnOnce(Self) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        if self.is_small() {
            return Ok(work(self));
        }
        let turn = state.bodies.wait_for_reading_turn(self.account).await?;
        let task = web::block(move || {
            let result = work(self);
            drop(turn);
            result
        });
        task.await.map_err(ApiError::internal)
    }

    /// Reserves `bytes` of memory for the values that are made from the text.
    pub(crate) async fn reserve_value_memory(
        &self,
        state: &ApiState,
        bytes: usize,
    ) -> Result<BodyPermit, ApiError> {
        let length = self.bytes.len().max(bytes);
        state.bodies.reserve(self.account, length, bytes).await
    }

    /// Runs `read` on a file whose values take at most `bytes` of memory.
    pub(crate) async fn read_file<T: Send + 'static>(
        self,
        state: &ApiState,
        bytes: usize,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let room = self.reserve_value_memory(state, bytes).await?;
        self.read_with_permit(state, room, |file, _room| read(file))
            .await
    }

    async fn read_with_permit<T: Send + 'static>(
        self,
        state: &ApiState,
        room: BodyPermit,
        read: impl FnOnce(&[u8], BodyPermit) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        if self.is_small() {
            return Ok(read(&self.bytes, room));
        }
        let turn = state.bodies.wait_for_reading_turn(self.account).await?;
        let task = web::block(move || {
            let result = read(&self.bytes, room);
            drop(turn);
            result
        });
        task.await.map_err(ApiError::internal)
    }

    /// Returns true if the text is so small that reading it on this thread does not delay other requests.
    fn is_small(&self) -> bool {
        self.bytes.len().max(self.unpacked_bytes) <= SMALL_BODY_BYTES_MAX
    }

    /// Waits until the bulk request with this text may be processed.
    pub(crate) async fn wait_for_bulk_turn(
        &self,
        state: &ApiState,
    ) -> Result<BudgetPortion, ApiError> {
        state.bodies.wait_for_bulk_turn(self.account).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_file_counts_with_its_unpacked_size() {
        for (bytes, unpacked_bytes, is_small) in [
            (10, 0, true),
            (SMALL_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX, true),
            (SMALL_BODY_BYTES_MAX + 1, 0, false),
            (10, SMALL_BODY_BYTES_MAX + 1, false),
        ] {
            let text = BodyText {
                bytes: vec![b' '; bytes],
                unpacked_bytes,
                account: None,
                _room: None,
            };
            assert_eq!(text.is_small(), is_small, "{bytes} {unpacked_bytes}");
        }
    }
}
