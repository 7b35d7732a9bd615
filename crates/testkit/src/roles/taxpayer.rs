//! The taxpayer: works with its own invoices, events and supplier invoices.

use std::ops::Deref;

use serde_json::{Value, json};

use super::{
    ACKNOWLEDGE, AppClient, BATCHES, BULK, EVENTS, FULL_INVOICES, GET_SUPPLIER_INVOICE, INBOX,
    INVOICES, UPDATE, UPDATE_PAYMENT, UPDATE_STATUS,
};
use crate::answer::Answer;
use crate::client::Client;
use crate::documents::Registration;

/// Creates, reads, edits and tracks its own invoices.
#[derive(Debug, Clone)]
pub struct Taxpayer {
    client: Client,
    pub id: i64,
    pub registration: Registration,
}

impl AsRef<Registration> for Taxpayer {
    fn as_ref(&self) -> &Registration {
        &self.registration
    }
}

impl Deref for Taxpayer {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Taxpayer {
    /// Returns the taxpayer that was onboarded with this body.
    pub fn new(client: &Client, key: &str, id: i64, body: &Value) -> Self {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self {
            client: client.with_key(key),
            id,
            registration: Registration {
                service_id: text("authority_service_id"),
                business_id: text("authority_business_id"),
                tin: text("tin_no"),
            },
        }
    }

    pub fn app(&self) -> AppClient {
        AppClient::new(&self.client)
    }

    pub async fn create_invoice(&self, body: &Value) -> Answer {
        self.send("POST", INVOICES, body).await
    }

    pub async fn create_full(&self, body: &Value) -> Answer {
        self.send("POST", FULL_INVOICES, body).await
    }

    /// Creates a full invoice and returns it.
    pub async fn new_full_invoice(&self, body: &Value) -> Value {
        self.create_full(body)
            .await
            .expect_status(201)
            .data()
            .clone()
    }

    pub async fn update(&self, body: &Value) -> Answer {
        self.send("PUT", UPDATE, body).await
    }

    /// Returns an invoice with its lines and its ledger.
    pub async fn invoice_with_ledger(&self, invoice: &Value) -> Value {
        let path = format!("{INVOICES}/{}?include=lines,ledger", invoice["id"]);
        let answer = self.get(&path).await;
        answer.expect_status(200).data().clone()
    }

    /// Creates an invoice and returns it.
    pub async fn invoice(&self, body: &Value) -> Value {
        self.create_invoice(body)
            .await
            .expect_status(201)
            .data()
            .clone()
    }

    pub async fn create_batch(&self, invoices: &[Value]) -> Answer {
        self.send("POST", BULK, &json!({ "invoices": invoices }))
            .await
    }

    /// Returns the batch that an answer names.
    pub async fn created_batch(&self, created: &Answer) -> Value {
        let batch_no = created.data()["batch_no"].as_str().unwrap();
        self.get(&format!("{BATCHES}/{batch_no}"))
            .await
            .expect_status(200)
            .data()
            .clone()
    }

    pub async fn timeline(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}/timeline")).await
    }

    pub async fn get_invoice(&self, id: &Value) -> Answer {
        self.get(&format!("{INVOICES}/{id}")).await
    }

    /// Loads the present state of an invoice.
    pub async fn reread(&self, invoice: &Value) -> Value {
        self.get_invoice(&invoice["id"])
            .await
            .expect_status(200)
            .data()
            .clone()
    }

    pub async fn list_invoices(&self, query: &str) -> Answer {
        self.get(&format!("{INVOICES}{query}")).await
    }

    pub async fn set_status(&self, invoice: &Value, status: &str) -> Answer {
        let body = json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "as agreed",
        });
        self.send("PATCH", UPDATE_STATUS, &body).await
    }

    pub async fn pay(&self, body: &Value) -> Answer {
        self.send("PATCH", UPDATE_PAYMENT, body).await
    }

    pub async fn inbox(&self, query: &str) -> Answer {
        self.get(&format!("{INBOX}{query}")).await
    }

    /// Returns the lines of the inbox, newest first.
    pub async fn inbox_lines(&self) -> Vec<Value> {
        let answer = self.inbox("").await.expect_status(200);
        answer.data()["data"].as_array().unwrap().clone()
    }

    pub async fn supplier_invoice(&self, irn: &str) -> Answer {
        self.send(
            "POST",
            GET_SUPPLIER_INVOICE,
            &json!({ "supplier_irn": irn }),
        )
        .await
    }

    pub async fn acknowledge(&self, irn: &str) -> Answer {
        self.send("POST", ACKNOWLEDGE, &json!({ "supplier_irn": irn }))
            .await
    }

    /// Counts the events with this name in the taxpayer's log.
    pub async fn count_events(&self, name: &str) -> usize {
        self.event_names()
            .await
            .iter()
            .filter(|event| *event == name)
            .count()
    }

    /// Returns the events of this taxpayer, from the first on.
    pub async fn events(&self) -> Vec<Value> {
        let answer = self
            .get(&format!("{EVENTS}?limit=1000"))
            .await
            .expect_status(200);
        answer.data()["events"].as_array().unwrap().clone()
    }

    /// Returns the events about an invoice.
    pub async fn invoice_events(&self) -> Vec<Value> {
        self.events()
            .await
            .into_iter()
            .filter(|event| event["irn"].is_string())
            .collect()
    }

    /// Returns the names of the events about an invoice, in order.
    pub async fn invoice_event_names(&self) -> Vec<String> {
        let events = self.invoice_events().await;
        events
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the names of the events, in order.
    pub async fn event_names(&self) -> Vec<String> {
        self.events()
            .await
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }
}
