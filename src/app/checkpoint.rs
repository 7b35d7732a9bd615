//! The command `checkpoint`, and the periodic checkpoints of a running service. The settings name the key that signs
//! the checkpoints, and the file that they are appended to.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use timing::clock::{SharedClock, SystemClock};
use tokio::sync::Mutex;

use crate::actors::checkpoint::Checkpointer;
use crate::app::database::open_existing;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::events::checkpoint::CheckpointKey;
use crate::store::Store;
use crate::store::events::checkpoint_file::CheckpointFile;

/// Returns the checkpointer of this database; `None` if the settings do not name a checkpoint file and a key file.
pub(super) fn checkpointer(
    settings: &Settings,
    store: &Store,
    clock: &SharedClock,
) -> Result<Option<Checkpointer>, StartError> {
    let (Some(path), Some(key)) = (&settings.checkpoints.file, &settings.checkpoints.key_file)
    else {
        return Ok(None);
    };
    let file = Arc::new(Mutex::new(CheckpointFile::new(
        path.clone(),
        read_signing_key(key)?,
    )));
    Ok(Some(Checkpointer {
        store: store.clone(),
        clock: clock.clone(),
        file,
        last: Arc::default(),
    }))
}

/// Reads the signing key from the file that `checkpoints.key_file` names.
pub(super) fn read_signing_key(path: &Path) -> Result<CheckpointKey, StartError> {
    let text = fs::read_to_string(path).map_err(|source| StartError::File {
        path: path.to_owned(),
        source,
    })?;
    CheckpointKey::parse(&text).map_err(|fault| StartError::CheckpointKey {
        path: path.to_owned(),
        fault,
    })
}

/// Signs the last hash of each event chain that has grown since the last checkpoint. Returns the number and the hash of
/// the file's last line: with a copy of them, an operator can see later whether the file was truncated.
pub async fn checkpoint(settings: Settings) -> Result<Value, StartError> {
    let store = open_existing(&settings).await?;
    let clock: SharedClock = Arc::new(SystemClock);
    let checkpointer = checkpointer(&settings, &store, &clock)?.ok_or(StartError::NoCheckpoints)?;
    let result = checkpointer.sign_grown_heads().await;
    store.close().await;
    let result = result?;
    if !result.broken.is_empty() {
        return Err(StartError::CheckpointsContradicted(result.broken.len()));
    }
    Ok(json!({
        "file": settings.checkpoints.file,
        "heads": result.heads,
        "number": result.tail.number,
        "hash": result.tail.hash,
        "public_key": result.public_key.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_that_cannot_be_used_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "no key").unwrap();
        let error_text = |path: &Path| read_signing_key(path).err().unwrap().to_string();
        let unusable = file.path();
        let missing = file.path().join("nowhere");
        assert_eq!(
            error_text(unusable),
            format!(
                "the key of checkpoints in {} cannot be used: a key of checkpoints is 32 bytes in base64",
                unusable.display()
            )
        );
        assert_eq!(
            error_text(&missing),
            format!("the file {} cannot be read", missing.display())
        );
    }
}
