//! The catalog of the items that a taxpayer sells. It is filled from the lines of invoices. An item is identified by
//! its number or, if it has none, by its name and type. A line never changes a stored item, except that an item without
//! a category gets the category of the line.

use std::collections::{BTreeMap, HashMap};

use crate::domain::invoice::Line;
use crate::domain::kernel::codes::ItemType;
use crate::domain::kernel::ids::ItemId;
use crate::domain::kernel::tracked::Tracked;

/// One item of a taxpayer's catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub id: ItemId,
    pub item_no: Option<String>,
    pub name: String,
    pub item_type: ItemType,
    pub tax_category: String,
    pub product_category: Option<String>,
    pub service_category: Option<String>,
}

impl Item {
    /// Creates the catalog item for a line, for an item that is not in the catalog yet.
    pub fn from_line(id: ItemId, line: &Line) -> Self {
        Self {
            id,
            item_no: line.item_no.clone(),
            name: line.item_name.clone(),
            item_type: line.item_type,
            tax_category: line.tax_category.clone(),
            product_category: line.product_category.clone(),
            service_category: line.service_category.clone(),
        }
    }

    /// True if the item has a category. Otherwise an invoice that refers to the item must state one.
    pub fn has_category(&self) -> bool {
        self.product_category.is_some() || self.service_category.is_some()
    }

    /// If the item has no category, copies the category of a line of the same type. Returns true if the item changed.
    pub fn fill_category(&mut self, line: &Line) -> bool {
        if self.has_category() || self.item_type != line.item_type {
            return false;
        }
        self.product_category.clone_from(&line.product_category);
        self.service_category.clone_from(&line.service_category);
        self.has_category()
    }
}

/// Items of one catalog, indexed by id, by number, and by name and type.
#[derive(Debug, Default)]
pub struct Items {
    known: BTreeMap<ItemId, Tracked<Item>>,
    numbers: HashMap<String, ItemId>,
    names: HashMap<(String, ItemType), ItemId>,
}

impl Items {
    pub fn get(&self, id: ItemId) -> Option<&Item> {
        self.known.get(&id).map(|item| &**item)
    }

    pub fn changed_items(&self) -> impl Iterator<Item = &Item> {
        self.known.values().filter_map(Tracked::changed_value)
    }

    /// Finds a line's item: by its item id if the line has one, else by its item number if it has one, else by name and
    /// type. `None` if the catalog has no such item.
    pub fn find_for_line(&self, line: &Line) -> Option<&Item> {
        let id = match (line.item_id, &line.item_no) {
            (Some(id), _) => id,
            (None, Some(no)) => *self.numbers.get(no)?,
            (None, None) => *self.names.get(&(line.item_name.clone(), line.item_type))?,
        };
        self.get(id)
    }

    /// Adds or replaces an item. If several items have the same name and type, a search finds the one that was added
    /// first.
    pub fn put(&mut self, item: Item) {
        self.insert(Tracked::new(item));
    }

    fn insert(&mut self, item: Tracked<Item>) {
        if let Some(no) = &item.item_no {
            self.numbers.insert(no.clone(), item.id);
        }
        self.names
            .entry((item.name.clone(), item.item_type))
            .or_insert(item.id);
        self.known.insert(item.id, item);
    }
}

/// Collects stored items. They count as unchanged.
impl FromIterator<Item> for Items {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        let mut all = Self::default();
        for item in items {
            all.insert(Tracked::from_stored(item));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(no: Option<&str>, name: &str) -> Line {
        Line {
            item_no: no.map(str::to_owned),
            item_name: name.to_owned(),
            ..Line::sample()
        }
    }

    fn items() -> Items {
        let numbered = Item::from_line(ItemId(1), &line(Some("R-1"), "Rice"));
        let twin = Item::from_line(ItemId(2), &line(Some("R-2"), "Rice"));
        let plain = Item::from_line(ItemId(3), &line(None, "Beans"));
        [numbered, twin, plain].into_iter().collect()
    }

    fn find_item_id(line: &Line) -> Option<i64> {
        items().find_for_line(line).map(|item| item.id.0)
    }

    #[test]
    fn an_item_is_known_by_its_number_and_else_by_name_and_type() {
        assert_eq!(find_item_id(&line(Some("R-2"), "Anything")), Some(2));
        assert_eq!(
            find_item_id(&line(Some("R-3"), "Rice")),
            None,
            "a new number is a new item"
        );
        assert_eq!(
            find_item_id(&line(None, "Rice")),
            Some(1),
            "the first of that name"
        );
        assert_eq!(find_item_id(&line(None, "Beans")), Some(3));
        let service = Line {
            item_type: ItemType::Service,
            ..line(None, "Beans")
        };
        assert_eq!(find_item_id(&service), None);
        assert_eq!(
            find_item_id(&Line {
                item_id: Some(ItemId(3)),
                ..line(Some("R-1"), "Rice")
            }),
            Some(3)
        );
    }

    #[test]
    fn only_a_missing_category_of_the_same_type_is_filled_in() {
        let bare = Item::from_line(ItemId(1), &line(Some("R-1"), "Rice"));
        let categorized = Line {
            product_category: Some("1006.30".into()),
            ..line(Some("R-1"), "Brown rice")
        };
        let mut item = bare.clone();
        assert!(item.fill_category(&categorized));
        assert_eq!(
            (item.name.as_str(), item.product_category.as_deref()),
            ("Rice", Some("1006.30"))
        );
        let other = Line {
            product_category: Some("1006.40".into()),
            ..categorized.clone()
        };
        assert!(!item.fill_category(&other));
        let mut item = bare;
        assert!(!item.fill_category(&Line {
            item_type: ItemType::Service,
            ..categorized
        }));
        assert!(!item.has_category());
    }
}
