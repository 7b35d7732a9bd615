//! The change of a stored customer by a person of the account. Later invoices get the new data. An invoice keeps the
//! name, the email and the tax number that it was stored with.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::{Customer, CustomerDetails};

pub struct ChangeCustomer {
    /// The customer as the sender has read it.
    pub seen: Customer,
    /// The new data. The number of the customer stays, and so does its tax number unless it has none.
    pub details: CustomerDetails,
    pub by: Actor,
}

impl TaxpayerCommand for ChangeCustomer {
    type Output = Customer;

    const NAME: &'static str = "change-customer";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_customer(&self.seen.details);
        wanted.add_customer(&self.details);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Customer, Refusal> {
        uow.taxpayer()?;
        let seen = &self.seen;
        if uow.customers.find_by_id(seen.id) != Some(seen) {
            return Err(Refusal::CustomerChanged);
        }
        let stored_tin = seen.details.tin.clone();
        let details = CustomerDetails {
            no: seen.details.no.clone(),
            tin: stored_tin.or_else(|| self.details.tin.clone()),
            ..self.details.clone()
        };
        check_tin_is_free(uow, seen, &details)?;
        let customer = Customer { details, ..*seen };
        let changed = customer.details.changed_fields_since(&seen.details);
        if changed.is_empty() {
            return Ok(customer);
        }
        let entry = AuditEntry {
            subject: customer.details.no.clone(),
            ..audit_entry(uow, self.by, AuditAction::UpdateCustomer)
        };
        uow.writes
            .audit
            .push(entry.with_states(None, Some(changed.join(", "))));
        uow.put_customer(customer.clone());
        Ok(customer)
    }
}

/// Refuses a tax number that is filled in if another customer has it, because later invoices would find either of them.
fn check_tin_is_free(
    uow: &UnitOfWork,
    seen: &Customer,
    details: &CustomerDetails,
) -> Result<(), Refusal> {
    let Some(tin) = details.tin.as_ref().filter(|_| seen.details.tin.is_none()) else {
        return Ok(());
    };
    match uow.customers.find_by_tin(tin) {
        Some(other) if other.id != seen.id => {
            let message = format!(
                "The tin is that of the customer {}, {}.",
                other.details.no, other.details.name
            );
            Err(Fault::new("tin", "unique", message).into())
        }
        _ => Ok(()),
    }
}
