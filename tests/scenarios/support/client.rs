//! Requests to a service. A call without an answer is `None`: its effect is not known.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::patience::eventually;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const UPDATE_PAYMENT: &str = "/v1/tax-payers/invoices/update-payment-status";

fn instalment(irn: &str, reference: &str) -> Value {
    json!({
        "unique_no": irn, "unique_no_type": "IRN", "payment_status": "partial", "amount": 1,
        "reference": reference, "remark": "an instalment",
    })
}

/// One role at one address. What it starts goes on in the background.
#[derive(Clone)]
pub(crate) struct Client(testkit::client::Client);

/// An invoice as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Created {
    pub(crate) id: i64,
    pub(crate) irn: String,
    pub(crate) invoice_no: String,
}

impl Client {
    pub(crate) fn new(url: String, key: &str) -> Self {
        Self(testkit::client::Client::new(url).with_key(key))
    }

    pub(crate) fn key(&self) -> &str {
        self.0.key()
    }

    /// The same role at another address.
    pub(crate) fn at(&self, url: String) -> Self {
        Self(self.0.at(url))
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let request = self.request(&method, path);
        Answer::try_to(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    fn request(&self, method: &Method, path: &str) -> RequestBuilder {
        self.0
            .request(method.as_str(), path)
            .header("prefer", "respond-async")
    }

    /// Sends a body as it is; gives the status.
    pub(crate) async fn send_text(&self, method: Method, path: &str, text: &str) -> Option<u16> {
        let request = self
            .request(&method, path)
            .header("content-type", "application/json");
        Some(Answer::try_to(request.body(text.to_owned())).await?.status)
    }

    /// Posts a file of invoices, one in each line.
    pub(crate) async fn send_file(&self, path: &str, file: &str) -> Option<Answer> {
        let request = self
            .request(&Method::POST, path)
            .header("content-type", "application/x-ndjson");
        Answer::try_to(request.body(file.to_owned())).await
    }

    /// Sends a POST with more header lines, and of its body only this much.
    pub(crate) async fn begin(
        &self,
        path: &str,
        headers: &str,
        body: &[u8],
        length: usize,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.0.root().strip_prefix("http://").unwrap())
            .await
            .unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n{headers}content-length: {length}\r\n\r\n",
            self.key()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Whoever is refused meanwhile is not read to the end.
        let _ = stream.write_all(body).await;
        stream
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Answer> {
        self.call(Method::GET, path, None).await
    }

    /// Posts an invoice; 201 or 200 gives it back.
    pub(crate) async fn create(&self, invoice: &Value) -> Option<(u16, Created)> {
        let answer = self
            .call(Method::POST, "/v1/tax-payers/invoices", Some(invoice))
            .await?;
        let data = answer.body.get("data").filter(|_| answer.status < 300)?;
        let text = |field: &str| data[field].as_str().unwrap().to_owned();
        let id = data["id"].as_i64().unwrap();
        Some((
            answer.status,
            Created {
                id,
                irn: text("irn"),
                invoice_no: text("invoice_no"),
            },
        ))
    }

    pub(crate) async fn create_invoice(&self, invoice: &Value) -> Created {
        let (status, created) = self.create(invoice).await.expect("an answer to a create");
        assert_eq!(status, 201);
        created
    }

    /// Starts a run, which goes on in the background: 202. One that has succeeded already: 200.
    pub(crate) async fn start_run(&self, operation: &str, body: &Value) -> u16 {
        let path = format!("/v1/app/invoices/{operation}");
        let answer = self
            .call(Method::POST, &path, Some(body))
            .await
            .expect("an answer to a run");
        assert!(
            [200, 202].contains(&answer.status),
            "{operation}: {answer:?}"
        );
        answer.status
    }

    pub(crate) async fn run(&self, irn: &str, operation: &str) -> Option<Value> {
        let answer = self
            .get(&format!("/v1/app/invoices/{irn}/run?operation={operation}"))
            .await?;
        (answer.status == 200).then(|| answer.body["data"].clone())
    }

    /// Waits until the run of this operation has succeeded, and asks for nothing but its state.
    pub(crate) async fn wait_until_succeeded(&self, irn: &str, operation: &str) -> Value {
        eventually(&format!("the end of {operation} of {irn}"), async || {
            let run = self.run(irn, operation).await?;
            let is_it = run["operation"] == operation;
            let state = run["state"].as_str().unwrap_or_default();
            assert!(
                !is_it || ["running", "waiting", "succeeded"].contains(&state),
                "the run ended: {run}"
            );
            (is_it && state == "succeeded").then_some(run)
        })
        .await
    }

    pub(crate) async fn set_status(&self, irn: &str, status: &str) -> Option<Answer> {
        let body = json!({ "unique_no": irn, "unique_no_type": "IRN", "status": status, "remark": "a move" });
        self.call(
            Method::PATCH,
            "/v1/tax-payers/invoices/update-status",
            Some(&body),
        )
        .await
    }

    /// A partial payment of 1.00.
    pub(crate) async fn pay_one(&self, irn: &str, reference: &str) -> Option<Answer> {
        self.call(
            Method::PATCH,
            UPDATE_PAYMENT,
            Some(&instalment(irn, reference)),
        )
        .await
    }

    /// The same under an `Idempotency-Key`, which is its reference.
    pub(crate) async fn pay_one_once(&self, irn: &str, reference: &str) -> Option<Answer> {
        let request = self
            .request(&Method::PATCH, UPDATE_PAYMENT)
            .header("idempotency-key", reference);
        Answer::try_to(request.json(&instalment(irn, reference))).await
    }

    /// The whole event log.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let path = format!("/v1/tax-payers/events?limit=1000&after={}", events.len());
            let answer = self.get(&path).await.expect("the feed");
            assert_eq!(answer.status, 200, "{answer:?}");
            let page = &answer.body["data"];
            events.extend(page["events"].as_array().unwrap().iter().cloned());
            if page["has_more"] == false {
                return events;
            }
        }
    }

    /// Relays a payment status; the run goes on in the background.
    pub(crate) async fn relay_payment(&self, irn: &str, status: &str) -> u16 {
        let path = format!("/v1/app/invoices/{irn}/update-payment-status");
        let body = json!({ "payment_status": status });
        self.call(Method::PATCH, &path, Some(&body))
            .await
            .expect("an answer to a payment")
            .status
    }

    /// Sends a PATCH with an `Idempotency-Key`, and waits for what becomes of it.
    pub(crate) async fn patch_once(
        &self,
        key: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let request = self.0.request("PATCH", path).header("idempotency-key", key);
        Answer::try_to(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// The workflow status of an invoice.
    pub(crate) async fn status(&self, created: &Created) -> String {
        let path = format!("/v1/tax-payers/invoices/{}", created.id);
        let answer = self.get(&path).await.expect("an invoice");
        answer.body["data"]["status"].as_str().unwrap().to_owned()
    }
}

/// The numbers of the log must follow each other without a gap.
pub(crate) fn assert_gapless(events: &[Value]) {
    for (event, sequence) in events.iter().zip(1..) {
        assert_eq!(event["sequence"], json!(sequence), "the log has a gap");
    }
}

/// The types of the events of one invoice, in the order of the log.
pub(crate) fn kinds<'a>(events: &'a [Value], irn: &str) -> Vec<&'a str> {
    events
        .iter()
        .filter(|event| event["irn"] == irn)
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}
