//! What of the list is asked for.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{with, without};
use testkit::roles::Taxpayer;

use super::{create, ids, numbers};
use crate::support::world::World;

/// The ids that a query finds, newest first, all on one page.
async fn found(taxpayer: &Taxpayer, query: &str) -> Vec<Value> {
    let answer = taxpayer
        .list_invoices(&format!("?per_page=100&{query}"))
        .await
        .expect_status(200);
    let [_, total, _, _] = numbers(&answer);
    let ids = ids(&answer);
    assert_eq!(total, i64::try_from(ids.len()).unwrap(), "{query}");
    ids
}

async fn id_of(taxpayer: &Taxpayer, body: &Value) -> Value {
    taxpayer.invoice(body).await["id"].clone()
}

#[each_database]
async fn invoices_are_found_by_their_batch(world: &World) {
    let taxpayer = world.taxpayer().await;
    create(&taxpayer, 1).await;
    let sent: Vec<_> = (0..3).map(|_| documents::invoice()).collect();
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let batch = taxpayer.created_batch(&answer).await;
    let mut expected: Vec<_> = batch["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    expected.reverse();
    let batch_no = answer.data()["batch_no"].as_str().unwrap();
    assert_eq!(
        found(&taxpayer, &format!("batch_no={batch_no}")).await,
        expected
    );
    for unknown in [
        "nonsense",
        "%00",
        "%FF",
        "%25",
        "B",
        &batch_no.to_lowercase(),
    ] {
        assert_eq!(
            found(&taxpayer, &format!("batch_no={unknown}")).await,
            [] as [Value; 0],
            "{unknown}"
        );
    }
    assert_eq!(
        found(&taxpayer, "batch_no=").await.len(),
        4,
        "blank is as good as absent"
    );
}

#[each_database]
async fn invoices_are_found_by_their_statuses(world: &World) {
    let taxpayer = world.taxpayer().await;
    let one = taxpayer.invoice(&documents::invoice()).await;
    let other = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&one, "approved")
        .await
        .expect_status(200);
    let paid = json!({
        "unique_no": one["irn"], "unique_no_type": "IRN", "status": "rejected", "remark": "not good",
    });
    taxpayer.pay(&paid).await.expect_status(200);
    assert_eq!(
        found(&taxpayer, "status=APPROVED").await,
        [one["id"].clone()]
    );
    assert_eq!(
        found(&taxpayer, "status=draft").await,
        [other["id"].clone()]
    );
    assert_eq!(found(&taxpayer, "status=reported").await, [] as [Value; 0]);
    assert_eq!(
        found(&taxpayer, "payment_status=rejected").await,
        [one["id"].clone()]
    );
    assert_eq!(
        found(&taxpayer, "payment_status=PENDING").await,
        [other["id"].clone()]
    );
    assert_eq!(
        found(&taxpayer, "status=approved&payment_status=pending").await,
        [] as [Value; 0]
    );
    assert_eq!(
        found(&taxpayer, "status=approved&payment_status=rejected").await,
        [one["id"].clone()]
    );
}

#[each_database]
async fn invoices_are_found_by_their_category(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "invoice_category", json!("B2G"));
    let body = with(&body, "customer.no", json!("G-1"));
    let government = id_of(&taxpayer, &body).await;
    let business = id_of(&taxpayer, &documents::invoice()).await;
    assert_eq!(found(&taxpayer, "invoice_category=b2g").await, [government]);
    assert_eq!(found(&taxpayer, "invoice_category=B2B").await, [business]);
    assert_eq!(
        found(&taxpayer, "invoice_category=B2C").await,
        [] as [Value; 0]
    );
}

#[each_database]
async fn dates_are_those_of_the_invoice_and_both_ends_count(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut all = Vec::new();
    for date in ["2026-01-01", "2026-01-31", "2026-02-01"] {
        let body = with(&documents::invoice(), "invoice_date", json!(date));
        all.push(id_of(&taxpayer, &body).await);
    }
    let newest_first =
        |places: &[usize]| places.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    for (query, places) in [
        ("date_from=2026-01-31", [2, 1].as_slice()),
        ("date_to=2026-01-31", &[1, 0]),
        ("date_from=2026-01-02&date_to=2026-01-31", &[1]),
        ("date_from=2026-01-31&date_to=2026-01-31", &[1]),
        ("date_from=2026-02-02", &[]),
        ("date_to=2025-12-31", &[]),
    ] {
        assert_eq!(
            found(&taxpayer, query).await,
            newest_first(places),
            "{query}"
        );
    }
}

#[each_database]
async fn invoices_are_found_by_their_due_dates_and_amounts(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut all = Vec::new();
    for (due, price) in [
        ("2026-02-01", "9"),
        ("2026-02-02", "10.00"),
        ("2026-02-03", "100"),
    ] {
        let body = documents::invoice_with_price(price, "1");
        all.push(id_of(&taxpayer, &with(&body, "due_date", json!(due))).await);
    }
    let undated = without(&documents::full_invoice(&taxpayer), "due_date");
    all.push(taxpayer.new_full_invoice(&undated).await["id"].clone());
    let newest_first =
        |places: &[usize]| places.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    for (query, places) in [
        ("due_before=2026-02-02", [0].as_slice()),
        ("due_after=2026-02-02", &[2]),
        ("due_after=2026-02-01&due_before=2026-02-03", &[1]),
        ("due_after=2026-02-03", &[]),
        ("due_before=9999-12-31", &[2, 1, 0]),
        ("amount_min=10", &[3, 2, 1]),
        ("amount_max=10", &[1, 0]),
        ("amount_max=9.99", &[0]),
        ("amount_min=10.0000&amount_max=1e2", &[2, 1]),
        ("amount_min=99999", &[]),
        ("amount_min=10&due_before=2026-02-03&status=draft", &[1]),
    ] {
        assert_eq!(
            found(&taxpayer, query).await,
            newest_first(places),
            "{query}"
        );
    }
}

#[each_database]
async fn invoices_are_found_by_their_currency(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut all = Vec::new();
    for (currency, price) in [("NGN", "100"), ("USD", "100"), ("USD", "9")] {
        let body = documents::invoice_with_price(price, "1");
        all.push(id_of(&taxpayer, &with(&body, "currency", json!(currency))).await);
    }
    let newest_first =
        |places: &[usize]| places.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    for (query, places) in [
        ("currency=NGN", [0].as_slice()),
        ("currency=+USD+", &[2, 1]),
        ("currency=", &[2, 1, 0]),
        ("currency=EUR", &[]),
        ("amount_min=50", &[1, 0]),
        ("currency=USD&amount_min=50", &[1]),
        ("currency=USD&status=draft&sort=payable", &[2, 1]),
    ] {
        assert_eq!(
            found(&taxpayer, query).await,
            newest_first(places),
            "{query}"
        );
    }
    for (code, sentence) in [
        ("usd", "(did you mean USD?)"),
        ("QQQ", "must exist in currencies"),
        ("US", "a currency code of 3 letters"),
    ] {
        let refused = taxpayer.list_invoices(&format!("?currency={code}")).await;
        let text = refused.expect_faults(&["currency"]).text;
        assert!(text.contains(sentence), "{code}: {text}");
    }
}

#[each_database]
async fn overdue_invoices_are_due_and_somebody_owes_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut all = Vec::new();
    for due in [
        "2026-02-01",
        "2026-02-01",
        "2026-02-01",
        "9999-01-01",
        "2026-02-01",
        "2026-02-01",
    ] {
        let body = with(&documents::invoice(), "due_date", json!(due));
        all.push(taxpayer.invoice(&body).await);
    }
    let note = with(&documents::invoice(), "due_date", json!("2026-02-01"));
    let note = with(&note, "invoice_type_code", json!("380"));
    let note = with(&note, "original_invoice_reference", all[2]["irn"].clone());
    let note = with(&note, "original_invoice_reference_type", json!("IRN"));
    all.push(taxpayer.invoice(&note).await);
    for approved in [&all[2], &all[4], &all[6]] {
        taxpayer
            .set_status(approved, "approved")
            .await
            .expect_status(200);
    }
    let whole = json!({
        "unique_no": all[4]["irn"], "unique_no_type": "IRN", "payment_status": "partial", "remark": "all of it",
        "amount": 1075,
    });
    taxpayer.pay(&whole).await.expect_status(200);
    let undated = without(&documents::full_invoice(&taxpayer), "due_date");
    taxpayer.new_full_invoice(&undated).await;
    taxpayer
        .set_status(&all[0], "cancelled")
        .await
        .expect_status(200);
    taxpayer
        .set_status(&all[1], "approved")
        .await
        .expect_status(200);
    let paid = json!({
        "unique_no": all[1]["irn"], "unique_no_type": "IRN", "status": "paid", "remark": "all of it",
    });
    taxpayer.pay(&paid).await.expect_status(200);
    assert_eq!(
        found(&taxpayer, "overdue=true").await,
        [all[2]["id"].clone()]
    );
    assert_eq!(found(&taxpayer, "overdue=false").await.len(), 8);
    taxpayer
        .list_invoices("?overdue=perhaps")
        .await
        .expect_faults(&["overdue"]);
}

#[each_database]
async fn invoices_are_found_by_their_status_at_the_authority(world: &World) {
    let taxpayer = world.taxpayer().await;
    let signed = taxpayer.invoice(&documents::invoice()).await;
    let other = taxpayer.invoice(&documents::invoice()).await;
    let submission = documents::submission(&taxpayer, signed["invoice_no"].as_str().unwrap());
    taxpayer
        .app()
        .submit_to_the_end(&submission)
        .await
        .expect_status(200);
    assert_eq!(
        found(&taxpayer, "authority_status=submitted").await,
        [signed["id"].clone()]
    );
    assert_eq!(
        found(&taxpayer, "authority_status=PENDING").await,
        [other["id"].clone()]
    );
    assert_eq!(
        found(&taxpayer, "authority_status=REJECTED").await,
        [] as [Value; 0]
    );
    let mut both = found(&taxpayer, "authority_status=pending,%20SUBMITTED").await;
    both.sort_by_key(Value::as_i64);
    assert_eq!(both, [signed["id"].clone(), other["id"].clone()]);
    let unsettled = "authority_status=QUEUED,VALIDATED,REJECTED,FAILED";
    assert_eq!(found(&taxpayer, unsettled).await, [] as [Value; 0]);
    taxpayer
        .list_invoices("?authority_status=PENDING,")
        .await
        .expect_status(422);
}

#[each_database]
async fn invoices_are_found_by_the_customers_number_as_it_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbered = |no: &str| with(&documents::invoice(), "customer.no", json!(no));
    let one = id_of(&taxpayer, &numbered("C%1")).await;
    let two = id_of(&taxpayer, &numbered("C_1")).await;
    assert_eq!(found(&taxpayer, "customer_no=C%251").await, [one]);
    assert_eq!(found(&taxpayer, "customer_no=+C_1+").await, [two]);
    for other in ["C", "c_1", "%25", "C_", "%00", "C_1%00", &"x".repeat(3_000)] {
        assert_eq!(
            found(&taxpayer, &format!("customer_no={other}")).await,
            [] as [Value; 0],
            "{other}"
        );
    }
}

#[each_database]
async fn a_search_finds_parts_of_numbers_and_of_the_customer_in_any_case(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "invoice_no", json!("Ab-100%_\\x"));
    let body = with(&body, "customer.no", json!("Kunde-9"));
    let body = with(&body, "customer.tin", json!("99999999-0009"));
    let one = id_of(
        &taxpayer,
        &with(&body, "customer.name", json!("M\u{fc}ller & S\u{f6}hne")),
    )
    .await;
    let two = id_of(&taxpayer, &documents::invoice()).await;
    let service_id = taxpayer.registration.service_id.to_lowercase();
    for (text, expected) in [
        ("ab-1", vec![&one]),
        ("100%25_%5Cx", vec![&one]),
        ("%5C", vec![&one]),
        ("100%25%25", vec![]),
        ("1_0", vec![]),
        ("%25_", vec![&one]),
        ("M%C3%9CLLER", vec![&one]),
        ("%26+s%C3%B6", vec![&one]),
        ("kunde-9", vec![&one]),
        ("99999999-0009", vec![&one]),
        ("retail stores", vec![&two]),
        (service_id.as_str(), vec![&two, &one]),
        ("no such text", vec![]),
        ("%00", vec![]),
        ("%27%20OR%201=1--", vec![]),
        ("+", vec![&two, &one]),
    ] {
        let expected: Vec<_> = expected.into_iter().cloned().collect();
        assert_eq!(
            found(&taxpayer, &format!("q={text}")).await,
            expected,
            "{text}"
        );
    }
}

#[each_database]
async fn updates_are_found_by_their_time(world: &World) {
    let taxpayer = world.taxpayer().await;
    let first = taxpayer.invoice(&documents::invoice()).await;
    let second = taxpayer.invoice(&documents::invoice()).await;
    let after_second = taxpayer.events().await[2]["timestamp"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        found(&taxpayer, &format!("updated_since={after_second}")).await,
        [second["id"].clone()]
    );
    taxpayer
        .set_status(&first, "approved")
        .await
        .expect_status(200);
    let both = [second["id"].clone(), first["id"].clone()];
    assert_eq!(
        found(&taxpayer, &format!("updated_since={after_second}")).await,
        both
    );
    let shown = second["updated_at"].as_str().unwrap().replace(' ', "%20");
    assert_eq!(
        found(&taxpayer, &format!("updated_since={shown}")).await,
        both
    );
    assert_eq!(found(&taxpayer, "updated_since=2020-01-01").await, both);
    assert_eq!(
        found(&taxpayer, "updated_since=9998-12-31T23:59:59Z").await,
        [] as [Value; 0]
    );
    assert_eq!(
        found(&taxpayer, "updated_since=2020-01-01T00:00:00+01:00").await,
        both
    );
}

#[each_database]
async fn filters_that_make_no_sense_are_refused_at_once_and_the_longest_search_is_taken(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let odd = taxpayer
        .list_invoices("?status=x&date_from=y&cursor=MS4x.")
        .await;
    odd.expect_faults(&["cursor", "date_from", "status"]);
    let longest = format!("q={}", "%5C".repeat(255));
    assert_eq!(found(&taxpayer, &longest).await, [] as [Value; 0]);
}

#[each_database]
async fn a_filter_is_over_the_callers_own_invoices(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let mine = create(&one, 1).await;
    create(&other, 2).await;
    for query in [
        "status=draft",
        "q=inv",
        "customer_no=C-001",
        "updated_since=2020-01-01",
        "date_from=2026-01-15",
    ] {
        assert_eq!(found(&one, query).await, mine, "{query}");
    }
}
