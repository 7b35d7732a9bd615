//! Finds whom to deliver to and what is next, for all endpoints together: who asks while one query is under way is in
//! the next.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use crate::actors::supervision::{
    Admission, Arbiters, Batch, CommandId, Kind, Policy, Registry, Settings, Tree, Worker, serial,
};
use crate::actors::webhook::courier::Satchel;
use crate::actors::webhook::flight::most_held;
use crate::actors::webhook::together::{self, Together};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::error::StoreError;
use crate::store::webhooks;
use crate::store::webhooks::delivery_queue;

/// Endpoints in one query at most.
const TOGETHER_MAX: usize = 128;

/// What there is to do for an endpoint.
pub(super) struct Found {
    pub(super) recipient: webhooks::Recipient,
    /// The longest due first; those that are held are among them.
    pub(super) next: VecDeque<(Delivery, Event)>,
    /// As of when.
    pub(super) at: Timestamp,
}

type Finding = Result<Option<Found>, StoreError>;

/// The one actor that reads for all endpoints.
pub(super) struct Scout(Registry<&'static str, TaxpayerId, Finding>);

impl Scout {
    pub(super) fn start(satchel: &Arc<Satchel>, tree: &Tree, arbiters: &Arc<Arbiters>) -> Self {
        let admission = Admission::new(together::limits(), Arc::clone(tree.counters()));
        let settings = Settings { kind: Kind::Webhook, policy: Policy::default() };
        let satchel = Arc::clone(satchel);
        Self(Registry::new(tree, arbiters, admission, settings, move |_, seat| {
            let satchel = Arc::clone(&satchel);
            serial::start(seat, TOGETHER_MAX, move || Reader(Arc::clone(&satchel)))
        }))
    }

    /// What there is to do for the endpoint of a taxpayer, if it has one.
    pub(super) async fn look(&self, taxpayer: TaxpayerId) -> Finding {
        self.0.send(&"scout", taxpayer).await.unwrap_or(Err(StoreError::Unsettled))
    }
}

struct Reader(Arc<Satchel>);

impl Worker for Reader {
    type Command = TaxpayerId;
    type Reply = Finding;

    fn name(_: &TaxpayerId) -> &'static str {
        "look"
    }

    async fn work(self, batch: Batch<TaxpayerId>) -> (Self, Vec<(CommandId, Finding)>) {
        let answers = together::or_one_by_one(&self, &batch).await;
        (self, answers)
    }
}

impl Together for Reader {
    type One = TaxpayerId;
    type Answer = Option<Found>;

    async fn together(&self, taxpayers: &[&TaxpayerId]) -> Result<Vec<Finding>, StoreError> {
        let taxpayers: Vec<_> = taxpayers.iter().copied().copied().collect();
        let (store, at) = (&self.0.store, self.0.clock.now());
        let (mut recipients, mut next) = tokio::try_join!(
            webhooks::recipients(store, &taxpayers, at),
            delivery_queue::next_owned_by_each(store, &taxpayers, at, most_held(self.0.at_once))
        )?;
        let found = |taxpayer: &TaxpayerId| {
            let recipient = recipients.remove(taxpayer)?;
            Some(Found { recipient, next: next.remove(taxpayer).unwrap_or_default().into(), at })
        };
        Ok(taxpayers.iter().map(found).map(Ok).collect())
    }
}
