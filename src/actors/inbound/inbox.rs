//! A taxpayer's inbox: reads and acknowledges supplier invoices.

use std::time::Duration;

use authority_client::AuthorityFailure;
use database::StoreError;
use serde_json::Value;
use tokio::time::timeout;

use crate::actors::inbound::addressee::InboundInvoices;
use crate::actors::on_behalf::authority_for_taxpayer;
use crate::actors::taxpayer::commands::AcknowledgeSupplierInvoice;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::operations::supplier_invoices;

/// If the authority does not return the document within this time, the stored copy is returned.
const LIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The document of a supplier's invoice.
#[derive(Debug, Clone)]
pub struct InboxDocument {
    pub document: Value,
    /// True if the authority has just returned the document; false if the document is the stored copy.
    pub is_live: bool,
}

/// Why a request to an inbox failed.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
}

impl From<StoreError> for InboxError {
    fn from(error: StoreError) -> Self {
        Self::Taxpayer(TaxpayerError::Store(error))
    }
}

impl From<Refusal> for InboxError {
    fn from(refusal: Refusal) -> Self {
        Self::Taxpayer(TaxpayerError::Refused(refusal))
    }
}

impl InboundInvoices {
    /// Returns the document of an invoice in the inbox: from the authority if possible, else the stored copy.
    pub async fn load_document(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<InboxDocument, InboxError> {
        let invoice = self.find_invoice_in_inbox(taxpayer, irn).await?;
        if let Ok(Some(document)) =
            timeout(LIVE_TIMEOUT, self.download_document(taxpayer, &invoice.irn)).await
        {
            return Ok(InboxDocument {
                document,
                is_live: true,
            });
        }
        let kept = supplier_invoices::document_owned_by(&self.store, taxpayer, irn).await?;
        let document = kept.ok_or_else(|| StoreError::Corrupt {
            table: "supplier_documents",
            id: format!("{taxpayer}/{irn}"),
            reason: "the document of an invoice in the inbox is missing".to_owned(),
        })?;
        Ok(InboxDocument {
            document,
            is_live: false,
        })
    }

    /// Acknowledges an invoice to the authority, then records this. May be repeated after a crash.
    pub async fn acknowledge(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<SupplierInvoice, InboxError> {
        let command = self.acknowledge_to_authority(taxpayer, irn).await?;
        Ok(self.taxpayers.send(taxpayer, command).await?)
    }

    /// Acknowledges an invoice to the authority, and returns the command that records this. May be repeated after a
    /// crash.
    pub async fn acknowledge_to_authority(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<AcknowledgeSupplierInvoice, InboxError> {
        let invoice = self.find_invoice_in_inbox(taxpayer, irn).await?;
        if invoice.acknowledged_at.is_some() {
            return Err(Refusal::AlreadyAcknowledged.into());
        }
        // While the taxpayer is paused the command would be refused, and the caller told that nothing was done.
        self.taxpayers.check_not_paused(taxpayer)?;
        self.relay_acknowledgement(taxpayer, &invoice.irn).await?;
        Ok(AcknowledgeSupplierInvoice { irn: invoice.irn })
    }

    async fn find_invoice_in_inbox(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<SupplierInvoice, InboxError> {
        let found = supplier_invoices::find_owned_by_irn(&self.store, taxpayer, irn).await?;
        found.ok_or_else(|| Refusal::NotAddressedToCaller.into())
    }

    /// Acknowledges an invoice to the authority. If the outcome is unknown, asks for the invoice's status.
    async fn relay_acknowledgement(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<(), InboxError> {
        let authority = authority_for_taxpayer(&self.authority, &self.store, taxpayer).await?;
        let unknown = match authority.acknowledge(irn.as_str()).await {
            Ok(_) => return Ok(()),
            Err(unknown @ AuthorityFailure::Unknown { .. }) => unknown,
            Err(failure) => return Err(failure.into()),
        };
        let confirmed = authority.confirm(irn.as_str()).await;
        if confirmed.is_ok_and(|confirmation| confirmation.delivered) {
            Ok(())
        } else {
            Err(unknown.into())
        }
    }

    /// Returns the authority's document, or `None` if it cannot be downloaded or decrypted.
    async fn download_document(&self, taxpayer: TaxpayerId, irn: &Irn) -> Option<Value> {
        let authority = authority_for_taxpayer(&self.authority, &self.store, taxpayer)
            .await
            .ok()?;
        let sealed = authority.download(irn.as_str()).await.ok()?;
        let document = authority.decrypt(irn.as_str(), &sealed).ok()?;
        Some(
            SupplierDocument::from_document(irn, document)
                .ok()?
                .document,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use authority_client::testing::Server;
    use jiff::Timestamp;
    use serde_json::json;
    use supervision::Arbiters;
    use timing::clock::{SharedClock, SystemClock};

    use super::*;
    use crate::actors::taxpayer::acting::{run_request, set_request_actor};
    use crate::actors::taxpayer::commands::{Onboard, ReceiveSupplierInvoice};
    use crate::actors::taxpayer::handle::TaxpayerHandle;
    use crate::domain::kernel::audit::Actor;
    use crate::domain::kernel::ids::ContactId;
    use crate::domain::party::verification::VerificationPolicy;
    use crate::domain::taxpayer_pause::TaxpayerPause;
    use crate::store::testing::stores;

    const ID: TaxpayerId = TaxpayerId(1);

    #[actix_rt::test]
    async fn while_a_taxpayer_is_paused_its_acknowledgements_do_not_reach_the_authority() {
        for test in stores().await {
            let arbiters = Arc::new(Arbiters::start(1));
            let clock: SharedClock = Arc::new(SystemClock);
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(&test.store, clock, &arbiters));
            taxpayers.send(ID, Onboard::sample(ID)).await.unwrap();
            let irn = Irn::parse("SUP1-5A0D0001-20260115").unwrap();
            let document = SupplierDocument::from_document(&irn, json!({ "irn": irn })).unwrap();
            let received = ReceiveSupplierInvoice(document);
            taxpayers.send(ID, received).await.unwrap();
            let server = Server::json(200, r#"{"code":200,"data":{"ok":true}}"#).await;
            let inbound = InboundInvoices::new(
                test.store.clone(),
                Arc::clone(&taxpayers),
                server.authority(),
                VerificationPolicy::Warn,
            );
            let pause = TaxpayerPause {
                taxpayer_id: ID,
                since: Timestamp::UNIX_EPOCH,
                reason: None,
            };
            for (pauses, is_done) in [(vec![pause], false), (vec![], true)] {
                taxpayers.paused_taxpayers().set(pauses);
                let acknowledged = run_request(async {
                    set_request_actor(Actor::Contact(ContactId(1)).into());
                    inbound.acknowledge(ID, &irn).await
                });
                let acknowledged = acknowledged.await;
                let is_refused = matches!(
                    acknowledged,
                    Err(InboxError::Taxpayer(TaxpayerError::Paused))
                );
                assert_eq!(acknowledged.is_ok(), is_done, "{acknowledged:?}");
                assert_eq!(is_refused, !is_done, "{acknowledged:?}");
                let calls = server.received_requests().len();
                assert_eq!(calls, usize::from(is_done));
            }
            arbiters.stop();
        }
    }
}
