//! Processes one notice about an invoice. If a taxpayer of ours is the supplier, the transmission status is updated. If
//! a taxpayer of ours is the buyer, the invoice is downloaded into the inbox.

use std::time::Duration;

use tokio::time::timeout;

use crate::actors::inbound::addressee::{InboundInvoices, NoticeError};
use crate::actors::on_behalf::authority_for_taxpayer;
use crate::actors::taxpayer::commands::{ReceiveSupplierInvoice, RecordTransmission};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::NoticeMessage;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::transit::TransmissionState;
use crate::domain::pipeline::{Operation, Run, Step};
use crate::domain::supplier_invoice::{SupplierDocument, buyer_tin};
use crate::store::accounts::taxpayers;
use crate::store::invoices::{self, InvoiceIdentifiers};
use crate::store::operations::supplier_invoices;
use crate::store::runs;

/// The timeout for processing a notice. The sender of the notice waits during this time.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);

/// An invoice that one of our taxpayers sent, as it is stored here.
struct OutgoingInvoice {
    taxpayer_id: TaxpayerId,
    /// The IRN as we spelt it to the authority.
    irn: Irn,
    /// The buyer's tax number; `None` if the invoice was not submitted through us.
    buyer_tin: Option<String>,
    /// True if our records say that the invoice was transmitted, and no transmit run has stopped without recording
    /// this.
    is_transmitted: bool,
    is_acknowledged: bool,
    /// True if we have called the authority to transmit the invoice and the outcome is not recorded yet.
    is_under_way: bool,
}

impl InboundInvoices {
    /// Processes a notice about an invoice. On success, everything that follows from the notice is stored.
    pub async fn handle_notice(
        &self,
        irn: &Irn,
        message: NoticeMessage,
    ) -> Result<(), NoticeError> {
        let _slot = self.slots.try_acquire().map_err(|_| NoticeError::Busy)?;
        timeout(NOTICE_TIMEOUT, self.apply_notice(irn, message))
            .await
            .map_err(|_| NoticeError::TimedOut)?
    }

    async fn apply_notice(&self, irn: &Irn, message: NoticeMessage) -> Result<(), NoticeError> {
        let Some(sent) = self.outgoing_invoice(irn).await? else {
            return self.receive_into_inbox(irn).await;
        };
        let transmitted = self.refresh_transmission(&sent).await;
        // The authority may send this notice before it answers our call to transmit.
        let is_arriving = message == NoticeMessage::Transmitting && sent.is_under_way;
        // The buyer's inbox is updated even if the status of the sender's invoice could not be fetched.
        let is_in_transit = matches!(transmitted, Ok(true)) || is_arriving || sent.is_transmitted;
        let received = if is_in_transit {
            self.deliver_to_our_buyer(&sent).await
        } else {
            Ok(())
        };
        transmitted?;
        match received {
            // The supplier's status is recorded, so the notice has succeeded. The poller tries the buyer again later.
            Err(NoticeError::Withheld | NoticeError::UnknownInvoice) => Ok(()),
            received => received,
        }
    }

    /// Processes one line of the list of invoices in transit. The line contains the transmission status.
    pub(super) async fn process_line(
        &self,
        irn: &Irn,
        is_delivered: bool,
    ) -> Result<(), NoticeError> {
        let Some(sent) = self.outgoing_invoice(irn).await? else {
            return self.receive_into_inbox(irn).await;
        };
        let is_known = if is_delivered {
            sent.is_acknowledged
        } else {
            sent.is_transmitted
        };
        if !is_known {
            self.taxpayers
                .send(
                    sent.taxpayer_id,
                    RecordTransmission {
                        irn: sent.irn.clone(),
                        is_delivered,
                    },
                )
                .await?;
        }
        self.deliver_to_our_buyer(&sent).await
    }

    /// Returns the outgoing invoice with this IRN, if one of our taxpayers sent it.
    async fn outgoing_invoice(&self, irn: &Irn) -> Result<Option<OutgoingInvoice>, NoticeError> {
        let Some(owner) = taxpayers::find_by_service_id(&self.store, irn.service_id()).await?
        else {
            return Ok(None);
        };
        let reader = self.store.reader();
        let names = InvoiceIdentifiers {
            irn_keys: vec![irn.key()],
            ..InvoiceIdentifiers::default()
        };
        let invoice = invoices::find_owned_by_identifiers(reader, owner, names)
            .await?
            .pop();
        let runs = runs::find_owned_by_irn_keys(reader, owner, vec![irn.key()]).await?;
        let known_irn = invoice
            .as_ref()
            .map(|invoice| &invoice.irn)
            .or(runs.first().map(|run| &run.irn));
        let Some(known_irn) = known_irn.cloned() else {
            return Ok(None);
        };
        let submission = Run::find_in(&runs, Operation::Submit);
        let transmission = Run::find_in(&runs, Operation::Transmit);
        let transit = TransmissionState::from_runs(invoice.as_ref(), &runs);
        Ok(Some(OutgoingInvoice {
            taxpayer_id: owner,
            irn: known_irn,
            buyer_tin: submission.and_then(|run| buyer_tin(run.payload.submission()?.as_json())),
            is_transmitted: transit.is_transmitted,
            is_acknowledged: transit.is_acknowledged,
            is_under_way: transmission.is_some_and(|run| run.progress.intent == Some(Step::Send)),
        }))
    }

    /// Returns true if the authority has transmitted the invoice. Asks the authority for the status, unless the buyer
    /// has already acknowledged the invoice, and records a status that is new.
    async fn refresh_transmission(&self, sent: &OutgoingInvoice) -> Result<bool, NoticeError> {
        if sent.is_acknowledged {
            return Ok(true);
        }
        let authority =
            authority_for_taxpayer(&self.authority, &self.store, sent.taxpayer_id).await?;
        let confirmation = authority.confirm(sent.irn.as_str()).await?;
        let is_delivered = confirmation.delivered;
        let is_transmitted = confirmation.transmitted || is_delivered;
        if is_delivered || (is_transmitted && !sent.is_transmitted) {
            self.taxpayers
                .send(
                    sent.taxpayer_id,
                    RecordTransmission {
                        irn: sent.irn.clone(),
                        is_delivered,
                    },
                )
                .await?;
        }
        Ok(is_transmitted)
    }

    /// Puts an invoice of one of our taxpayers into the buyer's inbox. Fails with `UnknownInvoice` if the buyer is not
    /// our taxpayer, perhaps not yet.
    async fn deliver_to_our_buyer(&self, sent: &OutgoingInvoice) -> Result<(), NoticeError> {
        if let Some(tin) = &sent.buyer_tin {
            self.find_verified_addressee(&sent.irn, tin).await?;
        }
        self.receive_into_inbox(&sent.irn).await
    }

    /// Downloads an invoice into the inbox of its addressee, unless it was received before.
    async fn receive_into_inbox(&self, irn: &Irn) -> Result<(), NoticeError> {
        if !supplier_invoices::find_received_irn_keys(&self.store, &[irn.key()])
            .await?
            .is_empty()
        {
            return Ok(());
        }
        let sealed = self.authority.download(irn.as_str()).await?;
        let document =
            SupplierDocument::from_document(irn, self.authority.decrypt(irn.as_str(), &sealed)?)?;
        let tin = document
            .buyer_tin
            .as_deref()
            .ok_or(NoticeError::UnknownInvoice)?;
        let buyer = self.find_verified_addressee(irn, tin).await?;
        self.taxpayers
            .send(buyer, ReceiveSupplierInvoice(document))
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use authority_client::testing::{Behaviour, PUBLIC_PART, Server, encrypt, http};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE;
    use serde_json::{Value, json};
    use supervision::Arbiters;
    use timing::clock::{SharedClock, SystemClock};

    use super::*;
    use crate::actors::taxpayer::commands::{Onboard, OpenRun};
    use crate::actors::taxpayer::handle::TaxpayerHandle;
    use crate::domain::party::verification::VerificationPolicy;
    use crate::domain::pipeline::{RunPayload, RunRequest};
    use crate::store::testing::stores;

    const SELLER: TaxpayerId = TaxpayerId(1);
    const BUYER: TaxpayerId = TaxpayerId(2);
    const IRN: &str = "INV1-00000001-20260115";

    /// The answers of an authority that has transmitted this document.
    fn answers(document: &Value) -> Behaviour {
        let status =
            json!({ "payment_status": "PENDING", "transmitted": true, "delivered": false });
        let (iv, bytes) = encrypt(document.to_string().as_bytes());
        let data = URL_SAFE.encode(bytes);
        let sealed = json!({ "iv_hex": iv, "pub": PUBLIC_PART, "data": data });
        let answer = |data: Value| http(200, "", &json!({ "data": data }).to_string());
        Behaviour::ByPath(vec![
            ("/invoice/confirm/", answer(status)),
            ("/invoice/download/", answer(sealed)),
        ])
    }

    #[actix_rt::test]
    async fn an_invoice_between_our_taxpayers_arrives_once_its_buyer_is_onboarded() {
        for test in stores().await {
            let arbiters = Arc::new(Arbiters::start(1));
            let clock: SharedClock = Arc::new(SystemClock);
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(&test.store, clock, &arbiters));
            let seller = Onboard::sample(SELLER);
            taxpayers.send(SELLER, seller).await.unwrap();
            let irn = Irn::parse(IRN).unwrap();
            let document = json!({ "irn": IRN, "accounting_customer_party": { "tin": "TIN-2" } });
            let server = Server::start(answers(&document)).await;
            let submission = RunRequest {
                irn: irn.clone(),
                payload: RunPayload::from_document(Operation::Submit, document).unwrap(),
            };
            taxpayers.send(SELLER, OpenRun(submission)).await.unwrap();
            let inbound = InboundInvoices::new(
                test.store.clone(),
                Arc::clone(&taxpayers),
                server.authority(),
                VerificationPolicy::Warn,
            );
            // The notice has succeeded, because nothing is left to do for it. The line of the list is tried again.
            let notice = inbound.handle_notice(&irn, NoticeMessage::Transmitting);
            notice.await.unwrap();
            let early = inbound.process_line(&irn, false).await;
            assert!(
                matches!(early, Err(NoticeError::UnknownInvoice)),
                "{early:?}"
            );
            taxpayers.send(BUYER, Onboard::sample(BUYER)).await.unwrap();
            inbound.process_line(&irn, false).await.unwrap();
            let keys = [irn.key()];
            let received = supplier_invoices::find_received_irn_keys(&test.store, &keys).await;
            assert_eq!(received.unwrap().len(), 1);
            arbiters.stop();
        }
    }
}
