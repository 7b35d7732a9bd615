//! A webhook endpoint on loopback that keeps every request it receives, with the signature.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

use crate::app::error::StartError;

/// The parts of a received notification that its signature covers, and the signature.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) id: String,
    pub(super) timestamp: i64,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
}

type ReceivedRequests = Arc<Mutex<Vec<ReceivedRequest>>>;

pub(super) struct Receiver {
    address: SocketAddr,
    received: ReceivedRequests,
    server: ServerHandle,
}

impl Receiver {
    pub(super) fn start() -> Result<Self, StartError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received = ReceivedRequests::default();
        let requests = web::Data::new(Arc::clone(&received));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(requests.clone())
                .default_service(web::to(receive_request))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)?
        .run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Ok(Self {
            address,
            received,
            server: handle,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/notifications", self.address)
    }

    pub(super) fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) async fn stop(&self) {
        self.server.stop(false).await;
    }
}

async fn receive_request(
    request: HttpRequest,
    body: web::Bytes,
    requests: web::Data<ReceivedRequests>,
) -> HttpResponse {
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(ReceivedRequest {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp").parse().unwrap_or_default(),
            signature: header("webhook-signature"),
            body: body.to_vec(),
        });
    HttpResponse::NoContent().finish()
}
