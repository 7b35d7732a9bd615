//! The cases that are measured through HTTP: the requests of each case, and the figure that bounds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::{BULK, INVOICES, Integrator, SUBMIT, Taxpayer, UPDATE, UPDATE_PAYMENT};

use crate::load::Requests;
use crate::service::onboard;

/// The number of requests that run at the same time while the cases are prepared.
const PREPARED_AT_ONCE: usize = 32;
const INVOICES_PER_BULK: usize = 1_000;
/// The placeholder in a body that each request replaces by its own number.
pub(crate) const NUMBER_PLACEHOLDER: &str = "@NUMBER@";

/// The figure, measured in the same run, that a case cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ceiling {
    /// The rate at which 64 writers write the rows of creates straight to the database, with one create per commit.
    Rows,
    /// Like `Rows`, but with 32 creates per commit.
    BatchedRows,
    /// The rate of `GET /health/live`, which does nothing.
    Live,
    /// A quarter of the rate at which the simulator of the authority answers calls, because a Submit makes four calls.
    Authority,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) ceiling: Ceiling,
    /// The number of items, such as invoices, in one request.
    pub(crate) items: usize,
    pub(crate) connections: usize,
    pub(crate) requests: Requests,
}

/// The taxpayers of the cases, and an approved invoice of each.
pub(crate) struct Prepared {
    pub(crate) onboarded_per_second: f64,
    taxpayers: Vec<Taxpayer>,
    invoices: Vec<Value>,
    /// An approved invoice whose amount no measurement can use up.
    unpaid: Value,
}

impl Prepared {
    /// Onboards the taxpayers as an integrator does, and creates and approves their invoices.
    pub(crate) async fn prepare(
        client: &Client,
        integrator: &Integrator,
        taxpayers: usize,
    ) -> Self {
        let begun = Instant::now();
        let count = u32::try_from(taxpayers).unwrap();
        let making = stream::iter(0..taxpayers).map(async |_| onboard(client, integrator).await);
        let taxpayers: Vec<_> = making.buffered(PREPARED_AT_ONCE).collect().await;
        let onboarded_per_second = f64::from(count) / begun.elapsed().as_secs_f64();
        let making = stream::iter(&taxpayers).map(async |taxpayer| {
            taxpayer.invoice(&documents::invoice_numbered(DRAFT)).await;
            create_approved(taxpayer, "1000", "1000").await
        });
        let invoices = making.buffered(PREPARED_AT_ONCE).collect().await;
        let unpaid = create_approved(&taxpayers[0], "1000000", "1000000").await;
        Self {
            onboarded_per_second,
            taxpayers,
            invoices,
            unpaid,
        }
    }

    pub(crate) fn cases(&self) -> Vec<Case> {
        let case = |name, ceiling, requests| Case {
            name,
            ceiling,
            items: 1,
            connections: 64,
            requests,
        };
        vec![
            self.many_creates(),
            case("create, 1 taxpayer", Ceiling::Rows, self.create_requests(1)),
            self.few_creates_at_once("create, 2 connections"),
            self.bulk_creates(),
            case("get by id", Ceiling::Live, self.get_requests()),
            case("list, first page", Ceiling::Live, self.list_requests()),
            case("update", Ceiling::Rows, self.update_requests()),
            case(
                "payments, 1 invoice",
                Ceiling::BatchedRows,
                self.payment_requests(1),
            ),
            case(
                "payments, many invoices",
                Ceiling::Rows,
                self.payment_requests(self.taxpayers.len()),
            ),
            Case {
                connections: 128,
                ..case(
                    "submit, four steps",
                    Ceiling::Authority,
                    self.submit_requests(),
                )
            },
        ]
    }

    /// Creates of many taxpayers, which therefore hardly ever wait for each other.
    pub(crate) fn many_creates(&self) -> Case {
        Case {
            name: "create, many taxpayers",
            ceiling: Ceiling::Rows,
            items: 1,
            connections: 64,
            requests: self.create_requests(self.taxpayers.len()),
        }
    }

    pub(crate) fn few_creates_at_once(&self, name: &'static str) -> Case {
        let requests = self.create_requests(self.taxpayers.len());
        Case {
            name,
            ceiling: Ceiling::Rows,
            items: 1,
            connections: 2,
            requests,
        }
    }

    pub(crate) fn bulk_creates(&self) -> Case {
        let name = "bulk of 1,000, invoices";
        let ceiling = Ceiling::BatchedRows;
        Case {
            name,
            ceiling,
            items: INVOICES_PER_BULK,
            connections: 4,
            requests: self.bulk_requests(),
        }
    }

    /// Returns the requests that are measured beside the neighbours, each with its name.
    pub(crate) fn requests_beside_neighbours(&self) -> [(&'static str, Requests); 2] {
        [
            ("create", self.create_requests(self.taxpayers.len())),
            ("submit", self.submit_requests()),
        ]
    }

    fn key(&self, number: usize) -> String {
        self.taxpayers[number % self.taxpayers.len()]
            .key()
            .to_owned()
    }

    fn keys(&self, taxpayers: usize) -> Vec<String> {
        (0..taxpayers).map(|number| self.key(number)).collect()
    }

    fn create_requests(&self, taxpayers: usize) -> Requests {
        let keys = self.keys(taxpayers);
        let body = invoice_with_three_lines().to_string();
        let prefix = unused_number_prefix();
        Arc::new(move |number| {
            let body = body.replace(NUMBER_PLACEHOLDER, &format!("{prefix}{number}"));
            request("POST", INVOICES, &keys[number % keys.len()], body)
        })
    }

    fn bulk_requests(&self) -> Requests {
        let keys = self.keys(self.taxpayers.len());
        let one = invoice_with_three_lines().to_string();
        let prefix = unused_number_prefix();
        Arc::new(move |number| {
            let numbered = (0..INVOICES_PER_BULK)
                .map(|index| one.replace(NUMBER_PLACEHOLDER, &format!("{prefix}{number}I{index}")));
            let body = format!(
                r#"{{"invoices":[{}]}}"#,
                numbered.collect::<Vec<_>>().join(",")
            );
            request("POST", BULK, &keys[number % keys.len()], body)
        })
    }

    fn get_requests(&self) -> Requests {
        let paths: Vec<_> = self
            .invoices
            .iter()
            .map(|invoice| format!("{INVOICES}/{}", invoice["id"]))
            .collect();
        let keys = self.keys(self.taxpayers.len());
        Arc::new(move |number| {
            let index = number % paths.len();
            request("GET", &paths[index], &keys[index], String::new())
        })
    }

    fn list_requests(&self) -> Requests {
        let keys = self.keys(self.taxpayers.len());
        Arc::new(move |number| request("GET", INVOICES, &keys[number % keys.len()], String::new()))
    }

    /// Each update changes the quantity, because an update that changes nothing would write nothing.
    fn update_requests(&self) -> Requests {
        let fresh = self
            .taxpayers
            .iter()
            .map(|taxpayer| documents::irn(taxpayer, DRAFT));
        let bodies: Vec<_> = fresh
            .map(|irn| {
                let body = documents::update(&json!({ "irn": irn }));
                with(&body, "lines.0.quantity", json!(NUMBER_PLACEHOLDER))
                    .to_string()
                    .replace(&quote(NUMBER_PLACEHOLDER), NUMBER_PLACEHOLDER)
            })
            .collect();
        let keys = self.keys(self.taxpayers.len());
        Arc::new(move |number| {
            let index = number % bodies.len();
            let body =
                bodies[index].replace(NUMBER_PLACEHOLDER, &(1 + number / bodies.len()).to_string());
            request("PUT", UPDATE, &keys[index], body)
        })
    }

    fn payment_requests(&self, invoices: usize) -> Requests {
        let targets = if invoices == 1 {
            std::slice::from_ref(&self.unpaid)
        } else {
            &self.invoices
        };
        let body = |invoice: &Value| {
            let body = json!({
                "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial", "remark": "part",
            });
            with(&body, "amount", exact("0.01")).to_string()
        };
        let bodies: Vec<_> = targets.iter().map(body).collect();
        let keys = self.keys(invoices);
        Arc::new(move |number| {
            let index = number % bodies.len();
            request("PATCH", UPDATE_PAYMENT, &keys[index], bodies[index].clone())
        })
    }

    fn submit_requests(&self) -> Requests {
        let bodies: Vec<_> = self
            .taxpayers
            .iter()
            .map(|taxpayer| documents::submission(taxpayer, NUMBER_PLACEHOLDER).to_string())
            .collect();
        let keys = self.keys(self.taxpayers.len());
        let prefix = unused_number_prefix();
        Arc::new(move |number| {
            let index = number % bodies.len();
            let body = bodies[index].replace(NUMBER_PLACEHOLDER, &format!("{prefix}{number}"));
            request("POST", SUBMIT, &keys[index], body)
        })
    }
}

/// The invoice number of the draft of each taxpayer that the updates change.
const DRAFT: &str = "DRAFT";

/// Creates an invoice over this amount and approves it.
async fn create_approved(taxpayer: &Taxpayer, unit_price: &str, quantity: &str) -> Value {
    let invoice = taxpayer
        .invoice(&documents::invoice_with_price(unit_price, quantity))
        .await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200)
        .data()
        .clone()
}

/// An invoice with three lines.
fn invoice_with_three_lines() -> Value {
    let invoice = documents::invoice_numbered(NUMBER_PLACEHOLDER);
    let line = &invoice["invoice_lines"][0];
    let lines = ["LAP-1", "LAP-2", "LAP-3"].map(|item| with(line, "item_no", json!(item)));
    with(&invoice, "invoice_lines", json!(lines))
}

/// Returns a prefix for invoice numbers that no other case of this process uses.
pub(crate) fn unused_number_prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("S{}N", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

pub(crate) fn request(method: &str, path: &str, key: &str, body: String) -> Request<Full<Bytes>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost");
    let request = request
        .header("x-api-key", key)
        .header("content-type", "application/json");
    request.body(Full::new(Bytes::from(body))).unwrap()
}
