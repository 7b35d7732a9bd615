//! Tests of the taxpayer actor on real databases, and what they share: actors with one taxpayer, and sample commands.

mod customers;
mod group;
mod idempotency;
mod import_profile;
mod invoices;
mod lanes;
mod large_commands;
mod refusals;
mod runs;
mod secrets;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{Clock, SharedClock, SystemClock};

use super::TaxpayerDeps;
use super::commands::{ChangeProfile, Onboard, SetStatus, SetWebhook};
use super::handle::TaxpayerHandle;
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::events::endpoint::RetryScheduleChange;
use crate::domain::events::event::LogHead;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus, SettableStatus, UniqueNoType};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{Address, BusinessLocation, CustomerDetails, NewContact, ProfileChange};
use crate::domain::payment::{PaymentChange, PaymentUpdate};
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::pipeline::{RunPayload, RunRequest};
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::events;
use crate::store::testing::TestStore;

pub(super) const ID: TaxpayerId = TaxpayerId(1);
pub(super) const BY: Actor = Actor::Integrator(IntegratorId(1));

pub(super) struct TestTaxpayers {
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) test: TestStore,
    pub(super) tree: Tree,
    arbiters: Arc<Arbiters>,
}

impl TestTaxpayers {
    pub(super) async fn with_taxpayer(test: TestStore) -> Self {
        Self::with_wakers(test, Notifiers::default()).await
    }

    pub(super) async fn with_wakers(test: TestStore, notifiers: Notifiers) -> Self {
        let clock: SharedClock = Arc::new(SystemClock);
        let arbiters = Arc::new(Arbiters::start(2));
        let tree = Tree::new(clock.clone(), kinds::ALL);
        let deps = TaxpayerDeps {
            store: test.store.clone(),
            clock: clock.clone(),
            notifiers,
            deadlines: DeadlinePolicy::default(),
            verification: VerificationPolicy::Warn,
            scheduled_panics: ScheduledPanics::default(),
            catalog: SharedCatalog::default(),
        };
        let limits = AdmissionLimits {
            per_key_max: 1_024,
            ..AdmissionLimits::default()
        };
        let taxpayers = Arc::new(TaxpayerHandle::new(deps, &tree, &arbiters, limits));
        taxpayers.send(ID, onboarding("a")).await.unwrap();
        let place = Some("Lagos".to_owned());
        let change = ProfileChange {
            city: place.clone(),
            state: place.clone(),
            country: place,
            ..ProfileChange::default()
        };
        taxpayers
            .send(ID, ChangeProfile { change, by: BY })
            .await
            .unwrap();
        Self {
            taxpayers,
            test,
            tree,
            arbiters,
        }
    }

    async fn approve(&self, number: &str) {
        let status = SettableStatus::Approved;
        let remark = "fine".to_owned();
        self.taxpayers
            .send(
                ID,
                SetStatus {
                    invoice: by_number(number),
                    status,
                    remark,
                    submission: None,
                },
            )
            .await
            .unwrap();
    }

    pub(super) async fn verify_log(&self) -> i64 {
        let log = events::owned_by_after(&self.test.store, ID, 0, 10_000)
            .await
            .unwrap();
        let mut head = LogHead::default();
        assert!(
            log.iter().all(|event| head.advance_if_next(event)),
            "the chain is broken"
        );
        head.sequence
    }

    pub(super) async fn close(self) {
        self.arbiters.stop();
        self.arbiters.join().await;
        self.test.store.close().await;
    }
}

pub(super) fn onboarding(tag: &str) -> Onboard {
    let digit = tag.bytes().map(u32::from).sum::<u32>();
    Onboard {
        integrator_id: IntegratorId(1),
        name: format!("Company {tag}"),
        email: format!("{tag}@company.example"),
        tin: format!("TIN-{tag}"),
        phone: None,
        nature_of_business: None,
        service_id: format!("{digit:08X}"),
        business_id: format!("00000000-0000-0000-0000-{digit:012}"),
        address: "1 Road".into(),
        place: BusinessLocation::default(),
        contact: NewContact {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: format!("ada-{tag}@company.example"),
            phone: None,
            password_hash: None,
        },
        conflicts: Faults::default(),
    }
}

pub(super) fn webhook() -> SetWebhook {
    SetWebhook {
        url: "https://a.example/".to_owned(),
        enabled_events: Some(vec!["invoice.created".to_owned()]),
        retry_schedule: RetryScheduleChange::Keep,
        by: BY,
    }
}

pub(super) fn draft(number: &str, payable: i64) -> Draft {
    Draft {
        invoice_no: number.to_owned(),
        irn: None,
        category: Category::B2B,
        invoice_type: "381".into(),
        invoice_date: "2026-01-31".parse().unwrap(),
        due_date: None,
        currency: "NGN".into(),
        customer: CustomerDetails {
            no: "C-1".into(),
            name: "Customer".into(),
            email: "c@customer.example".into(),
            tin: Some("T-1".into()),
            business_description: Some("Retail trade".into()),
            address: Address::default(),
            telephone: None,
        },
        lines: vec![Line::sample()],
        payable: payable.into(),
        declared: DeclaredPaymentStatus::Pending,
        extras: serde_json::Map::new(),
        batch_no: None,
    }
}

fn by_number(number: &str) -> InvoiceRef {
    InvoiceRef {
        kind: UniqueNoType::InternalInvoiceNo,
        text: number.to_owned(),
    }
}

fn part(number: &str, amount: i64) -> PaymentUpdate {
    PaymentUpdate {
        invoice: by_number(number),
        change: PaymentChange::Partial(amount.into()),
        unused_amount: None,
        payment_date: None,
        reference: None,
        remark: "part".into(),
    }
}

pub(super) fn submission(irn: &str, note: &str) -> RunRequest {
    let document = json!({ "irn": irn, "note": note, "amount": 1 });
    RunRequest {
        irn: Irn::parse(irn).unwrap(),
        payload: RunPayload::Submit(Box::new(AuthorityDocument::from_json(document))),
    }
}

pub(super) fn claim(key: &str, body: &[u8]) -> IdempotencyClaim {
    let until = SystemClock
        .now()
        .saturating_add(Duration::from_hours(1))
        .unwrap();
    IdempotencyClaim::new(
        KeyOwner {
            kind: KeyKind::Taxpayer,
            id: 1,
        },
        key,
        &[body],
        until,
    )
}
