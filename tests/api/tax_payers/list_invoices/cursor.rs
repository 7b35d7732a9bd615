//! Going through the list by cursors.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::with;
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use super::{create, ids, numbers};
use crate::support::world::World;

/// The address that a `Link` gives as the next one.
fn linked(answer: &Answer) -> Option<String> {
    let link = answer.header("link");
    let address = link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"");
    Some(address.unwrap().to_owned())
}

/// All ids from an address on, by the links.
pub(super) async fn follow(taxpayer: &Taxpayer, first: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(address) = next {
        let answer = taxpayer.get(&address).await.expect_status(200);
        found.extend(ids(&answer));
        next = linked(&answer);
        assert_eq!(next.is_some(), !answer.header("x-next-cursor").is_empty());
    }
    found
}

#[each_database]
async fn links_lead_through_the_whole_list(world: &World) {
    let taxpayer = world.taxpayer().await;
    let all = create(&taxpayer, 7).await;
    assert_eq!(
        follow(&taxpayer, &format!("{INVOICES}?per_page=3")).await,
        all
    );
    assert_eq!(
        follow(&taxpayer, &format!("{INVOICES}?per_page=7")).await,
        all,
        "nothing follows the last"
    );
    assert_eq!(
        follow(&taxpayer, &format!("{INVOICES}?per_page=2&page=2")).await,
        all[2..]
    );
    let batch: Vec<_> = (0..9).map(|_| documents::invoice()).collect();
    taxpayer.create_batch(&batch).await.expect_status(201);
    let whole = follow(&taxpayer, &format!("{INVOICES}?per_page=2")).await;
    assert_eq!(
        (whole.len(), &whole[9..]),
        (16, all.as_slice()),
        "also of invoices of one moment"
    );
}

#[each_database]
async fn a_cursor_stays_where_it_is_when_invoices_are_added(world: &World) {
    let taxpayer = world.taxpayer().await;
    let all = create(&taxpayer, 6).await;
    let first = taxpayer
        .list_invoices("?per_page=3")
        .await
        .expect_status(200);
    let cursor = first.header("x-next-cursor").to_owned();
    create(&taxpayer, 4).await;
    let path = format!("?per_page=3&cursor={cursor}");
    let second = taxpayer.list_invoices(&path).await.expect_status(200);
    assert_eq!(
        (ids(&second), numbers(&second)),
        (all[3..].to_vec(), [1, 10, 3, 4])
    );
    assert_eq!(
        (second.header("x-next-cursor"), second.header("link")),
        ("", "")
    );
    let fields: Vec<_> = second.data().as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["current_page", "data", "last_page", "per_page", "total"]
    );
    let with_page = taxpayer
        .list_invoices(&format!("{path}&page=2"))
        .await
        .expect_status(200);
    assert_eq!(ids(&with_page), all[3..], "a cursor goes before a page");
}

#[on_sqlite]
async fn a_link_repeats_the_filters(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut matching = Vec::new();
    for at in 0..6 {
        let name = if at % 2 == 0 { "A&B=C%" } else { "Other" };
        let body = with(
            &documents::invoice(),
            "customer.no",
            json!(format!("N{at}")),
        );
        let body = with(&body, "customer.tin", json!(format!("T{at}")));
        let id = taxpayer
            .invoice(&with(&body, "customer.name", json!(name)))
            .await["id"]
            .clone();
        if at % 2 == 0 {
            matching.insert(0, id);
        }
    }
    let first = format!("{INVOICES}?q=a%26b%3Dc%25&status=draft&per_page=1&colour=red%0D%0Ax");
    let answer = taxpayer.get(&first).await.expect_status(200);
    let link = linked(&answer).unwrap();
    assert!(
        link.starts_with(&format!(
            "{INVOICES}?q=a%26b%3Dc%25&status=draft&per_page=1&cursor="
        )),
        "{link}"
    );
    assert_eq!(follow(&taxpayer, &first).await, matching);
}

#[each_database]
async fn a_cursor_of_another_account_shows_nothing_of_it(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let mine = create(&one, 2).await;
    create(&other, 3).await;
    let theirs = other
        .list_invoices("?per_page=1")
        .await
        .header("x-next-cursor")
        .to_owned();
    let found = ids(&one
        .list_invoices(&format!("?cursor={theirs}"))
        .await
        .expect_status(200));
    assert_eq!(found, mine, "a cursor is a place in time, and nothing else");
}
