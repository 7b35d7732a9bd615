//! The commands `serve` and `sandbox`: builds the app, starts the HTTP server, and shuts both down in order.

use std::io::{self, Write as _, stdout};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::web;
use gethostname::gethostname;
use secrecy::ExposeSecret;
use tokio::net::TcpSocket;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::app::api_state::{api_state, trusted_proxies};
use crate::app::authority_connection::start_sandbox;
use crate::app::composition::App;
use crate::app::error::StartError;
use crate::app::first_start;
use crate::app::serve_mode::ServeMode;
use crate::app::server::{self, ListenerLimits, ListenerRules, ListenerSocket};
use crate::config::Settings;
use crate::domain::replica::ReplicaIdentity;
use crate::telemetry::traces::{self, TraceExport};
use crate::{console, http};

/// The time limit for open requests and background work together; background work gets at least `DRAIN_MIN`.
const DRAIN_MAX: Duration = Duration::from_secs(10);
const DRAIN_MIN: Duration = Duration::from_secs(5);
/// The time limit for telling the other replicas that this one stops: the database may not answer.
const HEARTBEATS_END_WAIT_MAX: Duration = Duration::from_secs(2);
/// The time for which the server still takes requests after the stop signal, and answers each with `Connection: close`.
/// A client that is just sending a request still gets a response, which tells it to close the connection. If the server
/// closed idle connections at once, such a request could be lost.
const CLOSING_ANSWERS_SPAN: Duration = Duration::from_secs(1);
/// The largest number of connections that may wait to be accepted.
const ACCEPT_BACKLOG: u32 = 4_096;

/// The built service, which is already listening.
pub struct Application {
    app: App,
    server: Server,
    stopping: http::StopSignal,
    /// The task that reports the state of this replica to the others, until it stops.
    heartbeats: JoinHandle<()>,
    /// `None` if no spans are exported.
    traces: Option<TraceExport>,
    /// The time for which the service still serves after it has announced its stop (setting `http.drain_delay_s`).
    drain_delay: Duration,
    address: SocketAddr,
    ops_address: Option<SocketAddr>,
}

/// Starts to listen on an address. The caller does this before it builds the app, so that an address in use is reported
/// at once.
fn listen(bind: SocketAddr) -> Result<TcpListener, StartError> {
    open_listener(bind).map_err(|source| StartError::Bind { bind, source })
}

fn open_listener(bind: SocketAddr) -> io::Result<TcpListener> {
    let socket = match bind {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(bind)?;
    socket.listen(ACCEPT_BACKLOG)?.into_std()
}

fn listener_sockets(
    socket: TcpListener,
    ops_socket: Option<TcpListener>,
    limits: ListenerLimits,
) -> Vec<ListenerSocket> {
    let listener = if ops_socket.is_some() {
        http::Listener::Public
    } else {
        http::Listener::Only
    };
    let mut sockets = vec![ListenerSocket {
        socket,
        listener,
        limits: limits.everybody,
    }];
    sockets.extend(ops_socket.map(|socket| ListenerSocket {
        socket,
        listener: http::Listener::Operators,
        limits: limits.operators,
    }));
    sockets
}

/// Returns the URL in this process that the embedded simulator sends its notices to.
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

/// Returns the name by which operators know this process.
fn replica_name(settings: &Settings, address: SocketAddr) -> String {
    if let Some(name) = &settings.cluster.replica_name {
        return name.clone();
    }
    let host = gethostname();
    format!("{}:{}", host.to_string_lossy(), address.port())
}

impl Application {
    /// Builds the app and starts to listen. Port 0 in the settings takes a free port.
    pub async fn build(settings: &Settings, mode: ServeMode) -> Result<Self, StartError> {
        let open_files = server::raise_open_files_limit();
        let listener = listen(settings.http.bind)?;
        let address = listener.local_addr()?;
        let ops_listener = settings.http.ops_bind.map(listen).transpose()?;
        let ops_address = ops_listener
            .as_ref()
            .map(TcpListener::local_addr)
            .transpose()?;
        let name = replica_name(settings, address);
        // The traces start before the app is built, because the app takes up work at once. A later failure would
        // interrupt that work, which would then count as crashed.
        let traces = traces::start(&settings.telemetry, &name)?;
        let app = App::build(settings, mode).await?;
        if let Some(sandbox) = &app.sandbox {
            sandbox
                .state()
                .register_access_point(&notices_url(settings, address))
                .map_err(StartError::Sandbox)?;
        }
        let identity = ReplicaIdentity {
            id: app.lease_owner().to_owned(),
            name,
        };
        let state = web::Data::new(api_state(&app, settings, identity));
        let stopping = state.stopping.clone();
        actix_web::rt::spawn(http::watch_incidents(state.clone()));
        let heartbeats = actix_web::rt::spawn(http::record_heartbeats(state.clone()));
        let past_overviews = web::Data::new(console::PastOverviews::default());
        actix_web::rt::spawn(console::keep_overviews(
            state.clone(),
            past_overviews.clone(),
        ));
        let limits = ListenerLimits::new(&settings.http, open_files);
        let rules = ListenerRules {
            proxies: trusted_proxies(&settings.http),
            stalled_after: Duration::from_secs(settings.http.answer_stalled_s),
        };
        let sockets = listener_sockets(listener, ops_listener, limits);
        let server = server::start(sockets, &rules, move |listener| {
            actix_web::App::new()
                .app_data(state.clone())
                .app_data(listener)
                .app_data(past_overviews.clone())
                .wrap(from_fn(console::error_pages))
                .wrap(from_fn(http::request_context))
                .configure(http::routes)
                .configure(console::routes)
        })?;
        Ok(Self {
            app,
            server,
            stopping,
            heartbeats,
            traces,
            drain_delay: Duration::from_secs(settings.http.drain_delay_s),
            address,
            ops_address,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the operators' listener, if they have one of their own.
    pub fn ops_address(&self) -> Option<SocketAddr> {
        self.ops_address
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until SIGTERM, Ctrl-C or the server's handle stops it. Then waits a limited time for work in flight.
    pub async fn run_until_stopped(self) -> Result<(), StartError> {
        let stop_requests = StopRequests::listen()?;
        Box::pin(self.run_until_requested(stop_requests)).await
    }

    async fn run_until_requested(self, mut stop_requests: StopRequests) -> Result<(), StartError> {
        let handle = self.server.handle();
        let stopping = self.stopping.clone();
        let drain_delay = self.drain_delay;
        let stop_requested_at = Arc::new(OnceLock::new());
        let task_stop_requested_at = Arc::clone(&stop_requested_at);
        actix_rt::spawn(async move {
            stop_requests.wait().await;
            stopping.announce_stop();
            wait_until_drained(drain_delay, &mut stop_requests).await;
            task_stop_requested_at.get_or_init(Instant::now);
            stopping.request_stop();
            sleep(CLOSING_ANSWERS_SPAN).await;
            handle.stop(true).await;
        });
        let server_result = self.server.await;
        tracing::info!("stopped listening; finishing work in flight");
        // Lets the task `heartbeats` report the stop as the last state of this replica, and end.
        self.stopping.request_stop();
        if timeout(HEARTBEATS_END_WAIT_MAX, self.heartbeats)
            .await
            .is_err()
        {
            tracing::warn!("this replica could not say that it stops");
        }
        let spent = stop_requested_at
            .get()
            .map_or(Duration::ZERO, Instant::elapsed);
        self.app
            .close(DRAIN_MAX.saturating_sub(spent).max(DRAIN_MIN))
            .await;
        if let Some(traces) = self.traces {
            traces.flush().await;
        }
        server_result.map_err(StartError::from)
    }
}

pub async fn serve(settings: Settings, mode: ServeMode) -> Result<(), StartError> {
    let mut stop_requests = StopRequests::listen()?;
    let application = tokio::select! {
        built = Box::pin(Application::build(&settings, mode)) => built?,
        // A signal during the build interrupts no work: the build takes up work in its last step, after its last await.
        () = stop_requests.wait() => {
            tracing::info!("asked to stop during the start");
            return Ok(());
        }
    };
    let accounts = first_start::create_accounts(&application.app, &settings).await?;
    let welcome = first_start::welcome_text(
        &application.app,
        application.address,
        application.ops_address,
        accounts.as_ref(),
    );
    announce(&welcome);
    if let Some(address) = application.ops_address() {
        announce(&format!(
            "operators sign in, and metrics are, on http://{address}"
        ));
    }
    application.run_until_requested(stop_requests).await
}

/// Prints a text for the person who starts the service. A failure is only logged: standard output may be on a full
/// disk, or a pipe whose reader has ended.
fn announce(text: &str) {
    if let Err(error) = writeln!(stdout(), "{text}") {
        tracing::warn!(%error, "failed to print addresses and new keys on standard output");
    }
}

/// Runs the command `sandbox`: the simulator alone, until SIGTERM or Ctrl-C.
pub async fn serve_sandbox(
    settings: Settings,
    bind: SocketAddr,
    seed: u64,
) -> Result<(), StartError> {
    let mut stop_requests = StopRequests::listen()?;
    let sandbox = start_sandbox(&settings, bind.to_string(), seed).await?;
    announce(&format!(
        "the simulator of the authority is listening on {}",
        sandbox.base_url()
    ));
    stop_requests.wait().await;
    sandbox.stop().await;
    Ok(())
}

/// Waits until the load balancer has noticed that this process is not ready. A second signal ends the wait.
async fn wait_until_drained(delay: Duration, stop_requests: &mut StopRequests) {
    if delay.is_zero() {
        return;
    }
    tracing::info!(
        seconds = delay.as_secs(),
        "asked to stop; not ready from now on, and still taking requests"
    );
    tokio::select! {
        () = sleep(delay) => {}
        () = stop_requests.wait() => {}
    }
}

/// The signals that ask this process to stop: SIGTERM and Ctrl-C. A signal that comes while nobody waits is kept.
/// Without this, a signal before the first wait would end the process at once or, if it is the first process of a
/// container, be lost.
struct StopRequests {
    terminate: Signal,
    interrupt: Signal,
}

impl StopRequests {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn an_address_in_use_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bind = listener.local_addr().unwrap();
        assert_eq!(
            listen(bind).unwrap_err().to_string(),
            format!("cannot listen on {bind}")
        );
    }
}
