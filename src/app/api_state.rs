//! Builds the state of the API from the parts of the app and the settings.

use std::sync::Arc;
use std::time::Duration;

use crate::app::build_context::deadline_policy;
use crate::app::composition::App;
use crate::app::mails::{can_send_mails, mail_links};
use crate::config::{self, Settings};
use crate::domain::access::session::SessionLimits;
use crate::domain::replica::ReplicaIdentity;
use crate::http;

pub(super) fn api_state(
    app: &App,
    settings: &Settings,
    identity: ReplicaIdentity,
) -> http::state::ApiState {
    http::state::ApiState {
        store: app.store.clone(),
        taxpayers: Arc::clone(&app.taxpayers),
        pipeline: Arc::clone(&app.pipeline),
        inbound: Arc::clone(&app.inbound),
        reconciliations: Arc::clone(&app.reconciliations),
        authority: app.authority.clone(),
        catalog: app.catalog.clone(),
        clock: app.clock.clone(),
        tree: app.tree.clone(),
        webhook_urls: app.webhook_urls.clone(),
        delivery: Arc::clone(&app.delivery),
        settings: api_settings(app, settings),
        health: http::Health::default(),
        database_counts: http::CachedCounts::default(),
        incidents: http::IncidentLog::default(),
        replicas: http::ReplicaBoard::new(identity, app.clock.now()),
        schedules: http::Schedules {
            started_at: app.clock.now(),
            checkpoint_every: Duration::from_secs(settings.checkpoints.every_s),
            last_checkpoint: app.last_checkpoint.clone(),
            reconcile_every: Duration::from_secs(settings.reconcile.every_s),
        },
        remembered_operators: http::RememberedOperators::default(),
        traffic: http::Traffic::default(),
        limits: request_rates(settings).into(),
        key_usage: app.key_usage(),
        request_log: app.request_log(),
        passwords: http::Passwords::default(),
        calls: http::ConcurrentCalls::new(
            http::ConcurrentLimits {
                brief_max: settings.http.calls_per_account_max,
                relays_max: settings.http.relays_per_account_max,
            },
            http::ConcurrentLimits {
                brief_max: settings.http.calls_per_integrator_max,
                relays_max: settings.http.relays_per_integrator_max,
            },
        ),
        bodies: http::BodyMemory::new(http::BodyMemoryLimits {
            process_max: settings.http.bodies_bytes_max,
            integrator_max: settings.http.bodies_bytes_per_integrator_max,
            account_max: settings.http.bodies_bytes_per_account_max,
        }),
        answers: http::AnswerMemory::new(http::AnswerMemoryLimits {
            process_max: settings.http.answers_bytes_max,
            integrator_max: settings.http.answers_bytes_per_integrator_max,
            account_max: settings.http.answers_bytes_per_account_max,
        }),
        sign_ins: sign_in_attempts(settings),
        pages: http::PageLimits::new(http::PageRates {
            per_s: settings.rate_limit.pages_per_s,
            concurrent_max: settings.rate_limit.concurrent_pages_max,
        }),
        in_progress: http::InProgressRequests::default(),
        printing: http::PrintingLimit::default(),
        workbooks: http::PrintingLimit::default(),
        stopping: http::StopSignal::default(),
    }
}

fn api_settings(app: &App, settings: &Settings) -> http::state::ApiSettings {
    http::state::ApiSettings {
        pipeline_wait: run_wait_max(app, settings),
        public_url: public_url(settings),
        body_bytes_max: settings.http.body_bytes_max,
        bulk_bytes_max: settings.http.bulk_bytes_max,
        import_bytes_max: settings
            .http
            .import_bytes_max
            .min(settings.http.import_memory_bytes()),
        idempotency_keep: Duration::from_secs(settings.http.idempotency_keep_s),
        body_timeout: Duration::from_secs(settings.http.body_timeout_s),
        utc_offset: settings.authority.utc_offset,
        deadlines: deadline_policy(settings),
        verification: settings.accounts.verification,
        taxpayers_per_integrator_max: settings.accounts.taxpayers_per_integrator_max,
        keys_per_taxpayer_max: settings.accounts.keys_per_taxpayer_max,
        erp_systems: settings.options.erp_systems.clone(),
        notification_token: settings.authority.notification_token.clone(),
        metrics_public: settings.metrics.public,
        irn_chars_max: app.irn_chars_max,
        is_sandbox: settings.authority.mode == config::authority::AuthorityMode::Sandbox,
        mails: http::state::MailSettings {
            are_sent: can_send_mails(settings),
            are_readable: settings.environment == config::Environment::Development,
            links: mail_links(settings),
        },
        trusted_proxies: trusted_proxies(&settings.http),
        sessions: http::state::SessionSettings {
            limits: SessionLimits {
                idle: Duration::from_secs(settings.console.session_idle_s),
                longest: Duration::from_secs(settings.console.session_max_s),
            },
            is_secure: settings.environment == config::Environment::Production,
            needs_second_factor: settings.needs_second_factor(),
        },
    }
}

/// Returns the longest time that a call of the API waits for its run (`pipeline.wait_s`). A paused service works on no
/// runs, so its calls do not wait.
fn run_wait_max(app: &App, settings: &Settings) -> Duration {
    if app.authority.is_paused() {
        Duration::ZERO
    } else {
        Duration::from_secs(settings.pipeline.wait_s)
    }
}

pub(super) fn trusted_proxies(settings: &config::http::HttpSettings) -> http::TrustedProxies {
    let header = match settings.forwarded_header {
        config::http::ForwardedHeader::XForwardedFor => http::ForwardedHeader::XForwardedFor,
        config::http::ForwardedHeader::Forwarded => http::ForwardedHeader::Forwarded,
    };
    http::TrustedProxies {
        networks: settings.trusted_proxies.clone(),
        header,
    }
}

fn sign_in_attempts(settings: &Settings) -> http::SignInAttempts {
    http::SignInAttempts::new(http::SignInRates {
        person_per_min: settings.rate_limit.sign_ins_per_min,
        address_per_min: settings.rate_limit.failed_auth_per_min,
    })
}

/// Returns the URL with which links begin, without a slash at its end; `None` if it is not set.
fn public_url(settings: &Settings) -> Option<String> {
    let url = settings.http.public_url.as_ref()?;
    Some(url.as_str().trim_end_matches('/').to_owned())
}

fn request_rates(settings: &Settings) -> http::Rates {
    let limits = &settings.rate_limit;
    http::Rates {
        requests_per_s: limits.requests_per_s,
        burst: limits.burst,
        integrator_requests_per_s: limits.integrator_requests_per_s,
        integrator_burst: limits.integrator_burst,
        rotate_per_min: limits.rotate_per_min,
        webhook_test_per_min: limits.webhook_test_per_min,
        failed_auth_per_min: limits.failed_auth_per_min,
        refused_creates_per_min: limits.refused_creates_per_min,
        onboardings_per_min: limits.onboardings_per_min,
    }
}
