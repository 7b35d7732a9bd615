//! The endpoint of a taxpayer: stores every notification, and answers with the replies that a test has set, or at
//! random.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Endpoint, Received, Receiver, Request, Response};
use crate::patience::eventually;

/// The delay of a slow answer. In the settings of the tests, an attempt times out before it.
const SLOW_REPLY_DELAY: Duration = Duration::from_secs(4);
const SEED: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Status(u16),
    /// A status with this body.
    Text(u16, &'static str),
    /// A status with the header `Retry-After`, in seconds.
    RetryAfter(u16, u32),
    /// A status with the header that asks not to send this message again.
    Abort(u16),
    /// A status that redirects to this port of this machine.
    Redirect(u16, u16),
    /// 204, after the sender's timeout.
    Slow,
    /// Not accepted, and the connection ends without an answer.
    HangUp,
    /// Accepted, and the connection ends without an answer: the notification comes again as a duplicate.
    LostAnswer,
}

impl Reply {
    pub(super) fn is_acceptance(self) -> bool {
        match self {
            Self::Status(status) | Self::Text(status, _) => (200..300).contains(&status),
            Self::LostAnswer => true,
            _ => false,
        }
    }

    fn response(self) -> Response {
        match self {
            Self::Status(status) => Response::status(status),
            Self::Text(status, text) => Response::text(status, text),
            Self::RetryAfter(status, seconds) => {
                Response::status(status).with_header("retry-after", seconds.to_string())
            }
            Self::Abort(status) => {
                Response::status(status).with_header("webhook-delivery", "abort-message")
            }
            Self::Redirect(status, port) => Response::status(status)
                .with_header("location", format!("http://127.0.0.1:{port}/")),
            Self::Slow => Response {
                delay: SLOW_REPLY_DELAY,
                ..Response::status(204)
            },
            Self::HangUp | Self::LostAnswer => Response {
                is_lost: true,
                ..Response::status(204)
            },
        }
    }
}

type ArrivalHook = Box<dyn FnMut(&Received) + Send>;

pub struct ScriptedEndpoint {
    received: Vec<Received>,
    /// The replies to the next requests, in order. When they are used up, `shares` decides.
    next: VecDeque<Reply>,
    /// Replies, each with the number of requests in a hundred that get it. The others get 204.
    shares: Vec<(Reply, u32)>,
    chance: StdRng,
    /// A signing secret. If it is set, a notification that is not signed with it, or is not recent, is answered with
    /// 401.
    secret: Option<String>,
    /// The accepted events by taxpayer and sequence.
    accepted: BTreeSet<(i64, i64)>,
    hook: Option<ArrivalHook>,
}

impl ScriptedEndpoint {
    fn reply(&mut self, one: &Received) -> Reply {
        if self
            .secret
            .as_ref()
            .is_some_and(|secret| !one.is_genuine(secret))
        {
            return Reply::Status(401);
        }
        self.next.pop_front().unwrap_or_else(|| self.draw())
    }

    fn draw(&mut self) -> Reply {
        let mut drawn = self.chance.random_range(0..100);
        for (reply, share) in &self.shares {
            if drawn < *share {
                return *reply;
            }
            drawn -= share;
        }
        Reply::Status(204)
    }
}

impl Endpoint for ScriptedEndpoint {
    fn receive(&mut self, request: &Request<'_>) -> Response {
        let mut one = Received::new(request, Reply::Status(401));
        one.answered = self.reply(&one);
        let taxpayer = one.body()["taxpayer_id"].as_i64();
        let sequence = one.body()["sequence"].as_i64();
        if one.is_accepted() {
            self.accepted.extend(taxpayer.zip(sequence));
        }
        if let Some(hook) = &mut self.hook {
            hook(&one);
        }
        let response = one.answered.response();
        self.received.push(one);
        response
    }

    fn on_answer(&mut self, number: usize) {
        self.received[number].is_answered = true;
    }
}

impl Receiver {
    /// Starts a receiver that accepts everything at once.
    pub fn start() -> Self {
        Self::serve(ScriptedEndpoint {
            received: Vec::new(),
            next: VecDeque::new(),
            shares: Vec::new(),
            chance: StdRng::seed_from_u64(SEED),
            secret: None,
            accepted: BTreeSet::new(),
            hook: None,
        })
    }

    /// Returns the URL for notifications.
    pub fn url(&self) -> String {
        self.url_at("/notifications")
    }

    /// Answers the next requests with these replies, in this order.
    pub fn answer_next(&self, replies: &[Reply]) {
        self.with(|endpoint| endpoint.next.extend(replies));
    }

    /// Answers every request from now on with this reply.
    pub fn answer_always(&self, reply: Reply) {
        self.answer_shares(&[(reply, 100)]);
    }

    /// Draws each reply at random from now on. Each of these replies has a share in a hundred requests; the others get
    /// 204.
    pub fn answer_shares(&self, shares: &[(Reply, u32)]) {
        self.with(|endpoint| endpoint.shares = shares.to_vec());
    }

    /// Answers 401 from now on to each notification that is not signed with this secret or is not recent.
    pub fn verify_with(&self, secret: &str) {
        self.with(|endpoint| endpoint.secret = Some(secret.to_owned()));
    }

    /// Calls `hook` for each notification before it is answered.
    pub fn on_arrival(&self, hook: impl FnMut(&Received) + Send + 'static) {
        self.with(|endpoint| endpoint.hook = Some(Box::new(hook)));
    }

    /// Returns the notifications in the order of their arrival.
    pub fn received_notifications(&self) -> Vec<Received> {
        self.with(|endpoint| endpoint.received.clone())
    }

    /// Waits until this many notifications have arrived. Returns all that have arrived.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let what = format!("{count} notifications");
        eventually(&what, async || {
            (self.requests() >= count).then(|| self.received_notifications())
        })
        .await
    }

    /// Returns the sequence numbers of a taxpayer's accepted events.
    pub fn accepted_sequences(&self, taxpayer: i64) -> BTreeSet<i64> {
        let events = (taxpayer, 0)..(taxpayer + 1, 0);
        self.with(|endpoint| {
            endpoint
                .accepted
                .range(events)
                .map(|(_, sequence)| *sequence)
                .collect()
        })
    }

    /// Returns the number of different events that were accepted, of all taxpayers.
    pub fn accepted_count(&self) -> usize {
        self.with(|endpoint| endpoint.accepted.len())
    }
}
