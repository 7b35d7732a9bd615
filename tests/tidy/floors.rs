//! A file imports only from lower floors, its own room and what lies inside it, never from a sibling.
//! Test code is held to this too; only paths within the root package are looked at.

use crate::rules::{Floor, ROOMS, Room};
use crate::source::{Fault, Parsed};
use crate::uses::Used;

pub(crate) fn faults(file: &Parsed<'_>, uses: &[Used]) -> Vec<Fault> {
    if !file.is_in_root_package() {
        return Vec::new();
    }
    let Some(own) = room_of(&file.steps()) else {
        let what = format!("`{}` has no floor: give it one in tests/tidy/rules.rs", file.steps().join("::"));
        return vec![file.fault(1, what)];
    };
    let mut faults: Vec<Fault> =
        uses.iter().filter_map(|used| Some(file.fault(used.line, objection(own, &used.path)?))).collect();
    keep_first_of_each(&mut faults);
    faults
}

/// One complaint about a neighbour is enough, however often the file names it.
fn keep_first_of_each(faults: &mut Vec<Fault>) {
    let mut said: Vec<String> = Vec::new();
    faults.sort();
    faults.retain(|fault| {
        let is_new = !said.contains(&fault.what);
        said.push(fault.what.clone());
        is_new
    });
}

fn room_of<S: AsRef<str>>(steps: &[S]) -> Option<&'static Room> {
    ROOMS.iter().filter(|room| is_inside(steps, room.module)).max_by_key(|room| room.module.len())
}

fn is_inside<S: AsRef<str>>(steps: &[S], module: &str) -> bool {
    let module: Vec<&str> = module.split("::").collect();
    steps.len() >= module.len() && module.iter().zip(steps).all(|(a, b)| *a == b.as_ref())
}

/// What is wrong with a path in a file of room `own`.
fn objection(own: &Room, path: &[String]) -> Option<String> {
    let steps = path.strip_prefix(&["crate".to_owned()])?;
    let name = own.module;
    let Some(other) = room_of(steps) else {
        let is_allowed = own.floor == Floor::Top;
        return (!is_allowed)
            .then(|| format!("`{name}` imports from the crate's root: name the module itself"));
    };
    let is_within = is_inside(&other.module.split("::").collect::<Vec<_>>(), name);
    if is_within || other.floor < own.floor {
        return None;
    }
    if other.floor > own.floor {
        return Some(format!("`{name}` imports `{}`, a higher floor", other.module));
    }
    (!other.shared).then(|| format!("`{name}` imports its sibling `{}`", other.module))
}

#[cfg(test)]
mod tests {
    use crate::complaints;

    #[test]
    fn a_lower_floor_does_not_import_a_higher_one() {
        let said = complaints("src/domain/invoice.rs", "use crate::store::lanes::Lane;");
        assert_eq!(said, ["`domain` imports `store`, a higher floor"]);
        let said = complaints("src/store/lanes.rs", "use crate::actors::supervision::Permit;");
        assert_eq!(said, ["`store` imports `actors::supervision`, a higher floor"]);
        let said = complaints("src/actors/taxpayer/batch.rs", "use crate::http::views::Invoice;");
        assert_eq!(said, ["`actors::taxpayer` imports `http`, a higher floor"]);
        let said = complaints("src/console/mod.rs", "use crate::app::Application;");
        assert_eq!(said, ["`console` imports `app`, a higher floor"]);
    }

    #[test]
    fn a_path_in_code_counts_like_an_import() {
        let said = complaints("src/store/lanes.rs", "fn wake() {\n    crate::actors::pipeline::wake();\n}");
        assert_eq!(said, ["`store` imports `actors::pipeline`, a higher floor"]);
    }

    #[test]
    fn outside_rooms_do_not_import_each_other() {
        let said = complaints("src/webhook/client.rs", "use crate::store::webhooks::deliveries::Delivery;");
        assert_eq!(said, ["`webhook` imports its sibling `store`"]);
        let said = complaints("src/store/lanes.rs", "use crate::authority::Client;");
        assert_eq!(said, ["`store` imports its sibling `authority`"]);
    }

    #[test]
    fn actors_import_supervision_but_not_each_other() {
        let said = complaints("src/actors/taxpayer/batch.rs", "use super::super::pipeline::Wake;");
        assert_eq!(said, ["`actors::taxpayer` imports its sibling `actors::pipeline`"]);
        let said = complaints("src/actors/webhook/pool.rs", "use crate::actors::PipelineActor;");
        assert_eq!(said, ["`actors::webhook` imports its sibling `actors`"]);
        assert_eq!(
            complaints("src/actors/taxpayer/batch.rs", "use crate::actors::supervision::Permit;"),
            [""; 0]
        );
    }

    #[test]
    fn the_surfaces_do_not_import_each_other() {
        let said = complaints("src/http/views/invoice.rs", "use crate::console::templates::Page;");
        assert_eq!(said, ["`http` imports its sibling `console`"]);
        let said = complaints("src/console/runs.rs", "use crate::http::views::Run;");
        assert_eq!(said, ["`console` imports its sibling `http`"]);
    }

    #[test]
    fn settings_are_for_every_floor_but_the_domain() {
        assert_eq!(complaints("src/store/lanes.rs", "use crate::config::Cluster;"), [""; 0]);
        assert_eq!(complaints("src/telemetry.rs", "use crate::config::Log;"), [""; 0]);
        let said = complaints("src/domain/totals.rs", "use crate::config::Cluster;");
        assert_eq!(said, ["`domain` imports `config`, a higher floor"]);
    }

    #[test]
    fn a_room_shows_what_lies_inside_it() {
        assert_eq!(
            complaints("src/actors/mod.rs", "pub use taxpayer::TaxpayerActor;\nmod taxpayer;"),
            [""; 0]
        );
    }

    #[test]
    fn nothing_is_imported_by_way_of_the_root() {
        let said = complaints("src/store/lanes.rs", "use crate::*;");
        assert_eq!(said, ["`store` imports from the crate's root: name the module itself"]);
    }

    #[test]
    fn a_new_module_needs_a_floor() {
        let said = complaints("src/ledger/mod.rs", "");
        assert_eq!(said, ["`ledger` has no floor: give it one in tests/tidy/rules.rs"]);
    }

    #[test]
    fn one_neighbour_is_one_fault() {
        let text = "use crate::store::lanes;\nuse crate::store::events;\nfn f() {\n    lanes::take()\n}";
        assert_eq!(complaints("src/domain/invoice.rs", text).len(), 1);
    }
}
