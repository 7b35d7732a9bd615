//! The faults of drills. If the authority must fail, the drill adds a fault to the simulator of the authority. It then
//! calls the authority continuously, because a fault that no call meets causes no incident.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use timing::clock::{Clock, SystemClock};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::app::drill::receiver::Receiver;
use crate::app::drill::target::{CallerRole, Target};
use crate::app::drill::{DrillError, DrillFault, IncidentExpectation};

/// The number of tasks that call the authority during a fault, and the pause of each task after a call.
const CALLERS: usize = 4;
const CALL_INTERVAL: Duration = Duration::from_millis(500);
const INVOICES_PATH: &str = "/v1/tax-payers/invoices";
/// The delay of each answer of a slow authority, in milliseconds.
const SLOW_MS: u64 = 3_000;
/// The longest time that a fault lasts. The simulator then ends it, even if the drill cannot.
const FAULT_S_MAX: u64 = 3_600;

/// A fault that a drill has caused, with the data that is needed to end it.
pub(super) struct RunningFault {
    fault: DrillFault,
    callers: Vec<JoinHandle<()>>,
    receiver: Option<Receiver>,
}

impl DrillFault {
    pub(super) fn expectation(self) -> IncidentExpectation {
        let (incident, report_wait_s, end_wait_s) = match self {
            // The incident stays for another `authority.outage_clear_after_s` after the authority answers again.
            Self::Outage => ("authority-out", 30, 300),
            Self::Slow => ("authority-slow", 30, 60),
            Self::Throttle => ("authority-throttles", 30, 60),
            Self::Key => ("authority-refuses-key", 30, 60),
            // An endpoint is parked after failing for `webhooks.circuit_open_after_s`, and then probed at growing
            // intervals.
            Self::Receiver => ("endpoints-parked", 180, 400),
            Self::Panic => ("work-quarantined", 30, 30),
        };
        IncidentExpectation {
            incident,
            report_wait_max: Duration::from_secs(report_wait_s),
            end_wait_max: Duration::from_secs(end_wait_s),
        }
    }

    /// Returns the fault to add to the simulator; `None` if the authority has no part in the fault.
    fn simulator_fault(self) -> Option<Value> {
        let kind = match self {
            Self::Outage => "outage",
            Self::Slow => "latency",
            Self::Throttle => "throttled",
            Self::Key => "wrong_key",
            Self::Receiver | Self::Panic => return None,
        };
        let latency_ms = (self == Self::Slow).then_some(SLOW_MS);
        Some(json!({ "kind": kind, "for_s": FAULT_S_MAX, "latency_ms": latency_ms }))
    }
}

impl RunningFault {
    pub(super) async fn start(fault: DrillFault, target: &Target) -> Result<Self, DrillError> {
        let mut running = Self {
            fault,
            callers: Vec::new(),
            receiver: None,
        };
        if let Some(simulator_fault) = fault.simulator_fault() {
            let created = target
                .call(
                    CallerRole::Taxpayer,
                    Method::POST,
                    INVOICES_PATH,
                    Some(&invoice_body()),
                )
                .await?;
            // Each request to this path makes the service call the authority, with the service's own key.
            let irn = created["data"]["irn"].as_str().unwrap_or_default();
            let path = format!("/v1/app/invoices/{irn}/confirm");
            target
                .request_simulator_faults(Method::POST, Some(&simulator_fault))
                .await?;
            running.callers = (0..CALLERS)
                .map(|_| call_authority(target, &path))
                .collect();
        } else if fault == DrillFault::Panic {
            request_panic(target).await?;
        } else {
            let receiver = Receiver::start()?;
            set_webhook(target, &receiver.url(), &["invoice.created"]).await?;
            running.receiver = Some(receiver);
            running.callers = vec![create_invoices(target)];
        }
        Ok(running)
    }

    /// Ends the fault, and does what the incident asks the operator to do.
    pub(super) async fn end(&self, target: &Target) -> Result<(), DrillError> {
        if self.fault.simulator_fault().is_some() {
            target
                .request_simulator_faults(Method::DELETE, None)
                .await?;
        }
        if let Some(receiver) = &self.receiver {
            receiver.start_accepting();
        }
        self.resolve_incident(target).await
    }

    /// Does what the incident asks the operator to do.
    pub(super) async fn resolve_incident(&self, target: &Target) -> Result<(), DrillError> {
        if self.fault == DrillFault::Panic {
            drop_quarantined(target).await?;
        }
        Ok(())
    }

    /// Stops the calls to the authority, and the notifications to the receiver of the drill.
    pub(super) async fn stop_calls(&self, target: &Target) -> Result<(), DrillError> {
        self.callers.iter().for_each(JoinHandle::abort);
        if let Some(receiver) = &self.receiver {
            set_webhook(target, &receiver.url(), &[]).await?;
            receiver.stop().await;
        }
        Ok(())
    }
}

fn call_authority(target: &Target, path: &str) -> JoinHandle<()> {
    let (target, path) = (target.clone(), path.to_owned());
    actix_rt::spawn(async move {
        loop {
            target
                .try_call(CallerRole::Taxpayer, Method::GET, &path, None)
                .await;
            sleep(CALL_INTERVAL).await;
        }
    })
}

fn create_invoices(target: &Target) -> JoinHandle<()> {
    let target = target.clone();
    actix_rt::spawn(async move {
        loop {
            target
                .try_call(
                    CallerRole::Taxpayer,
                    Method::POST,
                    INVOICES_PATH,
                    Some(&invoice_body()),
                )
                .await;
            sleep(CALL_INTERVAL * 4).await;
        }
    })
}

/// Makes the next command of the taxpayer panic twice, so that it is quarantined.
async fn request_panic(target: &Target) -> Result<(), DrillError> {
    let body = json!({ "taxpayer_id": target.required_taxpayer()?, "panics": 2 });
    target
        .call(
            CallerRole::Operator,
            Method::POST,
            "/ops/development/panic",
            Some(&body),
        )
        .await?;
    target
        .try_call(
            CallerRole::Taxpayer,
            Method::POST,
            INVOICES_PATH,
            Some(&invoice_body()),
        )
        .await;
    Ok(())
}

/// Drops the commands of the taxpayer that are in quarantine.
async fn drop_quarantined(target: &Target) -> Result<(), DrillError> {
    let taxpayer = target.required_taxpayer()?;
    let path = format!("/ops/quarantine?state=kept&kind=command&taxpayer_id={taxpayer}");
    let quarantined_work = target
        .call(CallerRole::Operator, Method::GET, &path, None)
        .await?;
    let works = quarantined_work["data"]["data"]
        .as_array()
        .into_iter()
        .flatten();
    for path in works.filter_map(|work| work["drop"].as_str()) {
        target
            .try_call(CallerRole::Operator, Method::POST, path, Some(&json!({})))
            .await;
    }
    Ok(())
}

async fn set_webhook(target: &Target, url: &str, events: &[&str]) -> Result<(), DrillError> {
    let path = format!(
        "/v1/system-integrators/taxpayers/{}/webhook",
        target.required_taxpayer()?
    );
    let body = json!({ "webhook_url": url, "enabled_events": events });
    target
        .call(CallerRole::Integrator, Method::PUT, &path, Some(&body))
        .await
        .map(drop)
}

/// Returns the request body of an invoice with an unused number.
fn invoice_body() -> Value {
    json!({
        "invoice_no": format!("DRILL{}", SystemClock.now().as_millisecond()),
        "invoice_category": "B2B",
        "invoice_type_code": "381",
        "invoice_date": "2026-01-15",
        "due_date": "2026-02-15",
        "currency": "NGN",
        "customer": {
            "no": "C-DRILL", "name": "Drill Stores Ltd", "email": "drill@drill.example", "tin": "87654321-0001",
            "business_description": "Retail", "address_street_name": "5 Broad Street", "address_city": "Abuja",
            "address_state": "FCT", "address_postal_code": "900001", "address_country": "NG",
        },
        "invoice_lines": [{
            "item_name": "Bucket", "item_no": "BUCKET", "item_type": "PRODUCT", "unit_price": 500, "quantity": 2,
            "price_unit": "EA", "tax_category": "STANDARD_VAT", "product_category": "8471.30",
        }],
    })
}
