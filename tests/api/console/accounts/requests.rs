//! The request log on the pages of an account and of its integrator, and a request that is sent again in the sandbox.

use serde_json::{Value, json};
use testkit::documents;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, signed_in};
use crate::support::world::{ALONE, World};

/// Returns the logged requests of an account, newest first.
async fn logged(account: &Account, filter: &str) -> Vec<Value> {
    let path = format!("/v1/tax-payers/requests?{filter}");
    let answer = account.taxpayer.get(&path).await.expect_status(200);
    answer.data()["data"].as_array().unwrap().clone()
}

/// Returns the path of a request's page below the account's.
fn page_of(entry: &Value) -> String {
    format!("/requests/{}", entry["id"].as_str().unwrap())
}

#[each_database]
async fn a_failure_is_in_the_list_in_its_group_and_on_a_page_of_its_own(world: &World) {
    let account = Account::new(world).await;
    for _ in 0..2 {
        let odd = json!({ "invoice_no": "<odd>" });
        account
            .taxpayer
            .create_invoice(&odd)
            .await
            .expect_status(422);
    }
    assert_shows(
        &account.page("/requests").await,
        &[
            "POST /v1/tax-payers/invoices",
            "422 Rejected",
            "VALIDATION_FAILED",
        ],
    );
    let groups = account.page("/requests?tab=errors").await;
    let list = "/requests?error_code=VALIDATION_FAILED&#38;route=%2Fv1%2Ftax-payers%2Finvoices&#38;method=POST";
    assert_shows(
        &groups,
        &[
            &account.path(list),
            "data-label=\"Count\">2</td>",
            "Last seen",
        ],
    );
    let failed = logged(&account, "status=422").await;
    let page = account.page(&page_of(&failed[0])).await;
    assert_shows(
        &page,
        &["VALIDATION_FAILED", "&#60;odd&#62;", "The customer"],
    );
    let odd = account.page("/requests?status=odd").await;
    assert_shows(&odd, &["a status such as 422, or a class such as 4xx"]);
}

#[each_database]
async fn an_invoice_leads_to_its_requests_and_a_request_to_its_invoice(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let missing = format!(
        "/v1/tax-payers/invoices/{}/timeline?limit=odd",
        invoice["id"]
    );
    account
        .taxpayer
        .send("PUT", &missing, &json!({}))
        .await
        .expect_status(405);
    let developer = format!("/invoices/{}?tab=developer", invoice["id"]);
    let shown = account.page(&developer).await;
    let link = shown
        .split("href=\"")
        .find(|part| part.contains("/requests?invoice="));
    let link = link
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&#38;", "&");
    let list = account.owner.get(&link).await.expect(200);
    let list = list.shows("405 Rejected");
    assert!(!list.html.contains("No request matches"));
    let failed = logged(&account, "status=405").await;
    let page = account.page(&page_of(&failed[0])).await;
    assert_shows(
        &page,
        &[&account.path(&format!("/invoices/{}", invoice["id"]))],
    );
}

#[each_database]
async fn others_have_no_such_request_and_an_accountant_may_not_see_any(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    account
        .taxpayer
        .create_invoice(&json!({}))
        .await
        .expect_status(422);
    let page = page_of(&logged(&account, "status=422").await[0]);
    account.owner.get(&account.path(&page)).await.expect(200);
    other.owner.get(&other.path(&page)).await.expect(404);
    other.owner.get(&account.path(&page)).await.expect(404);
    account
        .owner
        .get(&account.path("/requests/odd"))
        .await
        .expect(404);
    account.set_role(world, "accountant").await;
    account.owner.get(&account.path(&page)).await.expect(403);
    account
        .owner
        .get(&account.path("/requests"))
        .await
        .expect(403);
}

#[each_database(ALONE)]
async fn a_write_is_sent_again_with_a_new_idempotency_key_and_is_logged_itself(world: &World) {
    let account = Account::new(world).await;
    let invoice = account.taxpayer.invoice(&documents::invoice()).await;
    let approval = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": "approved", "remark": "agreed",
    });
    let path = "/v1/tax-payers/invoices/update-status";
    let sent = account
        .taxpayer
        .send_keyed("once", "PATCH", path, &approval);
    sent.await.expect_status(200);
    let first = logged(&account, "path=/v1/tax-payers/invoices/update-status").await;
    let page = page_of(&first[0]);
    assert_shows(&account.page(&page).await, &["Send again", "data-confirm"]);
    let again = account.post(&format!("{page}/send"), &[]).await.expect(303);
    let both = logged(&account, "path=/v1/tax-payers/invoices/update-status").await;
    let [newest, _] = both.as_slice() else {
        panic!("{both:?}")
    };
    // With the key of before, the answer of before would have come, and no second request.
    assert_eq!(newest["request"]["body"], first[0]["request"]["body"]);
    assert_eq!(again.location, account.path(&page_of(newest)));
    let events = account.taxpayer.events().await;
    let approved = events
        .iter()
        .filter(|one| one["type"] == "invoice.status-updated");
    assert!(approved.count() >= 1);
    let shown = account.owner.get(&again.location).await.expect(200);
    shown.shows(&format!(
        "It was sent again and answered {}",
        newest["status"]
    ));
}

#[on_sqlite(ALONE)]
async fn what_is_not_whole_or_changes_nothing_is_not_sent_again(world: &World) {
    let account = Account::new(world).await;
    let secret = json!({ "invoice_no": "INV1", "password": "four plain words" });
    account
        .taxpayer
        .create_invoice(&secret)
        .await
        .expect_status(422);
    let missing = format!("/v1/tax-payers/invoices/{}", i64::MAX);
    account.taxpayer.get(&missing).await.expect_status(404);
    for failed in logged(&account, "status=4xx").await {
        let page = page_of(&failed);
        let shown = account.page(&page).await;
        assert!(!shown.contains("Send again"), "{shown}");
        let refused = account.post(&format!("{page}/send"), &[]).await;
        refused.expect(404);
    }
}

#[each_database]
async fn an_integrator_sees_its_own_requests_and_those_of_its_taxpayers(world: &World) {
    let (integrator, email, password) = world.new_integrator_person().await;
    let taxpayer = world.newcomer_of(&integrator).await;
    taxpayer.create_invoice(&json!({})).await.expect_status(403);
    let path = format!("/v1/system-integrators/taxpayers/{}", i64::MAX);
    integrator.get(&path).await.expect_status(404);
    let person = signed_in(world, &email, &password).await;
    let list = person
        .get("/dashboard/taxpayers/requests")
        .await
        .expect(200);
    let list = list
        .shows(&format!("taxpayer {}", taxpayer.id))
        .shows("Your own");
    let own = list
        .html
        .split("href=\"")
        .find(|part| part.starts_with("/dashboard/taxpayers/requests/"));
    let own = own.unwrap().split('"').next().unwrap().to_owned();
    person.get(&own).await.expect(200).shows("404 Rejected");
    let groups = person.get("/dashboard/taxpayers/requests?tab=errors").await;
    groups.expect(200).shows("PROFILE_INCOMPLETE");
    let account = Account::new(world).await;
    account.owner.get(&own).await.expect(404);
}
