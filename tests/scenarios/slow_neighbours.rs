//! Receivers that take 10 s for each notification do not hold up the notifications of others: those arrive, all of
//! them, while each of the slow ones still has a queue. Prints how long they took without the slow ones, twice, so that
//! one sees what is chance, and with them.
//!
//! Small in the ordinary run; larger on demand, by the environment:
//!
//! | Variable | Says | Ordinary |
//! |---|---|---|
//! | `EINVOICE_NEIGHBOURS_SLOW` | how many slow receivers | 5 |
//! | `EINVOICE_NEIGHBOURS_FAST` | how many fast ones | 20 |
//! | `EINVOICE_NEIGHBOURS_EVENTS` | events of each of the three IRNs of a slow one | 10 |

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};

use crate::support::database::Backend;
use crate::support::documents::invoice;
use crate::support::patience::eventually;
use crate::support::receiver::{Manners, Receiver};
use crate::support::scene::{Newcomer, Scene};
use crate::support::size::size;

/// Notifications of each fast receiver in a round.
const EACH: usize = 2;
/// IRNs of each slow receiver. At 10 s for each event there are more of them than anybody here waits for.
const SLOW_IRNS: usize = 3;
/// As it is where nobody is killed: the lanes of the slow ones are prolonged seldom.
const LEASE: (&str, &str) = ("EINVOICE__CLUSTER__LEASE_S", "30");
/// Requests under way at a time.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_receivers_do_not_hold_up_fast_ones_on_sqlite() {
    notify_beside_slow_ones(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_receivers_do_not_hold_up_fast_ones_on_postgresql() {
    if let Some(backend) = Backend::postgres() {
        notify_beside_slow_ones(backend).await;
    }
}

async fn notify_beside_slow_ones(backend: Backend) {
    let slow = size("EINVOICE_NEIGHBOURS_SLOW", 5);
    let fast = size("EINVOICE_NEIGHBOURS_FAST", 20);
    let slow_events = size("EINVOICE_NEIGHBOURS_EVENTS", 10);
    let scene = Scene::with(backend, &[LEASE]).await;
    let (prompt, sluggish) = (Receiver::start(Manners::PROMPT, 1), Receiver::start(Manners::SLUGGISH, 1));
    let neighbours = onboard(&scene, 0..slow, &sluggish).await;
    let fast = onboard(&scene, slow..slow + fast, &prompt).await;
    notify(&fast, "WARMUP", &prompt).await;
    let alone = notify(&fast, "ALONE", &prompt).await;
    let again = notify(&fast, "AGAIN", &prompt).await;
    each(&neighbours, async |one| occupy(one, slow_events).await).await;
    eventually("all slow receivers to be at work", async || {
        let busy =
            neighbours.iter().all(|one| sluggish.arrivals().iter().any(|seen| seen.taxpayer == one.id));
        busy.then_some(())
    })
    .await;
    let beside = notify(&fast, "BESIDE", &prompt).await;
    let arrivals = sluggish.arrivals();
    for one in &neighbours {
        let answered = arrivals.iter().filter(|seen| seen.taxpayer == one.id && seen.is_answered).count();
        assert!(answered < SLOW_IRNS * slow_events, "a slow receiver was done before the fast ones");
    }
    let answered = arrivals.iter().filter(|seen| seen.is_answered).count();
    println!("{backend:?}: {} fast receivers beside {slow} slow ones", fast.len());
    println!("  the slow ones held {} notifications and had answered {answered}", arrivals.len() - answered);
    for (name, times) in [("alone", &alone), ("again", &again), ("beside", &beside)] {
        let [median, late] = [500, 990].map(|share| at(times, share));
        let per_cent = late.as_micros() * 100 / at(&alone, 990).as_micros().max(1);
        let count = times.len();
        println!(
            "  {name:<6} from commit to arrival: p50 {median:?}, p99 {late:?} ({per_cent} %) of {count}"
        );
    }
    prompt.stop().await;
    sluggish.stop().await;
}

/// So many per mille took no longer.
fn at(sorted: &[Duration], per_mille: usize) -> Duration {
    sorted[(sorted.len() - 1) * per_mille / 1_000]
}

async fn onboard(scene: &Scene, numbers: Range<usize>, receiver: &Receiver) -> Vec<Newcomer> {
    let url = receiver.url();
    let making = stream::iter(numbers).map(async |number| {
        let newcomer = scene.newcomer(number).await;
        scene.set_webhook_of(newcomer.id, &url).await;
        newcomer
    });
    making.buffer_unordered(AT_ONCE).collect().await
}

async fn each(newcomers: &[Newcomer], act: impl AsyncFn(&Newcomer)) {
    stream::iter(newcomers).for_each_concurrent(AT_ONCE, async |one| act(one).await).await;
}

/// Gives a slow receiver more to do than it can while anybody looks.
async fn occupy(neighbour: &Newcomer, events: usize) {
    for number in 0..SLOW_IRNS {
        let created = neighbour.client.created(&invoice(&format!("SLOW{number}"))).await;
        for status in ["approved", "draft"].into_iter().cycle().take(events - 1) {
            assert_eq!(neighbour.client.set_status(&created.irn, status).await.unwrap().status, 200);
        }
    }
}

/// Has something to notify happen to each and waits until all has arrived: how long each took from the answer to the
/// change, the shortest first.
async fn notify(newcomers: &[Newcomer], name: &str, receiver: &Receiver) -> Vec<Duration> {
    let committed: HashMap<String, Instant> = stream::iter(0..EACH)
        .flat_map(|number| stream::iter(newcomers).map(move |one| (number, one)))
        .map(async |(number, one)| {
            let created = one.client.created(&invoice(&format!("{name}{number}"))).await;
            (created.irn, Instant::now())
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut times = eventually(&format!("every notification of {name}"), async || {
        let arrivals = receiver.arrivals();
        let of_these = arrivals
            .iter()
            .filter_map(|seen| Some(seen.at.saturating_duration_since(*committed.get(&seen.irn)?)));
        let times: Vec<_> = of_these.collect();
        (times.len() >= committed.len()).then_some(times)
    })
    .await;
    times.sort_unstable();
    times
}
