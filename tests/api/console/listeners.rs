//! The paths of each listener, and the people who sign in on each: with `http.ops_bind` operators on theirs and nobody else,
//! everybody else on the public one. Without it, everybody signs in on the one there is.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole};
use reqwest::Method;
use reqwest::redirect::Policy;
use testkit::documents::number;
use testkit::on_sqlite;

use crate::support::account::code_of_app;
use crate::support::visitor::{Seen, Visitor};
use crate::support::world::World;

const APART: [(&str, &str); 2] = [
    ("HTTP__OPS_BIND", "127.0.0.1:0"),
    ("CONSOLE__SECOND_FACTOR", "always"),
];
const TOGETHER: [(&str, &str); 1] = [("CONSOLE__SECOND_FACTOR", "always")];
const REFUSED: &str = "Wrong email or password.";

async fn new_operator(world: &World) -> (String, String) {
    let email = format!("operator{}@house.example", number());
    let role = OperatorRole::Admin;
    let made =
        app::create_operator(world.settings(), email.clone(), role, KeyTerms::default()).await;
    (
        email,
        made.unwrap()["password"].as_str().unwrap().to_owned(),
    )
}

fn between(seen: &Seen, start: &str, end: &str) -> String {
    let (_, rest) = seen.html.split_once(start).unwrap();
    rest.split_once(end).unwrap().0.to_owned()
}

/// Goes the whole way of a person: password, set-up of the second factor, sign-out, password, code, pages.
async fn walk(visitor: &Visitor, email: &str, password: &str, home: &str) {
    visitor.get("/sign-in").await.expect(200);
    visitor.sign_in(email, password).await.leads_to(home);
    let shown = visitor
        .submit("/account/second-factor", &[])
        .await
        .expect(200);
    let secret = between(&shown, "<code class=\"secret\">", "</code>");
    visitor
        .submit(
            "/account/second-factor/confirm",
            &[("code", &code_of_app(&secret, 0))],
        )
        .await
        .expect(200);
    for page in [
        home,
        "/account/password",
        "/account/second-factor",
        "/account/sessions",
    ] {
        visitor.get(page).await.expect(200);
    }
    visitor.submit("/sign-out", &[]).await.leads_to("/sign-in");
    let next: String = url::form_urlencoded::byte_serialize(home.as_bytes()).collect();
    visitor
        .sign_in(email, password)
        .await
        .leads_to(&format!("/sign-in/code?next={next}"));
    let csrf = visitor.get("/sign-in/code").await.expect(200).csrf();
    let fields = [
        ("csrf", csrf.as_str()),
        ("code", &code_of_app(&secret, 1)),
        ("next", home),
    ];
    visitor.send("/sign-in/code", &fields).await.leads_to(home);
    visitor.get(home).await.expect(200);
}

async fn walk_as_operator(world: &World) {
    let (email, password) = new_operator(world).await;
    walk(
        &Visitor::on_operators_listener(world),
        &email,
        &password,
        "/console",
    )
    .await;
}

async fn walk_as_integrator(world: &World) {
    let (_, email, password) = world.new_integrator_person().await;
    walk(
        &Visitor::new(world),
        &email,
        &password,
        "/dashboard/taxpayers",
    )
    .await;
}

#[on_sqlite(&TOGETHER)]
async fn on_one_listener_everybody_signs_in(world: &World) {
    walk_as_operator(world).await;
    walk_as_integrator(world).await;
}

#[on_sqlite(&APART)]
async fn on_two_listeners_each_signs_in_on_its_own(world: &World) {
    walk_as_operator(world).await;
    walk_as_integrator(world).await;
}

/// Calls each path on each listener with the key of an operator, and expects the status of that listener.
async fn check_paths<const N: usize>(
    world: &World,
    roots: [String; N],
    paths: &[(&str, [u16; N])],
) {
    let operator = world.new_operator().await;
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(Policy::none());
    let http = http.build().unwrap();
    let status = async |method: Method, url: &str| {
        let request = http
            .request(method, url)
            .header("x-api-key", operator.key());
        request.send().await.unwrap().status().as_u16()
    };
    for (path, statuses) in paths {
        for (root, expected) in roots.iter().zip(*statuses) {
            let url = format!("{root}{path}");
            assert_eq!(status(Method::GET, &url).await, expected, "{url}");
            let refused = if expected == 404 { 404 } else { 405 };
            assert_eq!(status(Method::DELETE, &url).await, refused, "DELETE {url}");
        }
    }
}

#[on_sqlite(&APART)]
async fn operators_paths_answer_on_their_listener_alone(world: &World) {
    let paths = [
        ("/ops/audit", [404, 200]),
        ("/%6fps/audit", [404, 200]),
        ("/ops%2Faudit", [404, 404]),
        ("/metrics", [404, 200]),
        ("/%6d%65trics", [404, 200]),
        ("/health/live", [200, 200]),
        ("/openapi.json", [200, 404]),
        ("/", [307, 404]),
        ("/docs/", [200, 200]),
        ("/v1/core/commons/invoice-categories", [200, 404]),
    ];
    check_paths(world, [world.root(), world.ops_root().unwrap()], &paths).await;
}

#[on_sqlite]
async fn all_paths_answer_on_the_one_listener_there_is(world: &World) {
    let paths = [
        ("/ops/audit", [200]),
        ("/%6fps/audit", [200]),
        ("/ops%2Faudit", [404]),
        ("/metrics", [200]),
        ("/%6d%65trics", [200]),
        ("/health/live", [200]),
        ("/openapi.json", [200]),
        ("/", [307]),
        ("/docs/", [200]),
        ("/v1/core/commons/invoice-categories", [200]),
    ];
    check_paths(world, [world.root()], &paths).await;
}

#[on_sqlite(&APART)]
async fn the_other_listener_takes_no_password(world: &World) {
    let (email, password) = new_operator(world).await;
    Visitor::new(world)
        .sign_in(&email, &password)
        .await
        .expect(401)
        .shows(REFUSED);
    let (_, email, password) = world.new_integrator_person().await;
    let there = Visitor::on_operators_listener(world);
    there
        .sign_in(&email, &password)
        .await
        .expect(401)
        .shows(REFUSED);
    there.get("/dashboard/taxpayers").await.expect(404);
}

#[on_sqlite(&APART)]
async fn a_session_opens_nothing_on_the_other_listener(world: &World) {
    let (email, password) = new_operator(world).await;
    let operator = Visitor::on_operators_listener(world);
    operator
        .sign_in(&email, &password)
        .await
        .leads_to("/console");
    let elsewhere = operator.at(world.root());
    elsewhere.get("/console").await.expect(404);
    for page in [
        "/account/password",
        "/account/second-factor",
        "/sign-in/code",
    ] {
        elsewhere.get(page).await.expect(303);
        assert!(
            elsewhere.get(page).await.location.starts_with("/sign-in"),
            "{page}"
        );
    }
}
