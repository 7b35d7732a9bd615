//! The upstream calls, one method each. Each is tried once.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::Answer;
use super::call::{Call, segment};
use super::classify::{says_not_ok, says_ok};
use super::client::Authority;
use super::download::EncryptedDocument;
use super::failure::Failure;
use super::operation::{Operation, ResourceList};
use super::wire::{
    Acknowledgement, Confirmation, InTransit, IrnCheck, Parties, PullQuery, SearchPage, SearchQuery,
};

impl Authority {
    /// `POST /invoice/irn/validate`: whether this IRN may be used. A signed one is `Unknown`: ask `confirm`.
    pub async fn validate_irn(&self, check: &IrnCheck) -> Result<(), Failure> {
        let body = json!({
            "invoice_reference": check.invoice_reference,
            "business_id": check.business_id,
            "irn": check.irn,
        });
        self.send(Call::new(Operation::ValidateIrn, Method::POST, "/invoice/irn/validate").body(&body), ok)
            .await
    }

    /// `POST /invoice/validate`: whether the document is sound. The authority names one fault at a time.
    pub async fn validate(&self, document: &Value) -> Result<(), Failure> {
        self.send(Call::new(Operation::Validate, Method::POST, "/invoice/validate").body(document), ok).await
    }

    /// `POST /invoice/sign`. `Unknown` covers a duplicate too: ask `confirm`.
    pub async fn sign(&self, document: &Value) -> Result<(), Failure> {
        self.send(Call::new(Operation::Sign, Method::POST, "/invoice/sign").body(document), ok).await
    }

    /// `GET /invoice/confirm/{irn}`. `NotFound` when it is not signed.
    pub async fn confirm(&self, irn: &str) -> Result<Confirmation, Failure> {
        let path = format!("/invoice/confirm/{}", safe(irn)?);
        self.send(Call::new(Operation::Confirm, Method::GET, &path).about(irn), shape).await
    }

    /// `PATCH /invoice/update/{irn}`. The status is one of the authority's words: PARTIAL, PAID, REJECTED.
    pub async fn update_payment(
        &self,
        irn: &str,
        payment_status: &str,
        reference: Option<&str>,
    ) -> Result<(), Failure> {
        let path = format!("/invoice/update/{}", safe(irn)?);
        let body = match reference {
            Some(reference) => json!({ "payment_status": payment_status, "reference": reference }),
            None => json!({ "payment_status": payment_status }),
        };
        let call = Call::new(Operation::UpdatePayment, Method::PATCH, &path).about(irn).body(&body);
        self.send(call, ok).await
    }

    /// `GET /invoice/transmit/self-health-check`. False when the answer is not `ok: true` or is a 5xx.
    pub async fn system_healthy(&self) -> Result<bool, Failure> {
        let call = Call::new(Operation::SystemHealth, Method::GET, "/invoice/transmit/self-health-check");
        self.send(call, |answer| Some(says_ok(&answer))).await
    }

    /// `GET /invoice/transmit/lookup/{irn}`: both sides and whether their access points are online.
    pub async fn lookup(&self, irn: &str) -> Result<Parties, Failure> {
        let path = format!("/invoice/transmit/lookup/{}", safe(irn)?);
        self.send(Call::new(Operation::Lookup, Method::GET, &path).about(irn), shape).await
    }

    /// `POST /invoice/transmit/{irn}`: sends it to the other access point.
    pub async fn transmit(&self, irn: &str) -> Result<(), Failure> {
        let path = format!("/invoice/transmit/{}", safe(irn)?);
        let body = json!({});
        self.send(Call::new(Operation::Transmit, Method::POST, &path).about(irn).body(&body), ok).await
    }

    /// `PATCH /invoice/transmit/{irn}`: confirms its receipt. A second time is no failure.
    pub async fn acknowledge(&self, irn: &str) -> Result<Acknowledgement, Failure> {
        let path = format!("/invoice/transmit/{}", safe(irn)?);
        let body = json!({ "message": "ACKNOWLEDGED" });
        let call = Call::new(Operation::Acknowledge, Method::PATCH, &path).about(irn).body(&body);
        let result = self.send(call, |answer| (!says_not_ok(&answer)).then(|| said(&answer))).await;
        match result {
            Ok(message) => Ok(Acknowledgement { already: says_already(&message), message }),
            Err(Failure::Refused { message, .. }) if says_already(&message) => {
                Ok(Acknowledgement { message, already: true })
            }
            Err(failure) => Err(failure),
        }
    }

    /// `GET /invoice/transmit/pull`: the invoices on their way to this access point.
    pub async fn pull(&self, query: &PullQuery) -> Result<Vec<InTransit>, Failure> {
        let call = Call::new(Operation::Pull, Method::GET, "/invoice/transmit/pull")
            .query("confirmed", query.confirmed)
            .query("from", query.from.as_deref())
            .query("to", query.to.as_deref());
        self.send(call, |answer| InTransit::list(&answer.data)).await
    }

    /// `GET /invoice/{business_id}`: a page of what the authority holds of this taxpayer.
    pub async fn search(&self, business_id: &str, query: &SearchQuery) -> Result<SearchPage, Failure> {
        let call = Call::new(Operation::Search, Method::GET, &format!("/invoice/{}", safe(business_id)?))
            .query("irn", query.irn.as_deref())
            .query("payment_status", query.payment_status.as_deref())
            .query("entry_status", query.entry_status.as_deref())
            .query("size", query.size)
            .query("page", query.page);
        self.send(call, shape).await
    }

    /// `GET /invoice/download/{irn}`. `NotFound` when it is not signed.
    pub async fn download(&self, irn: &str) -> Result<EncryptedDocument, Failure> {
        let path = format!("/invoice/download/{}", safe(irn)?);
        self.send(Call::new(Operation::Download, Method::GET, &path).about(irn), shape).await
    }

    /// `POST /vat/postpayment`. The answer's body is open: any that does not say `ok: false` is a success.
    pub async fn report(&self, report: &Value) -> Result<(), Failure> {
        let call = Call::new(Operation::Report, Method::POST, "/vat/postpayment").body(report);
        self.send(call, |answer| (!says_not_ok(&answer)).then_some(())).await
    }

    /// `GET /invoice/resources/{list}`: the data array, unmodified.
    pub async fn resource(&self, list: ResourceList) -> Result<Value, Failure> {
        let path = format!("/invoice/resources/{}", list.upstream_name());
        let call = Call::new(Operation::Resource, Method::GET, &path).without_keys();
        self.send(call, |answer| answer.data.is_array().then_some(answer.data)).await
    }
}

/// What cannot be a path segment is no IRN, and the authority knows none such.
fn safe(text: &str) -> Result<String, Failure> {
    segment(text)
        .ok_or_else(|| Failure::NotFound { message: "this is no invoice reference number".to_owned() })
}

#[expect(clippy::needless_pass_by_value, reason = "readers take the answer, and this one needs none of it")]
fn ok(answer: Answer) -> Option<()> {
    says_ok(&answer).then_some(())
}

fn shape<T: DeserializeOwned>(answer: Answer) -> Option<T> {
    serde_json::from_value(answer.data).ok()
}

/// The authority's words to a success.
fn said(answer: &Answer) -> String {
    let words = answer.message.as_str().or_else(|| answer.data.get("message")?.as_str());
    words.unwrap_or("ACKNOWLEDGED").to_owned()
}

fn says_already(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("already") && message.contains("acknowledg")
}
