//! An account with its owner at a browser.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::with;
use testkit::roles::{Integrator, Taxpayer};
use timing::clock::{Clock as _, SystemClock};
use totp_rs::{Builder, Secret};

use super::visitor::{Seen, Visitor};
use super::world::World;

/// The password of the people of the tests.
pub(crate) const PASSWORD: &str = "four plain words here";

/// A person who signed in by the form.
pub(crate) async fn signed_in(world: &World, email: &str, password: &str) -> Visitor {
    let visitor = Visitor::new(world);
    visitor.sign_in(email, password).await.expect(303);
    visitor
}

/// Returns the path of the one-time link that a page or an answer shows.
pub(crate) fn link_path(shown: &str) -> String {
    let start = shown
        .find("/sign-in/invitation/")
        .unwrap_or_else(|| panic!("no link in {shown}"));
    shown[start..].split(['<', '"']).next().unwrap().to_owned()
}

/// Returns the id of the first customer that a page leads to.
pub(crate) fn first_customer(page: &str) -> String {
    let (_, rest) = page.split_once("/customers/").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Chooses a password with a one-time link.
pub(crate) async fn choose(visitor: &Visitor, link: &str, password: &str) -> Seen {
    visitor
        .send(link, &[("new", password), ("again", password)])
        .await
}

/// The code that an authenticator app shows in the present step, or some steps later.
pub(crate) fn code_of_app(secret: &str, steps: i64) -> String {
    let secret = Secret::try_from_base32(secret).unwrap();
    let at = SystemClock.now().as_second() + 30 * steps;
    Builder::new()
        .with_secret(secret)
        .build()
        .unwrap()
        .generate(at.try_into().unwrap())
        .to_string()
}

/// An account with its owner at a browser.
pub(crate) struct Account {
    pub(crate) taxpayer: Taxpayer,
    pub(crate) owner: Visitor,
    pub(crate) email: String,
}

impl Account {
    /// An account with a complete profile.
    pub(crate) async fn new(world: &World) -> Self {
        let account = Self::newcomer(world, &world.integrator()).await;
        let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
        world
            .integrator()
            .change_profile(account.taxpayer.id, &profile)
            .await
            .expect_status(200);
        account
    }

    /// An account whose profile is not complete.
    pub(crate) async fn newcomer(world: &World, integrator: &Integrator) -> Self {
        let mut body = documents::taxpayer();
        body["contact_person"]["password"] = json!(PASSWORD);
        world.enrol(&body, body["tin_no"].as_str().unwrap());
        let made = integrator.create_taxpayer(&body).await.expect_status(201);
        let id = made.data()["id"].as_i64().unwrap();
        let rotated = integrator.rotate_api_key(id).await.expect_status(200);
        let taxpayer =
            world.taxpayer_with_key(rotated.data()["api_key"].as_str().unwrap(), id, &body);
        let email = body["contact_person"]["email"].as_str().unwrap().to_owned();
        let owner = signed_in(world, &email, PASSWORD).await;
        Self {
            taxpayer,
            owner,
            email,
        }
    }

    /// The path of a page of this account.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/dashboard/{}{rest}", self.taxpayer.id)
    }

    pub(crate) async fn page(&self, rest: &str) -> String {
        self.owner.get(&self.path(rest)).await.expect(200).html
    }

    pub(crate) async fn post(&self, rest: &str, fields: &[(&str, &str)]) -> Seen {
        self.owner.submit(&self.path(rest), fields).await
    }

    /// An invoice whose submission the authority refused.
    pub(crate) async fn refused_invoice(&self) -> Value {
        let no = format!("SBXREJECT{}", documents::number());
        let invoice = self
            .taxpayer
            .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
            .await;
        let body = documents::submission(&self.taxpayer, &no);
        self.taxpayer
            .app()
            .submit_to_the_end(&body)
            .await
            .expect_status(422);
        invoice
    }

    /// Gives the contact person another role.
    pub(crate) async fn set_role(&self, world: &World, role: &str) {
        let id = self.taxpayer.id;
        world
            .execute(&format!(
                "UPDATE contacts SET role = '{role}' WHERE taxpayer_id = {id}"
            ))
            .await;
    }
}
