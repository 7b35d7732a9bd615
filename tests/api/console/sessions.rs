//! The sessions of a person: the list, the end of others, and the streams that end with them.

use einvoice::internals::OperatorRole;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

const LIST: &str = "/account/sessions";
const END: &str = "/account/sessions/end";

#[each_database]
async fn a_person_sees_where_it_is_signed_in_and_signs_out_elsewhere(world: &World) {
    let (first, email, password) = Visitor::new_operator(world, OperatorRole::Viewer).await;
    let [second, third] = [Visitor::new(world), Visitor::new(world)];
    for visitor in [&second, &third] {
        visitor
            .sign_in(&email, &password)
            .await
            .leads_to("/console");
    }
    let page = second
        .get(LIST)
        .await
        .expect(200)
        .shows_all(&["127.0.0.1", "This one"]);
    assert_eq!(page.html.matches("name=\"id\"").count(), 2, "{}", page.html);
    let (_, rest) = page.html.split_once("name=\"id\" value=\"").unwrap();
    let id = rest.split('"').next().unwrap();
    second.submit(END, &[("id", id)]).await.leads_to(LIST);
    let left = async |visitors: [&Visitor; 3]| {
        let mut left = Vec::new();
        for visitor in visitors {
            left.push(visitor.get("/console").await.status == 200);
        }
        left
    };
    let open = left([&first, &second, &third]).await;
    assert_eq!(
        open.iter().filter(|is_open| **is_open).count(),
        2,
        "one of the others ended: {open:?}"
    );
    second.submit(END, &[]).await.leads_to(LIST);
    assert_eq!(left([&first, &second, &third]).await, [false, true, false]);
    second.submit(END, &[("id", "%")]).await.leads_to(LIST);
    second.get("/console").await.expect(200);
}

#[each_database]
async fn a_new_sign_in_of_a_browser_ends_its_old_session(world: &World) {
    let (visitor, email, password) = Visitor::new_operator(world, OperatorRole::Viewer).await;
    let old = visitor.copy(world);
    old.get("/console").await.expect(200);
    visitor
        .sign_in(&email, &password)
        .await
        .leads_to("/console");
    visitor.get("/console").await.expect(200);
    old.get("/console")
        .await
        .leads_to("/sign-in?next=%2Fconsole");
}

/// More events than a stream sends before it notices, and far fewer than a stream sends by itself.
const EVENTS_AFTER: usize = 10;

#[on_sqlite]
async fn a_stream_ends_soon_after_the_right_to_it(world: &World) {
    let admin = world.new_operator().await;
    for way in ["sign-out", "disable", "remove", "api-key/revoke"] {
        let (visitor, email, _) = Visitor::new_operator(world, OperatorRole::Viewer).await;
        let mut stream = visitor.open_stream("/console/live/supervision").await;
        assert!(
            stream.chunk().await.unwrap().is_some(),
            "the stream is open"
        );
        if way == "sign-out" {
            visitor.submit("/sign-out", &[]).await.leads_to("/sign-in");
        } else {
            let query = format!("SELECT id FROM operators WHERE email = '{email}'");
            let id = world.number(&query).await;
            admin
                .call("POST", &format!("/ops/operators/{id}/{way}"))
                .await
                .expect_status(200);
        }
        let mut events = 0;
        while events < EVENTS_AFTER && stream.chunk().await.unwrap().is_some() {
            events += 1;
        }
        assert!(events < EVENTS_AFTER, "{way}: the stream goes on");
    }
}

#[each_database]
async fn the_audit_says_who_signed_in_from_where_and_who_was_refused(world: &World) {
    let admin = world.new_operator().await;
    let (_, email, _) = Visitor::new_operator(world, OperatorRole::Viewer).await;
    Visitor::new(world)
        .sign_in(&email, "another password")
        .await
        .expect(401);
    let id = world
        .number(&format!("SELECT id FROM operators WHERE email = '{email}'"))
        .await;
    let listed = async || {
        let audit = admin
            .audit(&format!("?subject={id}"))
            .await
            .expect_status(200);
        let entries = audit.data()["data"].as_array().unwrap().clone();
        let is_refused = entries
            .iter()
            .any(|entry| entry["action"] == "session.refuse");
        is_refused.then_some(entries)
    };
    let entries = testkit::patience::eventually("the refused sign-in", listed).await;
    for action in ["session.sign-in", "session.refuse"] {
        let entry = entries
            .iter()
            .find(|entry| entry["action"] == action)
            .unwrap();
        assert_eq!(
            (&entry["address"], &entry["operator"]),
            (&"127.0.0.1".into(), &email.as_str().into())
        );
    }
}

#[each_database]
async fn a_form_of_an_earlier_sign_in_is_not_sent_and_its_text_is_kept(world: &World) {
    let (visitor, email, password) = Visitor::new_operator(world, OperatorRole::Viewer).await;
    let csrf = visitor.get(LIST).await.csrf();
    let again = visitor.sign_in(&email, &password).await;
    again.leads_to("/console");
    let fields = [("csrf", &*csrf), ("once", "1"), ("id", "7")];
    let refused = visitor.send(END, &fields).await.expect(403);
    refused
        .shows("you have signed in anew since")
        .shows("data-unsent");
    let absent = visitor.get("/console/nothing").await.expect(404);
    absent.hides("data-unsent");
}
