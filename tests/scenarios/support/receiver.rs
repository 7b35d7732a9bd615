//! A webhook endpoint that outlives the kills, treats notifications as badly as it is told to, and keeps all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::time::sleep;

/// What becomes of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    /// Accepted, and the connection ends before the answer: it must come again, and is a duplicate.
    AcceptedUnheard,
    /// Refused with this status, and where there is one with a `Retry-After` in seconds.
    Refused(u16, Option<u32>),
    /// The connection ends without an answer.
    HungUp,
}

/// How notifications are treated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// How long each takes.
    pub(crate) takes: Duration,
    /// How many of a hundred meet which fate; the rest is accepted.
    pub(crate) fates: &'static [(Fate, u32)],
}

impl Manners {
    /// Accepts everything at once.
    pub(crate) const PROMPT: Self = Self { takes: Duration::ZERO, fates: &[] };
    /// Accepts everything, so late that callers wait.
    pub(crate) const SLUGGISH: Self = Self { takes: Duration::from_secs(10), fates: &[] };
    /// Slow enough to be killed meanwhile, and refuses some.
    pub(crate) const RELUCTANT: Self =
        Self { takes: Duration::from_millis(60), fates: &[(Fate::Refused(500, None), 15)] };
    /// Fails about 30 of a hundred in every way there is.
    pub(crate) const ERRATIC: Self = Self {
        takes: Duration::from_millis(2),
        fates: &[
            (Fate::Refused(500, None), 9),
            (Fate::Refused(503, Some(0)), 5),
            (Fate::Refused(503, Some(1)), 3),
            (Fate::Refused(429, None), 3),
            (Fate::Refused(429, Some(1)), 2),
            (Fate::HungUp, 5),
            (Fate::AcceptedUnheard, 3),
        ],
    };
}

/// A notification, in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) id: String,
    pub(crate) taxpayer: i64,
    pub(crate) irn: String,
    pub(crate) sequence: i64,
    pub(crate) is_accepted: bool,
    pub(crate) is_answered: bool,
    pub(crate) at: Instant,
}

struct Desk {
    manners: Manners,
    arrivals: Vec<Arrival>,
    /// The accepted ones, each once.
    accepted: BTreeSet<(i64, i64)>,
    chance: StdRng,
    /// The IRNs that end a process when they arrive, by their beginning, and its number.
    fatal: Option<(String, u32)>,
}

type Shared = Arc<Mutex<Desk>>;

pub(crate) struct Receiver {
    address: SocketAddr,
    desk: Shared,
    server: ServerHandle,
}

impl Receiver {
    pub(crate) fn start(manners: Manners, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (arrivals, accepted, chance) = (Vec::new(), BTreeSet::new(), StdRng::seed_from_u64(seed));
        let desk = Shared::new(Mutex::new(Desk { manners, arrivals, accepted, chance, fatal: None }));
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
        lock(&self.desk).arrivals.clone()
    }

    /// How many have arrived.
    pub(crate) fn seen(&self) -> usize {
        lock(&self.desk).arrivals.len()
    }

    /// How many of these were answered.
    pub(crate) fn answered(&self) -> usize {
        lock(&self.desk).arrivals.iter().filter(|arrival| arrival.is_answered).count()
    }

    /// Has a process end at once when a notification of such an IRN arrives.
    pub(crate) fn end_process_on(&self, irn: &str, process: u32) {
        lock(&self.desk).fatal = Some((irn.to_owned(), process));
    }

    pub(crate) fn spare_process(&self) {
        lock(&self.desk).fatal = None;
    }

    /// Treats those that come from now on like this.
    pub(crate) fn behave(&self, manners: Manners) {
        lock(&self.desk).manners = manners;
    }

    /// The numbers of a taxpayer's accepted events.
    pub(crate) fn accepted(&self, taxpayer: i64) -> BTreeSet<i64> {
        lock(&self.desk).accepted.range((taxpayer, 0)..(taxpayer + 1, 0)).map(|(_, number)| *number).collect()
    }

    /// How many different events were accepted, of all taxpayers.
    pub(crate) fn accepted_count(&self) -> usize {
        lock(&self.desk).accepted.len()
    }

    pub(crate) async fn stop(self) {
        self.server.stop(false).await;
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn draw(&mut self) -> Fate {
        let mut drawn = self.chance.random_range(0..100);
        for (fate, share) in self.manners.fates {
            if drawn < *share {
                return *fate;
            }
            drawn -= share;
        }
        Fate::Accepted
    }

    /// Keeps a notification; its place, and what becomes of it.
    fn keep(&mut self, body: &Value) -> (usize, Fate) {
        let fate = self.draw();
        let arrival = Arrival {
            id: body["id"].as_str().unwrap().to_owned(),
            taxpayer: body["taxpayer_id"].as_i64().unwrap(),
            irn: body["data"]["irn"].as_str().unwrap().to_owned(),
            sequence: body["sequence"].as_i64().unwrap(),
            is_accepted: matches!(fate, Fate::Accepted | Fate::AcceptedUnheard),
            is_answered: false,
            at: Instant::now(),
        };
        if arrival.is_accepted {
            self.accepted.insert((arrival.taxpayer, arrival.sequence));
        }
        if let Some((irn, process)) = &self.fatal
            && arrival.irn.starts_with(irn)
        {
            let killed = Command::new("kill").args(["-s", "KILL", &process.to_string()]).status();
            assert!(killed.unwrap().success());
        }
        self.arrivals.push(arrival);
        (self.arrivals.len() - 1, fate)
    }
}

async fn take(body: web::Bytes, desk: web::Data<Mutex<Desk>>) -> HttpResponse {
    let body: Value = strict_json::from_untrusted(&body).unwrap();
    let ((place, fate), takes) = {
        let mut desk = lock(&desk);
        (desk.keep(&body), desk.manners.takes)
    };
    if !takes.is_zero() {
        sleep(takes).await;
    }
    lock(&desk).arrivals[place].is_answered = true;
    match fate {
        Fate::Accepted => HttpResponse::NoContent().finish(),
        Fate::AcceptedUnheard | Fate::HungUp => HttpResponse::Ok().body(Severed),
        Fate::Refused(status, after) => {
            let mut answer = HttpResponse::build(status.try_into().unwrap());
            if let Some(seconds) = after {
                answer.insert_header(("retry-after", seconds.to_string()));
            }
            answer.finish()
        }
    }
}

/// A body that fails before its first byte, so that the connection ends without so much as a head.
struct Severed;

impl MessageBody for Severed {
    type Error = std::io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(1)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<web::Bytes, Self::Error>>> {
        Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionAborted.into())))
    }
}

/// Within an IRN an event arrives only after the one before it was accepted, and none after a later one has.
pub(crate) fn assert_order(arrivals: &[Arrival]) {
    let mut by_irn: BTreeMap<&str, Vec<&Arrival>> = BTreeMap::new();
    for arrival in arrivals {
        by_irn.entry(&arrival.irn).or_default().push(arrival);
    }
    for (irn, arrivals) in by_irn {
        let (mut last, mut is_accepted) = (0, true);
        for arrival in arrivals {
            let number = arrival.sequence;
            assert!(number >= last, "{irn}: {number} came after {last}");
            assert!(number == last || is_accepted, "{irn}: {number} came before {last} was accepted");
            is_accepted = arrival.is_accepted || (number == last && is_accepted);
            last = number;
        }
    }
}

/// How many arrivals were of events that had been accepted before.
pub(crate) fn duplicates(arrivals: &[Arrival]) -> usize {
    let mut accepted = BTreeSet::new();
    let is_duplicate = |arrival: &&Arrival| {
        let event = (arrival.taxpayer, arrival.sequence);
        let is_known = accepted.contains(&event);
        if arrival.is_accepted {
            accepted.insert(event);
        }
        is_known
    };
    arrivals.iter().filter(is_duplicate).count()
}
