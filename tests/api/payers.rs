//! Limits count who pays: whatever one integrator does with ten taxpayers, another's calls are neither refused nor held
//! back. A row for each limit.

use std::future::ready;
use std::io::Write;
use std::net::TcpStream;

use futures_util::future::{LocalBoxFuture, join_all};
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, invoice_no};
use testkit::on_sqlite;
use testkit::patience::eventually;
use testkit::roles::{BULK, INVOICES, Integrator, Taxpayer};
use testkit::standstill::without_standstill;

use crate::support::world::World;

const TAXPAYERS_OF_ONE: usize = 10;

/// The integrator that uses up its limits.
struct Crowd {
    integrator: Integrator,
    taxpayers: Vec<Taxpayer>,
}

/// What the integrator did. Its requests go on while this value lives.
#[derive(Default)]
struct Pressure {
    /// The codes of what it was refused.
    refusals: Vec<String>,
    _open: Vec<TcpStream>,
}

type Press = for<'a> fn(&'a World, &'a Crowd) -> LocalBoxFuture<'a, Pressure>;

/// Each limit, what uses it up, and the code of the refusals.
const LIMITS: [(&str, Press, Option<&str>); 8] = [
    (
        "requests a second",
        |_, crowd| Box::pin(many_reads(crowd)),
        Some("RATE_LIMITED"),
    ),
    (
        "relayed calls under way",
        |world, crowd| Box::pin(slow_relays(world, crowd)),
        Some("RATE_LIMITED"),
    ),
    (
        "memory of bodies that only begin",
        |world, crowd| Box::pin(ready(heads(world, crowd))),
        None,
    ),
    (
        "turns of bulk requests",
        |_, crowd| Box::pin(bulks(crowd)),
        None,
    ),
    (
        "slots at the authority and of runs",
        |_, crowd| Box::pin(hanging_documents(crowd)),
        None,
    ),
    (
        "breaker and outage",
        |world, crowd| Box::pin(failing_documents(world, crowd)),
        None,
    ),
    (
        "taxpayers",
        |_, crowd| Box::pin(onboardings(crowd)),
        Some("TAXPAYER_LIMIT_REACHED"),
    ),
    (
        "refused creates",
        |_, crowd| Box::pin(refused_creates(crowd)),
        Some("RATE_LIMITED"),
    ),
];

#[on_sqlite(&[
    ("RATE_LIMIT__INTEGRATOR_REQUESTS_PER_S", "1"),
    ("RATE_LIMIT__INTEGRATOR_BURST", "120"),
    ("HTTP__RELAYS_PER_INTEGRATOR_MAX", "4"),
    ("HTTP__BODIES_BYTES_MAX", "16777216"),
    ("HTTP__BODIES_BYTES_PER_INTEGRATOR_MAX", "10485760"),
    ("HTTP__BODIES_BYTES_PER_ACCOUNT_MAX", "10485760"),
    ("ACCOUNTS__TAXPAYERS_PER_INTEGRATOR_MAX", "11"),
    ("RATE_LIMIT__REFUSED_CREATES_PER_MIN", "3"),
    ("PIPELINE__CONCURRENCY_MAX", "8"),
    ("AUTHORITY__MAX_CONCURRENT_CALLS", "8"),
    ("AUTHORITY__TIMEOUT_S", "10"),
])]
async fn one_integrator_uses_up_its_own_limits_and_nobody_elses(world: &World) {
    let other = other(world).await;
    served(&other, "before").await;
    for (limit, press, refusal) in LIMITS {
        without_standstill(async || {
            let crowd = crowd(world).await;
            let pressure = press(world, &crowd).await;
            served(&other, limit).await;
            let mut refusals = pressure.refusals;
            refusals.dedup();
            assert_eq!(refusals, Vec::from_iter(refusal), "{limit}");
        })
        .await;
    }
    let operator = world.new_operator().await;
    let outages = operator.get("/ops/outages").await.expect_status(200);
    assert_eq!(outages.data()["total"], json!(0), "{}", outages.text);
}

/// A taxpayer of another integrator, as it works every day.
async fn other(world: &World) -> Taxpayer {
    complete(world, &world.new_integrator().await).await
}

async fn complete(world: &World, integrator: &Integrator) -> Taxpayer {
    let taxpayer = world.newcomer_of(integrator).await;
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    integrator
        .change_profile(taxpayer.id, &profile)
        .await
        .expect_status(200);
    taxpayer
}

async fn crowd(world: &World) -> Crowd {
    let integrator = world.new_integrator().await;
    let making = (0..TAXPAYERS_OF_ONE).map(async |_| complete(world, &integrator).await);
    Crowd {
        taxpayers: join_all(making).await,
        integrator,
    }
}

/// Its create and its Submit have an answer at once, not after a retry.
async fn served(other: &Taxpayer, during: &str) {
    let created = other.create_invoice(&documents::invoice()).await;
    assert_eq!(created.status, 201, "{during}: {}", created.text);
    let submitted = other
        .app()
        .submit(&documents::submission(other, &invoice_no()))
        .await;
    assert_eq!(submitted.status, 200, "{during}: {}", submitted.text);
}

/// The codes of the answers that are refusals.
fn refusals(answers: &[Answer]) -> Vec<String> {
    answers
        .iter()
        .filter(|answer| answer.status >= 400)
        .map(|answer| answer.code().to_owned())
        .collect()
}

async fn many_reads(crowd: &Crowd) -> Pressure {
    let calls = crowd
        .taxpayers
        .iter()
        .flat_map(|taxpayer| (0..20).map(move |_| taxpayer.get(INVOICES)));
    Pressure {
        refusals: refusals(&join_all(calls).await),
        ..Pressure::default()
    }
}

async fn slow_relays(world: &World, crowd: &Crowd) -> Pressure {
    let asking = crowd.taxpayers.iter().map(|taxpayer| async move {
        let number = invoice_no();
        let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Validate);
        late.irn = Some(documents::irn(taxpayer, &number));
        late.latency_ms = Some(1_500);
        world.authority.add_fault(late).unwrap();
        taxpayer
            .app()
            .validate(&documents::validation(taxpayer, &number))
            .await
    });
    Pressure {
        refusals: refusals(&join_all(asking).await),
        ..Pressure::default()
    }
}

/// Requests that announce a large body and send one byte of it.
fn heads(world: &World, crowd: &Crowd) -> Pressure {
    let address = world.root().replace("http://", "");
    let open = |taxpayer: &Taxpayer| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let key = taxpayer.key();
        write!(
            stream,
            "POST {BULK} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: 10485760\r\n\r\n{{"
        )
        .unwrap();
        stream
    };
    let connections = crowd
        .taxpayers
        .iter()
        .flat_map(|taxpayer| [open(taxpayer), open(taxpayer)]);
    Pressure {
        _open: connections.collect(),
        ..Pressure::default()
    }
}

async fn bulks(crowd: &Crowd) -> Pressure {
    let invoices: Vec<_> = (0..50).map(|_| documents::invoice()).collect();
    let body = json!({ "invoices": invoices });
    let sending = crowd
        .taxpayers
        .iter()
        .map(|taxpayer| taxpayer.send("POST", BULK, &body));
    Pressure {
        refusals: refusals(&join_all(sending).await),
        ..Pressure::default()
    }
}

/// Documents whose signature the authority never answers.
async fn hanging_documents(crowd: &Crowd) -> Pressure {
    submit_all(crowd, "SBXHANG", 2).await;
    Pressure::default()
}

/// Documents whose signature always fails, until the integrator's own lane is closed for it.
async fn failing_documents(world: &World, crowd: &Crowd) -> Pressure {
    submit_all(crowd, "SBXDOWN", 4).await;
    let operator = world.new_operator().await;
    eventually("failures of the authority", async || {
        let breakers = operator.get("/ops/breakers").await;
        let all = breakers.data().as_array().cloned().unwrap_or_default();
        let sign: Option<Value> = all.into_iter().find(|entry| entry["operation"] == "sign");
        (sign?["state"] != "closed").then_some(())
    })
    .await;
    Pressure::default()
}

async fn submit_all(crowd: &Crowd, word: &str, each: usize) {
    for taxpayer in crowd
        .taxpayers
        .iter()
        .flat_map(|taxpayer| std::iter::repeat_n(taxpayer, each))
    {
        let body = documents::submission(taxpayer, &format!("{}{word}", invoice_no()));
        taxpayer.app().submit_async(&body).await.expect_status(202);
    }
}

async fn onboardings(crowd: &Crowd) -> Pressure {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let body = documents::taxpayer();
        answers.push(crowd.integrator.create_taxpayer(&body).await);
    }
    Pressure {
        refusals: refusals(&answers),
        ..Pressure::default()
    }
}

async fn refused_creates(crowd: &Crowd) -> Pressure {
    let mut answers = Vec::new();
    let mut body = documents::taxpayer();
    body["tin_no"] = json!(
        crowd
            .taxpayers
            .first()
            .map(|taxpayer| taxpayer.registration.tin.as_str())
    );
    for _ in 0..5 {
        answers.push(crowd.integrator.create_taxpayer(&body).await);
    }
    let refusals = refusals(&answers)
        .into_iter()
        .filter(|code| code != "VALIDATION_FAILED")
        .collect();
    Pressure {
        refusals,
        ..Pressure::default()
    }
}
