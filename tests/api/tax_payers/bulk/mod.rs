//! POST /v1/tax-payers/invoices/bulk.

mod junk;

use std::collections::BTreeSet;
use std::time::Instant;

use einvoice::internals::Subscription;
use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::with;
use testkit::receiver::Receiver;
use testkit::roles::{BULK, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn invoices(count: usize) -> Vec<Value> {
    (0..count).map(|_| documents::invoice()).collect()
}

/// The events after that of the key which every taxpayer of a test begins with.
async fn events(taxpayer: &Taxpayer) -> Vec<Value> {
    taxpayer.events().await.split_off(1)
}

/// How many of a batch were created, were there, failed.
async fn counts(taxpayer: &Taxpayer, answer: &Answer) -> [i64; 3] {
    let batch = taxpayer.created_batch(answer).await;
    ["created", "duplicates", "failed"].map(|name| batch[name].as_i64().unwrap())
}

#[each_database]
async fn a_batch_is_answered_with_its_number_and_how_many_were_created(world: &World) {
    let taxpayer = world.taxpayer().await;
    let sent = invoices(3);
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let batch_no = answer.data()["batch_no"].as_str().unwrap();
    assert_eq!(
        answer.body,
        json!({
            "success": true, "message": "Invoices created successfully",
            "data": { "batch_no": batch_no, "created": 3 },
        })
    );
    assert_eq!(
        answer.header("location"),
        format!("/v1/tax-payers/invoices/batches/{batch_no}")
    );
    assert_eq!(answer.warnings(), "");
    let listed = taxpayer
        .list_invoices(&format!("?batch_no={batch_no}"))
        .await
        .expect_status(200);
    assert_eq!(listed.data()["total"], json!(3));
    let listed = listed.data()["data"].as_array().unwrap().clone();
    let numbers: Vec<_> = listed
        .iter()
        .rev()
        .map(|invoice| &invoice["invoice_no"])
        .collect();
    assert_eq!(
        numbers,
        sent.iter()
            .map(|invoice| &invoice["invoice_no"])
            .collect::<Vec<_>>()
    );
    for invoice in &listed {
        assert_eq!(taxpayer.reread(invoice).await, *invoice);
    }
}

#[each_database]
async fn an_invoice_of_a_batch_reads_as_one_that_was_created_alone(world: &World) {
    let taxpayer = world.taxpayer().await;
    let alone = taxpayer.invoice(&documents::invoice()).await;
    let answer = taxpayer.create_batch(&invoices(1)).await.expect_status(201);
    let id = taxpayer.created_batch(&answer).await["items"][0]["id"].clone();
    let together = taxpayer
        .get_invoice(&id)
        .await
        .expect_status(200)
        .data()
        .clone();
    let own = [
        "id",
        "irn",
        "invoice_no",
        "external_invoice_no",
        "created_at",
        "updated_at",
    ];
    for (name, value) in alone.as_object().unwrap() {
        if name == "authority_data" {
            assert_eq!(together[name]["status"], value["status"]);
        } else if !own.contains(&name.as_str()) {
            assert_eq!(together[name], *value, "{name}");
        }
    }
    assert_eq!(
        together["irn"],
        json!(documents::irn(
            &taxpayer,
            together["invoice_no"].as_str().unwrap()
        ))
    );
}

#[on_sqlite]
async fn missing_or_empty_invoices_are_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer
        .send("POST", BULK, &json!({}))
        .await
        .expect_faults(&["invoices"]);
    taxpayer
        .send("POST", BULK, &json!({ "invoices": [] }))
        .await
        .expect_faults(&["invoices"]);
    taxpayer
        .send("POST", BULK, &json!([]))
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    taxpayer
        .send_text("POST", BULK, "{")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    assert_eq!(events(&taxpayer).await, [] as [Value; 0]);
}

#[on_sqlite]
async fn a_batch_has_a_thousand_invoices_at_most(world: &World) {
    let taxpayer = world.taxpayer().await;
    let answer = taxpayer
        .create_batch(&vec![Value::Null; 1_000])
        .await
        .expect_status(201);
    assert_eq!(
        (&answer.data()["created"], counts(&taxpayer, &answer).await),
        (&json!(0), [0, 0, 1_000])
    );
    let answer = taxpayer.create_batch(&vec![Value::Null; 1_001]).await;
    let answer = answer.expect_refusal(422, "BATCH_TOO_LARGE");
    assert_eq!(answer.faulty_paths(), ["invoices"]);
}

#[on_sqlite]
async fn a_body_may_be_larger_here_than_elsewhere(world: &World) {
    let taxpayer = world.taxpayer().await;
    let padded = |bytes: usize| {
        let text = json!({ "invoices": [documents::invoice()] }).to_string();
        format!("{text}{}", " ".repeat(bytes - text.len()))
    };
    let limit = 10 * 1024 * 1024;
    taxpayer
        .send_text("POST", BULK, padded(limit))
        .await
        .expect_status(201);
    let answer = taxpayer.send_text("POST", BULK, padded(limit + 1)).await;
    answer.expect_refusal(413, "PAYLOAD_TOO_LARGE");
}

#[each_database]
async fn a_thousand_invoices_are_created_in_one_request(world: &World) {
    let taxpayer = world.taxpayer().await;
    let sent = invoices(1_000);
    let start = Instant::now();
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    eprintln!(
        "1,000 invoices in one request: {} ms",
        start.elapsed().as_millis()
    );
    assert_eq!(answer.data()["created"], json!(1_000));
    let start = Instant::now();
    let again = taxpayer.create_batch(&sent).await.expect_status(201);
    eprintln!("the same 1,000 again: {} ms", start.elapsed().as_millis());
    assert_eq!(
        (again.message(), &again.data()["created"]),
        ("Invoices created successfully", &json!(0))
    );
    assert_ne!(
        again.data()["batch_no"],
        answer.data()["batch_no"],
        "nothing new is a batch all the same"
    );
    assert_eq!(counts(&taxpayer, &again).await, [0, 1_000, 0]);
    let path = format!(
        "?per_page=100&batch_no={}",
        answer.data()["batch_no"].as_str().unwrap()
    );
    assert_eq!(
        taxpayer.list_invoices(&path).await.data()["total"],
        json!(1_000)
    );
    let first = taxpayer
        .get("/v1/tax-payers/events?limit=1000")
        .await
        .expect_status(200);
    assert_eq!(
        (&first.data()["next_after"], &first.data()["has_more"]),
        (&json!(1_000), &json!(true)),
        "a thousand events, and that of each batch"
    );
}

#[each_database]
async fn a_failing_invoice_fails_alone(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut sent = invoices(4);
    sent[1] = with(&sent[1], "currency", json!("XXX"));
    sent[2] = json!("no invoice");
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    assert_eq!(answer.data()["created"], json!(2));
    let batch = taxpayer.created_batch(&answer).await;
    let outcomes: Vec<_> = batch["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["outcome"])
        .collect();
    assert_eq!(outcomes, ["created", "failed", "failed", "created"]);
    let repaired = with(&sent[1], "currency", json!("NGN"));
    let answer = taxpayer.create_batch(&[repaired]).await.expect_status(201);
    assert_eq!(
        answer.data()["created"],
        json!(1),
        "a number that failed is free"
    );
}

#[each_database]
async fn existing_numbers_and_repeats_are_skipped_and_not_counted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let old = documents::invoice();
    let existing = taxpayer.invoice(&old).await;
    let new = documents::invoice();
    let other = with(&new, "invoice_lines.0.quantity", json!(9));
    let sent = [old.clone(), new.clone(), other, new.clone(), old];
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    assert_eq!(answer.data()["created"], json!(1));
    let batch = taxpayer.created_batch(&answer).await;
    assert_eq!(
        (&batch["created"], &batch["duplicates"], &batch["failed"]),
        (&json!(1), &json!(4), &json!(0))
    );
    let told = "1 of the invoices exist with other contents";
    assert!(answer.warnings().contains(told), "{}", answer.warnings());
    let items = batch["items"].as_array().unwrap();
    let contents: Vec<_> = items
        .iter()
        .map(|item| item["duplicate"].as_str())
        .collect();
    let same = Some("identical");
    assert_eq!(contents, [same, None, Some("different"), same, same]);
    let made = &items[1];
    assert_eq!(
        (&items[0]["id"], &items[0]["irn"]),
        (&existing["id"], &existing["irn"])
    );
    for at in [2, 3] {
        assert_eq!(
            (&items[at]["id"], &items[at]["irn"]),
            (&made["id"], &made["irn"])
        );
    }
    let stored = taxpayer.get_invoice(&made["id"]).await;
    assert_eq!(
        stored.data()["invoice_lines"][0]["quantity"],
        json!(2),
        "the first one stays"
    );
    let batch_no = answer.data()["batch_no"].as_str().unwrap();
    let listed = taxpayer
        .list_invoices(&format!("?batch_no={batch_no}"))
        .await;
    assert_eq!(
        listed.data()["total"],
        json!(1),
        "what existed before is of no batch"
    );
}

#[each_database]
async fn each_invoice_is_an_event_and_the_batch_is_the_last(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut sent = invoices(3);
    sent.push(sent[0].clone());
    sent.push(json!(null));
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let events = events(&taxpayer).await;
    let names: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let created = "invoice.created";
    assert_eq!(
        names,
        [created, created, created, "invoice.batch-completed"]
    );
    for (event, invoice) in events.iter().zip(&sent).take(3) {
        assert_eq!(
            event["data"]["invoice"]["invoice_no"],
            invoice["invoice_no"]
        );
    }
    assert_eq!(events[3]["irn"], Value::Null);
    assert_eq!(
        events[3]["data"],
        json!({ "batch_no": answer.data()["batch_no"], "created": 3, "duplicates": 1, "failed": 1 })
    );
}

#[each_database]
async fn a_batch_is_notified_once(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = world.taxpayer().await;
    let wanted = ["invoice.batch-completed"];
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &wanted)
        .await
        .expect_status(200);
    let answer = taxpayer.create_batch(&invoices(5)).await.expect_status(201);
    let notices = receiver.wait_for(1).await;
    assert_eq!(notices[0].body()["type"], json!("invoice.batch-completed"));
    assert_eq!(
        notices[0].body()["data"]["batch_no"],
        answer.data()["batch_no"]
    );
}

#[each_database]
async fn customers_of_a_batch_are_matched_among_themselves(world: &World) {
    let taxpayer = world.taxpayer().await;
    let named = |no: &str, tin: &str, name: &str| {
        let body = with(&documents::invoice(), "customer.no", json!(no));
        with(
            &with(&body, "customer.tin", json!(tin)),
            "customer.name",
            json!(name),
        )
    };
    let sent = [
        named("C-1", "T-1", "First"),
        named("C-1", "T-2", "Second"),
        named("C-2", "T-1", "Third"),
    ];
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let batch = taxpayer.created_batch(&answer).await;
    for item in batch["items"].as_array().unwrap() {
        let invoice = taxpayer.get_invoice(&item["id"]).await.expect_status(200);
        assert_eq!(
            invoice.data()["customer"]["name"],
            json!("First"),
            "{}",
            invoice.text
        );
    }
}

#[each_database]
async fn of_concurrent_batches_with_the_same_numbers_each_is_created_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let sent = invoices(20);
    let singles = sent[..5].iter().map(|body| taxpayer.create_invoice(body));
    let batches = (0..6).map(|_| taxpayer.create_batch(&sent));
    let (singles, batches) = join(join_all(singles), join_all(batches)).await;
    let single = singles.iter().filter(|answer| answer.status == 201).count();
    let mut created = i64::try_from(single).unwrap();
    let mut ids = BTreeSet::new();
    for answer in batches {
        let answer = answer.expect_status(201);
        created += answer.data()["created"].as_i64().unwrap();
        let batch = taxpayer.created_batch(&answer).await;
        ids.extend(
            batch["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["id"].as_i64().unwrap()),
        );
    }
    assert_eq!((created, ids.len()), (20, 20));
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(20));
    let sequences: Vec<_> = events(&taxpayer)
        .await
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(sequences, (2..=1 + 20 + 6).collect::<Vec<_>>());
}

#[on_sqlite]
async fn what_is_odd_but_accepted_is_named_with_its_place(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut sent = invoices(3);
    sent[1] = with(&sent[1], "colour", json!("red"));
    sent[2] = with(&sent[2], "due_date", json!("2026-01-01"));
    let body = json!({ "invoices": sent, "shade": 1 });
    let answer = taxpayer.send("POST", BULK, &body).await.expect_status(201);
    assert_eq!(
        answer.warnings(),
        "invoices.1: unknown field: colour\ninvoices.2: due_date is before invoice_date\nunknown field: shade"
    );
}

#[on_sqlite]
async fn the_gates_of_a_create_stand_before_a_batch(world: &World) {
    let newcomer = world.newcomer().await;
    for sent in [invoices(1), vec![], vec![json!(1)]] {
        let answer = newcomer
            .create_batch(&sent)
            .await
            .expect_refusal(403, "PROFILE_INCOMPLETE");
        assert_eq!(answer.faulty_paths(), ["city", "country", "state"]);
    }
    let taxpayer = world.taxpayer().await;
    world.set_subscription(taxpayer.id, Subscription::Inactive);
    for sent in [invoices(1), vec![], vec![json!(1)]] {
        taxpayer
            .create_batch(&sent)
            .await
            .expect_refusal(403, "SUBSCRIPTION_INACTIVE");
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
    assert_eq!(events(&taxpayer).await, [] as [Value; 0]);
}
