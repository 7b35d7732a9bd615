//! What an account is told: by mail, and in its chat.

use serde_json::json;
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::Receiver;

use super::{Account, assert_shows};
use crate::support::world::World;

#[each_database]
async fn a_new_key_is_told_to_the_owner_by_mail_and_in_the_chat(world: &World) {
    let account = Account::new(world).await;
    let receiver = Receiver::start();
    let url = receiver.url();
    for odd in ["", "http://93.184.215.14/x", "https://169.254.169.254/x"] {
        let refused = account.post("/notifications", &[("chat_url", odd)]).await;
        refused.expect(422).shows("fault-chat_url");
    }
    account
        .post("/notifications", &[("chat_url", &url)])
        .await
        .expect(303);
    let page = account.page("/notifications").await;
    assert_shows(
        &page,
        &[
            "posted to a chat at",
            "127.0.0.1",
            "not what the person alone is told",
        ],
    );
    let cell =
        |label: &str, who: &str| format!("{label}</th><td data-label=\"Who is told\">{who}</td>");
    assert_shows(
        &page,
        &[
            &cell("Invitations and lost passwords", "The person alone"),
            &cell(
                "Changes of keys and passwords",
                "Owners of keys; of a password the person alone",
            ),
            &cell("Rejected and failed invoices", "Owners and accountants"),
        ],
    );
    assert!(!page.contains(&url), "the address is a secret: {page}");
    let integrator = world.integrator();
    integrator
        .rotate_api_key(account.taxpayer.id)
        .await
        .expect_status(200);
    let posted = async || {
        let all = receiver.received_notifications();
        let text = all.first()?.body()["text"].as_str()?.to_owned();
        Some(text)
    };
    let text = eventually("a post to the chat", posted).await;
    assert_shows(
        &text,
        &["An API key was created", "What to do", "/activity"],
    );
    let sent = format!(
        "SELECT count(*) FROM mails WHERE recipient = '{}' AND state = 'sent'",
        account.email
    );
    let told = async || (world.number(&sent).await > 0).then_some(());
    eventually("a mail to the owner", told).await;
    account
        .post("/notifications", &[("remove", "true")])
        .await
        .expect(303);
    assert_shows(
        &account.page("/notifications").await,
        &["can be posted to a chat"],
    );
}

#[each_database]
async fn a_chat_is_not_in_the_networks_of_the_erp(world: &World) {
    let account = Account::new(world).await;
    let operator = world.new_operator().await;
    let path = format!("/ops/taxpayers/{}/integration", account.taxpayer.id);
    let body =
        json!({ "auth_type": "none", "data_format": "rest", "allowed_networks": ["10.1.0.0/16"] });
    operator.send("PUT", &path, &body).await.expect_status(200);
    for url in ["https://10.1.2.3/x", "http://10.1.2.3/x"] {
        let refused = account.post("/notifications", &[("chat_url", url)]).await;
        refused.expect(422).shows("fault-chat_url");
    }
}
