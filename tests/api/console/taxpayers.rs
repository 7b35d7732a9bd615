//! /console/taxpayers and what belongs to one: its invoices, dead letters, reconciliations, and the search.

use einvoice::internals::OperatorRole;
use serde_json::json;
use testkit::documents::{self, irn, submission};
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

#[each_database]
async fn a_taxpayer_is_found_and_shown_with_its_invoices_and_runs(world: &World) {
    let taxpayer = world.taxpayer().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let id = taxpayer.id;
    let hostile = "<img src=x onerror=alert(1)>";
    world
        .integrator()
        .change_profile(id, &json!({ "name": hostile }))
        .await
        .expect_status(200);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    let found = viewer
        .get(&format!("/console/taxpayers?q={id}"))
        .await
        .hides_all(&[hostile]);
    found.shows_all(&[&format!("href=\"/console/taxpayers/{id}\"")]);
    let page = viewer
        .get(&format!("/console/taxpayers/{id}"))
        .await
        .hides_all(&[hostile]);
    page.shows_all(&[no, "onerror", "Newest runs", "taxpayer.update-profile"]);
    let path = format!("/console/taxpayers/{id}/invoices/{}", invoice["id"]);
    let page = viewer
        .get(&path)
        .await
        .shows_all(&[no, "invoice.created", "data-check", "Lines"]);
    page.hides_all(&[hostile]);
    let other = world.taxpayer().await;
    viewer
        .get(&format!(
            "/console/taxpayers/{}/invoices/{}",
            other.id, invoice["id"]
        ))
        .await
        .expect(404);
}

#[each_database]
async fn an_irn_that_was_only_submitted_has_a_page(world: &World) {
    let taxpayer = world.taxpayer().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let irn = irn(&taxpayer, &no);
    let address = format!("/console/taxpayers/{}/irn?irn={irn}", taxpayer.id);
    viewer
        .get(&format!("/console/search?q={irn}"))
        .await
        .leads_to(&address);
    viewer
        .get(&address)
        .await
        .shows_all(&[&irn, "No invoice with this IRN is stored here"]);
}

#[each_database]
async fn the_search_leads_to_what_the_text_names(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &documents::invoice_no()))
        .await
        .expect_status(200);
    let run = operator.newest_run(&taxpayer).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let page = format!("/console/taxpayers/{}", taxpayer.id);
    let found = operator
        .get("/ops/taxpayers?per_page=100")
        .await
        .expect_status(200);
    let found = found.data()["data"].as_array().unwrap().clone();
    let own = found
        .iter()
        .find(|one| one["id"] == json!(taxpayer.id))
        .unwrap();
    for (text, expected) in [
        (run.clone(), format!("/console/runs/{run}")),
        (taxpayer.id.to_string(), page.clone()),
        (own["tin"].as_str().unwrap().to_owned(), page),
    ] {
        let text = text.replace(' ', "%20");
        viewer
            .get(&format!("/console/search?q={text}"))
            .await
            .leads_to(&expected);
    }
    let nothing = viewer.get("/console/search?q=no%20such%20thing").await;
    nothing.shows_all(&[
        "Nothing has this name or number",
        "are found only if they are UUIDs",
    ]);
    let hostile = viewer
        .get("/console/search?q=%22%3E%3Cimg%20src=x%3E")
        .await;
    hostile.expect(200).hides("<img src=x>");
}

#[each_database]
async fn the_search_finds_invoices_by_number_and_events_by_id(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let document = documents::invoice();
    let invoice = taxpayer.invoice(&document).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let page = format!(
        "/console/taxpayers/{}/invoices/{}",
        taxpayer.id, invoice["id"]
    );
    viewer
        .get(&format!("/console/search?q={no}"))
        .await
        .leads_to(&page);
    let same = other.invoice(&document).await;
    let other_page = format!("/console/taxpayers/{}/invoices/{}", other.id, same["id"]);
    viewer
        .get(&format!("/console/search?q={no}"))
        .await
        .shows_all(&[&page, &other_page]);
    viewer
        .get(&format!("/console/search?q={}+{no}", other.id))
        .await
        .leads_to(&other_page);
    let found = operator
        .get(&format!("/ops/search?q={}+{no}", taxpayer.id))
        .await
        .expect_status(200);
    let runs = format!(
        "/ops/pipeline/runs?irn={}",
        invoice["irn"].as_str().unwrap()
    );
    let title = format!("{no} of taxpayer {}", taxpayer.id);
    let expected = json!([{ "kind": "invoice", "title": title, "path": runs, "page": page }]);
    assert_eq!(*found.data(), expected);
    let feed = taxpayer
        .get("/v1/tax-payers/events")
        .await
        .expect_status(200);
    let event = feed.data()["events"][0]["id"].as_str().unwrap().to_owned();
    for text in [event.clone(), format!("{}+{event}", taxpayer.id)] {
        let found = operator
            .get(&format!("/ops/search?q={text}"))
            .await
            .expect_status(200);
        assert_eq!(
            found.data()[0]["kind"],
            json!("event"),
            "{text}: {}",
            found.text
        );
    }
    let elsewhere = operator
        .get(&format!("/ops/search?q={}+{event}", other.id))
        .await;
    assert_eq!(*elsewhere.expect_status(200).data(), json!([]));
    assert_eq!(
        *operator.get("/ops/search").await.expect_status(200).data(),
        json!([])
    );
}

#[each_database]
async fn an_admin_verifies_a_taxpayer_and_ends_its_subscription(world: &World) {
    let admin = Visitor::operator(world, OperatorRole::Admin).await;
    let body = documents::taxpayer();
    let made = world
        .integrator()
        .create_taxpayer(&body)
        .await
        .expect_status(201);
    world.settled(&made.data()["id"]).await;
    let page = format!("/console/taxpayers/{}", made.data()["id"]);
    admin
        .get(&page)
        .await
        .shows_all(&["Verify in the authority", "End the subscription"]);
    admin
        .submit(&format!("{page}/verify"), &[("reason", " ")])
        .await
        .expect(422);
    admin
        .submit(&format!("{page}/verify"), &[("reason", "papers")])
        .await
        .leads_to(&page);
    let shown = ["confirmed_by_operator", "taxpayer.verify", "papers"];
    admin
        .get(&page)
        .await
        .shows_all(&shown)
        .hides_all(&["Verify in the authority"]);
    admin
        .submit(
            &format!("{page}/subscription"),
            &[("subscription", "inactive")],
        )
        .await
        .leads_to(&page);
    admin
        .get(&page)
        .await
        .shows_all(&["Activate the subscription", "taxpayer.set-subscription"]);
    admin
        .submit(&format!("{page}/subscription"), &[("subscription", "x")])
        .await
        .expect(422);
}

#[each_database]
async fn dead_letters_are_explained_and_sent_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let receiver = Receiver::start();
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &["invoice.created"])
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(503); 4]);
    taxpayer.invoice(&documents::invoice()).await;
    let id = taxpayer.id.to_string();
    let list = format!("/console/deliveries/dead-letters?taxpayer_id={id}");
    let dead = async || {
        let page = operator.get(&list).await;
        // The list and the count are two questions, between which the letter may have died.
        let is_counted = page.html.contains("All 1 that match the filter");
        (is_counted && page.html.contains("The endpoint answered 503")).then_some(page)
    };
    eventually("a dead letter", dead).await.shows("what to do");
    let filter = format!("taxpayer_id={id}");
    let preview = "/console/deliveries/dead-letters/move/preview";
    let preview = format!("{preview}?act=replay&all=true&filter=taxpayer_id%3D{id}");
    let ids = operator.get(&preview).await.expect(200).hidden("id");
    let fields = [
        ("act", "replay"),
        ("all", "true"),
        ("filter", filter.as_str()),
        ("id", ids.as_str()),
        ("reason", "it was repaired"),
    ];
    let replayed = operator
        .submit("/console/deliveries/dead-letters/move", &fields)
        .await;
    replayed.leads_to(&list);
    receiver.wait_for(5).await;
    let none = async || {
        operator
            .get(&list)
            .await
            .html
            .contains("There is no dead letter.")
            .then_some(())
    };
    eventually("no dead letter", none).await;
    let audit = operator
        .get(&format!("/console/audit?taxpayer_id={id}"))
        .await;
    audit.shows_all(&["delivery.replay", "it was repaired"]);
}

#[each_database]
async fn a_day_is_compared_on_request(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let id = taxpayer.id.to_string();
    let start = async |day: &str| {
        let fields = [
            ("taxpayer_id", id.as_str()),
            ("day", day),
            ("reason", "a complaint"),
        ];
        operator.submit("/console/reconciliations", &fields).await
    };
    start("yesterday").await.expect(422);
    start("2999-01-01").await.expect(422);
    let queued = start("2026-01-15").await.expect(303);
    assert!(
        queued.location.starts_with("/console/reconciliations/"),
        "{}",
        queued.location
    );
    let done = async || {
        operator
            .get(&queued.location)
            .await
            .html
            .contains("Done")
            .then_some(())
    };
    eventually("a day that is compared", done).await;
    operator
        .get(&queued.location)
        .await
        .shows_all(&["2026-01-15", "No difference was found."]);
    let list = format!("/console/reconciliations?taxpayer_id={id}&day=");
    operator
        .get(&list)
        .await
        .shows_all(&["2026-01-15", "Done", "operator"]);
}

#[on_sqlite]
async fn a_refused_form_comes_back_with_what_was_typed(world: &World) {
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, &'a str);
    let taxpayer = world.taxpayer().await;
    let id = taxpayer.id.to_string();
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let pause = format!("/console/taxpayers/{id}/pause");
    let start = "/console/reconciliations";
    let long = "x".repeat(1_001);
    let asked =
        |taxpayer, day, reason| vec![("taxpayer_id", taxpayer), ("day", day), ("reason", reason)];
    // The form, what is sent, the field with the fault, and a value that comes back.
    let cases: [Case<'_>; 8] = [
        (&pause, vec![("reason", "  ")], "reason", ""),
        (&pause, vec![], "reason", ""),
        (&pause, vec![("reason", long.as_str())], "reason", &long),
        (
            start,
            asked("999999999", "2026-01-15", "a complaint"),
            "taxpayer_id",
            "a complaint",
        ),
        (start, asked("x", "2026-01-15", ""), "taxpayer_id", "x"),
        (start, asked(id.as_str(), "yesterday", "why"), "day", "why"),
        (
            start,
            asked(id.as_str(), "2999-01-01", ""),
            "day",
            "2999-01-01",
        ),
        (
            start,
            asked(id.as_str(), "2026-01-15", long.as_str()),
            "reason",
            &id,
        ),
    ];
    for (path, fields, field, kept) in cases {
        let page = operator.submit(path, &fields).await.expect(422);
        page.shows(&format!("aria-describedby=\"fault-{field}\""))
            .shows(&format!("id=\"fault-{field}\""))
            .shows(&format!("value=\"{kept}\""));
    }
    let api = world.new_operator().await;
    let compared = api.reconcile(taxpayer.id, "2026-01-15").await;
    let page = format!("{start}/{}", compared.data()["id"].as_str().unwrap());
    let nothing = operator.submit(&format!("{page}/decide"), &[]).await;
    nothing.expect(422).shows("Nothing is chosen");
}

#[each_database]
async fn an_invoice_is_seen_as_it_was_after_each_event(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let operator = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = json!({
        "unique_no_type": "PORTAL_ID", "unique_no": invoice["id"].to_string(), "status": "approved", "remark": "fine",
    });
    taxpayer
        .send("PATCH", "/v1/tax-payers/invoices/update-status", &body)
        .await
        .expect_status(200);
    let irn = invoice["irn"].as_str().unwrap();
    let now = operator
        .get(&format!("/ops/invoices/{irn}"))
        .await
        .expect_status(200);
    assert_eq!(now.data()["invoice"]["status"], json!("approved"));
    assert_eq!(now.data()["later"], json!(null));
    let changed = now.data()["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["field"]);
    assert!(
        changed.clone().any(|field| field == "status"),
        "{}",
        now.text
    );
    let first = now.data()["earlier"].as_i64().unwrap();
    let then = operator
        .get(&format!("/ops/invoices/{irn}?as_of={first}"))
        .await
        .expect_status(200);
    assert_eq!(then.data()["invoice"]["status"], json!("draft"));
    assert_eq!(
        (&then.data()["changes"], &then.data()["earlier"]),
        (&json!([]), &json!(null))
    );
    if first > 1 {
        let before = format!("/ops/invoices/{irn}?as_of={}", first - 1);
        operator
            .get(&before)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let page = format!("/console/taxpayers/{}/history?irn={irn}", taxpayer.id);
    let shown =
        viewer
            .get(&page)
            .await
            .shows_all(&["What this event changed", "draft", "approved"]);
    shown
        .shows("This is the last event")
        .shows(&format!("&#38;as_of={first}"));
    let shown = viewer.get(&format!("{page}&as_of={first}")).await;
    shown
        .shows_all(&["No field changed", "This is the first event"])
        .hides("approved");
    viewer
        .get(&page.replace(&taxpayer.id.to_string(), &other.id.to_string()))
        .await
        .expect(404);
    viewer
        .get(&format!(
            "/console/taxpayers/{}/invoices/{}",
            taxpayer.id, invoice["id"]
        ))
        .await
        .shows(&format!(
            "/console/taxpayers/{}/history?irn={irn}",
            taxpayer.id
        ));
}

#[each_database]
async fn contact_data_is_hidden_from_operators_until_one_asks_and_the_audit_keeps_who(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let key = world.new_operator().await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let body = documents::invoice();
    let email = body["customer"]["email"].as_str().unwrap().to_owned();
    let invoice = taxpayer.invoice(&body).await;
    let irn = invoice["irn"].as_str().unwrap();
    let json = key
        .get(&format!("/ops/invoices/{irn}"))
        .await
        .expect_status(200);
    assert!(
        json.text.contains("(hidden)") && !json.text.contains(&email),
        "{}",
        json.text
    );
    let page = format!("/console/taxpayers/{}/history", taxpayer.id);
    for visitor in [&viewer, &operator] {
        visitor
            .get(&format!("{page}?irn={irn}"))
            .await
            .expect(200)
            .shows("(hidden)")
            .hides(&email);
    }
    let ask = format!("{page}/contact-data");
    let sequence = json.data()["sequence"].to_string();
    let with_reason = |reason| {
        [
            ("irn", irn),
            ("as_of", sequence.as_str()),
            ("reason", reason),
        ]
    };
    viewer
        .submit(&ask, &with_reason("curious"))
        .await
        .expect(403)
        .hides(&email);
    operator
        .submit(&ask, &with_reason(""))
        .await
        .expect(422)
        .hides(&email);
    operator
        .submit(&ask, &with_reason("asked by the buyer"))
        .await
        .expect(200)
        .shows(&email);
    let audit = key
        .audit(&format!("?subject={irn}"))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(audit.data()["total"], json!(1), "{}", audit.text);
    assert_eq!(entry["action"], json!("invoice.show-contact-data"));
    assert_eq!(
        (&entry["reason"], &entry["taxpayer_id"]),
        (&json!("asked by the buyer"), &json!(taxpayer.id))
    );
}
