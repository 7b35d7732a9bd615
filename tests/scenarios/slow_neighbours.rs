//! Receivers that take 10 s for each notification do not hold up the notifications of others: those arrive, all of
//! them, while each of the slow ones still has a queue.
//!
//! Prints how long they took beside neighbours that answer at once, and beside the same neighbours when they are slow.
//! Both rounds have the same to do: as much changes, at the same pace, and about as many notifications end. What
//! differs is what slowness costs, and not what work costs.
//!
//! Small in the ordinary run; larger on demand, by the environment:
//!
//! | Variable | Says | Ordinary |
//! |---|---|---|
//! | `EINVOICE_NEIGHBOURS_SLOW` | how many neighbours, slow in every second round | 5 |
//! | `EINVOICE_NEIGHBOURS_FAST` | how many receivers that are always fast | 20 |
//! | `EINVOICE_NEIGHBOURS_EVENTS` | changes of each of a neighbour's three IRNs before a round | 5 |
//! | `EINVOICE_NEIGHBOURS_ROUNDS` | rounds of each kind | 1 |

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{self, Stream, StreamExt};
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::{Backend, each_database};
use tokio::time::interval;

use crate::support::client::Client;
use crate::support::deployment::{Deployment, Newcomer};
use crate::support::receiver::Behaviour;
use crate::support::size::size;

/// From the notification of one fast receiver to that of the next, in a round in which each has one: well below what two
/// cores can do, so that none waits for those before it.
const PACE: Duration = Duration::from_millis(10);
/// IRNs of each neighbour. While it is slow it ends one notification of each in 10 s.
const IRNS_PER_NEIGHBOUR: usize = 3;
/// As it is where nobody is killed: the lanes of the slow ones are prolonged seldom.
const LEASE: (&str, &str) = ("EINVOICE__CLUSTER__LEASE_S", "30");
/// Requests under way at a time where no pace is kept.
const AT_ONCE: usize = 8;

#[each_database]
async fn slow_receivers_do_not_hold_up_fast_ones(backend: Backend) {
    let deployment = Deployment::with(backend, &[LEASE]).await;
    let neighbourhood = Neighbourhood::new(&deployment).await;
    println!(
        "{backend:?}: {} fast receivers, {} neighbours",
        neighbourhood.fast.len(),
        neighbourhood.neighbours.len()
    );
    neighbourhood.notify("WARMUP").await;
    let mut times = [Vec::new(), Vec::new()];
    let kinds = [("PROMPT", Behaviour::PROMPT), ("SLOW", Behaviour::SLOW)];
    for pair in 0..size("EINVOICE_NEIGHBOURS_ROUNDS", 1) {
        // Every other pair begins with the slow ones: what grows from round to round is not laid at their door.
        for index in [pair % 2, 1 - pair % 2] {
            let (name, behaviour) = kinds[index];
            times[index].extend(
                neighbourhood
                    .round(&format!("{name}{pair}"), behaviour)
                    .await,
            );
        }
    }
    let [prompt, slow] = times.map(|mut times| percentile(&mut times, 990));
    let per_cent = slow.as_micros() * 100 / prompt.as_micros().max(1);
    println!("  p99 beside slow ones {slow:?}, beside prompt ones {prompt:?}: {per_cent} %");
}

/// Returns the time that so many per mille did not exceed.
fn percentile(times: &mut [Duration], per_mille: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * per_mille / 1_000]
}

/// Receivers that are always fast, and their neighbours.
struct Neighbourhood {
    fast: Vec<Newcomer>,
    always_prompt: Receiver,
    neighbours: Vec<Neighbour>,
    at_times_slow: Receiver,
    /// How many changes of each neighbour come before a round.
    backlog: usize,
}

impl Neighbourhood {
    async fn new(deployment: &Deployment) -> Self {
        let slow = size("EINVOICE_NEIGHBOURS_SLOW", 5);
        let fast = size("EINVOICE_NEIGHBOURS_FAST", 20);
        let [always_prompt, at_times_slow] = [(), ()].map(|()| Receiver::start());
        let neighbours = stream::iter(onboard(deployment, slow, &at_times_slow).await)
            .then(Neighbour::from_newcomer);
        Self {
            neighbours: neighbours.collect().await,
            fast: onboard(deployment, fast, &always_prompt).await,
            always_prompt,
            at_times_slow,
            backlog: size("EINVOICE_NEIGHBOURS_EVENTS", 5) * IRNS_PER_NEIGHBOUR,
        }
    }

    /// How long the notifications of the fast ones took while the neighbours behaved like this.
    async fn round(&self, name: &str, behaviour: Behaviour) -> Vec<Duration> {
        let receiver = &self.at_times_slow;
        self.let_all_answer().await;
        behaviour.apply_to(receiver);
        for one in &self.neighbours {
            one.change_invoices(self.backlog).await;
        }
        if behaviour.latency.is_zero() {
            self.let_all_answer().await;
        } else {
            eventually("all neighbours to be at work", async || {
                self.are_all_at_work().then_some(())
            })
            .await;
        }
        let before = receiver.answers();
        let (mut times, ()) = tokio::join!(self.notify(name), self.keep_neighbours_busy());
        assert!(
            behaviour.latency.is_zero() || self.have_all_a_queue(),
            "a slow one was done before the fast ones"
        );
        let seen = receiver.requests();
        let answered = receiver.answers();
        let [median, late] = [500, 990].map(|per_mille| percentile(&mut times, per_mille));
        println!(
            "  {name:<7} from commit to arrival: p50 {median:?}, p99 {late:?} of {}",
            times.len()
        );
        println!(
            "          neighbours answered {} and hold {}",
            answered - before,
            seen - answered
        );
        times
    }

    /// Has something to notify happen to each fast one, at a pace, and waits until all has arrived: how long each took
    /// from the answer to the change.
    async fn notify(&self, name: &str) -> Vec<Duration> {
        let committed: HashMap<String, Instant> = paced(&self.fast, PACE)
            .map(async |one| {
                (
                    one.client.create_invoice(&invoice_numbered(name)).await.irn,
                    Instant::now(),
                )
            })
            .buffer_unordered(self.fast.len())
            .collect()
            .await;
        eventually(&format!("every notification of {name}"), async || {
            let arrivals = self.always_prompt.received_notifications();
            let of_these = arrivals.iter().filter_map(|seen| {
                Some(
                    seen.at
                        .saturating_duration_since(*committed.get(seen.irn())?),
                )
            });
            let times: Vec<_> = of_these.collect();
            (times.len() >= committed.len()).then_some(times)
        })
        .await
    }

    /// Has each neighbour change all its invoices in the time that `notify` takes: as many as slow ones answer in 10 s.
    async fn keep_neighbours_busy(&self) {
        let [notified, others] =
            [self.fast.len(), self.neighbours.len()].map(|count| u32::try_from(count).unwrap());
        let change = async |one: &Neighbour| one.change_invoices(IRNS_PER_NEIGHBOUR).await;
        paced(&self.neighbours, PACE * notified / others)
            .for_each_concurrent(None, change)
            .await;
    }

    async fn let_all_answer(&self) {
        Behaviour::PROMPT.apply_to(&self.at_times_slow);
        let due: usize = self.neighbours.iter().map(Neighbour::due_count).sum();
        eventually("neighbours to answer", async || {
            (self.at_times_slow.answers() == due).then_some(())
        })
        .await;
    }

    fn are_all_at_work(&self) -> bool {
        let arrivals = self.at_times_slow.received_notifications();
        let is_at_work = |one: &Neighbour| {
            arrivals
                .iter()
                .any(|seen| seen.taxpayer() == one.id && !seen.is_answered)
        };
        self.neighbours.iter().all(is_at_work)
    }

    fn have_all_a_queue(&self) -> bool {
        let mut arrivals = self.at_times_slow.received_notifications();
        arrivals.retain(|seen| seen.is_answered);
        let answered = |id| arrivals.iter().filter(|seen| seen.taxpayer() == id).count();
        self.neighbours
            .iter()
            .all(|one| answered(one.id) < one.due_count())
    }
}

/// A taxpayer with a few invoices that change to and fro.
struct Neighbour {
    id: i64,
    client: Client,
    irns: Vec<String>,
    changes: AtomicUsize,
}

impl Neighbour {
    async fn from_newcomer(newcomer: Newcomer) -> Self {
        let mut irns = Vec::new();
        for number in 0..IRNS_PER_NEIGHBOUR {
            irns.push(
                newcomer
                    .client
                    .create_invoice(&invoice_numbered(&format!("NEIGHBOUR{number}")))
                    .await
                    .irn,
            );
        }
        Self {
            id: newcomer.id,
            client: newcomer.client,
            irns,
            changes: AtomicUsize::new(0),
        }
    }

    /// So many changes, one after the other, of its invoices in turn.
    async fn change_invoices(&self, count: usize) {
        for _ in 0..count {
            let number = self.changes.fetch_add(1, Ordering::Relaxed);
            let status = if (number / IRNS_PER_NEIGHBOUR).is_multiple_of(2) {
                "approved"
            } else {
                "draft"
            };
            let answer = self
                .client
                .set_status(&self.irns[number % IRNS_PER_NEIGHBOUR], status)
                .await
                .unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }

    /// How many notifications it has had coming.
    fn due_count(&self) -> usize {
        IRNS_PER_NEIGHBOUR + self.changes.load(Ordering::Relaxed)
    }
}

async fn onboard(deployment: &Deployment, count: usize, receiver: &Receiver) -> Vec<Newcomer> {
    let url = receiver.url();
    let making = stream::iter(0..count).map(async |_| {
        let newcomer = deployment.newcomer().await;
        deployment.set_webhook_for(newcomer.id, &url).await;
        newcomer
    });
    making.buffer_unordered(AT_ONCE).collect().await
}

/// One after the other at a steady pace, however long what is done with each takes.
fn paced<T>(items: impl IntoIterator<Item = T>, pace: Duration) -> impl Stream<Item = T> {
    let ticks = stream::unfold(interval(pace), async |mut interval| {
        interval.tick().await;
        Some(((), interval))
    });
    ticks.zip(stream::iter(items)).map(|((), item)| item)
}
