//! A value that remembers whether it was changed since it was loaded, so that only changed values are stored.

use std::ops::{Deref, DerefMut};

/// A value and a flag that it must be stored. Every mutable access sets the flag.
#[derive(Debug)]
pub struct Tracked<T> {
    value: T,
    is_changed: bool,
}

impl<T> Tracked<T> {
    /// Wraps a value that was just loaded, so it counts as unchanged.
    pub fn from_stored(value: T) -> Self {
        Self {
            value,
            is_changed: false,
        }
    }

    /// Wraps a value that is not stored yet, so it counts as changed.
    pub fn new(value: T) -> Self {
        Self {
            value,
            is_changed: true,
        }
    }

    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the value if it has changed or is new.
    pub fn changed_value(&self) -> Option<&T> {
        self.is_changed.then_some(&self.value)
    }

    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Tracked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Tracked<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.is_changed = true;
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_changed_if_it_is_new_or_was_written_to() {
        let mut rows = Tracked::from_stored(vec![1]);
        assert_eq!(
            (rows.len(), rows.changed_value()),
            (1, None),
            "reading is no change"
        );
        rows.push(2);
        assert_eq!(rows.changed_value(), Some(&vec![1, 2]));
        assert!(Tracked::new(1).is_changed());
    }
}
