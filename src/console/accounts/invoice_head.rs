//! The head of the pages of one invoice: its number, customer and amount, its progress, the acts that are possible, and
//! links to the list and to the next invoices in it.

use crate::console::accounts::invoice_acts::{CreditFacts, InvoiceActs, correction_obstacle};
use crate::console::accounts::invoice_form::has_form;
use crate::console::accounts::lifecycle::{self, Lifecycle, LifecycleStep};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::pause_cause::{InvoiceRuns, RunsPausedByOperators, StalledRun};
use crate::console::accounts::payment_word::badge_after_credits;
use crate::console::accounts::refund_share::load_refund_share;
use crate::console::accounts::seen_invoice;
use crate::console::accounts::source_list::{Neighbours, SourceList};
use crate::console::badges::Badge;
use crate::console::session::accounts::AccountSession;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::record::Correction;
use crate::domain::correction::refund_share::RefundShare;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::kernel::codes::DocumentKind;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::domain::pipeline::Run;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::invoices::{correcting_documents, corrections};

/// The word for a credit note before its number.
const CREDIT_NOTE: &str = "Credit note";

/// The views of one invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InvoiceTab {
    Invoice,
    Developer,
}

/// The view of an invoice, and the list from which its page was opened.
pub(super) struct InvoiceView {
    pub(super) tab: InvoiceTab,
    pub(super) source: SourceList,
}

pub(super) struct InvoiceHead {
    /// The address of the invoice's page.
    pub(super) address: String,
    /// The query with which the addresses of the page and of its forms end (`source_list`).
    pub(super) suffix: String,
    pub(super) list_address: String,
    /// The address of the list from which the page was opened, and the label of the link to it.
    pub(super) back_address: String,
    pub(super) back_label: &'static str,
    pub(super) number: String,
    /// The word for the document before its number.
    pub(super) noun: &'static str,
    pub(super) irn: String,
    pub(super) batch: Option<String>,
    pub(super) customer: String,
    /// The address of the list of the customer's invoices.
    pub(super) customer_address: String,
    pub(super) currency: String,
    /// The payable amount that payments are compared with: that of the signed document, if there is one.
    pub(super) payable: Amount,
    pub(super) lifecycle: Badge,
    /// `None` for a credit note that nobody is expected to pay.
    pub(super) payment: Option<Badge>,
    pub(super) is_overdue: bool,
    pub(super) is_signed: bool,
    /// Why this service corrects no document of this type; `None` if it does.
    pub(super) correction_obstacle: Option<&'static str>,
    /// The query of the form for a new invoice like this one; `None` if the form cannot make one.
    pub(super) duplicate_query: Option<String>,
    pub(super) steps: Vec<LifecycleStep>,
    /// The runs of the invoice that do not go on at present.
    pub(super) stalled: Vec<StalledRun>,
    pub(super) acts: InvoiceActs,
    /// The part of a credit note that is to be paid back; `None` if it is not known, or for any other document.
    pub(super) refund_share: Option<RefundShare>,
    pub(super) credits: InvoiceCredits,
    /// The corrections of the invoice, the newest first.
    pub(super) corrections: Vec<Correction>,
    pub(super) previous: Option<InvoiceId>,
    pub(super) next: Option<InvoiceId>,
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
        view: InvoiceView,
    ) -> Result<Self, ApiError> {
        let InvoiceView { tab, source } = view;
        let base = base_path(session);
        let list_address = format!("{base}/invoices");
        let invoice = &stored.invoice;
        let catalog = state.catalog.get();
        let digits = catalog.currency_digits(&invoice.currency);
        let code = type_code(invoice, &catalog);
        let submits = stored.supplier.settings.submit_after_approval;
        let related = RelatedDocuments::load(state, session, invoice).await?;
        let pauses = RunsPausedByOperators::load(&state.store, runs).await?;
        let runs = InvoiceRuns {
            runs,
            pauses: &pauses,
        };
        let facts = CreditFacts {
            code: code.as_deref(),
            credits: &related.credits,
            refund_share: related.refund_share.as_ref(),
            runs: runs.runs,
            catalog: &catalog,
        };
        let pause = runs.pause_cause();
        let holds = state.pipeline.backlog.holds();
        let stalled = runs.runs.iter();
        let stalled = stalled
            .filter_map(|run| StalledRun::new(run, &pauses, holds.needs_operator(run)))
            .collect();
        let is_something_left = related.credits.left_to_pay(invoice) > Amount::ZERO;
        let Neighbours { previous, next } = source.find_neighbours(state, invoice).await?;
        Ok(Self {
            address: format!("{list_address}/{}", invoice.id),
            suffix: source.suffix(),
            back_address: source.address(&list_address),
            back_label: source.link_label(),
            list_address,
            number: invoice.invoice_no.clone(),
            noun: document_noun(invoice),
            irn: invoice.irn.to_string(),
            batch: invoice.batch_no.clone(),
            customer: invoice.customer.name.clone(),
            customer_address: format!("{base}/customers/{}", invoice.customer.id),
            currency: invoice.currency.clone(),
            payable: invoice.payment.payable_as_signed().with_digits(digits),
            lifecycle: Lifecycle::from(invoice).badge_with_pause(pause),
            payment: badge_after_credits(invoice, &related.credits),
            is_overdue: is_something_left && invoice.is_overdue(state.today()),
            is_signed: invoice.authority.signed,
            correction_obstacle: correction_obstacle(code.as_deref()),
            duplicate_query: can_be_duplicated(invoice, code.as_deref())
                .then(|| format!("?like={}", invoice.id)),
            steps: lifecycle::steps(invoice.status, &invoice.authority, pause),
            stalled,
            acts: InvoiceActs::new(invoice, runs, submits, facts),
            refund_share: related.refund_share,
            credits: related.credits,
            corrections: related.corrections,
            previous,
            next,
            tab,
            seen: seen_invoice::seen_field_value(invoice),
        })
    }

    pub(super) fn is_credit_note(&self) -> bool {
        self.noun == CREDIT_NOTE
    }

    /// True for a credit note of which nothing is to be paid back, because its invoice takes up all of it.
    pub(super) fn is_set_off_only(&self) -> bool {
        let share = self.refund_share.as_ref();
        share.is_some_and(RefundShare::is_set_off_only)
    }

    /// True if the page offers to record a payment in full. What is set off of a credit note is not paid back.
    pub(super) fn takes_payment_in_full(&self) -> bool {
        let share = self.refund_share.as_ref();
        share.is_none_or(RefundShare::is_refund_only)
    }

    /// Returns the word for the document within a sentence.
    pub(super) fn noun_in_sentence(&self) -> &'static str {
        if self.is_credit_note() {
            "credit note"
        } else {
            "invoice"
        }
    }

    /// True if the page offers to correct the invoice. A credit note that is not signed has to be signed or cancelled
    /// before. An invoice that was replaced is not corrected any more, but its replacement.
    pub(super) fn is_correctable(&self) -> bool {
        let mut corrections = self.corrections.iter();
        self.is_signed
            && self.credits.unsigned.is_empty()
            && self.correction_obstacle.is_none()
            && !corrections.any(|correction| correction.signed_replacement().is_some())
    }
}

/// The documents that change how much is to be paid for an invoice.
struct RelatedDocuments {
    credits: InvoiceCredits,
    corrections: Vec<Correction>,
    refund_share: Option<RefundShare>,
}

impl RelatedDocuments {
    async fn load(
        state: &ApiState,
        session: &AccountSession,
        invoice: &Invoice,
    ) -> Result<Self, ApiError> {
        let reader = state.store.reader();
        Ok(Self {
            credits: find_credit_notes(state, invoice).await?,
            corrections: corrections::find_owned_by_invoices(
                reader,
                session.taxpayer,
                &[invoice.id],
            )
            .await?,
            refund_share: load_refund_share(state, session, invoice).await?,
        })
    }
}

fn document_noun(invoice: &Invoice) -> &'static str {
    if invoice.is_credit_note() {
        CREDIT_NOTE
    } else {
        "Invoice"
    }
}

/// True if the form of a new invoice can make one like this.
fn can_be_duplicated(invoice: &Invoice, code: Option<&str>) -> bool {
    let kind = code.map(DocumentKind::from_type_code);
    has_form(invoice) && kind == Some(DocumentKind::Invoice)
}

/// Returns the credit notes of an invoice. An invoice that is not signed here may have some, too: its credit note may
/// be signed before it, or it was signed through another system.
pub(super) async fn find_credit_notes(
    state: &ApiState,
    invoice: &Invoice,
) -> Result<InvoiceCredits, ApiError> {
    Ok(correcting_documents::find_credits(state.store.reader(), invoice).await?)
}
