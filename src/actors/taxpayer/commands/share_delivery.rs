//! The command that records a link to one delivery. The link itself is not stored, because its signature proves that it
//! is valid.

use jiff::Timestamp;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::webhook::configured_endpoint;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;

pub struct ShareDelivery {
    pub delivery: uuid::Uuid,
    pub endpoint: EndpointKey,
    pub expires_at: Timestamp,
    pub by: Actor,
}

impl TaxpayerCommand for ShareDelivery {
    type Output = ();

    const NAME: &'static str = "share-delivery";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        configured_endpoint(uow, self.endpoint)?;
        let until = format!("until {}", precise_time(self.expires_at));
        let entry = audit_entry(uow, self.by, AuditAction::ShareDelivery);
        uow.writes.audit.push(AuditEntry {
            subject: self.delivery.to_string(),
            ..entry.with_states(None, Some(until))
        });
        Ok(())
    }
}
