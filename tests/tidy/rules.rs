//! The rules themselves. Nothing is decided elsewhere: a new module gets its floor here, a new limit its number.

/// The floors of the house, from the ground up. A file imports only from lower floors or its own room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// Pure decisions.
    Domain,
    /// Settings and logging: for every floor above the domain.
    Plain,
    /// What talks to the outside: the database, the authority, the receivers of webhooks.
    Outside,
    Actors,
    /// What callers see.
    Surface,
    /// Wiring and arguments.
    Top,
}

/// A module and everything below it, up to the next room named here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) module: &'static str,
    pub(crate) floor: Floor,
    /// Whether the other rooms of the same floor may import it.
    pub(crate) shared: bool,
}

const fn room(module: &'static str, floor: Floor) -> Room {
    Room { module, floor, shared: false }
}

const fn shared(module: &'static str, floor: Floor) -> Room {
    Room { module, floor, shared: true }
}

/// Every module of the root package stands in one of these; the longest name that fits decides.
pub(crate) const ROOMS: &[Room] = &[
    room("domain", Floor::Domain),
    shared("config", Floor::Plain),
    room("telemetry", Floor::Plain),
    room("store", Floor::Outside),
    room("authority", Floor::Outside),
    room("webhook", Floor::Outside),
    room("actors", Floor::Actors),
    shared("actors::supervision", Floor::Actors),
    shared("actors::dispatch", Floor::Actors),
    shared("actors::wake", Floor::Actors),
    shared("actors::waiters", Floor::Actors),
    shared("actors::incidents", Floor::Actors),
    // The way to a taxpayer's actor is for everybody; what is behind it is not.
    shared("actors::taxpayer::door", Floor::Actors),
    shared("actors::taxpayer::command", Floor::Actors),
    room("actors::taxpayer", Floor::Actors),
    room("actors::pipeline", Floor::Actors),
    room("actors::webhook", Floor::Actors),
    room("actors::reference", Floor::Actors),
    room("actors::sweeper", Floor::Actors),
    room("actors::key_usage", Floor::Actors),
    room("actors::checkpoint", Floor::Actors),
    room("actors::clock_watch", Floor::Actors),
    room("actors::inbound", Floor::Actors),
    room("actors::outage", Floor::Actors),
    room("actors::reconciliation", Floor::Actors),
    room("actors::verification", Floor::Actors),
    room("http", Floor::Surface),
    room("console", Floor::Surface),
    shared("app", Floor::Top),
    shared("cli", Floor::Top),
    room("main", Floor::Top),
    room("lib", Floor::Top),
];

/// Where a crate may be named, test code aside. `src/app` is the file `src/app.rs` and the folder `src/app/`.
pub(crate) const HOMES: &[(&str, &[&str])] = &[
    ("sea_orm", &["src/store", "migration/src"]),
    ("reqwest", &["src/authority", "src/webhook", "src/app/demo", "sandbox/src"]),
    ("actix_web", &["src/http", "src/console", "src/app", "sandbox/src"]),
    ("backoff", &["src/authority/retry"]),
    ("json_event_parser", &["strict_json/src"]),
    ("md4", &["src/webhook/auth/nlmp"]),
    ("md5", &["src/webhook/auth/nlmp"]),
    ("quick_xml", &["src/webhook/format"]),
    // The document of the API tells the words that the simulator takes.
    ("sandbox", &["src/app", "src/cli", "src/http/openapi/trying", "sandbox/src"]),
];

/// What a part of the house must not name at all, test code aside. A star ends a family of crates.
pub(crate) const UNSEEN: &[(&str, &[&str])] = &[
    ("src/domain", &["tokio", "actix*", "sea_orm", "reqwest", "std::time::SystemTime", "std::time::Instant"]),
    ("src/domain", &["std::env", "std::fs", "std::process", "std::thread"]),
    ("sandbox/src", &["einvoice", "migration"]),
];

/// Lines of a file, a `#[cfg(test)] mod tests` at its end not counted.
pub(crate) const FILE_LINES_MAX: usize = 400;
/// Lines of a function, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;
/// Lines between the braces of a handler.
pub(crate) const HANDLER_LINES_MAX: usize = 25;
/// Parameters of a function, the receiver not counted.
pub(crate) const PARAMETERS_MAX: usize = 5;
/// Lines of the doc of a `mod.rs`, tables, fenced text and blank lines not counted.
pub(crate) const MOD_DOC_LINES_MAX: usize = 8;

/// Every function here is a handler; elsewhere in `src/http`, one with an attribute of `ROUTE_ATTRIBUTES` is.
pub(crate) const HANDLER_HOMES: &[&str] = &[
    "src/http/authority",
    "src/http/core",
    "src/http/tax_payers",
    "src/http/system_integrators",
    "src/http/app",
    "src/http/ops",
];
pub(crate) const ROUTE_ATTRIBUTES: &[&str] =
    &["get", "post", "put", "patch", "delete", "head", "options", "route", "routes"];

/// The only functions a `mod.rs` may hold, and where: the route tables.
pub(crate) const ROUTE_TABLE_FILES: &[&str] =
    &["sandbox/src/control/mod.rs", "src/http/mod.rs", "src/console/mod.rs"];
pub(crate) const ROUTE_TABLE_FUNCTIONS: &[&str] = &["routes", "configure", "table"];

/// Last words, in the singular, that no type, module or file may have: they name a drawer, not a thing.
pub(crate) const DRAWER_WORDS: &[&str] = &["manager", "helper", "util", "service", "data", "info"];

pub(crate) const BANNED_ATTRIBUTES: &[(&str, &str)] = &[
    ("allow", "`#[allow]` hides a lint for ever: use `#[expect]` with its reason"),
    ("ignore", "`#[ignore]` hides a test: repair it or delete it"),
];

pub(crate) const BANNED_MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Words that no comment holds: what is left to do is done or belongs in the tracker.
pub(crate) const BANNED_COMMENTS: &[&str] = &["TODO", "FIXME", "XXX"];

/// Serde attributes refused on whatever derives `Deserialize`: they lose unknown keys and numbers' digits.
pub(crate) const BANNED_INPUT_ATTRIBUTES: &[&str] = &["flatten", "untagged"];

/// Where numbers are amounts, so no float is named or written; files of `FLOAT_FILES` measure, not count money.
pub(crate) const FLOATLESS: &[&str] = &["src/domain", "src/store", "src/http"];
pub(crate) const FLOAT_FILES: &[&str] = &["metrics", "telemetry", "config"];
