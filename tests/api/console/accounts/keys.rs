//! API keys: a new one is shown once and works, a revoked one is refused at once.

use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows};
use crate::support::world::World;

/// Returns the secret that a page shows.
fn secret(page: &str) -> String {
    let text = page.split(r#"id="secret">"#).nth(1).unwrap();
    text.split('<').next().unwrap().to_owned()
}

#[each_database]
async fn a_new_key_is_shown_once_and_the_old_one_ends_when_it_was_said(world: &World) {
    let account = Account::new(world).await;
    assert_shows(
        &account.page("/keys").await,
        &["Valid", "Everything", "Never"],
    );
    let fields = [
        ("overlap_s", "3600"),
        ("scope", "read_only"),
        ("expires_in_days", "30"),
    ];
    let page = account.post("/keys/rotate", &fields).await.expect(200);
    let key = secret(&page.html);
    assert!(key.starts_with("tpk_"), "{key}");
    let by_key = account.taxpayer.with_key(&key);
    by_key
        .get("/v1/tax-payers/invoices")
        .await
        .expect_status(200);
    account.taxpayer.list_invoices("").await.expect_status(200);
    let list = account.page("/keys").await;
    assert!(!list.contains(&key), "{list}");
    assert_shows(&list, &["Read-only", "Valid until it expires"]);
    account
        .post("/keys/rotate", &[("overlap_s", "x")])
        .await
        .expect(422);
    account
        .post("/keys/rotate", &[("expires_in_days", "-1")])
        .await
        .expect(422);
}

#[each_database]
async fn several_keys_are_valid_at_a_time_up_to_the_setting(world: &World) {
    let account = Account::new(world).await;
    for number in 2..=5 {
        let name = format!("Branch {number}");
        let made = account
            .post("/keys", &[("name", &name), ("scope", "full")])
            .await
            .expect(200)
            .html;
        let key = secret(&made);
        let curl = format!(
            "curl -H &#34;x-api-key: {key}&#34; &#34;{}/v1/tax-payers/invoices&#34;",
            world.root()
        );
        let curl = curl.replace("&#34;", "\"");
        assert_shows(&made, &[&curl, "Copy the command"]);
        account
            .taxpayer
            .with_key(&key)
            .get("/v1/tax-payers/invoices")
            .await
            .expect_status(200);
        let last = &key[key.len() - 4..];
        assert_shows(&account.page("/keys").await, &[&name, &format!("…{last}")]);
    }
    account.taxpayer.list_invoices("").await.expect_status(200);
    let full = account
        .post("/keys", &[("name", "one too many")])
        .await
        .expect(422);
    full.shows("An account has at most 5 valid keys. Revoke one first.")
        .shows("value=\"one too many\"");
    assert_shows(
        &account.page("/keys").await,
        &["No further key can be created before one is revoked."],
    );
    account
        .post("/keys/rotate", &[("name", &"x".repeat(61))])
        .await
        .expect(422);
}

#[on_sqlite]
async fn the_form_that_replaces_keys_ends_them_after_a_day_unless_asked(world: &World) {
    let account = Account::new(world).await;
    account.taxpayer.list_invoices("").await.expect_status(200);
    let page = account.page("/keys").await;
    let first = page
        .split(r#"name="overlap_s"><option value=""#)
        .nth(1)
        .unwrap();
    assert!(first.starts_with("86400\" selected"), "{first}");
    assert_shows(&page, &["Used last:", "Replace all keys?"]);
}

#[each_database]
async fn a_revoked_key_is_refused_at_once_and_the_others_stay(world: &World) {
    let account = Account::new(world).await;
    let kept = [
        ("overlap_s", "3600"),
        ("scope", ""),
        ("expires_in_days", ""),
    ];
    let page = account.post("/keys/rotate", &kept).await.expect(200).html;
    let newest = account.taxpayer.with_key(&secret(&page));
    newest
        .get("/v1/tax-payers/invoices")
        .await
        .expect_status(200);
    let list = account.page("/keys").await;
    let actions: Vec<_> = list
        .split("/keys/")
        .filter_map(|part| part.split_once("/revoke"))
        .collect();
    let ids: Vec<_> = actions.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), 2, "{list}");
    let gone = account
        .post(&format!("/keys/{}/revoke", ids[0]), &[])
        .await
        .expect(303);
    assert_eq!(gone.location, account.path("/keys"));
    newest
        .get("/v1/tax-payers/invoices")
        .await
        .expect_status(401);
    account.taxpayer.list_invoices("").await.expect_status(200);
    account
        .post(&format!("/keys/{}/revoke", ids[0]), &[])
        .await
        .expect(404);
    account.post("/keys/%25/revoke", &[]).await.expect(404);
}
