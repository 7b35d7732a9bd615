//! GET /v1/app/invoices/{irn}/run.

use serde_json::{Value, json};
use testkit::documents::{self, irn, number, submission};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn outcomes(run: &Value) -> Vec<(&str, &Value)> {
    let steps = run["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), &step["outcome"]))
        .collect()
}

#[each_database]
async fn a_run_shows_its_steps(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let answer = taxpayer
        .app()
        .run(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    let run = answer.data();
    let fields: Vec<_> = run
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "asked_by",
            "attempt",
            "deadline_at",
            "explanations",
            "irn",
            "last_error",
            "next_attempt_at",
            "operation",
            "queue",
            "resolved_by",
            "state",
            "step",
            "steps",
            "wait_reason",
        ]
    );
    assert_eq!(
        (&run["operation"], &run["state"]),
        (&json!("submit"), &json!("succeeded"))
    );
    assert_eq!(run["explanations"], json!([]));
    let steps: Vec<_> = outcomes(run).into_iter().map(|(step, _)| step).collect();
    insta::assert_snapshot!(steps.join(", "), @r#"
            irn-check, data-check, sign, confirm
        "#);
    for step in run["steps"].as_array().unwrap() {
        let fields: Vec<_> = step
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            fields,
            [
                "attempt",
                "duration_ms",
                "error",
                "outcome",
                "started_at",
                "step"
            ]
        );
        assert!(
            step["duration_ms"].is_i64() && step["outcome"].is_string(),
            "{step}"
        );
    }
}

#[each_database]
async fn each_attempt_at_a_step_is_shown(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("INV{}SBX500", number());
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let answer = taxpayer
        .app()
        .run(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    let signs = outcomes(answer.data())
        .into_iter()
        .filter(|(step, _)| *step == "sign")
        .count();
    assert_eq!(signs, 3, "{}", answer.text);
}

#[on_sqlite]
async fn an_irn_without_a_run_has_none_to_show(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let no = documents::invoice_no();
    let stored = taxpayer.invoice(&documents::invoice()).await;
    let stored = stored["irn"].as_str().unwrap();
    for (irn, sentence) in [
        (irn(&taxpayer, &no), "No invoice with this IRN is stored"),
        (
            stored.to_owned(),
            "The invoice is stored, but was not submitted",
        ),
    ] {
        let answer = taxpayer.app().run(&irn).await;
        let answer = answer.expect_refusal(404, "RUN_NOT_FOUND");
        let message = answer.message();
        assert!(message.starts_with(sentence), "{irn}: {message}");
    }
    other
        .app()
        .submit(&submission(&other, &no))
        .await
        .expect_status(200);
    for irn in [irn(&other, &no), "nonsense".to_owned()] {
        taxpayer
            .app()
            .run(&irn)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
}
