//! An endpoint of a taxpayer on loopback: it keeps what it is sent, answers as it is told, and checks
//! signatures by the text of Standard Webhooks alone.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use einvoice::domain::kernel::clock::{Clock, SystemClock};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use testkit::patience::eventually;

/// Longer than the settings of the tests let an attempt take.
const SLOW: Duration = Duration::from_secs(4);

/// How long an answer that is held waits before it looks again.
const HELD: Duration = Duration::from_millis(10);

/// How an endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(u16),
    /// With this body.
    Text(u16, &'static str),
    /// With the word that this message is not to be sent again.
    Abort(u16),
    /// To this port of this machine.
    Redirect(u16, u16),
    /// Too late to count.
    Slow,
}

/// A notification as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) timestamp: String,
    pub(crate) signature: String,
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) answered: Reply,
}

#[derive(Default)]
struct Desk {
    received: Vec<Received>,
    /// What is answered next; afterwards `always`.
    next: VecDeque<Reply>,
    always: Option<Reply>,
    /// Whether answers wait.
    is_held: bool,
    /// What is not signed with it, or not just now, is answered with 401.
    secret: Option<String>,
}

type Shared = Arc<Mutex<Desk>>;

pub(crate) struct Receiver {
    address: SocketAddr,
    desk: Shared,
    server: ServerHandle,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Shared::default();
        let shared = web::Data::new(Arc::clone(&desk));
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let app = move || App::new().app_data(shared.clone()).default_service(web::to(take));
                let server =
                    HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap().run();
                tell.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Self { address, desk, server: told.recv().unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/notifications", self.address)
    }

    /// The next attempts are answered so, one after the other.
    pub(crate) fn answer_next(&self, replies: &[Reply]) {
        self.desk.lock().unwrap().next.extend(replies);
    }

    /// From now on every attempt is answered so.
    pub(crate) fn answer_always(&self, reply: Reply) {
        self.desk.lock().unwrap().always = Some(reply);
    }

    /// Keeps answers back until they are let go.
    pub(crate) fn hold(&self, is_held: bool) {
        self.desk.lock().unwrap().is_held = is_held;
    }

    /// From now on what is not signed with this secret, or not just now, is refused with 401.
    pub(crate) fn verify_with(&self, secret: &str) {
        self.desk.lock().unwrap().secret = Some(secret.to_owned());
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.desk.lock().unwrap().received.clone()
    }

    /// What has come in, once that is so much.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        let what = format!("{count} notifications");
        eventually(&what, async || Some(self.received()).filter(|all| all.len() >= count)).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Told to stop; nobody waits for it.
        drop(self.server.stop(false));
    }
}

impl Received {
    pub(crate) fn body(&self) -> Value {
        strict_json::from_untrusted(&self.bytes).unwrap()
    }

    pub(crate) fn kind(&self) -> String {
        self.body()["type"].as_str().unwrap().to_owned()
    }

    /// Whether a receiver that is as careful as the standard says takes it.
    fn is_right(&self, secret: &str) -> bool {
        let now = SystemClock.now().as_second();
        let is_recent = self.timestamp.parse().is_ok_and(|then: i64| now.abs_diff(then) <= 300);
        is_recent && !self.id.is_empty() && self.is_signed_with(secret)
    }

    /// Whether one of the signatures was made with this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{}.{}.", self.id, self.timestamp).as_bytes());
        mac.update(&self.bytes);
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.signature.split(' ').any(|signature| signature == expected)
    }

    /// Whether one of the signatures was made with the private key of this public one.
    pub(crate) fn is_signed_by_the_pair_of(&self, public_key: &str) -> bool {
        let key = STANDARD.decode(public_key.strip_prefix("whpk_").unwrap()).unwrap();
        let content = [format!("{}.{}.", self.id, self.timestamp).as_bytes(), &self.bytes].concat();
        let signatures = self.signature.split(' ').filter_map(|part| part.strip_prefix("v1a,"));
        let key = UnparsedPublicKey::new(&ED25519, key);
        signatures.map(|text| STANDARD.decode(text).unwrap()).any(|one| key.verify(&content, &one).is_ok())
    }
}

async fn take(request: HttpRequest, body: web::Bytes, desk: web::Data<Shared>) -> HttpResponse {
    let header = |name: &str| {
        request.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    let reply = {
        let mut desk = desk.lock().unwrap();
        let mut one = Received {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
            content_type: header("content-type"),
            bytes: body.to_vec(),
            answered: Reply::Status(401),
        };
        if desk.secret.as_ref().is_none_or(|secret| one.is_right(secret)) {
            one.answered = desk.next.pop_front().or(desk.always).unwrap_or(Reply::Status(204));
        }
        let answered = one.answered;
        desk.received.push(one);
        answered
    };
    while desk.lock().unwrap().is_held {
        tokio::time::sleep(HELD).await;
    }
    match reply {
        Reply::Status(status) => HttpResponse::build(StatusCode::from_u16(status).unwrap()).finish(),
        Reply::Text(status, text) => HttpResponse::build(StatusCode::from_u16(status).unwrap()).body(text),
        Reply::Abort(status) => {
            let mut answer = HttpResponse::build(StatusCode::from_u16(status).unwrap());
            answer.insert_header(("webhook-delivery", "abort-message")).finish()
        }
        Reply::Redirect(status, port) => {
            let mut answer = HttpResponse::build(StatusCode::from_u16(status).unwrap());
            answer.insert_header(("location", format!("http://127.0.0.1:{port}/"))).finish()
        }
        Reply::Slow => {
            tokio::time::sleep(SLOW).await;
            HttpResponse::NoContent().finish()
        }
    }
}
