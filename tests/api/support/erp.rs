//! An ERP system on loopback: it lets nobody in who does not say who he is, in the way it is told to ask for, and
//! has an authorization server beside it that issues tokens, lets them expire and rotates refresh tokens.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ntlm::{self, Account};
use super::receiver::{Received, Reply};

/// How it asks who is there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Gate {
    #[default]
    Open,
    /// A header with just this value.
    Header(&'static str, &'static str),
    /// One of the tokens that it issued and that are good.
    Token,
    Ntlm(Account),
}

/// A request that was let in.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) notification: Received,
    /// The connection that it came over.
    connection: u64,
}

/// A call of the authorization server, by its form, and what stood in its authorization header.
pub(crate) type TokenCall = (BTreeMap<String, String>, Option<String>);

#[derive(Default)]
struct Desk {
    gate: Gate,
    taken: Vec<Taken>,
    turned_away: usize,
    answers: VecDeque<(u16, String)>,
    token_calls: Vec<TokenCall>,
    token_answers: VecDeque<(u16, String)>,
    good: BTreeSet<String>,
    expires_in: Option<u64>,
    /// The one refresh token that is good, where they are rotated.
    refresh: Option<String>,
}

type Shared = Arc<Mutex<Desk>>;

/// What NTLM knows of a connection.
#[derive(Debug, Default)]
struct Connection {
    number: u64,
    was_challenged: AtomicBool,
}

pub(crate) struct Erp {
    address: SocketAddr,
    desk: Shared,
    server: ServerHandle,
}

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

impl Erp {
    pub(crate) fn start(gate: Gate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Mutex::new(Desk { gate, ..Desk::default() }));
        let shared = web::Data::new(Arc::clone(&desk));
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let app = move || {
                    let app = App::new().app_data(shared.clone());
                    app.route("/token", web::post().to(issue)).default_service(web::to(take))
                };
                let server = HttpServer::new(app).workers(1).disable_signals().on_connect(|_, data| {
                    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
                    data.insert(Arc::new(Connection { number, ..Connection::default() }));
                });
                let server = server.listen(listener).unwrap().run();
                tell.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Self { address, desk, server: told.recv().unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/erp", self.address)
    }

    pub(crate) fn token_url(&self) -> String {
        format!("http://{}/token", self.address)
    }

    fn desk<T>(&self, with: impl FnOnce(&mut Desk) -> T) -> T {
        with(&mut self.desk.lock().unwrap())
    }

    pub(crate) fn open(&self, gate: Gate) {
        self.desk(|desk| desk.gate = gate);
    }

    /// The next request that is let in is answered so; else 204.
    pub(crate) fn answer_next(&self, status: u16, body: &str) {
        self.desk(|desk| desk.answers.push_back((status, body.to_owned())));
    }

    /// The next call of the authorization server is answered so, instead of with a token.
    pub(crate) fn answer_token_with(&self, status: u16, body: &str) {
        self.desk(|desk| desk.token_answers.push_back((status, body.to_owned())));
    }

    /// How long tokens are said to be good from now on.
    pub(crate) fn expire_in(&self, seconds: u64) {
        self.desk(|desk| desk.expires_in = Some(seconds));
    }

    /// From now on just this refresh token is good, once: each call gives the next one.
    pub(crate) fn rotate_from(&self, refresh_token: &str) {
        self.desk(|desk| desk.refresh = Some(refresh_token.to_owned()));
    }

    /// No token is good any more.
    pub(crate) fn revoke(&self) {
        self.desk(|desk| desk.good.clear());
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.desk(|desk| desk.taken.clone())
    }

    pub(crate) fn turned_away(&self) -> usize {
        self.desk(|desk| desk.turned_away)
    }

    pub(crate) fn token_calls(&self) -> Vec<TokenCall> {
        self.desk(|desk| desk.token_calls.clone())
    }

    /// Over how many connections requests were let in.
    pub(crate) fn connections(&self) -> usize {
        self.taken().iter().map(|taken| taken.connection).collect::<BTreeSet<_>>().len()
    }
}

impl Drop for Erp {
    fn drop(&mut self) {
        // Told to stop; nobody waits for it.
        drop(self.server.stop(false));
    }
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.notification.bytes.clone()).unwrap()
    }
}

async fn take(request: HttpRequest, body: web::Bytes, desk: web::Data<Shared>) -> HttpResponse {
    let connection = request.conn_data::<Arc<Connection>>().unwrap();
    let mut desk = desk.lock().unwrap();
    let headers: BTreeMap<_, _> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    if let Err(offers) = let_in(&desk, &headers, connection) {
        desk.turned_away += 1;
        let mut answer = HttpResponse::Unauthorized();
        for offer in offers {
            answer.append_header(("www-authenticate", offer));
        }
        return answer.body("who is there?");
    }
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let notification = Received {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        content_type: header("content-type"),
        bytes: body.to_vec(),
        answered: Reply::Status(204),
    };
    desk.taken.push(Taken { headers, notification, connection: connection.number });
    let (status, body) = desk.answers.pop_front().unwrap_or((204, String::new()));
    HttpResponse::build(StatusCode::from_u16(status).unwrap()).body(body)
}

/// Whether a request says who it is from; else what it is asked.
fn let_in(
    desk: &Desk,
    headers: &BTreeMap<String, String>,
    connection: &Connection,
) -> Result<(), Vec<String>> {
    let authorization = headers.get("authorization").map_or("", String::as_str);
    let is_known = match desk.gate {
        Gate::Open => true,
        Gate::Header(name, value) => headers.get(name).is_some_and(|sent| sent == value),
        Gate::Token => authorization.strip_prefix("Bearer ").is_some_and(|token| desk.good.contains(token)),
        Gate::Ntlm(account) => return signed_in(authorization, connection, account),
    };
    if is_known { Ok(()) } else { Err(Vec::new()) }
}

/// Each connection has a challenge of its own, and a response counts only after it.
fn signed_in(authorization: &str, connection: &Connection, account: Account) -> Result<(), Vec<String>> {
    let of_server = connection.number.to_be_bytes();
    let offer = |offer: String| Err(vec!["Negotiate".to_owned(), offer]);
    match authorization.strip_prefix("NTLM ").and_then(|text| STANDARD.decode(text).ok()) {
        Some(message) if ntlm::is_opening(&message) => {
            connection.was_challenged.store(true, Ordering::Relaxed);
            offer(format!("NTLM {}", STANDARD.encode(ntlm::challenge(of_server))))
        }
        Some(message)
            if connection.was_challenged.load(Ordering::Relaxed)
                && ntlm::is_proof(&message, of_server, account) =>
        {
            Ok(())
        }
        _ => offer("NTLM".to_owned()),
    }
}

async fn issue(
    request: HttpRequest,
    form: web::Form<BTreeMap<String, String>>,
    desk: web::Data<Shared>,
) -> HttpResponse {
    let mut desk = desk.lock().unwrap();
    let authorization = request.headers().get("authorization");
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let form = form.into_inner();
    desk.token_calls.push((form.clone(), authorization));
    if let Some((status, body)) = desk.token_answers.pop_front() {
        return HttpResponse::build(StatusCode::from_u16(status).unwrap()).body(body);
    }
    if desk.refresh.is_some() && form.get("refresh_token") != desk.refresh.as_ref() {
        return HttpResponse::BadRequest().json(json!({ "error": "invalid_grant" }));
    }
    let number = desk.token_calls.len();
    let token = format!("token-{number}");
    desk.good.insert(token.clone());
    let mut answer = json!({ "access_token": token, "token_type": "Bearer" });
    answer["expires_in"] = desk.expires_in.map_or(json!(3_600), Value::from);
    if desk.refresh.is_some() {
        let next = format!("refresh-{number}");
        answer["refresh_token"] = json!(next);
        desk.refresh = Some(next);
    }
    HttpResponse::Ok().json(answer)
}
