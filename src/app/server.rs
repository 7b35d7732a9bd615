//! The HTTP server of the process. It is built like the framework's own server, but `http::limits` bounds the number of
//! its connections and guards each of them. The framework's own server could only stop accepting at a limit, and health
//! probes would then get no answer either.

use std::fmt;
use std::future::ready;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::thread::available_parallelism;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol, Request};
use actix_service::{IntoServiceFactory, ServiceFactoryExt, map_config};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Response, Server, Service, ServiceFactory, fn_service};
use actix_web::rt::net::TcpStream;

use crate::config::http::HttpSettings;
use crate::http::{ConnectionLimits, GuardedStream, Listener, OpenConnections, TrustedProxies};

/// The seconds that open requests may take after the stop signal. If a request takes longer, the next start continues
/// its run.
const SHUTDOWN_S: u64 = 10;
/// The time that a connection may be idle between two requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// The time that the head of a request may take to arrive. It is long, because time in which the whole process stands
/// still counts, too.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// The limit of open files that the process asks the operating system for at its start.
pub(super) const OPEN_FILES_TARGET: u64 = 65_536;
/// The number of connections that each worker may have accepted but not yet registered.
const UNREGISTERED_CONNECTIONS_MAX: usize = 64;

/// A listening socket, and the limits for its connections.
pub(super) struct ListenerSocket {
    pub(super) socket: TcpListener,
    pub(super) listener: Listener,
    pub(super) limits: ConnectionLimits,
}

/// The rules for connections that all sockets share.
#[derive(Clone)]
pub(super) struct ListenerRules {
    pub(super) proxies: TrustedProxies,
    /// A client that reads nothing of a response for this long is disconnected.
    pub(super) stalled_after: Duration,
}

/// The connection limits of the listener for everybody and of the listener for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenerLimits {
    pub(super) everybody: ConnectionLimits,
    pub(super) operators: ConnectionLimits,
}

impl ListenerLimits {
    /// Divides the open files of the process: at most three quarters for clients and a sixteenth for operators. The
    /// rest is a reserve for the database, the authority, receivers of webhooks and files.
    pub(super) fn new(settings: &HttpSettings, open_files: usize) -> Self {
        let limits = |all_max: usize| ConnectionLimits {
            all_max,
            // One address gets at most half of the connections, so that other addresses can still connect.
            address_max: settings.connections_per_address_max.min(all_max / 2).max(1),
        };
        Self {
            everybody: limits(settings.connections_max.min(open_files / 4 * 3).max(1)),
            operators: limits((open_files / 16).max(1)),
        }
    }
}

/// Raises the limit of open files, because each connection counts as an open file and the initial limit is often about
/// a thousand. Returns the limit that is now in force.
pub(super) fn raise_open_files_limit() -> usize {
    let files_max = rlimit::increase_nofile_limit(OPEN_FILES_TARGET).or_else(|error| {
        tracing::warn!(%error, "failed to raise the limit of open files");
        rlimit::Resource::NOFILE.get_soft()
    });
    files_max
        .ok()
        .and_then(|files| usize::try_from(files).ok())
        .unwrap_or(1_024)
}

/// Starts to serve an application on all sockets.
pub(super) fn start<F, I, S, B>(
    sockets: Vec<ListenerSocket>,
    rules: &ListenerRules,
    application: F,
) -> io::Result<Server>
where
    F: Fn(Listener) -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let workers = available_parallelism()?.get();
    let limits = sockets.iter().map(|socket| socket.limits.all_max);
    let connections_max: usize = limits.sum();
    // The framework's signal handler would end the process while work is in flight, so the caller handles signals.
    let mut server = Server::build()
        .disable_signals()
        .shutdown_timeout(SHUTDOWN_S)
        .workers(workers);
    // This limits how many connections the framework accepts before the workers register them, if many arrive at
    // once.
    server = server.max_concurrent_connections(
        connections_max.div_ceil(workers) + UNREGISTERED_CONNECTIONS_MAX,
    );
    for ListenerSocket {
        socket,
        listener,
        limits,
    } in sockets
    {
        let name = format!("{listener:?}");
        let open_connections = OpenConnections::new(limits);
        let stop = server.graceful_shutdown_signal();
        let rules = rules.clone();
        let application = application.clone();
        server = server.listen(name, socket, move || {
            let stop = stop.clone();
            let application = application(listener)
                .into_factory()
                .map_err(|error| error.into().error_response());
            let service = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stop = stop.clone();
                    async move { stop.notified().await }
                })
                .keep_alive(KEEP_ALIVE)
                .client_request_timeout(HEAD_WAIT_MAX)
                // The timeout is off, because the middleware `unread_body` decides how long a connection with an
                // unread body stays open.
                .client_disconnect_timeout(Duration::ZERO)
                .on_connect_ext(|stream: &GuardedStream<TcpStream>, data| {
                    data.insert(stream.connection().clone());
                })
                .finish(map_config(application, |()| AppConfig::default()));
            let rules = rules.clone();
            let open_connections = open_connections.clone();
            fn_service(move |stream: TcpStream| {
                ready(admit_connection(stream, &open_connections, &rules))
            })
            .and_then(service)
        })?;
    }
    Ok(server.run())
}

/// Guards a new connection. Refuses it if its listener or its address has too many connections.
fn admit_connection(
    stream: TcpStream,
    open_connections: &OpenConnections,
    rules: &ListenerRules,
) -> Result<(GuardedStream<TcpStream>, Protocol, Option<SocketAddr>), DispatchError> {
    let peer = stream.peer_addr().ok();
    let connection = open_connections
        .admit(rules.proxies.connection_client(peer))
        .ok_or_else(listener_full_error)?;
    let guarded = GuardedStream::new(stream, connection, rules.stalled_after);
    Ok((guarded, Protocol::Http1, peer))
}

fn listener_full_error() -> DispatchError {
    DispatchError::Io(io::Error::new(
        ErrorKind::QuotaExceeded,
        "every connection is at work",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_take_all_open_files() {
        let settings = crate::config::Settings::load(None, std::iter::empty())
            .unwrap()
            .http;
        let limits = |files| {
            let limits = ListenerLimits::new(&settings, files);
            (
                limits.everybody.all_max,
                limits.everybody.address_max,
                limits.operators.all_max,
            )
        };
        assert_eq!(limits(2_048), (1_536, 768, 128));
        assert_eq!(limits(65_536), (16_384, 2_048, 4_096));
        assert_eq!(limits(1), (1, 1, 1));
    }
}
