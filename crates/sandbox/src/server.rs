//! Starts and stops the simulator: one listening socket, two workers. It runs until it is stopped or the runtime ends.

use std::sync::Arc;
use std::time::Duration;

use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    web::{self, Data},
};
use tokio::{runtime::Handle, task::JoinHandle};

use crate::control;
use crate::handler;
use crate::settings::Settings;
use crate::state::State;
use crate::wire;

const WORKERS: usize = 2;
/// The largest request body, in bytes. A call carries at most one document, so this is enough.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The time after which an idle connection is closed, as gateways choose it. It is longer than that of callers: a
/// shorter one could close a connection just as a call is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
const SHUTDOWN_S: u64 = 1;

pub struct Sandbox {
    base_url: String,
    state: Arc<State>,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
}

/// Starts the simulator. Returns as soon as it accepts calls. Fails if the address cannot be bound.
pub async fn start(settings: Settings) -> std::io::Result<Sandbox> {
    let listener = tokio::net::TcpListener::bind(&settings.bind)
        .await?
        .into_std()?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let state = Arc::new(State::new(settings, Handle::current()));
    let shared = Data::from(Arc::clone(&state));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(shared.clone())
            .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
            .configure(control::routes)
            .configure(handler::routes)
    })
    .keep_alive(KEEP_ALIVE)
    .on_connect(wire::keep_socket)
    .workers(WORKERS)
    .shutdown_timeout(SHUTDOWN_S)
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    Ok(Sandbox {
        base_url,
        state,
        server: handle,
        serving: tokio::spawn(server),
    })
}

impl Sandbox {
    /// Returns the base URL without a path, such as `http://127.0.0.1:9000`.
    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// Returns the state, which a test in the same process can read and change.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Stops accepting calls. Waits at most one second for the calls in progress.
    pub async fn stop(self) {
        self.server.stop(true).await;
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the simulator did not stop in order");
        }
    }
}
