//! Tests of the taxpayer actor on real databases.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::ExposeSecret;
use serde_json::json;
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{Clock, SharedClock, SystemClock};

use super::TaxpayerDeps;
use super::commands::{
    ChangeProfile, CreateInvoice, Duplicate, Onboard, OpenRun, Pay, RotateSecret, SetStatus,
    SetSubscription, SetWebhook,
};
use super::envelope::OnceClaim;
use super::handle::{TaxpayerError, TaxpayerHandle};
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::panic_orders::PanicOrders;
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::domain::events::delivery::ScheduleChange;
use crate::domain::events::event::LogHead;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice, Line};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::{
    Category, DeclaredPaymentStatus, SettableStatus, Subscription, UniqueNoType,
};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::party::{Address, CustomerDetails, NewContact, ProfileChange};
use crate::domain::payment::{PaymentChange, PaymentUpdate};
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::pipeline::{RunPayload, RunRequest};
use crate::store::events;
use crate::store::idempotency;
use crate::store::testing::{TestStore, stores};
use crate::store::webhooks::{self, LoadedEndpoint};
use crate::webhook::SigningSecret;

pub(super) struct TestTaxpayers {
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) test: TestStore,
    pub(super) tree: Tree,
    arbiters: Arc<Arbiters>,
}

pub(super) const ID: TaxpayerId = TaxpayerId(1);
pub(super) const BY: Actor = Actor::Integrator(IntegratorId(1));

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
            panic_orders: PanicOrders::default(),
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
            log.iter().all(|event| head.accept(event)),
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
    let (url, events) = (
        "https://a.example/".to_owned(),
        vec!["invoice.created".to_owned()],
    );
    SetWebhook {
        url,
        enabled_events: Some(events),
        retry_schedule: ScheduleChange::Keep,
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
        reference: None,
        remark: "part".into(),
    }
}

#[actix_rt::test]
async fn concurrent_creates_of_one_invoice_create_it_once_and_return_it_to_all() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let created =
            join_all((0..64).map(|_| app.taxpayers.send(ID, CreateInvoice(draft("INV-1", 100)))))
                .await;
        let created: Vec<_> = created.into_iter().map(Result::unwrap).collect();
        assert_eq!(
            created.iter().filter(|one| one.duplicate.is_none()).count(),
            1
        );
        assert_eq!(
            created
                .iter()
                .filter(|one| one.duplicate == Some(Duplicate::Identical))
                .count(),
            63
        );
        assert!(
            created
                .iter()
                .all(|one| one.invoice.id == created[0].invoice.id)
        );
        let other = app
            .taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 7)))
            .await
            .unwrap();
        assert_eq!(other.duplicate, Some(Duplicate::Different));
        assert_eq!(app.verify_log().await, 1);
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrent_partial_payments_are_accepted_up_to_the_payable_amount() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        app.approve("INV-1").await;
        let paid = join_all((0..500).map(|_| app.taxpayers.send(ID, Pay(part("INV-1", 1))))).await;
        let accepted: Vec<_> = paid.iter().filter_map(|one| one.as_ref().ok()).collect();
        assert_eq!(accepted.len(), 100);
        assert!(
            paid.iter()
                .filter_map(|one| one.as_ref().err())
                .all(|failure| matches!(
                    failure,
                    TaxpayerError::Refused(Refusal::PaymentExceedsPayable(_))
                ))
        );
        let most = accepted.iter().map(|invoice| invoice.payment.paid).max();
        assert_eq!(most, Some(Amount::ONE_HUNDRED));
        assert_eq!(app.verify_log().await, 1 + 1 + 100);
        app.close().await;
    }
}

#[actix_rt::test]
async fn a_refusal_leaves_no_trace() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        let before = app.verify_log().await;
        assert!(
            app.taxpayers.send(ID, Pay(part("INV-1", 1))).await.is_err(),
            "not approved"
        );
        assert!(
            app.taxpayers.send(ID, Pay(part("NONE", 1))).await.is_err(),
            "not there"
        );
        app.taxpayers
            .send(
                ID,
                SetSubscription {
                    to: Subscription::Inactive,
                    by: BY,
                },
            )
            .await
            .unwrap();
        assert!(
            app.taxpayers
                .send(ID, CreateInvoice(draft("INV-2", 100)))
                .await
                .is_err(),
            "no subscription"
        );
        assert_eq!(app.verify_log().await, before);
        app.close().await;
    }
}

#[actix_rt::test]
async fn values_that_another_taxpayer_has_are_refused_field_by_field() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let Err(TaxpayerError::Refused(Refusal::Invalid(faults))) =
            app.taxpayers.send(TaxpayerId(2), onboarding("a")).await
        else {
            panic!("the duplicate was onboarded")
        };
        let fields: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            fields,
            [
                "email",
                "tin_no",
                "authority_service_id",
                "authority_business_id",
                "contact_person.email"
            ]
        );
        app.taxpayers
            .send(TaxpayerId(2), onboarding("b"))
            .await
            .unwrap();
        app.close().await;
    }
}

pub(super) fn submission(irn: &str, note: &str) -> RunRequest {
    let document = json!({ "irn": irn, "note": note, "amount": 1 });
    RunRequest {
        irn: Irn::parse(irn).unwrap(),
        payload: RunPayload::Submit(Box::new(AuthorityDocument::from_json(document))),
    }
}

#[actix_rt::test]
async fn two_spellings_of_one_irn_share_a_run_with_the_spelling_of_the_invoice() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let invoice = app
            .taxpayers
            .send(ID, CreateInvoice(draft("INV1", 100)))
            .await
            .unwrap()
            .invoice;
        let irn = invoice.irn.as_str();
        let lower = app
            .taxpayers
            .send(
                ID,
                OpenRun(submission(&irn.to_lowercase().replace("inv", "INV"), "a")),
            )
            .await;
        let lower = lower.unwrap();
        assert_eq!(
            (lower.irn.as_str(), &lower.document()["irn"]),
            (irn, &json!(irn))
        );
        let upper = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        assert_eq!((upper.id, &upper.digest), (lower.id, &lower.digest));
        app.close().await;
    }
}

#[actix_rt::test]
async fn new_content_replaces_content_that_is_not_signed_yet() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "RELAYED-00000061-20260131";
        let first = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        let second = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "b")))
            .await
            .unwrap();
        assert_eq!(first.id, second.id);
        assert_ne!(first.digest, second.digest);
        assert_eq!(second.document()["note"], "b");
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrent_replacements_of_content_make_the_run_due_once() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "TWINS-00000061-20260131";
        let notes: Vec<_> = (0..16).map(|n| n.to_string()).collect();
        let runs = notes
            .iter()
            .map(|note| app.taxpayers.send(ID, OpenRun(submission(irn, note))));
        let ids: Vec<_> = join_all(runs)
            .await
            .into_iter()
            .map(|run| run.unwrap().id)
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
        app.close().await;
    }
}

#[actix_rt::test]
async fn secrets_replaced_within_a_day_still_sign() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let secret = |n: u8| SigningSecret::generate(&mut StdRng::from_seed([n; 32]));
        app.taxpayers.send(ID, webhook()).await.unwrap();
        for n in [1, 2, 3] {
            app.taxpayers
                .send(
                    ID,
                    RotateSecret {
                        secret: secret(n),
                        by: BY,
                    },
                )
                .await
                .unwrap();
        }
        let recipient = webhooks::recipient(&app.test.store, ID, SystemClock.now())
            .await
            .unwrap();
        let secrets = recipient.unwrap().secrets;
        let expected = [3, 2, 1].map(|n| secret(n).text().expose_secret().to_owned());
        assert_eq!(secrets[..3], expected);
        assert_eq!(
            secrets.len(),
            4,
            "the first one, generated with the endpoint, signs too"
        );
        let later = SystemClock
            .now()
            .saturating_add(Duration::from_hours(25))
            .unwrap();
        let recipient = webhooks::recipient(&app.test.store, ID, later)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(recipient.secrets, expected[..1]);
        app.close().await;
    }
}

#[actix_rt::test]
async fn concurrently_rotated_secrets_all_sign() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers.send(ID, webhook()).await.unwrap();
        let secret = |n: u8| SigningSecret::generate_pair(&mut StdRng::from_seed([n; 32]));
        let rotations = (0..6).map(|n| {
            app.taxpayers.send(
                ID,
                RotateSecret {
                    secret: secret(n),
                    by: BY,
                },
            )
        });
        assert!(
            join_all(rotations)
                .await
                .into_iter()
                .all(|done| done.is_ok())
        );
        let found = webhooks::recipient(&app.test.store, ID, SystemClock.now())
            .await
            .unwrap();
        let LoadedEndpoint {
            endpoint, secrets, ..
        } = found.unwrap();
        for n in 0..6 {
            assert!(
                secrets.contains(&secret(n).text().expose_secret().to_owned()),
                "{n}"
            );
        }
        assert_eq!(
            endpoint.public_key,
            SigningSecret::parse(&secrets[0]).unwrap().public_key()
        );
        app.close().await;
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

/// Returns an idempotency key for a payment. The stored answer is the amount that was paid.
fn payment_key(key: &str, body: &[u8]) -> OnceClaim<Invoice> {
    let render = |invoice: &Invoice| {
        Some(StoredResponse {
            status: 200,
            headers: Vec::new(),
            body: invoice.payment.paid.to_string(),
        })
    };
    OnceClaim {
        claim: claim(key, body),
        render: Some(Arc::new(render)),
    }
}

#[actix_rt::test]
async fn the_first_of_several_commands_with_one_key_is_executed_and_its_answer_stored() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        app.taxpayers
            .send(ID, CreateInvoice(draft("INV-1", 100)))
            .await
            .unwrap();
        let pay = async |amount, key: &str| {
            let once = payment_key(key, &[amount]);
            app.taxpayers
                .send_once(ID, Pay(part("INV-1", amount.into())), Some(once))
                .await
        };
        let early = pay(10, "refused").await;
        assert!(
            matches!(early, Err(TaxpayerError::Refused(_))),
            "not approved"
        );
        app.approve("INV-1").await;
        // A refused command does not use up its idempotency key: the key works again for the next command.
        pay(10, "refused").await.unwrap();
        let paid = join_all((0..32).map(|_| pay(5, "k"))).await;
        assert_eq!(paid.iter().filter(|one| one.is_ok()).count(), 1);
        assert_eq!(
            paid.iter()
                .filter(|one| matches!(one, Err(TaxpayerError::AlreadyProcessed)))
                .count(),
            31
        );
        assert!(matches!(
            pay(7, "k").await,
            Err(TaxpayerError::AlreadyProcessed)
        ));
        let kept = idempotency::find(&app.test.store, &claim("k", &[5]), SystemClock.now()).await;
        assert_eq!(kept.unwrap().unwrap().answer.unwrap().body, "15");
        let invoice = app.taxpayers.send(ID, Pay(part("INV-1", 1))).await.unwrap();
        assert_eq!(invoice.payment.paid, 16.into());
        app.close().await;
    }
}
