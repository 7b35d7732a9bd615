//! What the answers of pages and of the API say to browsers and caches, and odd paths and texts that once failed.

use einvoice::internals::OperatorRole;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

#[on_sqlite]
async fn an_encoded_path_of_a_page_is_a_page(world: &World) {
    let visitor = Visitor::new(world);
    for (path, next) in [
        ("/console", "%2Fconsole"),
        ("/%63onsole", "%2F%2563onsole"),
        ("/%64ashboard", "%2F%2564ashboard"),
        ("/account/%70assword", "%2Faccount%2F%2570assword"),
    ] {
        visitor
            .get(path)
            .await
            .leads_to(&format!("/sign-in?next={next}"));
    }
    visitor
        .get("/console/nowhere")
        .await
        .expect(404)
        .shows("There is no such page");
}

#[on_sqlite]
async fn an_unknown_address_is_a_page_for_a_person_and_json_for_a_program(world: &World) {
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    let visitor = Visitor::new(world);
    let page = visitor.get_as("/nowhere", browser).await.expect(404);
    page.shows("There is no such page").shows("</html>");
    for (path, accept) in [
        ("/nowhere", "*/*"),
        ("/nowhere", "application/json, text/html"),
        ("/v1/nowhere", browser),
        ("/ops/nowhere", browser),
    ] {
        let answer = visitor.get_as(path, accept).await.expect(404);
        answer.shows("ROUTE_NOT_FOUND").hides("<html");
    }
}

#[each_database]
async fn an_odd_next_page_leads_to_the_first_page(world: &World) {
    for next in [
        "/console\0",
        "/console%00",
        "/console/../v1",
        "/console\u{e9}",
        "//console",
        "/console?\0",
    ] {
        let (_, email, password) = world.new_integrator_person().await;
        let visitor = Visitor::new(world);
        let fields = [
            ("email", email.as_str()),
            ("password", password.as_str()),
            ("next", next),
        ];
        visitor
            .send("/sign-in", &fields)
            .await
            .leads_to("/dashboard/taxpayers");
        visitor.get("/dashboard/taxpayers").await.expect(200);
    }
}

#[each_database]
async fn a_search_for_a_very_long_text_finds_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = Visitor::operator(world, OperatorRole::Viewer).await;
    for letters in ["x".repeat(50_000), "%25".repeat(20_000)] {
        operator
            .get(&format!("/console/taxpayers?search={letters}"))
            .await
            .expect(200);
        let integrator = world.integrator();
        integrator
            .get(&format!(
                "/v1/system-integrators/taxpayers?search={letters}"
            ))
            .await
            .expect_status(200);
        let found = taxpayer
            .get(&format!("/v1/tax-payers/invoices?q={letters}"))
            .await;
        assert!([200, 422].contains(&found.status), "{}", found.status);
    }
}

#[on_sqlite]
async fn answers_for_one_caller_are_stored_by_no_cache(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in [
        "/v1/tax-payers/invoices",
        "/v1/tax-payers/invoices/99999999",
        "/v1/tax-payers/events",
        "/v1/tax-payers/supplier-invoices",
    ] {
        let answer = taxpayer.get(path).await;
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
    }
    let refused = world.anonymous().get("/v1/tax-payers/invoices").await;
    assert_eq!(
        (refused.status, refused.headers["cache-control"].as_bytes()),
        (401, &b"no-store"[..])
    );
}

#[on_sqlite]
async fn pages_say_what_browsers_may_do_with_them(world: &World) {
    let page = world.anonymous().get("/sign-in").await;
    for (name, value) in [
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.headers[name], value);
    }
    assert!(
        page.headers["permissions-policy"]
            .to_str()
            .unwrap()
            .contains("camera=()")
    );
    assert!(
        !page.headers.contains_key("strict-transport-security"),
        "development has no TLS"
    );
}

#[on_sqlite(&[("RATE_LIMIT__PAGES_PER_S", "1")])]
async fn too_many_pages_of_a_session_are_refused_for_a_while(world: &World) {
    let visitor = Visitor::operator(world, OperatorRole::Viewer).await;
    let refused = loop {
        let seen = visitor.get("/account/password").await;
        if seen.status != 200 {
            break seen.expect(429).shows("Too many attempts");
        }
    };
    assert_eq!(refused.retry_after, Some(1));
    world.anonymous().get("/sign-in").await.expect_status(200);
    let taxpayer = world.taxpayer().await;
    taxpayer
        .get("/v1/tax-payers/invoices")
        .await
        .expect_status(200);
}
