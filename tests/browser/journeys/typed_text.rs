//! The text of a form outlives the end of the session in which it was typed.

use crate::person::Visitor;
use crate::run_alone;
use crate::support::account::{Account, PASSWORD};
use serde_json::json;
use testkit::roles::TAXPAYERS;

#[test]
fn what_was_typed_is_there_again_after_the_session_has_ended() {
    run_alone("typed", |world| {
        Box::pin(async move {
            let account = Account::new(world).await;
            let visitor = Visitor::signed_in(world, &account.email, PASSWORD).await;
            visitor.follow("Profile").await;
            visitor.fill("Phone", "+2348099999999").await;
            visitor
                .session
                .devtools("Network.clearBrowserCookies", &json!({}))
                .await;
            visitor.press("Save").await;
            visitor
                .wait_to_see("Your session had ended, so nothing was sent.")
                .await;
            visitor.fill("Email", &account.email).await;
            visitor.fill("Password", PASSWORD).await;
            visitor.press("Sign in").await;
            visitor
                .wait_to_see("What you typed is here again. It was not sent yet.")
                .await;
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
