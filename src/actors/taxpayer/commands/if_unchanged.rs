//! A change of an invoice that depends on what its sender has seen. It is refused if the invoice has changed since.

use jiff::Timestamp;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::Size;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// An invoice as somebody has read it.
pub struct SeenInvoice {
    pub invoice: InvoiceRef,
    /// The time of its last change.
    pub updated_at: Timestamp,
}

/// Executes the command only if the invoice has not changed since its sender read it (`seen`). Without `seen`, always
/// executes it.
pub struct IfUnchanged<C> {
    pub seen: Option<SeenInvoice>,
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
    /// Makes a command that depends on no invoice that its sender has read.
    pub fn always(command: C) -> Self {
        Self {
            seen: None,
            command,
        }
    }
}

impl<C: TaxpayerCommand> TaxpayerCommand for IfUnchanged<C> {
    type Output = C::Output;

    const NAME: &'static str = C::NAME;
    const IS_LARGE: bool = C::IS_LARGE;
    const SETS_UNIQUE_VALUES: bool = C::SETS_UNIQUE_VALUES;
    const ENDS_KEYS: bool = C::ENDS_KEYS;

    fn own_actor(&self) -> Actor {
        self.command.own_actor()
    }

    fn size(&self) -> Size {
        self.command.size()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        self.command.add_wanted_id_counts(wanted);
    }

    fn run_lease(&self) -> Option<&Lease> {
        self.command.run_lease()
    }

    /// Returns `None` for a command that depends on what its sender has seen: it must not be replayed, because the
    /// invoice may have changed by then.
    fn contents(&self) -> Option<String> {
        if self.seen.is_some() {
            None
        } else {
            self.command.contents()
        }
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.command.add_reads(wanted, context);
        if let Some(seen) = &self.seen {
            wanted.add_invoice(&seen.invoice);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<C::Output, Refusal> {
        if let Some(seen) = &self.seen
            && uow.invoice(&seen.invoice)?.updated_at != seen.updated_at
        {
            return Err(Refusal::InvoiceChanged);
        }
        self.command.execute(uow)
    }
}
