//! An invoice that exists is no error.

use futures_util::future::join_all;
use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;

use crate::support::world::World;

#[each_database]
async fn an_irn_or_a_number_that_exists_is_answered_with_the_existing_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let first = taxpayer.new_full_invoice(&body).await;
    let other_no = with(&body, "invoice_no", json!(documents::invoice_no()));
    let other_irn = with(
        &body,
        "irn",
        json!(documents::irn(&taxpayer, &documents::invoice_no())),
    );
    for (body, word) in [
        (&body, "identical"),
        (&other_no, "different"),
        (&other_irn, "different"),
    ] {
        let again = taxpayer.create_full(body).await.expect_status(200);
        assert_eq!(
            (again.message(), again.data()),
            ("Invoice with this IRN already exists", &first)
        );
        assert_eq!(
            (&again.body["success"], again.header("x-duplicate")),
            (&json!(true), word)
        );
    }
    assert_eq!(taxpayer.invoice_event_names().await, ["invoice.created"]);
}

#[each_database]
async fn where_irn_and_number_are_of_two_invoices_the_irn_decides(world: &World) {
    let taxpayer = world.taxpayer().await;
    let one = documents::full_invoice(&taxpayer);
    let other = documents::full_invoice(&taxpayer);
    let (first, _) = (
        taxpayer.new_full_invoice(&one).await,
        taxpayer.new_full_invoice(&other).await,
    );
    let mixed = with(&one, "invoice_no", other["invoice_no"].clone());
    assert_eq!(
        *taxpayer.create_full(&mixed).await.expect_status(200).data(),
        first
    );
}

/// The IRN of a standard invoice follows from its number. It may be another invoice's, whose number is not the one in it.
#[each_database]
async fn a_number_whose_irn_is_another_invoices_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let taken = documents::invoice_no();
    let owner = documents::invoice_no();
    let full = with(
        &documents::full_invoice(&taxpayer),
        "invoice_no",
        json!(owner),
    );
    let first = taxpayer
        .new_full_invoice(&with(
            &full,
            "irn",
            json!(documents::irn(&taxpayer, &taken)),
        ))
        .await;
    let standard = documents::invoice_numbered(&taken);
    let refused = taxpayer
        .create_invoice(&standard)
        .await
        .expect_refusal(422, "IRN_TAKEN");
    assert_eq!(refused.faulty_paths(), ["invoice_no"]);
    assert!(refused.message().contains(&owner), "{}", refused.text);
    let answer = taxpayer
        .create_batch(&[standard, documents::invoice()])
        .await
        .expect_status(201);
    let batch = taxpayer.created_batch(&answer).await;
    assert_eq!(
        (&batch["created"], &batch["duplicates"], &batch["failed"]),
        (&json!(1), &json!(0), &json!(1))
    );
    assert!(
        batch["items"][0]["errors"]["invoice_no"].is_array(),
        "{batch}"
    );
    let later = with(
        &documents::invoice_numbered(&owner),
        "invoice_date",
        json!("2026-01-16"),
    );
    let same = taxpayer.create_invoice(&later).await.expect_status(200);
    assert_eq!(
        (same.message(), &same.data()["id"]),
        ("Invoice already exist", &first["id"])
    );
}

#[each_database]
async fn standard_and_full_share_their_numbers_each_with_its_own_words(world: &World) {
    let taxpayer = world.taxpayer().await;
    let standard = documents::invoice();
    let first = taxpayer.invoice(&standard).await;
    let full = with(
        &documents::full_invoice(&taxpayer),
        "invoice_no",
        first["invoice_no"].clone(),
    );
    let again = taxpayer.create_full(&full).await.expect_status(200);
    assert_eq!(
        (again.message(), &again.data()["id"]),
        ("Invoice with this IRN already exists", &first["id"])
    );
    assert_eq!(again.header("x-duplicate"), "different");
    let full = taxpayer
        .new_full_invoice(&documents::full_invoice(&taxpayer))
        .await;
    let standard = with(&standard, "invoice_no", full["invoice_no"].clone());
    let again = taxpayer.create_invoice(&standard).await.expect_status(200);
    assert_eq!(
        (again.message(), &again.data()["id"]),
        ("Invoice already exist", &full["id"])
    );
}

#[each_database]
async fn of_concurrent_twins_by_irn_or_by_number_one_is_new(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let by_irn = (0..16).map(|n| with(&body, "invoice_no", json!(format!("TWIN{n}"))));
    let bodies: Vec<_> = by_irn.collect();
    let answers = join_all(bodies.iter().map(|body| taxpayer.create_full(body))).await;
    let count = |status| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!((count(201), count(200)), (1, 15));
    assert!(
        answers
            .iter()
            .all(|answer| answer.data()["id"] == answers[0].data()["id"])
    );
    let irn = |n: usize| json!(documents::irn(&taxpayer, &format!("PEER{n}")));
    let bodies: Vec<_> = (0..16)
        .map(|n| with(&with(&body, "invoice_no", json!("PEER")), "irn", irn(n)))
        .collect();
    let answers = join_all(bodies.iter().map(|body| taxpayer.create_full(body))).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 201).count(),
        1
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.data()["id"] == answers[0].data()["id"])
    );
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(2));
}

#[each_database]
async fn an_invoice_that_was_edited_is_no_longer_what_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let first = taxpayer.new_full_invoice(&body).await;
    let edited = taxpayer
        .update(&documents::update(&first))
        .await
        .expect_status(200);
    let again = taxpayer.create_full(&body).await.expect_status(200);
    assert_eq!(
        (again.data(), again.header("x-duplicate")),
        (edited.data(), "different")
    );
}
