//! The note of an invoice and the invoice that it corrects, as its page shows them.

use serde_json::Value;

use crate::console::accounts::navigation::base_path;
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::corrected_reference::ReferencedBy;
use crate::domain::kernel::codes::UniqueNoType;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

pub(super) struct DocumentFacts {
    pub(super) note: Option<String>,
    /// The invoice that this one corrects; `None` if it names none.
    pub(super) corrected: Option<CorrectedDocument>,
}

/// An invoice that another one corrects.
pub(super) struct CorrectedDocument {
    /// The number of the invoice, or the reference if the account has no such invoice.
    pub(super) name: String,
    /// The address of the invoice's page; `None` if the account has no such invoice.
    pub(super) address: Option<String>,
}

impl DocumentFacts {
    pub(super) async fn load(
        state: &ApiState,
        session: &AccountSession,
        invoice: &Invoice,
    ) -> Result<Self, ApiError> {
        let note = invoice.extras.get("note").and_then(Value::as_str);
        let note = note.filter(|note| !note.is_empty());
        let corrected = match find_corrected_invoice(state, session, invoice).await? {
            Some(original) => Some(CorrectedDocument {
                address: Some(format!("{}/invoices/{}", base_path(session), original.id)),
                name: original.invoice_no,
            }),
            None => invoice
                .corrected_reference()
                .map(|reference| CorrectedDocument {
                    name: reference.text,
                    address: None,
                }),
        };
        Ok(Self {
            note: note.map(str::to_owned),
            corrected,
        })
    }
}

/// Returns the invoice that a document corrects; `None` if the document names none, or if the account has no such
/// invoice.
pub(super) async fn find_corrected_invoice(
    state: &ApiState,
    session: &AccountSession,
    document: &Invoice,
) -> Result<Option<Invoice>, ApiError> {
    let Some(reference) = document.corrected_reference() else {
        return Ok(None);
    };
    let kind = match reference.by {
        ReferencedBy::Irn => UniqueNoType::Irn,
        ReferencedBy::Number => UniqueNoType::InternalInvoiceNo,
        ReferencedBy::PortalId => UniqueNoType::PortalId,
    };
    let text = reference.text;
    let found = invoices::find_owned_by_unique_no(&state.store, session.taxpayer, kind, &text);
    Ok(found.await?)
}
