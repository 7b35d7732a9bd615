//! A receiver of webhooks on loopback that refuses everything until it is told to accept.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};

pub(super) struct Receiver {
    address: SocketAddr,
    is_accepting: Arc<AtomicBool>,
    server: ServerHandle,
}

impl Receiver {
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let is_accepting = Arc::new(AtomicBool::new(false));
        let shared = web::Data::new(Arc::clone(&is_accepting));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(shared.clone())
                .default_service(web::to(receive))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)?
        .run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Ok(Self {
            address,
            is_accepting,
            server: handle,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/drill", self.address)
    }

    pub(super) fn start_accepting(&self) {
        self.is_accepting.store(true, Ordering::SeqCst);
    }

    pub(super) async fn stop(&self) {
        self.server.stop(false).await;
    }
}

async fn receive(is_accepting: web::Data<Arc<AtomicBool>>) -> HttpResponse {
    if is_accepting.load(Ordering::SeqCst) {
        HttpResponse::Ok().finish()
    } else {
        HttpResponse::InternalServerError().finish()
    }
}
