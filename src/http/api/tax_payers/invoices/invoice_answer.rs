//! The response with one invoice: its entity tag, and the parts that the parameter `include` of a read adds.

use actix_web::HttpRequest;
use actix_web::http::header::EntityTag;

use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::record::Correction;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::payment::LedgerEntry;
use crate::http::invoice_files;
use crate::http::respond::entity_tag::{entity_tag, tag_with_addition};
use crate::http::respond::envelope::{ApiResponse, success_text};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::credits::{CreditsView, OriginalView};
use crate::http::views::invoice::{IncludedPart, IncludedParts, InvoiceView};
use crate::store::invoices;
use crate::store::invoices::correcting_documents::{self, CORRECTING_MAX};
use crate::store::invoices::{corrections, payments};

const RETRIEVED_MESSAGE: &str = "Invoice retrieved successfully";
/// The maximum number of unknown words in `include` that the response warns about.
const WARNED_WORDS_MAX: usize = 20;

/// Returns the entity tag of an invoice. The tag also covers the exact time of the last change, because a response
/// shows only whole seconds and no paid amount, so that two versions may look the same in it.
pub(super) fn invoice_tag(invoice: &Invoice) -> Result<EntityTag, ApiError> {
    let view = InvoiceView::new(invoice, &IncludedParts::default(), None);
    let answer = success_text(RETRIEVED_MESSAGE, view)?;
    let changed_at = invoice.updated_at.as_microsecond();
    Ok(entity_tag(format!("{answer} {changed_at}").as_bytes()))
}

/// The parts of an invoice that a caller requests.
pub(super) struct RequestedParts {
    included: IncludedParts,
    ledger_entries: Option<Vec<LedgerEntry>>,
    credits: Option<LoadedCredits>,
    verify_link: Option<String>,
}

/// The credit notes and the corrections of an invoice, and the invoice that it corrects.
struct LoadedCredits {
    credits: InvoiceCredits,
    /// The newest first.
    corrections: Vec<Correction>,
    original: Option<OriginalView>,
}

impl RequestedParts {
    /// Loads the parts that are named by `include`, the value of the parameter.
    pub(super) async fn load(
        state: &ApiState,
        request: &HttpRequest,
        invoice: &Invoice,
        include: &str,
    ) -> Result<Self, ApiError> {
        let included = IncludedParts::from_text(include);
        let ledger_entries = if included.has(IncludedPart::Ledger) {
            let taxpayer = invoice.taxpayer_id;
            Some(payments::find_owned_by_invoice(&state.store, taxpayer, invoice.id).await?)
        } else {
            None
        };
        let credits = if included.has(IncludedPart::Credits) {
            Some(LoadedCredits::load(state, invoice).await?)
        } else {
            None
        };
        let verify_link = if included.has(IncludedPart::VerifyLink) {
            let origin = state.origin(request);
            invoice_files::public_page_url(state, origin.as_deref(), invoice).await?
        } else {
            None
        };
        Ok(Self {
            included,
            ledger_entries,
            credits,
            verify_link,
        })
    }

    /// Returns the entity tag of the response. It depends on the credit notes if they are requested, because they may
    /// change while the invoice stays as it is. It depends on no other part.
    pub(super) fn tag(&self, invoice: &Invoice) -> Result<EntityTag, ApiError> {
        let tag = invoice_tag(invoice)?;
        let Some(credits) = &self.credits else {
            return Ok(tag);
        };
        let text = serde_json::to_string(&credits.view(invoice)).map_err(ApiError::internal)?;
        Ok(tag_with_addition(&tag, text.as_bytes()))
    }

    pub(super) fn into_response(self, invoice: &Invoice) -> ApiResponse {
        let Self {
            included,
            ledger_entries,
            credits,
            verify_link,
        } = self;
        let known_words = IncludedPart::allowed_words();
        let unknown_words = included.unknown_words.iter().take(WARNED_WORDS_MAX);
        let mut warnings: Vec<_> = unknown_words
            .map(|word| format!("include knows {known_words}, not {word}"))
            .collect();
        if credits.as_ref().is_some_and(|loaded| loaded.credits.is_cut) {
            warnings.push(format!(
                "more than {CORRECTING_MAX} documents refer to the invoice: the newest are left out of credits and of its amounts"
            ));
        }
        let credits = credits.as_ref().map(|credits| credits.view(invoice));
        let view = InvoiceView::new(invoice, &included, ledger_entries)
            .with_credits(credits)
            .with_verify_link(verify_link);
        ApiResponse::ok(RETRIEVED_MESSAGE, view).warn(&warnings)
    }
}

impl LoadedCredits {
    async fn load(state: &ApiState, invoice: &Invoice) -> Result<Self, ApiError> {
        let reader = state.store.reader();
        let ids = [invoice.id];
        Ok(Self {
            credits: correcting_documents::find_credits(reader, invoice).await?,
            corrections: corrections::find_owned_by_invoices(reader, invoice.taxpayer_id, &ids)
                .await?,
            original: find_original(state, invoice).await?,
        })
    }

    fn view(&self, invoice: &Invoice) -> CreditsView<'_> {
        CreditsView::new(
            invoice,
            &self.credits,
            &self.corrections,
            self.original.clone(),
        )
    }
}

/// Returns the invoice that a credit note or debit note corrects; `None` if the document refers to none.
async fn find_original(
    state: &ApiState,
    invoice: &Invoice,
) -> Result<Option<OriginalView>, ApiError> {
    let Some(original_ref) = invoice.original_ref() else {
        return Ok(None);
    };
    let stored = invoices::find_owned_by_unique_no(
        &state.store,
        invoice.taxpayer_id,
        original_ref.kind,
        &original_ref.text,
    )
    .await?;
    let is_irn = original_ref.kind == UniqueNoType::Irn;
    Ok(Some(match stored {
        Some(original) => OriginalView {
            id: Some(original.id),
            irn: Some(original.irn.to_string()),
        },
        None => OriginalView {
            id: None,
            irn: is_irn.then_some(original_ref.text),
        },
    }))
}
