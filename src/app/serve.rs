//! The running service: house and server, until it is told to stop.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use secrecy::ExposeSecret;
use tokio::net::TcpSocket;
use tokio::signal;

use crate::app::error::StartError;
use crate::app::first_start;
use crate::app::house::House;
use crate::app::upstream::start_sandbox;
use crate::config::{self, Settings};
use crate::http;

/// How long open requests may take once the process is told to stop, in seconds. One that waits for the authority
/// longer than that loses its answer and nothing else: its run is kept, and the same call later has the outcome.
const SHUTDOWN_S: u64 = 10;
/// How long work in the background may take from that moment on; and at least, where requests took their whole time.
const DRAIN_MAX: Duration = Duration::from_secs(10);
const DRAIN_MIN: Duration = Duration::from_secs(5);
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Open files that are asked for.
const OPEN_FILES: u64 = 65_536;

/// The service, listening.
pub struct Application {
    house: House,
    server: Server,
    address: SocketAddr,
    ops_address: Option<SocketAddr>,
}

/// Listens before anything is built, so that a taken address is told at once.
fn listen(bind: SocketAddr) -> Result<TcpListener, StartError> {
    listening(bind).map_err(|source| StartError::Bind { bind, source })
}

fn listening(bind: SocketAddr) -> io::Result<TcpListener> {
    let socket = match bind {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(bind)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Each connection is a file to the system, and the limit that a process starts with is often a thousand. Where it
/// cannot be raised the service runs with what there is.
fn raise_open_files() {
    if let Err(error) = rlimit::increase_nofile_limit(OPEN_FILES) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// Where the embedded authority sends its notices: to this process itself, on whatever address it listens.
fn notices_url(settings: &Settings, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let token = settings.authority.notification_token.expose_secret();
    format!("http://{address}/authority/notifications/{token}")
}

fn state(house: &House, settings: &Settings, ops_address: Option<SocketAddr>) -> http::state::ApiState {
    http::state::ApiState {
        store: house.store.clone(),
        taxpayers: Arc::clone(&house.taxpayers),
        pipeline: Arc::clone(&house.pipeline),
        inbound: Arc::clone(&house.inbound),
        reconciliations: Arc::clone(&house.reconciliations),
        authority: house.authority.clone(),
        catalog: house.catalog.clone(),
        clock: house.clock.clone(),
        tree: house.tree.clone(),
        webhook_urls: house.webhook_urls.clone(),
        delivery: Arc::clone(&house.delivery),
        settings: http::state::ApiSettings {
            pipeline_wait: Duration::from_secs(settings.pipeline.wait_s),
            body_bytes_max: settings.http.body_bytes_max,
            bulk_bytes_max: settings.http.bulk_bytes_max,
            idempotency_keep: Duration::from_secs(settings.http.idempotency_keep_s),
            body_timeout: Duration::from_secs(settings.http.body_timeout_s),
            utc_offset: settings.authority.utc_offset,
            verification: settings.accounts.verification,
            erp_systems: settings.options.erp_systems.clone(),
            notification_token: settings.authority.notification_token.clone(),
            metrics_public: settings.metrics.public,
            ops_address,
            trusted_proxies: trusted_proxies(&settings.http),
        },
        health: http::Health::default(),
        database_counts: http::CachedCounts::default(),
        traffic: http::Traffic::default(),
        limits: rates(settings).into(),
        key_usage: house.key_usage(),
        passwords: http::Passwords::new(settings.secrets.contact_password.clone()),
        calls: http::ConcurrentCalls::new(
            settings.http.calls_per_account_max,
            settings.http.relays_per_account_max,
        ),
        bodies: http::BodyMemory::new(http::BodyMemoryLimits {
            process_max: settings.http.bodies_bytes_max,
            account_max: settings.http.bodies_bytes_per_account_max,
        }),
        in_progress: http::InProgressRequests::default(),
    }
}

fn trusted_proxies(settings: &config::HttpSettings) -> http::TrustedProxies {
    let header = match settings.forwarded_header {
        config::ForwardedHeader::XForwardedFor => http::ForwardedHeader::XForwardedFor,
        config::ForwardedHeader::Forwarded => http::ForwardedHeader::Forwarded,
    };
    http::TrustedProxies { networks: settings.trusted_proxies.clone(), header }
}

fn rates(settings: &Settings) -> http::Rates {
    let limits = &settings.rate_limit;
    http::Rates {
        requests_per_s: limits.requests_per_s,
        burst: limits.burst,
        rotate_per_min: limits.rotate_per_min,
        webhook_test_per_min: limits.webhook_test_per_min,
        failed_auth_per_min: limits.failed_auth_per_min,
        refused_creates_per_min: limits.refused_creates_per_min,
    }
}

impl Application {
    /// Builds the house and begins to listen; port 0 is any free one.
    pub async fn build(settings: &Settings) -> Result<Self, StartError> {
        raise_open_files();
        let listener = listen(settings.http.bind)?;
        let address = listener.local_addr()?;
        let ops_listener = settings.http.ops_bind.map(listen).transpose()?;
        let ops_address = ops_listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let house = House::build(settings).await?;
        if let Some(sandbox) = &house.sandbox {
            sandbox
                .state()
                .register_access_point(&notices_url(settings, address))
                .map_err(StartError::Sandbox)?;
        }
        let state = web::Data::new(state(&house, settings, ops_address));
        let app = move || {
            App::new().app_data(state.clone()).wrap(from_fn(http::request_context)).configure(http::routes)
        };
        let mut server = HttpServer::new(app)
            .shutdown_timeout(SHUTDOWN_S)
            .keep_alive(Duration::from_secs(75))
            // The answer to a request that was not read to its end waits for its reader by itself.
            .client_disconnect_timeout(Duration::ZERO)
            // Its own answer to a signal ends the whole process a moment later, whatever is under way.
            .disable_signals()
            .listen(listener)?;
        if let Some(ops_listener) = ops_listener {
            server = server.listen(ops_listener)?;
        }
        Ok(Self { house, server: server.run(), address, ops_address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The listener of `/ops` and `/metrics`, where they have one of their own.
    pub fn ops_address(&self) -> Option<SocketAddr> {
        self.ops_address
    }

    pub fn house(&self) -> &House {
        &self.house
    }

    /// Ends it from elsewhere.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until SIGTERM, Ctrl-C or its handle ends it; then finishes what is under way.
    pub async fn run_until_stopped(self) -> Result<(), StartError> {
        let handle = self.server.handle();
        let requested_at = Arc::new(OnceLock::new());
        let requested = Arc::clone(&requested_at);
        actix_rt::spawn(async move {
            match stop_requested().await {
                Ok(()) => {
                    requested.get_or_init(Instant::now);
                    handle.stop(true).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "signals cannot be heard; only SIGKILL ends this process");
                }
            }
        });
        let served = self.server.await;
        tracing::info!("stopped listening; finishing what is under way");
        let spent = requested_at.get().map_or(Duration::ZERO, Instant::elapsed);
        self.house.close(DRAIN_MAX.saturating_sub(spent).max(DRAIN_MIN)).await;
        served.map_err(StartError::from)
    }
}

/// `serve`.
pub async fn serve(settings: Settings) -> Result<(), StartError> {
    let application = Application::build(&settings).await?;
    let accounts = first_start::accounts(&application.house, &settings).await?;
    println!("{}", first_start::welcome(&application.house, application.address, accounts.as_ref()));
    if let Some(address) = application.ops_address {
        println!("operators' paths and metrics are on http://{address}");
    }
    application.run_until_stopped().await
}

/// `sandbox`: the simulator alone.
pub async fn sandbox(settings: Settings, bind: SocketAddr, seed: u64) -> Result<(), StartError> {
    let sandbox = start_sandbox(&settings, bind.to_string(), seed).await?;
    println!("the simulator of the authority is listening on {}", sandbox.base_url());
    stop_requested().await?;
    sandbox.stop().await;
    Ok(())
}

/// Resolves at SIGTERM or Ctrl-C.
async fn stop_requested() -> Result<(), StartError> {
    let mut terminate = signal::unix::signal(signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupted = signal::ctrl_c() => interrupted.map_err(StartError::from),
    }
}
