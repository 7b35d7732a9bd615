//! Faults of settings, as sentences for the person who starts the program. No sentence contains a secret.

use std::fmt;
use std::path::PathBuf;

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    Defaults,
    File(PathBuf),
    /// The environment variable with this name.
    Variable(String),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => formatter.write_str("the defaults"),
            Self::File(path) => write!(formatter, "the file {}", path.display()),
            Self::Variable(name) => write!(formatter, "the variable {name}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingFault {
    #[error("the settings file {} cannot be read: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: String },
    #[error("line {line} of {origin} is no TOML: {reason}")]
    NotToml {
        origin: SettingSource,
        line: usize,
        reason: String,
    },
    #[error("`{key}` (from {origin}) is not a setting; {known}")]
    Unknown {
        key: String,
        origin: SettingSource,
        known: String,
    },
    #[error("`{key}` (from {origin}) must be {allowed}{actual}")]
    NotAllowed {
        key: String,
        origin: SettingSource,
        allowed: String,
        actual: String,
    },
    #[error("`{key}` must {demand}")]
    DemandUnmet {
        key: &'static str,
        demand: &'static str,
    },
    #[error("the settings do not fit together: {0}")]
    Inconsistent(String),
}

/// The faults of the settings; there is at least one. The program does not start with faulty settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault(pub Vec<SettingFault>);

impl fmt::Display for ConfigFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [fault] = self.0.as_slice() {
            return write!(formatter, "{fault}");
        }
        write!(formatter, "{} settings are wrong:", self.0.len())?;
        self.0
            .iter()
            .try_for_each(|fault| write!(formatter, "\n- {fault}"))
    }
}

impl std::error::Error for ConfigFault {}

impl ConfigFault {
    /// Returns an error with these faults, or success if the list is empty.
    pub(super) fn unless_empty(faults: Vec<SettingFault>) -> Result<(), Self> {
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Self(faults))
        }
    }
}

impl From<config::ConfigError> for ConfigFault {
    fn from(error: config::ConfigError) -> Self {
        Self(vec![SettingFault::Inconsistent(error.to_string())])
    }
}

/// The reason why the secrets of a development machine could not be read from `data_dir` or written to it.
#[derive(Debug, thiserror::Error)]
pub enum LocalSecretFault {
    #[error("`data_dir`: {} cannot be read or written: {reason}", path.display())]
    PathUnusable {
        path: PathBuf,
        reason: std::io::Error,
    },
    #[error("{} does not hold what `{key}` must be: {allowed}", path.display())]
    NotAllowed {
        path: PathBuf,
        key: &'static str,
        allowed: String,
    },
    #[error("the system gives no random bytes")]
    NoRandomness,
}
