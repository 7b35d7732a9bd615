//! The steps of the demo. Each step sends requests and checks the responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::State;
use secrecy::SecretString;
use serde_json::{Value, json};
use timing::clock::{Clock, SystemClock};
use tokio::time::sleep;
use webhook_client::{SignedMessage, SigningSecret};

use crate::app::demo::buyer;
use crate::app::demo::client::{Answer, Client, Route};
use crate::app::demo::receiver::Receiver;
use crate::app::error::StartError;
use crate::app::first_start::{BUSINESS_ID, DemoAccounts, SERVICE_ID, demo_invoice};

/// The time that the demo waits for the notifications, and for the invoice in the buyer's inbox.
pub(super) const ARRIVAL_WAIT_MAX: Duration = Duration::from_secs(20);
const INVOICE_NO: &str = "DEMO0001";
/// The largest difference between the timestamp of a notification and the receiver's clock.
const SIGNATURE_TOLERANCE: Duration = Duration::from_mins(5);

/// The types of the events that the taxpayer's webhook must receive, in order of sequence.
const EXPECTED_EVENTS: [&str; 11] = [
    "invoice.created",
    "invoice.status-updated",
    "invoice.status-updated",
    "invoice.validated",
    "invoice.status-updated",
    "invoice.submitted",
    "invoice.status-updated",
    "invoice.transmitted",
    "invoice.acknowledged",
    "payment.status-updated",
    "api-key.rotated",
];

pub(super) struct Story {
    client: Client,
    receiver: Receiver,
    authority: Arc<State>,
    taxpayer_id: i64,
    integrator: SecretString,
    taxpayer: SecretString,
}

impl Story {
    pub(super) fn start(
        address: SocketAddr,
        accounts: &DemoAccounts,
        authority: Arc<State>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            client: Client::new(address)?,
            receiver: Receiver::start()?,
            authority,
            taxpayer_id: accounts.taxpayer_id.0,
            integrator: accounts.integrator_key.clone(),
            taxpayer: accounts.taxpayer_key.clone(),
        })
    }

    pub(super) async fn run(&self) -> Result<(), StartError> {
        let secret = self.set_up_webhook().await?;
        let irn = self.create_approved_invoice().await?;
        let buyer = self.onboard_buyer().await?;
        self.submit_and_transmit(&irn).await?;
        self.receive_invoice(&buyer, &irn).await?;
        self.confirm_receipt(&irn).await?;
        self.pay_invoice(&irn).await?;
        self.rotate_taxpayer_key().await?;
        self.check_authority_record(&irn)?;
        let outcome = self.check_notifications(&secret).await;
        self.receiver.stop().await;
        outcome
    }

    async fn set_up_webhook(&self) -> Result<SigningSecret, StartError> {
        let path = format!(
            "/v1/system-integrators/taxpayers/{}/webhook",
            self.taxpayer_id
        );
        let mut events = EXPECTED_EVENTS.to_vec();
        events.dedup();
        let body = json!({ "webhook_url": self.receiver.url(), "enabled_events": events });
        self.call_as_integrator(Route::new(Method::PUT, &path), Some(&body), 200)
            .await?;
        let answer = self
            .call_as_integrator(
                Route::new(Method::POST, &format!("{path}/secret")),
                None,
                200,
            )
            .await?;
        let text = answer.body["data"]["secret"].as_str().unwrap_or_default();
        SigningSecret::parse(text)
            .map_err(|fault| StartError::Demo(format!("the signing secret is unusable: {fault}")))
    }

    async fn create_approved_invoice(&self) -> Result<String, StartError> {
        let create = Route::new(Method::POST, "/v1/tax-payers/invoices");
        let answer = self
            .call_as_taxpayer(create, Some(&demo_invoice(INVOICE_NO)), 201)
            .await?;
        let irn = answer.body["data"]["irn"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let body = json!({
            "unique_no": irn, "unique_no_type": "IRN", "status": "approved", "remark": "checked by accounts",
        });
        self.call_as_taxpayer(
            Route::new(Method::PATCH, "/v1/tax-payers/invoices/update-status"),
            Some(&body),
            200,
        )
        .await?;
        Ok(irn)
    }

    async fn submit_and_transmit(&self, irn: &str) -> Result<(), StartError> {
        let submit = Route::new(Method::POST, "/v1/app/invoices/submit");
        self.call_as_taxpayer(submit, Some(&submission_body(irn)), 200)
            .await?;
        self.call_as_taxpayer(
            Route::new(Method::POST, "/v1/app/invoices/transmit"),
            Some(&json!({ "irn": irn })),
            200,
        )
        .await?;
        Ok(())
    }

    /// Confirms the receipt again. The authority refuses the repetition, but the service must still answer 200.
    async fn confirm_receipt(&self, irn: &str) -> Result<(), StartError> {
        let receipt = format!("/v1/app/invoices/transmit/{irn}/confirm-receipt");
        self.call_as_taxpayer(Route::new(Method::PATCH, &receipt), None, 200)
            .await?;
        let confirmed = self
            .call_as_taxpayer(
                Route::new(Method::GET, &format!("/v1/app/invoices/{irn}/confirm")),
                None,
                200,
            )
            .await?;
        expect(
            "the transmission is confirmed",
            confirmed.body["data"]["transmitted"] == json!(true),
        )?;
        expect(
            "it was delivered",
            confirmed.body["data"]["delivered"] == json!(true),
        )?;
        let run = self
            .call_as_taxpayer(
                Route::new(Method::GET, &format!("/v1/app/invoices/{irn}/run")),
                None,
                200,
            )
            .await?;
        expect(
            "the run has succeeded",
            run.body["data"]["state"] == json!("succeeded"),
        )
    }

    async fn pay_invoice(&self, irn: &str) -> Result<(), StartError> {
        let body = json!({
            "unique_no": irn, "unique_no_type": "IRN", "payment_status": "partial", "amount": 75,
            "reference": "TRF-1", "remark": "first instalment",
        });
        let path = "/v1/tax-payers/invoices/update-payment-status";
        let paid = self
            .call_as_taxpayer(Route::new(Method::PATCH, path), Some(&body), 200)
            .await?;
        expect(
            "the payment is partial",
            paid.body["data"]["payment_status"] == json!("PARTIAL"),
        )
    }

    async fn rotate_taxpayer_key(&self) -> Result<(), StartError> {
        let path = format!(
            "/v1/system-integrators/taxpayers/{}/api-key/rotate",
            self.taxpayer_id
        );
        self.call_as_integrator(Route::new(Method::POST, &path), None, 200)
            .await?;
        self.call_as_taxpayer(
            Route::new(Method::GET, "/v1/tax-payers/invoices"),
            None,
            401,
        )
        .await?;
        Ok(())
    }

    /// Checks that the authority has signed the invoice exactly once and has transmitted it.
    fn check_authority_record(&self, irn: &str) -> Result<(), StartError> {
        let record = self.authority.invoice(irn);
        let record = record
            .ok_or_else(|| StartError::Demo("the authority does not know the invoice".into()))?;
        println!(
            "\nThe authority signed the invoice {} time(s); transmitted: {}",
            record.sign_count, record.transmitted
        );
        expect("there is exactly one signature", record.sign_count == 1)?;
        expect("the authority has transmitted it", record.transmitted)
    }

    async fn check_notifications(&self, secret: &SigningSecret) -> Result<(), StartError> {
        let start = Instant::now();
        while self.receiver.received_requests().len() < EXPECTED_EVENTS.len()
            && start.elapsed() < ARRIVAL_WAIT_MAX
        {
            sleep(Duration::from_millis(50)).await;
        }
        let now = SystemClock.now();
        let mut events = Vec::new();
        println!("\nNotifications, each with a verified signature:");
        for received in self.receiver.received_requests() {
            let id = received.id.as_str();
            let timestamp = received.timestamp;
            let body = received.body.as_slice();
            let message = SignedMessage {
                id,
                timestamp,
                body,
            };
            let verified = message.verify(
                &received.signature,
                std::slice::from_ref(secret),
                now,
                SIGNATURE_TOLERANCE,
            );
            verified.map_err(|fault| StartError::Demo(format!("notification {id}: {fault}")))?;
            let body: Value = strict_json::from_untrusted(body).unwrap_or_default();
            events.push((
                body["sequence"].as_i64().unwrap_or_default(),
                body["type"].as_str().unwrap_or_default().to_owned(),
            ));
        }
        events.sort();
        events.dedup();
        for (sequence, kind) in &events {
            println!("  {sequence:>3} {kind}");
        }
        let kinds: Vec<_> = events.iter().map(|(_, kind)| kind.as_str()).collect();
        expect("every event arrived", kinds == EXPECTED_EVENTS)
    }

    pub(super) async fn call_with_taxpayer_key(
        &self,
        key: &SecretString,
        route: Route<'_>,
        body: Option<&Value>,
        status: u16,
    ) -> Result<Answer, StartError> {
        expect_status(self.client.call(route, key, body).await?, status)
    }

    async fn call_as_taxpayer(
        &self,
        route: Route<'_>,
        body: Option<&Value>,
        status: u16,
    ) -> Result<Answer, StartError> {
        self.call_with_taxpayer_key(&self.taxpayer, route, body, status)
            .await
    }

    pub(super) async fn call_as_integrator(
        &self,
        route: Route<'_>,
        body: Option<&Value>,
        status: u16,
    ) -> Result<Answer, StartError> {
        expect_status(
            self.client.call(route, &self.integrator, body).await?,
            status,
        )
    }
}

fn expect_status(answer: Answer, status: u16) -> Result<Answer, StartError> {
    if answer.status == status {
        return Ok(answer);
    }
    Err(StartError::Demo(format!(
        "expected {status}, came back with {} {}",
        answer.status, answer.body
    )))
}

pub(super) fn expect(expectation: &str, is_met: bool) -> Result<(), StartError> {
    if is_met {
        Ok(())
    } else {
        Err(StartError::Demo(format!("not as expected: {expectation}")))
    }
}

/// Returns the request body of Submit for the demo's invoice.
fn submission_body(irn: &str) -> Value {
    json!({
        "invoice_reference": INVOICE_NO,
        "business_id": BUSINESS_ID,
        "irn": irn,
        "issue_date": "2026-01-15",
        "due_date": "2026-02-15",
        "invoice_type_code": "381",
        "document_currency_code": "NGN",
        "invoice_category": "B2B",
        "accounting_supplier_party": {
            "party_name": "Demo Trading Ltd", "tin": "12345678-0001", "email": "accounts@demo.example",
            "postal_address": postal_address("1 Marina Road", "Lagos"),
        },
        "accounting_customer_party": {
            "party_name": "Retail Stores Ltd", "tin": buyer::TIN, "email": "buyer@retail.example",
            "postal_address": postal_address("5 Broad Street", "Abuja"),
        },
        "legal_monetary_total": {
            "line_extension_amount": 1000, "tax_exclusive_amount": 1000, "tax_inclusive_amount": 1075,
            "payable_amount": 1075,
        },
        "invoice_line": [{
            "hsn_code": "8471.30", "product_category": "8471.30", "invoiced_quantity": 2,
            "line_extension_amount": 1000,
            "item": { "name": "Laptop", "description": "A portable computer" },
            "price": { "price_amount": 500, "base_quantity": 1, "price_unit": "EA" },
        }],
        "note": format!("for service {SERVICE_ID}"),
    })
}

fn postal_address(street: &str, city: &str) -> Value {
    json!({
        "street_name": street, "city_name": city, "postal_zone": "100001", "country": "NG",
    })
}
