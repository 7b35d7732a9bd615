//! Checks a logo that is an SVG file. A drawing is parsed as SVG programs parse it, with namespaces and character
//! references, and only shapes are accepted. A short file may draw very much, because its parts can refer to each
//! other. So shapes are counted as often as references draw them.

use std::collections::HashMap;

use roxmltree::{Attribute, Document, Node, NodeId, ParsingOptions};

use crate::PdfError;

const SVG: &str = "http://www.w3.org/2000/svg";
/// The namespace of references between parts. Attributes in other namespaces are notes of drawing programs.
const XLINK: &str = "http://www.w3.org/1999/xlink";
/// The namespace of web pages. A browser would show such elements.
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// The maximum number of shapes and points of a drawing, where each part counts as often as it is drawn. A file of the
/// largest size without references has fewer.
const SHAPES_MAX: u64 = 100_000;
/// This many bytes of a path or of a list of points count as one point.
const BYTES_PER_POINT: usize = 8;
/// The maximum depth of nested elements, and the maximum length of a chain of references.
const DEPTH_MAX: usize = 100;
const REFERENCES_MAX: usize = 16;

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
    Drawing::new(&document).check_size()
}

const OUTSIDE: PdfError =
    PdfError::Logo("it refers to another file: put everything into the drawing itself");
const SCRIPT: PdfError = PdfError::Logo("it contains a script or a web page: save it as plain SVG");
const FILTER: PdfError = PdfError::Logo("it contains a filter: save it as plain SVG");
const TOO_LARGE: PdfError =
    PdfError::Logo("it draws more than 100,000 shapes and points: simplify it");

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
        }
    }
    for attribute in node.attributes() {
        check_attribute(attribute)?;
    }
    if node.ancestors().take(DEPTH_MAX + 1).count() > DEPTH_MAX {
        return Err(PdfError::Logo(
            "its groups are nested too deeply: simplify it",
        ));
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
    check_style(value)
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
    if url_targets(&lower).all(|target| target.starts_with('#')) {
        Ok(())
    } else {
        Err(OUTSIDE)
    }
}

/// Returns the target of each `url(…)` in a text, without quotation marks.
fn url_targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).map(|rest| {
        let end = rest.find(')').unwrap_or(rest.len());
        let target = rest.get(..end).unwrap_or_default();
        target.trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, '"' | '\''))
    })
}

/// The parts of a drawing by their ids, and how many shapes each of them draws.
struct Drawing<'d> {
    document: &'d Document<'d>,
    by_id: HashMap<&'d str, Node<'d, 'd>>,
    counted: HashMap<NodeId, u64>,
}

impl<'d> Drawing<'d> {
    fn new(document: &'d Document<'d>) -> Self {
        let elements = document.descendants();
        let by_id = elements.filter_map(|node| Some((node.attribute("id")?, node)));
        Self {
            document,
            by_id: by_id.collect(),
            counted: HashMap::new(),
        }
    }

    fn check_size(&mut self) -> Result<(), PdfError> {
        let root = self.document.root_element();
        let mut shapes = self.count(root, 0)?;
        let elements = root.descendants().filter(Node::is_element).count() as u64;
        let styles: Vec<_> = root
            .descendants()
            .filter(|node| node.has_tag_name((SVG, "style")))
            .flat_map(|style| style.descendants().filter_map(|part| part.text()))
            .flat_map(url_targets)
            .collect();
        // A style rule may apply to every element, so its targets count once for each element.
        for target in styles {
            let each = self.count_target(target, 0)?;
            shapes = shapes.saturating_add(each.saturating_mul(elements));
        }
        if shapes > SHAPES_MAX {
            return Err(TOO_LARGE);
        }
        Ok(())
    }

    /// Counts the shapes and points that a part draws. Refuses parts that refer to each other in a circle.
    fn count(&mut self, part: Node<'d, 'd>, references: usize) -> Result<u64, PdfError> {
        if let Some(shapes) = self.counted.get(&part.id()) {
            return Ok(*shapes);
        }
        if references > REFERENCES_MAX {
            return Err(PdfError::Logo(
                "its parts refer to each other too often: simplify it",
            ));
        }
        let mut shapes: u64 = 0;
        for node in part.descendants().filter(Node::is_element) {
            let points = ["d", "points"]
                .into_iter()
                .filter_map(|name| node.attribute(name));
            let bytes: usize = points.map(str::len).sum();
            shapes = shapes.saturating_add(1 + (bytes / BYTES_PER_POINT) as u64);
            for attribute in node.attributes() {
                let is_link = attribute.name().eq_ignore_ascii_case("href");
                let link = is_link.then(|| attribute.value().trim());
                for target in url_targets(attribute.value()).chain(link) {
                    shapes = shapes.saturating_add(self.count_target(target, references)?);
                }
            }
            if shapes > SHAPES_MAX {
                return Err(TOO_LARGE);
            }
        }
        self.counted.insert(part.id(), shapes);
        Ok(shapes)
    }

    fn count_target(&mut self, target: &str, references: usize) -> Result<u64, PdfError> {
        let part = target.strip_prefix('#').and_then(|id| self.by_id.get(id));
        match part.copied() {
            Some(part) => self.count(part, references + 1),
            None => Ok(0),
        }
    }
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
            "<mask id=\"m\"><rect/></mask><g mask=\"url(#m)\"><circle r=\"9\"/></g>",
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

    /// Three levels of twenty copies of a path of 10,000 points are 80 million points in 60 KB.
    #[test]
    fn a_part_counts_as_often_as_it_is_drawn() {
        let path = format!("<path id=\"l0\" d=\"M0 0{}\"/>", " 1 1 2 2 ".repeat(10_000));
        let level = |number: usize, copies: usize| {
            let below = number - 1;
            let uses = format!("<use href=\"#l{below}\"/>").repeat(copies);
            format!("<g id=\"l{number}\">{uses}</g>")
        };
        let bombs = [
            format!("<defs>{path}{}{}</defs>", level(1, 20), level(2, 20)),
            format!(
                "<g id=\"l0\"/>{}",
                (1..40).map(|at| level(at, 2)).collect::<String>()
            ),
            "<g id=\"l1\"><use href=\"#l2\"/></g><g id=\"l2\"><use href=\"#l1\"/></g>".to_owned(),
            format!("<mask id=\"l0\">{path}</mask><g mask=\"url(#l0)\"/>").repeat(20),
            format!(
                "<style>*{{mask:url(#l0)}}</style>{path}{}",
                "<g/>".repeat(20)
            ),
            "<g>".repeat(200) + &"</g>".repeat(200),
        ];
        for bomb in bombs {
            assert!(
                matches!(drawing(&bomb), Err(PdfError::Logo(_))),
                "{bomb:.80}"
            );
        }
        assert_eq!(drawing(&format!("{path}{}", level(1, 3))), Ok(()));
    }
}
