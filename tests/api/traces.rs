//! Traces: one from a request to the deliveries that it causes, as a collector of OpenTelemetry gets it, and the search that
//! finds what a request caused.

use std::sync::LazyLock;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, submission};
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::{Endpoint, Receiver, Request, Response};
use testkit::roles::{Operator, SUBMIT, Taxpayer};

use crate::support::world::World;

/// The spans of a process go to one collector, so both databases have the same.
static COLLECTOR: LazyLock<Receiver<Collector>> =
    LazyLock::new(|| Receiver::serve(Collector::default()));

/// The span of the caller in the tests' requests.
const CALLER: &str = "00f067aa0ba902b7";

#[derive(Default)]
struct Collector {
    spans: Vec<Span>,
}

impl Endpoint for Collector {
    fn receive(&mut self, request: &Request<'_>) -> Response {
        if request.path() != "/v1/traces" {
            return Response::status(404);
        }
        let Ok(export) = ExportTraceServiceRequest::decode(request.body) else {
            return Response::status(400);
        };
        let scopes = export
            .resource_spans
            .into_iter()
            .flat_map(|resource| resource.scope_spans);
        self.spans.extend(scopes.flat_map(|scope| scope.spans));
        Response::status(200)
    }
}

/// The spans of one trace.
struct Trace(Vec<Span>);

impl Trace {
    fn collected(id: &str) -> Self {
        let id = hex::decode(id).unwrap();
        let spans = COLLECTOR.with(|collector| collector.spans.clone());
        Self(
            spans
                .into_iter()
                .filter(|span| span.trace_id == id)
                .collect(),
        )
    }

    fn find_by_name(&self, start: &str) -> Option<&Span> {
        self.0.iter().find(|span| span.name.starts_with(start))
    }

    /// The names of the spans above one, from the nearest on. The last one's parent is the caller's span.
    fn above(&self, start: &str) -> Vec<&str> {
        let mut names = Vec::new();
        let mut span = self.find_by_name(start).unwrap();
        while let Some(parent) = self
            .0
            .iter()
            .find(|other| other.span_id == span.parent_span_id)
        {
            names.push(parent.name.as_str());
            span = parent;
        }
        assert_eq!(hex::encode(&span.parent_span_id), CALLER, "{names:?}");
        names
    }
}

fn new_trace() -> String {
    format!(
        "{:032x}",
        (0xACE_u128 << 64) | u128::from(documents::number())
    )
}

async fn receiving(world: &World, receiver: &Receiver, event: &str) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &[event])
        .await
        .expect_status(200);
    taxpayer
}

async fn search(operator: &Operator, text: &str) -> Vec<Value> {
    let found = operator.get(&format!("/ops/search?q={text}")).await;
    let data = found.expect_status(200).data().clone();
    data.as_array().unwrap().clone()
}

fn kinds(found: &[Value]) -> Vec<&str> {
    let kinds = found.iter().map(|one| one["kind"].as_str().unwrap());
    kinds.collect()
}

#[each_database(&[("TELEMETRY__OTLP_ENDPOINT", COLLECTOR.url_at("").as_str())])]
async fn one_trace_leads_from_the_request_to_the_authority_and_the_delivery(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = receiving(world, &receiver, "invoice.submitted").await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let trace = new_trace();
    let request = taxpayer
        .request("POST", SUBMIT)
        .header("traceparent", format!("00-{trace}-{CALLER}-01"));
    let answer = Answer::to(request.json(&submission(&taxpayer, no))).await;
    let answer = answer.expect_status(200);
    assert!(
        answer
            .header("traceresponse")
            .starts_with(&format!("00-{trace}-")),
        "{}",
        answer.header("traceresponse")
    );
    let delivered = receiver.wait_for(1).await.remove(0);
    let sent = delivered.header("traceparent");
    assert!(sent.starts_with(&format!("00-{trace}-")), "{sent}");
    let collected = eventually("the spans of the trace", async || {
        let collected = Trace::collected(&trace);
        let is_whole = ["POST ", "delivery ", "run ", "authority sign", "commit"]
            .iter()
            .all(|start| collected.find_by_name(start).is_some());
        is_whole.then_some(collected)
    })
    .await;

    let route = format!("POST {SUBMIT}");
    let request = collected.find_by_name("POST ").unwrap();
    assert_eq!(
        (request.name.as_str(), request.kind()),
        (route.as_str(), SpanKind::Server)
    );
    let run = ["run submit", "command open-run", &route];
    assert_eq!(collected.above("authority sign"), run);
    assert_eq!(collected.above("taxpayer actor"), run[1..]);
    assert_eq!(collected.above("commit"), run[1..]);
    let mut delivery = vec!["command record-steps"];
    delivery.extend(run);
    assert_eq!(collected.above("delivery invoice.submitted"), delivery);
    for span in &collected.0 {
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        for attribute in &span.attributes {
            let value = attribute
                .value
                .as_ref()
                .and_then(|value| value.value.as_ref());
            if let Some(Attribute::StringValue(text)) = value {
                let is_secret = text.contains(taxpayer.key());
                assert!(!text.contains(no) && !is_secret, "{attribute:?}");
            }
        }
    }
    let metrics = world.new_operator().await.get("/metrics").await;
    let line = metrics
        .text
        .lines()
        .find_map(|line| line.strip_prefix("einvoice_trace_spans_exported_total "));
    assert!(line.is_some_and(|count| count != "0"), "{line:?}");
}

#[each_database]
async fn a_request_that_begins_a_trace_is_found_by_its_id_with_what_it_caused(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = receiving(world, &receiver, "invoice.created").await;
    let answer = taxpayer.create_invoice(&documents::invoice()).await;
    let request_id = answer.header("x-request-id").to_owned();
    let trace_id = request_id.replace('-', "");
    let delivered = receiver.wait_for(1).await.remove(0);
    let sent = delivered.header("traceparent");
    assert!(sent.starts_with(&format!("00-{trace_id}-")), "{sent}");
    let operator = world.new_operator().await;
    for text in [&request_id, &trace_id] {
        let found = search(&operator, text).await;
        assert_eq!(kinds(&found), ["event"], "{text}");
        let title = found[0]["title"].as_str().unwrap();
        assert!(title.starts_with("invoice.created"), "{title}");
    }
}

#[each_database]
async fn a_trace_of_the_caller_finds_runs_events_and_audited_actions(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let trace = new_trace();
    let header = format!("00-{trace}-{CALLER}-01");
    let request = taxpayer
        .request("POST", SUBMIT)
        .header("traceparent", &header);
    Answer::to(request.json(&submission(&taxpayer, no)))
        .await
        .expect_status(200);
    let operator = world.new_operator().await;
    let all = search(&operator, &trace).await;
    let kinds_found = kinds(&all);
    assert_eq!(kinds_found[0], "run", "{all:?}");
    assert!(
        kinds_found[1..].iter().all(|kind| *kind == "event") && kinds_found.len() > 1,
        "{all:?}"
    );
    assert!(
        all.iter().any(|one| one["title"]
            .as_str()
            .is_some_and(|title| title.starts_with("invoice.submitted"))),
        "{all:?}"
    );

    let other = new_trace();
    let header = format!("00-{other}-{CALLER}-01");
    for act in ["pause", "resume"] {
        let path = format!("/ops/taxpayers/{}/{act}", taxpayer.id);
        let request = operator
            .request("POST", &path)
            .header("traceparent", &header);
        let answer = Answer::to(request.json(&json!({ "reason": "a test" }))).await;
        answer.expect_status(200);
    }
    let integrator = world.integrator();
    let path = format!("/v1/system-integrators/taxpayers/{}/webhook", taxpayer.id);
    let request = integrator
        .request("PUT", &path)
        .header("traceparent", &header);
    let body = json!({ "webhook_url": Receiver::start().url(), "enabled_events": [] });
    Answer::to(request.json(&body)).await.expect_status(200);
    let acts = search(&operator, &other).await;
    let audited: Vec<_> = acts
        .iter()
        .filter(|one| one["kind"] == "audit_entry")
        .filter_map(|one| one["title"].as_str()?.split(' ').next())
        .collect();
    let expected = ["taxpayer.pause", "taxpayer.resume", "webhook.update"];
    assert_eq!(audited, expected, "{acts:?}");
    assert!(search(&operator, &new_trace()).await.is_empty());
    let anonymous = world
        .anonymous()
        .get(&format!("/ops/search?q={trace}"))
        .await;
    anonymous.expect_status(401);
}
