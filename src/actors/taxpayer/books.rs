//! What an actor keeps of its taxpayer between batches. It is good for as long as the lane's version says
//! that nobody else has written; otherwise it is read again.

use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::LogHead;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Transaction;
use crate::store::db::error::StoreError;
use crate::store::events;
use crate::store::webhooks;

/// The standing part of a taxpayer's books.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    /// The lane's version when these were current.
    pub(crate) version: i64,
    /// None until the taxpayer is onboarded.
    pub(crate) taxpayer: Option<Taxpayer>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) head: LogHead,
}

impl Books {
    pub(crate) async fn load(tx: &Transaction, id: TaxpayerId, version: i64) -> Result<Self, StoreError> {
        Ok(Self {
            version,
            taxpayer: taxpayers::with_id(tx, id).await?,
            endpoint: webhooks::owned_by(tx, id).await?,
            head: events::head(tx, id).await?,
        })
    }
}
