//! Incidents that an operator may have to look into, such as a paused run. Each incident writes one warning and
//! increments one counter. URLs and the receivers' answers are not logged, because they may contain secrets.

use supervision::Counter;

use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::events::event::EventKind;
use crate::domain::pipeline::Run;

/// Counts incidents since the start of the process.
#[derive(Debug, Default)]
pub struct Incidents {
    /// Runs that were paused after hours of failing.
    pub runs_given_up: Counter,
    pub runs_quarantined: Counter,
    pub endpoints_parked: Counter,
    pub endpoints_disabled: Counter,
    /// Deliveries that were given up because every scheduled attempt failed.
    pub deliveries_given_up: Counter,
    /// Deliveries that the receiver has refused permanently.
    pub deliveries_aborted: Counter,
    pub deliveries_quarantined: Counter,
}

/// Why a delivery is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterCause {
    GivenUp,
    Aborted,
    Quarantined,
}

impl Incidents {
    pub fn record_paused_run(&self, run: &Run) {
        let reason = if run.is_quarantined() {
            self.runs_quarantined.increment();
            "quarantined"
        } else {
            self.runs_given_up.increment();
            "given up"
        };
        let step = run.next_step().map(tracing::field::display);
        let taxpayer = run.taxpayer_id;
        let attempt = run.progress.attempt;
        let error = run.last_error.as_deref();
        tracing::warn!(%taxpayer, irn = %run.irn, run = %run.id, step, attempt, reason, error, "paused a run for an operator");
    }

    /// Records that an endpoint was parked for the first time in a streak of failures.
    pub fn record_parked_endpoint(&self, endpoint: &Endpoint, streak: &FailureStreak) {
        self.endpoints_parked.increment();
        let taxpayer = endpoint.taxpayer_id;
        let endpoint = endpoint.id;
        let FailureStreak {
            since,
            failures,
            last_failure,
            ..
        } = streak;
        let cause = last_failure.as_deref();
        let until = streak.parked_until.map(tracing::field::display);
        tracing::warn!(%taxpayer, endpoint, cause, failures, %since, next_probe_at = until, "parked an endpoint that keeps failing");
    }

    pub fn record_disabled_endpoint(&self, endpoint: &Endpoint, reason: &str) {
        self.endpoints_disabled.increment();
        let taxpayer = endpoint.taxpayer_id;
        let endpoint = endpoint.id;
        tracing::warn!(%taxpayer, endpoint, reason, "disabled an endpoint");
    }

    pub fn record_dead_letter(
        &self,
        delivery: &Delivery,
        kind: EventKind,
        cause: DeadLetterCause,
        failure: &str,
    ) {
        let (counter, reason) = match cause {
            DeadLetterCause::GivenUp => (&self.deliveries_given_up, "given up"),
            DeadLetterCause::Aborted => (&self.deliveries_aborted, "aborted by the receiver"),
            DeadLetterCause::Quarantined => (&self.deliveries_quarantined, "quarantined"),
        };
        counter.increment();
        let Delivery {
            taxpayer_id,
            id,
            event_id,
            attempts,
            ..
        } = delivery;
        tracing::warn!(
            taxpayer = %taxpayer_id, delivery = %id, event = %event_id, %kind, irn = delivery.irn(), attempts,
            reason, failure, "gave up on a delivery: it is a dead letter now"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::domain::events::delivery::DeliveryState;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, RunRequest, Step, StepResult};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that `incident` logs.
    fn lines(incident: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        // With only one subscriber, a thread of another test that reaches the log statement first could disable it for
        // all threads. A second subscriber prevents this.
        let _second = tracing::Dispatch::new(
            tracing_subscriber::fmt()
                .with_writer(std::io::sink)
                .finish(),
        );
        tracing::subscriber::with_default(subscriber, incident);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn run() -> Run {
        let irn = Irn::parse("INV001-94AD90FB-20261121").unwrap();
        let request = RunRequest::sample(irn.as_str(), Operation::Submit);
        Run::new(Uuid::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
    }

    fn endpoint() -> Endpoint {
        let url = "https://hooks.example.com/?token=secret".to_owned();
        Endpoint::new(9, TaxpayerId(7), url, Timestamp::UNIX_EPOCH)
    }

    fn streak() -> FailureStreak {
        FailureStreak {
            since: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            failures: 5,
            probes: 1,
            parked_until: Some(Timestamp::UNIX_EPOCH),
            last_failure: Some("timed_out".to_owned()),
            last_status: None,
        }
    }

    fn delivery() -> Delivery {
        Delivery {
            id: Uuid::from_u128(1),
            taxpayer_id: TaxpayerId(7),
            endpoint: TaxpayerId(7).into(),
            event_id: Uuid::from_u128(2),
            sequence: 3,
            order_key: "INV001-94AD90FB-20261121".to_owned(),
            state: DeliveryState::Dead,
            attempts: 4,
            attempts_before: 0,
            next_attempt_at: None,
            crash_history: CrashHistory {
                crashes: 3,
                ..CrashHistory::default()
            },
        }
    }

    #[test]
    fn each_incident_writes_one_warning_with_its_ids_and_increments_one_counter() {
        let incidents = Incidents::default();
        let now = Timestamp::UNIX_EPOCH;
        let begun = run().begin_attempt(Step::IrnCheck, now);
        let paused = begun.clone().after_step(
            Step::IrnCheck,
            &StepResult::Pause {
                error: "down".into(),
            },
            now,
        );
        let quarantined = begun.after_crash().after_crash().after_crash();
        for (pause, reason) in [(&paused, "given up"), (&quarantined, "quarantined")] {
            let lines = lines(|| incidents.record_paused_run(pause));
            let [line] = &lines[..] else {
                panic!("{lines:?}")
            };
            for part in [
                "WARN",
                "taxpayer=7",
                "irn=INV001-94AD90FB-20261121",
                "step=irn-check",
                reason,
            ] {
                assert!(line.contains(part), "{part} in {line}");
            }
        }
        assert_eq!(
            (
                incidents.runs_given_up.get(),
                incidents.runs_quarantined.get()
            ),
            (1, 1)
        );
        let lines = lines(|| {
            incidents.record_parked_endpoint(&endpoint(), &streak());
            incidents.record_disabled_endpoint(&endpoint(), "it is gone");
            let kind = EventKind::InvoiceCreated;
            incidents.record_dead_letter(&delivery(), kind, DeadLetterCause::GivenUp, "status");
            incidents.record_dead_letter(&delivery(), kind, DeadLetterCause::Aborted, "aborted");
            incidents.record_dead_letter(
                &delivery(),
                kind,
                DeadLetterCause::Quarantined,
                "quarantined",
            );
        });
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(
            lines
                .iter()
                .all(|line| line.contains("WARN") && line.contains("taxpayer=7")),
            "{lines:?}"
        );
        assert!(
            !lines.iter().any(|line| line.contains("secret")),
            "{lines:?}"
        );
        assert!(lines[0].contains("cause=\"timed_out\""), "{lines:?}");
        assert!(
            lines[2].contains("event=00000000-0000-0000-0000-000000000002"),
            "{lines:?}"
        );
        let Incidents {
            endpoints_parked,
            endpoints_disabled,
            ..
        } = &incidents;
        let Incidents {
            deliveries_given_up,
            deliveries_aborted,
            deliveries_quarantined,
            ..
        } = &incidents;
        let counters = [
            endpoints_parked,
            endpoints_disabled,
            deliveries_given_up,
            deliveries_aborted,
        ];
        assert_eq!(counters.map(Counter::get), [1; 4]);
        assert_eq!(deliveries_quarantined.get(), 1);
    }
}
