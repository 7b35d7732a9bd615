//! The imports of large files that are running: those whose lanes have work.

use database::StoreError;

use crate::domain::import::record::{Import, ImportState};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::invoices::import_pieces::ImportKey;
use crate::store::invoices::imports;
use crate::store::lanes::{LaneKind, views};

/// Finds the import that creates the invoices of this batch; `None` if no such import is running.
pub async fn find_by_batch(
    store: &Store,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Option<Import>, StoreError> {
    let found = imports::find_owned_by_batch(store, taxpayer, batch_no).await?;
    Ok(found.filter(|import| import.state() == ImportState::Running))
}

/// Loads the running imports of a taxpayer, `max` of them at most.
pub async fn load_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    max: usize,
) -> Result<Vec<Import>, StoreError> {
    let mut numbers = numbers_with_work(store, taxpayer).await?;
    numbers.truncate(max);
    let found = imports::find_owned_by_numbers(store.reader(), taxpayer, &numbers).await?;
    let running = found.into_iter();
    Ok(running
        .filter(|import| import.state() == ImportState::Running)
        .collect())
}

/// Returns the numbers of the taxpayer's imports that have pieces left.
async fn numbers_with_work(store: &Store, taxpayer: TaxpayerId) -> Result<Vec<String>, StoreError> {
    let keys = views::keys_with_work(store.reader(), LaneKind::Import, taxpayer.0).await?;
    let keys = keys.iter().filter_map(|key| ImportKey::parse_lane_key(key));
    Ok(keys.map(|key| key.import_no.to_owned()).collect())
}
