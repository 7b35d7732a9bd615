//! The debts of customers: the unpaid parts of their invoices, less the unpaid parts of their credit notes.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;

use crate::domain::invoice::corrected_reference::{self, CorrectedReference};
use crate::domain::kernel::ids::{CustomerId, InvoiceId};
use crate::domain::money::Amount;
use crate::domain::party::InvoiceCustomer;
use crate::domain::reference::catalog::Catalog;

/// An invoice or a credit note of the taxpayer that is not fully paid or set off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedInvoice {
    pub id: InvoiceId,
    pub irn_key: String,
    pub invoice_no: String,
    pub customer: InvoiceCustomer,
    pub currency: String,
    /// The part of the document's amount that is not paid; below zero if more was paid than the authority then signed.
    pub left: Amount,
    pub due_date: Option<Date>,
    pub is_credit_note: bool,
    /// For a credit note: the reference to the invoice that it credits.
    pub corrects: Option<CorrectedReference>,
}

impl OwedInvoice {
    /// Returns all references by which a credit note may name the document.
    fn incoming_references(&self) -> [CorrectedReference; 3] {
        corrected_reference::references_to_invoice(&self.irn_key, &self.invoice_no, self.id)
    }

    /// Returns the amount that the customer owes because of the document; usually negative for a credit note.
    pub fn amount_due(&self) -> Amount {
        if self.is_credit_note {
            Amount::ZERO.minus(self.left).unwrap_or_default()
        } else {
            self.left
        }
    }

    /// Returns the number of days since the due date; `None` if the document is not overdue.
    pub fn days_late(&self, today: Date) -> Option<i32> {
        let late = (today - self.due_date?).get_days();
        (late > 0).then_some(late)
    }
}

/// Sets each credit note off against the invoice that it credits in the same currency, so that only the rest is owed
/// and can become overdue. A credit note is set off even if it names another customer than the invoice, because a
/// payment of the invoice takes it into account as well. Leaves out documents of which nothing is left.
pub fn set_off_credit_notes(mut documents: Vec<OwedInvoice>) -> Vec<OwedInvoice> {
    let with_places = documents.iter().enumerate();
    let invoices = with_places.filter(|(_, one)| !one.is_credit_note);
    let places: HashMap<CorrectedReference, usize> = invoices
        .flat_map(|(at, one)| one.incoming_references().map(|reference| (reference, at)))
        .collect();
    for at in 0..documents.len() {
        let note = &documents[at];
        let credited = note.corrects.as_ref().filter(|_| note.is_credit_note);
        let Some(&place) = credited.and_then(|reference| places.get(reference)) else {
            continue;
        };
        let invoice = &documents[place];
        if invoice.currency != note.currency {
            continue;
        }
        let common = note.left.min(invoice.left).max(Amount::ZERO);
        for part in [at, place] {
            let left = &mut documents[part].left;
            *left = left.minus(common).unwrap_or(*left);
        }
    }
    documents.retain(|one| !one.left.is_zero());
    documents
}

/// The age groups of a debt, by the number of days that it is overdue.
pub const AGES: [&str; 5] = [
    "Not overdue",
    "1 to 30 days",
    "31 to 60 days",
    "61 to 90 days",
    "More than 90 days",
];
const AGE_DAYS: i32 = 30;

/// The debt of a customer in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerBalance {
    pub customer: CustomerId,
    pub name: String,
    pub currency: String,
    /// The number of documents of which a part is left to pay or to set off.
    pub documents: u64,
    pub owed: Amount,
    pub overdue: Amount,
    /// The parts of `owed` in each age group of `AGES`.
    pub by_age: [Amount; AGES.len()],
    /// The number of days since the oldest overdue invoice was due; `None` if none is overdue.
    pub days_late: Option<i32>,
}

/// Returns the debt of each customer in each currency, the longest overdue first, then by name.
pub fn customer_balances(
    invoices: &[OwedInvoice],
    catalog: &Catalog,
    today: Date,
) -> Vec<CustomerBalance> {
    let mut all: HashMap<(CustomerId, &str), CustomerBalance> = HashMap::new();
    for invoice in invoices {
        let owed = invoice.amount_due();
        let key = (invoice.customer.id, invoice.currency.as_str());
        all.entry(key)
            .or_insert_with(|| CustomerBalance::new(invoice))
            .add_debt(owed, invoice.days_late(today));
    }
    let mut all: Vec<_> = all.into_values().collect();
    for balance in &mut all {
        balance.pad_to_currency_digits(catalog);
    }
    all.sort_by(|one, other| {
        let late = other.days_late.cmp(&one.days_late);
        late.then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.currency.cmp(&other.currency))
            .then_with(|| one.customer.cmp(&other.customer))
    });
    all
}

/// The debt of all customers in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedTotal {
    pub currency: String,
    pub owed: Amount,
    pub overdue: Amount,
}

/// Returns the debt of all customers together, by currency.
pub fn totals_by_currency(
    invoices: &[OwedInvoice],
    catalog: &Catalog,
    today: Date,
) -> Vec<OwedTotal> {
    let mut all: BTreeMap<&str, OwedTotal> = BTreeMap::new();
    for invoice in invoices {
        let owed = invoice.amount_due();
        let total = all.entry(&invoice.currency).or_insert_with(|| OwedTotal {
            currency: invoice.currency.clone(),
            owed: Amount::ZERO,
            overdue: Amount::ZERO,
        });
        total.owed = total.owed.plus(owed).unwrap_or(total.owed);
        if !owed.is_negative() && invoice.days_late(today).is_some() {
            total.overdue = total.overdue.plus(owed).unwrap_or(total.overdue);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    for total in &mut all {
        let digits = catalog.currency_digits(&total.currency);
        total.owed = total.owed.with_digits(digits);
        total.overdue = total.overdue.with_digits(digits);
    }
    all
}

impl CustomerBalance {
    fn new(first: &OwedInvoice) -> Self {
        Self {
            customer: first.customer.id,
            name: first.customer.name.clone(),
            currency: first.currency.clone(),
            documents: 0,
            owed: Amount::ZERO,
            overdue: Amount::ZERO,
            by_age: [Amount::ZERO; AGES.len()],
            days_late: None,
        }
    }

    /// Adds the debt of a document. A credit note is never overdue.
    fn add_debt(&mut self, owed: Amount, days_late: Option<i32>) {
        let days_late = days_late.filter(|_| !owed.is_negative());
        self.documents += 1;
        self.owed = self.owed.plus(owed).unwrap_or(self.owed);
        let age = days_late.map_or(0, |days| 1 + (days - 1) / AGE_DAYS);
        let age = usize::try_from(age).unwrap_or_default().min(AGES.len() - 1);
        self.by_age[age] = self.by_age[age].plus(owed).unwrap_or(self.by_age[age]);
        if days_late.is_some() {
            self.overdue = self.overdue.plus(owed).unwrap_or(self.overdue);
            self.days_late = self.days_late.max(days_late);
        }
    }

    fn pad_to_currency_digits(&mut self, catalog: &Catalog) {
        let digits = catalog.currency_digits(&self.currency);
        self.owed = self.owed.with_digits(digits);
        self.overdue = self.overdue.with_digits(digits);
        self.by_age = self.by_age.map(|amount| amount.with_digits(digits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::invoice::corrected_reference::ReferencedBy;

    const TODAY: Date = Date::constant(2026, 3, 31);

    fn invoice(customer: i64, currency: &str, left: &str, due: &str, code: &str) -> OwedInvoice {
        OwedInvoice {
            id: InvoiceId(1),
            irn_key: "INV1".to_owned(),
            invoice_no: "INV1".to_owned(),
            customer: InvoiceCustomer {
                id: CustomerId(customer),
                external_customer_no: customer.to_string(),
                name: format!("Customer {customer}"),
                tin: None,
                email: String::new(),
            },
            currency: currency.to_owned(),
            left: Amount::parse(left).unwrap(),
            due_date: due.parse().ok(),
            is_credit_note: code == "380",
            corrects: None,
        }
    }

    fn by_irn(irn_key: &str) -> CorrectedReference {
        CorrectedReference {
            by: ReferencedBy::Irn,
            text: irn_key.to_owned(),
        }
    }

    fn credit_note(invoice: &OwedInvoice, left: &str) -> OwedInvoice {
        OwedInvoice {
            id: InvoiceId(2),
            irn_key: format!("{}CN1", invoice.irn_key),
            invoice_no: format!("{}CN1", invoice.invoice_no),
            left: Amount::parse(left).unwrap(),
            is_credit_note: true,
            corrects: Some(by_irn(&invoice.irn_key)),
            ..invoice.clone()
        }
    }

    #[test]
    fn a_credit_note_is_set_off_against_its_invoice() {
        let due = invoice(1, "NGN", "100", "2026-03-01", "381");
        let foreign = OwedInvoice {
            currency: "USD".to_owned(),
            ..credit_note(&due, "30")
        };
        let unknown = OwedInvoice {
            corrects: Some(by_irn("INV9")),
            ..credit_note(&due, "30")
        };
        let for_another = OwedInvoice {
            customer: invoice(2, "NGN", "1", "", "380").customer,
            ..credit_note(&due, "30")
        };
        for (notes, left, owed, overdue) in [
            (vec![], "100", "100.00", "100.00"),
            (vec![for_another], "70", "70.00", "70.00"),
            (vec![credit_note(&due, "30")], "70", "70.00", "70.00"),
            (
                vec![credit_note(&due, "30"), credit_note(&due, "70")],
                "",
                "",
                "",
            ),
            (vec![credit_note(&due, "140")], "40", "-40.00", "0.00"),
            (vec![foreign], "100 30", "100.00 -30.00", "100.00 0.00"),
            (vec![unknown], "100 30", "70.00", "100.00"),
        ] {
            let mut documents = vec![due.clone()];
            documents.extend(notes);
            let documents = set_off_credit_notes(documents);
            let texts: Vec<_> = documents.iter().map(|one| one.left.to_string()).collect();
            assert_eq!(texts.join(" "), left);
            let totals = totals_by_currency(&documents, &Catalog::default(), TODAY);
            let texts: Vec<_> = totals.iter().map(|one| one.owed.to_string()).collect();
            assert_eq!(texts.join(" "), owed, "{left}");
            let texts: Vec<_> = totals.iter().map(|one| one.overdue.to_string()).collect();
            assert_eq!(texts.join(" "), overdue, "{left}");
        }
    }

    #[test]
    fn a_credit_note_may_name_its_invoice_by_each_reference() {
        let due = invoice(1, "NGN", "100", "2026-03-01", "381");
        for reference in due.incoming_references() {
            let note = OwedInvoice {
                corrects: Some(reference.clone()),
                ..credit_note(&due, "30")
            };
            let rests: Vec<_> = set_off_credit_notes(vec![due.clone(), note])
                .iter()
                .map(|one| one.left.to_string())
                .collect();
            assert_eq!(rests, ["70"], "{reference:?}");
        }
    }

    #[test]
    fn nothing_is_owed_of_what_is_paid() {
        assert_eq!(
            set_off_credit_notes(vec![invoice(1, "NGN", "0.00", "2026-03-01", "381")]),
            []
        );
    }

    #[test]
    fn each_customer_has_a_balance_in_each_currency_longest_overdue_first() {
        let invoices = [
            invoice(2, "NGN", "100", "2026-03-30", "381"),
            invoice(1, "USD", "7.5", "", "381"),
            invoice(3, "NGN", "1", "2025-01-01", "381"),
            invoice(2, "NGN", "40.25", "2026-03-01", "380"),
            invoice(2, "USD", "3", "2026-04-01", "381"),
        ];
        let found = customer_balances(&invoices, &Catalog::default(), TODAY);
        let shown: Vec<_> = found
            .iter()
            .map(|one| {
                let days = one.days_late.unwrap_or_default();
                let amounts = format!("{} {} {}", one.owed, one.overdue, one.documents);
                format!("{} {} {amounts} {days}", one.name, one.currency)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Customer 3 NGN 1.00 1.00 1 454",
                "Customer 2 NGN 59.75 100.00 2 1",
                "Customer 1 USD 7.50 0.00 1 0",
                "Customer 2 USD 3.00 0.00 1 0",
            ]
        );
        let totals = totals_by_currency(&invoices, &Catalog::default(), TODAY);
        let shown: Vec<_> = totals
            .iter()
            .map(|one| format!("{} {} {}", one.currency, one.owed, one.overdue))
            .collect();
        assert_eq!(shown, ["NGN 60.75 101.00", "USD 10.50 0.00"]);
    }

    #[test]
    fn an_amount_has_the_age_of_its_days() {
        for (due, age) in [
            ("2026-03-31", 0),
            ("2026-03-30", 1),
            ("2026-03-01", 1),
            ("2026-02-28", 2),
            ("2026-01-30", 2),
            ("2026-01-29", 3),
            ("2025-12-31", 3),
            ("2025-12-30", 4),
            ("2020-01-01", 4),
        ] {
            let invoices = [invoice(1, "NGN", "9", due, "381")];
            let found = customer_balances(&invoices, &Catalog::default(), TODAY);
            let ages: Vec<_> = found[0].by_age.iter().map(|one| !one.is_zero()).collect();
            assert_eq!(ages.iter().position(|is_it| *is_it), Some(age), "{due}");
        }
    }

    #[test]
    fn what_was_paid_too_much_is_owed_to_the_customer() {
        let overpaid = invoice(1, "NGN", "-9", "2026-03-01", "381");
        let documents = set_off_credit_notes(vec![overpaid.clone(), credit_note(&overpaid, "4")]);
        let totals = totals_by_currency(&documents, &Catalog::default(), TODAY);
        let total = &totals[0];
        let amounts = [total.owed, total.overdue].map(|amount| amount.to_string());
        assert_eq!(amounts, ["-13.00", "0.00"]);
    }
}
