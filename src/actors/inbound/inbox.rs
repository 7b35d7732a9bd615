//! A taxpayer's inbox: the document of an invoice, as the authority has it today or else as it was at receipt,
//! and its acknowledgement.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::actors::inbound::desk::Inbound;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::authority::{AuthorityFailure, CallerAccount};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::db::error::StoreError;
use crate::store::operations::supplier_invoices;

/// How long the authority may take over a document of which we have a copy.
const LIVE_PATIENCE: Duration = Duration::from_secs(5);

/// The document of a supplier's invoice.
#[derive(Debug, Clone)]
pub struct Document {
    pub document: Value,
    /// Whether it is the authority's of this moment; else it is the copy kept at receipt.
    pub is_live: bool,
}

/// Why an inbox did not give what was asked.
#[derive(Debug, thiserror::Error)]
pub enum InboxFailure {
    #[error(transparent)]
    Books(#[from] TaxpayerError),
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
}

impl From<StoreError> for InboxFailure {
    fn from(error: StoreError) -> Self {
        Self::Books(TaxpayerError::Store(error))
    }
}

impl From<Refusal> for InboxFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Books(TaxpayerError::Refused(refusal))
    }
}

impl Inbound {
    /// The document of an invoice that the taxpayer was notified about.
    pub async fn document(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<Document, InboxFailure> {
        let invoice = self.addressed_to(taxpayer, irn).await?;
        if let Ok(Some(document)) = timeout(LIVE_PATIENCE, self.live(taxpayer, &invoice.irn)).await {
            return Ok(Document { document, is_live: true });
        }
        let kept = supplier_invoices::document_owned_by(&self.store, taxpayer, irn).await?;
        let document = kept.ok_or_else(|| StoreError::Corrupt {
            table: "supplier_documents",
            id: format!("{taxpayer}/{irn}"),
            reason: "the document of an invoice in the inbox is missing".to_owned(),
        })?;
        Ok(Document { document, is_live: false })
    }

    /// Tells the authority that the taxpayer has the invoice, then the books. A process that dies between the
    /// two leaves the books as they were: asked again, the authority says that it knows, and that is as good.
    pub async fn acknowledge(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<SupplierInvoice, InboxFailure> {
        let invoice = self.addressed_to(taxpayer, irn).await?;
        if invoice.acknowledged_at.is_some() {
            return Err(Refusal::AlreadyAcknowledged.into());
        }
        self.relay_acknowledgement(taxpayer, &invoice.irn).await?;
        Ok(self.taxpayers.acknowledge_supplier_invoice(taxpayer, invoice.irn).await?)
    }

    async fn addressed_to(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<SupplierInvoice, InboxFailure> {
        let found = supplier_invoices::owned_by_with_irn(&self.store, taxpayer, irn).await?;
        found.ok_or_else(|| Refusal::NotAddressedToCaller.into())
    }

    /// Whether an unanswered call took effect is asked for at once.
    async fn relay_acknowledgement(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<(), AuthorityFailure> {
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(taxpayer));
        let unknown = match authority.acknowledge(irn.as_str()).await {
            Ok(_) => return Ok(()),
            Err(unknown @ AuthorityFailure::Unknown { .. }) => unknown,
            Err(failure) => return Err(failure),
        };
        let confirmed = authority.confirm(irn.as_str()).await;
        if confirmed.is_ok_and(|confirmation| confirmation.delivered) { Ok(()) } else { Err(unknown) }
    }

    /// What the authority has of it now, if that can be had and read.
    async fn live(&self, taxpayer: TaxpayerId, irn: &Irn) -> Option<Value> {
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(taxpayer));
        let sealed = authority.download(irn.as_str()).await.ok()?;
        let document = authority.decrypt(irn.as_str(), &sealed).ok()?;
        Some(SupplierDocument::of(irn, document).ok()?.document)
    }
}
