//! The journeys of accounts.

use serde_json::json;
use testkit::documents::{self, submission};
use testkit::edit::{with, without};
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::roles::TAXPAYERS;

use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD, link_path};

#[test]
fn a_newcomer_completes_the_profile_and_makes_a_key_that_works() {
    run_alone("newcomer", |world| {
        Box::pin(async move {
            let body = documents::taxpayer();
            world.enrol(&body, body["tin_no"].as_str().unwrap());
            let made = world
                .integrator()
                .create_taxpayer(&body)
                .await
                .expect_status(201);
            let path = format!("{TAXPAYERS}/{}", made.data()["id"]);
            let shown = world.integrator().get(&path).await.expect_status(200);
            let path = format!(
                "{path}/contacts/{}/invitation",
                shown.data()["users"][0]["id"]
            );
            let invited = world
                .integrator()
                .call("POST", &path)
                .await
                .expect_status(200);
            let visitor = Visitor::new(world).await;
            visitor
                .open(&link_path(invited.data()["link"].as_str().unwrap()))
                .await;
            visitor.fill("New password", PASSWORD).await;
            visitor.fill("New password again", PASSWORD).await;
            visitor.press("Set the password").await;
            visitor
                .wait_to_see("Your password is set. Sign in with it.")
                .await;
            visitor
                .fill("Email", body["contact_person"]["email"].as_str().unwrap())
                .await;
            visitor.fill("Password", PASSWORD).await;
            visitor.press("Sign in").await;
            visitor.wait_to_see("Overview").await;
            visitor.follow("Profile").await;
            visitor
                .wait_to_see("No invoice can be created before these are filled in:")
                .await;
            for (label, text) in [("City", "Lagos"), ("State", "Lagos"), ("Country", "NG")] {
                visitor.fill(label, text).await;
            }
            visitor.press("Save").await;
            visitor
                .wait_to_see("The profile is complete: invoices can be created.")
                .await;
            visitor.follow("API keys").await;
            visitor.press("Create the key").await;
            visitor
                .wait_to_see("Copy it now; it is not shown again.")
                .await;
            let key = visitor.read("secret").await;
            let id = made.data()["id"].as_i64().unwrap();
            let taxpayer = world.taxpayer_with_key(&key, id, &body);
            let invoice = taxpayer.invoice(&documents::invoice()).await;
            visitor.follow("I have copied it").await;
            visitor.follow("Invoices").await;
            visitor
                .wait_to_see(invoice["invoice_no"].as_str().unwrap())
                .await;
        })
    });
}

#[test]
fn a_refused_invoice_is_explained_corrected_and_signed() {
    run_alone("refused", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let no = invoice["invoice_no"].as_str().unwrap();
            let right = submission(&account.taxpayer, no);
            let tax = json!([{ "tax_amount": 80, "tax_subtotal": [{
                "taxable_amount": 1_000, "tax_amount": 80,
                "tax_category": { "id": "STANDARD_VAT", "percent": 8 },
            }] }]);
            let wrong = with(&right, "tax_total", tax);
            account
                .taxpayer
                .app()
                .submit_to_the_end(&wrong)
                .await
                .expect_refusal(422, "AUTHORITY_REJECTED");
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow(no).await;
            owner.wait_to_see("why it was rejected").await;
            owner.press("Suggest a correction").await;
            owner
                .wait_to_see("There is no change that the service can suggest safely.")
                .await;
            // The stored invoice is right: what was submitted was not it.
            owner.wait_to_see("The submitted document differs").await;
            owner.press("Send again").await;
            owner
                .wait_to_see("Signed by the authority. It does not change any more.")
                .await;
        })
    });
}

#[test]
fn an_invoice_is_approved_submitted_transmitted_and_paid_on_its_page() {
    run_alone("to-paid", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            account.set_role(world, "accountant").await;
            let person = Visitor::signed_in(world, &account.email, PASSWORD).await;
            person.follow("Invoices").await;
            person.follow(invoice["invoice_no"].as_str().unwrap()).await;
            person.wait_to_see("NGN 1,075.00").await;
            person.press("Approve").await;
            person.wait_to_see("The status was changed.").await;
            person.press("Submit").await;
            person
                .wait_to_see("The authority signed the invoice.")
                .await;
            person.press("Transmit").await;
            person
                .wait_to_see("The invoice was transmitted to the customer.")
                .await;
            person.follow("Record payment").await;
            person.fill("Amount, if a part was paid", "75.00").await;
            person.choose("Payment", "A part was paid").await;
            person.fill("Remark", "first part").await;
            person.press("Record the payment").await;
            person.wait_to_see("left to pay 1,000.00").await;
            person.follow("Credit note").await;
            person.wait_to_see("Credit note for").await;
            person.press("Save as draft").await;
            person.wait_to_see("It is saved as a draft.").await;
            person.press("Approve").await;
            person.wait_to_see("The status was changed.").await;
            person.press("Submit").await;
            person
                .wait_to_see("The authority signed the invoice.")
                .await;
        })
    });
}

#[test]
fn what_an_invoice_lacks_is_filled_in_on_its_page_and_sent_again() {
    run_alone("corrected", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let lacking = without(&documents::invoice(), "invoice_lines.0.product_category");
            let invoice = account.taxpayer.invoice(&lacking).await;
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow(invoice["invoice_no"].as_str().unwrap()).await;
            owner.press("Approve").await;
            owner.wait_to_see("The status was changed.").await;
            owner.press("Submit").await;
            owner.wait_to_see("This could not be done.").await;
            owner.fill("Line 1, HSN code", "8471.30").await;
            owner.press("Save and send again").await;
            owner.wait_to_see("The authority signed the invoice.").await;
        })
    });
}

#[test]
fn two_hundred_drafts_are_approved_and_submitted_in_five_clicks() {
    run_alone("bulk", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let drafts: Vec<_> = (0..200).map(|_| documents::invoice()).collect();
            account
                .taxpayer
                .create_batch(&drafts)
                .await
                .expect_status(201);
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow("Draft 200").await;
            owner.tick("All 200 that match").await;
            owner.press("Approve and submit …").await;
            owner.press("Approve and submit: 200 invoices").await;
            owner.wait_to_see("Approve and submit: 200 done").await;
            eventually("the signatures", async || {
                let path = "/v1/tax-payers/invoices?authority_status=SUBMITTED&per_page=1";
                let signed = account.taxpayer.get(path).await.expect_status(200);
                (signed.data()["total"] == json!(200)).then_some(())
            })
            .await;
        })
    });
}

#[test]
fn an_owner_sets_a_webhook_up_and_sends_a_delivery_again() {
    run_alone("resend", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let receiver = Receiver::start();
            let id = account.taxpayer.id;
            world
                .integrator()
                .set_webhook(id, &receiver.url(), &["invoice.created"])
                .await
                .expect_status(200);
            world.integrator().rotate_secret(id).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            eventually("the delivery", async || {
                (receiver.received_notifications().len() == 1).then_some(())
            })
            .await;
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow(invoice["invoice_no"].as_str().unwrap()).await;
            owner.follow("Developer").await;
            owner.wait_to_see("Deliveries to your webhook").await;
            owner.press("Attempts").await;
            owner
                .wait_to_see("Your webhook was told of invoice.created")
                .await;
            owner.follow("invoice.created").await;
            owner.press("Send it again").await;
            eventually("the same event again", async || {
                (receiver.received_notifications().len() == 2).then_some(())
            })
            .await;
            owner.reload_until_seen("Delivered").await;
        })
    });
}

#[test]
fn a_signed_invoice_is_corrected_and_a_wrong_batch_is_undone() {
    run_alone("correction", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let no = invoice["invoice_no"].as_str().unwrap();
            let alone = json!({ "irn": invoice["irn"] });
            let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
            submitted.expect_status(200);
            let bodies = [documents::invoice(), documents::invoice()];
            let batch = account.taxpayer.create_batch(&bodies).await;
            let batch = batch.expect_status(201);
            let owner = Visitor::signed_in(world, &account.email, PASSWORD).await;
            owner.follow("Invoices").await;
            owner.follow(no).await;
            owner.follow("Correct").await;
            owner.fill("Line 1, quantity", "3").await;
            owner.press("Preview").await;
            owner.wait_to_see(&format!("{no}R1")).await;
            owner.press("Correct the invoice").await;
            owner.wait_to_see("The correction was started.").await;
            // The page follows the correction without being loaded again.
            owner.wait_to_see("Done").await;
            owner.follow(&format!("{no}R1")).await;
            owner.wait_to_see("NGN 1,612.50").await;
            owner.follow("Batches").await;
            owner
                .follow(batch.data()["batch_no"].as_str().unwrap())
                .await;
            owner.follow("Undo this batch").await;
            owner.wait_to_see("NGN 2,150.00 in all").await;
            owner.press("Undo 2 invoices").await;
            owner.wait_to_see("Being credited").await;
        })
    });
}
