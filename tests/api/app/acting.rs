//! Who may call, and which taxpayer a call acts for.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, submission};
use testkit::edit::{with, without};
use testkit::roles::{SUBMIT, TRANSMIT};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[on_sqlite]
async fn a_missing_key_is_401_and_any_other_that_is_not_known_403(world: &World) {
    let body = json!({ "irn": "INV1-AAAAAAAA-20260115" });
    let answer = world.anonymous().send("POST", TRANSMIT, &body).await;
    answer.expect_refusal(401, "UNAUTHENTICATED");
    let operator = world.new_operator().await;
    for key in [
        "tpk_unknown",
        "sik_unknown",
        "nonsense",
        "xyz_1",
        operator.key(),
    ] {
        let answer = world
            .anonymous()
            .with_key(key)
            .send("POST", TRANSMIT, &body)
            .await;
        answer.expect_refusal(403, "KEY_NOT_RECOGNIZED");
    }
    let empty = world
        .anonymous()
        .with_key("")
        .send("POST", TRANSMIT, &body)
        .await;
    empty.expect_refusal(401, "UNAUTHENTICATED");
}

#[each_database]
async fn an_integrator_acts_for_the_taxpayer_of_the_business_id(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let app = world.integrator().app();
    app.submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let irn = irn(&taxpayer, &no);
    let run = taxpayer.app().run(&irn).await.expect_status(200);
    assert_eq!(run.data()["state"], json!("succeeded"));
    app.transmit(&irn).await.expect_status(200);
    app.confirm_receipt(&irn).await.expect_status(200);
    app.confirm(&irn).await.expect_status(200);
    assert_eq!(
        app.run(&irn).await.expect_status(200).data()["irn"],
        json!(irn)
    );
}

#[each_database]
async fn the_taxpayer_of_another_integrator_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = submission(&taxpayer, &no);
    taxpayer.app().submit(&body).await.expect_status(200);
    let stranger = world.new_integrator().await.app();
    let irn = irn(&taxpayer, &no);
    stranger
        .submit(&body)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    stranger
        .transmit(&irn)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    for answer in [
        stranger.confirm(&irn).await,
        stranger.run(&irn).await,
        stranger.confirm_receipt(&irn).await,
    ] {
        assert_eq!(
            (answer.status, &answer.body["data"]),
            (404, &Value::Null),
            "{}",
            answer.text
        );
    }
}

#[on_sqlite]
async fn the_business_id_decides_before_the_irn_and_the_header(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let body = with(
        &submission(&one, "INV1"),
        "business_id",
        json!(other.registration.business_id),
    );
    let request = world
        .integrator()
        .request("POST", SUBMIT)
        .header("x-taxpayer-id", one.id);
    let answer = Answer::to(request.json(&body)).await;
    let answer = answer.expect_refusal(422, "IRN_SERVICE_ID_MISMATCH");
    assert_eq!(answer.faulty_paths(), ["irn"]);
}

#[on_sqlite]
async fn where_nothing_else_is_well_formed_the_header_decides(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let send = async |header: String| {
        let request = integrator
            .request("POST", TRANSMIT)
            .header("x-taxpayer-id", header);
        Answer::to(request.json(&json!({ "irn": "nonsense" }))).await
    };
    send(taxpayer.id.to_string())
        .await
        .expect_refusal(422, "IRN_MALFORMED");
    send("999999999".to_owned())
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    let body = without(&submission(&taxpayer, "INV1"), "business_id");
    integrator
        .app()
        .submit(&body)
        .await
        .expect_faults(&["business_id"]);
}

#[on_sqlite]
async fn a_header_with_another_taxpayer_than_the_irn_is_told(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = submission(&one, &no);
    let run = format!("/v1/app/invoices/{}/run", irn(&one, &no));
    let told = |reason: &str| {
        format!(
            "x-taxpayer-id {} is ignored: the call acts for taxpayer {}, {reason}",
            other.id, one.id
        )
    };
    let integrator = world.integrator();
    for (caller, header, expected) in [
        (
            &*integrator,
            other.id,
            told("whom the IRN or the body names"),
        ),
        (&*one, other.id, told("to which the key belongs")),
        (&*integrator, one.id, String::new()),
    ] {
        for request in [
            caller.request("POST", SUBMIT).json(&body),
            caller.request("GET", &run),
        ] {
            let answer = Answer::to(request.header("x-taxpayer-id", header)).await;
            let warnings = answer.expect_status(200).warnings();
            let lines = warnings.lines();
            let about_header: String = lines
                .filter(|line| line.starts_with("x-taxpayer-id"))
                .collect();
            assert_eq!(about_header, expected);
        }
    }
}

#[on_sqlite]
async fn a_taxpayer_that_names_another_gets_a_fault_on_that_field(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let body = with(
        &submission(&one, "INV1"),
        "business_id",
        json!(other.registration.business_id),
    );
    one.app()
        .submit(&body)
        .await
        .expect_faults(&["business_id"]);
    let body = with(&submission(&one, "INV1"), "irn", json!(irn(&other, "INV1")));
    let answer = one.app().submit(&body).await;
    assert_eq!(
        answer
            .expect_refusal(422, "IRN_SERVICE_ID_MISMATCH")
            .faulty_paths(),
        ["irn"]
    );
}
