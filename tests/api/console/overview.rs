//! The first page of operators.

use std::collections::BTreeSet;

use einvoice::internals::OperatorRole;
use testkit::each_database;

use crate::support::visitor::Visitor;
use crate::support::world::World;

#[each_database]
async fn every_link_of_the_overview_leads_to_a_page(world: &World) {
    let visitor = Visitor::operator(world, OperatorRole::Viewer).await;
    let seen = visitor.get("/console").await.expect(200);
    let parts = seen
        .html
        .split("href=\"")
        .skip(1)
        .map(|part| part.split('"').next().unwrap());
    let links: BTreeSet<_> = parts.filter(|link| link.starts_with("/console")).collect();
    assert!(links.contains("/console/runs?state=paused"), "{links:?}");
    for link in links {
        assert_eq!(
            visitor.get(&link.replace("&amp;", "&")).await.status,
            200,
            "{link}"
        );
    }
}
