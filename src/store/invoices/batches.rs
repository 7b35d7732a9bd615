//! Batches and the results of their items.

use sea_orm::{EntityTrait, IntoActiveModel};

use crate::domain::invoice::batch::Batch;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::invoices::batch_row::{Entity, Model};

pub async fn add(tx: &Transaction, batch: &Batch) -> Result<(), StoreError> {
    Entity::insert(Model::from(batch).into_active_model()).exec_without_returning(tx).await?;
    Ok(())
}

pub async fn owned_by_with_number(
    store: &Store,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Option<Batch>, StoreError> {
    let found = Entity::find_by_id((taxpayer.0, batch_no.to_owned())).one(store.reader()).await?;
    found.map(Batch::try_from).transpose()
}
