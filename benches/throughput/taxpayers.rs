//! Taxpayers whose notifications go to the sink, and the real commands that cause the events: changes of the status
//! of invoices, sent to the taxpayers' actors as a handler does.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::StoreError;
use einvoice::app::App;
use einvoice::internals::{
    Actor, BusinessLocation, ChangeProfile, CreateInvoice, Faults, IdKind, IntegratorId,
    InvoiceRef, NewContact, NewIntegrator, Onboard, ProfileChange, RetryScheduleChange, SetStatus,
    SetWebhook, SettableStatus, TaxpayerError, TaxpayerHandle, TaxpayerId, UniqueNoType,
    add_integrator,
};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use secrecy::SecretString;
use tokio::time::{Instant as Due, sleep, sleep_until};

use crate::direct;
use crate::sink::{Sink, event_remark};

/// The number of taxpayers that are created concurrently.
const AT_ONCE: usize = 64;
/// The number of commands that wait at a time. SQLite has one writer, and a command that waits for it longer than 5 s
/// is refused.
const COMMANDS_AT_ONCE: usize = 256;
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The only event that the endpoints get. The creation of an invoice is not notified.
const NOTIFIED_EVENT: &str = "invoice.status-updated";

/// An invoice and its next status.
struct BenchInvoice {
    taxpayer: TaxpayerId,
    irn: String,
    next: Cell<SettableStatus>,
}

pub(crate) struct BenchTaxpayers {
    taxpayers: Arc<TaxpayerHandle>,
    invoices: Vec<BenchInvoice>,
    pub(crate) endpoints: Range<usize>,
    /// The number of commands that the busy database refused and that were sent again.
    pub(crate) retried: Cell<usize>,
}

impl BenchTaxpayers {
    /// Creates a taxpayer for each of these numbers, with a webhook and `invoices_each` invoices.
    pub(crate) async fn create(
        app: &App,
        sink: &Sink,
        endpoints: Range<usize>,
        invoices_each: usize,
    ) -> Self {
        let integrator = create_integrator(app, endpoints.start).await;
        let making = stream::iter(endpoints.clone()).map(async |number| {
            let id = create_taxpayer(app, integrator, number).await;
            let change = SetWebhook {
                url: sink.url(number),
                enabled_events: Some(vec![NOTIFIED_EVENT.into()]),
                retry_schedule: RetryScheduleChange::Keep,
                by: Actor::CommandLine,
            };
            app.taxpayers.send(id, change).await.unwrap();
            join_all((0..invoices_each).map(|number| create_invoice(app, id, number))).await
        });
        let invoices: Vec<Vec<BenchInvoice>> = making.buffered(AT_ONCE).collect().await;
        // The list goes through all taxpayers before it takes the second invoice of the first one, so that successive
        // events concern different taxpayers.
        let mut rows: Vec<_> = invoices.into_iter().map(VecDeque::from).collect();
        let mut invoices = Vec::new();
        for _ in 0..invoices_each {
            invoices.extend(rows.iter_mut().filter_map(VecDeque::pop_front));
        }
        Self {
            taxpayers: Arc::clone(&app.taxpayers),
            invoices,
            endpoints,
            retried: Cell::new(0),
        }
    }

    /// Causes an event with each number, as fast as possible, with up to `COMMANDS_AT_ONCE` commands at a time.
    pub(crate) async fn cause_events_quickly(&self, numbers: Range<usize>) {
        let invoices = self.invoices.iter().enumerate();
        let acting =
            stream::iter(invoices).for_each_concurrent(COMMANDS_AT_ONCE, async |(at, invoice)| {
                for number in self.numbers_for_invoice(at, numbers.clone()) {
                    self.change_status(invoice, number).await;
                }
            });
        acting.await;
    }

    /// Causes an event with each number, at a steady rate. Returns the time at which the transaction of each was
    /// committed.
    pub(crate) async fn cause_events_steadily(
        &self,
        numbers: Range<usize>,
        every: Duration,
    ) -> Vec<(usize, Instant)> {
        let begun = Due::now();
        let first = numbers.start;
        let acting = (0..self.invoices.len()).map(|at| {
            let numbers = self.numbers_for_invoice(at, numbers.clone());
            async move {
                let mut committed = Vec::new();
                for number in numbers {
                    let place = u32::try_from(number - first).unwrap();
                    sleep_until(begun + every * place).await;
                    self.change_status(&self.invoices[at], number).await;
                    committed.push((number, Instant::now()));
                }
                committed
            }
        });
        join_all(acting).await.into_iter().flatten().collect()
    }

    /// Returns the numbers of the events that the invoice at index `at` causes.
    fn numbers_for_invoice(&self, at: usize, numbers: Range<usize>) -> impl Iterator<Item = usize> {
        numbers.skip(at).step_by(self.invoices.len())
    }

    async fn change_status(&self, invoice: &BenchInvoice, number: usize) {
        let status = invoice.next.get();
        let which = InvoiceRef {
            kind: UniqueNoType::Irn,
            text: invoice.irn.clone(),
        };
        // SQLite refuses a command that has waited 5 s for its only writer. Such a command is sent again.
        while let Err(failure) = self
            .taxpayers
            .send(
                invoice.taxpayer,
                SetStatus {
                    invoice: which.clone(),
                    status,
                    remark: event_remark(number),
                    submission: None,
                },
            )
            .await
        {
            assert!(
                matches!(failure, TaxpayerError::Store(StoreError::Unavailable(_))),
                "{failure}"
            );
            self.retried.set(self.retried.get() + 1);
            sleep(RETRY_PAUSE).await;
        }
        let is_approved = status == SettableStatus::Approved;
        invoice.next.set(if is_approved {
            SettableStatus::Draft
        } else {
            SettableStatus::Approved
        });
    }
}

pub(crate) async fn create_integrator(app: &App, number: usize) -> IntegratorId {
    let name = format!("crowd{number}");
    let key = format!("sik_{number:032}");
    let email = format!("{name}@bench.example");
    let key = SecretString::from(key).into();
    let new = NewIntegrator {
        name,
        email,
        password_hash: None,
        key,
    };
    add_integrator(&app.store, &new, app.clock.now())
        .await
        .unwrap()
}

/// Creates a taxpayer with the profile that it needs to create invoices.
pub(crate) async fn create_taxpayer(
    app: &App,
    integrator: IntegratorId,
    number: usize,
) -> TaxpayerId {
    let id = TaxpayerId(app.store.ids().next(IdKind::Taxpayer).await.unwrap());
    app.taxpayers
        .send(id, onboarding(integrator, number))
        .await
        .unwrap();
    app.taxpayers
        .send(
            id,
            ChangeProfile {
                change: seller_profile(),
                by: Actor::CommandLine,
            },
        )
        .await
        .unwrap();
    id
}

async fn create_invoice(app: &App, taxpayer: TaxpayerId, number: usize) -> BenchInvoice {
    let draft = direct::sample_draft(format!("D{number}"));
    let created = app
        .taxpayers
        .send(taxpayer, CreateInvoice(draft))
        .await
        .unwrap();
    BenchInvoice {
        taxpayer,
        irn: created.invoice.irn.to_string(),
        next: Cell::new(SettableStatus::Approved),
    }
}

/// Returns the part of the seller's profile that an invoice needs.
fn seller_profile() -> ProfileChange {
    let city = Some("Lagos".to_owned());
    let country = Some("NG".into());
    ProfileChange {
        state: city.clone(),
        city,
        country,
        ..ProfileChange::default()
    }
}

fn onboarding(integrator_id: IntegratorId, number: usize) -> Onboard {
    Onboard {
        integrator_id,
        name: format!("Bench {number} Ltd"),
        email: format!("accounts{number}@bench.example"),
        tin: format!("{number:08}-0009"),
        phone: None,
        nature_of_business: None,
        service_id: format!("C{number:07}"),
        business_id: format!("33333333-3333-4333-8333-{number:012}"),
        address: "1 Marina Road".into(),
        place: BusinessLocation::default(),
        contact: NewContact {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: format!("ada{number}@bench.example"),
            phone: None,
            // Nobody signs in here.
            password_hash: None,
        },
        conflicts: Faults::default(),
    }
}
