//! Saved views: the filters of the list of invoices that a person keeps under a name.

use testkit::documents;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows};
use crate::support::world::World;

#[each_database]
async fn a_view_keeps_the_filters_of_its_person(world: &World) {
    let account = Account::new(world).await;
    account.taxpayer.invoice(&documents::invoice()).await;
    let list = account.page("/invoices").await;
    assert!(
        !list.contains("Save as a view"),
        "nothing is filtered: {list}"
    );
    let list = account.page("/invoices?status=draft&sort=-payable").await;
    assert_shows(&list, &["Save as a view"]);
    // The page number and unknown parameters are left out.
    let fields = [
        ("name", "Large <drafts>"),
        ("filter", "page=7&status=draft&evil=1&sort=-payable"),
    ];
    let address = account.path("/invoices?status=draft&sort=-payable");
    let kept = account.post("/invoices/views", &fields).await;
    kept.leads_to(&address);
    let list = account.page("/invoices").await;
    let link = format!(
        "<a href=\"{}\">Large &#60;drafts&#62;</a>",
        address.replace('&', "&#38;")
    );
    assert_shows(&list, &[&link, "Delete the view Large &#60;drafts&#62;"]);
    let list = account
        .page("/invoices?sort=-payable&status=draft&per_page=50")
        .await;
    assert_shows(&list, &["aria-current=\"page\">Large &#60;drafts&#62;</a>"]);

    // The same name keeps other filters.
    let fields = [("name", "Large <drafts>"), ("filter", "overdue=true")];
    account.post("/invoices/views", &fields).await.expect(303);
    let list = account.page("/invoices").await;
    assert_shows(&list, &["/invoices?overdue=true\">Large"]);
    assert_eq!(list.matches("Delete the view").count(), 1);

    let other = Account::new(world).await;
    assert!(!other.page("/invoices").await.contains("Delete the view"));
    let fields = [("name", "Large <drafts>")];
    account
        .post("/invoices/views/delete", &fields)
        .await
        .expect(303);
    assert!(!account.page("/invoices").await.contains("Delete the view"));
}

#[on_sqlite]
async fn a_view_needs_a_name_filters_and_room(world: &World) {
    let account = Account::new(world).await;
    let long = "n".repeat(41);
    let filter_too_long = format!("q={}", "a".repeat(2_000));
    for (name, filter) in [
        ("", "status=draft"),
        (long.as_str(), "status=draft"),
        ("a\0b", "status=draft"),
        ("a\u{200b}b", "status=draft"),
        ("Drafts", filter_too_long.as_str()),
    ] {
        let fields = [("name", name), ("filter", filter)];
        let refused = account.post("/invoices/views", &fields).await.expect(422);
        assert_shows(
            &refused.html,
            &["<details class=\"keep-view\" open>", "class=\"fault\""],
        );
    }
    for filter in ["", "page=2&evil=1"] {
        let fields = [("name", "Drafts"), ("filter", filter)];
        account.post("/invoices/views", &fields).await.expect(303);
        assert_shows(&account.page("/invoices").await, &["choose one first"]);
    }
    let odd = [("name", "a\0b")];
    account
        .post("/invoices/views/delete", &odd)
        .await
        .expect(422);
    let list = account.page("/invoices").await;
    assert!(!list.contains("Delete the view"), "{list}");
    for number in 1..=21 {
        let name = format!("View {number}");
        let fields = [("name", name.as_str()), ("filter", "status=draft")];
        account.post("/invoices/views", &fields).await.expect(303);
    }
    let list = account.page("/invoices").await;
    assert_shows(
        &list,
        &["You have 20 views of this account: delete one first."],
    );
    assert_eq!(list.matches("Delete the view").count(), 20);
}
