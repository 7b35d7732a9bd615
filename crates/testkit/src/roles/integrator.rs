//! The integrator: onboards taxpayers and sets up their webhooks.

use std::ops::Deref;

use serde_json::{Value, json};

use super::{AppClient, TAXPAYERS, webhook};
use crate::answer::Answer;
use crate::client::Client;

/// Acts for the taxpayers that it onboarded.
#[derive(Debug, Clone)]
pub struct Integrator(Client);

impl Deref for Integrator {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Integrator {
    pub fn new(client: &Client, key: &str) -> Self {
        Self(client.with_key(key))
    }

    pub async fn create_taxpayer(&self, body: &Value) -> Answer {
        self.send("POST", TAXPAYERS, body).await
    }

    pub async fn change_profile(&self, id: i64, body: &Value) -> Answer {
        self.send("PATCH", &format!("{TAXPAYERS}/{id}/profile"), body)
            .await
    }

    pub async fn rotate_api_key(&self, id: i64) -> Answer {
        self.call("POST", &format!("{TAXPAYERS}/{id}/api-key/rotate"))
            .await
    }

    pub async fn set_webhook(&self, id: i64, url: &str, events: &[&str]) -> Answer {
        let body = json!({ "webhook_url": url, "enabled_events": events });
        self.send("PUT", &webhook(id), &body).await
    }

    pub async fn webhook(&self, id: i64) -> Answer {
        self.get(&webhook(id)).await
    }

    /// Returns the new signing secret.
    pub async fn rotate_secret(&self, id: i64) -> String {
        let answer = self
            .call("POST", &format!("{}/secret", webhook(id)))
            .await
            .expect_status(200);
        answer.data()["secret"].as_str().unwrap().to_owned()
    }

    /// Returns the public key of the new pair.
    pub async fn rotate_key_pair(&self, id: i64) -> String {
        let path = format!("{}/secret", webhook(id));
        let answer = self
            .send("POST", &path, &json!({ "type": "ed25519" }))
            .await
            .expect_status(200);
        answer.data()["public_key"].as_str().unwrap().to_owned()
    }

    pub async fn test_webhook(&self, id: i64) -> Answer {
        self.call("POST", &format!("{}/test", webhook(id))).await
    }

    pub async fn enable_webhook(&self, id: i64, replay: &str) -> Answer {
        self.send(
            "POST",
            &format!("{}/enable", webhook(id)),
            &json!({ "replay": replay }),
        )
        .await
    }

    pub async fn deliveries(&self, id: i64, query: &str) -> Answer {
        self.get(&format!("{}/deliveries{query}", webhook(id)))
            .await
    }

    /// Delivers events of the taxpayer's log again, from `since` on.
    pub async fn replay(&self, id: i64, since: Value, only: &str) -> Answer {
        let body = json!({ "since": since, "only": only });
        self.send("POST", &format!("{}/replay", webhook(id)), &body)
            .await
    }

    pub async fn replays(&self, id: i64, rest: &str) -> Answer {
        self.get(&format!("{}/replays{rest}", webhook(id))).await
    }

    pub async fn cancel_replay(&self, id: i64, replay: &str) -> Answer {
        self.call("POST", &format!("{}/replays/{replay}/cancel", webhook(id)))
            .await
    }

    pub fn app(&self) -> AppClient {
        AppClient::new(&self.0)
    }
}
