//! The state that all handlers of a process share: the store, the actors, the authority, and the settings of the API.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HOST;
use actix_web::{HttpRequest, web};
use address_policy::AddressPolicy;
use authority_client::Authority;
use database::StoreError;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use secrecy::SecretString;
use supervision::Tree;
use timing::clock::SharedClock;

use crate::actors::delivery::DeliveryDeps;
use crate::actors::inbound::InboundInvoices;
use crate::actors::key_usage::KeyUsage;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::actors::reconciliation::ReconciliationHandle;
use crate::actors::request_log::RequestLog;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::access::session::SessionLimits;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::mail_links::MailLinks;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reconciliation::day::day_at;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::forms::submission::SigningTerms;
use crate::http::health::Health;
use crate::http::idempotency::in_progress::InProgressRequests;
use crate::http::incidents::log::IncidentLog;
use crate::http::incidents::schedules::Schedules;
use crate::http::limits::AnswerMemory;
use crate::http::limits::BodyMemory;
use crate::http::limits::ConcurrentCalls;
use crate::http::limits::PageLimits;
use crate::http::limits::PrintingLimit;
use crate::http::limits::RateLimits;
use crate::http::limits::SignInAttempts;
use crate::http::listener::{Audience, Listener};
use crate::http::metrics::database_counts::CachedCounts;
use crate::http::metrics::traffic::Traffic;
use crate::http::middleware::client_address::TrustedProxies;
use crate::http::password::Passwords;
use crate::http::remembered_operators::RememberedOperators;
use crate::http::replicas::board::ReplicaBoard;
use crate::http::respond::error::ApiError;
use crate::http::stopping::StopSignal;
use crate::store::Store;
use crate::store::webhooks::integrations;

/// The shared state, which handlers receive as `web::Data<ApiState>`.
pub struct ApiState {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub pipeline: Arc<PipelineHandle>,
    pub inbound: Arc<InboundInvoices>,
    pub reconciliations: Arc<ReconciliationHandle>,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub webhook_urls: AddressPolicy,
    /// Sends test messages to a taxpayer's webhook.
    pub delivery: Arc<DeliveryDeps>,
    pub settings: ApiSettings,
    pub health: Health,
    pub database_counts: CachedCounts,
    pub incidents: IncidentLog,
    pub replicas: ReplicaBoard,
    pub schedules: Schedules,
    pub remembered_operators: RememberedOperators,
    pub traffic: Traffic,
    pub limits: RateLimits,
    pub key_usage: Arc<KeyUsage>,
    pub request_log: Arc<RequestLog>,
    pub passwords: Passwords,
    pub calls: ConcurrentCalls,
    pub bodies: BodyMemory,
    pub answers: AnswerMemory,
    pub pages: PageLimits,
    pub sign_ins: SignInAttempts,
    pub in_progress: InProgressRequests,
    /// Limits the documents that are printed at the same time.
    pub printing: PrintingLimit,
    /// Limits the workbooks and the files of ZIP archives that are written at the same time.
    pub workbooks: PrintingLimit,
    pub stopping: StopSignal,
}

#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// The longest time that Submit and Transmit wait for their run (setting `pipeline.wait_s`).
    pub pipeline_wait: Duration,
    /// The address that links to this service begin with, without a slash at its end (setting `http.public_url`);
    /// `None` if they begin with the host of the request.
    pub public_url: Option<String>,
    /// The largest request body, in bytes, except for bulk requests.
    pub body_bytes_max: usize,
    /// The largest body of a bulk request, in bytes (setting `http.bulk_bytes_max`).
    pub bulk_bytes_max: usize,
    /// The largest file of invoices, in bytes (setting `http.import_bytes_max`).
    pub import_bytes_max: usize,
    /// The time for which an idempotency key is kept with its response (setting `http.idempotency_keep_s`).
    pub idempotency_keep: Duration,
    /// The longest time in which a whole body must arrive (setting `http.body_timeout_s`).
    pub body_timeout: Duration,
    /// The offset of the authority's time zone from UTC.
    pub utc_offset: Offset,
    /// The legal deadlines by category of invoice (settings `deadlines.*`).
    pub deadlines: DeadlinePolicy,
    /// Decides what a taxpayer may do before its identity is confirmed (setting `accounts.verification`).
    pub verification: VerificationPolicy,
    /// The maximum number of taxpayers of one integrator; 0 means no limit.
    pub taxpayers_per_integrator_max: u64,
    /// The maximum number of valid keys of a taxpayer. Its people cannot create a further one (setting
    /// `accounts.keys_per_taxpayer_max`).
    pub keys_per_taxpayer_max: usize,
    /// The ERP systems that an integration may name (setting `options.erp_systems`).
    pub erp_systems: Vec<String>,
    /// The token that authorizes notices of the authority (setting `authority.notification_token`).
    pub notification_token: SecretString,
    /// The length of the longest IRN, in characters, that fits into the QR code of a signature. `None` if this service
    /// has no keys to make QR codes, so that no IRN is too long.
    pub irn_chars_max: Option<usize>,
    /// True if the authority is the simulator in this process, so that nothing is sent to the real authority.
    pub is_sandbox: bool,
    /// True if `/metrics` needs no operator key.
    pub metrics_public: bool,
    pub mails: MailSettings,
    /// The proxies whose forwarding headers are trusted (setting `http.trusted_proxies`).
    pub trusted_proxies: TrustedProxies,
    pub sessions: SessionSettings,
}

/// The settings of the mails that this service sends to people.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// True if mails are sent at all.
    pub are_sent: bool,
    /// True if operators may read the mails, in development.
    pub are_readable: bool,
    /// Signs and checks the links in mails.
    pub links: MailLinks,
}

/// The settings of the sessions of people who sign in to the console.
#[derive(Debug, Clone, Copy)]
pub struct SessionSettings {
    pub limits: SessionLimits,
    /// True if the browser sends the cookie over TLS only.
    pub is_secure: bool,
    /// True if an operator or an integrator without a second factor has to set one up first (setting
    /// `console.second_factor`).
    pub needs_second_factor: bool,
}

impl SessionSettings {
    /// Returns the name of a session's cookie. Browsers accept the prefix `__Host-` only over TLS, only from the host
    /// itself, and only for all of its paths.
    pub(crate) fn cookie_name(self) -> &'static str {
        if self.is_secure {
            "__Host-session"
        } else {
            "session"
        }
    }
}

impl ApiState {
    /// Returns the state of the application that received the request. Fails only if the application was built without
    /// one.
    pub(crate) fn from_request(request: &HttpRequest) -> Result<&web::Data<Self>, ApiError> {
        request
            .app_data::<web::Data<Self>>()
            .ok_or_else(|| ApiError::internal("no state"))
    }

    /// Returns the present day in the authority's time zone. It decides, for example, which invoices are overdue and
    /// which month is the present one.
    pub(crate) fn today(&self) -> Date {
        day_at(self.clock.now(), self.settings.utc_offset)
    }

    /// Returns the last day that is not in the future, in UTC or in the authority's time zone. An invoice may be dated
    /// up to this day.
    pub(crate) fn latest_day(&self) -> Date {
        later_current_date(self.clock.now(), self.settings.utc_offset)
    }

    /// Returns the terms that a document must meet to be signed, in addition to the rules of its form.
    pub(crate) fn signing_terms(&self) -> SigningTerms {
        SigningTerms {
            latest_day: self.latest_day(),
            irn_chars_max: self.settings.irn_chars_max,
        }
    }

    /// Returns the policy for this taxpayer's webhook URLs. It allows public addresses, the networks in the settings
    /// and the networks that operators set for the taxpayer.
    pub(crate) async fn webhook_address_policy(
        &self,
        taxpayer: TaxpayerId,
    ) -> Result<AddressPolicy, StoreError> {
        let own_networks = integrations::networks_owned_by(self.store.reader(), taxpayer).await?;
        Ok(self.webhook_urls.with_networks(&own_networks))
    }

    /// Returns the scheme and host that links to this service begin with. This is the address in the settings; without
    /// that setting, and on the operators' own listener, it is the host that the request names. `None` if the request
    /// names no host.
    pub(crate) fn origin(&self, request: &HttpRequest) -> Option<String> {
        let serves_customers = Listener::from_request(request).serves(Audience::Customers);
        if let Some(url) = self
            .settings
            .public_url
            .as_ref()
            .filter(|_| serves_customers)
        {
            return Some(url.clone());
        }
        let host = request.headers().get(HOST)?.to_str().ok()?;
        let host = Some(host).filter(|host| is_host(host))?;
        let scheme = if self.settings.sessions.is_secure {
            "https"
        } else {
            "http"
        };
        Some(format!("{scheme}://{host}"))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// True if the text looks like a host with an optional port. Any other text from the caller must not get into a link.
fn is_host(text: &str) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_host_byte)
}

/// Returns the last day that is not in the future: the present day in UTC or in this time zone, whichever is later.
pub(crate) fn later_current_date(now: Timestamp, zone: Offset) -> Date {
    day_at(now, Offset::UTC).max(day_at(now, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_host_gets_into_a_link() {
        for host in ["einvoice.example", "10.0.0.7:8080", "[::1]:8080", "my_host"] {
            assert!(is_host(host), "{host}");
        }
        for host in [
            "", "a/b", "a@b", "a?b", "a#b", "a b", "a\"b", "<a>", "a\\b", "ä",
        ] {
            assert!(!is_host(host), "{host}");
        }
    }

    #[test]
    fn the_zone_decides_the_present_day_and_the_later_of_zone_and_utc_the_latest_day() {
        for (now, zone, present, latest) in [
            ("2026-01-15T22:59:59Z", 1, "2026-01-15", "2026-01-15"),
            ("2026-01-15T23:00:00Z", 1, "2026-01-16", "2026-01-16"),
            ("2026-01-31T23:30:00Z", 1, "2026-02-01", "2026-02-01"),
            ("2026-01-15T00:30:00Z", -1, "2026-01-14", "2026-01-15"),
            ("2026-02-01T03:00:00Z", -5, "2026-01-31", "2026-02-01"),
            ("2026-02-01T05:00:00Z", -5, "2026-02-01", "2026-02-01"),
        ] {
            let moment = now.parse().unwrap();
            let zone = Offset::constant(zone);
            assert_eq!(day_at(moment, zone).to_string(), present, "{now}");
            assert_eq!(
                later_current_date(moment, zone).to_string(),
                latest,
                "{now}"
            );
        }
    }
}
