//! Counts the shapes of a logo that is an SVG file. A short file may draw very much, because its parts can refer to
//! each other. So shapes are counted as often as references draw them. Where a reference is not sure, all parts that it
//! could mean are counted.

use std::collections::HashMap;

use roxmltree::{Document, Node, NodeId};

use crate::PdfError;

/// The maximum number of shapes and points of a drawing, where each part counts as often as it is drawn. A file of the
/// largest size without references has fewer.
const SHAPES_MAX: u64 = 100_000;
/// This many bytes of a path or of a list of points count as one point.
const BYTES_PER_POINT: usize = 8;
/// The maximum depth of nested elements, also where a reference draws them, and the maximum length of a chain of
/// references.
pub(crate) const DEPTH_MAX: usize = 100;
const REFERENCES_MAX: usize = 16;
/// The maximum cost of the style sheets of a drawing. Each part of a selector and each declaration costs 1 for each
/// element, as often as the element is drawn.
const STYLE_COST_MAX: u64 = 10_000_000;
/// This many bytes of a list of classes count as one element, because each selector is compared with each class.
const BYTES_PER_CLASS: usize = 8;

pub(crate) const TOO_DEEP: PdfError =
    PdfError::Logo("its groups are nested too deeply: simplify it");
const TOO_LARGE: PdfError =
    PdfError::Logo("it draws more than 100,000 shapes and points: simplify it");
const TOO_MUCH_STYLE: PdfError =
    PdfError::Logo("its style sheet has too many rules for its parts: simplify it");
const ODD_STYLE: PdfError = PdfError::Logo(
    "its style sheet has more than plain rules for elements, classes and ids: save it with presentation attributes",
);

/// The elements that describe a gradient. Style rules give them no references.
const GRADIENT_PARTS: [&str; 3] = ["linearGradient", "radialGradient", "stop"];

/// The signs of selectors, beside letters, digits and the commas between them.
const SELECTOR_SIGNS: &str = ".#*:-_";
/// The rule that declares a font. It selects no element.
const FONT_RULE: &str = "@font-face";

/// Returns the target of each `url(…)` in a text, without quotation marks.
pub(crate) fn url_targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).map(|rest| {
        let end = rest.find(')').unwrap_or(rest.len());
        let target = rest.get(..end).unwrap_or_default().trim_matches(' ');
        ['"', '\'']
            .into_iter()
            .find_map(|mark| target.strip_prefix(mark)?.strip_suffix(mark))
            .map_or(target, |quoted| quoted.trim_matches(' '))
    })
}

/// A rule of a style sheet.
struct StyleRule<'d> {
    selectors: Vec<&'d str>,
    declarations: usize,
    targets: Vec<&'d str>,
}

impl<'d> StyleRule<'d> {
    /// Reads the rules of a style sheet. Refuses what other programs may read in another way: comments, open quotation
    /// marks and nested rules. Refuses selectors that look at other elements, too, such as `g path`: for some drawings
    /// it takes hours to find out whether they match.
    fn read_style_sheet(text: &'d str) -> Result<Vec<Self>, PdfError> {
        if text.contains("/*") {
            return Err(ODD_STYLE);
        }
        let texts = text.split('}').filter(|rule| !rule.trim().is_empty());
        texts.map(Self::read).collect()
    }

    /// Reads the text of a rule before its closing brace.
    fn read(text: &'d str) -> Result<Self, PdfError> {
        let (selectors, declarations) = text.split_once('{').ok_or(ODD_STYLE)?;
        let are_quotes_closed = ['"', '\'']
            .into_iter()
            .all(|mark| declarations.matches(mark).count().is_multiple_of(2));
        if declarations.contains('{') || !are_quotes_closed {
            return Err(ODD_STYLE);
        }
        let selectors: Vec<_> = match selectors.trim() {
            FONT_RULE => Vec::new(),
            selectors => selectors.split(',').map(str::trim).collect(),
        };
        if selectors.iter().any(|one| !is_plain_selector(one)) {
            return Err(ODD_STYLE);
        }
        Ok(Self {
            selectors,
            declarations: declarations.matches(';').count() + 1,
            targets: url_targets(declarations).collect(),
        })
    }

    /// Returns the cost of applying the rule to one element: 1 for each part of a selector and for each declaration.
    fn cost_per_element(&self) -> u64 {
        let selectors = self.selectors.iter();
        let parts: usize = selectors
            .map(|selector| selector.matches(['.', '#', ':']).count())
            .sum();
        (self.selectors.len() + parts + self.declarations) as u64
    }

    /// False if the rule certainly does not apply to this element.
    fn may_match(&self, node: Node<'_, '_>) -> bool {
        let mut selectors = self.selectors.iter();
        selectors.any(|selector| may_select(selector, node))
    }
}

/// True for the selector of one element by its kind, classes, id and position.
fn is_plain_selector(selector: &str) -> bool {
    let mut signs = selector.chars();
    !selector.is_empty()
        && signs.all(|sign| sign.is_alphanumeric() || SELECTOR_SIGNS.contains(sign))
}

/// False if a plain selector, such as `path.thin`, certainly does not select this element.
fn may_select(compound: &str, node: Node<'_, '_>) -> bool {
    if compound.contains('*') {
        return true;
    }
    let marks = ['.', '#', ':'];
    let kind = compound.split(marks).next().unwrap_or_default();
    let rest = compound.get(kind.len()..).unwrap_or_default();
    let first = rest.split(marks).nth(1).unwrap_or_default();
    let is_kind = kind.is_empty() || kind == node.tag_name().name();
    is_kind
        && match rest.chars().next() {
            Some('.') => {
                let classes = node.attribute("class").unwrap_or_default();
                classes.split_whitespace().any(|class| class == first)
            }
            Some('#') => node.attribute("id") == Some(first),
            _ => true,
        }
}

/// The size of a part.
#[derive(Debug, Clone, Copy, Default)]
struct PartSize {
    shapes: u64,
    /// The number of elements to which style rules are applied, each as often as it is drawn.
    styled: u64,
    /// The depth of nested elements, together with those that references draw.
    depth: usize,
}

/// The parts of a drawing by their ids, its style rules, and how much each part draws.
pub(crate) struct Drawing<'d> {
    document: &'d Document<'d>,
    /// Programs differ in which of several parts with the same id they draw.
    by_id: HashMap<&'d str, Vec<Node<'d, 'd>>>,
    rules: Vec<StyleRule<'d>>,
    counted: HashMap<NodeId, PartSize>,
    /// The size of all that the references of an element draw. It is kept, because several nested parts may contain the
    /// element.
    referenced: HashMap<NodeId, PartSize>,
}

impl<'d> Drawing<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Result<Self, PdfError> {
        let mut by_id: HashMap<_, Vec<_>> = HashMap::new();
        let mut rules = Vec::new();
        for node in document.descendants() {
            // Some programs take `xml:id` for an id, too.
            for attribute in node.attributes().filter(|one| one.name() == "id") {
                by_id.entry(attribute.value()).or_default().push(node);
            }
            if node.tag_name().name().eq_ignore_ascii_case("style") {
                let texts = node.descendants().filter(|part| !part.is_element());
                let texts = texts.filter_map(|part| part.text());
                for text in texts {
                    rules.extend(StyleRule::read_style_sheet(text)?);
                }
            }
        }
        Ok(Self {
            document,
            by_id,
            rules,
            counted: HashMap::new(),
            referenced: HashMap::new(),
        })
    }

    pub(crate) fn check_size(&mut self) -> Result<(), PdfError> {
        let root = self.document.root_element();
        let cost_per_element: u64 = self.rules.iter().map(StyleRule::cost_per_element).sum();
        let stored = root.descendants().map(styled_elements).sum();
        check_style_cost(cost_per_element, stored)?;
        let drawn = self.count_drawn(root, 0)?;
        check_style_cost(cost_per_element, drawn.styled)
    }

    /// Counts the shapes and points that a part draws. Refuses parts that refer to each other in a circle.
    fn count_drawn(&mut self, part: Node<'d, 'd>, references: usize) -> Result<PartSize, PdfError> {
        if let Some(drawn) = self.counted.get(&part.id()) {
            return Ok(*drawn);
        }
        if references > REFERENCES_MAX {
            return Err(PdfError::Logo(
                "its parts refer to each other too often: simplify it",
            ));
        }
        let above = part.ancestors().count();
        let mut whole = PartSize::default();
        for node in part.descendants().filter(Node::is_element) {
            let points = ["d", "points"]
                .into_iter()
                .filter_map(|name| node.attribute(name));
            let bytes: usize = points.map(str::len).sum();
            let drawn = self.count_references(node, references)?;
            let own = 1 + (bytes / BYTES_PER_POINT) as u64;
            whole.shapes = whole
                .shapes
                .saturating_add(own.saturating_add(drawn.shapes));
            let styled = styled_elements(node).saturating_add(drawn.styled);
            whole.styled = whole.styled.saturating_add(styled);
            let depth = 1 + node.ancestors().count().saturating_sub(above) + drawn.depth;
            whole.depth = whole.depth.max(depth);
            if whole.shapes > SHAPES_MAX {
                return Err(TOO_LARGE);
            }
            if whole.depth > DEPTH_MAX {
                return Err(TOO_DEEP);
            }
        }
        self.counted.insert(part.id(), whole);
        Ok(whole)
    }

    /// Adds up the sizes of the parts that one element draws by reference.
    fn count_references(
        &mut self,
        node: Node<'d, 'd>,
        references: usize,
    ) -> Result<PartSize, PdfError> {
        if let Some(drawn) = self.referenced.get(&node.id()) {
            return Ok(*drawn);
        }
        let mut whole = PartSize::default();
        let targets = self.list_targets(node);
        let has_heirs = targets.iter().any(|target| self.is_gradient(target));
        let heirs = if has_heirs && !is_gradient_part(node) {
            self.count_colour_heirs(node, references)?
        } else {
            1
        };
        for target in targets {
            let times = if self.is_gradient(target) { heirs } else { 1 };
            let drawn = self.count_target(target, references)?;
            let shapes = drawn.shapes.saturating_mul(times);
            whole.shapes = whole.shapes.saturating_add(shapes);
            whole.styled = whole.styled.saturating_add(drawn.styled);
            whole.depth = whole.depth.max(drawn.depth);
        }
        self.referenced.insert(node.id(), whole);
        Ok(whole)
    }

    /// Returns how many elements have the colours of this one: itself and those below it, also where they are drawn
    /// by a reference.
    fn count_colour_heirs(
        &mut self,
        node: Node<'d, 'd>,
        references: usize,
    ) -> Result<u64, PdfError> {
        let mut heirs: u64 = 0;
        for below in node.descendants().filter(Node::is_element) {
            heirs = heirs.saturating_add(1);
            for target in link_targets(below) {
                let drawn = self.count_target(target, references)?;
                heirs = heirs.saturating_add(drawn.shapes);
            }
        }
        Ok(heirs)
    }

    fn list_targets(&self, node: Node<'d, 'd>) -> Vec<&'d str> {
        let stated = node
            .attributes()
            .flat_map(|attribute| url_targets(attribute.value()));
        let mut targets: Vec<_> = stated.chain(link_targets(node)).collect();
        if !is_gradient_part(node) {
            let rules = self.rules.iter().filter(|rule| rule.may_match(node));
            let styled = rules.flat_map(|rule| &rule.targets).copied();
            targets.extend(styled.filter(|target| !self.parts_with_id(target).is_empty()));
        }
        targets
    }

    fn parts_with_id(&self, target: &str) -> &[Node<'d, 'd>] {
        let parts = target.strip_prefix('#').and_then(|id| self.by_id.get(id));
        parts.map(Vec::as_slice).unwrap_or_default()
    }

    fn is_gradient(&self, target: &str) -> bool {
        let mut parts = self.parts_with_id(target).iter();
        parts.any(|part| is_gradient_part(*part))
    }

    fn count_target(&mut self, target: &str, references: usize) -> Result<PartSize, PdfError> {
        let mut whole = PartSize::default();
        for part in self.parts_with_id(target).to_vec() {
            let drawn = self.count_drawn(part, references + 1)?;
            whole.shapes = whole.shapes.saturating_add(drawn.shapes);
            whole.styled = whole.styled.saturating_add(drawn.styled);
            whole.depth = whole.depth.max(drawn.depth);
        }
        Ok(whole)
    }
}

/// Refuses a drawing if its style sheets, which have this cost for each element, cost too much for all elements.
fn check_style_cost(cost_per_element: u64, elements: u64) -> Result<(), PdfError> {
    if cost_per_element.saturating_mul(elements) > STYLE_COST_MAX {
        return Err(TOO_MUCH_STYLE);
    }
    Ok(())
}

/// Returns the number of elements as which this one counts when style rules are applied; 0 for a text.
fn styled_elements(node: Node<'_, '_>) -> u64 {
    if !node.is_element() {
        return 0;
    }
    let classes = node.attribute("class").unwrap_or_default();
    1 + (classes.len() / BYTES_PER_CLASS) as u64
}

/// Returns the parts that an element such as `use` draws.
fn link_targets<'d>(node: Node<'d, 'd>) -> impl Iterator<Item = &'d str> {
    let attributes = node.attributes();
    attributes
        .filter(|attribute| attribute.name().eq_ignore_ascii_case("href"))
        .map(|attribute| attribute.value().trim())
}

fn is_gradient_part(node: Node<'_, '_>) -> bool {
    GRADIENT_PARTS.contains(&node.tag_name().name())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::drawing::check_drawing;

    fn check(parts: &str) -> Result<(), PdfError> {
        let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{parts}</svg>");
        check_drawing(svg.as_bytes())
    }

    /// Returns a group that draws the group of the number below it.
    fn level(number: usize, copies: usize) -> String {
        let below = number - 1;
        let uses = format!("<use href=\"#l{below}\"/>").repeat(copies);
        format!("<g id=\"l{number}\">{uses}</g>")
    }

    /// Three levels of twenty copies of a path of 10,000 points are 80 million points in 60 KB.
    #[test]
    fn a_part_counts_as_often_as_it_is_drawn() {
        let path = format!("<path id=\"l0\" d=\"M0 0{}\"/>", " 1 1 2 2 ".repeat(10_000));
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
            assert!(matches!(check(&bomb), Err(PdfError::Logo(_))), "{bomb:.80}");
        }
        assert_eq!(check(&format!("{path}{}", level(1, 3))), Ok(()));
    }

    /// Seven levels of ten copies are ten million shapes.
    #[test]
    fn a_part_is_counted_under_each_name_that_a_program_finds_it_by() {
        let mut levels = String::new();
        let mut masks_by_xml_id = String::new();
        let mut masks = String::new();
        let mut rules = String::new();
        for at in 0..7 {
            let next = at + 1;
            let ten = format!("<rect mask=\"url(#m{next})\"/>").repeat(10);
            write!(masks_by_xml_id, "<mask xml:id=\"m{at}\">{ten}</mask>").unwrap();
            let ten = format!("<rect class=\"x c{next}\"/>").repeat(10);
            write!(masks, "<mask id=\"m{at}\">{ten}</mask>").unwrap();
            write!(levels, "{}<g id=\"l{next}\"/>", level(next, 10)).unwrap();
            write!(rules, ".c{next}{{mask:url(#m{next})}}").unwrap();
        }
        let shapes = "<path/>".repeat(200);
        let stops = "<stop/>".repeat(1_000);
        let gradient = format!("<linearGradient id=\"g\">{stops}</linearGradient>");
        let bombs = [
            format!("<g id=\"l0\"/>{levels}"),
            masks_by_xml_id,
            format!("<style>{rules}</style>{masks}"),
            // The rules are those of the classes, although another selector stands before each brace.
            format!("<style>{}</style>{masks}", rules.replace('{', "{/*}.z{*/")),
            format!(
                "<style>{}</style>{masks}",
                rules.replace('{', "{content:\"}.z{\";")
            ),
            format!("<style>{}</style>{masks}", rules.replace('{', ";}.z{")),
            format!("{gradient}<g fill=\"url(#g)\">{shapes}</g>"),
            format!("{gradient}<style>.g{{fill:url(#g)}}</style><g class=\"g\">{shapes}</g>"),
        ];
        for bomb in bombs {
            assert!(matches!(check(&bomb), Err(PdfError::Logo(_))), "{bomb:.80}");
        }
    }

    #[test]
    fn a_style_sheet_of_a_high_cost_is_refused() {
        let rules = |count: usize| "a.b{fill:red}".repeat(count);
        let parts = |count: usize| "<g class=\"c\"/>".repeat(count);
        let nested = format!("{}x{}", "<g>x".repeat(80), "</g>".repeat(80));
        let path = "<path d=\"M0 0h9v9z\"/>";
        let classes = "c ".repeat(100_000);
        let declarations = "fill:red;".repeat(400);
        for (name, style, drawn) in [
            ("ancestors", "z g g g g path{fill:red}".to_owned(), nested),
            ("children", "g>path{fill:red}".to_owned(), path.to_owned()),
            ("siblings", "g+path{fill:red}".to_owned(), path.to_owned()),
            (
                "later siblings",
                "g~path{fill:red}".to_owned(),
                path.to_owned(),
            ),
            (
                "attributes",
                "path[d]{fill:red}".to_owned(),
                path.to_owned(),
            ),
            (
                "media",
                "@media all{path{fill:red}}".to_owned(),
                path.to_owned(),
            ),
            (
                "comments",
                "g/**/path{fill:red}".to_owned(),
                path.to_owned(),
            ),
            ("rules", rules(2_000), parts(2_000)),
            (
                "selectors",
                format!("{}a{{fill:red}}", "a,".repeat(2_000)),
                parts(6_000),
            ),
            (
                "long selectors",
                format!("a{}{{fill:red}}", ".c".repeat(2_000)),
                parts(6_000),
            ),
            ("classes", rules(1_000), format!("<g class=\"{classes}\"/>")),
            (
                "declarations",
                format!("g{{{declarations}}}"),
                parts(26_000),
            ),
            (
                "copies",
                rules(200),
                format!(
                    "<g id=\"l0\">{}</g>{}{}",
                    parts(100),
                    level(1, 20),
                    level(2, 20)
                ),
            ),
        ] {
            let found = check(&format!("<style>{style}</style>{drawn}"));
            assert!(
                matches!(found, Err(TOO_MUCH_STYLE | ODD_STYLE)),
                "{name}: {found:?}"
            );
        }
        for style in [
            rules(50),
            ".st0{fill:#fff}\n.st1 , .st2{fill:url(#a);stroke:none;}".to_owned(),
            "*{fill:red}path:first-child{fill:blue}#logo{fill:none}".to_owned(),
            "@font-face{font-family:'A'}".to_owned(),
        ] {
            assert_eq!(
                check(&format!("<style>{style}</style>{}", parts(2_000))),
                Ok(()),
                "{style:.40}"
            );
        }
    }

    #[test]
    fn many_parts_that_a_style_sheet_cuts_out_are_few_shapes() {
        let mut rules = String::new();
        let mut parts = String::new();
        for at in 0..40 {
            writeln!(rules, ".s{at},g.t{at}{{clip-path:url(#p{at});}}").unwrap();
            write!(
                parts,
                "<clipPath id=\"p{at}\"><rect class=\"none\"/></clipPath>"
            )
            .unwrap();
            write!(parts, "<g class=\"s{at}\"><path d=\"M0 0h9\"/></g>").unwrap();
        }
        let fonts = ".none{fill:none;font-family:'A, b'}";
        assert_eq!(
            check(&format!("<style>{fonts}{rules}</style>{parts}")),
            Ok(())
        );
        let other = "<style>@font-face{src:url(#f)}.a{fill:url(#g)}</style><linearGradient id=\"g\"><stop/></linearGradient><path/>";
        assert_eq!(check(other), Ok(()));
    }
}
