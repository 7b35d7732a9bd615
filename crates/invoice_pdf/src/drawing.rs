//! Checks a logo that is an SVG file. A drawing is parsed as SVG programs parse it, with namespaces and character
//! references, and only shapes are accepted.

use roxmltree::{Attribute, Document, Node, ParsingOptions};

use crate::PdfError;
use crate::drawn_shapes::{DEPTH_MAX, Drawing, TOO_DEEP, url_targets};

const SVG: &str = "http://www.w3.org/2000/svg";
/// The namespace of references between parts. Attributes in other namespaces are notes of drawing programs.
const XLINK: &str = "http://www.w3.org/1999/xlink";
/// The namespace of web pages. A browser would show such elements.
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// The elements that draw or describe. Elements that draw once for each point or tile are missing, because they
/// multiply.
const ALLOWED: [&str; 22] = [
    "a",
    "circle",
    "clippath",
    "defs",
    "desc",
    "ellipse",
    "g",
    "line",
    "lineargradient",
    "mask",
    "metadata",
    "path",
    "polygon",
    "polyline",
    "radialgradient",
    "rect",
    "stop",
    "style",
    "svg",
    "symbol",
    "title",
    "use",
];

/// The maximum number of attributes of an element. Parsing compares each attribute with each other one. The equals signs
/// between two angle brackets are counted, before the file is parsed.
const ATTRIBUTES_MAX: usize = 500;
/// The maximum number of bytes of the declarations of one element or one rule. Reading them takes the square of the time
/// of their number.
const DECLARATION_BYTES_MAX: usize = 4_096;

/// Refuses a drawing that is more than shapes or that draws too much. Refused are: embedded pictures and files; text,
/// since its fonts are missing here; filters, which are computed pixel by pixel; entities, which can multiply; and
/// scripts, which a browser that opens the file would run.
pub(crate) fn check_drawing(bytes: &[u8]) -> Result<(), PdfError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| PdfError::Logo("it is not an SVG file in UTF-8"))?;
    let lower = text.to_ascii_lowercase();
    if !lower.contains("<svg") && !lower.contains(":svg") {
        return Err(PdfError::Logo("it is no PNG, JPEG or SVG file"));
    }
    if lower.contains("<!entity") {
        return Err(PdfError::Logo("it declares entities: save it as plain SVG"));
    }
    if lower.contains("<?xml-stylesheet") {
        return Err(OUTSIDE);
    }
    if text
        .split('<')
        .any(|tag| tag.matches('=').count() > ATTRIBUTES_MAX)
    {
        return Err(PdfError::Logo(
            "one of its parts has more than 500 attributes: simplify it",
        ));
    }
    let options = ParsingOptions {
        // Drawing programs write a document type declaration. Entities are refused above.
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|_| PdfError::Logo("it is not an SVG file that can be read"))?;
    for node in document.descendants().filter(Node::is_element) {
        check_element(node)?;
    }
    Drawing::new(&document)?.check_size()
}

const OUTSIDE: PdfError =
    PdfError::Logo("it refers to another file: put everything into the drawing itself");
const SCRIPT: PdfError = PdfError::Logo("it contains a script or a web page: save it as plain SVG");
const FILTER: PdfError = PdfError::Logo("it contains a filter: save it as plain SVG");
const ODD_NAME: PdfError =
    PdfError::Logo("a name of its parts has blanks or quotation marks: save it as plain SVG");
const LONG_STYLE: PdfError =
    PdfError::Logo("the style of one of its parts has more than 4,096 bytes: simplify it");
const INHERITED: PdfError =
    PdfError::Logo("it inherits a mask or a clipping path: save it as plain SVG");

fn check_element(node: Node<'_, '_>) -> Result<(), PdfError> {
    let name = node.tag_name().name().to_ascii_lowercase();
    match node.tag_name().namespace() {
        Some(HTML) => return Err(SCRIPT),
        // Drawing programs store notes of their own in the file. Nothing draws them.
        Some(other) if other != SVG => {}
        _ => check_element_name(&name)?,
    }
    if name == "style" {
        let texts = node.descendants().filter_map(|part| part.text());
        for text in texts {
            check_style(text)?;
            if text
                .split('}')
                .any(|rule| rule.len() > DECLARATION_BYTES_MAX)
            {
                return Err(LONG_STYLE);
            }
        }
    }
    for attribute in node.attributes() {
        check_attribute(attribute)?;
    }
    if node.ancestors().take(DEPTH_MAX + 1).count() > DEPTH_MAX {
        return Err(TOO_DEEP);
    }
    Ok(())
}

/// Refuses an element of SVG by its name. `name` is in lower case.
fn check_element_name(name: &str) -> Result<(), PdfError> {
    if ALLOWED.contains(&name) {
        return Ok(());
    }
    Err(match name {
        "image" | "feimage" => PdfError::Logo("it contains a picture: draw it with paths"),
        "text" | "tspan" | "textpath" | "tref" => {
            PdfError::Logo("it contains text: convert the text to paths")
        }
        "filter" => FILTER,
        "script" | "foreignobject" | "handler" | "iframe" => SCRIPT,
        "pattern" | "marker" => {
            PdfError::Logo("it repeats a part by a pattern or a marker: draw it with paths")
        }
        _ => PdfError::Logo(
            "it contains more than shapes, such as an animation: save it as plain SVG",
        ),
    })
}

fn check_attribute(attribute: Attribute<'_, '_>) -> Result<(), PdfError> {
    if attribute.namespace().is_some_and(|space| space != XLINK) {
        return Ok(());
    }
    let name = attribute.name().to_ascii_lowercase();
    let value = attribute.value();
    if name.starts_with("on") {
        return Err(SCRIPT);
    }
    if name == "filter" {
        return Err(FILTER);
    }
    if matches!(name.as_str(), "href" | "src") && !value.trim_start().starts_with('#') {
        let is_script = value
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("javascript");
        return Err(if is_script { SCRIPT } else { OUTSIDE });
    }
    if name == "href" {
        check_target(value.trim_start().trim_end_matches(' '))?;
    }
    if name == "style" && value.len() > DECLARATION_BYTES_MAX {
        return Err(LONG_STYLE);
    }
    let may_multiply = matches!(name.as_str(), "mask" | "clip-path");
    if may_multiply && value.trim().eq_ignore_ascii_case("inherit") {
        return Err(INHERITED);
    }
    check_style(value)
}

/// Refuses a reference that SVG programs do not all read in the same way. The part that it means could not be found,
/// and its shapes would not be counted.
fn check_target(target: &str) -> Result<(), PdfError> {
    let name = target.strip_prefix('#').ok_or(OUTSIDE)?;
    if name.contains(is_unsafe_in_name) {
        Err(ODD_NAME)
    } else {
        Ok(())
    }
}

fn is_unsafe_in_name(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '"' | '\'' | '(' | ')')
}

/// Refuses style rules that refer to other files or use filters, and escapes, which could hide such a word.
fn check_style(text: &str) -> Result<(), PdfError> {
    let lower = text.to_ascii_lowercase();
    if lower.contains("@import") || lower.contains('\\') {
        return Err(OUTSIDE);
    }
    if lower.contains("filter:") {
        return Err(FILTER);
    }
    // A mask that elements inherit from a masked element would be drawn for each of them.
    let has_mask = lower.contains("mask") || lower.contains("clip-path");
    if has_mask && lower.contains("inherit") {
        return Err(INHERITED);
    }
    url_targets(&lower).try_for_each(check_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(parts: &str) -> Result<(), PdfError> {
        let svg = format!(
            "<svg xmlns=\"{SVG}\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">{parts}</svg>"
        );
        check_drawing(svg.as_bytes())
    }

    #[test]
    fn a_drawing_consists_of_shapes_alone() {
        for part in [
            "<image href=\"file:///etc/passwd\"/>",
            "<feImage href=\"x.png\"/>",
            "<text>Shop</text>",
            "<filter id=\"a\"/>",
            "<path filter=\"url(#a)\"/>",
            "<path style=\"filter:blur(9px)\"/>",
            "<script>alert(1)</script>",
            "<a:script xmlns:a=\"http://www.w3.org/2000/svg\">alert(1)</a:script>",
            "<h:img xmlns:h=\"http://www.w3.org/1999/xhtml\" onerror=\"alert(1)\"/>",
            "<h:p xmlns:h=\"http://www.w3.org/1999/xhtml\"/>",
            "<foreignObject/>",
            "<path onclick=\"alert(1)\"/>",
            "<path\tONLOAD =\"alert(1)\"/>",
            "<a href=\"javascript:alert(1)\"/>",
            "<a xlink:href=\"&#106;ava&#115;&#99;ript:alert(1)\"/>",
            "<set attributeName=\"href\" to=\"&#106;ava&#115;&#99;ript:alert(1)\"/>",
            "<animate attributeName=\"d\"/>",
            "<use xlink:href=\"https://evil.example/a.svg#b\"/>",
            "<use href = '&#104;ttp://evil.example'/>",
            "<path fill=\"url( 'http://evil.example/a' )\"/>",
            "<path style=\"fill:\\75rl(http://evil.example)\"/>",
            "<style>@import 'a.css';</style>",
            "<style>.a{fill:url(http://evil.example/a)}</style>",
            "<pattern id=\"p\"/>",
            "<marker id=\"m\"/>",
            "<path mask=\"inherit\"/>",
            "<path style=\"clip-path:inherit\"/>",
            "<path mask=\"url('#a)b')\"/>",
            "<path mask=\"url(#a&#9;)\"/>",
            "<use href=\"#a&#9;\"/>",
            "<use href=\"#a b\"/>",
            &format!("<path {}/>", "a=\"\" ".repeat(501)),
            &format!("<path {}/>", "a=\">\" ".repeat(501)),
            &format!("<path style=\"{}\"/>", "fill:red;".repeat(500)),
            &format!("<style>path{{{}}}</style>", "fill:red;".repeat(500)),
        ] {
            assert!(drawing(part).is_err(), "{part}");
        }
        let entity = format!("<!DOCTYPE svg [<!ENTITY a \"b\">]><svg xmlns=\"{SVG}\"/>");
        assert!(check_drawing(entity.as_bytes()).is_err());
    }

    #[test]
    fn a_drawing_may_refer_to_its_own_parts_and_keep_notes() {
        for part in [
            "<linearGradient id=\"a\"/><path id=\"b\" fill=\"url(#a)\" d=\"M0 0h9v9z\"/><use xlink:href=\"#b\" y=\"1\"/>",
            "<style>.a{fill:url(#g)}</style><linearGradient id=\"g\"><stop/></linearGradient><path class=\"a\"/>",
            "<mask id=\"m\"><rect/></mask><g mask=\"url( '#m' )\"><circle r=\"9\" fill=\"inherit\"/></g>",
            "<n:view xmlns:n=\"http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd\" n:file=\"C:\\logo.svg\"/>",
            "<metadata/><title>A shop</title>",
        ] {
            assert_eq!(drawing(part), Ok(()), "{part}");
        }
        let declared = format!(
            "<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \
             \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\"><svg xmlns=\"{SVG}\"/>"
        );
        assert_eq!(check_drawing(declared.as_bytes()), Ok(()));
    }
}
