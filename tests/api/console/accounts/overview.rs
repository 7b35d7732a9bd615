//! The first page of an account and the one of an integrator: what is to be done, and how it fares.

use serde_json::json;
use testkit::documents;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, post_seen, signed_in};
use crate::support::world::World;

#[each_database]
async fn a_new_account_is_led_to_its_first_invoice(world: &World) {
    let account = Account::newcomer(world, &world.integrator()).await;
    let page = account.page("").await;
    assert_shows(
        &page,
        &[
            "Next steps",
            "The business profile is not complete.",
            "There is no invoice yet.",
        ],
    );
    assert!(!page.contains("Needs you"), "{page}");
    let profile = [("city", "Lagos"), ("state", "Lagos"), ("country", "NG")];
    account.post("/profile", &profile).await.expect(303);
    account.taxpayer.invoice(&documents::invoice()).await;
    let page = account.page("").await;
    assert!(
        !page.contains("The business profile is not complete."),
        "{page}"
    );
    assert_shows(
        &page,
        &[
            "/invoices?status=draft&#38;authority_status=PENDING\">1<",
            "</span> draft past the legal deadline",
        ],
    );
    let refused = account.refused_invoice().await;
    let page = account.page("").await;
    assert_shows(
        &page,
        &[
            "Submission",
            "Rejected",
            "Correct and send again",
            "missed by",
            refused["invoice_no"].as_str().unwrap(),
        ],
    );
}

#[each_database]
async fn an_integrator_sees_the_usage_of_its_taxpayers(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let account = Account::newcomer(world, &integrator).await;
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    integrator
        .change_profile(account.taxpayer.id, &profile)
        .await
        .expect_status(200);
    account.taxpayer.invoice(&documents::invoice()).await;
    account.taxpayer.invoice(&documents::invoice()).await;
    let person = signed_in(world, &email, &password).await;
    let page = person.get("/dashboard/taxpayers").await.expect(200).html;
    assert_shows(
        &page,
        &[
            &account.path(""),
            "Complete",
            "data-label=\"This month\">2<",
        ],
    );
    let page = person
        .get("/dashboard/taxpayers?q=nobody%22%3E")
        .await
        .expect(200)
        .html;
    assert_shows(
        &page,
        &["No taxpayer matches.", "value=\"nobody&#34;&#62;\""],
    );
    let page = person
        .get(&account.path("/invoices"))
        .await
        .expect(200)
        .html;
    assert_shows(&page, &["All taxpayers", "of which paid"]);
    person.get(&account.path("/keys")).await.expect(200);
}

#[each_database]
async fn the_overview_changes_by_itself_for_its_own_people_only(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let refused = account.refused_invoice().await;
    let path = account.path("/live/overview");
    let event = account.owner.first_event(&path).await;
    assert!(event.starts_with("data: "), "{event}");
    assert_shows(
        &event,
        &[refused["invoice_no"].as_str().unwrap(), "Needs you"],
    );
    other.owner.get(&path).await.expect(404);
}

/// Says where an invoice with this workflow status and this status at the authority counts: in a state of the overview,
/// whose list has it, too.
const STATES: [(&str, &str, &str, &str); 8] = [
    (
        "draft",
        "PENDING",
        "Draft",
        "status=draft&authority_status=PENDING",
    ),
    (
        "approved",
        "PENDING",
        "To submit",
        "status=approved,paid&authority_status=PENDING",
    ),
    (
        "paid",
        "PENDING",
        "To submit",
        "status=approved,paid&authority_status=PENDING",
    ),
    (
        "paid",
        "REJECTED",
        "Needs attention",
        "authority_status=REJECTED,FAILED&without_cancelled=true",
    ),
    (
        "approved",
        "FAILED",
        "Needs attention",
        "authority_status=REJECTED,FAILED&without_cancelled=true",
    ),
    (
        "approved",
        "QUEUED",
        "Waiting",
        "authority_status=QUEUED,VALIDATED&without_cancelled=true",
    ),
    ("submitted", "SUBMITTED", "Signed", "status=submitted"),
    ("cancelled", "PENDING", "Cancelled", "status=cancelled"),
];

#[each_database]
async fn an_invoice_counts_in_one_state_whose_list_has_it(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    for (status, authority, label, filters) in STATES {
        let plant = format!(
            "UPDATE invoices SET status = '{status}', authority_status = '{authority}' WHERE id = {}",
            invoice["id"]
        );
        assert_eq!(world.execute(&plant).await, 1, "{plant}");
        let overview = account.page("").await;
        let address = account.path(&format!("/invoices?{filters}"));
        let counted = format!("{}\">1</a> {label}</li>", address.replace('&', "&#38;"));
        assert_shows(&overview, &[&counted]);
        assert_eq!(overview.matches("\">1</a> ").count(), 1, "{overview}");
        let list = account.page(&format!("/invoices?{filters}")).await;
        assert_shows(&list, &[no]);
        if label != "Cancelled" {
            let tab = format!(r#"aria-current="page">{label} <span class="count">1<"#);
            assert_shows(&list, &[&tab]);
        }
    }
}

#[each_database]
async fn the_overview_counts_what_goes_on_as_the_tab_of_the_list_does(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    for (status, tab, overview) in [
        ("PENDING", "0", "Nothing waits."),
        ("QUEUED", "1", ">1 waiting</a>"),
        ("VALIDATED", "1", ">1 waiting</a>"),
        ("REJECTED", "0", "Nothing waits."),
    ] {
        let plant = format!(
            "UPDATE invoices SET authority_status = '{status}' WHERE id = {}",
            invoice["id"]
        );
        assert_eq!(world.execute(&plant).await, 1, "{plant}");
        assert_shows(&account.page("").await, &[overview]);
        let count = format!(r#"Waiting <span class="count">{tab}</span>"#);
        assert_shows(&account.page("/invoices").await, &[&count]);
    }
}

/// Says how often an invoice in this status counts whose submission was rejected: once if a person is to correct it.
const REJECTED_COUNTS: [(&str, usize); 8] = [
    ("draft", 1),
    ("approved", 1),
    ("cancelled", 0),
    ("paid", 1),
    ("validated", 1),
    ("submitted", 1),
    ("transmitted", 1),
    ("reported", 1),
];

#[each_database]
async fn a_rejected_invoice_counts_alike_everywhere_and_a_cancelled_one_nowhere(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let account = Account::newcomer(world, &integrator).await;
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    integrator
        .change_profile(account.taxpayer.id, &profile)
        .await
        .expect_status(200);
    let person = signed_in(world, &email, &password).await;
    let refused = account.refused_invoice().await;
    let no = refused["invoice_no"].as_str().unwrap();
    for (status, count) in REJECTED_COUNTS {
        let plant = format!(
            "UPDATE invoices SET status = '{status}' WHERE id = {}",
            refused["id"]
        );
        assert_eq!(world.execute(&plant).await, 1, "{plant}");
        let overview = account.page("").await;
        let listed = account.page("/invoices").await;
        for (tab, filter) in [
            ("Needs attention", "REJECTED,FAILED"),
            ("Rejected", "REJECTED"),
        ] {
            let counted = format!(r#"{tab} <span class="count">{count}</span>"#);
            assert_shows(&listed, &[&counted]);
            let filter = format!("authority_status={filter}&without_cancelled=true");
            let list = account.page(&format!("/invoices?{filter}")).await;
            let current = format!(r#"aria-current="page">{tab}"#);
            assert_shows(&list, &[&current]);
            let rows = list.matches(&format!(r#"title="{no}""#)).count();
            assert_eq!(rows, count, "{status}, {tab}: {list}");
        }
        let tasks = overview.matches("Correct and send again").count();
        assert_eq!(tasks, count, "{status}: {overview}");
        let front = person.get("/dashboard/taxpayers").await.expect(200).html;
        let sum = format!("Rejected or failed invoices: {count}<");
        assert_shows(&front, &[&sum]);
    }
}

#[on_sqlite]
async fn a_paused_account_is_told_so_and_keeps_what_was_typed(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let page = format!("/invoices/{}", invoice["id"]);
    let banner = "The operator of the service has paused this account";
    assert!(!account.page("").await.contains(banner));
    let operator = world.new_operator().await;
    let pause = format!("/ops/taxpayers/{}/pause", account.taxpayer.id);
    let reason = json!({ "reason": "it floods us" });
    let paused = operator.send("POST", &pause, &reason).await;
    paused.expect_status(200);
    for shown in ["", "/invoices", "/profile"] {
        assert_shows(&account.page(shown).await, &[banner]);
    }
    let cancel = [("status", "cancelled"), ("remark", "typed remark")];
    let refused = post_seen(&account, &page, "status", &cancel).await;
    refused
        .expect(422)
        .shows("Nothing was changed, because this account is paused.")
        .shows("typed remark");
}
