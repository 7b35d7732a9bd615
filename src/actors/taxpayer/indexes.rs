//! Indexes over the rows that a batch of commands has loaded. One command may create a thousand invoices, and for each
//! of them its duplicate and its customer are looked up in these rows.

use std::collections::{HashMap, HashSet};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::kernel::tracked::Tracked;
use crate::domain::party::{Customer, CustomerDetails};

/// Invoices, indexed by id, number and IRN, which are unique within the taxpayer and never change.
#[derive(Debug, Default)]
pub(crate) struct InvoiceIndex {
    all: Vec<Tracked<Invoice>>,
    by_id: HashMap<InvoiceId, usize>,
    by_number: HashMap<String, usize>,
    by_irn_key: HashMap<String, usize>,
    /// The invoices whose signed credit notes were not read, because they are too many or too large.
    without_notes: HashSet<InvoiceId>,
}

impl InvoiceIndex {
    /// Indexes invoices that are stored and unchanged. `without_notes` are those whose signed credit notes were not
    /// read.
    pub(crate) fn new(invoices: Vec<Invoice>, without_notes: Vec<InvoiceId>) -> Self {
        let mut index = Self {
            without_notes: without_notes.into_iter().collect(),
            ..Self::default()
        };
        for invoice in invoices {
            index.push(Tracked::from_stored(invoice));
        }
        index
    }

    pub(crate) fn changed_invoices(&self) -> impl Iterator<Item = &Invoice> {
        self.all.iter().filter_map(Tracked::changed_value)
    }

    fn invoice_at(&self, at: Option<&usize>) -> Option<&Invoice> {
        at.and_then(|at| self.all.get(*at))
            .map(|invoice| &**invoice)
    }

    pub(crate) fn find_by_id(&self, id: InvoiceId) -> Option<&Invoice> {
        self.invoice_at(self.by_id.get(&id))
    }

    pub(crate) fn find_by_number(&self, invoice_no: &str) -> Option<&Invoice> {
        self.invoice_at(self.by_number.get(invoice_no))
    }

    pub(crate) fn find_by_irn(&self, irn: &Irn) -> Option<&Invoice> {
        self.invoice_at(self.by_irn_key.get(&irn.key()))
    }

    /// Refuses an invoice whose signed credit notes were not read, because none of them would be set off. An invoice of
    /// which nothing is left to pay is not refused, because nothing is set off against it any more.
    pub(crate) fn check_credit_notes(&self, invoice: &Invoice) -> Result<(), Refusal> {
        let is_owed = !invoice.payment.amount_left().is_zero();
        if is_owed && self.has_unread_credit_notes(invoice) {
            return Err(Refusal::TooManyCreditNotes);
        }
        Ok(())
    }

    /// True if the signed credit notes of an invoice were not read, because they are too many or too large.
    pub(crate) fn has_unread_credit_notes(&self, invoice: &Invoice) -> bool {
        self.without_notes.contains(&invoice.id)
    }

    /// Returns the signed credit notes of an invoice that are loaded. Returns none if they were too many to be read,
    /// even if another command of the batch has loaded some of them.
    pub(crate) fn signed_credit_notes(&self, invoice: &Invoice) -> Vec<Invoice> {
        if self.has_unread_credit_notes(invoice) {
            return Vec::new();
        }
        let notes = self.all.iter().map(|note| &**note);
        notes
            .filter(|note| note.authority.signed && note.is_credit_note() && note.corrects(invoice))
            .cloned()
            .collect()
    }

    pub(crate) fn put(&mut self, invoice: Invoice) {
        match self
            .by_id
            .get(&invoice.id)
            .and_then(|at| self.all.get_mut(*at))
        {
            Some(stored) => **stored = invoice,
            None => self.push(Tracked::new(invoice)),
        }
    }

    fn push(&mut self, invoice: Tracked<Invoice>) {
        let at = self.all.len();
        self.by_id.insert(invoice.id, at);
        self.by_number.insert(invoice.invoice_no.clone(), at);
        self.by_irn_key.insert(invoice.irn.key(), at);
        self.all.push(invoice);
    }
}

/// Customers, ordered by age, the oldest first. A customer's number never changes. A customer without a tax number may
/// get one later.
#[derive(Debug, Default)]
pub(crate) struct CustomerIndex {
    all: Vec<Tracked<Customer>>,
    by_id: HashMap<CustomerId, usize>,
    by_number: HashMap<String, usize>,
    /// For each tax number, the position in `all` of the oldest customer with this number.
    by_tin: HashMap<String, usize>,
}

impl CustomerIndex {
    pub(crate) fn changed_customers(&self) -> impl Iterator<Item = &Customer> {
        self.all.iter().filter_map(Tracked::changed_value)
    }

    /// Finds the stored customer by the number in `details`, or else by the tax number.
    pub(crate) fn find_match(&self, details: &CustomerDetails) -> Option<&Customer> {
        let by_number = self.by_number.get(&details.no);
        self.customer_at(by_number.or_else(|| self.by_tin.get(details.tin.as_ref()?)))
    }

    pub(crate) fn find_by_id(&self, id: CustomerId) -> Option<&Customer> {
        self.customer_at(self.by_id.get(&id))
    }

    /// Finds the oldest customer with this tax number.
    pub(crate) fn find_by_tin(&self, tin: &str) -> Option<&Customer> {
        self.customer_at(self.by_tin.get(tin))
    }

    fn customer_at(&self, at: Option<&usize>) -> Option<&Customer> {
        at.and_then(|at| self.all.get(*at))
            .map(|customer| &**customer)
    }

    pub(crate) fn put(&mut self, customer: Customer) {
        self.insert(Tracked::new(customer));
    }

    fn insert(&mut self, customer: Tracked<Customer>) {
        let at = self
            .by_id
            .get(&customer.id)
            .copied()
            .unwrap_or(self.all.len());
        if let Some(tin) = &customer.details.tin {
            let oldest = self.by_tin.entry(tin.clone()).or_insert(at);
            *oldest = at.min(*oldest);
        }
        if let Some(held) = self.all.get_mut(at) {
            *held = customer;
            return;
        }
        self.by_id.insert(customer.id, at);
        self.by_number
            .entry(customer.details.no.clone())
            .or_insert(at);
        self.all.push(customer);
    }
}

/// Collects customers that are stored and unchanged.
impl FromIterator<Customer> for CustomerIndex {
    fn from_iter<I: IntoIterator<Item = Customer>>(customers: I) -> Self {
        let mut index = Self::default();
        customers
            .into_iter()
            .for_each(|customer| index.insert(Tracked::from_stored(customer)));
        index
    }
}

/// The rows of several taxpayers, grouped by taxpayer. Within a taxpayer they keep the order in which they were read.
pub(crate) struct RowsByTaxpayer<T>(HashMap<TaxpayerId, Vec<T>>);

impl<T> Default for RowsByTaxpayer<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> RowsByTaxpayer<T> {
    pub(crate) fn put(&mut self, owner: TaxpayerId, row: T) {
        self.0.entry(owner).or_default().push(row);
    }

    pub(crate) fn owned_by(&self, owner: TaxpayerId) -> &[T] {
        self.0.get(&owner).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, owner: TaxpayerId) -> Vec<T> {
        self.0.remove(&owner).unwrap_or_default()
    }
}

impl<T> FromIterator<(TaxpayerId, T)> for RowsByTaxpayer<T> {
    fn from_iter<I: IntoIterator<Item = (TaxpayerId, T)>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter()
            .for_each(|(owner, row)| all.put(owner, row));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::codes::Category;
    use crate::domain::party::Address;

    fn details(no: &str, tin: Option<&str>) -> CustomerDetails {
        CustomerDetails {
            no: no.into(),
            name: no.into(),
            email: String::new(),
            tin: tin.map(str::to_owned),
            business_description: None,
            address: Address::default(),
            telephone: None,
        }
    }

    fn customer(id: i64, no: &str, tin: Option<&str>) -> Customer {
        Customer {
            id: CustomerId(id),
            category: Category::B2B,
            details: details(no, tin),
        }
    }

    #[test]
    fn a_customer_is_found_by_its_number_before_its_tax_number() {
        let mut index: CustomerIndex = [customer(1, "A", None), customer(2, "B", Some("T"))]
            .into_iter()
            .collect();
        let found = |index: &CustomerIndex, no, tin| {
            index.find_match(&details(no, tin)).map(|one| one.id.0)
        };
        assert_eq!(found(&index, "A", Some("T")), Some(1));
        assert_eq!(found(&index, "C", Some("T")), Some(2));
        assert_eq!(
            (found(&index, "C", Some("U")), found(&index, "C", None)),
            (None, None)
        );
        index.put(customer(1, "A", Some("T")));
        assert_eq!(
            found(&index, "C", Some("T")),
            Some(1),
            "the oldest of those with the tax number"
        );
        let changed: Vec<_> = index.changed_customers().map(|one| one.id.0).collect();
        assert_eq!(changed, [1], "only what was put is written");
    }
}
