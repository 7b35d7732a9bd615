//! Secrets that a development machine creates for itself, once, in files of `data_dir` for all later starts.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use tempfile::NamedTempFile;
use toml::Value;

use super::authority::AuthorityMode;
use super::fault::LocalSecretFault;
use super::{Environment, Settings, limits};

/// The file in `data_dir` with the key that signs checkpoints.
const CHECKPOINT_KEY_FILE: &str = "checkpoint_key";

/// A function that encodes random bytes as a secret.
type EncodeSecret = fn([u8; 32]) -> String;

/// The action for a secret that has neither a value in the settings nor a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingSecretAction {
    Create,
    LeaveEmpty,
}

impl Settings {
    /// Creates `data_dir`. In development, gives each missing secret a random value, which is kept in a file in
    /// `data_dir`.
    pub fn with_local_secrets(self) -> Result<Self, LocalSecretFault> {
        let dir = self.data_dir.clone();
        // The directory contains the database and the secrets, so only its owner may read it.
        let creation = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        creation.map_err(|reason| LocalSecretFault::PathUnusable {
            path: dir.clone(),
            reason,
        })?;
        restrict_to_owner(&dir);
        self.fill_secrets(MissingSecretAction::Create)
    }

    /// Reads the secrets that are in files of `data_dir`, but creates nothing: a missing secret stays empty.
    pub fn with_stored_secrets(self) -> Result<Self, LocalSecretFault> {
        self.fill_secrets(MissingSecretAction::LeaveEmpty)
    }

    /// True if a start creates the key that signs checkpoints, because it is missing.
    pub fn creates_checkpoint_key(&self) -> bool {
        let local = self.data_dir.join(CHECKPOINT_KEY_FILE);
        self.environment == Environment::Development
            && self.checkpoints.key_file.as_ref() == Some(&local)
            && !local.exists()
    }

    fn fill_secrets(mut self, missing: MissingSecretAction) -> Result<Self, LocalSecretFault> {
        if self.environment == Environment::Production {
            return Ok(self);
        }
        let dir = self.data_dir.clone();
        let fill = |secret: &mut SecretString, key, encode: EncodeSecret| {
            fill_secret(secret, key, &dir, encode, missing)
        };
        fill(
            &mut self.secrets.encryption_key,
            "secrets.encryption_key",
            |random_bytes| STANDARD.encode(random_bytes),
        )?;
        fill(
            &mut self.authority.notification_token,
            "authority.notification_token",
            random_text,
        )?;
        // The simulator accepts any key that is a UUID and any secret. A remote authority issues both itself.
        if self.authority.mode == AuthorityMode::Sandbox {
            fill(
                &mut self.authority.api_key,
                "authority.api_key",
                random_uuid,
            )?;
            fill(
                &mut self.authority.api_secret,
                "authority.api_secret",
                random_text,
            )?;
        }
        self.checkpoints
            .file
            .get_or_insert_with(|| dir.join("checkpoints.log"));
        if self.checkpoints.key_file.is_none() {
            let mut key = SecretString::default();
            fill(&mut key, "checkpoints.checkpoint_key", |random_bytes| {
                STANDARD.encode(random_bytes)
            })?;
            self.checkpoints.key_file = Some(dir.join(CHECKPOINT_KEY_FILE));
        }
        Ok(self)
    }
}

/// Lets only the owner read the database and lock files. Files that an earlier version of the program created may be
/// readable for others.
fn restrict_to_owner(dir: &Path) {
    for name in [
        "einvoice.db",
        "einvoice.db-wal",
        "einvoice.db-shm",
        "serve.lock",
    ] {
        let path = dir.join(name);
        let is_readable_for_others =
            fs::metadata(&path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
        if is_readable_for_others
            && let Err(error) = fs::set_permissions(&path, Permissions::from_mode(0o600))
        {
            tracing::warn!(%error, file = %path.display(), "failed to restrict a file to its owner");
        }
    }
}

fn random_text(random_bytes: [u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(random_bytes)
}

fn random_uuid(random_bytes: [u8; 32]) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&random_bytes[..16]);
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// If the secret is missing, reads it from a file in `dir`, or creates the file with a new secret if it may. The file
/// is named after the last part of the setting's name: `encryption_key` for `secrets.encryption_key`.
fn fill_secret(
    secret: &mut SecretString,
    key: &'static str,
    dir: &Path,
    encode: EncodeSecret,
    missing: MissingSecretAction,
) -> Result<(), LocalSecretFault> {
    if !secret.expose_secret().is_empty() {
        return Ok(());
    }
    let name = key.rsplit('.').next().unwrap_or(key);
    let path = dir.join(name);
    if missing == MissingSecretAction::LeaveEmpty && !path.exists() {
        return Ok(());
    }
    let mut random_bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut random_bytes).map_err(|_| LocalSecretFault::NoRandomness)?;
    let content = read_or_create(&path, dir, || encode(random_bytes)).map_err(|reason| {
        LocalSecretFault::PathUnusable {
            path: path.clone(),
            reason,
        }
    })?;
    let text = content.trim();
    let allowed = limits::allowed_values(key)
        .filter(|allowed| text.is_empty() || !allowed.admits(&Value::from(text)));
    if let Some(allowed) = allowed {
        return Err(LocalSecretFault::NotAllowed {
            path,
            key,
            allowed: allowed.describe(),
        });
    }
    *secret = text.into();
    Ok(())
}

/// Returns the content of the file. If there is no file, creates it in one step, so that nobody reads half of a secret.
/// If two processes create the file at the same time, both use the first version.
fn read_or_create(
    path: &Path,
    dir: &Path,
    make_text: impl FnOnce() -> String,
) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read,
    }
    // The temporary file is created with mode 0600, so nobody else can ever read it.
    let mut file = NamedTempFile::new_in(dir)?;
    writeln!(file, "{}", make_text())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
        _ => fs::read_to_string(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{from_environment, production_variables};

    #[test]
    fn secrets_are_created_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("new");
        let load = || {
            from_environment(&[("EINVOICE__DATA_DIR", home.to_str().unwrap())])
                .with_local_secrets()
                .unwrap()
        };
        let first = load();
        let second = load();
        let secret_texts = |settings: &Settings| {
            let secrets = &settings.secrets;
            let authority = &settings.authority;
            [
                &secrets.encryption_key,
                &authority.notification_token,
                &authority.api_key,
                &authority.api_secret,
            ]
            .map(|secret| secret.expose_secret().to_owned())
        };
        assert_eq!(secret_texts(&first), secret_texts(&second));
        let key = STANDARD
            .decode(first.secrets.encryption_key.expose_secret())
            .unwrap();
        assert_eq!(key.len(), 32);
        assert!(
            first
                .authority
                .api_key
                .expose_secret()
                .parse::<uuid::Uuid>()
                .is_ok()
        );
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 5);
        let checkpoints = &first.checkpoints;
        assert_eq!(
            checkpoints.file.as_deref(),
            Some(home.join("checkpoints.log").as_path())
        );
        assert_eq!(
            checkpoints.key_file.as_deref(),
            Some(home.join("checkpoint_key").as_path())
        );
    }

    #[test]
    fn stored_secrets_are_read_and_missing_ones_are_not_created() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("new");
        let settings = from_environment(&[("EINVOICE__DATA_DIR", home.to_str().unwrap())]);
        let key = |settings: Settings| settings.secrets.encryption_key.expose_secret().to_owned();
        let before = settings.clone().with_stored_secrets().unwrap();
        assert_eq!((key(before), home.exists()), (String::new(), false));
        let created = settings.clone().with_local_secrets().unwrap();
        let stored = settings.with_stored_secrets().unwrap();
        assert_eq!(key(stored), key(created));
    }

    #[test]
    fn a_secret_and_the_database_of_an_earlier_version_are_readable_by_their_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["einvoice.db", "einvoice.db-wal"] {
            std::fs::write(dir.path().join(name), "").unwrap();
            std::fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o644)).unwrap();
        }
        from_environment(&[("EINVOICE__DATA_DIR", dir.path().to_str().unwrap())])
            .with_local_secrets()
            .unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            assert_eq!(
                entry.unwrap().metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn a_configured_secret_is_not_created() {
        let dir = tempfile::tempdir().unwrap();
        let settings = from_environment(&[
            ("EINVOICE__DATA_DIR", dir.path().to_str().unwrap()),
            ("EINVOICE__AUTHORITY__API_KEY", "12345"),
        ]);
        let settings = settings.with_local_secrets().unwrap();
        assert_eq!(settings.authority.api_key.expose_secret(), "12345");
        assert!(!dir.path().join("api_key").exists());
    }

    #[test]
    fn a_corrupt_secret_file_is_reported_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("encryption_key");
        let load = || {
            from_environment(&[("EINVOICE__DATA_DIR", dir.path().to_str().unwrap())])
                .with_local_secrets()
        };
        for corrupt in ["", "hunter2"] {
            std::fs::write(&path, corrupt).unwrap();
            let text = load().unwrap_err().to_string();
            assert!(
                text.contains("encryption_key does not hold what `secrets.encryption_key` must be"),
                "{text}"
            );
            assert!(!text.contains("hunter2"), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), corrupt);
        }
    }

    #[test]
    fn concurrent_starts_use_the_same_secret() {
        let dir = tempfile::tempdir().unwrap();
        let load = || {
            from_environment(&[("EINVOICE__DATA_DIR", dir.path().to_str().unwrap())])
                .with_local_secrets()
        };
        let keys = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| load().unwrap().secrets.encryption_key))
                .collect();
            starts
                .into_iter()
                .map(|start| start.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(
            keys.iter()
                .all(|key| key.expose_secret() == keys[0].expose_secret())
        );
    }

    #[test]
    fn production_creates_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("new");
        let mut pairs = production_variables();
        pairs.push(("EINVOICE__DATA_DIR", home.to_str().unwrap()));
        from_environment(&pairs).with_local_secrets().unwrap();
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0);
    }
}
