//! POST /ops/…/invitation: an admin makes a link with which a person chooses a password, for everybody but itself.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::roles::TAXPAYERS;

use crate::support::account::{PASSWORD, choose, link_path};
use crate::support::visitor::Visitor;
use crate::support::world::World;

#[each_database]
async fn an_admins_key_makes_links_for_contacts_and_integrators(world: &World) {
    let operator = world.new_operator().await;
    let (integrator, email, _) = world.new_integrator_person().await;
    let made = integrator
        .create_taxpayer(&documents::taxpayer())
        .await
        .expect_status(201);
    let taxpayer = made.data()["id"].clone();
    let shown = integrator
        .get(&format!("{TAXPAYERS}/{taxpayer}"))
        .await
        .expect_status(200);
    let user = shown.data()["users"][0].clone();
    let id = world
        .number(&format!(
            "SELECT id FROM integrators WHERE email = '{email}'"
        ))
        .await;
    let contact = format!(
        "/ops/taxpayers/{taxpayer}/contacts/{}/invitation",
        user["id"]
    );
    for (path, email, home) in [
        (
            contact,
            user["email"].as_str().unwrap(),
            format!("/dashboard/{taxpayer}"),
        ),
        (
            format!("/ops/integrators/{id}/invitation"),
            email.as_str(),
            "/dashboard/taxpayers".to_owned(),
        ),
    ] {
        let body = json!({ "reason": "asked by telephone" });
        let answer = operator.send("POST", &path, &body).await.expect_status(200);
        let visitor = Visitor::new(world);
        let link = link_path(answer.data()["link"].as_str().unwrap());
        choose(&visitor, &link, PASSWORD).await.leads_to("/sign-in");
        visitor.sign_in(email, PASSWORD).await.leads_to(&home);
    }
    for (path, code) in [
        (
            "/ops/operators/987654321/invitation".to_owned(),
            "OPERATOR_NOT_FOUND",
        ),
        (
            "/ops/integrators/x/invitation".to_owned(),
            "INTEGRATOR_NOT_FOUND",
        ),
        (
            format!("/ops/taxpayers/{taxpayer}/contacts/0/invitation"),
            "CONTACT_NOT_FOUND",
        ),
        (
            "/ops/taxpayers/987654321/contacts/1/invitation".to_owned(),
            "TAXPAYER_NOT_FOUND",
        ),
    ] {
        operator.call("POST", &path).await.expect_refusal(404, code);
    }
}
