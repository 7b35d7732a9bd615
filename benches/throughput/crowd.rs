//! Taxpayers whose notifications go to the sink, and the real commands that cause them: moves of their invoices, sent
//! to the taxpayers' actors as a handler would.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use einvoice::actors::taxpayer::command::{NewContact, Onboarding, WebhookChange};
use einvoice::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use einvoice::app::App;
use einvoice::domain::events::delivery::ScheduleChange;
use einvoice::domain::invoice::invoice_ref::InvoiceRef;
use einvoice::domain::kernel::audit::Actor;
use einvoice::domain::kernel::codes::{SettableStatus, UniqueNoType};
use einvoice::domain::kernel::fault::Faults;
use einvoice::domain::kernel::ids::{IntegratorId, TaxpayerId};
use einvoice::domain::party::ProfileChange;
use einvoice::store::accounts;
use einvoice::store::db::error::StoreError;
use einvoice::store::db::ids::IdKind;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use secrecy::SecretString;
use tokio::time::{Instant as Due, sleep, sleep_until};

use crate::direct;
use crate::sink::{Sink, remark};

/// Taxpayers that are made at a time.
const AT_ONCE: usize = 64;
/// Commands that wait at a time; SQLite has one writer, and who waits for it longer than 5 s is refused.
const COMMANDS_AT_ONCE: usize = 256;
const COME_BACK: Duration = Duration::from_millis(100);
/// Events that are notified; the creation of an invoice is not.
const EVENT: &str = "invoice.status-updated";

/// An invoice, and what its status is set to next.
struct Seat {
    taxpayer: TaxpayerId,
    irn: String,
    next: Cell<SettableStatus>,
}

pub(crate) struct Crowd {
    taxpayers: Arc<TaxpayerHandle>,
    seats: Vec<Seat>,
    pub(crate) endpoints: Range<usize>,
    /// Commands that were refused because the database was too busy, and sent again.
    pub(crate) put_off: Cell<usize>,
}

impl Crowd {
    /// Makes a taxpayer for each of these numbers, its webhook, and so many invoices.
    pub(crate) async fn gather(app: &App, sink: &Sink, endpoints: Range<usize>, invoices: usize) -> Self {
        let (name, key) = (format!("crowd{}", endpoints.start), format!("sik_{:032}", endpoints.start));
        let email = format!("{name}@bench.example");
        let key = SecretString::from(key).into();
        let added = accounts::add_integrator(&app.store, &name, &email, &key, app.clock.now()).await;
        let integrator = added.unwrap();
        let making = stream::iter(endpoints.clone()).map(async |number| {
            let id = TaxpayerId(app.store.ids().next(IdKind::Taxpayer).await.unwrap());
            app.taxpayers.onboard(id, onboarding(integrator, number)).await.unwrap();
            app.taxpayers.change_profile(id, profile(), Actor::CommandLine).await.unwrap();
            let change = WebhookChange {
                url: sink.url(number),
                enabled_events: Some(vec![EVENT.into()]),
                retry_schedule: ScheduleChange::Keep,
                by: Actor::CommandLine,
            };
            app.taxpayers.set_webhook(id, change).await.unwrap();
            join_all((0..invoices).map(|invoice| seat(app, id, invoice))).await
        });
        let seats: Vec<Vec<Seat>> = making.buffered(AT_ONCE).collect().await;
        // One seat of each taxpayer after the other: neighbours in time are neighbours in no lane.
        let mut rows: Vec<_> = seats.into_iter().map(VecDeque::from).collect();
        let mut seats = Vec::new();
        for _ in 0..invoices {
            seats.extend(rows.iter_mut().filter_map(VecDeque::pop_front));
        }
        Self { taxpayers: Arc::clone(&app.taxpayers), seats, endpoints, put_off: Cell::new(0) }
    }

    /// Causes an event of each number, as fast as it is taken by so many commands at once.
    pub(crate) async fn fill(&self, numbers: Range<usize>) {
        let seats = self.seats.iter().enumerate();
        let acting = stream::iter(seats).for_each_concurrent(COMMANDS_AT_ONCE, async |(at, seat)| {
            for number in self.share(at, numbers.clone()) {
                self.act(seat, number).await;
            }
        });
        acting.await;
    }

    /// Causes them at a steady rate; when the transaction of each had returned.
    pub(crate) async fn trickle(&self, numbers: Range<usize>, every: Duration) -> Vec<(usize, Instant)> {
        let (begun, first) = (Due::now(), numbers.start);
        let acting = (0..self.seats.len()).map(|at| {
            let numbers = self.share(at, numbers.clone());
            async move {
                let mut committed = Vec::new();
                for number in numbers {
                    let place = u32::try_from(number - first).unwrap();
                    sleep_until(begun + every * place).await;
                    self.act(&self.seats[at], number).await;
                    committed.push((number, Instant::now()));
                }
                committed
            }
        });
        join_all(acting).await.into_iter().flatten().collect()
    }

    /// The numbers that fall to a seat.
    fn share(&self, at: usize, numbers: Range<usize>) -> impl Iterator<Item = usize> {
        numbers.skip(at).step_by(self.seats.len())
    }

    async fn act(&self, seat: &Seat, number: usize) {
        let status = seat.next.get();
        let which = InvoiceRef { kind: UniqueNoType::Irn, text: seat.irn.clone() };
        // Refused where the database had no turn for it in 5 s; whoever is told so comes back.
        while let Err(failure) =
            self.taxpayers.set_status(seat.taxpayer, which.clone(), status, remark(number)).await
        {
            assert!(matches!(failure, TaxpayerError::Store(StoreError::Unavailable(_))), "{failure}");
            self.put_off.set(self.put_off.get() + 1);
            sleep(COME_BACK).await;
        }
        let is_approved = status == SettableStatus::Approved;
        seat.next.set(if is_approved { SettableStatus::Draft } else { SettableStatus::Approved });
    }
}

async fn seat(app: &App, taxpayer: TaxpayerId, number: usize) -> Seat {
    let draft = direct::draft(format!("D{number}"));
    let created = app.taxpayers.create(taxpayer, draft).await.unwrap();
    Seat { taxpayer, irn: created.invoice.irn.to_string(), next: Cell::new(SettableStatus::Approved) }
}

/// What an invoice needs to know of its seller.
fn profile() -> ProfileChange {
    let (city, country) = (Some("Lagos".to_owned()), Some("NG".into()));
    ProfileChange { state: city.clone(), city, country, ..ProfileChange::default() }
}

fn onboarding(integrator_id: IntegratorId, number: usize) -> Onboarding {
    Onboarding {
        integrator_id,
        name: format!("Crowd {number} Ltd"),
        email: format!("accounts{number}@bench.example"),
        tin: format!("{number:08}-0009"),
        phone: None,
        nature_of_business: None,
        service_id: format!("C{number:07}"),
        business_id: format!("33333333-3333-4333-8333-{number:012}"),
        address: "1 Marina Road".into(),
        contact: NewContact {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: format!("ada{number}@bench.example"),
            phone: None,
            // Nobody signs in here.
            password_hash: String::new(),
            must_change_password: true,
        },
        conflicts: Faults::default(),
    }
}
