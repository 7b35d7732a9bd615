//! Starts and stops the simulator: one listening socket, two workers.
//!
//! It can be started inside any tokio runtime, including an actix System, and runs until it is stopped or its
//! runtime ends.

use std::sync::Arc;

use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    web::{self, Data},
};
use tokio::{runtime::Handle, task::JoinHandle};

use crate::control;
use crate::handler;
use crate::state::State;
use crate::wire;

const WORKERS: usize = 2;
/// A call never carries many documents: this limit is sufficient.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
const SHUTDOWN_S: u64 = 1;

/// The address and the accepted keys.
#[derive(Clone)]
pub struct Settings {
    /// Address and port; port 0 takes a free one.
    pub bind: String,
    /// A UUID: its first group is half of the key of a download.
    pub api_key: String,
    pub api_secret: String,
    /// The seed of all randomness.
    pub seed: u64,
}

/// A running simulator.
pub struct Sandbox {
    base_url: String,
    state: Arc<State>,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
}

/// Binds the address and returns when calls are accepted.
pub async fn start(settings: Settings) -> std::io::Result<Sandbox> {
    let listener = tokio::net::TcpListener::bind(&settings.bind).await?.into_std()?;
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
    .on_connect(wire::keep)
    .workers(WORKERS)
    .shutdown_timeout(SHUTDOWN_S)
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    Ok(Sandbox { base_url, state, server: handle, serving: tokio::spawn(server) })
}

impl Sandbox {
    /// `http://127.0.0.1:PORT`, without a path.
    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// The state that a test in the same process reads and changes.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Stops accepting calls and waits for those in progress, a second at most.
    pub async fn stop(self) {
        self.server.stop(true).await;
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the simulator did not stop in order");
        }
    }
}
