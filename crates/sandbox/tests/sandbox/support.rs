//! A started simulator and a client for it.

use jiff::tz::Offset;
use reqwest::{Client, Method, RequestBuilder, Response};
use sandbox::{FaultOrder, InvoiceSheet, Sandbox, Settings};
use serde_json::{Value, json};
use testkit::documents::{self, Registration};
use testkit::edit::with;

pub(crate) use testkit::documents::CUSTOMER_TIN;

pub(crate) const API_KEY: &str = "3f6a1c9e-5b0d-4b52-9a55-0a4d1c9f7e21";
pub(crate) const API_SECRET: &str = "secret of the tests";
pub(crate) const BUSINESS: &str = "bb99420d-d6bb-422c-b371-b9f6d6009aae";
pub(crate) const IRN: &str = "INV001-94AD90FB-20260115";
pub(crate) const SUPPLIER_TIN: &str = "11111111-0001";
pub(crate) const AMBIGUOUS: &str =
    "unable to complete this operation at this time, kindly try again later";

pub(crate) struct Authority {
    pub(crate) sandbox: Sandbox,
    client: Client,
}

/// A status and a body.
pub(crate) type Answer = (u16, Value);

impl Authority {
    pub(crate) async fn start() -> Self {
        Self::with_seed(1).await
    }

    pub(crate) async fn with_seed(seed: u64) -> Self {
        Self::with_zone(seed, Offset::UTC).await
    }

    pub(crate) async fn with_zone(seed: u64, utc_offset: Offset) -> Self {
        let settings = Settings {
            bind: "127.0.0.1:0".into(),
            api_key: API_KEY.into(),
            api_secret: API_SECRET.into(),
            seed,
            utc_offset,
        };
        let sandbox = sandbox::start(settings).await.unwrap();
        Self {
            sandbox,
            client: Client::new(),
        }
    }

    /// Returns a request to the authority with the right keys.
    pub(crate) fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, &format!("/api/v1{path}"))
            .header("x-api-key", API_KEY)
            .header("x-api-secret", API_SECRET)
    }

    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.sandbox.base_url()))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        read(self.call(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        read(
            self.call(Method::POST, path)
                .json(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        read(
            self.call(Method::PATCH, path)
                .json(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn try_sign(&self, irn: &str) -> reqwest::Result<Response> {
        self.call(Method::POST, "/invoice/sign")
            .json(&document(irn))
            .send()
            .await
    }

    pub(crate) async fn sign(&self, irn: &str) -> Answer {
        read(self.try_sign(irn).await.unwrap()).await
    }

    pub(crate) async fn control(&self, method: Method, path: &str, body: &Value) -> Answer {
        read(
            self.bare(method, &format!("/sandbox{path}"))
                .json(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) fn fault(&self, order: FaultOrder) {
        self.sandbox.state().add_fault(order).unwrap();
    }

    pub(crate) fn sheet(&self, irn: &str) -> InvoiceSheet {
        self.sandbox.state().invoice(irn).unwrap()
    }
}

pub(crate) async fn read(response: Response) -> Answer {
    let status = response.status().as_u16();
    (
        status,
        strict_json::from_untrusted(&response.bytes().await.unwrap()).unwrap(),
    )
}

/// Returns a valid document with this IRN, which the authority would sign.
pub(crate) fn document(irn: &str) -> Value {
    let registration = Registration {
        service_id: "94AD90FB".to_owned(),
        business_id: BUSINESS.to_owned(),
        tin: SUPPLIER_TIN.to_owned(),
    };
    let document = documents::validation(&registration, "INV001");
    with(
        &with(&document, "irn", json!(irn)),
        "payment_status",
        json!("PENDING"),
    )
}
