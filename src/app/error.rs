//! The reasons why a command fails, each as a sentence for the person who ran it.

use std::net::SocketAddr;
use std::path::PathBuf;

use authority_client::{AuthorityBuildError, CryptoError};
use database::StoreError;
use database::vault::InvalidEncryptionKey;

use crate::actors::checkpoint::CheckpointError;
use crate::actors::mail::TransportError;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::events::checkpoint::InvalidCheckpointKey;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::store::events::checkpoint_file::CheckpointFileError;
use crate::telemetry::traces::TracesError;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database {location} cannot be opened")]
    Database {
        location: String,
        source: StoreError,
    },
    #[error("the keys of secrets.encryption_key and secrets.encryption_keys cannot be used")]
    EncryptionKey(#[from] InvalidEncryptionKey),
    #[error(
        "none of {read} secrets in the database opens: set secrets.encryption_key to the key of this database, and add \
         older ones to secrets.encryption_keys"
    )]
    OtherEncryptionKey { read: usize },
    #[error(transparent)]
    Authority(#[from] AuthorityBuildError),
    #[error("traces cannot be exported: {0}")]
    Traces(#[from] TracesError),
    #[error("the webhook client cannot be built")]
    Webhooks(#[from] webhook_client::ClientBuildError),
    #[error("mails cannot be sent: {0}")]
    Mail(#[from] TransportError),
    #[error("the file {} cannot be read", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the keys of {origin} cannot be used")]
    CryptoKeys { origin: String, source: CryptoError },
    #[error("cannot listen on {bind}")]
    Bind {
        bind: SocketAddr,
        source: std::io::Error,
    },
    #[error("the server has failed")]
    Server(#[from] std::io::Error),
    #[error("the simulator of the authority cannot be started: {0}")]
    Sandbox(String),
    #[error("authority.base_url must be set")]
    NoAuthority,
    #[error("panics would end the process: {0}")]
    Panics(&'static str),
    #[error(transparent)]
    Command(#[from] TaxpayerError),
    #[error("the password cannot be hashed")]
    PasswordHash,
    #[error("an account with the email {0} exists already")]
    EmailTaken(String),
    #[error("{0:?} is not an email address")]
    InvalidEmail(String),
    #[error("the name of an account must not be empty")]
    EmptyName,
    #[error("the name of an account {0}")]
    InvalidName(FieldRule),
    #[error("{left} sealed texts were not resealed: {unopened} of them open with no key")]
    NotResealed { left: u64, unopened: u64 },
    #[error("there is no {kind} {id}")]
    NoAccount { kind: KeyKind, id: i64 },
    #[error("the {kind} {id} is disabled; enable it first")]
    DisabledAccount { kind: KeyKind, id: i64 },
    #[error("this would leave no enabled operator with the role admin; make another one first")]
    LastAdmin,
    #[error(
        "this would leave the taxpayer without an enabled owner; make somebody else an owner first"
    )]
    LastOwner,
    #[error("a key cannot end at {0}, which has passed")]
    KeyEndPassed(jiff::Timestamp),
    #[error("the key of checkpoints in {} cannot be used: {fault}", .path.display())]
    CheckpointKey {
        path: PathBuf,
        fault: InvalidCheckpointKey,
    },
    #[error("checkpoints.file and checkpoints.key_file must be set")]
    NoCheckpoints,
    #[error("--public-key is needed, or checkpoints.key_file")]
    NoPublicKey,
    #[error("--public-key cannot be used: {0}")]
    PublicKey(InvalidCheckpointKey),
    #[error(
        "{0} event chains contradict their last checkpoint: run `einvoice verify --checkpoints FILE`"
    )]
    CheckpointsContradicted(usize),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    CheckpointFile(#[from] CheckpointFileError),
    #[error("taxpayer {taxpayer} has no contact person {id}")]
    NoContact { taxpayer: TaxpayerId, id: ContactId },
    #[error("there is no taxpayer {0}")]
    NoTaxpayer(i64),
    #[error(
        "the authority is embedded in a service, and none took this up: start `einvoice serve`, which does it then"
    )]
    NoServiceReconciles,
    #[error("the day could not be compared to its end: {0}; a running service tries again")]
    ReconciliationInterrupted(String),
    #[error("the day could not be compared: {0}")]
    NotReconciled(String),
    #[error("the demo failed: {0}")]
    Demo(String),
}

impl StartError {
    pub(super) fn no_account(account: KeyOwner) -> Self {
        Self::NoAccount {
            kind: account.kind,
            id: account.id,
        }
    }
}
