//! The way from the list of invoices to one of them, to its neighbours, and back.

use testkit::documents;
use testkit::on_sqlite;

use super::{Account, assert_shows, post_seen};
use crate::support::world::World;

/// The second page of drafts, one on each page, as the addresses of an invoice name it.
const SUFFIX: &str = "?list=status%3Ddraft%26per_page%3D1%26page%3D2";

/// Returns the paths of three new drafts, below that of the account and newest first.
async fn three_drafts(account: &Account) -> [String; 3] {
    let mut paths = Vec::new();
    for _ in 0..3 {
        let invoice = account.taxpayer.invoice(&documents::invoice()).await;
        paths.insert(0, format!("/invoices/{}", invoice["id"]));
    }
    paths.try_into().unwrap()
}

fn link_to(account: &Account, rel: &str, path: &str) -> String {
    format!("<a rel=\"{rel}\" href=\"{}\">", account.path(path))
}

#[on_sqlite]
async fn the_page_of_an_invoice_leads_back_to_the_list_and_follows_it(world: &World) {
    let account = Account::new(world).await;
    let [newest, middle, oldest] = three_drafts(&account).await;
    let list = account
        .page("/invoices?status=draft&per_page=1&page=2&evil=1")
        .await;
    let row = format!("href=\"{}{SUFFIX}\"", account.path(&middle));
    assert_shows(&list, &[&row]);

    let here = format!("{middle}{SUFFIX}");
    let page = account.page(&here).await;
    let back = account.path("/invoices?status=draft&#38;per_page=1&#38;page=2");
    let back = format!("<a href=\"{back}\">Back to the list</a>");
    let previous = link_to(&account, "prev", &format!("{newest}{SUFFIX}"));
    let next = link_to(&account, "next", &format!("{oldest}{SUFFIX}"));
    assert_shows(&page, &[&back, &previous, &next]);
    let own = account.path(&format!("{middle}/"));
    let actions = page.split("action=\"").skip(1);
    let actions: Vec<_> = actions
        .filter_map(|rest| rest.split('"').next())
        .filter(|action| action.starts_with(&own))
        .collect();
    assert!(!actions.is_empty(), "{page}");
    for action in actions {
        assert!(action.ends_with(SUFFIX), "{action}");
    }

    // An act leads to the same page again, which still knows the list, although the invoice has left it.
    let edited = post_seen(&account, &middle, &format!("edit{SUFFIX}"), &[]).await;
    edited.leads_to(&account.path(&here));
    let fields = [("status", "approved"), ("remark", "as agreed")];
    let form = format!("status{SUFFIX}");
    let changed = post_seen(&account, &middle, &form, &fields).await;
    changed.leads_to(&account.path(&here));
    let page = account.page(&here).await;
    assert_shows(&page, &[&back, &previous, &next]);

    // Next passes over the invoice that is no draft any more, unless the list is that of all invoices.
    let page = account.page(&format!("{newest}{SUFFIX}")).await;
    assert_shows(&page, &[&next]);
    let page = account.page(&newest).await;
    let all = format!("<a href=\"{}\">Invoices</a>", account.path("/invoices"));
    assert_shows(&page, &[&all, &link_to(&account, "next", &middle)]);
}

#[on_sqlite]
async fn the_neighbours_stand_in_the_order_of_the_list(world: &World) {
    let account = Account::new(world).await;
    let [newest, middle, oldest] = three_drafts(&account).await;
    for (list, before, after) in [
        ("sort=-created_at", &newest, &oldest),
        ("sort=created_at", &oldest, &newest),
        ("sort=payable", &oldest, &newest),
        ("sort=-payable", &newest, &oldest),
    ] {
        let suffix = format!("?list={}", list.replace('=', "%3D"));
        let page = account.page(&format!("{middle}{suffix}")).await;
        let previous = link_to(&account, "prev", &format!("{before}{suffix}"));
        let next = link_to(&account, "next", &format!("{after}{suffix}"));
        assert_shows(&page, &[&previous, &next]);
    }
}

#[on_sqlite]
async fn a_list_that_cannot_be_read_leads_to_all_invoices(world: &World) {
    let account = Account::new(world).await;
    let [_, middle, _] = three_drafts(&account).await;
    let all = format!("<a href=\"{}\">Invoices</a>", account.path("/invoices"));
    for list in ["https%3A%2F%2Fevil.example", "status%3Dbanana", "%00", ""] {
        let page = account.page(&format!("{middle}?list={list}")).await;
        assert_shows(&page, &[&all]);
        assert!(!page.contains("evil"), "{list}: {page}");
    }
}
