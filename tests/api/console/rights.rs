//! Who may see and do what under /console, and forms of other sites.

use einvoice::internals::OperatorRole;
use testkit::documents;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

const ID: &str = "00000000-0000-7000-8000-000000000000";

const PAGES: [&str; 16] = [
    "/console/runs",
    "/console/supervision",
    "/console/quarantine",
    "/console/lanes",
    "/console/breakers",
    "/console/deliveries",
    "/console/deliveries/dead-letters",
    "/console/mails",
    "/console/taxpayers",
    "/console/top-taxpayers",
    "/console/reconciliations",
    "/console/audit",
    "/console/integrators",
    "/console/keys",
    "/console/operators",
    "/console/search?q=nobody",
];

/// What all forms ask for.
const FIELDS: [(&str, &str); 4] = [
    ("taxpayer_id", "1"),
    ("day", "2026-01-15"),
    ("reason", "x"),
    ("subscription", "active"),
];

/// The forms that an operator may send, and those for admins alone.
fn forms() -> Vec<(OperatorRole, String)> {
    let acts = ["pause", "resume", "retry", "cancel"].map(|to| format!("/console/runs/{ID}/{to}"));
    let others = [
        "/console/breakers/sign/trip".to_owned(),
        "/console/breakers/sign/reset".to_owned(),
        format!("/console/deliveries/dead-letters/{ID}/replay"),
        "/console/runs/move".to_owned(),
        "/console/deliveries/dead-letters/move".to_owned(),
        "/console/deliveries/endpoints/move".to_owned(),
        "/console/quarantine/move".to_owned(),
        "/console/reconciliations".to_owned(),
        format!("/console/reconciliations/{ID}/decide"),
        format!("/console/reconciliations/{ID}/reopen"),
        format!("/console/quarantine/{ID}/replay"),
        format!("/console/quarantine/{ID}/drop"),
        "/console/taxpayers/0/pause".to_owned(),
        "/console/taxpayers/0/resume".to_owned(),
    ];
    let admin = [
        "/console/taxpayers/1/verify",
        "/console/taxpayers/1/subscription",
        "/console/operators/1/second-factor/reset",
        "/console/operators/1/invitation",
        "/console/keys/operator/1/0/revoke",
        "/console/integrators/1/second-factor/reset",
        "/console/integrators/1/invitation",
        "/console/taxpayers/1/contacts/1/second-factor/reset",
        "/console/taxpayers/1/contacts/1/invitation",
    ];
    let acts = acts
        .into_iter()
        .chain(others)
        .map(|path| (OperatorRole::Operator, path));
    acts.chain(admin.map(|path| (OperatorRole::Admin, path.to_owned())))
        .collect()
}

#[each_database]
async fn every_page_is_for_operators_who_signed_in(world: &World) {
    let nobody = Visitor::new(world);
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    for path in PAGES {
        let refused = nobody.get(path).await;
        assert_eq!(
            (refused.status, refused.location.starts_with("/sign-in")),
            (303, true),
            "{path}"
        );
        let shown = viewer.get(path).await;
        assert!([200, 303].contains(&shown.status), "{path}: {}", shown.html);
        assert!(
            !shown
                .html
                .contains("<form method=\"post\" action=\"/console"),
            "{path} has no button to act"
        );
    }
    for path in [
        "/console/live/supervision",
        "/console/runs/x",
        "/console/taxpayers/1",
    ] {
        let refused = nobody.get(path).await;
        assert_eq!(
            (refused.status, refused.location.starts_with("/sign-in")),
            (303, true),
            "{path}"
        );
    }
}

#[on_sqlite]
async fn a_form_needs_the_role_and_the_token_of_the_session(world: &World) {
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let admin = Visitor::operator(world, OperatorRole::Admin).await;
    for (least, path) in forms() {
        viewer.submit(&path, &FIELDS).await.expect(403);
        if least == OperatorRole::Admin {
            operator.submit(&path, &FIELDS).await.expect(403);
        }
        let fields: Vec<_> = FIELDS.into_iter().chain([("once", "1")]).collect();
        admin.send(&path, &fields).await.expect(403);
        let opened = admin.get(&path).await;
        if path == "/console/reconciliations" {
            opened.expect(200);
        } else {
            let above = opened.expect(303).location;
            assert!(path.starts_with(&format!("{above}/")), "{path}: {above}");
        }
    }
    let gone = [
        format!("/console/runs/{ID}/retry"),
        format!("/console/deliveries/dead-letters/{ID}/replay"),
        format!("/console/quarantine/{ID}/replay"),
        format!("/console/quarantine/{ID}/drop"),
        format!("/console/reconciliations/{ID}/decide"),
        format!("/console/reconciliations/{ID}/reopen"),
    ];
    for path in gone {
        admin.submit(&path, &[]).await.expect(404);
    }
    for path in [
        "/console/breakers/nothing/trip",
        "/console/runs/1/explode",
        "/console/taxpayers/0/verify",
        "/console/taxpayers/0/pause",
        "/console/taxpayers/0/resume",
    ] {
        admin.submit(path, &[("reason", "x")]).await.expect(404);
    }
}

#[each_database]
async fn what_does_not_exist_is_a_page_that_says_so(world: &World) {
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    for path in [
        format!("/console/runs/{ID}"),
        "/console/runs/%3Cb%3E".to_owned(),
        "/console/taxpayers/999999999".to_owned(),
        "/console/taxpayers/x".to_owned(),
        "/console/taxpayers/999999999/invoices/1".to_owned(),
        "/console/taxpayers/999999999/irn?irn=INV1-94AD90FB-20261121".to_owned(),
        format!("/console/reconciliations/{ID}"),
    ] {
        let page = viewer.get(&path).await.expect(404);
        assert!(page.html.contains("<!doctype html>"), "{path}");
        assert!(!page.html.contains("<b>"), "{path}");
    }
}

#[each_database]
async fn the_pages_of_this_process_show_its_actors_and_lanes(world: &World) {
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    world.taxpayer().await.invoice(&documents::invoice()).await;
    let view = "?by=handle-time&minutes=60&kind=taxpayer";
    let live_part =
        "data-live=\"/console/live/supervision?by=handle-time&#38;minutes=60&#38;kind=taxpayer\"";
    let supervision = [
        "Top actors",
        "Quarantine",
        "Commands in their queues",
        "href=\"/console/taxpayers/",
        live_part,
    ];
    viewer
        .get(&format!("/console/supervision{view}"))
        .await
        .shows_all(&supervision);
    let event = viewer
        .first_event(&format!("/console/live/supervision{view}"))
        .await;
    assert!(
        event.starts_with("data: ") && event.contains("Longest batch"),
        "{event}"
    );
    viewer
        .get("/console/lanes")
        .await
        .shows_all(&["A run at the authority.", "Why is it waiting?"]);
    viewer
        .get("/console/breakers")
        .await
        .shows_all(&["validate_irn", "Calls pass.", "Outages"]);
}
