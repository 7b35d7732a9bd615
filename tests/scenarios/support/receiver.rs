//! A webhook endpoint that outlives the kills. It is slow, refuses some notifications, and keeps all.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::time::sleep;

/// How long a notification takes.
const SLOW: Duration = Duration::from_millis(60);
/// How many of a hundred are refused.
const REFUSED: u32 = 15;

/// A notification, in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) id: String,
    pub(crate) irn: String,
    pub(crate) sequence: i64,
    pub(crate) is_accepted: bool,
}

struct Desk {
    arrivals: Vec<Arrival>,
    chance: StdRng,
}

type Shared = Arc<Mutex<Desk>>;

pub(crate) struct Receiver {
    address: SocketAddr,
    desk: Shared,
    server: ServerHandle,
}

impl Receiver {
    pub(crate) fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk =
            Shared::new(Mutex::new(Desk { arrivals: Vec::new(), chance: StdRng::seed_from_u64(seed) }));
        let shared = web::Data::from(Arc::clone(&desk));
        let app = move || App::new().app_data(shared.clone()).default_service(web::to(take));
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap().run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { address, desk, server: handle }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/notifications", self.address)
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).arrivals.clone()
    }

    pub(crate) async fn stop(self) {
        self.server.stop(false).await;
    }
}

async fn take(body: web::Bytes, desk: web::Data<Mutex<Desk>>) -> HttpResponse {
    let is_accepted = {
        let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
        let is_accepted = desk.chance.random_range(0..100) >= REFUSED;
        let body: Value = serde_json::from_slice(&body).unwrap();
        desk.arrivals.push(Arrival {
            id: body["id"].as_str().unwrap().to_owned(),
            irn: body["data"]["irn"].as_str().unwrap().to_owned(),
            sequence: body["sequence"].as_i64().unwrap(),
            is_accepted,
        });
        is_accepted
    };
    sleep(SLOW).await;
    if is_accepted {
        HttpResponse::NoContent().finish()
    } else {
        HttpResponse::InternalServerError().finish()
    }
}
