//! Predictions against the real ends of runs, in three simulated cases, each after a quiet spell. The figures and plots
//! of docs/operations.md are theirs: `EINVOICE_WRITE_DOCS=1 cargo test --lib prediction_tests -- --nocapture` prints
//! and writes them.

#![expect(clippy::float_arithmetic, reason = "figures for reading, no amounts")]

mod breaker;
#[path = "../../../../benches/outage/plot.rs"]
mod plot;
mod schedule;
mod simulation;

use std::ops::Range;

use plot::{Plot, Prediction};
use simulation::{Case, Simulation};

const SECOND: u64 = 1_000_000;
const QUIET_S: u64 = 120;
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images");
/// The median error that is allowed, in per cent of the time that was still to wait.
const ERROR_MAX: f64 = 20.0;

/// Returns the times of `count` arrivals, in even distances, in these seconds.
fn arrivals(seconds: Range<u64>, count: u64) -> impl Iterator<Item = u64> {
    let span = (seconds.end - seconds.start) * SECOND;
    (0..count).map(move |nth| seconds.start * SECOND + nth * span / count)
}

/// Returns the arrivals of the quiet spell, one run in two seconds, and then `count` runs in the next seconds.
fn arrivals_after_quiet(seconds: u64, count: u64) -> Vec<u64> {
    let quiet = arrivals(0..QUIET_S, QUIET_S / 2);
    quiet
        .chain(arrivals(QUIET_S..QUIET_S + seconds, count))
        .collect()
}

/// Prints how good predictions were. Returns their median error in per cent of the time that was still to wait.
fn print_error(name: &str, predictions: &[Prediction]) -> f64 {
    let mut errors: Vec<f64> = predictions
        .iter()
        .map(|one| (one.predicted - one.real).abs() / (one.real - one.made).max(1.0))
        .collect();
    errors.sort_by(f64::total_cmp);
    let median = 100.0 * errors[errors.len() / 2];
    let in_range = predictions.iter().filter(|one| is_in_range(one)).count();
    println!(
        "{name}: {} predictions, median error {median:.0} %, {in_range} ends in their ranges",
        errors.len()
    );
    median
}

fn is_in_range(one: &Prediction) -> bool {
    one.earliest <= one.real && one.latest.is_none_or(|latest| one.real <= latest)
}

/// Divides predictions into those made before a second, and the others.
fn divide(predictions: &[Prediction], at: f64) -> (Vec<Prediction>, Vec<Prediction>) {
    predictions.iter().copied().partition(|one| one.made < at)
}

/// Compares a plot with the one in the docs, or writes it there if `EINVOICE_WRITE_DOCS` is set.
fn check_plot(name: &str, plot: &Plot<'_>) {
    let (file, drawn) = (format!("{IMAGES}/{name}.svg"), plot::draw(plot));
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &drawn).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == drawn,
        "{file} is old: EINVOICE_WRITE_DOCS=1 cargo test --lib prediction_tests"
    );
}

#[test]
fn an_outage_promises_no_end_and_then_the_queue_ends_when_predicted() {
    let outage = QUIET_S..QUIET_S + 180;
    let predictions = Simulation::run(Case {
        quiet_s: QUIET_S,
        arrivals: arrivals_after_quiet(180, 300),
        service_time: |_| 300_000,
        at_once: 8,
        outage,
    });
    let (during, after) = divide(&predictions, 180.0);
    print_error("in the outage", &during);
    // The breaker opens within the first five seconds.
    for one in during.iter().skip(1) {
        assert!(one.latest.is_none() && is_in_range(one), "{one:?}");
    }
    // The first probe after the outage is answered within five seconds.
    let known: Vec<_> = after
        .into_iter()
        .filter(|one| one.latest.is_some())
        .collect();
    assert!(known.len() >= 8, "{known:?}");
    assert!(print_error("after the outage", &known) < ERROR_MAX);
    check_plot(
        "outage",
        &Plot {
            predictions: &predictions,
            shaded: 0.0..180.0,
            shaded_because: "the authority is out",
        },
    );
}

#[test]
fn a_slow_authority_is_noticed_in_seconds() {
    let predictions = Simulation::run(Case {
        quiet_s: QUIET_S,
        arrivals: arrivals_after_quiet(300, 750),
        service_time: |at| {
            if at < QUIET_S * SECOND {
                SECOND / 10
            } else {
                5 * SECOND
            }
        },
        at_once: usize::MAX,
        outage: 0..0,
    });
    let (under_load, after) = divide(&predictions, 300.0);
    print_error("slow, under load", &under_load);
    assert!(print_error("slow, after the load", &after) < ERROR_MAX);
    assert!(print_error("slow", &predictions) < ERROR_MAX);
    check_plot(
        "slow",
        &Plot {
            predictions: &predictions,
            shaded: 0.0..300.0,
            shaded_because: "two and a half runs arrive each second",
        },
    );
}

#[test]
fn a_burst_into_a_slow_authority_ends_when_predicted() {
    let predictions = Simulation::run(Case {
        quiet_s: QUIET_S,
        arrivals: arrivals_after_quiet(10, 1_200),
        service_time: |_| 750_000,
        at_once: 24,
        outage: 0..0,
    });
    assert!(print_error("burst", &predictions) < ERROR_MAX);
    let in_range = predictions.iter().filter(|one| is_in_range(one)).count();
    assert!(in_range * 10 >= predictions.len() * 9, "{in_range}");
    check_plot(
        "burst",
        &Plot {
            predictions: &predictions,
            shaded: 0.0..10.0,
            shaded_because: "1,200 runs arrive",
        },
    );
}
