//! GET /v1/tax-payers/events.

use serde_json::{Value, json};
use testkit::answer::stable_text;
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;
use testkit::roles::EVENTS;

use crate::support::world::World;

#[each_database]
async fn the_feed_is_gapless_and_in_order(world: &World) {
    let taxpayer = world.taxpayer().await;
    for _ in 0..3 {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        taxpayer
            .set_status(&invoice, "approved")
            .await
            .expect_status(200);
    }
    let events = taxpayer.events().await;
    let sequences: Vec<_> = events
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    let names = taxpayer.event_names().await;
    let of_invoices: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("invoice."))
        .collect();
    assert_eq!(
        of_invoices,
        ["invoice.created", "invoice.status-updated"].repeat(3)
    );
}

#[each_database]
async fn an_event_says_what_happened_to_which_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let approved = taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let events = taxpayer.events().await;
    let created = events
        .iter()
        .find(|event| event["type"] == "invoice.created")
        .unwrap();
    assert_eq!(
        (&created["irn"], &created["data"]["invoice"]),
        (&invoice["irn"], &invoice)
    );
    let updated = events
        .iter()
        .find(|event| event["type"] == "invoice.status-updated")
        .unwrap();
    assert_eq!(updated["data"]["irn"], invoice["irn"]);
    assert_eq!(updated["data"]["invoice"], *approved.data());
    assert_eq!(
        (
            &updated["data"]["previous_status"],
            &updated["data"]["status"]
        ),
        (&json!("draft"), &json!("approved"))
    );
    let unsteady = [
        "/id",
        "/sequence",
        "/timestamp",
        "/irn",
        "/actor/id",
        "/data",
        "/hash",
    ];
    insta::assert_snapshot!(stable_text(updated, &unsteady), @r#"
            {
              "actor": {
                "id": "…",
                "kind": "taxpayer-key",
                "name": null
              },
              "data": "…",
              "hash": "…",
              "id": "…",
              "irn": "…",
              "sequence": "…",
              "timestamp": "…",
              "type": "invoice.status-updated"
            }
        "#);
}

#[each_database]
async fn hashes_and_ids_are_each_of_one_event(world: &World) {
    let taxpayer = world.taxpayer().await;
    for _ in 0..3 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let events = taxpayer.events().await;
    for name in ["hash", "id"] {
        let mut all: Vec<_> = events
            .iter()
            .map(|event| event[name].as_str().unwrap())
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), events.len(), "{name}");
    }
    assert!(
        events
            .iter()
            .all(|event| event["hash"].as_str().unwrap().len() == 64)
    );
}

#[each_database]
async fn a_reader_goes_on_where_it_stopped(world: &World) {
    let taxpayer = world.taxpayer().await;
    for _ in 0..4 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let all = taxpayer.events().await;
    let mut read = Vec::<Value>::new();
    let mut after = json!(0);
    loop {
        let answer = taxpayer
            .get(&format!("{EVENTS}?after={after}&limit=2"))
            .await
            .expect_status(200);
        let page = answer.data()["events"].as_array().unwrap();
        assert!(page.len() <= 2);
        read.extend(page.iter().cloned());
        after = answer.data()["next_after"].clone();
        if answer.data()["has_more"] == json!(false) {
            break;
        }
    }
    assert_eq!(read, all);
    let end = taxpayer
        .get(&format!("{EVENTS}?after={after}"))
        .await
        .expect_status(200);
    assert_eq!(
        *end.data(),
        json!({ "events": [], "next_after": after, "has_more": false })
    );
    assert_eq!(end.warnings(), "");
}

#[each_database]
async fn a_position_beyond_the_end_of_the_log_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    let last = taxpayer.events().await.len();
    let feed = async |after: usize| {
        taxpayer
            .get(&format!("{EVENTS}?after={after}"))
            .await
            .expect_status(200)
    };
    assert_eq!(feed(0).await.warnings(), "");
    assert_eq!(feed(last).await.warnings(), "");
    let beyond = last + 1;
    let answer = feed(beyond).await;
    assert_eq!(
        answer.warnings(),
        format!(
            "after is {beyond}, but the log ends at {last}: events up to {beyond} would be skipped; \
             read again from a position that the log has"
        )
    );
    assert_eq!(
        *answer.data(),
        json!({ "events": [], "next_after": beyond, "has_more": false })
    );
}

#[each_database]
async fn an_odd_place_in_the_feed_is_refused_and_beyond_its_end_is_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer.invoice(&documents::invoice()).await;
    // Read as a default, a wrong place would send the whole log again.
    for query in ["?after=&limit=-3", "?after=99999999999999999999&limit=0"] {
        taxpayer
            .get(&format!("{EVENTS}{query}"))
            .await
            .expect_faults(&["after", "limit"]);
    }
    let beyond = taxpayer
        .get(&format!("{EVENTS}?after=99999999999"))
        .await
        .expect_status(200);
    assert_eq!(beyond.data()["events"], json!([]));
}

#[each_database]
async fn a_page_has_a_hundred_events_unless_another_number_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoices: Vec<_> = (0..999).map(|_| documents::invoice()).collect();
    taxpayer.create_batch(&invoices).await.expect_status(201);
    // With the key before them and the batch after them these are 1,001 events.
    for (query, count, has_more) in [
        ("", 100, true),
        ("?limit=1", 1, true),
        ("?limit=999", 999, true),
        ("?limit=1000", 1_000, true),
        ("?limit=1001", 1_000, true),
        ("?limit=9999999", 1_000, true),
        ("?limit=9223372036854775807", 1_000, true),
        ("?after=1", 100, true),
        ("?after=1&limit=1000", 1_000, false),
        ("?after=900", 100, true),
        ("?after=901", 100, false),
        ("?after=902", 99, false),
        ("?after=1001", 0, false),
        ("?after=9223372036854775807", 0, false),
    ] {
        let answer = taxpayer
            .get(&format!("{EVENTS}{query}"))
            .await
            .expect_status(200);
        let events = answer.data()["events"].as_array().unwrap();
        let after = query
            .split(['=', '&'])
            .nth(1)
            .filter(|_| query.contains("after"));
        let after: i64 = after.map_or(0, |text| text.parse().unwrap());
        let next_after = events
            .last()
            .map_or(after, |event| event["sequence"].as_i64().unwrap());
        assert_eq!(
            (events.len(), &answer.data()["has_more"]),
            (count, &json!(has_more)),
            "{query}"
        );
        assert_eq!(answer.data()["next_after"], json!(next_after), "{query}");
        let sequences = events
            .iter()
            .map(|event| event["sequence"].as_i64().unwrap());
        assert!(sequences.eq((after..).skip(1).take(count)), "{query}");
    }
}

#[each_database]
async fn of_large_events_fewer_come_and_none_is_left_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let line = documents::invoice()["invoice_lines"][0].clone();
    let line = with(&line, "item_name", json!("x".repeat(250)));
    let large = |_| {
        with(
            &documents::invoice(),
            "invoice_lines",
            Value::Array(vec![line.clone(); 3_000]),
        )
    };
    let invoices: Vec<_> = (0..3).map(large).collect();
    for invoice in &invoices {
        taxpayer.create_invoice(invoice).await.expect_status(201);
    }
    for _ in 0..2 {
        for invoice in &invoices {
            let which = json!({ "irn": documents::irn(&taxpayer, invoice["invoice_no"].as_str().unwrap()) });
            taxpayer
                .set_status(&which, "approved")
                .await
                .expect_status(200);
        }
    }
    let mut sequences = Vec::new();
    let mut after = 0;
    let mut pages = 0;
    loop {
        let answer = taxpayer
            .get(&format!("{EVENTS}?limit=1000&after={after}"))
            .await
            .expect_status(200);
        assert!(
            answer.text.len() < 9 * 1024 * 1024,
            "{} bytes",
            answer.text.len()
        );
        let events = answer.data()["events"].as_array().unwrap();
        sequences.extend(
            events
                .iter()
                .map(|event| event["sequence"].as_i64().unwrap()),
        );
        after = answer.data()["next_after"].as_i64().unwrap();
        pages += 1;
        if answer.data()["has_more"] == json!(false) {
            break;
        }
    }
    assert_eq!(sequences, (1..=1 + 3 * 3).collect::<Vec<_>>());
    assert!(pages > 1);
}

#[each_database]
async fn a_feed_is_of_one_taxpayer(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let before = other.events().await;
    one.invoice(&documents::invoice()).await;
    assert_eq!(other.events().await, before);
}
