//! The buyer's side of the demo: a taxpayer of the same service finds the invoice in its inbox and acknowledges it.

use std::time::{Duration, Instant};

use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::app::demo::client::Route;
use crate::app::demo::story::{ARRIVAL_WAIT_MAX, Story, expect};
use crate::app::error::StartError;

/// The pause between two checks of the buyer's inbox.
const INBOX_CHECK_INTERVAL: Duration = Duration::from_millis(200);
pub(super) const TIN: &str = "87654321-0001";

impl Story {
    /// Onboards the buyer and returns the buyer's API key.
    pub(super) async fn onboard_buyer(&self) -> Result<SecretString, StartError> {
        let path = "/v1/system-integrators/taxpayers";
        let buyer = self
            .call_as_integrator(Route::new(Method::POST, path), Some(&buyer_profile()), 201)
            .await?;
        let rotate = format!("{path}/{}/api-key/rotate", buyer.body["data"]["id"]);
        let rotation = self
            .call_as_integrator(Route::new(Method::POST, &rotate), None, 200)
            .await?;
        Ok(rotation.body["data"]["api_key"]
            .as_str()
            .unwrap_or_default()
            .into())
    }

    /// Waits for the invoice in the buyer's inbox, then reads and acknowledges the invoice as the buyer.
    pub(super) async fn receive_invoice(
        &self,
        buyer: &SecretString,
        irn: &str,
    ) -> Result<(), StartError> {
        self.wait_until_in_inbox(buyer, irn).await?;
        let body = json!({ "supplier_irn": irn });
        let read = Route::new(Method::POST, "/v1/tax-payers/invoices/get-supplier-invoice");
        let document = self
            .call_with_taxpayer_key(buyer, read, Some(&body), 200)
            .await?;
        expect(
            "the buyer reads the invoice",
            document.body["data"]["irn"] == json!(irn),
        )?;
        let acknowledge = Route::new(
            Method::POST,
            "/v1/tax-payers/invoices/acknowledge-supplier-invoice",
        );
        let acknowledged = self
            .call_with_taxpayer_key(buyer, acknowledge, Some(&body), 200)
            .await?;
        expect(
            "the invoice is acknowledged",
            acknowledged.body["data"]["acknowledged"] == json!(true),
        )
    }

    /// Waits until the buyer's newest invoice is the one with this IRN. Fails after `ARRIVAL_WAIT_MAX`.
    async fn wait_until_in_inbox(&self, buyer: &SecretString, irn: &str) -> Result<(), StartError> {
        let start = Instant::now();
        loop {
            sleep(INBOX_CHECK_INTERVAL).await;
            let inbox = Route::new(Method::GET, "/v1/tax-payers/supplier-invoices");
            let inbox = self.call_with_taxpayer_key(buyer, inbox, None, 200).await?;
            if inbox.body["data"]["data"][0]["supplier_irn"] == json!(irn) {
                return Ok(());
            }
            expect(
                "the invoice comes into the buyer's inbox",
                start.elapsed() < ARRIVAL_WAIT_MAX,
            )?;
        }
    }
}

fn buyer_profile() -> Value {
    json!({
        "name": "Retail Stores Ltd",
        "email": "accounts@retail.example",
        "tin_no": TIN,
        "nature_of_business": "Retail of household goods",
        "authority_service_id": "94CD90AB",
        "authority_business_id": "22222222-2222-4222-8222-222222222222",
        "address": "5 Broad Street",
        "contact_person": { "first_name": "Bola", "last_name": "Ade", "email": "bola.ade@retail.example" },
    })
}
