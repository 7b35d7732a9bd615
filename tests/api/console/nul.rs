//! NUL in each text that a stranger or a person can bring to a page: in paths, queries, forms and cookies. PostgreSQL
//! takes no text with a NUL, so a query with one would fail.

use einvoice::internals::OperatorRole;
use testkit::answer::Answer;
use testkit::each_database;

use crate::support::account::Account;
use crate::support::visitor::{Seen, Visitor};
use crate::support::world::World;

/// The fields of queries that take any text.
const TEXTS: [&str; 20] = [
    "actor",
    "address",
    "batch_no",
    "cause",
    "cursor",
    "customer_no",
    "endpoint",
    "error",
    "error_code",
    "event",
    "host",
    "irn",
    "kind",
    "last_four",
    "name",
    "operator",
    "path",
    "q",
    "request_id",
    "subject",
];

#[track_caller]
fn assert_answered(seen: &Seen, what: &str) {
    assert!(seen.status < 500, "{what}: {} {}", seen.status, seen.html);
}

/// Opens each of these pages with a NUL in each text of its query.
async fn open_with_each_text(visitor: &Visitor, pages: &[String]) {
    for page in pages {
        for name in TEXTS {
            let path = format!("{page}?{name}=a%00b");
            assert_answered(&visitor.get(&path).await, &path);
        }
    }
}

#[each_database]
async fn a_stranger_who_sends_nul_is_answered(world: &World) {
    let stranger = Visitor::new(world);
    stranger
        .sign_in("a\0@b.example", "another\0password")
        .await
        .expect(401)
        .shows("Wrong email or password.");
    for path in [
        "/%00",
        "/console%00",
        "/sign-in?next=%00&ended=%00&%00=",
        "/sign-in/code?next=%00",
        "/sign-in/invitation/a%00b",
        "/sign-in/unsubscribe/contact-1%00/webhook%00/a%00b",
        "/verify/a%00b",
        "/shared/deliveries/a%00b",
        "/assets/%00/%00",
        "/docs/search?q=%00",
        "/docs/guides/%00/%00",
        "/docs/reference/%00",
    ] {
        assert_answered(&stranger.get(path).await, path);
    }
    let fields = [
        ("email", "a\0@b.example"),
        ("password", "\0"),
        ("next", "/console\0"),
        ("account", "\0"),
        ("new", "a few easy words\0"),
        ("again", "a few easy words\0"),
        ("code", "\0"),
        ("choice", "\0"),
        ("\0", "\0"),
    ];
    for path in [
        "/sign-in",
        "/sign-in/code",
        "/sign-in/forgotten",
        "/sign-in/invitation/a%00b",
        "/sign-in/unsubscribe/contact-1%00/webhook%00/a%00b",
        "/sign-out",
    ] {
        assert_answered(&stranger.send(path, &fields).await, path);
    }
    let cookies = "session=a%00b; notice=a%00b; device-operator=%00; device-contact=a%00b";
    let request = world.anonymous().request("GET", "/sign-in");
    let answer = Answer::to(request.header("cookie", cookies)).await;
    assert_eq!(answer.status, 200);
}

#[each_database]
async fn a_person_of_an_account_who_sends_nul_is_answered(world: &World) {
    let account = Account::new(world).await;
    let pages = [
        "/activity",
        "/batches",
        "/customers",
        "/inbox",
        "/invoices",
        "/requests",
        "/webhooks/deliveries",
    ];
    open_with_each_text(&account.owner, &pages.map(|page| account.path(page))).await;
    for rest in [
        "/batches/a%00b",
        "/batches/a%00b/files/a%00b",
        "/contacts/a%00b/role",
        "/customers/a%00b",
        "/imports/a%00b",
        "/imports/a%00b/errors.csv",
        "/inbox/a%00b",
        "/invoices/a%00b",
        "/invoices/a%00b/files/a%00b",
        "/keys/a%00b/revoke",
        "/requests/a%00b",
        "/webhooks/deliveries/a%00b",
        "/webhooks/endpoints/a%00b",
        "/webhooks/replays/a%00b",
    ] {
        let path = account.path(rest);
        assert_answered(&account.owner.get(&path).await, &path);
    }
    let all = [
        ("name", "a\0b"),
        ("filter", "q=a%00b&irn=%00&endpoint=%00&status=%00"),
        ("all", "true"),
        ("act", "submit"),
        ("reason", "a\0b"),
        ("email", "a\0@b.example"),
        ("role", "accountant"),
        ("webhook_url", "https://hook.example/\0"),
        ("seen", "\0"),
        ("before", "name=%00"),
    ];
    for rest in [
        "/batches/a%00b/undo",
        "/contacts",
        "/contacts/a%00b/role",
        "/imports/a%00b/cancel",
        "/inbox/a%00b/acknowledge",
        "/inbox/acknowledge",
        "/integration",
        "/invoices/a%00b/payment",
        "/invoices/bulk",
        "/invoices/views",
        "/invoices/views/delete",
        "/keys/a%00b/revoke",
        "/notifications",
        "/profile",
        "/requests/a%00b/send",
        "/webhooks/deliveries/bulk",
        "/webhooks/endpoints/a%00b/remove",
        "/webhooks/replays/a%00b/cancel",
    ] {
        assert_answered(&account.post(rest, &all).await, rest);
    }
}

#[each_database]
async fn an_operator_who_sends_nul_is_answered(world: &World) {
    let operator = Visitor::operator(world, OperatorRole::Admin).await;
    let pages = [
        "audit",
        "deliveries",
        "deliveries/dead-letters",
        "keys",
        "lanes",
        "mails",
        "quarantine",
        "reconciliations",
        "runs",
        "search",
        "supervision",
        "taxpayers",
    ];
    open_with_each_text(&operator, &pages.map(|page| format!("/console/{page}"))).await;
    for path in [
        "/console/reconciliations/a%00b",
        "/console/runs/a%00b",
        "/console/taxpayers/a%00b",
        "/console/taxpayers/1/invoices/a%00b",
        "/console/taxpayers/1/irn?irn=a%00b",
        "/console/taxpayers/1/history?irn=a%00b",
    ] {
        assert_answered(&operator.get(path).await, path);
    }
    let fields = [
        ("reason", "be\0cause"),
        ("filter", "name=a%00b&q=%00&error=%00"),
        ("all", "true"),
        ("act", "drop"),
        ("move", "disable"),
        ("role", "viewer\0"),
        ("taxpayer_id", "\0"),
        ("day", "\0"),
    ];
    for path in [
        "/console/breakers/a%00b/trip",
        "/console/deliveries/dead-letters/a%00b/replay",
        "/console/deliveries/dead-letters/move/preview",
        "/console/keys/taxpayer/1/a%00b/revoke",
        "/console/operators/a%00b/access",
        "/console/quarantine/a%00b/drop",
        "/console/quarantine/move/preview",
        "/console/reconciliations",
        "/console/replicas/a%00b/forget",
        "/console/runs/a%00b/pause",
        "/console/runs/move/preview",
        "/console/taxpayers/a%00b/pause",
    ] {
        assert_answered(&operator.submit(path, &fields).await, path);
    }
}
