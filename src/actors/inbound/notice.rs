//! One notice. Of an invoice that somebody here sent, the authority is asked how far it is; one that is
//! addressed to somebody here is downloaded and put into the inbox. Where both are ours, both happen.

use std::time::Duration;

use tokio::time::timeout;

use crate::actors::inbound::desk::{Inbound, Unresolved};
use crate::authority::CallerAccount;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::NoticeMessage;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::transit::Transit;
use crate::domain::pipeline::{Operation, Run, Step};
use crate::domain::supplier_invoice::{SupplierDocument, buyer_tin};
use crate::store::accounts::taxpayers;
use crate::store::invoices::{self, InvoiceNames};
use crate::store::operations::supplier_invoices;
use crate::store::runs;

/// How long whoever sends a notice is kept waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// An invoice that somebody here sent, as far as the books know.
struct Sent {
    taxpayer_id: TaxpayerId,
    /// As we spell it with the authority.
    irn: Irn,
    /// Who is to receive it; unknown where it was not submitted through us.
    buyer_tin: Option<String>,
    /// The books say so, and no run that had stopped short of it.
    is_transmitted: bool,
    is_acknowledged: bool,
    /// Its transmission was called and has not been answered.
    is_under_way: bool,
}

impl Inbound {
    /// Hears a notice about an invoice. When this is well, all that follows from it is durable.
    pub async fn hear(&self, irn: &Irn, message: NoticeMessage) -> Result<(), Unresolved> {
        let _slot = self.slots.try_acquire().map_err(|_| Unresolved::Busy)?;
        timeout(PATIENCE, self.ask_about(irn, message)).await.map_err(|_| Unresolved::TimedOut)?
    }

    async fn ask_about(&self, irn: &Irn, message: NoticeMessage) -> Result<(), Unresolved> {
        let Some(sent) = self.sent(irn).await? else { return self.receive(irn).await };
        let transmitted = self.follow(&sent).await;
        // While we are sending it, the authority may tell its buyer before it tells us.
        let is_arriving = message == NoticeMessage::Transmitting && sent.is_under_way;
        // One side must not wait for the other's trouble.
        let is_on_its_way = matches!(transmitted, Ok(true)) || is_arriving || sent.is_transmitted;
        let received = if is_on_its_way { self.receive_from(&sent).await } else { Ok(()) };
        transmitted?;
        match received {
            // What is withheld is found again by the pull: the sender's side of this notice is done.
            Err(Unresolved::Withheld) => Ok(()),
            received => received,
        }
    }

    /// Works with a line of the authority's own list, which says by itself how far the invoice is.
    pub(super) async fn take_from_list(&self, irn: &Irn, is_delivered: bool) -> Result<(), Unresolved> {
        let Some(sent) = self.sent(irn).await? else { return self.receive(irn).await };
        let is_known = if is_delivered { sent.is_acknowledged } else { sent.is_transmitted };
        if !is_known {
            self.taxpayers.record_transit(sent.taxpayer_id, sent.irn.clone(), is_delivered).await?;
        }
        self.receive_from(&sent).await
    }

    /// The invoice with this IRN that somebody here sent, if it is one.
    async fn sent(&self, irn: &Irn) -> Result<Option<Sent>, Unresolved> {
        let Some(owner) = taxpayers::with_service_id(&self.store, irn.service_id()).await? else {
            return Ok(None);
        };
        let reader = self.store.reader();
        let names = InvoiceNames { irn_keys: vec![irn.key()], ..InvoiceNames::default() };
        let invoice = invoices::owned_by_with_names(reader, owner, names).await?.pop();
        let runs = runs::owned_by_with_irn_keys(reader, owner, vec![irn.key()]).await?;
        let spelled = invoice.as_ref().map(|invoice| &invoice.irn).or(runs.first().map(|run| &run.irn));
        let Some(spelled) = spelled.cloned() else { return Ok(None) };
        let run = |operation| runs.iter().find(|run: &&Run| run.operation == operation);
        let (submission, transmission) = (run(Operation::Submit), run(Operation::Transmit));
        let transit = Transit::of(invoice.as_ref(), &runs);
        Ok(Some(Sent {
            taxpayer_id: owner,
            irn: spelled,
            buyer_tin: submission.and_then(|run| buyer_tin(&run.document)),
            is_transmitted: transit.is_transmitted,
            is_acknowledged: transit.is_acknowledged,
            is_under_way: transmission.is_some_and(|run| run.intent == Some(Step::Send)),
        }))
    }

    /// Asks the authority how far an invoice is and records it; whether it is on its way. Of one that was
    /// acknowledged there is nothing more to hear.
    async fn follow(&self, sent: &Sent) -> Result<bool, Unresolved> {
        if sent.is_acknowledged {
            return Ok(true);
        }
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(sent.taxpayer_id));
        let confirmation = authority.confirm(sent.irn.as_str()).await?;
        let is_delivered = confirmation.delivered;
        let is_transmitted = confirmation.transmitted || is_delivered;
        if is_delivered || (is_transmitted && !sent.is_transmitted) {
            self.taxpayers.record_transit(sent.taxpayer_id, sent.irn.clone(), is_delivered).await?;
        }
        Ok(is_transmitted)
    }

    /// Receives an invoice whose sender is here, where its buyer is too.
    async fn receive_from(&self, sent: &Sent) -> Result<(), Unresolved> {
        let known = match &sent.buyer_tin {
            Some(tin) => self.addressee(&sent.irn, tin).await.map(drop),
            None => Ok(()),
        };
        match known {
            Ok(()) => {}
            Err(Unresolved::Nobody) => return Ok(()),
            Err(unresolved) => return Err(unresolved),
        }
        match self.receive(&sent.irn).await {
            Err(Unresolved::Nobody) => Ok(()),
            received => received,
        }
    }

    /// Puts an invoice into the inbox of whom it is addressed to, unless it is there.
    async fn receive(&self, irn: &Irn) -> Result<(), Unresolved> {
        if !supplier_invoices::received_among(&self.store, &[irn.key()]).await?.is_empty() {
            return Ok(());
        }
        let sealed = self.authority.download(irn.as_str()).await?;
        let document = SupplierDocument::of(irn, self.authority.decrypt(irn.as_str(), &sealed)?)?;
        let tin = document.buyer_tin.as_deref().ok_or(Unresolved::Nobody)?;
        let buyer = self.addressee(irn, tin).await?;
        self.taxpayers.receive_supplier_invoice(buyer, document).await?;
        Ok(())
    }
}
