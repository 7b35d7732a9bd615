//! The text of a form outlives the end of the session in which it was typed.

use serde_json::json;
use testkit::documents;
use testkit::roles::TAXPAYERS;

use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD};
use crate::support::supplies;

/// Ends the session, sends the form of the open page by a button, and waits for the page that says so.
async fn send_after_end(visitor: &Visitor, button: &str) {
    visitor
        .session
        .devtools("Network.clearBrowserCookies", &json!({}))
        .await;
    visitor.press(button).await;
    visitor
        .wait_to_see("Your session had ended, so nothing was sent.")
        .await;
}

async fn sign_in_again(visitor: &Visitor, email: &str) {
    visitor.fill("Email", email).await;
    visitor.fill("Password", PASSWORD).await;
    visitor.press("Sign in").await;
    wait_for_typed(visitor).await;
}

async fn wait_for_typed(visitor: &Visitor) {
    visitor
        .wait_to_see("What you typed is here again. It was not sent yet.")
        .await;
}

#[test]
fn what_was_typed_is_there_again_after_the_session_has_ended() {
    run_alone("typed", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.follow("Profile").await;
            visitor.fill("Phone", "+2348099999999").await;
            send_after_end(&visitor, "Save").await;
            sign_in_again(&visitor, &account.email).await;
            visitor.press("Save").await;
            visitor.wait_to_see("The profile was changed.").await;
            let path = format!("{TAXPAYERS}/{}/profile", account.taxpayer.id);
            let stored = world.integrator().get(&path).await.expect_status(200);
            assert_eq!(stored.data()["phone"], "+2348099999999");
            // It is put back once, and not to whoever opens the page later.
            visitor.follow("Invoices").await;
            visitor.follow("Profile").await;
            visitor.wait_to_see("Phone").await;
            let text = visitor.text().await;
            assert!(!text.contains("What you typed"), "{text}");
        })
    });
}

#[test]
fn what_was_typed_does_not_undo_what_was_changed_meanwhile() {
    run_alone("typed-late", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let invoice = account.taxpayer.invoice(&documents::invoice()).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            let form = format!("/invoices/{}/edit", invoice["id"]);
            visitor.open(&account.path(&form)).await;
            visitor.fill("Note", "As agreed").await;
            send_after_end(&visitor, "Save").await;
            let update = documents::update(&invoice);
            account.taxpayer.update(&update).await.expect_status(200);
            sign_in_again(&visitor, &account.email).await;
            visitor.press("Save").await;
            visitor
                .wait_to_see("The invoice has changed meanwhile")
                .await;
            let stored = account.taxpayer.invoice_with_ledger(&invoice).await;
            assert_eq!(stored["lines"][0]["item_name"], "Monitor");
        })
    });
}

#[test]
fn each_typed_line_of_an_invoice_is_there_again_after_the_session_has_ended() {
    run_alone("typed-lines", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.open(&account.path("/invoices/new")).await;
            visitor.fill("Line 1, item", "Laptop").await;
            visitor.press("Add a line").await;
            visitor.fill("Line 2, item", "Case").await;
            send_after_end(&visitor, "Save as draft").await;
            visitor.fill("Email", &account.email).await;
            visitor.fill("Password", PASSWORD).await;
            visitor.press("Sign in").await;
            visitor.wait_to_see("Line 2, item").await;
            let items = "return [...document.querySelectorAll('[name$=item_name]')].map((field) => field.value)";
            let found = visitor.session.script(items, &[]).await;
            assert_eq!(found, json!(["Laptop", "Case"]));
        })
    });
}

#[test]
fn the_rows_that_were_ticked_are_ticked_again_although_they_have_moved() {
    run_alone("typed-rows", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let ticked = supplies::received(world, &account.taxpayer).await;
            supplies::arrived(&account.taxpayer, &ticked).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.open(&account.path("/inbox")).await;
            let tick = "document.querySelector('input[name=id]').click()";
            visitor.session.script(tick, &[]).await;
            send_after_end(&visitor, "Acknowledge").await;
            let newer = supplies::received(world, &account.taxpayer).await;
            supplies::arrived(&account.taxpayer, &newer).await;
            sign_in_again(&visitor, &account.email).await;
            let boxes = "return [...document.querySelectorAll('input[name=id]')].map((box) => [box.value, box.checked])";
            let found = visitor.session.script(boxes, &[]).await;
            assert_eq!(found, json!([[newer, false], [ticked, true]]));
        })
    });
}

#[test]
fn what_was_typed_is_there_again_after_the_password_was_confirmed() {
    run_alone("typed-confirm", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.follow("API keys").await;
            visitor.fill("Name", "Warehouse").await;
            world.execute("UPDATE sessions SET confirmed_at = 1").await;
            visitor.press("Create the key").await;
            visitor.fill("Current password", PASSWORD).await;
            visitor.press("Confirm").await;
            wait_for_typed(&visitor).await;
            visitor.press("Create the key").await;
            visitor.wait_to_see("not shown again").await;
            visitor.follow("API keys").await;
            visitor.wait_to_see("Warehouse").await;
        })
    });
}

#[test]
fn what_was_typed_is_there_again_after_a_sign_in_in_another_tab() {
    run_alone("typed-tab", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.follow("Profile").await;
            visitor.fill("Phone", "+2348077777777").await;
            // As in another tab: the browser has the cookie of a new session then.
            let sign_in = "const request = new XMLHttpRequest();
                request.open('POST', '/sign-in', false);
                const [email, password] = arguments;
                request.setRequestHeader('content-type', 'application/x-www-form-urlencoded');
                request.send(new URLSearchParams({ email, password }).toString());";
            let person = [account.email.as_str(), PASSWORD];
            visitor.session.script(sign_in, &person).await;
            visitor.press("Save").await;
            visitor
                .wait_to_see("you have signed in anew since the page was opened")
                .await;
            visitor.open(&account.path("/profile")).await;
            wait_for_typed(&visitor).await;
            visitor.press("Save").await;
            visitor.wait_to_see("The profile was changed.").await;
            let path = format!("{TAXPAYERS}/{}/profile", account.taxpayer.id);
            let stored = world.integrator().get(&path).await.expect_status(200);
            assert_eq!(stored.data()["phone"], "+2348077777777");
        })
    });
}
