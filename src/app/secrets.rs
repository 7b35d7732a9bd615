//! The command `secrets reseal`: encrypts (seals) every secret in the database again, with the current encryption key.

use serde_json::{Value, json};

use crate::app::database::open_existing;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::store::reseal::{self, ResealCounts};

/// The result of resealing, for each kind of secret. Older encryption keys are needed until `left` and `unopened` are 0
/// for every kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResealReport {
    key_id: String,
    kinds: Vec<ResealCounts>,
}

impl ResealReport {
    /// Fails if at least one secret in the database could not be resealed with the current encryption key.
    pub fn check_all_resealed(&self) -> Result<(), StartError> {
        let mut unopened = 0;
        let mut left = 0;
        for kind in &self.kinds {
            unopened += kind.unopened;
            left += kind.left + kind.unopened;
        }
        if left == 0 {
            Ok(())
        } else {
            Err(StartError::NotResealed { left, unopened })
        }
    }

    /// Returns the counts for each kind of secret.
    pub fn to_json(&self) -> Value {
        let kinds = self.kinds.iter().map(|kind| {
            let counts = json!({
                "read": kind.read,
                "resealed": kind.resealed,
                "left": kind.left,
                "unopened": kind.unopened,
                "unopened_owners": kind.unopened_owners,
            });
            (kind.kind.to_owned(), counts)
        });
        let kinds: serde_json::Map<_, _> = kinds.collect();
        json!({ "key_id": self.key_id, "kinds": kinds })
    }
}

/// Reseals every secret in the database. The command may be stopped at any time and started again.
pub async fn reseal(settings: Settings) -> Result<ResealReport, StartError> {
    let store = open_existing(&settings).await?;
    let key_id = store.vault().key_id().to_owned();
    let resealed = reseal::reseal_columns(&store).await;
    store.close().await;
    Ok(ResealReport {
        key_id,
        kinds: resealed?,
    })
}
