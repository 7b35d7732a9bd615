//! Measures creates alone and beside open consoles, in turns. Operators who watch a console must not slow down
//! taxpayers.

use std::iter;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::redirect::Policy;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::load::{Load, Pace};
use crate::service::{Process, Program, free_address};

/// The number of times that creates are measured alone and beside the consoles. The medians are compared.
const TURNS: usize = 5;
/// The streams of the consoles begin this long before the measurement.
const CONSOLES_LEAD: Duration = Duration::from_secs(2);
const REOPEN_AFTER: Duration = Duration::from_millis(100);

/// Prints the creates per second alone and beside this many open overviews, and their ratio. The overviews are spread
/// over all replicas; the creates go to the first one.
pub(crate) async fn measure(
    database: &str,
    program: &Program,
    load: &Load,
    consoles: usize,
    replicas: usize,
) {
    let mut others = Vec::new();
    for _ in 1..replicas {
        others.push(start_replica(program).await);
    }
    let roots: Vec<_> = iter::once(load.address)
        .chain(others.iter().map(|other| other.address))
        .map(|address| format!("http://{address}"))
        .collect();
    let cookie = sign_in(program, &roots[0]).await;
    let mut alone = Vec::new();
    let mut beside = Vec::new();
    for _ in 0..TURNS {
        alone.push(load.run(Pace::Full).await.per_second);
        let mut streams = JoinSet::new();
        for root in roots.iter().cycle().take(consoles) {
            streams.spawn(watch(
                format!("{root}/console/live/overview"),
                cookie.clone(),
            ));
        }
        sleep(CONSOLES_LEAD).await;
        beside.push(load.run(Pace::Full).await.per_second);
    }
    let [alone, beside] = [alone, beside].map(median);
    println!(
        "{database:<10} creates beside {consoles} consoles at {replicas} replicas: {alone:.0} -> {beside:.0} /s  x {:.3}",
        beside / alone
    );
}

/// Starts another process on the same database.
async fn start_replica(program: &Program) -> Process {
    let mut replica = program.clone();
    replica.address = free_address();
    replica.sandbox = free_address();
    Process::start(&replica).await
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Returns the cookies of an operator's session.
async fn sign_in(program: &Program, root: &str) -> String {
    let made = program.call(&["operator", "create", "--email", "watch@bench.example"]);
    let form = [("email", "email"), ("password", "password")]
        .map(|(field, member)| (field, made[member].as_str().unwrap()));
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .build()
        .unwrap();
    let answer = client
        .post(format!("{root}/sign-in"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 303, "the operator could not sign in");
    let cookies = answer.headers().get_all(SET_COOKIE).iter();
    let cookies = cookies.filter_map(|cookie| cookie.to_str().unwrap().split(';').next());
    cookies.collect::<Vec<_>>().join("; ")
}

/// Reads the live part of the overview. When the stream ends, for whatever reason, opens it again, as a browser does.
async fn watch(url: String, cookie: String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    loop {
        if let Ok(mut answer) = client.get(&url).header(COOKIE, &cookie).send().await
            && answer.status().is_success()
        {
            while let Ok(Some(_)) = answer.chunk().await {}
        }
        sleep(REOPEN_AFTER).await;
    }
}
