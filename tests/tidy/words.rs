//! Attributes, macros, comments and number types that do not stand in our sources.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::rules::{
    BANNED_ATTRIBUTES, BANNED_COMMENTS, BANNED_INPUT_ATTRIBUTES, BANNED_MACROS, FLOAT_FILES, FLOATLESS,
};
use crate::source::{Fault, Parsed};

pub(crate) fn faults(file: &Parsed<'_>) -> Vec<Fault> {
    let mut reader = Reader { is_floatless: is_floatless(file), found: Vec::new() };
    reader.visit_file(&file.tree);
    reader.found.extend(comment_faults(file.text));
    reader.found.into_iter().map(|(line, what)| file.fault(line, what)).collect()
}

fn is_floatless(file: &Parsed<'_>) -> bool {
    let is_exempt = file.steps().iter().any(|step| FLOAT_FILES.contains(step));
    file.is_in_any(FLOATLESS) && !is_exempt
}

struct Reader {
    is_floatless: bool,
    found: Vec<(usize, String)>,
}

impl Reader {
    fn check_macro(&mut self, name: &syn::Ident) {
        if BANNED_MACROS.iter().any(|banned| name == banned) {
            self.say(name, format!("`{name}!` does not stay in the tree"));
        }
    }

    /// What derives `Deserialize` reads the outside: its serde attributes, and those of its fields, are checked.
    fn check_input(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut InputReader)) {
        let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
        if derives.flat_map(arguments).any(|name| name == "Deserialize") {
            let mut reader = InputReader { found: Vec::new() };
            visit(&mut reader);
            for name in reader.found {
                self.say(&name, format!("`#[serde({name})]` is not used on input"));
            }
        }
    }

    fn check_float(&mut self, name: &syn::Ident) {
        if self.is_floatless && (name == "f32" || name == "f64") {
            self.say(name, format!("no `{name}` here: an amount is an exact decimal"));
        }
    }

    fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.read_tokens(group.stream()),
                TokenTree::Ident(name) if is_bang(tokens.get(at + 1)) => self.check_macro(name),
                TokenTree::Ident(name) => self.check_float(name),
                _ => {}
            }
        }
    }

    fn say(&mut self, place: &syn::Ident, what: String) {
        self.found.push((place.span().start().line, what));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let is_conditional = attribute.path().is_ident("cfg_attr");
        let mut names = if is_conditional { arguments(attribute) } else { Vec::new() };
        names.extend(attribute.path().get_ident().cloned());
        for (banned, reason) in BANNED_ATTRIBUTES {
            names.iter().filter(|name| *name == banned).for_each(|name| self.say(name, (*reason).to_owned()));
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.check_input(&item.attrs, |reader| reader.visit_item_struct(item));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.check_input(&item.attrs, |reader| reader.visit_item_enum(item));
        visit::visit_item_enum(self, item);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(last) = call.path.segments.last() {
            self.check_macro(&last.ident);
        }
        visit::visit_macro(self, call);
    }

    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        self.check_float(name);
    }

    fn visit_lit_float(&mut self, number: &'ast syn::LitFloat) {
        if self.is_floatless {
            let what = format!("no float `{number}` here: an amount is an exact decimal");
            self.found.push((number.span().start().line, what));
        }
    }

    /// The arguments of macros, which are not parsed.
    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.read_tokens(tokens.clone());
    }
}

fn is_bang(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(mark)) if mark.as_char() == '!')
}

/// Finds banned serde attributes in one type.
struct InputReader {
    found: Vec<syn::Ident>,
}

impl<'ast> Visit<'ast> for InputReader {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("serde") {
            let names = arguments(attribute).into_iter();
            self.found
                .extend(names.filter(|name| BANNED_INPUT_ATTRIBUTES.iter().any(|banned| name == banned)));
        }
    }
}

/// The names inside the parentheses of an attribute, however deep.
fn arguments(attribute: &syn::Attribute) -> Vec<syn::Ident> {
    match &attribute.meta {
        syn::Meta::List(list) => names_in(list.tokens.clone()),
        _ => Vec::new(),
    }
}

fn names_in(tokens: TokenStream) -> Vec<syn::Ident> {
    let names = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Ident(name) => vec![name],
        TokenTree::Group(group) => names_in(group.stream()),
        _ => Vec::new(),
    });
    names.collect()
}

fn comment_faults(text: &str) -> Vec<(usize, String)> {
    let comments = comments_alone(text);
    let lines = (1..).zip(comments.lines());
    let words = lines.flat_map(|(line, comment)| {
        comment.split(|letter: char| !letter.is_alphanumeric()).map(move |word| (line, word))
    });
    let banned = words.filter(|(_, word)| BANNED_COMMENTS.contains(word));
    banned.map(|(line, word)| (line, format!("no {word} in a comment: do it now, or say why not"))).collect()
}

/// The text with everything but comments blanked: a slash in a string begins none, so it is told by its tokens.
fn comments_alone(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if let Ok(tokens) = text.parse() {
        blank_tokens(tokens, &mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn blank_tokens(tokens: TokenStream, bytes: &mut [u8]) {
    for token in tokens {
        match token {
            token if is_doc_comment(&bytes[token.span().byte_range()]) => {}
            TokenTree::Group(group) => {
                blank(group.span_open(), bytes);
                blank_tokens(group.stream(), bytes);
                blank(group.span_close(), bytes);
            }
            token => blank(token.span(), bytes),
        }
    }
}

/// A doc comment is parsed to the tokens of `#[doc = "…"]`, which all lie where the comment lies.
fn is_doc_comment(token: &[u8]) -> bool {
    token.starts_with(b"//") || token.starts_with(b"/*")
}

fn blank(span: Span, bytes: &mut [u8]) {
    bytes[span.byte_range()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use crate::complaints;

    #[test]
    fn a_lint_is_not_allowed_but_expected() {
        let fault = "`#[allow]` hides a lint for ever: use `#[expect]` with its reason";
        assert_eq!(complaints("src/store/lanes.rs", "#[allow(dead_code)]\nstruct A;"), [fault]);
        assert_eq!(
            complaints("src/store/lanes.rs", "#[cfg_attr(test, allow(dead_code))]\nstruct A;"),
            [fault]
        );
        assert_eq!(
            complaints("src/store/lanes.rs", "#[expect(dead_code, reason = \"x\")]\nstruct A;"),
            [""; 0]
        );
    }

    #[test]
    fn a_test_is_not_ignored() {
        let said = complaints("src/store/lanes.rs", "#[ignore]\n#[test]\nfn t() {}");
        assert_eq!(said, ["`#[ignore]` hides a test: repair it or delete it"]);
    }

    #[test]
    fn macros_of_unfinished_work_do_not_stay() {
        for name in ["todo", "unimplemented", "dbg"] {
            let fault = [format!("`{name}!` does not stay in the tree")];
            assert_eq!(complaints("src/store/lanes.rs", &format!("fn f() {{ {name}!() }}")), fault);
            assert_eq!(complaints("src/store/lanes.rs", &format!("fn f() {{ print!({name}!()) }}")), fault);
        }
    }

    #[test]
    fn comments_do_not_put_work_off() {
        let said = |word: &str| [format!("no {word} in a comment: do it now, or say why not")];
        let plain = format!("// {}: later\nstruct A;", "TODO");
        assert_eq!(complaints("src/store/lanes.rs", &plain), said("TODO"));
        let doc = format!("/// {} later\nstruct A;", "FIXME");
        assert_eq!(complaints("src/store/lanes.rs", &doc), said("FIXME"));
        let block = format!("struct A; /* é\n {} */", "XXX");
        assert_eq!(complaints("src/store/lanes.rs", &block), said("XXX"));
    }

    #[test]
    fn a_string_is_no_comment() {
        let text = "const NO_CURRENCY: &str = \"// XXX\";\nconst TODO: u8 = 4 / 2;";
        assert_eq!(complaints("src/domain/codes.rs", text), [""; 0]);
    }

    #[test]
    fn input_is_neither_flattened_nor_untagged() {
        let field = "#[derive(Debug, serde::Deserialize)]\nstruct A {\n    #[serde(flatten)]\n    b: B,\n}";
        assert_eq!(complaints("src/http/forms/a.rs", field), ["`#[serde(flatten)]` is not used on input"]);
        let choice = "#[derive(Deserialize)]\n#[serde(untagged)]\nenum A {\n    B(B),\n}";
        assert_eq!(complaints("src/http/forms/a.rs", choice), ["`#[serde(untagged)]` is not used on input"]);
        let output = choice.replace("Deserialize", "Serialize");
        assert_eq!(complaints("src/http/views/a.rs", &output), [""; 0]);
    }

    #[test]
    fn no_float_stands_where_amounts_are() {
        let fault = ["no `f64` here: an amount is an exact decimal"];
        assert_eq!(complaints("src/domain/totals.rs", "struct A(f64);"), fault);
        assert_eq!(complaints("src/store/lanes.rs", "fn f() { run!(2 as f64) }"), fault);
        let literal = complaints("src/http/views/a.rs", "const RATE: Rate = Rate(0.075);");
        assert_eq!(literal, ["no float `0.075` here: an amount is an exact decimal"]);
        assert_eq!(complaints("src/http/ops/metrics.rs", "const BUCKETS: [f64; 1] = [0.5];"), [""; 0]);
        assert_eq!(complaints("src/config.rs", "struct A(f64);"), [""; 0]);
    }
}
