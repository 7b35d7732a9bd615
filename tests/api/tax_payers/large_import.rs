//! Files of more than 1,000 invoices, which are imported in the background, and files as the field of a form.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents::{invoice, invoice_no, invoice_numbered};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};
use crate::tax_payers::import::{IMPORT, csv, import, outcomes, row};

const NDJSON: &str = "application/x-ndjson";
const DOCUMENTS: usize = 1_001;

/// Returns the numbers of a file, which all differ.
fn numbers() -> Vec<String> {
    let start = invoice_no();
    (0..DOCUMENTS).map(|at| format!("{start}X{at}")).collect()
}

fn lines(bodies: impl IntoIterator<Item = Value>) -> String {
    let lines = bodies.into_iter().map(|body| format!("{body}\n"));
    lines.collect()
}

/// Waits for the end of an import.
async fn wait_until_done(taxpayer: &Client, path: &str) -> Value {
    eventually("the end of an import", async || {
        let read = taxpayer.get(path).await.expect_status(200);
        (read.data()["state"] == "done").then(|| read.data().clone())
    })
    .await
}

#[each_database]
async fn a_large_file_is_imported_in_the_background_and_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbers = numbers();
    taxpayer.invoice(&invoice_numbered(&numbers[7])).await;
    let bodies = numbers.iter().enumerate().map(|(at, number)| match at {
        700 => with(
            &invoice_numbered(number),
            "invoice_date",
            json!("yesterday"),
        ),
        701 => with(&invoice_numbered(number), "customer.email", Value::Null),
        1_000 => invoice_numbered(&numbers[0]),
        _ => invoice_numbered(number),
    });
    let file = lines(bodies);
    let counts = |data: &Value| {
        ["documents", "created", "duplicates", "failed", "unanswered"]
            .map(|name| data[name].as_u64().unwrap())
    };
    let preview = import(&taxpayer, "?preview=true", NDJSON, file.clone()).await;
    let preview = preview.expect_status(200);
    assert_eq!(preview.data()["state"], "preview");
    assert_eq!(counts(preview.data()), [1_001, 997, 2, 1, 1]);
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 1, "a preview changes nothing");

    let started = import(&taxpayer, "", NDJSON, file.clone())
        .await
        .expect_status(202);
    assert_eq!(started.message(), "Import started");
    assert_eq!(started.data()["state"], "running");
    let path = started.header("location").to_owned();
    let done = wait_until_done(&taxpayer, &path).await;
    assert_eq!(counts(&done), [1_001, 997, 2, 1, 1]);
    assert_eq!(done["documents_done"], 1_001);
    let places: Vec<_> = done["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["index"].clone(), item["source"].clone()))
        .collect();
    assert_eq!(
        places,
        [
            (json!(700), json!("line 701")),
            (json!(701), json!("line 702"))
        ]
    );
    let batch_no = done["batch_no"].as_str().unwrap();
    let path_of_batch = format!("/v1/tax-payers/invoices/batches/{batch_no}");
    let read = taxpayer.get(&path_of_batch).await;
    let read = read.expect_refusal(404, "BATCH_NOT_FOUND");
    let import_no = done["import_no"].as_str().unwrap();
    assert!(read.message().contains(import_no), "{}", read.message());
    let newest = taxpayer
        .get("/v1/tax-payers/events?after=900&limit=1000")
        .await;
    let newest = newest.expect_status(200);
    let ended = newest.data()["events"].as_array().unwrap().last().unwrap();
    assert_eq!(ended["type"], "invoice.batch-completed");
    assert_eq!(ended["data"]["batch_no"], batch_no);
    assert_eq!(ended["data"]["import_no"], import_no);
    let batch = taxpayer
        .list_invoices(&format!("?batch_no={batch_no}"))
        .await;
    assert_eq!(batch.data()["total"], 997);
    let errors = taxpayer
        .get(&format!("{path}/errors"))
        .await
        .expect_status(200);
    let errors: Vec<_> = errors.text.lines().collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(errors[0], "index,source,invoice_no,error");
    assert!(errors[1].starts_with("700,line 701,"), "{errors:?}");

    let again = import(&taxpayer, "", NDJSON, file).await.expect_status(200);
    assert_eq!(again.message(), "This file was imported before");
    assert_eq!(again.data(), &done);
    let other = world.taxpayer().await;
    for path in [path.clone(), format!("{path}/errors")] {
        other
            .get(&path)
            .await
            .expect_refusal(404, "IMPORT_NOT_FOUND");
    }
}

#[on_sqlite]
async fn each_format_may_be_large(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbers = numbers();
    let rows: Vec<_> = numbers
        .iter()
        .flat_map(|number| [row(number, "2"), row(number, "3")])
        .collect();
    let started = import(&taxpayer, "", "text/csv", csv(&rows))
        .await
        .expect_status(202);
    let done = wait_until_done(&taxpayer, started.header("location")).await;
    assert_eq!(done["created"], 1_001, "{done}");
    let array: Vec<_> = numbers
        .iter()
        .map(|number| invoice_numbered(number))
        .collect();
    let body = json!({ "invoices": array }).to_string();
    let started = import(&taxpayer, "", "application/json", body)
        .await
        .expect_status(202);
    let done = wait_until_done(&taxpayer, started.header("location")).await;
    assert_eq!(done["duplicates"], 1_001, "{done}");
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 1_001);
}

#[on_sqlite]
async fn a_large_file_with_a_fault_of_its_own_is_refused_as_a_whole(world: &World) {
    let taxpayer = world.taxpayer().await;
    let numbers = numbers();
    let mut rows: Vec<_> = numbers.iter().map(|number| row(number, "2")).collect();
    rows.push(row(&numbers[0], "2"));
    let apart = import(&taxpayer, "", "text/csv", csv(&rows)).await;
    let apart = apart.expect_refusal(422, "VALIDATION_FAILED");
    assert!(
        apart
            .message()
            .starts_with("Line 1003 has the invoice_no of an invoice further up"),
        "{}",
        apart.message()
    );
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(listed.data()["total"], 0);
}

/// Returns a form with this field.
fn form(disposition: &str, kind: Option<&str>, content: &str) -> String {
    let kind = kind.map(|kind| format!("Content-Type: {kind}\r\n"));
    let kind = kind.unwrap_or_default();
    format!(
        "--B\r\nContent-Disposition: form-data; {disposition}\r\n{kind}\r\n{content}\r\n--B--\r\n"
    )
}

#[on_sqlite]
async fn a_file_may_be_the_field_of_a_form(world: &World) {
    let taxpayer = world.taxpayer().await;
    let multipart = "multipart/form-data; boundary=B";
    let file = csv(&[row(&invoice_no(), "2")]);
    let named = "name=\"file\"; filename=\"July.CSV\"";
    let by_name = form(named, Some("application/octet-stream"), &file);
    let made = import(&taxpayer, "", multipart, by_name)
        .await
        .expect_status(201);
    assert_eq!(outcomes(&made), ["line 2 created"]);
    let by_type = form("name=\"file\"", Some("text/csv"), &file);
    for (kind, body) in [(multipart, by_type), ("text/csv", file.clone())] {
        let again = import(&taxpayer, "", kind, body).await.expect_status(200);
        assert_eq!(again.data(), made.data(), "{kind}");
    }
    let strange = form("name=\"file\"; filename=\"a.exe\"", None, &file);
    import(&taxpayer, "", multipart, strange)
        .await
        .expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
    for body in [
        form("name=\"other\"", Some("text/csv"), &file),
        form(named, None, &file).replace("--B--", "--C--"),
        String::new(),
        form(named, None, &file).replace("--B--\r\n", "") + &form(named, None, "invoice_no"),
    ] {
        import(&taxpayer, "", multipart, body)
            .await
            .expect_refusal(422, "VALIDATION_FAILED");
    }
}

#[on_sqlite]
async fn a_key_that_comes_again_tells_how_far_the_import_is(world: &World) {
    let taxpayer = world.taxpayer().await;
    let file = lines(
        numbers()
            .iter()
            .map(|number| with(&invoice(), "invoice_no", json!(number))),
    );
    let send = async || {
        let request = taxpayer.request("POST", IMPORT);
        let request = request.header("content-type", NDJSON);
        Answer::to(
            request
                .header("idempotency-key", "large-1")
                .body(file.clone()),
        )
        .await
    };
    let first = send().await.expect_status(202);
    // An answer 202 is kept for no key: the same file is imported once all the same.
    let again = send().await.expect_status(200);
    assert_eq!(again.data()["import_no"], first.data()["import_no"]);
    assert_eq!(again.data()["batch_no"], first.data()["batch_no"]);
    let done = wait_until_done(&taxpayer, first.header("location")).await;
    assert_eq!(done["created"], 1_001);
}

/// The second import is the clock: it is accepted later and ends, and the first one has not gone on.
#[on_sqlite(ALONE)]
async fn an_import_of_a_paused_taxpayer_waits_until_it_is_resumed(world: &World) {
    let operator = world.new_operator().await;
    let [paused, other] = [world.taxpayer().await, world.taxpayer().await];
    let begin = async |taxpayer: &Client, count: usize| {
        let start = invoice_no();
        let bodies = (0..count).map(|at| invoice_numbered(&format!("{start}X{at}")));
        let begun = import(taxpayer, "", NDJSON, lines(bodies)).await;
        begun.expect_status(202).header("location").to_owned()
    };
    let held = begin(&paused, 2_001).await;
    let order = async |to: &str| {
        let path = format!("/ops/taxpayers/{}/{to}", paused.id);
        let body = json!({ "reason": "its key was stolen" });
        operator.send("POST", &path, &body).await.expect_status(200);
    };
    order("pause").await;
    let free = begin(&other, 1_001).await;
    wait_until_done(&other, &free).await;
    let read = paused.get(&held).await.expect_status(200);
    assert_eq!(read.data()["state"], json!("running"), "{read:?}");
    order("resume").await;
    wait_until_done(&paused, &held).await;
}

async fn undo(taxpayer: &Client, batch: &str, query: &str) -> Answer {
    let path = format!("/v1/tax-payers/invoices/batches/{batch}/undo{query}");
    taxpayer.send("POST", &path, &json!({})).await
}

#[on_sqlite]
async fn a_batch_is_undone_only_when_its_import_has_ended(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let order = async |to: &str| {
        let path = format!("/ops/taxpayers/{}/{to}", taxpayer.id);
        let body = json!({ "reason": "a test" });
        operator.send("POST", &path, &body).await.expect_status(200);
    };
    // The import waits until the taxpayer is resumed.
    order("pause").await;
    let numbers = numbers();
    let file = lines(numbers.iter().map(|number| invoice_numbered(number)));
    let begun = import(&taxpayer, "", NDJSON, file.clone()).await;
    let begun = begun.expect_status(202);
    let batch = begun.data()["batch_no"].as_str().unwrap();
    for query in ["", "?preview=true"] {
        let refused = undo(&taxpayer, batch, query).await;
        let refused = refused.expect_refusal(409, "INVALID_TRANSITION");
        let message = refused.message();
        assert!(message.contains("is still being imported"), "{message}");
        assert!(message.contains("0 of 1001 invoices"), "{message}");
    }
    let path = format!("/v1/tax-payers/invoices/batches/{batch}");
    let read = taxpayer.get(&path).await;
    let read = read.expect_refusal(404, "BATCH_NOT_FOUND");
    let message = read.message();
    assert!(
        message.contains("This batch is being imported"),
        "{message}"
    );
    order("resume").await;
    wait_until_done(&taxpayer, begun.header("location")).await;
    let undone = undo(&taxpayer, batch, "").await.expect_status(202);
    assert_eq!(undone.data()["cancelled"], 1_000);
    assert_eq!(undone.data()["left"], 1);

    let begun = import(&taxpayer, "?replace_cancelled=true", NDJSON, file).await;
    let begun = begun.expect_status(202);
    let done = wait_until_done(&taxpayer, begun.header("location")).await;
    let counts = ["created", "replaced", "duplicates"].map(|name| done[name].as_u64().unwrap());
    assert_eq!(counts, [1_000, 1_000, 1], "{done}");
}

#[on_sqlite]
async fn nothing_is_undone_of_an_import_that_created_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bodies = numbers().into_iter().map(|number| {
        with(
            &invoice_numbered(&number),
            "invoice_date",
            json!("yesterday"),
        )
    });
    let begun = import(&taxpayer, "", NDJSON, lines(bodies)).await;
    let begun = begun.expect_status(202);
    let done = wait_until_done(&taxpayer, begun.header("location")).await;
    assert_eq!(done["created"], 0);
    let batch = begun.data()["batch_no"].as_str().unwrap();
    for (query, status) in [("?preview=true", 200), ("", 202)] {
        let undone = undo(&taxpayer, batch, query).await.expect_status(status);
        for count in ["credited", "cancelled", "kept", "done_before", "left"] {
            assert_eq!(undone.data()[count], 0, "{query} {count}");
        }
    }
}

/// Returns the data of the events of ended batches.
async fn ended_batches(taxpayer: &Client) -> Vec<Value> {
    let mut ended = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/v1/tax-payers/events?limit=1000&after={after}");
        let page = taxpayer.get(&path).await.expect_status(200);
        let events = page.data()["events"].as_array().unwrap().iter();
        let batches = events.filter(|event| event["type"] == "invoice.batch-completed");
        ended.extend(batches.map(|event| event["data"].clone()));
        after = page.data()["next_after"].as_i64().unwrap();
        if page.data()["has_more"] == false {
            return ended;
        }
    }
}

#[on_sqlite]
async fn a_cancelled_import_creates_nothing_more_until_its_file_is_sent_again(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let start = invoice_no();
    // So many that the import does not end before it is cancelled.
    let bodies = (0..2_001).map(|at| invoice_numbered(&format!("{start}X{at}")));
    let file = lines(bodies);
    let begun = import(&taxpayer, "", NDJSON, file.clone()).await;
    let begun = begun.expect_status(202);
    let place = begun.header("location");
    let cancel = async || {
        let path = format!("{place}/cancel");
        taxpayer.send("POST", &path, &json!({})).await
    };
    let cancelled = cancel().await.expect_status(200);
    assert_eq!(cancelled.data()["state"], "stopped");
    let again = cancel().await.expect_status(200);
    assert_eq!(again.data(), cancelled.data());
    let ended = ended_batches(&taxpayer).await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["cancelled"], true);
    for name in ["import_no", "batch_no", "created", "duplicates", "failed"] {
        assert_eq!(ended[0][name], cancelled.data()[name], "{name}");
    }
    let audit = format!(
        "/ops/audit?taxpayer_id={}&action=import.cancel",
        taxpayer.id
    );
    let audit = operator.get(&audit).await.expect_status(200);
    assert_eq!(audit.data()["total"], 1);
    let batch = begun.data()["batch_no"].as_str().unwrap();
    let planned = undo(&taxpayer, batch, "?preview=true").await;
    planned.expect_status(200);
    let created = &cancelled.data()["created"];
    let listed = taxpayer.list_invoices("").await.expect_status(200);
    assert_eq!(&listed.data()["total"], created);
    let sent_again = import(&taxpayer, "", NDJSON, file).await;
    assert_eq!(sent_again.expect_status(202).data()["state"], "running");
    let done = wait_until_done(&taxpayer, place).await;
    assert_eq!(done["created"], 2_001);
    let ended = ended_batches(&taxpayer).await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[1]["cancelled"], false);
    assert_eq!(ended[1]["created"], 2_001);
    cancel().await.expect_refusal(409, "INVALID_TRANSITION");
}
