//! POST /v1/tax-payers/invoices/{id}/correct, the progress of a correction, and the undoing of a batch.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{full_invoice, invoice, submission};
use testkit::edit::{exact, with, without};
use testkit::patience::eventually;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

const INVOICES: &str = "/v1/tax-payers/invoices";

/// An invoice of 1,182.50: two laptops and a mouse.
fn two_lines() -> Value {
    let body = invoice();
    let laptop = body["invoice_lines"][0].clone();
    let mouse = with(&laptop, "item_no", json!("MOU-1"));
    let mouse = with(&mouse, "item_name", json!("Mouse"));
    let mouse = with(&mouse, "unit_price", json!(100));
    let mouse = with(&mouse, "quantity", json!(1));
    with(&body, "invoice_lines", json!([laptop, mouse]))
}

async fn sign(taxpayer: &Taxpayer, stored: &Value) {
    let alone = json!({ "irn": stored["irn"] });
    let signed = taxpayer.app().submit_to_the_end(&alone).await;
    signed.expect_status(200);
}

async fn signed(taxpayer: &Taxpayer, body: &Value) -> Value {
    let stored = taxpayer.invoice(body).await;
    sign(taxpayer, &stored).await;
    stored
}

async fn correct(taxpayer: &Taxpayer, stored: &Value, query: &str, body: &Value) -> Answer {
    let path = format!("{INVOICES}/{}/correct{query}", stored["id"]);
    taxpayer.send("POST", &path, body).await
}

/// Waits until the correction at this path has come to a state.
async fn wait_for(taxpayer: &Taxpayer, path: &str, state: &str) -> Value {
    let what = format!("a correction that is {state}");
    eventually(&what, async || in_state(taxpayer, path, state).await).await
}

/// Returns the correction at this path if it is in this state.
async fn in_state(taxpayer: &Taxpayer, path: &str, state: &str) -> Option<Value> {
    let read = taxpayer.get(path).await.expect_status(200);
    (read.data()["state"] == state).then(|| read.data().clone())
}

/// Returns the kind and the payable of each document of a plan.
fn plan(correction: &Value) -> Vec<String> {
    let documents = correction["documents"].as_array().unwrap().iter();
    documents
        .map(|document| {
            let kind = document["kind"].as_str().unwrap();
            format!("{kind} {}", document["payable"])
        })
        .collect()
}

/// Makes calls about an invoice fail until the faults are cleared.
fn hold(world: &World, irn: &str) {
    let mut fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::IrnValidate)
        .times(1_000_000);
    fault.irn = Some(irn.to_owned());
    world.authority.add_fault(fault).unwrap();
}

#[each_database]
async fn each_wish_has_the_smallest_plan_and_a_preview_changes_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = two_lines();
    let stored = signed(&taxpayer, &body).await;
    let whole = "credit_note 1182.50";
    let cases: [(&str, Value, &[&str]); 8] = [
        ("as it is", body.clone(), &["none 0"]),
        ("cancelled", json!({ "cancel": true }), &[whole]),
        (
            "fewer",
            with(&body, "invoice_lines.0.quantity", json!(1)),
            &["credit_note 537.50"],
        ),
        (
            "cheaper",
            with(&body, "invoice_lines.0.unit_price", exact("499.99")),
            &["credit_note 0.02"],
        ),
        (
            "without a line",
            with(&body, "invoice_lines", json!([body["invoice_lines"][0]])),
            &["credit_note 107.50"],
        ),
        (
            "more",
            with(&body, "invoice_lines.1.quantity", json!(2)),
            &[whole, "replacement 1290.00"],
        ),
        (
            "another tax",
            with(&body, "invoice_lines.1.tax_category", json!("ZERO_VAT")),
            &[whole, "replacement 1175.00"],
        ),
        (
            "another customer",
            with(
                &with(&body, "customer.no", json!("C-777")),
                "customer.tin",
                json!("87654321-0777"),
            ),
            &[whole, "replacement 1182.50"],
        ),
    ];
    for (name, wanted, expected) in cases {
        let preview = correct(&taxpayer, &stored, "?preview=true", &wanted).await;
        let preview = preview.expect_status(200);
        assert_eq!(plan(preview.data()), expected, "{name}");
        assert_eq!(preview.data()["correction_no"], Value::Null, "{name}");
    }
    let nothing = correct(&taxpayer, &stored, "", &body).await;
    let nothing = nothing.expect_status(200);
    assert_eq!(nothing.message(), "Nothing has to be corrected");
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 1, "nothing was created");
}

#[each_database]
async fn a_credit_note_for_a_part_refers_to_its_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = two_lines();
    let stored = signed(&taxpayer, &body).await;
    let no = stored["invoice_no"].as_str().unwrap();
    let wanted = with(&body, "invoice_lines.0.quantity", json!(1));
    let started = correct(&taxpayer, &stored, "", &wanted).await;
    let started = started.expect_status(202);
    assert_eq!(started.message(), "Correction started");
    let note = &started.data()["documents"][0];
    assert_eq!(note["invoice_no"], format!("{no}CN1"));
    let path = started.header("location").to_owned();
    let done = wait_for(&taxpayer, &path, "done").await;
    assert_eq!(done["documents"][0]["signed"], true);
    assert_eq!(
        [&done["before"], &done["after"], &done["balance"]],
        [&exact("1182.50"), &exact("645.00"), &exact("645.00")]
    );
    let irn = done["documents"][0]["irn"].as_str().unwrap();
    let document = taxpayer.app().download(irn).await.expect_status(200);
    assert_eq!(document.data()["invoice_type_code"], "380");
    assert_eq!(
        document.data()["billing_reference"][0]["irn"],
        stored["irn"]
    );
    assert_eq!(
        taxpayer.reread(&stored).await["payment_status"],
        "PENDING",
        "the rest is still owed"
    );
    // The next correction takes the first one into account.
    let again = correct(&taxpayer, &stored, "?preview=true", &wanted).await;
    assert_eq!(plan(again.expect_status(200).data()), ["none 0"]);
    let rest = json!({ "cancel": true });
    let rest = correct(&taxpayer, &stored, "", &rest)
        .await
        .expect_status(202);
    assert_eq!(plan(rest.data()), ["credit_note 645.00"]);
    assert_eq!(
        rest.data()["documents"][0]["invoice_no"],
        format!("{no}CN2")
    );
    wait_for(&taxpayer, rest.header("location"), "done").await;
    let nothing = json!({ "cancel": true });
    let nothing = correct(&taxpayer, &stored, "", &nothing)
        .await
        .expect_status(200);
    assert_eq!(plan(nothing.data()), ["none 0"]);
}

#[each_database]
async fn an_invoice_shows_what_became_of_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = two_lines();
    let stored = signed(&taxpayer, &body).await;
    let path = |id: &Value| format!("{INVOICES}/{id}?include=credits");
    let before = taxpayer.get(&path(&stored["id"])).await;
    let before = before.expect_status(200);
    assert_eq!(
        before.data()["credits"],
        json!({
            "credited_amount": 0, "left_to_pay": exact("1182.50"), "credit_notes": [], "corrections": [],
            "original": null,
        })
    );
    let fewer = with(&body, "invoice_lines.0.quantity", json!(1));
    let started = correct(&taxpayer, &stored, "", &fewer).await;
    let started = started.expect_status(202);
    let done = wait_for(&taxpayer, started.header("location"), "done").await;
    let note = &done["documents"][0];
    let credits = json!({
        "credited_amount": exact("537.50"), "left_to_pay": exact("645.00"),
        "credit_notes": [{
            "id": note["id"], "invoice_no": note["invoice_no"], "irn": note["irn"], "currency": "NGN",
            "amount": exact("537.50"), "signed": true,
        }],
        "corrections": [{
            "correction_no": done["correction_no"], "state": "done", "reason": null, "replacement": null,
        }],
        "original": null,
    });
    let after = taxpayer.get(&path(&stored["id"])).await;
    let after = after.expect_status(200);
    assert_eq!(after.data()["credits"], credits);
    assert_ne!(after.header("etag"), before.header("etag"));
    let by_irn = json!({ "unique_no": stored["irn"], "unique_no_type": "IRN" });
    let by_irn_path = format!("{INVOICES}/get-by-unique-no?include=credits");
    let found = taxpayer.send("POST", &by_irn_path, &by_irn).await;
    assert_eq!(found.expect_status(200).data()["credits"], credits);
    let read = taxpayer.get(&path(&note["id"])).await.expect_status(200);
    assert_eq!(
        read.data()["credits"]["original"],
        json!({ "id": stored["id"], "irn": stored["irn"] })
    );
    // A change depends on the invoice alone.
    let part = json!({ "status": "partial", "amount": 45, "remark": "as agreed" });
    let part = with(&part, "unique_no", stored["irn"].clone());
    let part = with(&part, "unique_no_type", json!("IRN"));
    let request = taxpayer.request("PATCH", &format!("{INVOICES}/update-payment-status"));
    let request = request.header("if-match", after.header("etag"));
    Answer::to(request.json(&part)).await.expect_status(200);
    let dearer = with(&body, "invoice_lines.0.unit_price", json!(600));
    let started = correct(&taxpayer, &stored, "", &dearer).await;
    let started = started.expect_status(202);
    let done = wait_for(&taxpayer, started.header("location"), "done").await;
    let last = taxpayer.get(&path(&stored["id"])).await.expect_status(200);
    let credits = &last.data()["credits"];
    let left_to_pay = credits["left_to_pay"].to_string();
    assert!(left_to_pay.starts_with("-45"), "{left_to_pay}");
    assert_eq!(
        credits["corrections"][0]["replacement"],
        done["documents"][1]
    );
    assert_eq!(credits["credit_notes"].as_array().unwrap().len(), 2);
}

#[each_database(ALONE)]
async fn a_replacement_is_created_after_the_credit_note_is_signed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = two_lines();
    let stored = signed(&taxpayer, &body).await;
    let no = stored["invoice_no"].as_str().unwrap();
    let note_irn = |date: &Value| {
        let date = date.as_str().unwrap().replace('-', "");
        format!("{no}CN1-{}-{date}", taxpayer.registration.service_id)
    };
    let wanted = with(&body, "invoice_lines.0.unit_price", json!(600));
    let preview = correct(&taxpayer, &stored, "?preview=true", &wanted).await;
    let planned = preview.expect_status(200).data()["documents"][0]["irn"].clone();
    let planned = planned.as_str().unwrap();
    hold(world, planned);
    let started = correct(&taxpayer, &stored, "", &wanted)
        .await
        .expect_status(202);
    let path = started.header("location").to_owned();
    let note = taxpayer
        .get_invoice(&started.data()["documents"][0]["id"])
        .await;
    let note = note.expect_status(200);
    assert_eq!(note.data()["irn"], note_irn(&note.data()["invoice_date"]));
    assert_eq!(note.data()["status"], "approved");
    eventually("the submission of the credit note", async || {
        let run = taxpayer.app().run(planned).await;
        (run.status == 200).then_some(())
    })
    .await;
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(
        listed.data()["total"],
        2,
        "no replacement before the credit note is signed"
    );
    world.authority.clear_faults();
    let done = wait_for(&taxpayer, &path, "done").await;
    assert_eq!(plan(&done), ["credit_note 1182.50", "replacement 1397.50"]);
    let replacement = &done["documents"][1];
    assert_eq!(replacement["invoice_no"], format!("{no}R1"));
    let events = taxpayer.events().await;
    let at = |irn: &Value, kind: &str| {
        let found = events
            .iter()
            .position(|event| event["irn"] == *irn && event["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} of {irn}"))
    };
    let signed_at = at(&done["documents"][0]["irn"], "invoice.submitted");
    let created_at = at(&replacement["irn"], "invoice.created");
    assert!(signed_at < created_at && created_at < at(&replacement["irn"], "invoice.submitted"));
    assert_eq!(
        taxpayer.reread(&stored).await["payment_status"],
        "REJECTED",
        "nothing is owed of the original any more"
    );
    let again = correct(&taxpayer, &stored, "", &json!({ "cancel": true })).await;
    let again = again.expect_refusal(409, "INVALID_TRANSITION");
    assert!(
        again.message().contains(&format!("replaced by {no}R1")),
        "{}",
        again.message()
    );
}

#[on_sqlite]
async fn what_cannot_be_corrected_is_refused_with_what_to_do(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let cancel = json!({ "cancel": true });
    let draft = taxpayer.invoice(&invoice()).await;
    let body = two_lines();
    let stored = signed(&taxpayer, &body).await;
    let credit_note = with(&invoice(), "invoice_type_code", json!("380"));
    let credit_note = with(
        &credit_note,
        "original_invoice_reference",
        stored["irn"].clone(),
    );
    let credit_note = with(
        &credit_note,
        "original_invoice_reference_type",
        json!("IRN"),
    );
    let credit_note = taxpayer.invoice(&credit_note).await;
    let refused = correct(&taxpayer, &stored, "", &cancel).await;
    let refused = refused.expect_refusal(409, "INVALID_TRANSITION");
    assert!(
        refused
            .message()
            .contains("is not signed. Submit it or cancel it"),
        "{}",
        refused.message()
    );
    sign(&taxpayer, &credit_note).await;
    for (name, invoice, sentence) in [
        ("a draft", &draft, "edit it with PUT"),
        (
            "a credit note",
            &credit_note,
            "Correct the invoice that it refers to",
        ),
    ] {
        let refused = correct(&taxpayer, invoice, "", &cancel).await;
        let refused = refused.expect_refusal(409, "INVALID_TRANSITION");
        assert!(
            refused.message().contains(sentence),
            "{name}: {}",
            refused.message()
        );
    }
    for invoice in [&draft, &stored] {
        let foreign = correct(&other, invoice, "", &cancel).await;
        foreign.expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let renamed = with(&body, "invoice_no", json!("ANOTHER"));
    for (wrong, paths) in [
        (renamed, vec!["invoice_no"]),
        (without(&body, "currency"), vec!["currency"]),
        (with(&cancel, "cancel", json!("yes")), vec!["cancel"]),
    ] {
        let refused = correct(&taxpayer, &stored, "", &wrong).await;
        let refused = refused.expect_refusal(422, "VALIDATION_FAILED");
        assert!(
            paths
                .iter()
                .all(|path| refused.faulty_paths().contains(path)),
            "{}",
            refused.body
        );
    }
    for number in ["C1", "C%00", "x"] {
        let path = format!("{INVOICES}/corrections/{number}");
        taxpayer
            .get(&path)
            .await
            .expect_refusal(404, "CORRECTION_NOT_FOUND");
    }
}

#[each_database(ALONE)]
async fn a_correction_is_started_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = signed(&taxpayer, &two_lines()).await;
    let cancel = json!({ "cancel": true });
    let path = format!("{INVOICES}/{}/correct", stored["id"]);
    let preview = correct(&taxpayer, &stored, "?preview=true", &cancel).await;
    let planned = preview.expect_status(200).data()["documents"][0]["irn"].clone();
    hold(world, planned.as_str().unwrap());
    let first = taxpayer
        .send_keyed("correct-1", "POST", &path, &cancel)
        .await;
    let first = first.expect_status(202);
    let again = taxpayer
        .send_keyed("correct-1", "POST", &path, &cancel)
        .await;
    let again = again.expect_status(202);
    assert_eq!(again.data(), first.data());
    assert_eq!(again.header("idempotent-replayed"), "true");
    let second = correct(&taxpayer, &stored, "", &cancel).await;
    let second = second.expect_refusal(409, "INVALID_TRANSITION");
    assert!(
        second.message().contains("is under way"),
        "{}",
        second.message()
    );
    let progress = first.header("location").to_owned();
    let other = world.taxpayer().await;
    other
        .get(&progress)
        .await
        .expect_refusal(404, "CORRECTION_NOT_FOUND");
    world.authority.clear_faults();
    wait_for(&taxpayer, &progress, "done").await;
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 2);
}

#[each_database(ALONE)]
async fn a_rejected_credit_note_stops_the_correction_until_it_is_mended(world: &World) {
    for mend in ["sent again", "edited", "made smaller", "cancelled"] {
        let taxpayer = world.taxpayer().await;
        let stored = signed(&taxpayer, &two_lines()).await;
        let cancel = json!({ "cancel": true });
        let preview = correct(&taxpayer, &stored, "?preview=true", &cancel).await;
        let irn = preview.expect_status(200).data()["documents"][0]["irn"].clone();
        hold(world, irn.as_str().unwrap());
        let started = correct(&taxpayer, &stored, "", &cancel)
            .await
            .expect_status(202);
        let path = started.header("location").to_owned();
        let reject = format!(
            "UPDATE pipeline_runs SET state = 'refused', last_error = 'the tax is wrong', \
             wait_reason = NULL, next_attempt_at = NULL WHERE irn = '{}' AND state <> 'running'",
            irn.as_str().unwrap()
        );
        // A step of the run that has begun overwrites it, so it is written until it has been seen.
        let stopped = eventually("a rejected credit note", async || {
            world.execute(&reject).await;
            in_state(&taxpayer, &path, "stopped").await
        })
        .await;
        let reason = stopped["reason"].as_str().unwrap();
        assert!(
            reason.contains("rejected the credit note")
                && reason.contains("the tax is wrong. Edit it"),
            "{reason}"
        );
        world.authority.clear_faults();
        let note = json!({ "id": stopped["documents"][0]["id"], "irn": irn });
        match mend {
            "sent again" => sign(&taxpayer, &note).await,
            "edited" | "made smaller" => {
                let mut whole = taxpayer.invoice_with_ledger(&note).await;
                if mend == "made smaller" {
                    whole["lines"].as_array_mut().unwrap().truncate(1);
                }
                let update = json!({
                    "unique_no": irn, "unique_no_type": "IRN", "customer": two_lines()["customer"],
                    "invoice_category": "B2B", "invoice_type": "380", "due_date": "2030-01-01",
                    "original_invoice_reference": stored["irn"], "lines": whole["lines"],
                });
                taxpayer.update(&update).await.expect_status(200);
            }
            _ => drop(
                taxpayer
                    .set_status(&note, "cancelled")
                    .await
                    .expect_status(200),
            ),
        }
        let end = match mend {
            "cancelled" => Some("The invoice stays as it is."),
            "made smaller" => Some("signed with other contents than planned"),
            _ => None,
        };
        if let Some(words) = end {
            let ended = wait_for(&taxpayer, &path, "cancelled").await;
            let reason = ended["reason"].as_str().unwrap();
            assert!(reason.contains(words), "{reason}");
            let anew = correct(&taxpayer, &stored, "", &cancel)
                .await
                .expect_status(202);
            wait_for(&taxpayer, anew.header("location"), "done").await;
        } else {
            let done = wait_for(&taxpayer, &path, "done").await;
            assert_eq!(done["reason"], Value::Null, "{mend}");
        }
    }
}

#[on_sqlite]
async fn a_full_invoice_is_corrected_in_its_form(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = full_invoice(&taxpayer);
    let stored = taxpayer.new_full_invoice(&body).await;
    sign(&taxpayer, &stored).await;
    let totals = json!({
        "line_extension_amount": 500, "tax_exclusive_amount": 500, "tax_inclusive_amount": exact("537.50"),
        "payable_amount": exact("537.50"),
    });
    let fewer = with(&body, "invoice_line.0.invoiced_quantity", json!(1));
    let fewer = with(&fewer, "invoice_line.0.line_extension_amount", json!(500));
    let fewer = with(&fewer, "invoice_line.0.total_tax", exact("37.50"));
    let fewer = with(&fewer, "legal_monetary_total", totals);
    let started = correct(&taxpayer, &stored, "", &fewer)
        .await
        .expect_status(202);
    assert_eq!(plan(started.data()), ["credit_note 537.50"]);
    wait_for(&taxpayer, started.header("location"), "done").await;
    let note = with(&fewer, "note", json!("As agreed"));
    let started = correct(&taxpayer, &stored, "", &note)
        .await
        .expect_status(202);
    assert_eq!(
        plan(started.data()),
        ["credit_note 537.50", "replacement 537.50"]
    );
    let done = wait_for(&taxpayer, started.header("location"), "done").await;
    let irn = done["documents"][1]["irn"].as_str().unwrap();
    let document = taxpayer.app().download(irn).await.expect_status(200);
    assert_eq!(document.data()["note"], "As agreed");
}

/// The lines of the full invoice of 1,000 with a fee of 10 that is charged once, for this many pieces.
fn with_fee(taxpayer: &Taxpayer, quantity: u32) -> Value {
    let net = 500 * quantity + 10;
    let cents = |cents: u32| exact(&format!("{}.{:02}", cents / 100, cents % 100));
    let tax = net * 75 / 10;
    let line = [
        ("invoiced_quantity", json!(quantity)),
        ("fee_amount", json!(10)),
        ("line_extension_amount", json!(net)),
        ("total_tax", cents(tax)),
    ];
    let body = full_invoice(taxpayer);
    let body = line.into_iter().fold(body, |body, (name, value)| {
        with(&body, &format!("invoice_line.0.{name}"), value)
    });
    let gross = cents(net * 100 + tax);
    let totals = json!({
        "line_extension_amount": net, "tax_exclusive_amount": net, "tax_inclusive_amount": gross,
        "payable_amount": gross,
    });
    with(&body, "legal_monetary_total", totals)
}

#[on_sqlite]
async fn each_line_of_a_credit_note_comes_to_its_amount_and_a_fee_is_credited_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with_fee(&taxpayer, 2);
    let stored = taxpayer.new_full_invoice(&body).await;
    sign(&taxpayer, &stored).await;
    let fewer = ["invoice_no", "irn"]
        .into_iter()
        .fold(with_fee(&taxpayer, 1), |fewer, name| {
            with(&fewer, name, body[name].clone())
        });
    for (wish, expected) in [
        (fewer, json!([1, 500, null, 500])),
        (json!({ "cancel": true }), json!([1, 500, 10, 510])),
    ] {
        let started = correct(&taxpayer, &stored, "", &wish).await;
        let started = started.expect_status(202);
        let done = wait_for(&taxpayer, started.header("location"), "done").await;
        let irn = done["documents"][0]["irn"].as_str().unwrap();
        let document = taxpayer.app().download(irn).await.expect_status(200);
        let line = &document.data()["invoice_line"][0];
        let number = |value: &Value| value.as_f64().map(Value::from);
        let found = [
            &line["invoiced_quantity"],
            &line["price"]["price_amount"],
            &line["fee_amount"],
            &line["line_extension_amount"],
        ];
        let expected: Vec<_> = expected.as_array().unwrap().iter().map(number).collect();
        assert_eq!(found.map(number).to_vec(), expected, "{line}");
    }
}

#[each_database]
async fn payments_stay_and_the_balance_tells_what_is_to_be_paid_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = signed(&taxpayer, &two_lines()).await;
    let payment = json!({
        "unique_no": stored["irn"], "unique_no_type": "IRN", "payment_status": "partial", "amount": 1000,
        "remark": "first part",
    });
    taxpayer.pay(&payment).await.expect_status(200);
    let wanted = with(&two_lines(), "invoice_no", stored["invoice_no"].clone());
    let wanted = with(&wanted, "invoice_lines.0.quantity", json!(1));
    let plan = correct(&taxpayer, &stored, "?preview=true", &wanted).await;
    let plan = plan.expect_status(200);
    assert_eq!(plan.data()["paid"], 1000);
    assert_eq!(plan.data()["balance"], exact("-355.00"));
    let cancel = json!({ "cancel": true });
    let started = correct(&taxpayer, &stored, "", &cancel)
        .await
        .expect_status(202);
    let done = wait_for(&taxpayer, started.header("location"), "done").await;
    assert_eq!(done["balance"], -1000);
    let more = with(&payment, "amount", json!(50));
    taxpayer.pay(&more).await.expect_status(200);
    let read = taxpayer.get(started.header("location")).await;
    let read = read.expect_status(200);
    assert_eq!(read.data()["paid"], 1050, "the balance is a fresh one");
    assert_eq!(read.data()["balance"], -1050);
    let after = taxpayer.reread(&stored).await;
    assert_eq!(
        after["payment_status"], "PARTIAL",
        "what was paid stays recorded"
    );
}

#[each_database]
async fn a_wrong_batch_is_undone_and_the_same_call_again_does_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bodies = [invoice(), invoice(), invoice(), invoice()];
    let batch = taxpayer.create_batch(&bodies).await.expect_status(201);
    let outcome = taxpayer.created_batch(&batch).await;
    let items = outcome["items"].as_array().unwrap();
    let [first, second, paid, _draft] = items.as_slice() else {
        panic!("{outcome}")
    };
    sign(&taxpayer, first).await;
    sign(&taxpayer, second).await;
    taxpayer
        .set_status(paid, "approved")
        .await
        .expect_status(200);
    let payment = json!({
        "unique_no": paid["irn"], "unique_no_type": "IRN", "payment_status": "paid", "remark": "in full",
    });
    taxpayer.pay(&payment).await.expect_status(200);
    let no = batch.data()["batch_no"].as_str().unwrap();
    let path = format!("{INVOICES}/batches/{no}/undo");
    let counts = |data: &Value| {
        ["credited", "cancelled", "kept", "done_before", "left"]
            .map(|name| data[name].as_u64().unwrap())
    };
    let preview = taxpayer.call("POST", &format!("{path}?preview=true")).await;
    let preview = preview.expect_status(200);
    assert_eq!(counts(preview.data()), [2, 1, 1, 0, 0]);
    assert_eq!(
        preview.data()["money"],
        json!([{ "currency": "NGN", "amount": exact("3225.00") }])
    );
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 4, "a preview changes nothing");
    let done = taxpayer.call("POST", &path).await.expect_status(202);
    assert_eq!(counts(done.data()), [2, 1, 1, 0, 0]);
    let kept = done.data()["items"].as_array().unwrap().iter();
    let kept: Vec<_> = kept.filter(|item| item["act"] == "none").collect();
    assert_eq!(kept[0]["id"], paid["id"]);
    assert!(kept[0]["message"].is_string());
    for item in done.data()["items"].as_array().unwrap() {
        if let Some(number) = item["correction_no"].as_str() {
            let path = format!("{INVOICES}/corrections/{number}");
            wait_for(&taxpayer, &path, "done").await;
        }
    }
    let again = taxpayer.call("POST", &path).await.expect_status(202);
    assert_eq!(counts(again.data()), [0, 0, 1, 3, 0]);
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 6, "two credit notes");
    let other = world.taxpayer().await;
    for number in [no, "B1", "%00"] {
        let path = format!("{INVOICES}/batches/{number}/undo");
        other
            .call("POST", &path)
            .await
            .expect_refusal(404, "BATCH_NOT_FOUND");
    }
}

/// Sends the document of a stored invoice of two laptops for one of them, with the amounts of one, and waits until it is
/// signed.
async fn sign_for_one(taxpayer: &Taxpayer, stored: &Value) {
    let path = format!("{INVOICES}/{}/json", stored["id"]);
    let shown = taxpayer.get(&path).await.expect_status(200).body;
    let tax = json!({
        "taxable_amount": 500, "tax_amount": exact("37.5"),
        "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") },
    });
    let totals = json!({
        "line_extension_amount": 500, "tax_exclusive_amount": 500, "tax_inclusive_amount": exact("537.50"),
        "payable_amount": exact("537.50"),
    });
    let changes = [
        ("invoice_line.0.invoiced_quantity", json!(1)),
        ("invoice_line.0.line_extension_amount", json!(500)),
        ("legal_monetary_total", totals),
        (
            "tax_total",
            json!([{ "tax_amount": exact("37.5"), "tax_subtotal": [tax] }]),
        ),
    ];
    let document = changes.into_iter().fold(shown, |document, (path, value)| {
        with(&document, path, value)
    });
    let answer = taxpayer.app().submit_to_the_end(&document).await;
    let answer = answer.expect_status(200);
    assert!(
        answer.warnings().contains("not the stored invoice"),
        "{}",
        answer.warnings()
    );
}

#[each_database]
async fn what_was_signed_is_credited_and_not_what_is_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = invoice();
    let batch = taxpayer.create_batch(std::slice::from_ref(&body)).await;
    let batch = batch.expect_status(201);
    let stored = taxpayer.created_batch(&batch).await["items"][0].clone();
    sign_for_one(&taxpayer, &stored).await;
    let cases: [(Value, &[&str]); 3] = [
        (
            with(&body, "invoice_lines.0.quantity", json!(1)),
            &["none 0"],
        ),
        (json!({ "cancel": true }), &["credit_note 537.50"]),
        (body, &["credit_note 537.50", "replacement 1075.00"]),
    ];
    for (wish, expected) in cases {
        let preview = correct(&taxpayer, &stored, "?preview=true", &wish).await;
        assert_eq!(plan(preview.expect_status(200).data()), expected, "{wish}");
    }
    let no = batch.data()["batch_no"].as_str().unwrap();
    let path = format!("{INVOICES}/batches/{no}/undo");
    let undone = taxpayer.call("POST", &path).await.expect_status(202);
    assert_eq!(
        undone.data()["money"],
        json!([{ "currency": "NGN", "amount": exact("537.50") }])
    );
    let number = undone.data()["items"][0]["correction_no"].as_str().unwrap();
    let progress = format!("{INVOICES}/corrections/{number}");
    let done = wait_for(&taxpayer, &progress, "done").await;
    let irn = done["documents"][0]["irn"].as_str().unwrap();
    let note = taxpayer.app().download(irn).await.expect_status(200);
    let payable = &note.data()["legal_monetary_total"]["payable_amount"];
    assert_eq!(payable.as_f64().map(Value::from), Some(json!(537.5)));
}

#[on_sqlite]
async fn signed_amounts_that_the_stored_invoice_cannot_have_are_not_corrected(world: &World) {
    let taxpayer = world.taxpayer().await;
    let batch = taxpayer.create_batch(&[invoice()]).await.expect_status(201);
    let stored = taxpayer.created_batch(&batch).await["items"][0].clone();
    let other = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    let other = with(&other, "legal_monetary_total.payable_amount", json!(10_750));
    let submitted = taxpayer.app().submit_to_the_end(&other).await;
    submitted.expect_status(200);
    let names_both =
        |text: &str| text.contains("NGN 10750 signed") && text.contains("NGN 1075.00 stored");
    for query in ["?preview=true", ""] {
        let refused = correct(&taxpayer, &stored, query, &json!({ "cancel": true })).await;
        let refused = refused.expect_refusal(409, "INVALID_TRANSITION");
        assert!(names_both(refused.message()), "{}", refused.message());
    }
    let no = batch.data()["batch_no"].as_str().unwrap();
    let path = format!("{INVOICES}/batches/{no}/undo?preview=true");
    let undone = taxpayer.call("POST", &path).await.expect_status(200);
    let item = &undone.data()["items"][0];
    assert_eq!(item["act"], "none");
    assert!(names_both(item["message"].as_str().unwrap()), "{item}");
}

/// Corrects an invoice of two laptops to one, and waits for the end. Returns the correction.
async fn credit_one(taxpayer: &Taxpayer, stored: &Value, body: &Value) -> Value {
    let wanted = with(body, "invoice_lines.0.quantity", json!(1));
    let started = correct(taxpayer, stored, "", &wanted).await;
    let started = started.expect_status(202);
    wait_for(taxpayer, started.header("location"), "done").await
}

fn payment(stored: &Value, status: &str) -> Value {
    json!({
        "unique_no": stored["irn"], "unique_no_type": "IRN", "payment_status": status, "remark": "by bank",
    })
}

#[each_database]
async fn paid_means_what_the_signed_credit_notes_leave(world: &World) {
    let taxpayer = world.taxpayer().await;
    for is_relayed in [false, true] {
        let body = invoice();
        let stored = signed(&taxpayer, &body).await;
        let done = credit_one(&taxpayer, &stored, &body).await;
        if is_relayed {
            let irn = stored["irn"].as_str().unwrap();
            taxpayer
                .app()
                .set_payment_status(irn, "PAID")
                .await
                .expect_status(200);
        } else {
            let paid = taxpayer.pay(&payment(&stored, "paid")).await;
            let warnings = paid.expect_status(200).warnings();
            let expected = "took NGN 537.50 off this invoice; NGN 537.50 was recorded as paid";
            assert!(warnings.contains(expected), "{warnings}");
        }
        let whole = taxpayer.invoice_with_ledger(&stored).await;
        assert_eq!(whole["payment_status"], "PAID");
        let entries = whole["ledger"]["entries"].as_array().unwrap().iter();
        let amounts: Vec<_> = entries.map(|entry| entry["amount"].to_string()).collect();
        assert_eq!(amounts, ["537.50", "537.50"], "{whole}");
        let note = json!({ "id": done["documents"][0]["id"] });
        assert_eq!(taxpayer.reread(&note).await["payment_status"], "PAID");
    }
}

#[on_sqlite]
async fn a_part_of_what_is_credited_is_recorded_with_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = invoice();
    let stored = signed(&taxpayer, &body).await;
    credit_one(&taxpayer, &stored, &body).await;
    for (amount, is_too_much) in [("537.50", false), ("0.01", true)] {
        let part = with(&payment(&stored, "partial"), "amount", exact(amount));
        let paid = taxpayer.pay(&part).await.expect_status(200);
        let warnings = paid.warnings();
        assert_eq!(
            warnings.contains("of this invoice to pay"),
            is_too_much,
            "{amount}: {warnings}"
        );
    }
}

#[each_database]
async fn an_invoice_of_which_nothing_is_left_is_not_overdue(world: &World) {
    let taxpayer = world.taxpayer().await;
    let overdue = async || {
        let listed = taxpayer.list_invoices("?overdue=true").await;
        listed.expect_status(200).data()["total"].clone()
    };
    let body = with(&invoice(), "due_date", json!("2026-02-01"));
    let stored = signed(&taxpayer, &body).await;
    assert_eq!(overdue().await, 1);
    credit_one(&taxpayer, &stored, &body).await;
    assert_eq!(overdue().await, 1, "a half is left");
    let half = with(&payment(&stored, "partial"), "amount", exact("537.50"));
    taxpayer.pay(&half).await.expect_status(200);
    assert_eq!(overdue().await, 0);
}

#[each_database]
async fn calls_that_undo_a_batch_at_once_undo_each_invoice_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bodies: Vec<_> = (0..5).map(|_| invoice()).collect();
    let batch = taxpayer.create_batch(&bodies).await.expect_status(201);
    let no = batch.data()["batch_no"].as_str().unwrap();
    let path = format!("{INVOICES}/batches/{no}/undo");
    let answers = join_all((0..5).map(|_| taxpayer.call("POST", &path))).await;
    let count = |answer: &Answer, name: &str| answer.data()[name].as_u64().unwrap();
    let mut cancelled = 0;
    for answer in answers {
        let answer = answer.expect_status(202);
        let own = count(&answer, "cancelled");
        assert_eq!(own + count(&answer, "done_before"), 5, "{}", answer.body);
        cancelled += own;
    }
    assert_eq!(cancelled, 5);
    assert_eq!(taxpayer.count_events("invoice.status-updated").await, 5);
}

#[on_sqlite]
async fn an_invoice_that_changed_since_it_was_read_is_not_corrected(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = signed(&taxpayer, &invoice()).await;
    let path = format!("{INVOICES}/{}/correct", stored["id"]);
    let cancel = json!({ "cancel": true });
    let call = async |query: &str, tag: &str| {
        let request = taxpayer.request("POST", &format!("{path}{query}"));
        Answer::to(request.header("if-match", tag).json(&cancel)).await
    };
    let read = taxpayer.get_invoice(&stored["id"]).await.expect_status(200);
    let tag = read.header("etag").to_owned();
    let part = with(&payment(&stored, "partial"), "amount", json!(1));
    taxpayer.pay(&part).await.expect_status(200);
    for query in ["?preview=true", ""] {
        let late = call(query, &tag).await;
        late.expect_refusal(412, "PRECONDITION_FAILED");
    }
    let read = taxpayer.get_invoice(&stored["id"]).await.expect_status(200);
    let started = call("", read.header("etag")).await.expect_status(202);
    wait_for(&taxpayer, started.header("location"), "done").await;
}

/// The second correction is the clock: it starts later and ends, and the first one has not gone on.
#[on_sqlite(ALONE)]
async fn a_correction_of_a_paused_taxpayer_waits_until_it_is_resumed(world: &World) {
    let operator = world.new_operator().await;
    let [paused, other] = [world.taxpayer().await, world.taxpayer().await];
    let dearer = |body: &Value| with(body, "invoice_lines.1.quantity", json!(2));
    let body = two_lines();
    let stored = signed(&paused, &body).await;
    let planned = correct(&paused, &stored, "?preview=true", &dearer(&body)).await;
    let planned = planned.expect_status(200).data()["documents"][0].clone();
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Sign);
    late.irn = planned["irn"].as_str().map(str::to_owned);
    late.latency_ms = Some(4_000);
    world.authority.add_fault(late).unwrap();
    let started = correct(&paused, &stored, "", &dearer(&body)).await;
    let held = started.expect_status(202).header("location").to_owned();
    let number = planned["invoice_no"].as_str().unwrap();
    let reaches = async |status: &str| {
        let listed = paused.list_invoices(&format!("?q={number}")).await;
        let listed = listed.expect_status(200);
        (listed.data()["data"][0]["status"] == status).then_some(())
    };
    let order = async |to: &str| {
        let path = format!("/ops/taxpayers/{}/{to}", paused.id);
        let body = json!({ "reason": "its key was stolen" });
        operator.send("POST", &path, &body).await.expect_status(200);
    };
    eventually("a call that signs", async || reaches("validated").await).await;
    order("pause").await;
    eventually("a signed credit note", async || reaches("submitted").await).await;
    let body = two_lines();
    let free = signed(&other, &body).await;
    let started = correct(&other, &free, "", &dearer(&body)).await;
    let clock = started.expect_status(202).header("location").to_owned();
    wait_for(&other, &clock, "done").await;
    let read = paused.get(&held).await.expect_status(200);
    assert_eq!(read.data()["state"], "running", "{read:?}");
    assert_eq!(read.data()["documents"][0]["signed"], false, "{read:?}");
    order("resume").await;
    wait_for(&paused, &held, "done").await;
}
