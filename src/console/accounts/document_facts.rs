//! The note of an invoice and the invoice that it corrects, as its page shows them.

use serde_json::Value;

use crate::console::accounts::navigation::base_path;
use crate::console::session::accounts::AccountSession;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::corrected_reference::{CorrectedReference, ReferencedBy};
use crate::domain::kernel::codes::UniqueNoType;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

pub(super) struct DocumentFacts {
    pub(super) note: Option<String>,
    /// The invoice that this one corrects; `None` if it names none.
    pub(super) corrects: Option<CorrectedDocument>,
}

/// An invoice that another one corrects.
pub(super) struct CorrectedDocument {
    /// The number of the invoice, or the reference if the account has no such invoice.
    pub(super) name: String,
    /// The address of its page; `None` if the account has no such invoice.
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
        let corrects = match invoice.corrected_reference() {
            Some(reference) => Some(find_corrected(state, session, reference).await?),
            None => None,
        };
        Ok(Self {
            note: note.map(str::to_owned),
            corrects,
        })
    }
}

async fn find_corrected(
    state: &ApiState,
    session: &AccountSession,
    reference: CorrectedReference,
) -> Result<CorrectedDocument, ApiError> {
    let kind = match reference.by {
        ReferencedBy::Irn => UniqueNoType::Irn,
        ReferencedBy::Number => UniqueNoType::InternalInvoiceNo,
        ReferencedBy::PortalId => UniqueNoType::PortalId,
    };
    let text = reference.text;
    let found =
        invoices::find_owned_by_unique_no(&state.store, session.taxpayer, kind, &text).await?;
    Ok(match found {
        Some(original) => CorrectedDocument {
            address: Some(format!("{}/invoices/{}", base_path(session), original.id)),
            name: original.invoice_no,
        },
        None => CorrectedDocument {
            name: text,
            address: None,
        },
    })
}
