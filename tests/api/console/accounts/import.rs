//! The import of a file on its page.

use serde_json::json;
use testkit::documents;
use testkit::edit::{with, without};
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, field_value};
use crate::support::visitor::Visitor;
use crate::support::world::World;

#[each_database]
async fn a_file_is_previewed_and_imported(world: &World) {
    let account = Account::new(world).await;
    let page = account.page("/import").await;
    assert_shows(
        &page,
        &[
            "data-upload=\"import-result\"",
            "The preview changes nothing.",
        ],
    );
    let token = account.owner.get(&account.path("/import")).await.csrf();
    let bad = without(&documents::invoice(), "due_date");
    let file = json!([documents::invoice(), bad]).to_string();
    let send = async |query: &str| {
        let path = account.path(&format!("/import/file{query}"));
        account
            .owner
            .upload(&path, "application/json", &token, file.clone())
            .await
            .expect(200)
            .html
    };
    let preview = send("?preview=true&form=standard").await;
    assert_shows(
        &preview,
        &[
            "Import 1 invoice",
            "NGN 1,075.00 to pay in 1 invoice",
            "data-label=\"Customer\" dir=\"auto\">Retail Stores Ltd</td>",
            "data-label=\"Payable\">NGN 1,075.00</td>",
            "title=\"due_date\">Due date</th>",
            "NGN 1,000",
            "document 2, due_date: Due date is required.",
            "title=\"required\">Missing</td>",
        ],
    );
    let none = account.page("/invoices").await;
    assert_shows(&none, &["There is no invoice yet."]);
    let done = send("?preview=false&form=standard").await;
    assert_shows(&done, &["Imported", "Show these invoices", "/errors.csv\""]);
    let address = done
        .split("href=\"")
        .find(|part| part.contains("/errors.csv\""));
    let address = address.and_then(|part| part.split('"').next()).unwrap();
    let errors = account.owner.get(address).await.expect(200).html;
    assert!(
        errors.contains("error") && errors.contains("due_date"),
        "{errors}"
    );
    let template = account.path("/import/template.csv");
    let template = account.owner.get(&template).await.expect(200).html;
    assert!(template.starts_with("invoice_no,"), "{template}");
    let listed = account.taxpayer.list_invoices("").await;
    assert_eq!(listed.data()["total"], 1);
}

#[on_sqlite]
async fn a_file_counts_only_from_a_page_of_the_session(world: &World) {
    let account = Account::new(world).await;
    let file = json!([documents::invoice()]).to_string();
    let path = account.path("/import/file");
    let token = account.owner.get(&account.path("/import")).await.csrf();
    let json = "application/json";
    account
        .owner
        .upload(&path, json, "", file.clone())
        .await
        .expect(403);
    let stranger = Visitor::new(world);
    let refused = stranger.upload(&path, json, &token, file.clone()).await;
    assert_eq!(refused.status, 303, "{}", refused.html);
    let other = Account::new(world).await;
    let own = other.owner.get(&other.path("/import")).await.csrf();
    other
        .owner
        .upload(&path, json, &own, file)
        .await
        .expect(404);
    let kind = account
        .owner
        .upload(&path, "text/plain", &token, "x".to_owned())
        .await;
    kind.expect(422)
        .shows("Choose a CSV, Excel (.xlsx), UBL (.xml), JSON or NDJSON file.");
    let listed = account.taxpayer.list_invoices("").await;
    assert_eq!(listed.data()["total"], 0);
}

#[each_database]
async fn a_file_that_is_sent_again_says_what_it_did_before_and_unread_money_is_no_zero(
    world: &World,
) {
    let account = Account::new(world).await;
    let token = account.owner.get(&account.path("/import")).await.csrf();
    let odd = with(
        &documents::invoice(),
        "invoice_lines.0.unit_price",
        json!("many"),
    );
    let file = json!([documents::invoice(), odd]).to_string();
    let before = "This file was imported";
    for (is_preview, heading, outcome, earlier) in [
        (true, "<h2>Preview</h2>", "badge info\">To create<", None),
        (false, "<h2>Imported</h2>", "badge ok\">Created<", None),
        (
            true,
            "<h2>Preview</h2>",
            "badge idle\">Duplicate<",
            Some("before, on"),
        ),
        (
            false,
            "<h2>Imported before</h2>",
            "badge ok\">Created<",
            Some("Nothing was created now"),
        ),
    ] {
        let path = format!("/import/file?preview={is_preview}&form=standard");
        let answer = account
            .owner
            .upload(
                &account.path(&path),
                "application/json",
                &token,
                file.clone(),
            )
            .await
            .expect(200)
            .html;
        assert_shows(&answer, &[heading, outcome]);
        assert!(!answer.contains("data-label=\"Money\""), "{answer}");
        match earlier {
            Some(words) => assert_shows(&answer, &[before, words]),
            None => assert!(!answer.contains(before), "{answer}"),
        }
    }
    let listed = account.taxpayer.list_invoices("").await;
    assert_eq!(listed.data()["total"], 1);
}

#[on_sqlite]
async fn what_a_file_lacks_is_answered_on_the_page(world: &World) {
    let account = Account::new(world).await;
    let token = account.owner.get(&account.path("/import")).await.csrf();
    let lacking = without(&documents::invoice(), "customer.email");
    let file = json!([lacking]).to_string();
    let path = account.path("/import/file?preview=true&form=standard");
    let preview = async || {
        let sent = account
            .owner
            .upload(&path, "application/json", &token, file.clone());
        sent.await.expect(200).html
    };
    let asked = preview().await;
    assert_shows(
        &asked,
        &[
            "Why 1 invoice is not imported",
            "1 invoice needs an answer",
            "name=\"q0.email\"",
        ],
    );
    let [no, name] = ["q0.customer_no", "q0.customer_name"].map(|name| field_value(&asked, name));
    let customer = [
        ("group", "q0"),
        ("q0.customer_no", &*no),
        ("q0.customer_name", &*name),
        ("q0.fields", "email"),
    ];
    let answer = async |email: &str| {
        let fields: Vec<_> = customer.into_iter().chain([("q0.email", email)]).collect();
        account.post("/import/answers", &fields).await
    };
    for (email, told) in [
        ("", "Answer one question at least."),
        ("odd", "The Email field must be a valid email address."),
    ] {
        answer(email).await.expect(422).shows(told);
    }
    assert_shows(&preview().await, &["1 invoice needs an answer"]);
    let kept = answer("buyer@answers.example").await.expect(200);
    kept.shows("1 answer is kept in the import profile.");
    assert_shows(&preview().await, &["Import 1 invoice"]);
}

#[on_sqlite]
async fn a_running_import_is_cancelled_on_its_page(world: &World) {
    let account = Account::new(world).await;
    let token = account.owner.get(&account.path("/import")).await.csrf();
    let start = documents::invoice_no();
    // So many that the import does not end before it is cancelled.
    let lines = (0..2_001).map(|at| {
        let body = documents::invoice_numbered(&format!("{start}X{at}"));
        format!("{body}\n")
    });
    let file: String = lines.collect();
    let upload = account.path("/import/file?preview=false&form=standard");
    let begun = account
        .owner
        .upload(&upload, "application/x-ndjson", &token, file)
        .await
        .expect(200)
        .html;
    let address = begun.split('"').find(|part| part.contains("/imports/"));
    let address = address.unwrap();
    let list = account.page("/import").await;
    assert_shows(&list, &["Being imported", address]);
    let page = account.owner.get(address).await.expect(200).html;
    assert_shows(&page, &["Importing", "Cancel this import"]);
    assert!(!page.contains("Its own page"), "{page}");
    let cancel = format!("{address}/cancel");
    let answer = account.owner.submit(&cancel, &[]).await;
    assert!(answer.status < 400, "{}", answer.html);
    let page = account.owner.get(address).await.expect(200).html;
    assert_shows(
        &page,
        &["Import stopped", "The account cancelled the import."],
    );
    assert!(!page.contains("Cancel this import"), "{page}");
}
