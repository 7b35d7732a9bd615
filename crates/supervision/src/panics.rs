//! Catches panics and returns them as values with their text and location.
//!
//! The caller of `catch` logs the panic itself, so the hook suppresses Rust's default report for it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, Location, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A caught panic. The text is its message, followed by file and line if `install_hook` was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtPanic {
    pub text: String,
}

/// Returns an error if panics abort the process in this build, because an actor could then not survive its panic.
pub fn assert_unwinding() -> Result<(), &'static str> {
    if cfg!(panic = "unwind") {
        Ok(())
    } else {
        Err(
            "this build aborts on a panic; actors restart after one, so build with panic = \"unwind\"",
        )
    }
}

/// Suppresses Rust's default report of panics inside `catch`, whose callers log them. May be called twice.
pub fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            if IS_GUARDED.get() {
                LOCATION.set(panic.location().map(Location::to_string));
            } else {
                default(panic);
            }
        }));
    });
}

/// Runs `work` and returns a panic as a value. Values that `work` borrowed may be half changed: drop or recover them.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    let outer = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(outer);
    result.map_err(|payload| CaughtPanic {
        text: panic_text(payload.as_ref(), LOCATION.take()),
    })
}

fn panic_text(payload: &(dyn Any + Send), location: Option<String>) -> String {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text");
    match location {
        Some(location) => format!("{message} at {location}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_unwinds() {
        assert_eq!(assert_unwinding(), Ok(()));
    }

    #[test]
    fn a_caught_panic_has_its_text_and_location() {
        install_hook();
        let caught = catch(|| panic!("no row {}", 7)).unwrap_err();
        assert!(
            caught.text.starts_with("no row 7 at ") && caught.text.contains("panics.rs:"),
            "{}",
            caught.text
        );
        assert_eq!(catch(|| 5), Ok(5));
    }

    #[test]
    fn a_caught_panic_inside_guarded_code_leaves_the_outer_guard_in_place() {
        install_hook();
        let caught = catch(|| {
            assert!(catch(|| panic!("inner")).is_err());
            assert!(IS_GUARDED.get());
            panic!("outer");
        });
        assert!(caught.unwrap_err().text.starts_with("outer"));
        assert!(!IS_GUARDED.get());
    }
}
