//! Tests of opening a run whose IRN has one already, of a run whose invoice is cancelled meanwhile, and of the invoice of a
//! refused run.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::json;
use timing::{CommandId, clock};

use super::{ID, TestTaxpayers, by_number, draft, submission};
use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::{
    ApplyOperatorAction, CreateInvoice, LiftQuarantine, OpenRun, RecheckRun, RecordReceipt,
    RecordSteps, SetStatus, StepOutcome, StoppedRun,
};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::domain::events::event::LogHead;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus, UniqueNoType, WorkflowStatus};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::signed_copy::SIGNED_OTHERWISE_MESSAGE;
use crate::domain::pipeline::{
    Operation, OperatorAction, ResolvedBy, Run, RunRequest, RunState, Step, StepResult,
};
use crate::store::events;
use crate::store::invoices;
use crate::store::lanes::{LaneKind, Lease};
use crate::store::testing::{claim_due, stores};

/// Records a success of each of these steps. Returns the run after them.
async fn succeed(app: &TestTaxpayers, lease: &Lease, run: &Run, steps: &[Step]) -> Run {
    let done = || StepResult::Done {
        resolved_by: ResolvedBy::Answer,
        qr_code: None,
    };
    let outcomes = steps.iter().map(|step| step_outcome(*step, done()));
    record_steps(app, lease, run, outcomes.collect()).await
}

fn step_outcome(step: Step, verdict: StepResult) -> StepOutcome {
    StepOutcome {
        step,
        id: clock::new_id(),
        attempt: 1,
        started_at: Timestamp::UNIX_EPOCH,
        verdict,
        duration_ms: 1,
        failure: None,
    }
}

async fn record_steps(
    app: &TestTaxpayers,
    lease: &Lease,
    run: &Run,
    steps: Vec<StepOutcome>,
) -> Run {
    let record = RecordSteps {
        lease: lease.clone(),
        run: run.id,
        irn: run.irn.clone(),
        digest: run.digest.clone(),
        steps,
        next_attempt: clock::new_id(),
    };
    app.taxpayers.send(ID, record).await.unwrap()
}

#[actix_rt::test]
async fn two_spellings_of_one_irn_share_a_run_with_the_spelling_of_the_invoice() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let invoice = app
            .taxpayers
            .send(ID, CreateInvoice(draft("INV1", 100)))
            .await
            .unwrap()
            .invoice;
        let irn = invoice.irn.as_str();
        let lower = app
            .taxpayers
            .send(
                ID,
                OpenRun(submission(&irn.to_lowercase().replace("inv", "INV"), "a")),
            )
            .await;
        let lower = lower.unwrap();
        assert_eq!(
            (lower.irn.as_str(), &lower.document()["irn"]),
            (irn, &json!(irn))
        );
        let upper = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        assert_eq!((upper.id, &upper.digest), (lower.id, &lower.digest));
        app.close().await;
    }
}

#[actix_rt::test]
async fn the_first_run_of_an_irn_that_is_not_stored_decides_its_spelling() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (first, then) in [
            (Operation::Submit, Operation::Report),
            (Operation::Report, Operation::Submit),
            (Operation::Submit, Operation::Submit),
        ] {
            let name = format!("{first} {then}").to_uppercase();
            let name = name.replace(' ', "");
            let irn = format!("{name}-94ad90fb-20260131");
            let other = Irn::parse(&format!("{name}-94AD90FB-20260131")).unwrap();
            for (operation, irn_sent) in [(first, irn.as_str()), (then, other.as_str())] {
                let request = RunRequest::sample(irn_sent, operation);
                let run = app.taxpayers.send(ID, OpenRun(request)).await.unwrap();
                assert_eq!(run.irn.as_str(), irn, "{operation}");
            }
            let receipt = RecordReceipt { irn: other };
            app.taxpayers.send(ID, receipt).await.unwrap();
            let log = events::owned_by_after(&app.test.store, ID, 0, 10_000).await;
            let log = log.unwrap();
            let texts = log.iter().filter_map(|event| event.irn.as_deref());
            let about: Vec<_> = texts.filter(|text| text.starts_with(&name)).collect();
            assert_eq!(about, [irn], "the receipt");
        }
        app.close().await;
    }
}

#[actix_rt::test]
async fn new_content_replaces_content_that_is_not_signed_yet() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "RELAYED-00000061-20260131";
        let first = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        let second = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "b")))
            .await
            .unwrap();
        assert_eq!(first.id, second.id);
        assert_ne!(first.digest, second.digest);
        assert_eq!(second.document()["note"], "b");
        app.close().await;
    }
}

#[actix_rt::test]
async fn a_request_does_not_resume_a_run_that_an_operator_has_paused() {
    use OperatorAction::{Pause, Resume};
    // The operator's actions, the note in the next request, and the state of the run after it.
    let cases: [(&[OperatorAction], &str, RunState); 5] = [
        (&[], "a", RunState::Running),
        (&[Pause], "a", RunState::Paused),
        (&[Pause], "b", RunState::Paused),
        (&[Pause, Resume], "a", RunState::Running),
        (&[Pause, Resume], "b", RunState::Running),
    ];
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (number, (actions, note, state)) in cases.iter().enumerate() {
            let irn = format!("HELD{number}-00000061-20260131");
            let opened = app.taxpayers.send(ID, OpenRun(submission(&irn, "a"))).await;
            let opened = opened.unwrap();
            for to in *actions {
                let action = operator_action(opened.id, &opened.irn, *to);
                app.taxpayers.send(ID, action).await.unwrap();
            }
            let sent = app.taxpayers.send(ID, OpenRun(submission(&irn, note)));
            let run = sent.await.unwrap();
            let name = format!("{actions:?} {note}");
            assert_eq!((run.id, run.state()), (opened.id, *state), "{name}");
            assert_eq!(run.document()["note"], *note, "{name}");
        }
        app.close().await;
    }
}

fn operator_action(run: RunId, irn: &Irn, to: OperatorAction) -> ApplyOperatorAction {
    ApplyOperatorAction {
        run,
        irn: irn.clone(),
        to,
        by: OperatorRequest {
            operator_id: 1,
            reason: None,
        },
    }
}

fn reads_credit_notes(command: &impl TaxpayerCommand) -> bool {
    let cached = CachedState {
        version: 1,
        taxpayer: None,
        endpoints: Vec::new(),
        head: LogHead::default(),
    };
    let context = ReadContext {
        taxpayer_id: ID,
        command: CommandId::nil(),
        cached: &cached,
    };
    let mut wanted = ReadSet::default();
    command.add_reads(&mut wanted, &context);
    wanted.with_invoices.credit_notes
}

#[test]
fn what_makes_a_stopped_run_continue_reads_the_credit_notes_of_its_invoice() {
    let irn = Irn::parse("HELD-00000061-20260131").unwrap();
    let stopped = StoppedRun {
        run: RunId::nil(),
        irn: irn.clone(),
        seen_updated_at: Timestamp::UNIX_EPOCH,
    };
    assert!(reads_credit_notes(&RecheckRun(stopped.clone())));
    assert!(reads_credit_notes(&LiftQuarantine(stopped)));
    for (to, expected) in [
        (OperatorAction::Pause, false),
        (OperatorAction::Resume, true),
        (OperatorAction::Retry, true),
        (OperatorAction::Cancel, false),
    ] {
        let action = operator_action(RunId::nil(), &irn, to);
        assert_eq!(reads_credit_notes(&action), expected, "{to}");
    }
}

#[actix_rt::test]
async fn concurrent_replacements_of_content_make_the_run_due_once() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let irn = "TWINS-00000061-20260131";
        let notes: Vec<_> = (0..16).map(|n| n.to_string()).collect();
        let runs = notes
            .iter()
            .map(|note| app.taxpayers.send(ID, OpenRun(submission(irn, note))));
        let ids: Vec<_> = join_all(runs)
            .await
            .into_iter()
            .map(|run| run.unwrap().id)
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
        app.close().await;
    }
}

/// The data check of Submit locks the invoice. A refusal of the signature unlocks it, unless other content is signed.
#[actix_rt::test]
async fn a_submission_that_is_refused_before_the_signature_unlocks_its_invoice() {
    use WorkflowStatus::{Approved, Cancelled, Draft, Validated};
    // The step that is refused and the words of the refusal; the status of the invoice after it, and after a caller
    // has tried to cancel it.
    for (refused, error, unlocked, ended) in [
        (Step::DataCheck, "no", Draft, Cancelled),
        (Step::Sign, "no", Approved, Cancelled),
        (Step::Sign, SIGNED_OTHERWISE_MESSAGE, Validated, Validated),
    ] {
        for test in stores().await {
            let app = TestTaxpayers::with_taxpayer(test).await;
            let store = &app.test.store;
            let created = app.taxpayers.send(ID, CreateInvoice(draft("REFUSED", 100)));
            let irn = created.await.unwrap().invoice.irn;
            let request = submission(irn.as_str(), "a");
            let run = app.taxpayers.send(ID, OpenRun(request)).await.unwrap();
            let claimed = claim_due(store, LaneKind::Run, "me", Duration::from_secs(30), 9).await;
            let lease = claimed.unwrap().remove(0);
            let checks = [Step::IrnCheck, Step::DataCheck];
            let done = checks.iter().position(|step| *step == refused);
            succeed(&app, &lease, &run, &checks[..done.unwrap_or(checks.len())]).await;
            let verdict = StepResult::Refused {
                error: error.to_owned(),
            };
            let outcome = step_outcome(refused, verdict);
            let run = record_steps(&app, &lease, &run, vec![outcome]).await;
            assert_eq!(run.state(), RunState::Refused, "{refused} {error}");
            let kind = UniqueNoType::InternalInvoiceNo;
            let found = invoices::find_owned_by_unique_no(store, ID, kind, "REFUSED").await;
            let invoice = found.unwrap().unwrap();
            let seen = (invoice.status, invoice.authority.status);
            let expected = (unlocked, AuthorityStatus::Rejected);
            assert_eq!(seen, expected, "{refused} {error}");
            let cancel = SetStatus {
                invoice: by_number("REFUSED"),
                status: SettableStatus::Cancelled,
                remark: "refused".to_owned(),
                submission: None,
            };
            let cancelled = app.taxpayers.send(ID, cancel).await;
            assert_eq!(cancelled.is_ok(), ended == Cancelled, "{refused} {error}");
            let found = invoices::find_owned_by_unique_no(store, ID, kind, "REFUSED").await;
            assert_eq!(found.unwrap().unwrap().status, ended, "{refused} {error}");
            app.close().await;
        }
    }
}

/// An invoice that is stored after its signature is a draft, so it can be cancelled before the signature is confirmed.
#[actix_rt::test]
async fn a_run_that_has_signed_is_not_cancelled_with_its_invoice() {
    let checks = [Step::IrnCheck, Step::DataCheck];
    for (before, state, shown) in [
        (&checks[..1], RunState::Cancelled, AuthorityStatus::Pending),
        (&checks[..], RunState::Succeeded, AuthorityStatus::Submitted),
    ] {
        for test in stores().await {
            let app = TestTaxpayers::with_taxpayer(test).await;
            let store = &app.test.store;
            let request = submission("LATE-00000061-20260131", "a");
            let run = app.taxpayers.send(ID, OpenRun(request)).await.unwrap();
            let claimed = claim_due(store, LaneKind::Run, "me", Duration::from_secs(30), 9).await;
            let lease = claimed.unwrap().remove(0);
            succeed(&app, &lease, &run, before).await;
            if before.contains(&Step::DataCheck) {
                succeed(&app, &lease, &run, &[Step::Sign]).await;
            }
            let created = app.taxpayers.send(ID, CreateInvoice(draft("LATE", 100)));
            assert_eq!(created.await.unwrap().invoice.irn.key(), run.irn.key());
            let cancel = SetStatus {
                invoice: by_number("LATE"),
                status: SettableStatus::Cancelled,
                remark: "late".to_owned(),
                submission: None,
            };
            app.taxpayers.send(ID, cancel).await.unwrap();
            let ended = succeed(&app, &lease, &run, &[Step::Confirm]).await;
            assert_eq!(ended.state(), state, "{before:?}");
            let kind = UniqueNoType::InternalInvoiceNo;
            let found = invoices::find_owned_by_unique_no(store, ID, kind, "LATE").await;
            let invoice = found.unwrap().unwrap();
            assert_eq!(
                (invoice.status, invoice.authority.status),
                (WorkflowStatus::Cancelled, shown),
                "{before:?}"
            );
            app.close().await;
        }
    }
}
