//! A taxpayer whose documents fail at the authority, or who calls it a lot, does not slow the others down.
//!
//! The times that are printed are for people; none is asserted.

use std::time::{Duration, Instant};

use futures_util::future::join;
use futures_util::stream::{FuturesUnordered, StreamExt};
use sandbox::{LatencyOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::on_sqlite;
use testkit::patience::eventually;
use testkit::roles::{Operator, Taxpayer};

use crate::support::world::{ALONE, World};

const POISONOUS: usize = 40;
const SUBMITS: usize = 30;

/// The 50th and 99th percentile and the maximum, in milliseconds.
fn spread(mut taken: Vec<Duration>) -> [u128; 3] {
    taken.sort_unstable();
    let at = |percent: usize| taken[(taken.len() * percent / 100).min(taken.len() - 1)].as_millis();
    [at(50), at(99), at(100)]
}

/// Submits one invoice after another; each has to be signed. How long each took.
async fn submits(taxpayer: &Taxpayer) -> Vec<Duration> {
    let mut taken = Vec::new();
    for _ in 0..SUBMITS {
        let body = submission(taxpayer, &documents::invoice_no());
        let begun = Instant::now();
        taxpayer.app().submit(&body).await.expect_status(200);
        taken.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    taken
}

/// The entry of one operation among the breakers.
async fn entry(operator: &Operator, operation: &str) -> Value {
    let answer = operator.get("/ops/breakers").await.expect_status(200);
    let entries = answer.data().as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["operation"] == json!(operation))
        .unwrap()
        .clone()
}

#[on_sqlite(ALONE)]
async fn documents_of_one_taxpayer_that_always_fail_cost_another_nothing(world: &World) {
    let victim = world.taxpayer().await;
    let attacker = world.taxpayer().await;
    for _ in 0..POISONOUS {
        let no = format!("{}SBXDOWN", documents::invoice_no());
        attacker
            .app()
            .submit_async(&submission(&attacker, &no))
            .await
            .expect_status(202);
    }
    let during = spread(submits(&victim).await);
    println!("submits of another beside {POISONOUS} that fail: p50, p99, max {during:?} ms");
    let outages = world
        .new_operator()
        .await
        .get("/ops/outages")
        .await
        .expect_status(200);
    assert_eq!(
        outages.data()["total"],
        json!(0),
        "an outage is not declared for one taxpayer"
    );
    let sign = entry(&world.new_operator().await, "sign").await;
    println!("the breaker of sign: {sign}");
}

#[on_sqlite(ALONE)]
async fn documents_that_fail_while_nobody_else_calls_hold_back_nobody_else(world: &World) {
    let victim = world.taxpayer().await;
    let attacker = world.taxpayer().await;
    for _ in 0..POISONOUS {
        let no = format!("{}SBXDOWN", documents::invoice_no());
        attacker
            .app()
            .submit_async(&submission(&attacker, &no))
            .await
            .expect_status(202);
    }
    let operator = world.new_operator().await;
    let opened =
        async || (entry(&operator, "sign").await["state"] != json!("closed")).then_some(());
    eventually("the breaker of who failed", opened).await;
    println!(
        "submits beside an open breaker: {:?} ms",
        spread(submits(&victim).await)
    );
    let outages = world
        .new_operator()
        .await
        .get("/ops/outages")
        .await
        .expect_status(200);
    assert_eq!(outages.data()["total"], json!(0));
}

#[on_sqlite(ALONE)]
async fn validates_of_one_account_that_wait_let_another_through(world: &World) {
    let victim = world.taxpayer().await;
    let attacker = world.taxpayer().await;
    let operator = world.new_operator().await;
    let slow = LatencyOrder {
        fixed_ms: Some(500),
        operation: Some("validate".to_owned()),
        ..LatencyOrder::default()
    };
    world.authority.add_latency(slow).unwrap();
    let bodies: Vec<_> = (0..150)
        .map(|_| documents::validation(&attacker, &documents::invoice_no()))
        .collect();
    let app = attacker.app();
    let mut flood: FuturesUnordered<_> = bodies.iter().map(|body| app.validate(body)).collect();
    let flood = async {
        let mut ended = 0;
        while let Some(answer) = flood.next().await {
            answer.expect_status(200);
            ended += 1;
        }
        ended
    };
    let body = documents::validation(&victim, &documents::invoice_no());
    let one = async {
        let queued =
            async || (entry(&operator, "validate").await["waiting"].as_u64()? >= 75).then_some(());
        eventually("the line to be long", queued).await;
        let begun = Instant::now();
        victim.app().validate(&body).await.expect_status(200);
        println!("a validate behind 150 of another: {:?}", begun.elapsed());
    };
    let (ended, ()) = join(flood, one).await;
    assert_eq!(ended, 150);
    let calls = world
        .authority
        .calls()
        .into_iter()
        .filter(|call| call.operation == Some(Operation::Validate));
    let from_it = calls
        .skip_while(|call| call.irn.as_deref() != body["irn"].as_str())
        .count();
    assert!(
        from_it > 25,
        "{from_it} from it on: it stood behind almost all of the 150"
    );
}
