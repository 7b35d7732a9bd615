//! The operator: sees and changes the work of all taxpayers.

use std::ops::Deref;

use serde_json::{Value, json};

use super::Taxpayer;
use crate::answer::Answer;
use crate::client::Client;

/// Calls the API of the people who run this deployment (`/ops`).
#[derive(Debug, Clone)]
pub struct Operator(Client);

impl Deref for Operator {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Operator {
    pub fn new(client: &Client, key: &str) -> Self {
        Self(client.with_key(key))
    }

    pub async fn runs(&self, query: &str) -> Answer {
        self.get(&format!("/ops/pipeline/runs{query}")).await
    }

    /// Pauses, resumes, retries or cancels a run.
    pub async fn move_run(&self, id: &str, to: &str) -> Answer {
        let body = json!({ "reason": format!("to {to} it") });
        self.send("POST", &format!("/ops/pipeline/runs/{id}/{to}"), &body)
            .await
    }

    /// Returns the latest run of a taxpayer, with its steps.
    pub async fn newest_run(&self, taxpayer: &Taxpayer) -> Value {
        let listed = self
            .runs(&format!("?taxpayer_id={}", taxpayer.id))
            .await
            .expect_status(200);
        let id = listed.data()["data"][0]["id"].as_str().unwrap().to_owned();
        self.runs(&format!("/{id}"))
            .await
            .expect_status(200)
            .data()
            .clone()
    }

    pub async fn dead_letters(&self, query: &str) -> Answer {
        self.get(&format!("/ops/webhooks/dead-letters{query}"))
            .await
    }

    /// Requests a comparison of one day of a taxpayer with the authority's ledger.
    pub async fn reconcile(&self, taxpayer: i64, day: &str) -> Answer {
        let body = json!({ "taxpayer_id": taxpayer, "day": day });
        self.send("POST", "/ops/reconciliations", &body).await
    }

    pub async fn reconciliations(&self, query: &str) -> Answer {
        self.get(&format!("/ops/reconciliations{query}")).await
    }

    pub async fn audit(&self, query: &str) -> Answer {
        self.get(&format!("/ops/audit{query}")).await
    }
}
