//! Undoes a batch that should not have been created: a signed invoice gets a credit note over its whole amount, any
//! other invoice is cancelled. Each invoice is undone by a command of its own. If a call fails, the invoices that it
//! has undone stay undone, and a repeated call continues with the others.

use std::collections::{BTreeMap, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use sha2::{Digest, Sha256};

use crate::actors::taxpayer::commands::CancelUnlessCancelled;
use crate::domain::access::payer::Payer;
use crate::domain::correction::plan::CorrectionWish;
use crate::domain::correction::record::{Correction, CorrectionState, DocumentPurpose};
use crate::domain::import::record::{Import, ImportState};
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::codes::{SettableStatus, UniqueNoType, WorkflowStatus, words};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::http::corrections::wish::make_correction_command;
use crate::http::extract::path_ids;
use crate::http::invoice_page::{PAGE_INVOICES, reserve_page_memory};
use crate::http::limits::AnswerHolder;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::invoices::list::{
    InvoiceFilter, InvoiceList, InvoiceSort, PageBounds, PageFields, PageStart,
};
use crate::store::invoices::{corrections, imports};

/// The maximum number of invoices that one call undoes. A repeated call continues with the others.
const UNDONE_INVOICES_MAX: usize = 1_000;
/// The maximum number of invoices that one call tries to undo, including those that cannot be undone.
const TRIED_INVOICES_MAX: usize = 10_000;
/// The maximum number of invoices that one call undoes concurrently.
const CONCURRENT_UNDOS_MAX: usize = 16;
const REMARK: &str = "The batch was undone";
const SUBMISSION_UNDER_WAY: &str =
    "It is being submitted. Undo the batch again when the authority has signed or rejected it.";

words! {
    /// The way in which an invoice is undone: by a credit note, by a cancellation, or not at all, because its state
    /// does not allow it.
    UndoAct { Credit = "credit", Cancel = "cancel", None = "none" }
}

/// The outcome of the undo for one invoice; in a preview, the outcome that it would have.
#[derive(Debug)]
pub(crate) struct UndoItem {
    pub(crate) id: InvoiceId,
    pub(crate) invoice_no: String,
    pub(crate) is_credit_note: bool,
    pub(crate) act: UndoAct,
    pub(crate) currency: String,
    /// The amount that is credited or cancelled.
    pub(crate) payable: Amount,
    pub(crate) correction_no: Option<String>,
    /// The reason why nothing is done, or the note that paid money has to be paid back.
    pub(crate) message: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Undo {
    pub(crate) items: Vec<UndoItem>,
    /// The number of invoices that were undone before this call.
    pub(crate) done_before: usize,
    /// The number of invoices that are left for a further call.
    pub(crate) left: usize,
}

impl Undo {
    pub(crate) fn count(&self, act: UndoAct) -> usize {
        self.items.iter().filter(|item| item.act == act).count()
    }

    /// Returns a digest of the invoices and of how each is undone. It shows whether the plan has changed since a
    /// preview.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for item in self.items.iter().filter(|item| item.act != UndoAct::None) {
            let (act, currency) = (item.act.as_str(), &item.currency);
            digest.update(format!("{} {act} {currency} {}\n", item.id, item.payable));
        }
        hex::encode(digest.finalize())
    }

    /// Returns how many more invoices this call may try to undo. An invoice that cannot be undone does not count
    /// against `UNDONE_INVOICES_MAX`; else repeated calls would try the same invoices forever.
    fn remaining_attempts(&self) -> usize {
        let undone = self.items.len() - self.count(UndoAct::None);
        let untried = TRIED_INVOICES_MAX.saturating_sub(self.items.len());
        UNDONE_INVOICES_MAX.saturating_sub(undone).min(untried)
    }

    /// Returns the money that is credited or cancelled, in each currency. A credit note lowers it.
    pub(crate) fn sums_by_currency(&self) -> BTreeMap<&str, Amount> {
        let mut sums: BTreeMap<&str, Amount> = BTreeMap::new();
        let undone = self.items.iter().filter(|item| item.act != UndoAct::None);
        for item in undone {
            let sum = sums.entry(&item.currency).or_default();
            let new_sum = if item.is_credit_note {
                sum.minus(item.payable)
            } else {
                sum.plus(item.payable)
            };
            // If the sum would be too large for an `Amount`, it stays as it is, without this item.
            *sum = new_sum.unwrap_or(*sum);
        }
        sums
    }
}

/// Undoes the invoices of a batch. With `is_preview`, only returns what would be done. The invoices are read page by
/// page; the memory for a page counts against the limits of the taxpayer and of the `payer`.
pub(crate) async fn undo_batch_invoices(
    state: &ApiState,
    taxpayer: TaxpayerId,
    payer: Option<Payer>,
    batch_no: &str,
    is_preview: bool,
) -> Result<Undo, ApiError> {
    let import = find_ended_import(&state.store, taxpayer, batch_no).await?;
    let _memory = reserve_page_memory(state, AnswerHolder::for_taxpayer(taxpayer, payer)).await?;
    let list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            batch_no: Some(batch_no.to_owned()),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::NEWEST_FIRST,
    };
    let has_control_character = batch_no.chars().any(char::is_control);
    let total = if has_control_character {
        0
    } else {
        list.count(&state.store).await?
    };
    if total == 0 && import.is_none() {
        // The invoices of a large imported file have a batch number, but no record of the batch. So the record is
        // required only if there are no invoices and no import: an unknown batch is "not found".
        path_ids::find_batch(state, taxpayer, batch_no).await?;
    }
    let mut undo = Undo::default();
    let mut start = PageStart::At(0);
    loop {
        let bounds = PageBounds {
            start,
            limit: PAGE_INVOICES,
        };
        let page = list
            .page_with_known_total(&state.store, bounds, total, PageFields::Shown)
            .await?;
        let ids: Vec<_> = page.invoices.iter().map(|invoice| invoice.id).collect();
        let known_corrections =
            corrections::find_owned_by_invoices(state.store.reader(), taxpayer, &ids).await?;
        let corrected: HashSet<_> = known_corrections
            .iter()
            .filter(|correction| undoes_whole_invoice(correction))
            .map(|correction| correction.original)
            .collect();
        let count = page.invoices.len();
        let mut remaining = page.invoices;
        remaining.retain(|invoice| !is_undone(invoice, &corrected));
        undo.done_before += count - remaining.len();
        let attempts_max = undo.remaining_attempts();
        undo.left += remaining.len().saturating_sub(attempts_max);
        remaining.truncate(attempts_max);
        let undos = remaining
            .into_iter()
            .map(|invoice| undo_invoice(state, taxpayer, invoice, is_preview));
        let items = stream::iter(undos).buffered(CONCURRENT_UNDOS_MAX);
        for item in items.try_collect::<Vec<_>>().await? {
            match item {
                Some(item) => undo.items.push(item),
                None => undo.done_before += 1,
            }
        }
        match page.next {
            Some(place) => start = PageStart::After(place),
            None => return Ok(undo),
        }
    }
}

/// Returns the import of the batch; `None` if the batch was not imported from a large file. Fails while the import still
/// adds invoices to the batch, because those would be left out.
async fn find_ended_import(
    store: &Store,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Option<Import>, ApiError> {
    match imports::find_owned_by_batch(store, taxpayer, batch_no).await? {
        Some(import) if import.state() == ImportState::Running => {
            Err(Refusal::BatchBeingImported {
                done: import.counts.total(),
                documents: import.documents,
                import_no: import.import_no,
            }
            .into())
        }
        import => Ok(import),
    }
}

/// True if the correction credits the whole invoice, now or later, and no other invoice replaces it.
fn undoes_whole_invoice(correction: &Correction) -> bool {
    let mut documents = correction.documents.iter();
    let is_replaced = documents.any(|document| document.kind == DocumentPurpose::Replacement);
    correction.is_whole && !is_replaced && correction.state != CorrectionState::Cancelled
}

fn is_undone(invoice: &Invoice, corrected: &HashSet<InvoiceId>) -> bool {
    if invoice.authority.signed {
        corrected.contains(&invoice.id)
    } else {
        invoice.status == WorkflowStatus::Cancelled
    }
}

/// Undoes an invoice. Returns `None` if another call has undone it in the meantime. Fails on a server error, because a
/// repeated call may succeed later. Any other error becomes the message of the item.
async fn undo_invoice(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoice: Invoice,
    is_preview: bool,
) -> Result<Option<UndoItem>, ApiError> {
    let mut item = UndoItem {
        id: invoice.id,
        invoice_no: invoice.invoice_no.clone(),
        is_credit_note: invoice.is_credit_note(),
        act: UndoAct::None,
        currency: invoice.currency.clone(),
        payable: invoice.payment.payable,
        correction_no: None,
        message: None,
    };
    let result = if invoice.authority.signed {
        credit_invoice(state, taxpayer, &invoice, is_preview).await
    } else {
        match cancel_invoice(state, taxpayer, &invoice, is_preview).await {
            Ok(false) => return Ok(None),
            Ok(true) => Ok(None),
            Err(error) => Err(error),
        }
    };
    match result {
        Ok(None) => {
            item.act = UndoAct::Cancel;
            item.message = refund_sentence(&item.currency, invoice.payment.paid);
        }
        Ok(Some(correction)) if correction.documents.is_empty() => {
            item.message = Some("It is credited already.".to_owned());
        }
        Ok(Some(correction)) => {
            item.act = UndoAct::Credit;
            let balance = correction.amount_left_to_pay();
            item.message = balance
                .is_negative()
                .then(|| refund_sentence(&item.currency, balance.abs()))
                .flatten();
            item.payable = correction.before;
            item.correction_no = Some(correction.correction_no).filter(|number| !number.is_empty());
        }
        Err(error) if error.code.status().is_server_error() => return Err(error),
        Err(error) => {
            if invoice.authority.signed && has_credit_started(state, taxpayer, &invoice).await? {
                return Ok(None);
            }
            item.message = Some(kept_reason(invoice.status, &error));
        }
    }
    Ok(Some(item))
}

/// Returns the reason why an invoice of this status is kept. One that is locked although it has got no further than the
/// checks of the authority is being submitted: what the refusal advises, another document, would not undo it.
fn kept_reason(status: WorkflowStatus, error: &ApiError) -> String {
    let is_being_submitted =
        error.code == ErrorCode::InvoiceLocked && status.stage() <= Some(Stage::Validated);
    if is_being_submitted {
        SUBMISSION_UNDER_WAY.to_owned()
    } else {
        error.message.to_string()
    }
}

/// True if another call has started to credit the whole invoice since this call read it.
async fn has_credit_started(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoice: &Invoice,
) -> Result<bool, ApiError> {
    let reader = state.store.reader();
    let known_corrections =
        corrections::find_owned_by_invoices(reader, taxpayer, &[invoice.id]).await?;
    Ok(known_corrections.iter().any(undoes_whole_invoice))
}

/// Returns a sentence about money that was paid for an undone invoice; `None` if nothing was paid.
pub(crate) fn refund_sentence(currency: &str, paid: Amount) -> Option<String> {
    (!paid.is_zero()).then(|| format!("{currency} {paid} was paid and has to be paid back."))
}

async fn credit_invoice(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoice: &Invoice,
    is_preview: bool,
) -> Result<Option<Correction>, ApiError> {
    let command =
        make_correction_command(state, invoice, CorrectionWish::Cancel, is_preview).await?;
    let correction = state.taxpayers.send(taxpayer, command).await?;
    Ok(Some(correction))
}

/// Cancels an invoice. Returns false if another call has cancelled it in the meantime.
async fn cancel_invoice(
    state: &ApiState,
    taxpayer: TaxpayerId,
    invoice: &Invoice,
    is_preview: bool,
) -> Result<bool, ApiError> {
    invoice
        .status
        .after(Transition::Set(SettableStatus::Cancelled))?;
    if is_preview {
        return Ok(true);
    }
    let command = CancelUnlessCancelled {
        invoice: InvoiceRef {
            kind: UniqueNoType::PortalId,
            text: invoice.id.to_string(),
        },
        remark: REMARK.to_owned(),
    };
    Ok(state.taxpayers.send(taxpayer, command).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: i64, act: UndoAct, payable: i64) -> UndoItem {
        UndoItem {
            id: InvoiceId(id),
            invoice_no: format!("INV-{id}"),
            is_credit_note: false,
            act,
            currency: "NGN".to_owned(),
            payable: Amount::from(payable),
            correction_no: None,
            message: None,
        }
    }

    #[test]
    fn a_credit_note_lowers_the_money_that_is_undone() {
        let plan = Undo {
            items: vec![
                item(1, UndoAct::Cancel, 50),
                UndoItem {
                    is_credit_note: true,
                    ..item(2, UndoAct::Cancel, 20)
                },
                item(3, UndoAct::None, 7),
            ],
            ..Undo::default()
        };
        let sums = plan.sums_by_currency();
        assert_eq!(sums.get("NGN"), Some(&Amount::from(30)));
    }

    #[test]
    fn an_invoice_that_is_being_submitted_can_be_undone_later() {
        for (status, is_being_submitted) in [
            (WorkflowStatus::Approved, true),
            (WorkflowStatus::Validated, true),
            (WorkflowStatus::Submitted, false),
            (WorkflowStatus::Reported, false),
        ] {
            let error = ApiError::from(Refusal::InvoiceLocked(status));
            let reason = kept_reason(status, &error);
            assert_eq!(
                reason == SUBMISSION_UNDER_WAY,
                is_being_submitted,
                "{status}"
            );
        }
        let status = WorkflowStatus::Paid;
        let other = ApiError::from(Refusal::InvalidTransition {
            from: status,
            to: "be given another status",
        });
        assert_eq!(kept_reason(status, &other), &*other.message);
    }

    #[test]
    fn another_plan_has_another_digest() {
        let digest = |items: Vec<UndoItem>| {
            let plan = Undo {
                items,
                ..Undo::default()
            };
            plan.digest()
        };
        let plan = || vec![item(1, UndoAct::Cancel, 10), item(2, UndoAct::Credit, 20)];
        let kept = item(3, UndoAct::None, 30);
        assert_eq!(
            digest(plan()),
            digest(plan().into_iter().chain([kept]).collect())
        );
        for other in [
            vec![],
            vec![item(1, UndoAct::Cancel, 10)],
            vec![item(1, UndoAct::Credit, 10), item(2, UndoAct::Credit, 20)],
            vec![item(1, UndoAct::None, 10), item(2, UndoAct::Credit, 20)],
            vec![item(1, UndoAct::Cancel, 10), item(2, UndoAct::Credit, 15)],
            vec![item(1, UndoAct::Cancel, 10), item(4, UndoAct::Credit, 20)],
        ] {
            let text = format!("{other:?}");
            assert_ne!(digest(plan()), digest(other), "{text}");
        }
    }
}
