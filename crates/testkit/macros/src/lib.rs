//! The attributes that make tests of a case. They only copy tokens: what a case needs to run, the suite says in its
//! `support` module.

use proc_macro::{Ident, TokenStream, TokenTree};

/// Makes two tests of an async function: `<name>_on_sqlite` and `<name>_on_postgresql`.
///
/// The function takes one argument, which `crate::support::run_case(backend, name, case)` of the suite provides.
/// With an argument, `#[each_database(&SETTINGS)]`, it is `crate::support::run_case_with(backend, name, settings, case)`.
///
/// libtest can ignore a test only when it is compiled, and whether there is a server is known only when it runs. So
/// without `EINVOICE_TEST_POSTGRES` the second test counts as passed, and standard error says
/// `skipped: <name>_on_postgresql: EINVOICE_TEST_POSTGRES is not set`, past the capture of the output.
/// `--skip on_postgresql` leaves these tests out.
#[proc_macro_attribute]
pub fn each_database(settings: TokenStream, case: TokenStream) -> TokenStream {
    tests_of(&settings, case, &["Sqlite", "Postgres"])
}

/// Makes one test of an async function, `<name>_on_postgresql`: for what SQLite cannot do. See [`macro@each_database`].
#[proc_macro_attribute]
pub fn on_postgresql(settings: TokenStream, case: TokenStream) -> TokenStream {
    tests_of(&settings, case, &["Postgres"])
}

fn tests_of(settings: &TokenStream, case: TokenStream, backends: &[&str]) -> TokenStream {
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
        let suffix = if *backend == "Sqlite" { "sqlite" } else { "postgresql" };
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

/// The identifier after `fn`.
fn function_name(item: &TokenStream) -> Option<Ident> {
    let mut tokens = item.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Some(name),
        _ => None,
    }
}

fn failure(message: &str) -> TokenStream {
    format!("::std::compile_error!({message:?});").parse().unwrap_or_default()
}
