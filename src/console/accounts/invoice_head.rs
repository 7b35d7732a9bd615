//! The head of the pages of one invoice: its number, customer and amount, its progress, the acts that are possible, and
//! links to the next invoices of the list.

use crate::console::accounts::invoice_acts::{CreditFacts, InvoiceActs, correction_obstacle};
use crate::console::accounts::lifecycle::{self, Lifecycle, LifecycleStep};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::pause_cause::{InvoiceRuns, RunsPausedByOperators, StalledRun};
use crate::console::accounts::seen_invoice;
use crate::console::badges::Badge;
use crate::console::session::accounts::AccountSession;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::pipeline::Run;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::invoices;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageFields, PageStart,
};

/// The views of one invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InvoiceTab {
    Invoice,
    Developer,
}

pub(super) struct InvoiceHead {
    /// The address of the invoice's page.
    pub(super) address: String,
    pub(super) list_address: String,
    pub(super) number: String,
    pub(super) irn: String,
    pub(super) batch: Option<String>,
    pub(super) customer: String,
    /// The address of the list of the customer's invoices.
    pub(super) customer_address: String,
    pub(super) currency: String,
    /// The payable amount that payments are compared with: that of the signed document, if there is one.
    pub(super) payable: Amount,
    pub(super) lifecycle: Badge,
    pub(super) payment: Badge,
    pub(super) is_overdue: bool,
    pub(super) is_signed: bool,
    pub(super) is_correctable: bool,
    pub(super) steps: Vec<LifecycleStep>,
    /// The runs of the invoice that do not go on at present.
    pub(super) stalled: Vec<StalledRun>,
    pub(super) acts: InvoiceActs,
    pub(super) credits: InvoiceCredits,
    pub(super) newer: Option<InvoiceId>,
    pub(super) older: Option<InvoiceId>,
    pub(super) tab: InvoiceTab,
    /// The value of the form field `seen` (`seen_invoice`).
    pub(super) seen: i64,
}

impl InvoiceHead {
    pub(super) async fn new(
        state: &ApiState,
        session: &AccountSession,
        stored: &StoredInvoice,
        runs: &[Run],
        tab: InvoiceTab,
    ) -> Result<Self, ApiError> {
        let base = base_path(session);
        let invoice = &stored.invoice;
        let catalog = state.catalog.get();
        let digits = catalog.currency_digits(&invoice.currency);
        let code = type_code(invoice, &catalog);
        let submits = stored.supplier.settings.submit_after_approval;
        let credits = find_credit_notes(state, invoice).await?;
        let pauses = RunsPausedByOperators::load(&state.store, runs).await?;
        let runs = InvoiceRuns {
            runs,
            pauses: &pauses,
        };
        let facts = CreditFacts {
            code: code.as_deref(),
            credits: &credits,
            runs: runs.runs,
            catalog: &catalog,
        };
        let pause = runs.pause_cause();
        let holds = state.pipeline.backlog.holds();
        let stalled = runs.runs.iter();
        let stalled = stalled
            .filter_map(|run| StalledRun::new(run, &pauses, holds.needs_operator(run)))
            .collect();
        let is_something_left = !credits.left_to_pay(invoice).max(Amount::ZERO).is_zero();
        Ok(Self {
            address: format!("{base}/invoices/{}", invoice.id),
            list_address: format!("{base}/invoices"),
            number: invoice.invoice_no.clone(),
            irn: invoice.irn.to_string(),
            batch: invoice.batch_no.clone(),
            customer: invoice.customer.name.clone(),
            customer_address: format!("{base}/customers/{}", invoice.customer.id),
            currency: invoice.currency.clone(),
            payable: invoice.payment.payable_as_signed().with_digits(digits),
            lifecycle: Lifecycle::from(invoice).badge_with_pause(pause),
            payment: invoice.payment.status.into(),
            is_overdue: is_something_left && invoice.is_overdue(state.today()),
            is_signed: invoice.authority.signed,
            is_correctable: invoice.authority.signed
                && correction_obstacle(code.as_deref()).is_none(),
            steps: lifecycle::steps(invoice.status, &invoice.authority, pause),
            stalled,
            acts: InvoiceActs::new(invoice, runs, submits, facts),
            credits,
            newer: neighbour_invoice(state, invoice, false).await?,
            older: neighbour_invoice(state, invoice, true).await?,
            tab,
            seen: seen_invoice::seen_field_value(invoice),
        })
    }
}

/// Returns the credit notes of an invoice. An invoice that is not signed here may have some, too: its credit note may
/// be signed before it, or it was signed through another system.
pub(super) async fn find_credit_notes(
    state: &ApiState,
    invoice: &Invoice,
) -> Result<InvoiceCredits, ApiError> {
    Ok(invoices::find_credits(state.store.reader(), invoice).await?)
}

/// Returns the invoice that was created just before this one if `is_older`, else just after it; `None` if there is
/// none.
async fn neighbour_invoice(
    state: &ApiState,
    invoice: &Invoice,
    is_older: bool,
) -> Result<Option<InvoiceId>, ApiError> {
    let sort = InvoiceSort {
        is_descending: is_older,
        ..InvoiceSort::NEWEST_FIRST
    };
    let list = InvoiceList {
        taxpayer: invoice.taxpayer_id,
        filters: InvoiceFilter::default(),
        sort,
    };
    let part = PageBounds {
        start: PageStart::After(sort.place(invoice)),
        limit: 1,
    };
    // `u64::MAX` stands in for the number of all invoices, which a page of one invoice does not need.
    let page = list
        .page_with_known_total(&state.store, part, u64::MAX, PageFields::Shown)
        .await?;
    Ok(page.invoices.first().map(|found| found.id))
}
