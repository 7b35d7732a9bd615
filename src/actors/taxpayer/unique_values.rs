//! Values that no two taxpayers may have, and the commands that set them.

use database::{StoreError, Transaction};
use timing::CommandId;

use crate::domain::kernel::fault::Faults;
use crate::domain::party::Taxpayer;
use crate::store::accounts::taken_values;

/// A command's values that no other taxpayer may have.
pub(super) struct UniqueValues {
    pub(super) command: CommandId,
    pub(super) taxpayer: Taxpayer,
    pub(super) login: Option<String>,
}

/// Returns a fault for each unique value of these commands that another taxpayer already has.
pub(super) async fn find_conflicts(
    tx: &Transaction,
    unique_values: Vec<UniqueValues>,
) -> Result<Vec<(CommandId, Faults)>, StoreError> {
    let mut conflicts = Vec::with_capacity(unique_values.len());
    for UniqueValues {
        command,
        taxpayer,
        login,
    } in unique_values
    {
        conflicts.push((
            command,
            taken_values::find_taken_values(tx, &taxpayer, login.as_deref()).await?,
        ));
    }
    Ok(conflicts)
}
