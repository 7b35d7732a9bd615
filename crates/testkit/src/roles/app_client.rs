//! The caller of the access point API (`/v1/app`): submits, transmits and reports invoices, and reads their runs.

use std::ops::Deref;

use serde_json::{Value, json};

use super::{REPORT, SUBMIT, TRANSMIT, VALIDATE, relay_path};
use crate::answer::Answer;
use crate::client::Client;
use crate::patience::eventually;

/// Calls the access point API with the key of a taxpayer or of an integrator.
#[derive(Debug, Clone)]
pub struct AppClient(Client);

impl Deref for AppClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl AppClient {
    pub(super) fn new(client: &Client) -> Self {
        Self(client.clone())
    }

    pub async fn submit(&self, body: &Value) -> Answer {
        self.send("POST", SUBMIT, body).await
    }

    pub async fn submit_async(&self, body: &Value) -> Answer {
        let request = self
            .request("POST", SUBMIT)
            .header("prefer", "respond-async");
        Answer::to(request.json(body)).await
    }

    pub async fn transmit(&self, irn: &str) -> Answer {
        self.send("POST", TRANSMIT, &json!({ "irn": irn })).await
    }

    pub async fn confirm_receipt(&self, irn: &str) -> Answer {
        self.call("PATCH", &format!("{TRANSMIT}/{irn}/confirm-receipt"))
            .await
    }

    pub async fn confirm(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/confirm")).await
    }

    pub async fn validate(&self, body: &Value) -> Answer {
        self.send("POST", VALIDATE, body).await
    }

    pub async fn report(&self, body: &Value) -> Answer {
        self.send("POST", REPORT, body).await
    }

    /// Asks the service to report a payment status to the authority.
    pub async fn set_payment_status(&self, irn: &str, status: &str) -> Answer {
        self.send(
            "PATCH",
            &relay_path(irn),
            &json!({ "payment_status": status }),
        )
        .await
    }

    pub async fn download(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/download")).await
    }

    /// Returns the invoice's run with this operation. The method `run` returns the run that the API shows by default.
    pub async fn fetch_run_with_operation(&self, irn: &str, operation: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run?operation={operation}"))
            .await
    }

    pub async fn run(&self, irn: &str) -> Answer {
        self.get(&format!("/v1/app/invoices/{irn}/run")).await
    }

    /// Submits an invoice, and repeats the request until its run has ended.
    pub async fn submit_to_the_end(&self, body: &Value) -> Answer {
        repeat_until_run_ends("a submission", async || self.submit(body).await).await
    }

    /// Transmits an invoice, and repeats the request until its run has ended.
    pub async fn transmit_to_the_end(&self, irn: &str) -> Answer {
        repeat_until_run_ends("a transmission", async || self.transmit(irn).await).await
    }

    /// Sends a report, and repeats the request until its run has ended.
    pub async fn report_to_the_end(&self, body: &Value) -> Answer {
        repeat_until_run_ends("a report", async || self.report(body).await).await
    }
}

/// Repeats a request while its answer says that it may be sent again. How far a run gets within one request depends
/// on the load of the machine.
async fn repeat_until_run_ends(of: &str, ask: impl AsyncFn() -> Answer) -> Answer {
    eventually(&format!("the end of {of}"), async || {
        let answer = ask().await;
        let may_be_asked_again =
            answer.code() == "AUTHORITY_UNAVAILABLE" || answer.body["retryable"] == json!(true);
        if may_be_asked_again {
            assert_ne!(answer.header("retry-after"), "", "{}", answer.text);
        }
        (!may_be_asked_again).then_some(answer)
    })
    .await
}
