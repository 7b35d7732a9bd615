//! How long files, functions and handlers are, how many parameters they take, and that a `mod.rs` has no logic.

use std::fmt;

use syn::visit::{self, Visit};

use crate::rules::{
    FILE_LINES_MAX, FUNCTION_LINES_MAX, HANDLER_HOMES, HANDLER_LINES_MAX, PARAMETERS_MAX, ROUTE_ATTRIBUTES,
    ROUTE_TABLE_FILES, ROUTE_TABLE_FUNCTIONS,
};
use crate::source::{Fault, Parsed, Source, marks_test, parse_all};

pub(crate) fn faults(file: &Parsed<'_>) -> Vec<Fault> {
    let functions = functions_of(file);
    let mut faults: Vec<Fault> =
        functions.iter().flat_map(|function| function_faults(file, function)).collect();
    let lines = file_lines(file);
    if lines > FILE_LINES_MAX && !file.is_test {
        faults.push(file.fault(lines, format!("the file has {lines} lines, {FILE_LINES_MAX} at most")));
    }
    faults
}

fn function_faults(file: &Parsed<'_>, function: &Function) -> Vec<Fault> {
    let Function { name, line, lines, body_lines, parameters, .. } = function;
    let mut said = Vec::new();
    if *lines > FUNCTION_LINES_MAX {
        said.push(format!("`{name}` has {lines} lines, {FUNCTION_LINES_MAX} at most"));
    }
    if *parameters > PARAMETERS_MAX {
        said.push(format!("`{name}` takes {parameters} parameters, {PARAMETERS_MAX} at most"));
    }
    if is_handler(file, function) && *body_lines > HANDLER_LINES_MAX {
        said.push(format!(
            "the handler `{name}` has {body_lines} lines of body, {HANDLER_LINES_MAX} at most"
        ));
    }
    if is_logic_in_mod_rs(file, function) {
        said.push(format!("a mod.rs holds declarations and tables, not the function `{name}`"));
    }
    said.into_iter().map(|what| file.fault(*line, what)).collect()
}

fn is_handler(file: &Parsed<'_>, function: &Function) -> bool {
    let is_routed = function.has_route && file.is_in("src/http");
    !function.in_test && (is_routed || file.is_in_any(HANDLER_HOMES))
}

fn is_logic_in_mod_rs(file: &Parsed<'_>, function: &Function) -> bool {
    let is_route_table =
        ROUTE_TABLE_FILES.contains(&file.path) && ROUTE_TABLE_FUNCTIONS.contains(&function.name.as_str());
    file.is_mod_rs() && function.has_body && !function.in_test && !is_route_table
}

/// The lines of a file up to the test module that ends it.
fn file_lines(file: &Parsed<'_>) -> usize {
    let all = file.text.lines().count();
    match file.tree.items.last() {
        Some(syn::Item::Mod(last)) if marks_test(&last.attrs) => last
            .attrs
            .iter()
            .map(|attribute| attribute.pound_token.span.start().line - 1)
            .min()
            .unwrap_or(all),
        _ => all,
    }
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
    body_lines: usize,
    parameters: usize,
    has_body: bool,
    has_route: bool,
    in_test: bool,
}

fn functions_of(file: &Parsed<'_>) -> Vec<Function> {
    let mut collector = Collector { in_test: file.is_test, found: Vec::new() };
    collector.visit_file(&file.tree);
    collector.found
}

struct Collector {
    in_test: bool,
    found: Vec<Function>,
}

impl Collector {
    fn record(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        body: Option<&syn::Block>,
    ) {
        let line = signature.fn_token.span.start().line;
        let opens = body.map_or(line, |block| block.brace_token.span.open().start().line);
        let closes = body.map_or(line, |block| block.brace_token.span.close().end().line);
        self.found.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: closes - line + 1,
            body_lines: (closes - opens).saturating_sub(1),
            parameters: signature.inputs.len() - usize::from(signature.receiver().is_some()),
            has_body: body.is_some(),
            has_route: attributes.iter().any(is_route),
            in_test: self.in_test || marks_test(attributes),
        });
    }
}

fn is_route(attribute: &syn::Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|segment| ROUTE_ATTRIBUTES.iter().any(|route| segment.ident == route))
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let before = self.in_test;
        self.in_test |= marks_test(&item.attrs);
        visit::visit_item_mod(self, item);
        self.in_test = before;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.record(&item.attrs, &item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.record(&item.attrs, &item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.record(&item.attrs, &item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }
}

/// The middle of the house, printed beside its limits; test code is left out.
pub(crate) struct Medians {
    files: Vec<usize>,
    functions: Vec<usize>,
    handlers: Vec<usize>,
}

impl Medians {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut medians = Self { files: Vec::new(), functions: Vec::new(), handlers: Vec::new() };
        for file in parse_all(sources).0.iter().filter(|file| !file.is_test) {
            medians.files.push(file_lines(file));
            for function in
                functions_of(file).iter().filter(|function| function.has_body && !function.in_test)
            {
                medians.functions.push(function.lines);
                medians.handlers.extend(is_handler(file, function).then_some(function.body_lines));
            }
        }
        medians
    }
}

impl fmt::Display for Medians {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "files: {}", spread(&self.files))?;
        writeln!(f, "functions: {}", spread(&self.functions))?;
        write!(f, "bodies of handlers: {}", spread(&self.handlers))
    }
}

fn spread(lines: &[usize]) -> String {
    let mut lines = lines.to_vec();
    lines.sort_unstable();
    match (lines.get(lines.len() / 2), lines.last()) {
        (Some(median), Some(longest)) => format!("{}, median {median} lines, longest {longest}", lines.len()),
        _ => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaints;

    fn function_with(signature: &str, body_lines: usize) -> String {
        format!("{signature} {{\n{}}}\n", "    work();\n".repeat(body_lines))
    }

    #[test]
    fn a_file_has_at_most_400_lines() {
        assert_eq!(complaints("src/store/lanes.rs", &"const A: u8 = 1;\n".repeat(398)), [""; 0]);
        let said = complaints("src/store/lanes.rs", &"const A: u8 = 1;\n".repeat(399));
        assert_eq!(said, ["the file has 401 lines, 400 at most"]);
    }

    #[test]
    fn tests_at_the_end_of_a_file_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    const A: u8 = 1;\n".repeat(500));
        assert_eq!(complaints("src/store/lanes.rs", &tests), [""; 0]);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_does_not_count() {
        let parent = Source::new("src/store/mod.rs", "//! Doc.\n#[cfg(test)]\nmod lane_tests;\n");
        let long = "//! Doc.\n".to_owned() + &"const A: u8 = 1;\n".repeat(500);
        let tests = Source::new("src/store/lane_tests.rs", &long);
        assert_eq!(crate::faults(&[parent, tests]), []);
    }

    #[test]
    fn a_function_has_at_most_70_lines() {
        assert_eq!(complaints("src/store/lanes.rs", &function_with("fn take()", 68)), [""; 0]);
        let said = complaints("src/store/lanes.rs", &function_with("fn take()", 69));
        assert_eq!(said, ["`take` has 71 lines, 70 at most"]);
        let method = format!("impl Lane {{\n{}}}", function_with("fn take(&self)", 69));
        assert_eq!(complaints("src/store/lanes.rs", &method), ["`take` has 71 lines, 70 at most"]);
    }

    #[test]
    fn a_function_takes_at_most_five_parameters_beside_its_receiver() {
        let five = "impl Lane {\n    fn take(&self, a: A, b: B, c: C, d: D, e: E) {}\n}";
        assert_eq!(complaints("src/store/lanes.rs", five), [""; 0]);
        let said = complaints("src/store/lanes.rs", "fn take(a: A, b: B, c: C, d: D, e: E, f: F) {}");
        assert_eq!(said, ["`take` takes 6 parameters, 5 at most"]);
    }

    #[test]
    fn a_handler_has_at_most_25_lines_of_body() {
        let fault = "the handler `create` has 26 lines of body, 25 at most";
        let plain = function_with("pub async fn create()", 26);
        assert_eq!(complaints("src/http/tax_payers/create.rs", &plain), [fault]);
        assert_eq!(complaints("src/http/envelope.rs", &format!("#[get(\"/x\")]\n{plain}")), [fault]);
        assert_eq!(complaints("src/http/envelope.rs", &plain), [""; 0]);
        let short = function_with("pub async fn create()", 25);
        assert_eq!(complaints("src/http/tax_payers/create.rs", &short), [""; 0]);
    }

    #[test]
    fn a_mod_rs_holds_no_logic_but_route_tables() {
        let table = "pub struct Invoice;\npub const CODES: &[&str] = &[\"A\"];\n";
        assert_eq!(complaints("src/domain/mod.rs", table), [""; 0]);
        let said = complaints("src/domain/mod.rs", "impl Invoice {\n    fn total(&self) {}\n}");
        assert_eq!(said, ["a mod.rs holds declarations and tables, not the function `total`"]);
        let routes = "pub fn routes(cfg: &mut ServiceConfig) {}";
        assert_eq!(complaints("src/http/mod.rs", routes), [""; 0]);
        assert_eq!(complaints("src/store/mod.rs", routes).len(), 1);
    }

    #[test]
    fn the_medians_are_of_code_that_is_no_test() {
        let text = "//! Doc.\nfn a() {}\nfn b() {\n\n}\nfn c() {\n\n\n}\n#[test]\nfn t() {}\n";
        let medians = Medians::of(&[Source::new("src/store/lanes.rs", text)]);
        let expected = "files: 1, median 11 lines, longest 11\nfunctions: 3, median 3 lines, longest 4\nbodies of handlers: none";
        assert_eq!(medians.to_string(), expected);
    }
}
