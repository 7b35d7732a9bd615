//! The commands about the taxpayer's API keys.

use serde_json::json;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::access::api_key::NewKey;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::refusal::Refusal;

/// Gives the taxpayer a new API key. When the sender gets the answer, no process accepts the replaced keys any more.
pub struct RotateKey {
    pub key: NewKey,
    /// The number of valid keys that the taxpayer may have with the new one. `None` for a key that replaces the others.
    pub keys_max: Option<usize>,
    pub by: Actor,
}

/// Revokes one API key. When the sender gets the answer, no process accepts the key any more. It is no error if the
/// taxpayer no longer has the key.
pub struct RevokeKey {
    pub id: String,
    pub by: Actor,
    /// The reason that an operator gave.
    pub reason: Option<String>,
}

impl TaxpayerCommand for RotateKey {
    type Output = ();

    const NAME: &'static str = "rotate-key";
    const ENDS_KEYS: bool = true;

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        if self.keys_max.is_some() {
            wanted.add_valid_key_count();
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        uow.taxpayer()?;
        // Commands of the same batch may have added keys that are not stored yet.
        let valid_keys = uow.valid_keys + uow.writes.keys.len();
        if let Some(max) = self.keys_max.filter(|max| valid_keys >= *max) {
            return Err(Refusal::TooManyKeys(max));
        }
        uow.writes.keys.push(self.key.clone());
        let entry = audit_entry(uow, self.by, AuditAction::RotateTaxpayerKey);
        uow.writes.audit.push(
            entry
                .with_states(None, Some(self.key.to_audit_state()))
                .with_address(uow.acting.address),
        );
        uow.emit(
            EventKind::ApiKeyRotated,
            None,
            &json!({ "taxpayer_id": uow.id }),
        );
        Ok(())
    }
}

impl TaxpayerCommand for RevokeKey {
    type Output = ();

    const NAME: &'static str = "revoke-key";
    const ENDS_KEYS: bool = true;

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        uow.taxpayer()?;
        uow.writes.revoked_keys.push(self.id.clone());
        let entry = audit_entry(uow, self.by, AuditAction::RevokeTaxpayerKey);
        let entry = entry.with_states(None, Some(format!("key {}", self.id)));
        uow.writes.audit.push(AuditEntry {
            reason: self.reason.clone(),
            ..entry.with_address(uow.acting.address)
        });
        Ok(())
    }
}
