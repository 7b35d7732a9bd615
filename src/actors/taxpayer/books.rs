//! What an actor keeps of its taxpayer between batches. It is good for as long as the lane's version says
//! that nobody else has written; otherwise it is read again.

use crate::domain::delivery::Endpoint;
use crate::domain::event::Head;
use crate::domain::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::store::database::Transaction;
use crate::store::failure::StoreError;
use crate::store::{events, taxpayers, webhooks};

/// The standing part of a taxpayer's books.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    /// The lane's version when these were current.
    pub(crate) version: i64,
    /// None until the taxpayer is onboarded.
    pub(crate) taxpayer: Option<Taxpayer>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) head: Head,
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
