//! Commands that are refused if the data that their sender has read has changed since.

use jiff::Timestamp;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// Stored data as the sender of a command has read it.
pub trait SeenData: Send + Sync + 'static {
    /// Adds the rows that `check` compares with the data that the sender has read.
    fn add_reads(&self, wanted: &mut ReadSet);

    /// Refuses the command if the stored data has changed since the sender read it.
    fn check(&self, uow: &UnitOfWork) -> Result<(), Refusal>;
}

/// An invoice as somebody has read it.
pub struct SeenInvoice {
    pub invoice: InvoiceRef,
    /// The time of the last change of the invoice.
    pub updated_at: Timestamp,
}

/// Executes the command only if the data that its sender has read (`seen`) has not changed since. Without `seen`,
/// always executes the command.
pub struct IfUnchanged<C, S = SeenInvoice> {
    pub seen: Option<S>,
    pub command: C,
}

impl From<&Invoice> for SeenInvoice {
    fn from(invoice: &Invoice) -> Self {
        Self {
            invoice: InvoiceRef {
                kind: UniqueNoType::PortalId,
                text: invoice.id.to_string(),
            },
            // An invoice that comes from a command has a time with nanoseconds, but the database stores microseconds.
            updated_at: Timestamp::from_microsecond(invoice.updated_at.as_microsecond())
                .unwrap_or(invoice.updated_at),
        }
    }
}

impl<C> IfUnchanged<C> {
    /// Wraps a command that is always executed, whatever has changed since its sender read the data.
    pub fn without_condition(command: C) -> Self {
        Self {
            seen: None,
            command,
        }
    }
}

impl SeenData for SeenInvoice {
    fn add_reads(&self, wanted: &mut ReadSet) {
        wanted.add_invoice(&self.invoice);
    }

    fn check(&self, uow: &UnitOfWork) -> Result<(), Refusal> {
        if uow.invoice(&self.invoice)?.updated_at == self.updated_at {
            Ok(())
        } else {
            Err(Refusal::InvoiceChanged)
        }
    }
}

impl<C: TaxpayerCommand, S: SeenData> TaxpayerCommand for IfUnchanged<C, S> {
    type Output = C::Output;

    const NAME: &'static str = C::NAME;
    const IS_LARGE: bool = C::IS_LARGE;
    const SETS_UNIQUE_VALUES: bool = C::SETS_UNIQUE_VALUES;
    const ENDS_KEYS: bool = C::ENDS_KEYS;

    fn default_audit_actor(&self) -> Actor {
        self.command.default_audit_actor()
    }

    fn size(&self) -> CommandSize {
        self.command.size()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        self.command.add_wanted_id_counts(wanted);
    }

    fn run_lease(&self) -> Option<&Lease> {
        self.command.run_lease()
    }

    /// Returns `None` for a command with `seen`: the data may have changed before a replay, so the command must not be
    /// replayed.
    fn contents_for_replay(&self) -> Option<String> {
        if self.seen.is_some() {
            None
        } else {
            self.command.contents_for_replay()
        }
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.command.add_reads(wanted, context);
        if let Some(seen) = &self.seen {
            seen.add_reads(wanted);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<C::Output, Refusal> {
        if let Some(seen) = &self.seen {
            seen.check(uow)?;
        }
        self.command.execute(uow)
    }
}
