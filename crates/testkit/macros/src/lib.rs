//! The attributes that turn a case, which is an async function, into tests. They only copy tokens: the `support` module
//! of the test suite runs the case.

use proc_macro::{Ident, TokenStream, TokenTree};

/// Makes two tests from an async function: `<name>_on_sqlite` and `<name>_on_postgresql`.
///
/// The function takes one argument, which `crate::support::run_case(backend, name, case)` of the suite provides. If the
/// attribute has an argument, as in `#[each_database(&SETTINGS)]`, the test calls
/// `crate::support::run_case_with(backend, name, settings, case)` instead.
///
/// libtest decides at compile time which tests it ignores, but only at run time is it known whether there is a
/// PostgreSQL server. So without the variable `EINVOICE_TEST_POSTGRES` the second test counts as passed and writes
/// `skipped: <name>_on_postgresql: EINVOICE_TEST_POSTGRES is not set` to standard error, which libtest does not capture
/// here. `--skip on_postgresql` leaves these tests out.
#[proc_macro_attribute]
pub fn each_database(settings: TokenStream, case: TokenStream) -> TokenStream {
    generate_tests(&settings, case, &["Sqlite", "Postgres"])
}

/// Makes one test, `<name>_on_sqlite`, from an async function whose outcome does not depend on the database: it is
/// about requests, answers, pages or the authority, and writes only rows that other tests write on both databases.
/// See [`macro@each_database`].
#[proc_macro_attribute]
pub fn on_sqlite(settings: TokenStream, case: TokenStream) -> TokenStream {
    generate_tests(&settings, case, &["Sqlite"])
}

/// Makes one test, `<name>_on_postgresql`, from an async function that needs a feature that SQLite lacks. See
/// [`macro@each_database`].
#[proc_macro_attribute]
pub fn on_postgresql(settings: TokenStream, case: TokenStream) -> TokenStream {
    generate_tests(&settings, case, &["Postgres"])
}

fn generate_tests(settings: &TokenStream, case: TokenStream, backends: &[&str]) -> TokenStream {
    let Some(name) = function_name(&case) else {
        return failure("only a function can be a case");
    };
    let (run, settings) = if settings.is_empty() {
        ("run_case", String::new())
    } else {
        ("run_case_with", format!("{settings},"))
    };
    let mut tests = case;
    for backend in backends {
        let suffix = if *backend == "Sqlite" {
            "sqlite"
        } else {
            "postgresql"
        };
        let test = format!(
            "#[test] fn {name}_on_{suffix}() {{
                let name = concat!(module_path!(), \"::{name}_on_{suffix}\");
                if ::testkit::Backend::{backend}.is_available(name) {{
                    crate::support::{run}(
                        ::testkit::Backend::{backend}, name, {settings} |given| ::std::boxed::Box::pin({name}(given)),
                    );
                }}
            }}"
        );
        match test.parse::<TokenStream>() {
            Ok(test) => tests.extend(test),
            Err(error) => return failure(&error.to_string()),
        }
    }
    tests
}

/// Returns the identifier after `fn`; `None` if the item is no function.
fn function_name(item: &TokenStream) -> Option<Ident> {
    let mut tokens = item.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Some(name),
        _ => None,
    }
}

fn failure(message: &str) -> TokenStream {
    format!("::std::compile_error!({message:?});")
        .parse()
        .unwrap_or_default()
}
