//! Callers that ask again, as one does that is told it may: how far a run comes while they wait depends on how
//! busy the machine is.

use serde_json::{Value, json};

use super::answer::Answer;
use super::clients::AppClient;
use super::world::eventually;

impl AppClient {
    /// What comes of a submission.
    pub(crate) async fn submit_to_the_end(&self, body: &Value) -> Answer {
        to_the_end("a submission", async || self.submit(body).await).await
    }

    /// What comes of a transmission.
    pub(crate) async fn transmit_to_the_end(&self, irn: &str) -> Answer {
        to_the_end("a transmission", async || self.transmit(irn).await).await
    }

    /// What comes of a report.
    pub(crate) async fn report_to_the_end(&self, body: &Value) -> Answer {
        to_the_end("a report", async || self.report(body).await).await
    }
}

async fn to_the_end(of: &str, ask: impl AsyncFn() -> Answer) -> Answer {
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
