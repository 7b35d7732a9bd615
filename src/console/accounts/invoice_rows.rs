//! The rows of the list of invoices: each document with its amount, its progress and its payment in words.

use std::collections::{HashMap, HashSet};

use crate::console::accounts::invoice_sums::amount_in_total;
use crate::console::accounts::lifecycle::Lifecycle;
use crate::console::accounts::payment_word::PaymentBadgeAndRefund;
use crate::console::badges::Badge;
use crate::domain::correction::credits::Settlement;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::owed;

pub(super) struct InvoiceRow {
    pub(super) invoice: Invoice,
    pub(super) is_credit_note: bool,
    /// Below zero for a credit note, as in the total.
    pub(super) payable: Amount,
    pub(super) lifecycle: Badge,
    pub(super) payment: PaymentBadgeAndRefund,
    pub(super) is_overdue: bool,
}

/// The invoices of a page that a query of their own found.
struct MarkedInvoices {
    overdue: HashSet<InvoiceId>,
    /// The settlements of the invoices of which nothing is left after signed credit notes and payments.
    settlements: HashMap<InvoiceId, Settlement>,
}

/// Returns the rows of a page of invoices.
pub(super) async fn load_rows(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoices: Vec<Invoice>,
) -> Result<Vec<InvoiceRow>, ApiError> {
    let marked = MarkedInvoices::load(state, taxpayer, &invoices).await?;
    let catalog = state.catalog.get();
    let rows = invoices.into_iter().map(|invoice| {
        let digits = catalog.currency_digits(&invoice.currency);
        InvoiceRow::new(invoice, digits, &marked)
    });
    Ok(rows.collect())
}

impl MarkedInvoices {
    async fn load(
        state: &ApiState,
        taxpayer: TaxpayerId,
        invoices: &[Invoice],
    ) -> Result<Self, ApiError> {
        let store = &state.store;
        Ok(Self {
            overdue: owed::find_overdue(store, taxpayer, invoices, state.today()).await?,
            settlements: owed::find_settlements(store, taxpayer, invoices).await?,
        })
    }
}

impl InvoiceRow {
    fn new(invoice: Invoice, digits: u32, marked: &MarkedInvoices) -> Self {
        let is_credit_note = invoice.is_credit_note();
        let settlement = marked.settlements.get(&invoice.id).copied();
        let settlement = settlement.unwrap_or(Settlement::ByPaymentStatus);
        let payable = amount_in_total(invoice.payment.payable, is_credit_note);
        Self {
            is_credit_note,
            payable: payable.with_digits(digits),
            lifecycle: Lifecycle::from(&invoice).into(),
            payment: PaymentBadgeAndRefund::new(&invoice, digits, settlement),
            is_overdue: marked.overdue.contains(&invoice.id),
            invoice,
        }
    }
}
