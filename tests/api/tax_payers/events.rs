//! GET /v1/tax-payers/events.

use serde_json::{Value, json};

use crate::support::answer::stable;
use crate::support::bodies;
use crate::support::clients::EVENTS;
use crate::support::world::on_every_database;

#[test]
fn the_feed_is_gapless_and_in_order() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        for _ in 0..3 {
            let invoice = taxpayer.invoice(&bodies::invoice()).await;
            taxpayer.set_status(&invoice, "approved").await.expect_status(200);
        }
        let events = taxpayer.events().await;
        let sequences: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
        let names = taxpayer.event_names().await;
        let of_invoices: Vec<_> = names.iter().filter(|name| name.starts_with("invoice.")).collect();
        assert_eq!(of_invoices, ["invoice.created", "invoice.status-updated"].repeat(3));
    });
}

#[test]
fn an_event_says_what_happened_to_which_invoice() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let invoice = taxpayer.invoice(&bodies::invoice()).await;
        let approved = taxpayer.set_status(&invoice, "approved").await.expect_status(200);
        let events = taxpayer.events().await;
        let created = events.iter().find(|event| event["type"] == "invoice.created").unwrap();
        assert_eq!((&created["irn"], &created["data"]["invoice"]), (&invoice["irn"], &invoice));
        let updated = events.iter().find(|event| event["type"] == "invoice.status-updated").unwrap();
        assert_eq!(updated["data"]["irn"], invoice["irn"]);
        assert_eq!(updated["data"]["invoice"], *approved.data());
        assert_eq!(
            (&updated["data"]["previous_status"], &updated["data"]["status"]),
            (&json!("draft"), &json!("approved"))
        );
        let unsteady = ["/id", "/sequence", "/timestamp", "/irn", "/data", "/hash"];
        insta::assert_snapshot!(stable(updated, &unsteady), @r#"
            {
              "data": "…",
              "hash": "…",
              "id": "…",
              "irn": "…",
              "sequence": "…",
              "timestamp": "…",
              "type": "invoice.status-updated"
            }
        "#);
    });
}

#[test]
fn hashes_and_ids_are_each_of_one_event() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        for _ in 0..3 {
            taxpayer.invoice(&bodies::invoice()).await;
        }
        let events = taxpayer.events().await;
        for name in ["hash", "id"] {
            let mut all: Vec<_> = events.iter().map(|event| event[name].as_str().unwrap()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), events.len(), "{name}");
        }
        assert!(events.iter().all(|event| event["hash"].as_str().unwrap().len() == 64));
    });
}

#[test]
fn a_reader_goes_on_where_it_stopped() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        for _ in 0..4 {
            taxpayer.invoice(&bodies::invoice()).await;
        }
        let all = taxpayer.events().await;
        let (mut read, mut after) = (Vec::<Value>::new(), json!(0));
        loop {
            let answer = taxpayer.get(&format!("{EVENTS}?after={after}&limit=2")).await.expect_status(200);
            let page = answer.data()["events"].as_array().unwrap();
            assert!(page.len() <= 2);
            read.extend(page.iter().cloned());
            after = answer.data()["next_after"].clone();
            if answer.data()["has_more"] == json!(false) {
                break;
            }
        }
        assert_eq!(read, all);
        let end = taxpayer.get(&format!("{EVENTS}?after={after}")).await.expect_status(200);
        assert_eq!(*end.data(), json!({ "events": [], "next_after": after, "has_more": false }));
    });
}

#[test]
fn an_odd_place_in_the_feed_is_refused_and_beyond_its_end_is_nothing() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        taxpayer.invoice(&bodies::invoice()).await;
        // Read as a default, a wrong place would send the whole log again.
        for query in ["?after=-1", "?after=x", "?after=", "?after=1.5", "?limit=0", "?limit=y", "?limit=-3"] {
            taxpayer.get(&format!("{EVENTS}{query}")).await.expect_refusal(422, "VALIDATION_FAILED");
        }
        let beyond = taxpayer.get(&format!("{EVENTS}?after=99999999999")).await.expect_status(200);
        assert_eq!(beyond.data()["events"], json!([]));
    });
}

#[test]
fn a_feed_is_of_one_taxpayer() {
    on_every_database(async |world| {
        let (one, other) = (world.taxpayer().await, world.taxpayer().await);
        let before = other.events().await;
        one.invoice(&bodies::invoice()).await;
        assert_eq!(other.events().await, before);
    });
}
